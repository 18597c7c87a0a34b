"""What the live view counts: answers, errors and times, of the whole run, of a slave or of a label."""

import math
from collections import Counter

from framestorm.model.judgement import Group
from framestorm.results.interval import Interval, Key, at_rank, count_cause, percentiles
from framestorm.stats.estimate import Estimate, nearest_rank

RECENT_S = 10
# A rate over less than this would be that of a handful of answers.
SHORTEST_S = 1.0


class Tally:
    """The figures shown for the whole run, for a slave or for a label, added up from intervals."""

    def __init__(self) -> None:
        self.users_now = 0
        self.users_done = 0
        self.users_failed = 0
        self.samples = 0
        self.errors = 0
        self.causes = Counter[str]()
        self._seconds: dict[int, Interval] = {}

    def take(self, interval: Interval) -> None:
        """Count the samples of an interval."""
        self.samples += interval.n
        self.errors += interval.errors
        for cause, n in interval.causes.items():
            count_cause(self.causes, cause, n)
        at = interval.key.second
        (self._seconds.get(at) or self._new_second(at)).merge(interval)

    def answers_per_s(self, now_s: float, since_s: float | None) -> float:
        """Answers per second, failed ones too, over the last seconds, or since the first answer if that is shorter."""
        covered_s, seconds = self._recent(now_s, since_s)
        return sum(second.n for second in seconds) / covered_s

    def in_flight(self, now_s: float, since_s: float | None) -> float:
        """Return how many requests were under way at a time in the last seconds, by Little's law of those answered."""
        covered_s, seconds = self._recent(now_s, since_s)
        return sum(second.busy_ms for second in seconds) / 1000 / covered_s

    def recent_times(self, now_s: float, *percents: str) -> list[float | None]:
        """Return percentiles of the response times without error over the last seconds, in ms."""
        return percentiles((second.times for second in self._recent(now_s, None)[1]), percents)

    def _recent(self, now_s: float, since_s: float | None) -> tuple[float, list[Interval]]:
        """Return the seconds that the figures of now are of, and how much time they cover."""
        oldest = math.floor(now_s) - RECENT_S + 1
        covered_s = now_s - max(oldest, oldest if since_s is None else since_s)
        return max(covered_s, SHORTEST_S), [each for at, each in self._seconds.items() if at >= oldest]

    def _new_second(self, at: int) -> Interval:
        if len(self._seconds) > 2 * RECENT_S:
            newest = max(at, *self._seconds)
            self._seconds = {each: of for each, of in self._seconds.items() if each > newest - RECENT_S}
        return self._seconds.setdefault(at, Interval(Key(at, "", "sampler", "")))


class Counted:
    """Times of a run so far by value (the protocol Times): those measured in full, those that a timeout cut off."""

    def __init__(self, full: dict[float, int], cut: dict[float, int]) -> None:
        self.full, self.cut = full, cut

    def percentile(self, percent: str) -> Estimate | None:
        """Return the nearest-rank percentile."""
        n = sum(self.full.values()) + sum(self.cut.values())
        return self._figure(nearest_rank(n, percent)) if n else None

    def mean(self) -> Estimate | None:
        """Return the mean; a lower bound as soon as one time was cut off."""
        counted = (*self.full.items(), *self.cut.items())
        n, total_ms = sum(n for _, n in counted), sum(n * ms for ms, n in counted)
        return Estimate(total_ms / n, n=n, bound="lower" if self.cut else "exact") if n else None

    def extreme(self, *, largest: bool) -> Estimate | None:
        """Return the smallest or the largest time."""
        n = sum(self.full.values()) + sum(self.cut.values())
        return self._figure(n if largest else 1) if n else None

    def _figure(self, rank: int) -> Estimate | None:
        value = at_rank(sorted((Counter(self.full) + Counter(self.cut)).items()), rank)
        first_cut = min(self.cut, default=math.inf)
        exact = sum(n for ms, n in self.full.items() if ms <= first_cut)
        return None if value is None else Estimate(value, bound="exact" if rank <= exact else "lower")


class SoFar:
    """What a criterion is judged by while the run goes on: the samples of one label, or users."""

    def __init__(self, series: str = "rtt") -> None:
        self._series = series
        self._sum = Interval(Key(0, "", "sampler", ""))

    def merge(self, interval: Interval) -> None:
        """Count the samples or users of an interval."""
        self._sum.merge(interval)

    def group(self, label: str, *, is_at_rate: bool) -> Group:
        """Return the measurements so far, as results/table.py makes them of a run that is over."""
        of, ok = self._sum, self._sum.n - self._sum.errors
        begin_s = of.first_start_s
        if is_at_rate and of.n > 1 and of.times:
            begin_s += min(of.times) / 1000 - (of.last_start_s - of.first_start_s) / (of.n - 1)
        length_s = of.last_end_s - begin_s
        rate = ok / length_s if of.n and length_s > 0 else None
        return Group(label, of.n, ok, rate, {self._series: Counted(of.times, of.timeouts)})
