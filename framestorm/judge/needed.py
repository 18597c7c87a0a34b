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


def needed(scale: Scale, margin: float, value: float, ends: Ends, sides: tuple[SideFigure, SideFigure]) -> str | None:
    """Return what would decide a threshold at `margin`, in words; None if that cannot be told.

    An interval is narrower by the square root of the number of samples, or of repetitions (and by Student's t). It has
    to leave the margin outside: on the side on which the figure lies.
    """
    share = _share_of_width(scale, margin, value, ends)
    if share is None:
        return None
    if share * share * MOST < 1:
        return f"the figure lies at the threshold: more than {MOST} times as much data would be needed"
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


def _share_of_width(scale: Scale, margin: float, value: float, ends: Ends) -> float | None:
    """To what share of its width the half of the interval with the margin has to shrink; None if its end is open."""
    end = ends[1] if margin > value else ends[0]
    if end is None or (scale == "ratio" and min(end, value, margin) <= 0):
        return None
    measure = math.log if scale == "ratio" else float
    half, distance = abs(measure(end) - measure(value)), abs(measure(margin) - measure(value))
    # If it ends before the margin, only the correction for several checks stands between.
    return distance / half if distance < half else None


def _width(repetitions: int) -> float:
    """Return the half width of an interval over so many repetitions a side, in standard deviations."""
    return t_quantile(LEVEL, 2 * repetitions - 2) / math.sqrt(repetitions)
