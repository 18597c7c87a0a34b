"""What the live view counts: answers, errors and times, of the whole run, of a slave or of a label."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping

from framestorm.model.cause import TIMEOUTS
from framestorm.model.judgement import Group
from framestorm.stats.estimate import Estimate, nearest_rank

RECENT_S = 10
# A rate over less than this would be that of a handful of answers.
SHORTEST_S = 1.0
MAX_CAUSES = 1000


def kept(ms: float) -> float:
    """A time by which equal ones are counted together: to 0.1 % or better, so that a run has a few thousand at most."""
    per_ms = 1 if 100 <= ms < 10_000 else 10 if 10 <= ms < 100 else 100 if ms < 10 else 0.1
    # Faster than round(), which each row of samples.jtl would need.
    return int(ms * per_ms + 0.5) / per_ms


def percentiles(counted: Iterable[Mapping[float, int]], percents: Iterable[str]) -> list[float | None]:
    """Nearest-rank percentiles of times that are counted by value; None without a time."""
    together = Counter[float]()
    for times in counted:
        together.update(times)
    ordered = sorted(together.items())
    return [_at_rank(ordered, nearest_rank(together.total(), percent)) for percent in percents]


def _at_rank(ordered: list[tuple[float, int]], rank: int) -> float | None:
    for ms, n in ordered:
        rank -= n
        if rank <= 0:
            return ms
    return None


class _Second:
    """The answers of one second: how many, and the times of those without error by value."""

    __slots__ = ("answers", "busy_ms", "times")

    def __init__(self) -> None:
        self.answers = 0
        self.busy_ms = 0.0
        self.times: dict[float, int] = {}


class Tally:
    """The figures shown for the whole run, for a slave or for a label, updated with each sample."""

    def __init__(self) -> None:
        self.users_now = 0
        self.users_done = 0
        self.users_failed = 0
        self.samples = 0
        self.errors = 0
        self.causes = Counter[str]()
        self._seconds: dict[int, _Second] = {}

    def add(self, end_s: float, rtt_ms: float | None, cause: str | None, n: int = 1) -> None:
        """Count `n` samples that ended in the same second; rtt_ms is None if a script made their times up."""
        self.samples += n
        second = self._seconds.get(int(end_s)) or self._new_second(int(end_s))
        second.answers += n
        if rtt_ms is not None:
            second.busy_ms += n * rtt_ms
        if cause is not None:
            self.errors += n
            # Messages that are all different would fill the memory of a long run.
            is_new = cause not in self.causes and len(self.causes) >= MAX_CAUSES
            self.causes[cause.partition(":")[0] if is_new else cause] += n
        elif rtt_ms is not None:
            second.times[rtt_ms] = second.times.get(rtt_ms, 0) + n

    def answers_per_s(self, now_s: float, since_s: float | None) -> float:
        """Answers per second, failed ones too, over the last seconds, or since the first answer if that is shorter."""
        covered_s, seconds = self._recent(now_s, since_s)
        return sum(second.answers for second in seconds) / covered_s

    def in_flight(self, now_s: float, since_s: float | None) -> float:
        """How many requests were under way at a time in the last seconds, by Little's law of those answered."""
        covered_s, seconds = self._recent(now_s, since_s)
        return sum(second.busy_ms for second in seconds) / 1000 / covered_s

    def recent_times(self, now_s: float, *percents: str) -> list[float | None]:
        """Percentiles of the response times without error over the last seconds, in ms."""
        return percentiles((second.times for second in self._recent(now_s, None)[1]), percents)

    def _recent(self, now_s: float, since_s: float | None) -> tuple[float, list[_Second]]:
        """The seconds that the figures of now are of, and how much time they cover."""
        oldest = math.floor(now_s) - RECENT_S + 1
        covered_s = now_s - max(oldest, oldest if since_s is None else since_s)
        return max(covered_s, SHORTEST_S), [each for at, each in self._seconds.items() if at >= oldest]

    def _new_second(self, at: int) -> _Second:
        if len(self._seconds) > 2 * RECENT_S:
            newest = max(at, *self._seconds)
            self._seconds = {each: of for each, of in self._seconds.items() if each > newest - RECENT_S}
        return self._seconds.setdefault(at, _Second())


class Counted:
    """Times of a run so far by value (the protocol Times): those measured in full, those that a timeout cut off."""

    def __init__(self) -> None:
        self.full: dict[float, int] = {}
        self.cut: dict[float, int] = {}
        self._total_ms = 0.0

    def add(self, ms: float, n: int, *, is_cut: bool) -> None:
        """Count a time `n` times."""
        times = self.cut if is_cut else self.full
        times[ms] = times.get(ms, 0) + n
        self._total_ms += n * ms

    def percentile(self, percent: str) -> Estimate | None:
        """The nearest-rank percentile."""
        n = sum(self.full.values()) + sum(self.cut.values())
        return self._figure(nearest_rank(n, percent)) if n else None

    def mean(self) -> Estimate | None:
        """The mean; a lower bound as soon as one time was cut off."""
        n = sum(self.full.values()) + sum(self.cut.values())
        return Estimate(self._total_ms / n, n=n, bound="lower" if self.cut else "exact") if n else None

    def extreme(self, *, largest: bool) -> Estimate | None:
        """The smallest or the largest time."""
        n = sum(self.full.values()) + sum(self.cut.values())
        return self._figure(n if largest else 1) if n else None

    def _figure(self, rank: int) -> Estimate | None:
        value = _at_rank(sorted((Counter(self.full) + Counter(self.cut)).items()), rank)
        first_cut = min(self.cut, default=math.inf)
        exact = sum(n for ms, n in self.full.items() if ms <= first_cut)
        return None if value is None else Estimate(value, bound="exact" if rank <= exact else "lower")


class SoFar:
    """What a criterion is judged by while the run goes on: the samples of one label, or users."""

    def __init__(self, label: str, series: str = "rtt") -> None:
        self.label, self._series = label, series
        self._n = self._ok = 0
        self._times = Counted()
        self._first_start_s, self._last_start_s, self._last_end_s = math.inf, -math.inf, -math.inf
        self._soonest_ms = math.inf

    def within(self, start_s: float, end_s: float) -> None:
        """Note the start and the end of a sample or user."""
        self._first_start_s = min(self._first_start_s, start_s)
        self._last_start_s = max(self._last_start_s, start_s)
        self._last_end_s = max(self._last_end_s, end_s)

    def add(self, ms: float | None, cause: str | None, n: int = 1) -> None:
        """Count `n` samples or users of that time."""
        self._n += n
        self._ok += n * (cause is None)
        if ms is None:
            return
        if cause is None:
            self._soonest_ms = min(self._soonest_ms, ms)
        if cause is None or cause in TIMEOUTS:
            self._times.add(ms, n, is_cut=cause is not None)

    def group(self, *, is_at_rate: bool) -> Group:
        """The measurements so far, as results/table.py makes them of a run that is over."""
        begin_s = self._first_start_s
        if is_at_rate and self._n > 1 and math.isfinite(self._soonest_ms):
            begin_s += self._soonest_ms / 1000 - (self._last_start_s - self._first_start_s) / (self._n - 1)
        length_s = self._last_end_s - begin_s
        rate = self._ok / length_s if self._n and length_s > 0 else None
        return Group(self.label, self._n, self._ok, rate, {self._series: self._times})
