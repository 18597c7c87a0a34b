"""What a sink has in common with the others: a bounded queue, and a thread of low priority that empties it.

A sink that is slow or gone costs the run nothing: what finds no room in its queue is counted, and left out.
"""

import os
import queue
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from framestorm.model.glance import Glance
from framestorm.model.run import Loss
from framestorm.plain import note
from framestorm.results.interval import Interval

# Updates come twice a second.
MAX_WAITING = 120
NICENESS = 10
END_WITHIN_S = 3.0
POLL_S = 0.2


@dataclass(frozen=True)
class Update:
    """What became known of a run since the last update.

    users_now: of all slaves; busy_cores: how many cores of each host are busy; losses: the hosts that are lost.
    """

    now_s: float
    intervals: Sequence[Interval]
    users_now: int
    busy_cores: Mapping[str, float]
    losses: Sequence[Loss]
    glance: Glance


class Sink(ABC):
    """Takes the updates of one run, or of several in turn.

    name: as people call it. n_intervals: how many there were; n_missed: how many of them it did not get; problem: why.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.problem: str | None = None
        self.n_intervals = 0
        self.n_missed = 0
        self._is_over = threading.Event()
        self._waiting = queue.Queue[Update](MAX_WAITING)
        self._start()

    def _start(self) -> None:
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def begin_again(self) -> None:
        """Take the updates of a further run, once that before has ended; until then, do nothing."""
        if self._is_over.is_set():
            self._is_over.clear()
            self._start()

    def put(self, update: Update) -> None:
        """Hand over an update, and wait for nothing."""
        self.n_intervals += len(update.intervals)
        try:
            self._waiting.put_nowait(update)
        except queue.Full:
            self.n_missed += len(update.intervals)

    def finish(self) -> None:
        """Let the sink end once it has taken what waits; nothing more comes."""
        self._is_over.set()

    def wait(self, within_s: float) -> None:
        """Wait until the sink has ended; what still waits then is missed."""
        self._thread.join(within_s)
        while not self._waiting.empty():
            self.n_missed += len(self._waiting.get().intervals)

    def say(self, problem: str) -> None:
        """Say the first problem on the terminal."""
        if self.problem is None:
            self.problem = problem
            note(f"{self.name}: {problem}; the run goes on")

    @abstractmethod
    def take(self, update: Update) -> None:
        """Take an update, in the thread of the sink."""

    def end(self) -> None:  # noqa: B027 - most have nothing left
        """Do what is left to do after the last update, in the thread of the sink."""

    def _run(self) -> None:
        yield_cores()
        while True:
            try:
                update = self._waiting.get(timeout=POLL_S)
            except queue.Empty:
                if self._is_over.is_set():
                    break
                continue
            try:
                self.take(update)
            except Exception as error:
                # Whatever it is, the run goes on, and so does the sink.
                self.n_missed += len(update.intervals)
                self.say(f"{type(error).__name__}: {error}")
        try:
            self.end()
        except Exception as error:
            self.say(f"{type(error).__name__}: {error}")


def finish(sinks: Sequence[Sink]) -> None:
    """Let all sinks end, and wait for them together."""
    for sink in sinks:
        sink.finish()
    deadline_s = time.monotonic() + END_WITHIN_S
    for sink in sinks:
        sink.wait(max(0.0, deadline_s - time.monotonic()))


def yield_cores() -> None:
    """Give the calling thread, and those that it starts, less of the cores than JMeter's have."""
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
