"""Tasks to a pool of processes on this machine: what the work takes without any platform."""

import multiprocessing
import os
import signal
import time
from multiprocessing.queues import SimpleQueue

from dispatch import Dispatcher, DispatchError, Handover, Outcome


class Pool(Dispatcher):
    """Python's own pool: each of its processes takes the next task when it is free."""

    def __init__(self, workers: int, task_s: float, timeout_s: float) -> None:
        """Start the processes and wait until all of them are there."""
        super().__init__(timeout_s)
        self._task_s = task_s
        context = multiprocessing.get_context("fork")
        ready: SimpleQueue[int] = context.SimpleQueue()
        try:
            self._pool = context.Pool(workers, _become_worker, (ready,))
        except OSError as error:
            raise DispatchError(f"{workers} processes cannot be started: {error}") from error
        for _ in range(workers):
            ready.get()

    def start(self, count: int) -> None:
        for task in range(count):
            self._under_way[task] = Handover(task, time.time() * 1000, time.perf_counter())
            self._pool.apply_async(_work, (task, self._task_s), callback=self._on_outcome)

    def _on_outcome(self, outcome: Outcome) -> None:
        self._events.put(outcome._replace(ended_s=time.perf_counter()))

    def halt(self) -> None:
        self._pool.terminate()
        self._pool.join()


def _become_worker(ready: "SimpleQueue[int]") -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # the pool's way to end it
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ready.put(os.getpid())


def _work(task: int, task_s: float) -> Outcome:
    begun_ms, began_s = time.time() * 1000, time.perf_counter()
    if task_s:
        time.sleep(task_s)
    ended_s = time.perf_counter()
    return Outcome(task, ended_s, None, None, (ended_s - began_s) * 1000, begun_ms, f"process-{os.getpid()}")
