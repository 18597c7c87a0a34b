"""What speaks for a true difference or ratio: its interval at any level, and how improbable a value beyond it is.

Two kinds: one that was resampled, and one that has a formula for its ends. Both may know the truth to one side only,
for a time-out says just that the time was longer.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from framestorm.report.stats import LEVEL, Floats
from framestorm.statistics.bootstrap import percentile_ends

Ends = tuple[float | None, float | None]
# Beyond it a normal tail is below 2e-12: no interval of a few samples says that much.
Z_MOST = 7.0


class Evidence(Protocol):
    """`interval` has None for an end that is not known; `above` and `below` are one-sided p-values.

    above(at): how probable what was seen is, at most, if the truth is not above `at`; small: it is above.
    """

    def interval(self, level: float = LEVEL) -> Ends: ...

    def above(self, at: float) -> float: ...

    def below(self, at: float) -> float: ...


@dataclass(frozen=True)
class Resampled:
    """A figure of many resamples; of each its least and its largest possible value, which are equal without time-outs.

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
    """A figure whose interval has a formula: `ends` gives it for a level between 0 and 1."""

    ends: Callable[[float], Ends]

    def interval(self, level: float = LEVEL) -> Ends:
        return self.ends(level)

    def above(self, at: float) -> float:
        return _tail(lambda level: _exceeds(self.ends(level)[0], at))

    def below(self, at: float) -> float:
        return _tail(lambda level: _exceeds(at, self.ends(level)[1]))


def wider(first: Callable[[float], Ends], second: Callable[[float], Ends]) -> Callable[[float], Ends]:
    """The interval that holds two others; an end is not known if either is not."""

    def ends(level: float) -> Ends:
        (low_1, high_1), (low_2, high_2) = first(level), second(level)
        low = None if low_1 is None or low_2 is None else min(low_1, low_2)
        return low, None if high_1 is None or high_2 is None else max(high_1, high_2)

    return ends


def within(ends: Callable[[float], Ends], least: float, most: float) -> Callable[[float], Ends]:
    """The interval without what cannot be."""

    def cut(level: float) -> Ends:
        low, high = ends(level)
        return None if low is None else max(low, least), None if high is None else min(high, most)

    return cut


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
