"""Times in whole milliseconds, as JMeter takes its own: what rounding hides of figures that repeat to the digit.

Repetitions that are all 3 ms have no spread, and an interval from it would be sure of 3.000 ms.
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from framestorm.statistics.checks import finite

HALF_MS = 0.5
Ends = tuple[float | None, float | None]


def hidden_ms(figures_ms: ArrayLike) -> float:
    """By how much each figure may be off: half a millisecond where all are whole numbers of them, else 0.

    Half-way between two counts as whole: so are medians.

    Raises:
        ValueError: no figures, or one is not finite.
    """
    halves = 2 * finite(figures_ms, "figures")
    return HALF_MS if np.array_equal(halves, np.round(halves)) else 0.0


def hidden_too(ends: Ends, value_ms: float, figures_ms: ArrayLike) -> Ends:
    """The interval of a mean of figures, or where that is wider what rounding hides around the mean.

    Raises:
        ValueError: as `hidden_ms`.
    """
    hidden, (low, high) = hidden_ms(figures_ms), ends
    return None if low is None else min(low, value_ms - hidden), None if high is None else max(high, value_ms + hidden)


def difference_ends(a_ms: ArrayLike, b_ms: ArrayLike) -> Ends:
    """mean(a) - mean(b) with every figure off by `hidden_ms`, to the one side and to the other.

    Raises:
        ValueError: as `hidden_ms`.
    """
    value = float(np.mean(finite(a_ms)) - np.mean(finite(b_ms)))
    off = hidden_ms(a_ms) + hidden_ms(b_ms)
    return value - off, value + off


def ratio_ends(a_ms: ArrayLike, b_ms: ArrayLike) -> Ends:
    """The ratio of geometric means, a / b, with every figure off by `hidden_ms`, to the one side and to the other.

    None for an end that half a millisecond or less leaves open.

    Raises:
        ValueError: as `hidden_ms`.
    """
    ends = _log_mean(a_ms, -1) - _log_mean(b_ms, 1), _log_mean(a_ms, 1) - _log_mean(b_ms, -1)
    low, high = (math.exp(end) if math.isfinite(end) else None for end in ends)
    return low, high


def _log_mean(figures_ms: ArrayLike, sign: int) -> float:
    off = finite(figures_ms) + sign * hidden_ms(figures_ms)
    return float(np.log(off).mean()) if off.min() > 0 else -math.inf
