"""Search: the next load to try by the results so far, or the highest that meets its objectives.

The load rises from the low end of the range in steps of STEP until one fails, so that a function is never far
overloaded; a failure that may be chance is repeated. Then the gap between the highest that passed and the lowest that
failed is halved, on a scale of ratios. Where the figure of the objective rises there, further probes around the limit
show where it crosses that, with an interval. Where it jumps, or is no ratio, the gap is halved until it is as narrow as
the resolution, and both ends are repeated: a load counts by the majority of its probes. A probe above one that failed
is not believed: what fails at a load is taken to fail above it. Once the load generator has made a load, a
single probe in which it failed to make that load or a lower one says nothing, and is repeated.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from framestorm.model.criteria import parse
from framestorm.model.search import Highest, LoadRange, Probe, has_recovered
from framestorm.stats.crossing import Crossing, crossing

STEP = 4.0
# A gap so wide is halved; within a narrower one the figure is fitted, if it rises there by no more than JUMP.
COARSE, JUMP = 1.2, math.log(8)
# Of the crossing: where probes are made in turn, and when there are enough of them.
AROUND = (0.94, 1.05, 0.98, 1.02)
MOST, LEAST_NEAR = 15, 7
WIDEST = 1.5
TIMES = 2  # how often each end of the answer has to be seen on its side
CLIFF = 2.0
DIGITS = 3


def without_disturbed(probes: Sequence[Probe], made: float = math.inf) -> list[Probe]:
    """Return the probes that count: the load generator made their load, or failed to more than by chance.

    made: the highest load that it made; a load above it may be more than it can make, as the first failure shows.
    """
    disturbed = Counter(each.load for each in probes if each.generator)
    return [each for each in probes if not each.generator or each.load > made or disturbed[each.load] >= TIMES]


@dataclass(frozen=True)
class _Level:
    """One load with its probes."""

    load: float
    probes: list[Probe]

    @property
    def margin(self) -> int:
        """How many more of its probes passed than failed."""
        return sum(1 if each.passed else -1 for each in self.probes)

    @property
    def is_open(self) -> bool:
        return self.margin == 0

    @property
    def is_confirmed(self) -> bool:
        """Whether it was seen often enough; of many contradicting ones the majority counts."""
        agreeing = sum(each.passed == (self.margin > 0) for each in self.probes)
        return self.margin != 0 and agreeing >= TIMES

    @property
    def is_sure(self) -> bool:
        """Whether one of its probes is sure, and no other one is as sure of the contrary."""
        return {each.passed for each in self.probes if each.is_sure} == {self.margin > 0} and not self.is_open


class Search:
    """A search over a range, by the probes so far; it knows nothing of how a probe is made."""

    def __init__(self, over: LoadRange, probes: Sequence[Probe] = ()) -> None:
        self.over = over
        made = max((each.load for each in probes if not each.generator), default=-math.inf)
        self._probes = without_disturbed(probes, made)
        by_load = groupby(sorted(self._probes, key=lambda each: each.load), key=lambda each: each.load)
        self._levels = [_Level(load, list(of_load)) for load, of_load in by_load]
        self._fails = [each for each in self._levels if each.margin < 0]
        limit = self._fails[0].load if self._fails else math.inf
        self._passes = [each for each in self._levels if each.margin > 0 and each.load < limit]

    def next_load(self) -> float | None:
        """Return the next load to try; None if the search is over."""
        if self._passes and not has_recovered(self._probes):
            return self._passes[-1].load  # one that does not recover would fail at all loads from here on
        if self.is_refining:
            return self._around()
        undecided = next((each.load for each in self._levels if each.is_open), None)
        if undecided is not None:
            return undecided
        if not self._levels:
            return self.over.low
        if not self._fails:
            top = self._passes[-1]
            if top.load < self.over.high:
                return self._above(top.load)
            return None if top.is_confirmed else top.load
        fail = self._fails[0]
        if not self._passes:
            if fail.load > self.over.low:
                return self.over.low
            return None if fail.is_confirmed else fail.load
        top = self._passes[-1]
        if fail.load > top.load * COARSE and len(fail.probes) == 1 and not fail.is_sure:
            return fail.load
        middle = self._middle(top.load, fail.load)
        if middle is not None:
            return middle
        return next((each.load for each in (top, fail) if not each.is_confirmed), None)

    @property
    def is_refining(self) -> bool:
        """Whether probes are made around the limit, to fit where the figure crosses it."""
        if not self._passes or not self._fails:
            return False
        top, fail = self._passes[-1], self._fails[0]
        if self.over.is_whole and fail.load - top.load <= 1 and fail.load > top.load * (1 + self.over.resolution):
            return False  # no load lies between them, and a line through others could contradict both
        below, above = (self._margin(each) for each in (top, fail))
        if below is None or above is None or above - below > JUMP:
            return False
        return fail.load <= top.load * COARSE

    @staticmethod
    def _margin(level: _Level) -> float | None:
        margins = [each.margin for each in level.probes if each.margin is not None]
        return sum(margins) / len(margins) if len(margins) == len(level.probes) else None

    def _crossing(self) -> Crossing | None:
        """Return where the figure crosses its limit, as far as the probes show it."""
        near = math.sqrt(self._passes[-1].load * self._fails[0].load)
        known = [(each.load, each.margin) for each in self._probes if each.margin is not None]
        loads, margins = [load for load, _ in known], [margin for _, margin in known]
        found = crossing(loads, margins, near)
        return crossing(loads, margins, found.load) if found else None

    def _around(self) -> float | None:
        """Return the next load around the crossing; None if that is known well enough, or there are enough probes."""
        found = self._crossing()
        near = found.load if found else math.sqrt(self._passes[-1].load * self._fails[0].load)
        n_near = sum(near / COARSE <= each.load <= near * COARSE for each in self._probes)
        is_known = found is not None and found.high <= found.low * (1 + self.over.resolution) and n_near >= LEAST_NEAR
        if is_known or len(self._probes) >= MOST:
            return None
        return min(self.over.high, max(self.over.low, self._rounded(near * AROUND[len(self._probes) % len(AROUND)])))

    def answer(self) -> Highest | None:
        """Return the answer; None as long as there is a load to try."""
        if self.next_load() is not None:
            return None
        sure_pass, sure_fail = self._sure(math.inf, 0)
        if not self._fails:
            why = f"the range ends {self.over.at(self.over.high)}"
            return Highest("at_least", self._passes[-1].load, sure_pass, None, None, why=why)
        fail = self._fails[0]
        binding = _binding(fail)
        blame = next((each.generator for each in fail.probes if each.generator), "")
        if not self._passes:
            return Highest("below_range", None, None, sure_fail, fail.load, binding, why=blame)
        top = self._passes[-1]
        if blame:
            return Highest("at_least", top.load, sure_pass, None, None, why=f"{self.over.at(fail.load)}, {blame}")
        found = self._crossing() if self.is_refining else None
        highest = 0.0
        if found:
            highest = float(math.floor(found.load)) if self.over.is_whole else self._rounded(found.load)
        above = next((each.load for each in self._fails if each.load > highest), None)
        # A line says nothing of loads beyond those that were tried, or that have all failed.
        is_within = found is not None and self._levels[0].load <= found.load <= self._levels[-1].load
        if found is None or not is_within or above is None or found.high > WIDEST * found.low:
            return Highest("found", top.load, sure_pass, sure_fail, fail.load, binding, _is_cliff(top, fail, binding))
        interval = (float(f"{found.low:.{DIGITS}g}"), float(f"{found.high:.{DIGITS}g}"))
        sure_pass, sure_fail = self._sure(*interval)  # within it, sure probes contradict each other
        is_cliff = found.slope * math.log1p(self.over.resolution) > math.log(CLIFF)
        return Highest("found", highest, sure_pass, sure_fail, above, binding, is_cliff, interval=interval)

    def _sure(self, low: float, high: float) -> tuple[float | None, float | None]:
        """Return the highest load up to `low` that surely passed, and the lowest from `high` that surely failed."""
        passed = (each.load for each in reversed(self._passes) if each.is_sure and each.load <= low)
        failed = (each.load for each in self._fails if each.is_sure and each.load >= high)
        return next(passed, None), next(failed, None)

    def _above(self, load: float) -> float:
        """Return the next load of the rise; the end of the range if that is near."""
        raised = self._rounded(load * STEP)
        return self.over.high if raised * math.sqrt(STEP) > self.over.high else raised

    def _middle(self, low: float, high: float) -> float | None:
        """Return the load between two; None if they are as close as they have to be."""
        if high <= low * (1 + self.over.resolution):
            return None
        middle = self._rounded(math.sqrt(low * high))
        return middle if low < middle < high else None

    def _rounded(self, load: float) -> float:
        return float(round(load)) if self.over.is_whole else float(f"{load:.{DIGITS}g}")


def _binding(fail: _Level) -> str:
    """Return the objective that most probes of a load missed."""
    missed = [each.objective for probe in fail.probes for each in probe.outcomes if not each.is_met]
    return max(missed, key=missed.count, default="")


def _is_cliff(top: _Level, fail: _Level, binding: str) -> bool | None:
    """Return whether the figure of an objective gets more than twice as bad from one load to the other.

    A share of samples is compared with its limit, because there may be no error before.
    """
    before, after = (
        [
            each.value
            for probe in level.probes
            for each in probe.outcomes
            if each.objective == binding and each.value is not None
        ]
        for level in (top, fail)
    )
    if not before or not after:
        return None
    objective, old, new = parse(binding), sum(before) / len(before), sum(after) / len(after)
    if objective.is_share_of_samples:
        missing, allowed = ((1 - each if objective.is_above else each) for each in (new, objective.limit))
        return missing > CLIFF * allowed if allowed > 0 else None
    if objective.is_above:
        return old > CLIFF * new
    return new > CLIFF * old if old > 0 else None
