"""Tasks as synchronous calls of a function."""

import threading
import time
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from callbacks import SECONDS
from caller import Caller, Response
from dispatch import Acceptance, Dispatcher, Handover, TaskOutcome
from headers import with_given

THREADS_END_WITHIN_S = 2.0


class Calls(NamedTuple):
    """How tasks are called: the function, by how many connections, for how long, with what, and what is correct."""

    url: str
    workers: int
    task_s: float
    timeout_s: float
    connect_timeout_s: float
    expected: frozenset[int]
    headers: Mapping[str, str]


class Push(Dispatcher):
    """So many workers here, each on a connection of its own, each with one task at a time."""

    def __init__(self, calls: Calls, **headers: str) -> None:
        """Have the workers stand ready; their connections come with their first task."""
        super().__init__(calls.timeout_s)
        self._expected = calls.expected
        self._body = f"{calls.task_s:g}".encode()
        fields = with_given(calls.headers, {name.replace("_", "-"): value for name, value in headers.items()})
        self._callers = [
            Caller(calls.url, fields, calls.timeout_s, calls.connect_timeout_s) for _ in range(calls.workers)
        ]
        self._threads = [threading.Thread(target=self._post_all, args=(each,), daemon=True) for each in self._callers]
        self._tasks: Iterator[int] = iter(())
        self._is_begun = threading.Event()
        self._halted = False
        for thread in self._threads:
            thread.start()

    def start(self, count: int) -> None:
        self._tasks = iter(range(count))
        self._is_begun.set()

    def _post_all(self, caller: Caller) -> None:
        self._is_begun.wait()
        for task in self._tasks:  # of all threads: taking the next is one step of the interpreter
            if self._halted:
                break
            trace_id = caller.renew_trace()
            self._events.put(Handover(task, time.time() * 1000, time.perf_counter(), caller, trace_id))
            self._events.put(self._read_answer(task, caller.post(self._body)))
        caller.close()

    def _read_answer(self, task: int, answer: Response) -> TaskOutcome | Acceptance:
        ended_s = time.perf_counter()
        cause = answer.cause or self._cause(answer.status)
        took_s = answer.headers.get("x-duration-seconds")  # of OpenFaaS's watchdog
        return TaskOutcome(
            task,
            ended_s,
            cause,
            answer.status,
            _milliseconds(took_s),
            worker=answer.headers.get("x-worker"),
            received_bytes=answer.received_bytes,
        )

    def _cause(self, status: int | None) -> str | None:
        """Return what is wrong with the function's status, None if it is one of those expected."""
        return None if status in self._expected else f"status-{status}"

    def halt(self) -> None:
        self._halted = True
        self._is_begun.set()
        for caller in self._callers:
            caller.cut("stopped")
        deadline_s = time.monotonic() + THREADS_END_WITHIN_S
        for thread in self._threads:
            thread.join(max(0.0, deadline_s - time.monotonic()))


def _milliseconds(seconds: str | None) -> float | None:
    # Not all that Python takes for a number: a line has no `nan`.
    return float(seconds) * 1000 if seconds and SECONDS.fullmatch(seconds) else None
