"""A part of a load, and the part of it that asks for most."""

from itertools import pairwise
from typing import NamedTuple

from framestorm.model.series import Curves

# Of the most that is asked for: what is above counts as one level, and is judged if it is so long.
FLAT = 0.9
LEAST_LEVEL_S, LEAST_LEVEL_SHARE = 5.0, 0.25


class Stretch(NamedTuple):
    """From when to when, in epoch ms."""

    start: float
    end: float

    @property
    def length_s(self) -> float:
        return (self.end - self.start) / 1000


def level(asked: Curves, load: Stretch, origin_ms: float) -> Stretch:
    """Return the longest part of the load that asks for nearly its most; all of it if that part is short.

    A level that is short is a burst, which a queue may take.

    Args:
        asked: corners of the line of what is asked for, arrivals per second or users, in seconds since the run's start.
        load: the whole load.
        origin_ms: the run's start.
    """
    x, y = ([value or 0.0 for value in asked.get(name, [])] for name in ("x", "y"))
    least = FLAT * max(y, default=0.0)
    levels: list[Stretch] = []
    for (from_s, low), (to_s, high) in pairwise(zip(x, y, strict=True)):
        if max(low, high) < least or least <= 0 or to_s <= from_s:
            continue
        # Where the line crosses that rate.
        share = (least - low) / (high - low) if high != low else 0.0
        begin = from_s + (to_s - from_s) * share if low < least else from_s
        end = from_s + (to_s - from_s) * share if high < least else to_s
        part = Stretch(max(load.start, origin_ms + 1000 * begin), min(load.end, origin_ms + 1000 * end))
        if levels and part.start - levels[-1].end < 1:
            levels[-1] = Stretch(levels[-1].start, part.end)
        else:
            levels.append(part)
    longest = max(levels, key=lambda level: level.length_s, default=load)
    return longest if longest.length_s >= min(LEAST_LEVEL_S, LEAST_LEVEL_SHARE * load.length_s) else load
