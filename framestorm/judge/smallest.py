"""Smallest value: of a setting that makes a function carry more, such as its replicas, the least that meets objectives.

The value rises from the low end of the range by doubling until a probe passes. Then the gap between the largest that
failed and the smallest that passed is halved, and both are repeated: a value counts by the majority of its probes. What
passes with a value is taken to pass with more. A single probe whose load the generator did not make says nothing, and
is repeated.
"""

from collections.abc import Sequence

from framestorm.judge.search import TIMES, without_disturbed
from framestorm.model.search import LoadRange, Probe, Smallest

STEP = 2


class SmallestSearch:
    """A search over whole numbers; it knows nothing of how a probe is made."""

    is_refining = False

    def __init__(self, over: LoadRange, probes: Sequence[Probe] = ()) -> None:
        self.over = over
        self._blame = next((each.generator for each in without_disturbed(probes) if each.generator), "")
        self._probes: dict[float, list[Probe]] = {}
        for each in probes:
            if not each.generator:
                self._probes.setdefault(each.load, []).append(each)
        values = sorted(self._probes)
        self._top = max(values, default=None)
        self._least = next((each for each in values if self._margin(each) > 0), None)
        below = [each for each in values if self._margin(each) < 0 and (self._least is None or each < self._least)]
        self._last_fail = max(below, default=None)

    def _margin(self, value: float) -> int:
        """Return how many more probes with a value passed than failed."""
        return sum(1 if each.passed else -1 for each in self._probes[value])

    def _is_confirmed(self, value: float) -> bool:
        margin = self._margin(value)
        return sum(each.passed == (margin > 0) for each in self._probes[value]) >= TIMES

    def next_load(self) -> float | None:
        """Return the next value to try; None if the search is over."""
        if self._blame:
            return None
        if self._top is None:
            return self.over.low
        undecided = next((each for each in sorted(self._probes) if self._margin(each) == 0), None)
        if undecided is not None:
            return undecided
        if self._least is None:
            if self._top < self.over.high:
                return min(self.over.high, STEP * self._top)
            return None if self._is_confirmed(self._top) else self._top
        if self._last_fail is not None and self._least - self._last_fail > 1:
            return float((self._least + self._last_fail) // 2)
        ends = [each for each in (self._last_fail, self._least) if each is not None]
        return next((each for each in ends if not self._is_confirmed(each)), None)

    def answer(self) -> Smallest | None:
        """Return the answer; None as long as there is a value to try."""
        if self.next_load() is not None:
            return None
        if self._blame:
            # Whether more of it would be enough is not known.
            return Smallest("not_known", self._least, self._last_fail, why=self._blame)
        binding = self._binding()
        if self._least is None:
            return Smallest("above_range", None, self._last_fail, binding)
        return Smallest("found", self._least, self._last_fail, binding)

    def _binding(self) -> str:
        """Return the objective that most probes with the largest value that failed missed."""
        probes = [] if self._last_fail is None else self._probes[self._last_fail]
        missed = [each.objective for probe in probes for each in probe.outcomes if not each.is_met]
        return max(missed, key=missed.count, default="")
