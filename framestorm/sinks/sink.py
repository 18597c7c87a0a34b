"""What a sink has in common with the others: a bounded queue, and a thread of low priority that empties it.

A sink that is slow or gone costs the run nothing: what finds no room in its queue is counted, and left out.
"""

import os
import queue
import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from framestorm.model.glance import Glance
from framestorm.model.run import Loss
from framestorm.results.interval import Interval

# Updates come twice a second.
MAX_WAITING = 120
NICENESS = 10
END_WITHIN_S = 3.0


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
    """Takes the updates of one run.

    n_missed: how many intervals it did not get.
    """

    def __init__(self) -> None:
        self.n_missed = 0
        self._waiting = queue.Queue[Update | None](MAX_WAITING)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def put(self, update: Update) -> None:
        """Hand over an update, and wait for nothing."""
        try:
            self._waiting.put_nowait(update)
        except queue.Full:
            self.n_missed += len(update.intervals)

    def finish(self) -> None:
        """Take what waits, as far as that is soon done; after that nothing more comes."""
        try:
            self._waiting.put(None, timeout=END_WITHIN_S)
        except queue.Full:
            return
        self._thread.join(END_WITHIN_S)

    @abstractmethod
    def take(self, update: Update) -> None:
        """Take an update, in the thread of the sink."""

    def _run(self) -> None:
        yield_cores()
        while (update := self._waiting.get()) is not None:
            self.take(update)


def yield_cores() -> None:
    """Give the calling thread, and those that it starts, less of the cores than JMeter's have."""
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
