"""Evidence from repetitions: one value each, in pairs where both sides ran in the same block, else each for itself."""

import math
from collections.abc import Callable, Sequence

import numpy as np

from framestorm.comparison.contrast import Scale
from framestorm.comparison.evidence import ByFormula, Ends, Evidence, wider
from framestorm.statistics.interval import Interval
from framestorm.statistics.repetitions import paired_difference, paired_ratio, welch_difference, welch_ratio
from framestorm.statistics.rounding import difference_ends, ratio_ends


def over_repetitions(
    old: Sequence[float],
    new: Sequence[float],
    is_bound: tuple[bool, bool] = (False, False),
    *,
    paired: bool = False,
    hidden: tuple[float, float] = (0.0, 0.0),
) -> dict[Scale, Evidence]:
    """Intervals of the difference and, where all values are above 0, of the ratio of geometric means.

    Args:
        old: a value a repetition.
        new: the same; in pairs, in the order of the old ones.
        is_bound: which of them have lower bounds among them: then the interval is open to that side.
        paired: whether values of the same place belong together.
        hidden: by how much each of the old and of the new values may be off at any rate (`statistics.rounding`).
    """
    # Two repetitions at least, of one side or, in pairs, of both.
    if max(len(old), len(new)) < 2:
        return {}
    difference, ratio = (paired_difference, paired_ratio) if paired else (welch_difference, welch_ratio)
    off = (hidden[1], hidden[0])
    apart = _opened(lambda level: difference(new, old, level), is_bound)
    evidence: dict[Scale, Evidence] = {"difference": ByFormula(wider(apart, _always(difference_ends(new, old, off))))}
    if min(*old, *new) > 0:
        times = _opened(lambda level: ratio(new, old, level), is_bound)
        evidence["ratio"] = ByFormula(wider(times, _always(ratio_ends(new, old, off))))
    return evidence


def welch(old: Sequence[float], new: Sequence[float]) -> Callable[[float], Ends]:
    """The interval of new - old at a level."""
    return _opened(lambda level: welch_difference(new, old, level), (False, False))


def geometric_ratio(old: Sequence[float], new: Sequence[float]) -> float | None:
    """Geometric mean of `new` over that of `old`; None where a value is not above 0."""
    if min(*old, *new) <= 0:
        return None
    return math.exp(float(np.log(new).mean() - np.log(old).mean()))


def _always(ends: Ends) -> Callable[[float], Ends]:
    return lambda level: ends


def _opened(interval: Callable[[float], Interval], is_bound: tuple[bool, bool]) -> Callable[[float], Ends]:
    def ends(level: float) -> Ends:
        found = interval(level)
        return None if is_bound[0] else found.low, None if is_bound[1] else found.high

    return ends
