"""Times of which some are only known to be longer than what was waited (right-censored by a time-out)."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from framestorm.report.stats import LEVEL
from framestorm.statistics.checks import Floats, finite
from framestorm.statistics.interval import Interval
from framestorm.statistics.means import t_quantile


@dataclass(frozen=True)
class Survival:
    """The share of times that are longer than t, as a step function; times in the unit they came in.

    times: where it steps down, ascending; survival: the share longer than each; at_risk: how many times are known to
    be at least as long, events: how many end there.
    n: all times; last: the longest, in full or cut off.
    """

    times: Floats
    survival: Floats
    at_risk: NDArray[np.int64]
    events: NDArray[np.int64]
    n: int
    last: float


def kaplan_meier(times: ArrayLike, censored: ArrayLike) -> Survival:
    """The distribution of times of which some were cut off.

    Kaplan and Meier, Nonparametric Estimation from Incomplete Observations, JASA 53, 1958. A
    time cut off at the moment another ended is taken to be the longer one.

    Args:
        times: in full, or what was waited; not negative.
        censored: for each whether it was cut off.

    Raises:
        ValueError: no times, one not finite or negative, or not as many marks as times.
    """
    row, cut = _checked(times, censored)
    ends = np.sort(row[~cut])
    steps, events = np.unique(ends, return_counts=True)
    at_risk = row.size - np.searchsorted(np.sort(row), steps, side="left")
    survival = np.asarray(np.cumprod(1 - events / at_risk), dtype=np.float64)
    # The product of many shares is off 0 by rounding when all have ended.
    survival[at_risk == events] = 0.0
    return Survival(steps, survival, at_risk, events, row.size, float(row.max()))


def restricted_mean(times: ArrayLike, censored: ArrayLike, horizon: float, level: float = LEVEL) -> Interval:
    """The mean of min(time, horizon), in the times' unit: all that can be said of a mean when times were cut off.

    The area under the survival curve up to `horizon`, with Greenwood's variance (Kaplan and Meier, 1958, section 6;
    Klein and Moeschberger, Survival Analysis, 2nd edition, 2003, formulas 4.5.1 and 4.5.2), times n / (n - 1), and
    Student's t: without cut-off times it is `student` of min(time, horizon). The horizon is the time-out, as a rule.

    Args:
        times: in full, or what was waited; not negative.
        censored: for each whether it was cut off.
        horizon: up to where times count, above 0.
        level: share of intervals that hold the true mean. Where no time ended before the horizon, the upper end is the
            horizon and nothing is known of the lower one.

    Raises:
        ValueError: as `kaplan_meier`; `horizon` is not above 0, or longer than any time while some were cut off: then
            nothing is known of what lies between.
    """
    row, cut = _checked(times, censored)
    if not (math.isfinite(horizon) and horizon > 0):
        raise ValueError(f"horizon {horizon}: a finite time above 0 is wanted")
    curve = kaplan_meier(row, cut)
    if horizon > curve.last and (not curve.times.size or curve.survival[-1] > 0):
        raise ValueError(f"horizon {horizon:g}: the longest time is {curve.last:g} and cut off; at most that is wanted")
    t = t_quantile(level, max(1, curve.n - 1))
    method = f"mean up to {horizon:g}, {int(cut.sum())} of {curve.n} cut off, Greenwood and Student, {level * 100:g} %"
    before = curve.times < horizon
    steps = np.concatenate([[0.0], curve.times[before], [horizon]])
    areas = np.concatenate([[1.0], curve.survival[before]]) * np.diff(steps)
    mean = float(areas.sum())
    if curve.n == 1:
        return Interval(mean, None, None, 1, method)
    if not before.any():
        return Interval(mean, None, horizon, curve.n, method)
    beyond = np.cumsum(areas[::-1])[::-1][1:]  # the area after each step
    at_risk, events = curve.at_risk[before], curve.events[before]
    counted = at_risk > events  # after the last of all there is no area left
    terms = beyond[counted] ** 2 * events[counted] / (at_risk[counted] * (at_risk - events)[counted])
    half = t * math.sqrt(float(terms.sum()) * curve.n / (curve.n - 1))
    return Interval(mean, max(0.0, mean - half), min(horizon, mean + half), curve.n, method)


def _checked(times: ArrayLike, censored: ArrayLike) -> tuple[Floats, NDArray[np.bool_]]:
    row = finite(times, "times")
    if row.min() < 0:
        raise ValueError(f"times: {row.min()} is among them; none can be negative")
    cut = np.atleast_1d(np.asarray(censored, dtype=np.bool_))
    if cut.shape != row.shape:
        raise ValueError(f"{row.size} times but {cut.size} marks of being cut off: as many of each are wanted")
    return row, cut
