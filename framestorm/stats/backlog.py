"""Whether requests pile up at a system to which they come by a schedule: pure statistics of counts by bin of time."""

from dataclasses import dataclass

import numpy as np

from framestorm.stats.checks import Floats, finite
from framestorm.stats.means import student, welch

# Two-sided levels, of which one end is asked for: whether something grows, and whether it surely does.
ONE_SIDED, SURELY = 0.9, 0.98
LEAST_GROWTH = 3.0
# A wait that grows by less per second of load is no backlog yet; in a long run, one that grows so little in all.
LEAST_SLOPE = 0.01
ENOUGH_S, ENOUGH_SHARE = 0.5, 0.25
# Of the longer wait that so many more requests in flight mean, were they served in turn.
LEAST_OF_WAIT = 0.25


@dataclass(frozen=True)
class Growth:
    """How many more requests were in flight at the end, and how much longer they took.

    in_flight, at_least: the growth in the last two thirds, and the lower end of its one-sided 95 % interval.
    before_ms, after_ms: mean response times of what was sent in the first and in the second half, if there are any.
    is_backlog: requests pile up.
    """

    in_flight: float
    at_least: float
    before_ms: float | None
    after_ms: float | None
    is_backlog: bool


def growth(started: Floats, ended: Floats, mean_ms: Floats, length_s: float) -> Growth:
    """Judge whether requests pile up in a span of `length_s` seconds that is cut into bins of equal length.

    While a system keeps up, the number of requests in it varies around a mean that stays; else it grows by the
    difference of the two rates, and with it the time that each of them takes (Little, A Proof for the Queuing Formula
    L = lambda W, Operations Research 9, 1961). Both are required, because each alone may have another reason:

    - In flight grows: the sum of the bins' differences of starts and ends in the last two thirds, with Student's
      interval, is above 0. In the first third a system fills, and may still warm up. Had it just the capacity that is
      asked of it, the differences would be independent, and 5 of 100 such runs would be taken for overloaded. If it has
      more, what came in one bin leaves in another: the differences have a negative correlation, the interval is too
      wide, and the more room the system has, the fewer runs are. The jump of a pause makes the differences vary, and is
      no growth.
    - Response times grow, by Welch's interval of the bins' means in the second half against those in the first. Answers
      that all take longer than the load lasts make the number in flight grow too, and wait for nobody. The growth has
      to matter: 1 % of the time in which it came about, or 0.5 s and a quarter of the response time; and a quarter of
      what the growth in flight means if requests are served in turn.

    A system that serves the latest request first is not noticed: its others wait until the load is over.

    Args:
        started: how many requests were sent in each bin; the number of bins is a multiple of 6.
        ended: how many ended in each bin, with or without an error.
        mean_ms: mean response time of those sent in each bin, NaN where none has one.
        length_s: of all bins together.
    """
    n = started.size
    differences = finite(started[n // 3 :]) - finite(ended[n // 3 :])
    grown = float(differences.sum())
    each = student(differences, ONE_SIDED)
    at_least = grown if each.low is None else each.low * differences.size
    before, after = (part[np.isfinite(part)] for part in (mean_ms[: n // 2], mean_ms[n // 2 :]))
    if not before.size or not after.size:
        return Growth(grown, at_least, None, None, is_backlog=False)
    slower = welch(after, before, SURELY)
    before_ms, after_ms = float(before.mean()), float(after.mean())
    # From the middle of one half to that of the other; in flight grows in two thirds.
    apart_s = length_s / 2
    in_turn_ms = 1000 * grown / float(started[n // 3 :].sum() or 1) * apart_s
    least_ms = max(
        min(1000 * LEAST_SLOPE * apart_s, max(1000 * ENOUGH_S, ENOUGH_SHARE * before_ms)), LEAST_OF_WAIT * in_turn_ms
    )
    is_slower = slower.low is not None and slower.low > 0 and slower.value >= least_ms
    is_growing = each.low is not None and at_least > 0 and grown >= LEAST_GROWTH
    return Growth(grown, at_least, before_ms, after_ms, is_backlog=is_growing and is_slower)
