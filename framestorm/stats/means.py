"""Means over repetitions of one setting, when they need no more of these, and the difference of two such means.

Student's and Welch's intervals are worked out here, not by scipy.stats: that takes half a second to import, and warns
of rows without spread, which are common here. Of ratios, take the logarithms: so averaged, a:b and b:a agree (Fleming
and Wallace, How Not to Lie with Statistics, CACM 29(3), 1986). Values are finite, and there is one at least.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from framestorm.stats.checks import LEVEL, Floats, finite
from framestorm.stats.estimate import Estimate

# One who looks after each repetition ends when the interval happens to be narrow: it then holds the true mean in as few
# as 88 of 100 studies. A fixed number of further repetitions mends that (Simons, On the Cost of not Knowing the
# Variance when Making a Fixed-Width Confidence Interval for the Mean, Annals of Mathematical Statistics 39, 1968); with
# three of them it is 93 or more. benchmarks/statistics_coverage.py simulates it.
FURTHER = 3


def student(values: ArrayLike, level: float = LEVEL) -> Estimate:
    """Return the mean of independent values (one a repetition) with Student's interval, in the values' unit.

    mean +- t(n - 1) * s / sqrt(n) (Student, The Probable Error of a Mean, Biometrika 6, 1908; Le Boudec, Performance
    Evaluation of Computer and Communication Systems, 2010, chapter 2). One value has no ends; equal values have both
    at the mean.
    """
    row = finite(values)
    mean, method = float(row.mean()), f"Student, {level * 100:g} %, n = {row.size}"
    if row.size == 1:
        return Estimate(mean, None, None, 1, method)
    half = t_quantile(level, row.size - 1) * float(row.std(ddof=1)) / math.sqrt(row.size)
    return Estimate(mean, mean - half, mean + half, row.size, method)


def without_repetition(values: ArrayLike, weights: ArrayLike, design: ArrayLike) -> Estimate:
    """The sum of weights * values, one value a setting, with Student's interval of what `design` leaves unexplained.

    In place of repetitions stands how far the settings differ from the model, which is what repetitions differ by and
    more: the interval is rather too wide than too narrow (Box, Hunter and Hunter, Statistics for Experimenters, 2nd
    edition, 2005, on factorials without replication). No ends where the model leaves no degree of freedom.

    Args:
        values: n values.
        weights: n weights, in the span of the columns of `design`.
        design: (n, k) columns of the model, e.g. one of ones for a mean.
    """
    row, weight, model = finite(values), np.asarray(weights, float), np.asarray(design, float)
    parameters, _, rank, _ = np.linalg.lstsq(model, row)
    df = row.size - int(rank)
    value = float(weight @ row)
    if df < 1:
        return Estimate(value, None, None, row.size, "as many settings as parameters: no interval")
    rest = row - model @ parameters
    half = t_quantile(LEVEL, df) * math.sqrt(float(rest @ rest) / df * float(weight @ weight))
    method = f"Student, {LEVEL * 100:g} %, over {row.size} settings run once, {df} degrees of freedom"
    return Estimate(value, value - half, value + half, row.size, method)


def welch(values_a: ArrayLike, values_b: ArrayLike, level: float = LEVEL) -> Estimate:
    """mean(a) - mean(b) of repetitions that are not pairs, in the values' unit; the two may spread differently.

    Welch's interval (The Generalization of Student's Problem when Several Different Population Variances are Involved,
    Biometrika 34, 1947), degrees of freedom by Satterthwaite. If one side has a single value, the other's spread
    stands for both (Student's interval with equal variances). Without any spread known there are no ends.
    """
    row_a, row_b = finite(values_a), finite(values_b)
    n_a, n_b = row_a.size, row_b.size
    value = float(row_a.mean() - row_b.mean())
    name = "Student with equal variances" if 1 in (n_a, n_b) else "Welch"
    method = f"{name}, {level * 100:g} %, n = {n_a} and {n_b}"
    error, freedom = _standard_error(row_a, row_b)
    if not freedom:
        return Estimate(value, None, None, n_a + n_b, method)
    half = t_quantile(level, freedom) * error
    return Estimate(value, value - half, value + half, n_a + n_b, method)


def _standard_error(row_a: Floats, row_b: Floats) -> tuple[float, float]:
    """Standard error of mean(a) - mean(b) and its degrees of freedom; (0, 0) if each has only one value."""
    n_a, n_b = row_a.size, row_b.size
    if n_a == 1 and n_b == 1:
        return 0.0, 0.0
    if 1 in (n_a, n_b):
        spread = float((row_b if n_a == 1 else row_a).std(ddof=1))
        return spread * math.sqrt(1 / n_a + 1 / n_b), float(n_a + n_b - 2)
    of_a, of_b = float(row_a.var(ddof=1)) / n_a, float(row_b.var(ddof=1)) / n_b
    if of_a + of_b == 0:
        return 0.0, float(n_a + n_b - 2)
    freedom = (of_a + of_b) ** 2 / (of_a**2 / (n_a - 1) + of_b**2 / (n_b - 1))
    return math.sqrt(of_a + of_b), freedom


def relative_half_width(interval: Estimate) -> float | None:
    """Half the interval's width as a share of the figure, or None where there is no interval or the figure is 0."""
    if interval.low is None or interval.high is None or interval.value == 0:
        return None
    return (interval.high - interval.low) / 2 / abs(interval.value)


def is_enough(values: Sequence[float], least: int, within: float) -> bool:
    """Return whether a mean's interval was narrow enough `FURTHER` repetitions ago, or before that.

    Args:
        values: one a repetition, in their order.
        least: the number of repetitions after which the first look is taken, 2 at least.
        within: half the interval's width may be this share of the mean. A mean of 0 has no such share: any will do.
    """
    for n in range(least, len(values) - FURTHER + 1):
        width = relative_half_width(student(values[:n]))
        if width is None or width <= within:
            return True
    return False


def t_quantile(level: float, df: float) -> float:
    """Return the t beyond which lies (1 - level) / 2 of Student's distribution."""
    return float(special.stdtrit(df, (1 + level) / 2))
