"""Two settings compared by one figure a repetition: in pairs of the same repetition, or each setting by itself."""

import math

import numpy as np
from numpy.typing import ArrayLike

from framestorm.report.stats import LEVEL
from framestorm.statistics.checks import Floats, finite, pairs, positive
from framestorm.statistics.interval import Interval
from framestorm.statistics.means import exp, geometric, student, t_quantile


def paired_difference(values_a: ArrayLike, values_b: ArrayLike, level: float = LEVEL) -> Interval:
    """The mean of a - b over repetitions, Student's interval of the differences, in the values' unit.

    Args:
        values_a: one value a repetition.
        values_b: the same, in the same order of repetitions.
        level: share of intervals that hold the true difference.

    Raises:
        ValueError: none, not as many of a as of b, or one is not finite.
    """
    row_a, row_b = pairs(values_a, values_b, "values of a", "values of b")
    return student(row_a - row_b, level)


def paired_ratio(values_a: ArrayLike, values_b: ArrayLike, level: float = LEVEL) -> Interval:
    """The geometric mean of a / b over repetitions, Student's interval of the log ratios; no unit.

    What a repetition slows down or speeds up, it does to both, and it cancels (Jain, The Art of Computer Systems
    Performance Analysis, 1991, section 13.4.1; ratios as in `geometric`).

    Raises:
        ValueError: as `paired_difference`, or a value is 0 or less.
    """
    row_a, row_b = pairs(values_a, values_b, "values of a", "values of b")
    return geometric(positive(row_a, "values of a") / positive(row_b, "values of b"), level)


def welch_difference(values_a: ArrayLike, values_b: ArrayLike, level: float = LEVEL) -> Interval:
    """mean(a) - mean(b) of repetitions that are no pairs, in the values' unit; the two may spread differently.

    Welch's interval (The Generalization of Student's Problem when Several Different Population Variances are Involved,
    Biometrika 34, 1947), degrees of freedom by Satterthwaite. If one side has a single value, the other's spread
    stands for both (Student's interval with equal variances). Without any spread known there are no ends.

    Raises:
        ValueError: none, or one is not finite.
    """
    row_a, row_b = finite(values_a, "values of a"), finite(values_b, "values of b")
    value = float(row_a.mean() - row_b.mean())
    error, freedom = standard_error(row_a, row_b)
    name = "Student with equal variances" if 1 in (row_a.size, row_b.size) else "Welch"
    method = f"{name}, {level * 100:g} %, n = {row_a.size} and {row_b.size}"
    t = t_quantile(level, max(1.0, freedom))
    if not freedom:
        return Interval(value, None, None, row_a.size + row_b.size, method)
    return Interval(value, value - t * error, value + t * error, row_a.size + row_b.size, method)


def welch_ratio(values_a: ArrayLike, values_b: ArrayLike, level: float = LEVEL) -> Interval:
    """The ratio of geometric means, a / b, of repetitions that are no pairs; no unit.

    Welch's interval of the logarithms, carried back (ratios as in `geometric`).

    Raises:
        ValueError: none, one is not finite, or one is 0 or less.
    """
    logs = welch_difference(np.log(positive(values_a, "values of a")), np.log(positive(values_b, "values of b")), level)
    low, high = (None if end is None else exp(end) for end in (logs.low, logs.high))
    return Interval(math.exp(logs.value), low, high, logs.n, f"ratio of geometric means, {logs.method}, of logarithms")


def standard_error(row_a: Floats, row_b: Floats) -> tuple[float, float]:
    """Standard error of mean(a) - mean(b) and its degrees of freedom; (0, 0) where each has one value."""
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
