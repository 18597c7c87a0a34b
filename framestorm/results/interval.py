"""One second of one label while a run goes on: all that shows, judges or passes on its figures takes these."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from framestorm.model.cause import TIMEOUTS
from framestorm.model.sample import SampleKind
from framestorm.stats.estimate import nearest_rank

# Messages that are all different would fill the memory of a long run.
MAX_CAUSES = 1000


class Key(NamedTuple):
    """Which samples an interval is of: the second (since 1970) in which they ended, their label, kind and slave.

    kind: users are processes, each a sample labelled user; slave: as people call it, empty without slaves.
    """

    second: int
    label: str
    kind: SampleKind | Literal["user"]
    slave: str


@dataclass(slots=True)
class Interval:
    """Counts the samples of one key; intervals of the same key add up, as late samples make another one of a second.

    causes: of those with an error; times, timeouts: by value in ms, those of samples without error, and those that a
        timeout cut off; busy_ms: the sum of all.
    first_start_s, last_start_s, first_end_s, last_end_s: infinite if no sample has times that can be.
    """

    key: Key
    n: int = 0
    causes: Counter[str] = field(default_factory=Counter)
    times: dict[float, int] = field(default_factory=dict)
    timeouts: dict[float, int] = field(default_factory=dict)
    busy_ms: float = 0.0
    first_start_s: float = math.inf
    last_start_s: float = -math.inf
    first_end_s: float = math.inf
    last_end_s: float = -math.inf

    @property
    def errors(self) -> int:
        """How many have an error."""
        return self.causes.total()

    def add(self, start_s: float, ms: float | None, cause: str | None) -> None:
        """Count a sample; ms is None if its times cannot be, and cause is None if it has no error."""
        self.n += 1
        if cause is not None:
            count_cause(self.causes, cause)
        if ms is None:
            return
        end_s = start_s + ms / 1000
        # Faster than min() and max(), which each row of samples.jtl would need.
        if start_s < self.first_start_s:  # noqa: PLR1730
            self.first_start_s = start_s
        if start_s > self.last_start_s:  # noqa: PLR1730
            self.last_start_s = start_s
        if end_s < self.first_end_s:  # noqa: PLR1730
            self.first_end_s = end_s
        if end_s > self.last_end_s:  # noqa: PLR1730
            self.last_end_s = end_s
        ms = kept(ms)
        self.busy_ms += ms
        if cause is None:
            self.times[ms] = self.times.get(ms, 0) + 1
        elif cause in TIMEOUTS:
            self.timeouts[ms] = self.timeouts.get(ms, 0) + 1

    def merge(self, other: "Interval") -> None:
        """Add the samples of another interval."""
        self.n += other.n
        self.busy_ms += other.busy_ms
        for cause, n in other.causes.items():
            count_cause(self.causes, cause, n)
        for own, more in ((self.times, other.times), (self.timeouts, other.timeouts)):
            for ms, n in more.items():
                own[ms] = own.get(ms, 0) + n
        self.first_start_s = min(self.first_start_s, other.first_start_s)
        self.last_start_s = max(self.last_start_s, other.last_start_s)
        self.first_end_s = min(self.first_end_s, other.first_end_s)
        self.last_end_s = max(self.last_end_s, other.last_end_s)


def kept(ms: float) -> float:
    """A time by which equal ones are counted together: to 0.1 % or better, so that a run has a few thousand at most."""
    per_ms = 1 if 100 <= ms < 10_000 else 10 if 10 <= ms < 100 else 100 if ms < 10 else 0.1
    # Faster than round(), which each row of samples.jtl would need.
    return int(ms * per_ms + 0.5) / per_ms


def count_cause(causes: Counter[str], cause: str, n: int = 1) -> None:
    """Count a cause; of too many different ones, its first word."""
    is_new = cause not in causes and len(causes) >= MAX_CAUSES
    causes[cause.partition(":")[0] if is_new else cause] += n


def percentiles(counted: Iterable[Mapping[float, int]], percents: Iterable[str]) -> list[float | None]:
    """Nearest-rank percentiles of times that are counted by value; None without a time."""
    together = Counter[float]()
    for times in counted:
        together.update(times)
    ordered = sorted(together.items())
    return [at_rank(ordered, nearest_rank(together.total(), percent)) for percent in percents]


def at_rank(ordered: list[tuple[float, int]], rank: int) -> float | None:
    """Return the time of a rank, counted from 1, of times and their numbers in order; None beyond the last."""
    for ms, n in ordered:
        rank -= n
        if rank <= 0:
            return ms
    return None
