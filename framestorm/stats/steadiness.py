"""Since when a series is steady: the warm part at its beginning, and whether the rest still drifts."""

import math
from dataclasses import dataclass

import numpy as np

from framestorm.stats.checks import Floats, finite

BINS = 60
# Lags of the long-run variance: 4 (n / 100)^(1/4), rounded up, as Kwiatkowski et al. have it.
LAGS_BY, LAGS_AT = 4, 100
# The statistic's 95 % point without drift (Kwiatkowski et al., table 1).
DRIFTS = 0.463
# Standard errors between a warm part and the rest: the part was chosen because it differs.
DIFFERS = 3.5
# Changes of logarithms that are smaller do not matter.
MATTERS = math.log(1.05)
# A series without noise has no variance to measure a change by.
LEAST_VARIANCE = 1e-12


@dataclass(frozen=True)
class Steadiness:
    """Since which value a series is steady, 0 from its beginning; None if it never is.

    change: the mean of the values before less that of the rest; of one that is never steady, the mean of the last third
    less that of the first.
    """

    since: int | None
    change: float


def steadiness(values: Floats) -> Steadiness:
    """Judge since when a series of logarithms, such as those of mean response times of successive bins, is steady.

    The beginning is cut off where the standard error of the mean of the rest is smallest, at the middle at most (MSER:
    White, An Effective Truncation Heuristic for Bias Reduction in Simulation Output, Simulation 69, 1997). It is called
    warm only if its mean differs. The rest drifts if the sums of its deviations from its mean go further than those of
    a series that stays at a level, also where neighbours are correlated (KPSS: Kwiatkowski, Phillips, Schmidt and Shin,
    Testing the Null Hypothesis of Stationarity against the Alternative of a Unit Root, Journal of Econometrics 54,
    1992). Both have to matter: changes by less than 5 % are none.

    Args:
        values: one a bin, 20 at least; better `BINS`.
    """
    row = finite(values)
    cut = _truncation(row)
    rest = row[cut:]
    variance = _long_run_variance(rest)
    third = rest.size // 3
    change = float(rest[-third:].mean() - rest[:third].mean())
    sums = np.cumsum(rest - rest.mean())
    if abs(change) > MATTERS and float(sums @ sums) / rest.size**2 > DRIFTS * variance:
        return Steadiness(None, change)
    if cut:
        before = float(row[:cut].mean() - rest.mean())
        error = math.sqrt(variance * (1 / cut + 1 / rest.size))
        if abs(before) > max(MATTERS, DIFFERS * error):
            # The smallest error often leaves out more than what differs.
            outside = np.flatnonzero(np.abs(row[:cut] - rest.mean()) > DIFFERS * rest.std())
            since = int(outside[-1]) + 1 if outside.size else cut
            return Steadiness(since, float(row[:since].mean() - row[since:].mean()))
    return Steadiness(0, 0.0)


def _truncation(row: Floats) -> int:
    """Return how many values to leave out at the beginning."""
    # The square of the standard error of the mean of what is left, for each number.
    return int(np.argmin([row[cut:].var() / (row.size - cut) for cut in range(row.size // 2 + 1)]))


def _long_run_variance(row: Floats) -> float:
    """Return the variance of a mean times n, with the covariances of neighbours (Bartlett's weights)."""
    deviations = row - row.mean()
    plain = float(deviations @ deviations) / row.size
    lags = math.ceil(LAGS_BY * (row.size / LAGS_AT) ** 0.25)
    covariances = (
        2 * (1 - lag / (lags + 1)) * float(deviations[lag:] @ deviations[:-lag]) / row.size
        for lag in range(1, lags + 1)
    )
    return float(max(plain + sum(covariances), plain / 2, LEAST_VARIANCE))
