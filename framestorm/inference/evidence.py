"""Evidence for a figure, a difference or a ratio: its interval at any level, and how probable a value beyond it is.

Two kinds: one that was resampled, and one that has a formula for its ends. Both may know the truth to one side only,
for a timeout says just that the time was longer.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from framestorm.stats.bootstrap import percentile_ends
from framestorm.stats.checks import LEVEL, Ends, Floats
from framestorm.stats.estimate import Estimate
from framestorm.stats.means import paired_difference, paired_ratio, welch_difference, welch_ratio
from framestorm.stats.rounding import difference_ends, ratio_ends
from framestorm.stats.shares import margins

Scale = Literal["ratio", "difference"]
# The ends of an interval by its level, a share between 0 and 1.
Formula = Callable[[float], Ends]
# Beyond it a normal tail is below 2e-12: no interval of a few samples says that much.
Z_MOST = 7.0


class Evidence(Protocol):
    """`interval` has None for an end that is not known; `above` and `below` are one-sided p-values.

    above(at): how probable the data are, at most, if the truth is not above `at`; small: it is above.
    """

    def interval(self, level: float = LEVEL) -> Ends: ...

    def above(self, at: float) -> float: ...

    def below(self, at: float) -> float: ...


@dataclass(frozen=True)
class Resampled:
    """A figure of many resamples; of each its least and its largest possible value, which are equal without timeouts.

    NaN is a value of which nothing is known, and speaks for nothing.

    Percentile interval and its p-value (Efron and Tibshirani, An Introduction to the Bootstrap, 1993, chapters 13 and
    16); one is added to both counts, so that no p-value is below what so many resamples can tell (Davison and Hinkley,
    Bootstrap Methods and their Application, 1997, section 4.2.5).
    """

    least: Floats
    most: Floats

    def interval(self, level: float = LEVEL) -> Ends:
        return percentile_ends(self.least, self.most, level=level)

    def above(self, at: float) -> float:
        return float((1 + np.count_nonzero(~(self.least > at))) / (1 + self.least.size))

    def below(self, at: float) -> float:
        return float((1 + np.count_nonzero(~(self.most < at))) / (1 + self.most.size))


@dataclass(frozen=True)
class ByFormula:
    """A figure whose interval has a formula."""

    ends: Formula

    def interval(self, level: float = LEVEL) -> Ends:
        return self.ends(level)

    def above(self, at: float) -> float:
        return _tail(lambda level: _exceeds(self.ends(level)[0], at))

    def below(self, at: float) -> float:
        return _tail(lambda level: _exceeds(at, self.ends(level)[1]))


def wider(first: Formula, second: Formula) -> Formula:
    """The interval that holds two others; an end is not known if either is not."""

    def ends(level: float) -> Ends:
        (low_1, high_1), (low_2, high_2) = first(level), second(level)
        low = None if low_1 is None or low_2 is None else min(low_1, low_2)
        return low, None if high_1 is None or high_2 is None else max(high_1, high_2)

    return ends


def known_or_wider(first: Formula, second: Formula) -> Formula:
    """As `wider`, but where `first` does not know an end it is that of `second`."""

    def ends(level: float) -> Ends:
        (low, high), (least, most) = first(level), second(level)
        return wider(lambda _: (least if low is None else low, most if high is None else high), second)(level)

    return ends


def transformed(formula: Formula, back: Callable[[float], float | None]) -> Formula:
    """The interval with each end carried to another scale, on which it may have no number."""

    def ends(level: float) -> Ends:
        low, high = formula(level)
        return None if low is None else back(low), None if high is None else back(high)

    return ends


def within(formula: Formula, least: float | None, most: float | None) -> Formula:
    """The interval without what cannot be."""

    def ends(level: float) -> Ends:
        low, high = formula(level)
        low = low if low is None or least is None else max(low, least)
        return low, high if high is None or most is None else min(high, most)

    return ends


def opened(formula: Formula, low: bool, high: bool) -> Formula:
    """The interval without the ends that are not known in truth, because timeouts hide them."""

    def ends(level: float) -> Ends:
        known_low, known_high = formula(level)
        return None if low else known_low, None if high else known_high

    return ends


def of_estimate(estimate: Callable[[float], Estimate]) -> Formula:
    """The ends of what a statistic gives at a level."""

    def ends(level: float) -> Ends:
        figure = estimate(level)
        return figure.low, figure.high

    return ends


def of_shares(
    terms: Iterable[tuple[float, float, float]], *, of_logs: bool = False, value: float | None = None
) -> Formula:
    """The interval of a sum of weight * share, each term given as (weight, share, samples); see `shares.margins`.

    value: the figure that it is around, where that is not the sum itself.
    """
    terms = list(terms)
    middle = sum(weight * share for weight, share, _ in terms) if value is None else value

    def ends(level: float) -> Ends:
        below, above = margins(terms, level, of_logs=of_logs)
        return middle - below, middle + above

    return ends


def over_repetitions(
    old: Sequence[float],
    new: Sequence[float],
    is_bound: tuple[bool, bool] = (False, False),
    *,
    paired: bool = False,
    rounding: tuple[float, float] = (0.0, 0.0),
) -> dict[Scale, Evidence]:
    """Evidence for the difference of two sides and, where all values are above 0, the ratio of geometric means.

    Args:
        old: a value a repetition.
        new: the same; in pairs, in the order of the old ones.
        is_bound: which of them have lower bounds among them: then the interval is open to that side.
        paired: whether values of the same place belong together.
        rounding: by how much each of the old and of the new values may be off in any case (`stats.rounding`).
    """
    # Two repetitions at least, of one side or, in pairs, of both.
    if max(len(old), len(new)) < 2:
        return {}
    difference, ratio = (paired_difference, paired_ratio) if paired else (welch_difference, welch_ratio)
    off = (rounding[1], rounding[0])
    rounded = difference_ends(new, old, off)
    change = opened(of_estimate(lambda level: difference(new, old, level)), *is_bound)
    evidence: dict[Scale, Evidence] = {"difference": ByFormula(wider(change, lambda _: rounded))}
    if min(*old, *new) > 0:
        rounded_ratio = ratio_ends(new, old, off)
        times = opened(of_estimate(lambda level: ratio(new, old, level)), *is_bound)
        evidence["ratio"] = ByFormula(wider(times, lambda _: rounded_ratio))
    return evidence


def geometric_ratio(old: Sequence[float], new: Sequence[float]) -> float | None:
    """Geometric mean of `new` over that of `old`; None where a value is not above 0."""
    if min(*old, *new) <= 0:
        return None
    return math.exp(float(np.log(new).mean() - np.log(old).mean()))


def two_sided(evidence: Evidence, at: float) -> float:
    """The p-value of "the truth is `at`"."""
    return min(1.0, 2 * min(evidence.above(at), evidence.below(at)))


def holm(p_values: Sequence[float], alpha: float = 1 - LEVEL) -> list[bool]:
    """Which claims stand if at most a share `alpha` of families like this may hold a wrong one; dependent ones too.

    Holm, A Simple Sequentially Rejective Multiple Test Procedure, Scandinavian Journal of Statistics 6, 1979.
    """
    stands = [False] * len(p_values)
    for rank, number in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        if p_values[number] > alpha / (len(p_values) - rank):
            break
        stands[number] = True
    return stands


def _exceeds(larger: float | None, smaller: float | None) -> bool:
    return larger is not None and smaller is not None and larger > smaller


def _tail(excludes: Callable[[float], bool]) -> float:
    """The one-sided p-value: half of what the widest interval leaves out that still excludes the value."""
    low, high = 0.0, Z_MOST
    if not excludes(math.erf(1e-9 / math.sqrt(2))):
        return 1.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if excludes(math.erf(middle / math.sqrt(2))) else (low, middle)
    return math.erfc(low / math.sqrt(2)) / 2
