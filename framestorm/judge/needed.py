"""How much more data would decide a threshold that could not be decided, if the figures stay as they are."""

import math

from framestorm.model.comparison import SideFigure
from framestorm.model.units import count, plural, significant
from framestorm.stats.checks import LEVEL
from framestorm.stats.estimate import Ends
from framestorm.stats.evidence import Scale
from framestorm.stats.means import t_quantile

# A figure so close to its threshold has to be decided by another threshold, or not at all.
MOST = 100
MOST_REPETITIONS = 1000
IF_SO = "if the figure stays as it is"
TOO_COARSE = "times in whole milliseconds are too coarse to decide it, however many there are"


def needed(
    scale: Scale,
    margin: float,
    value: float,
    ends: Ends,
    sides: tuple[SideFigure, SideFigure],
    rounding_ms: tuple[float, float] = (0.0, 0.0),
) -> str | None:
    """Return what would decide a threshold at `margin`, in words; None if that cannot be told.

    An interval is narrower by the square root of the number of samples, or of repetitions (and by Student's t). It has
    to leave the margin outside: on the side on which the figure lies. No number of samples makes the rounding error of
    times smaller.
    """
    end = ends[1] if margin > value else ends[0]
    if end is None or (scale == "ratio" and min(end, value, margin) <= 0):
        return None
    measure = math.log if scale == "ratio" else float
    half, distance = abs(measure(end) - measure(value)), abs(measure(margin) - measure(value))
    if distance * distance * MOST < half * half:
        return f"the figure lies at the threshold: more than {MOST} times as much data would be needed"
    rounding = _rounding(scale, sides, rounding_ms, is_above=margin > value)
    if distance <= rounding:
        return TOO_COARSE
    if max(side.repetitions for side in sides) == 1:
        half, distance = half - rounding, distance - rounding
    if distance >= half:
        return None  # its end is before the margin: only the correction for several checks stands between
    share = distance / half
    least, most = sorted(side.repetitions for side in sides)
    if most == 1:
        wanted = " and ".join(significant(side.n / (share * share), 2) for side in sides)
        here = " and ".join(count(side.n) for side in sides)
        return f"{IF_SO}, about {wanted} samples in place of {here} would decide it"
    if least < 2:
        return None
    width = _width(least) * share
    repetitions = next((n for n in range(least + 1, MOST_REPETITIONS) if _width(n) <= width), None)
    if repetitions is None:
        return None
    return f"{IF_SO}, about {plural(repetitions, 'repetition')} a side in place of {least} would decide it"


def _rounding(
    scale: Scale, sides: tuple[SideFigure, SideFigure], rounding_ms: tuple[float, float], *, is_above: bool
) -> float:
    """Return how far rounding alone may move the difference of two sides up or down, or the log of their ratio."""
    if not any(rounding_ms) or scale == "difference":
        return sum(rounding_ms)
    (old, new), (off_old, off_new) = (side.value for side in sides), rounding_ms
    larger, smaller, up, down = (new, old, off_new, off_old) if is_above else (old, new, off_old, off_new)
    return math.inf if smaller <= down else math.log1p(up / larger) - math.log1p(-down / smaller)


def _width(repetitions: int) -> float:
    """Return the half width of an interval over so many repetitions a side, in standard deviations."""
    return t_quantile(LEVEL, 2 * repetitions - 2) / math.sqrt(repetitions)
