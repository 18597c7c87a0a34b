"""Samples of a run so far, as monitoring systems count them: totals that only grow, with a histogram of times."""

from bisect import bisect_left
from collections import Counter
from typing import NamedTuple

from framestorm.results.interval import Interval
from framestorm.sinks.sink import Update

# Upper ends in seconds: six in a decade from 1 ms to 100 s.
BOUNDS_S = (*(float(f"{step}e{exponent}") for exponent in range(-3, 2) for step in (1, 1.5, 2, 3, 5, 7)), 100.0)
MAX_SERIES = 200
OTHER_LABELS = "other labels"
# Messages of functions have any length and number: what they begin with is counted.
MAX_CAUSES = 20
OTHER_CAUSES = "other"


class Of(NamedTuple):
    """Which samples a total is of: their label, kind and slave, as of an interval."""

    label: str
    kind: str
    slave: str


class Total:
    """The samples of one series so far; times are those of samples without error."""

    def __init__(self) -> None:
        self.n = 0
        self.causes = Counter[str]()
        self.sum_s = 0.0
        # By the bound at or above them; the last ones are above all.
        self.buckets = [0] * (len(BOUNDS_S) + 1)

    def take(self, interval: Interval) -> None:
        """Add the samples of an interval."""
        self.n += interval.n
        for cause, n in interval.causes.items():
            word = cause.partition(":")[0]
            self.causes[word if word in self.causes or len(self.causes) < MAX_CAUSES else OTHER_CAUSES] += n
        for ms, n in interval.times.items():
            self.sum_s += ms * n / 1000
            self.buckets[bisect_left(BOUNDS_S, ms / 1000)] += n


class Totals:
    """All totals of a run, and what its users and hosts do now."""

    def __init__(self) -> None:
        self.of: dict[Of, Total] = {}
        self.users = 0
        self.busy_cores: dict[str, float] = {}

    def take(self, update: Update) -> None:
        """Add what became known."""
        for interval in update.intervals:
            _, label, kind, slave = interval.key
            of = Of(label, kind, slave)
            if of not in self.of and len(self.of) >= MAX_SERIES:
                of = of._replace(label=OTHER_LABELS)
            self.of.setdefault(of, Total()).take(interval)
        self.users = update.users_now
        self.busy_cores = dict(update.busy_cores)
