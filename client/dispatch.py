"""Dispatching tasks: the interface of all dispatchers, and the events that they use.

All tasks are known before the first begins. A dispatcher's threads and processes only put events into its queue; the
caller of `next` does the rest. So nothing needs a lock, and every wait can be interrupted, by an event too.
"""

import contextlib
import queue
import time
from abc import ABC, abstractmethod
from typing import NamedTuple

from callbacks import Call
from caller import Caller
from interrupt import Stopped

# A connection with a very slow answer is cut this long after a silent one would have timed out.
TRICKLE_GRACE_S = 0.5


class DispatchError(Exception):
    """The tasks cannot be dispatched; the message says why."""


class Handover(NamedTuple):
    """A task was handed over."""

    task: int
    start_ms: float  # epoch
    started_s: float  # time.perf_counter
    caller: Caller | None = None
    trace_id: str | None = None


class Acceptance(NamedTuple):
    """The queue took a task."""

    task: int
    call_id: str
    accepted_ms: float  # epoch


class TaskOutcome(NamedTuple):
    """The outcome of a task."""

    task: int
    ended_s: float  # time.perf_counter
    cause: str | None
    status: int | None = None
    handler_ms: float | None = None  # in execution
    begun_ms: float | None = None  # epoch: execution began
    worker: str | None = None
    received_bytes: int = 0


class Result(NamedTuple):
    """A task as the dispatcher saw it."""

    handover: Handover
    outcome: TaskOutcome
    accepted_ms: float | None  # epoch

    @property
    def rtt_ms(self) -> float:
        return (self.outcome.ended_s - self.handover.started_s) * 1000


class Dispatcher(ABC):
    """Hands tasks over and returns the outcome of each task once."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._events: queue.SimpleQueue[Handover | Acceptance | Call | TaskOutcome | Stopped] = queue.SimpleQueue()
        self._under_way: dict[int, Handover] = {}  # in the order they were handed over
        self._accepted_ms: dict[int, float] = {}

    @abstractmethod
    def start(self, count: int) -> None:
        """Hand over `count` tasks, or begin to."""

    @abstractmethod
    def halt(self) -> None:
        """Hand over no more, and leave nothing running. Called once, at the end."""

    @property
    def repeated(self) -> int:
        """How often a finished task was reported as done again."""
        return 0

    def interrupt(self) -> None:
        """Have `next` raise Stopped once it has seen what came before. A handler of signals may call this."""
        self._events.put(Stopped())

    def next(self) -> Result:
        """Wait for the next task that is done or has timed out.

        Raises:
            Stopped: it was interrupted.
        """
        while True:
            first = next(iter(self._under_way.values()), None)
            left_s = self._timeout_s if first is None else first.started_s + self._timeout_s - time.perf_counter()
            result = self._take(max(0.01, left_s)) or self._overdue()
            if result is not None:
                return result

    def stop(self) -> list[Result]:
        """Halt; returns the tasks that were done in time, and those that are given up."""
        self.halt()
        results = []
        while not self._events.empty():
            with contextlib.suppress(Stopped):  # of a second signal, or of one after the last task
                results.append(self._take(0))
        results += [self._give_up(handover, "stopped") for handover in list(self._under_way.values())]
        return [result for result in results if result is not None]

    def _take(self, wait_s: float) -> Result | None:
        try:
            event = self._events.get(timeout=wait_s)
        except queue.Empty:
            return None
        if isinstance(event, Stopped):
            raise event
        if isinstance(event, Handover):
            self._under_way[event.task] = event
            return None
        outcome = event if isinstance(event, TaskOutcome) else self._outcome_of(event)
        if outcome is None or outcome.task not in self._under_way:
            return None  # it had been given up
        return Result(self._under_way.pop(outcome.task), outcome, self._accepted_ms.get(outcome.task))

    def _outcome_of(self, event: Acceptance | Call) -> TaskOutcome | None:
        raise NotImplementedError(f"only a queue tells of {event}")

    def _overdue(self) -> Result | None:
        if not self._events.empty():  # an outcome may wait there, and its caller be at the next task
            return None
        now_s = time.perf_counter()
        for handover in self._under_way.values():
            late_s = now_s - handover.started_s - self._timeout_s
            if late_s < 0:
                return None  # and no other is
            if handover.caller is None or handover.task in self._accepted_ms:
                return self._give_up(handover, "timeout")
            if late_s > TRICKLE_GRACE_S:
                handover.caller.cut("timeout")  # its thread says so then
        return None

    def _give_up(self, handover: Handover, cause: str) -> Result:
        del self._under_way[handover.task]
        return Result(
            handover, TaskOutcome(handover.task, time.perf_counter(), cause), self._accepted_ms.get(handover.task)
        )
