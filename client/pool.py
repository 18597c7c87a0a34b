"""Gives tasks to a pool of processes on this machine, as the baseline without any platform."""

import multiprocessing
import os
import signal
import time
from concurrent.futures import Future, ProcessPoolExecutor
from functools import partial
from multiprocessing.queues import SimpleQueue

from dispatch import Dispatcher, DispatchError, Handover, TaskOutcome


class Pool(Dispatcher):
    """Python's own pool: each of its processes takes the next task when it is free."""

    def __init__(self, workers: int, task_s: float, timeout_s: float) -> None:
        """Start the processes and wait until all of them are there."""
        super().__init__(timeout_s)
        self._task_s = task_s
        self._is_halting = False
        context = multiprocessing.get_context("fork")
        ready: SimpleQueue[int] = context.SimpleQueue()
        self._executor = ProcessPoolExecutor(workers, context, _become_worker, (ready,))
        try:
            self._executor.submit(os.getpid)  # starts them all
            for _ in range(workers):
                ready.get()
        except BaseException as error:
            _kill_workers()  # the end of this process would wait for those that were started
            if isinstance(error, OSError):
                raise DispatchError(f"{workers} processes cannot be started: {error}") from error
            raise

    def start(self, count: int) -> None:
        for task in range(count):
            self._under_way[task] = Handover(task, time.time() * 1000, time.perf_counter())
            self._executor.submit(_work, task, self._task_s).add_done_callback(partial(self._on_outcome, task))

    def _on_outcome(self, task: int, future: "Future[TaskOutcome]") -> None:
        if self._is_halting:
            return
        ended_s = time.perf_counter()
        is_killed = future.exception() is not None  # for want of memory, say: then the pool does no task any more
        self._events.put(
            TaskOutcome(task, ended_s, "worker-ended") if is_killed else future.result()._replace(ended_s=ended_s)
        )

    def halt(self) -> None:
        self._is_halting = True
        # Not by multiprocessing.Pool: its end waits for ever for a lock that a killed process of it held.
        _kill_workers()
        self._executor.shutdown(cancel_futures=True)


def _kill_workers() -> None:
    for worker in multiprocessing.active_children():
        worker.kill()


def _become_worker(ready: "SimpleQueue[int]") -> None:
    # A signal to the whole process group is the client's affair, which ends its processes itself.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ready.put(os.getpid())


def _work(task: int, task_s: float) -> TaskOutcome:
    begun_ms, began_s = time.time() * 1000, time.perf_counter()
    if task_s:
        time.sleep(task_s)
    ended_s = time.perf_counter()
    return TaskOutcome(task, ended_s, None, None, (ended_s - began_s) * 1000, begun_ms, f"process-{os.getpid()}")
