"""A figure and what is known about it; free of numpy, so that criteria are read before anything is set up."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, Protocol

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
