"""Values that change at moments of their own, as rows of metrics.csv at equal steps and at each change."""

import bisect
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise

from framestorm.platform.base import Reading

STEP_MS = 1000.0
# Those of a run of hours are longer.
STEPS_AT_MOST = 10_000
WANTED, READY = "replicas_wanted", "replicas_ready"
Key = tuple[str, str]  # a metric, and its detail


class Timeline:
    """What is known of each metric of one function, from each change on; None from when it is not known any more."""

    def __init__(self, function: str) -> None:
        self.function = function
        self._times: dict[Key, list[float]] = defaultdict(list)
        self._values: dict[Key, list[float | None]] = defaultdict(list)

    def set(self, metric: str, at_ms: float, value: float | None, detail: str = "") -> None:
        """Note a value; the times of one metric do not fall."""
        times, values = self._times[metric, detail], self._values[metric, detail]
        if values and values[-1] == value:
            return
        times.append(at_ms)
        values.append(value)

    def at(self, metric: str, time_ms: float, detail: str = "") -> float | None:
        """Return the value at a time; None if it was not known."""
        place = bisect.bisect_right(self._times.get((metric, detail), []), time_ms)
        return self._values[metric, detail][place - 1] if place else None

    def readings(self, start_ms: float, end_ms: float) -> Iterator[Reading]:
        """Yield all values of a span, by metric and time, at the same times for all metrics."""
        step_ms = max(STEP_MS, (end_ms - start_ms) / STEPS_AT_MOST)
        moments = {start_ms + number * step_ms for number in range(int((end_ms - start_ms) / step_ms) + 1)}
        moments |= {time_ms for times in self._times.values() for time_ms in times if start_ms <= time_ms <= end_ms}
        ordered = sorted({round(each) for each in (*moments, end_ms)})
        for metric, detail in self._times:
            for time_ms in ordered:
                value = self.at(metric, time_ms, detail)
                if value is not None:
                    yield Reading(time_ms, metric, self.function, detail, value)
        yield from self.short_s(ordered)

    def short_s(self, times_ms: Sequence[int]) -> Iterator[Reading]:
        """Yield for how long, at each of these times, fewer replicas were ready than wanted since the first."""
        passed_ms = 0
        for before_ms, time_ms in pairwise((*times_ms[:1], *times_ms)):
            wanted, ready = self.at(WANTED, before_ms), self.at(READY, before_ms)
            if wanted is not None and ready is not None:
                passed_ms += time_ms - before_ms if ready < wanted else 0
                yield Reading(time_ms, "replicas_short_s", self.function, "", passed_ms / 1000)
