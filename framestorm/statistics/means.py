"""Means over repetitions."""

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from framestorm.report.stats import LEVEL
from framestorm.statistics.checks import Floats, finite, positive
from framestorm.statistics.interval import Interval


def student(values: ArrayLike, level: float = LEVEL) -> Interval:
    """The mean of independent values (one a repetition) with Student's interval, in the values' unit.

    mean +- t(n - 1) * s / sqrt(n) (Student, The Probable Error of a Mean, Biometrika 6, 1908; Le Boudec, Performance
    Evaluation of Computer and Communication Systems, 2010, chapter 2). One value has no ends; equal values have both
    at the mean.

    Raises:
        ValueError: no values, or one is not finite; `level` is not between 0 and 1.
    """
    row = finite(values)
    mean, half = float(row.mean()), _half_width(row, level)
    method = f"Student, {level * 100:g} %, n = {row.size}"
    if half is None:
        return Interval(mean, None, None, 1, method)
    return Interval(mean, mean - half, mean + half, row.size, method)


def geometric(values: ArrayLike, level: float = LEVEL) -> Interval:
    """The geometric mean of ratios, with Student's interval of their logarithms carried back; no unit.

    So averaged, a:b and b:a agree (Fleming and Wallace, How Not to Lie with Statistics, CACM 29(3), 1986).

    Raises:
        ValueError: as `student`, or a value is 0 or less.
    """
    logs = np.log(positive(values, "ratios"))
    mean, half = float(logs.mean()), _half_width(logs, level)
    method = f"geometric mean, Student of logarithms, {level * 100:g} %, n = {logs.size}"
    if half is None:
        return Interval(math.exp(mean), None, None, 1, method)
    return Interval(math.exp(mean), exp(mean - half), exp(mean + half), logs.size, method)


def without_repetition(values: ArrayLike, weights: ArrayLike, design: ArrayLike, level: float = LEVEL) -> Interval:
    """The sum of weights * values, one value a setting, with Student's interval of what `design` leaves unexplained.

    In place of repetitions stands how far the settings differ from the model, which is what repetitions differ by and
    more: the interval is rather too wide than too narrow (Box, Hunter and Hunter, Statistics for Experimenters, 2nd
    edition, 2005, on factorials without replication). No ends where the model leaves no degree of freedom.

    Args:
        values: n values.
        weights: n weights, in the span of the columns of `design`.
        design: (n, k) columns of the model, e.g. one of ones for a mean.
        level: the share of cases in which the interval holds the true sum.

    Raises:
        ValueError: as `student`.
    """
    row, weight, model = finite(values), np.asarray(weights, float), np.asarray(design, float)
    found, _, rank, _ = np.linalg.lstsq(model, row)
    df = row.size - int(rank)
    value = float(weight @ row)
    if df < 1:
        return Interval(value, None, None, row.size, "as many settings as parameters: no interval")
    rest = row - model @ found
    half = t_quantile(level, df) * math.sqrt(float(rest @ rest) / df * float(weight @ weight))
    method = f"Student, {level * 100:g} %, over {row.size} settings run once, {df} degrees of freedom"
    return Interval(value, value - half, value + half, row.size, method)


def relative_half_width(interval: Interval) -> float | None:
    """Half the interval's width as a share of the figure, or None where there is no interval or the figure is 0."""
    if interval.low is None or interval.high is None or interval.value == 0:
        return None
    return (interval.high - interval.low) / 2 / abs(interval.value)


def t_quantile(level: float, df: float) -> float:
    """The t beyond which lies (1 - level) / 2 of Student's distribution."""
    if not 0 < level < 1:
        raise ValueError(f"level {level}: a share between 0 and 1 is wanted, e.g. 0.95")
    return float(special.stdtrit(df, (1 + level) / 2))


def exp(end: float) -> float:
    """e to the power of an interval's end; infinite where no number is as large, as with two values at a high level."""
    try:
        return math.exp(end)
    except OverflowError:
        return math.inf


def _half_width(row: Floats, level: float) -> float | None:
    t = t_quantile(level, max(1, row.size - 1))
    if row.size == 1:
        return None
    return t * float(row.std(ddof=1)) / math.sqrt(row.size)
