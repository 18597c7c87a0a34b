"""Where a figure crosses its limit, by measurements at several loads that vary by chance."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from framestorm.stats.checks import LEVEL
from framestorm.stats.means import t_quantile

# Of the kernel, in logarithms of loads: what is 15 % away counts 0.6 times.
WIDTH = 0.12
LEAST_WEIGHT = 0.05
LEAST_VALUES, LEAST_LOADS = 5, 3


class Crossing(NamedTuple):
    """The load at which the line crosses, and the ends of its 95 % confidence interval.

    slope: of the line: with one percent more load, the figure grows by about so many percent.
    """

    load: float
    low: float
    high: float
    slope: float


def crossing(loads: Sequence[float], margins: Sequence[float], near: float) -> Crossing | None:
    """Return where margins cross 0, by a line through those near a load; None if they are too few, or do not rise.

    A line is fitted to the margins over the logarithm of the load, with weights by a normal kernel (Cleveland and
    Devlin, Locally Weighted Regression, Journal of the American Statistical Association 83, 1988). The interval is by
    the delta method, with Student's quantile of the weights' effective number less what the data decide: the line's two
    parameters, and the load around which the weights are.

    Args:
        loads: above 0, in any order; the same one may be there several times.
        margins: logarithms of figures against their limit: below 0 where it is met.
        near: a load near the crossing.
    """
    x, y = np.log(np.asarray(loads, float) / near), np.asarray(margins, float)
    weights = np.exp(-0.5 * (x / WIDTH) ** 2)
    is_near = weights > LEAST_WEIGHT
    x, y, weights = x[is_near], y[is_near], weights[is_near]
    if x.size < LEAST_VALUES or np.unique(x).size < LEAST_LOADS:
        return None
    model = np.column_stack([np.ones_like(x), x])
    inverse = np.linalg.pinv(model.T @ (weights[:, None] * model))
    level, slope = inverse @ (model.T @ (weights * y))
    if slope <= 0 or abs(level / slope) > 2 * WIDTH:
        return None
    rest = y - model @ np.array([level, slope])
    freedom = max(1.0, float(weights.sum() ** 2 / (weights**2).sum()) - 3)
    variance = float((weights * rest**2).sum() / weights.sum()) * (freedom + 3) / freedom
    covariance = variance * inverse @ (model.T @ ((weights**2)[:, None] * model)) @ inverse
    at = -level / slope
    gradient = np.array([1.0, at]) / slope
    half = t_quantile(LEVEL, freedom) * math.sqrt(float(gradient @ covariance @ gradient))
    return Crossing(near * math.exp(at), near * math.exp(at - half), near * math.exp(at + half), float(slope))
