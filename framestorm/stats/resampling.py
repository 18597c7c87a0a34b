"""Bootstrap of a mean from successive, and therefore not independent, samples: whole blocks of them are drawn."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from framestorm.stats.checks import Floats, finite

LEAST_UNITS = 5  # blocks of a sample, or nothing is said of its spread
MOST_UNITS = 2_000  # blocks a resample: more of them cost time and change the interval by less than 2 %
_AT_ONCE = 1 << 20  # drawn blocks held in memory together: 8 MB of indices, 8 MB of means


@dataclass(frozen=True)
class BlockMeans:
    """Means of resamples of one sample.

    means: one a resample, in the sample's unit; mean: the sample's own.
    scale: by what to multiply a deviation from `mean` for it to be as wide as the mean's true error; NaN where fewer
        than LEAST_UNITS blocks do not tell.
    """

    means: Floats
    mean: float
    scale: float


def choose_block(samples: ArrayLike) -> int:
    """How many successive samples make a block, so that blocks are as good as independent.

    `block_length`, but at least the cube root of the number of samples, for dependence is not seen in a short run (of
    that order is the best length: Hall, Horowitz and Jing, On Blocking Rules for the Bootstrap with Dependent Data,
    Biometrika 82, 1995), and at most so many that LEAST_UNITS pairs of blocks are left. Raises what `block_length`
    raises.
    """
    row = finite(samples, "samples")
    length = round(max(math.cbrt(row.size), block_length(row)))
    return max(1, min(length, row.size // (2 * LEAST_UNITS)))


def block_length(samples: ArrayLike) -> float:
    """The best length of a block, in samples; below 1 where they do not depend on each other.

    The length with the least mean squared error of the variance, from the autocorrelation up to the lag beyond which
    none is left (Politis and White, Automatic Block-Length Selection for the Dependent Bootstrap, Econometric Reviews
    23(1), 2004, for the circular bootstrap, as corrected by Patton, Politis and White, 28(4), 2009).

    Args:
        samples: in the order they were taken.

    Raises:
        ValueError: no samples, or one is not finite.
    """
    row = finite(samples, "samples")
    n = row.size
    centred = row - row.mean()
    variance = float(centred @ centred) / n
    # Less than rounding errors of equal samples: no spread, no dependence.
    if n < 8 or variance <= 1e-24 * float(row @ row) / n:
        return 0.0
    lag = _last_lag(centred, variance)
    lags = np.arange(1, min(2 * lag, n - 1) + 1)
    taper = np.minimum(1.0, 2 * (1 - lags / max(1, 2 * lag)))  # flat-top lag window
    covariances = np.array([float(centred[k:] @ centred[:-k]) / n for k in lags])
    spectrum = variance + 2 * float(taper @ covariances)
    curvature = 2 * float(taper @ (lags * covariances))
    if spectrum <= 0:
        return 0.0
    length = (1.5 * curvature**2 / spectrum**2 * n) ** (1 / 3)
    return float(min(length, 3 * math.sqrt(n), n / 3))


def _last_lag(centred: Floats, variance: float) -> int:
    """The lag after which autocorrelation stays within what chance gives (Politis and White, section 3.2)."""
    n = centred.size
    run = max(5, math.ceil(math.sqrt(math.log10(n))))
    most = math.ceil(math.sqrt(n)) + run
    chance = 2 * math.sqrt(math.log10(n) / n)
    within = 0
    last_beyond = 0
    for k in range(1, min(most, n - 1) + 1):
        correlation = float(centred[k:] @ centred[:-k]) / n / variance
        if abs(correlation) < chance:
            within += 1
            if within == run:
                return k - run
        else:
            within, last_beyond = 0, k
    return last_beyond


def resample_blocks(row: Floats, block: int, resamples: int, random: np.random.Generator) -> BlockMeans:
    """Draw blocks of successive samples, with replacement and round the end, and take each resample's mean.

    The circular block bootstrap (Kuensch, The Jackknife and the Bootstrap for General Stationary Observations, Annals
    of Statistics 17(3), 1989; Politis and Romano, A Circular Block-Resampling Procedure for Stationary Data, 1992);
    blocks of 1 are the usual bootstrap of independent samples. `scale` undoes what makes it too narrow: that m blocks
    show (m - 1) / m of the variance (Hesterberg, What Teachers Should Know About the Bootstrap, The American
    Statistician 69(4), 2015); that their spread is itself estimated, for which Student's t has (m - 1) / (m - 3) times
    the variance of the normal distribution; and dependence that goes beyond a block (`_beyond`).

    A sample of more than MOST_UNITS blocks is cut into longer ones, which are right whenever shorter ones are.

    Raises:
        ValueError: the block is not from 1 to as many samples as there are.
    """
    n = row.size
    if not 1 <= block <= n:
        raise ValueError(f"a block of {block} samples: there are {n}, so from 1 to {n} are wanted")
    independent = block == 1
    block = max(block, math.ceil(n / MOST_UNITS))
    draws = math.ceil(n / block)
    block_means = _block_means(row, block)
    means = np.empty(resamples)
    rows_at_once = max(1, _AT_ONCE // draws)
    for first in range(0, resamples, rows_at_once):
        rows = min(rows_at_once, resamples - first)
        means[first : first + rows] = block_means[random.integers(0, n, (rows, draws))].mean(axis=1)
    mean, beyond = float(row.mean()), 1.0 if independent else _beyond(row, block)
    # What goes beyond a block is seen by blocks of twice its length, of which there are half as many.
    units = n / block if independent else n / (2 * block)
    if units < LEAST_UNITS:
        return BlockMeans(means, mean, math.nan)
    variance = draws * block / (n - block) * (units - 1) / (units - 3)
    return BlockMeans(means, mean, math.sqrt(variance) * beyond)


def _block_means(row: Floats, block: int) -> Floats:
    if block == 1:
        return row
    sums = np.cumsum(np.concatenate([[0.0], row - row.mean(), (row - row.mean())[: block - 1]]))
    means: Floats = (sums[block:] - sums[:-block]) / block + row.mean()
    return means


def _beyond(row: Floats, block: int) -> float:
    """By what factor the standard error is too small as blocks cut dependence at their ends; at least 1.

    2 V(2 block) - V(block), V the variance of the mean by blocks of that length, has no such error of first order
    (Politis and Romano, Bias-Corrected Nonparametric Spectral Estimation, Journal of Time Series Analysis 16(1), 1995).
    """
    if 4 * block > row.size:
        return 1.0
    short, twice = (
        length * float(_block_means(row, length).var()) * row.size / (row.size - length)
        for length in (block, 2 * block)
    )
    return math.sqrt(max(1.0, 2 * twice / short - 1)) if short > 0 else 1.0
