"""Times in whole milliseconds, as JMeter takes its own: by how much that may be off, in every interval at least.

Repetitions that are all 3 ms have no spread, and an interval from it would be sure of 3.000 ms. But JMeter cuts off a
sample's start and its end, each to the millisecond before, so that 3 ms is anything from 2 to 4.
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from framestorm.stats.checks import Ends, finite

ROUNDED_MS = 1.0


def rounding_ms(figures_ms: ArrayLike) -> float:
    """By how much each figure may be off: a millisecond where all are whole numbers of them, else 0.

    Half-way between two counts as whole: so are medians.

    Raises:
        ValueError: no figures, or one is not finite.
    """
    halves = 2 * finite(figures_ms, "figures")
    return ROUNDED_MS if np.array_equal(halves, np.round(halves)) else 0.0


def with_rounding(ends: Ends, value_ms: float, figures_ms: ArrayLike) -> Ends:
    """The interval of a mean of figures, widened to what rounding leaves open around the mean.

    Raises:
        ValueError: as `rounding_ms`.
    """
    off, (low, high) = rounding_ms(figures_ms), ends
    return None if low is None else min(low, value_ms - off), None if high is None else max(high, value_ms + off)


def difference_ends(a_ms: ArrayLike, b_ms: ArrayLike, off: tuple[float, float]) -> Ends:
    """mean(a) - mean(b) if every figure of a and of b is off by so much, to the one side and to the other.

    Raises:
        ValueError: no figures, or one is not finite.
    """
    value = float(np.mean(finite(a_ms)) - np.mean(finite(b_ms)))
    return value - sum(off), value + sum(off)


def ratio_ends(a_ms: ArrayLike, b_ms: ArrayLike, off: tuple[float, float]) -> Ends:
    """The ratio of geometric means, a / b, if every figure is off by so much, to the one side and to the other.

    None for an end that a figure of no more than that leaves open.

    Raises:
        ValueError: as `difference_ends`.
    """
    off_a, off_b = off
    ends = _log_mean(a_ms, -off_a) - _log_mean(b_ms, off_b), _log_mean(a_ms, off_a) - _log_mean(b_ms, -off_b)
    low, high = (math.exp(end) if math.isfinite(end) else None for end in ends)
    return low, high


def _log_mean(figures_ms: ArrayLike, off: float) -> float:
    row = finite(figures_ms) + off
    return float(np.log(row).mean()) if row.min() > 0 else -math.inf
