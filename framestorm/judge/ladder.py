"""Ladder: the capacity of a function by users who wait for each answer, from few to more than it can use.

The users are doubled until two steps in a row add hardly any answers per second: that rate is the capacity. It is
reached from the load on at which two lines meet: the rate of the lowest load, which grows with the users as long as no
request waits for another, and the capacity (asymptotic bounds of closed systems: Kleinrock, Queueing Systems, vol. 2,
1976; Denning and Buzen, The operational analysis of queueing network models, 1978). Loads around it complete the curve.
"""

import math
from collections.abc import Sequence

from framestorm.model.search import Highest, LoadRange, Probe, has_recovered
from framestorm.stats.estimate import Estimate
from framestorm.stats.means import student

STEP = 2
# A step that adds less adds hardly any; so far below the capacity, the rate falls under more load.
HARDLY, FALLS = 1.1, 0.9
NEAR = 0.95  # of the highest rate: those loads have the capacity
AROUND = (1.0, 0.7, 1.4)
# A load so close to one that was tried would tell nothing new; each probe moves the knee that they are around.
CLOSE = 1.1
METHOD = "Student's t of the logarithms over the loads that have it, or the interval within them if that is wider"


class Ladder:
    """A search without objectives; it knows nothing of how a probe is made."""

    is_refining = False

    def __init__(self, over: LoadRange, probes: Sequence[Probe] = ()) -> None:
        self.over = over
        self._has_recovered = has_recovered(probes)
        self._probes = sorted(probes, key=lambda each: each.load)
        self._blame = self._limit_of_generator()
        # A rate that is the generator's says nothing, at that load and above.
        limit = self._blame.load if self._blame else math.inf
        self._known = [each for each in self._probes if each.load < limit and each.answered_per_s is not None]
        self._rungs = self._rates()

    def _limit_of_generator(self) -> Probe | None:
        """Return the first probe whose rate may be that of the load generator; None if there is none.

        A saturated generator is not to blame for a rate that still grows, nor at the lowest load, with which it begins.
        """
        highest = 0.0
        for each in self._probes:
            rate_per_s = each.answered_per_s or 0.0
            if each.generator and each.load > self.over.low and rate_per_s < HARDLY * highest:
                return each
            highest = max(highest, rate_per_s)
        return None

    def _rates(self) -> dict[float, float]:
        """Return the mean rate of answers of each load."""
        by_load: dict[float, list[float]] = {}
        for each in self._known:
            by_load.setdefault(each.load, []).append(each.answered_per_s or 0.0)
        return {load: sum(rates) / len(rates) for load, rates in by_load.items()}

    def next_load(self) -> float | None:
        """Return the next load to try; None if the search is over."""
        if not self._probes:
            return self.over.low
        if self._blame is not None:
            return None
        if not self._has_recovered:
            return self.over.low
        if not self._is_flat():
            top = max(self._rungs)
            return min(top * STEP, self.over.high) if top < self.over.high else None
        if sum(each.load == self.over.low for each in self._known) < 2:
            return self.over.low
        knee = self._knee()
        around = (max(self.over.low, self._rounded(knee * times)) for times in AROUND)
        return next((load for load in around if load <= max(self._rungs) and not self._is_tried(load)), None)

    def _is_tried(self, load: float) -> bool:
        return any(load / CLOSE < each < load * CLOSE for each in self._rungs)

    def _is_flat(self) -> bool:
        """Whether the last two steps added hardly any answers, beside what is tried around the knee."""
        steps = [load for load in self._rungs if self._is_step(load)]
        if len(steps) < 3:
            return False
        before, first, second = (self._rungs[load] for load in sorted(steps)[-3:])
        return max(first, second) < HARDLY * before

    def _is_step(self, load: float) -> bool:
        doublings = math.log(load / self.over.low, STEP)
        return load == self.over.high or abs(doublings - round(doublings)) < 1e-9

    def _capacity(self) -> Estimate:
        highest = max(self._rungs.values())
        having = [each for each in self._known if (each.answered_per_s or 0) >= NEAR * highest]
        mean = student([math.log(each.answered_per_s or 0.0) for each in having])
        between = None if mean.high is None else mean.high - mean.value
        half = max((each for each in (_of_mean(having), between) if each is not None), default=None)
        value = math.exp(mean.value)
        if half is None:
            return Estimate(value, n=len(having))
        return Estimate(value, value * math.exp(-half), value * math.exp(half), n=len(having), method=METHOD)

    def _knee(self) -> float:
        return self.over.low * self._capacity().value / self._rungs[self.over.low]

    def answer(self) -> Highest | None:
        """Return the answer; None as long as there is a load to try."""
        if self.next_load() is not None:
            return None
        capacity, top = self._capacity(), max(self._rungs)
        if not self._is_flat():
            most = max(load for load, rate in self._rungs.items() if rate >= NEAR * max(self._rungs.values()))
            return Highest("at_least", most, None, None, None, why=self._why_no_end(), capacity=capacity)
        lowest = [each for each in self._known if each.load == self.over.low]
        knee, of_lowest, interval = self._knee(), _of_mean(lowest), None
        if of_lowest is not None and capacity.high is not None:
            half = math.hypot(of_lowest, math.log(capacity.high / capacity.value))
            low, high = knee * math.exp(-half), knee * math.exp(half)
            # Of whole numbers, so that the answer, which is one, lies within.
            is_whole = self.over.is_whole
            interval = (float(math.floor(low)), float(math.ceil(high))) if is_whole else (_digits(low), _digits(high))
        falls_to = self._rungs[top] if self._rungs[top] < FALLS * capacity.value else None
        highest = max(self.over.low, self._rounded(knee))
        return Highest("found", highest, None, None, None, interval=interval, capacity=capacity, falls_to=falls_to)

    def _why_no_end(self) -> str:
        """Return why the highest rate may not be the capacity."""
        if self._blame:
            return f"{self.over.at(self._blame.load)}, {self._blame.generator}"
        *before, last = (self._rungs[load] for load in sorted(self._rungs))
        if before and last < HARDLY * max(before):
            return f"the range ends {self.over.at(self.over.high)}, too soon to see whether more users add to the rate"
        return f"the rate still grows {self.over.at(self.over.high)}, the end of the range"

    def _rounded(self, load: float) -> float:
        return float(round(load)) if self.over.is_whole else _digits(load)


def _digits(load: float) -> float:
    return float(f"{load:.3g}")


def _of_mean(probes: Sequence[Probe]) -> float | None:
    """Return half the width of the interval of the mean rate of some probes, by their own, on a scale of logarithms.

    None if one of them has no interval, as where its rate drifts.
    """
    ratios = [each.answered_high / each.answered_low for each in probes if each.answered_low and each.answered_high]
    return math.hypot(*map(math.log, ratios)) / 2 / len(probes) if len(ratios) == len(probes) else None
