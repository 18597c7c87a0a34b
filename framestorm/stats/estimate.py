"""A figure and what is known about it; free of numpy, so that criteria are read before anything is set up."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal, Protocol

# Ends of an interval; None: the data cannot give it.
Ends = tuple[float | None, float | None]
EstimateBound = Literal["exact", "lower", "unsure"]


@dataclass(frozen=True)
class Estimate:
    """A figure with its interval, all in the unit of what it was made of; times are in ms.

    low, high: ends of the interval, each None where the data cannot give it (one repetition has no spread).
    n: how many values (repetitions, samples) it rests on.
    method: how the interval was made, in words for a page's footnote.
    bound: "lower" if the true figure is larger, because a timeout cut a value off; "unsure" if it may lie on either
        side for that.
    few: so few samples that the percentile is just the largest of them.
    """

    value: float
    low: float | None = None
    high: float | None = None
    n: int = 0
    method: str = ""
    bound: EstimateBound = "exact"
    few: bool = False

    @property
    def ends(self) -> Ends:
        """The ends of the interval."""
        return self.low, self.high

    def or_wider(self, ends: Ends, method: str | None = None) -> "Estimate":
        """Widen the interval to the smallest one that includes it and `ends`; `method`: how it was then made."""
        low, high = hull(self.ends, ends)
        return replace(self, low=low, high=high, method=self.method if method is None else method)

    def within(self, limits: Ends) -> "Estimate":
        """Cut off the impossible values of the interval."""
        low, high = clipped(self.ends, *limits)
        return replace(self, low=low, high=high)

    def opened(self, low: bool, high: bool) -> "Estimate":
        """Open the low or high end of the interval, because the true end is not known."""
        return replace(self, low=None if low else self.low, high=None if high else self.high)


def hull(first: Ends, second: Ends) -> Ends:
    """Return the interval that holds two others; an end is not known if either is not."""
    (low_1, high_1), (low_2, high_2) = first, second
    low = None if low_1 is None or low_2 is None else min(low_1, low_2)
    return low, None if high_1 is None or high_2 is None else max(high_1, high_2)


def clipped(ends: Ends, least: float | None, most: float | None) -> Ends:
    """Return the interval without what cannot be."""
    low, high = ends
    low = low if low is None or least is None else max(low, least)
    return low, high if high is None or most is None else min(high, most)


def nearest_rank(n: int, percent: str) -> int:
    """The rank, from 1, of a percentile among n sorted values: the smallest with at least that percent at or below it.

    `percent` is a decimal number as text, e.g. "99.9".
    """
    return max(1, math.ceil(Fraction(percent) / 100 * n))


class AnyTimes(Protocol):
    """Times of which figures can be asked; None where there are no samples."""

    def percentile(self, percent: str) -> Estimate | None: ...

    def mean(self) -> Estimate | None: ...

    def extreme(self, *, largest: bool) -> Estimate | None: ...
