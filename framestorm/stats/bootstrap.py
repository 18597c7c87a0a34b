"""Evidence for a mean or percentile of one run's samples, by resampling them.

Successive samples of a run depend on each other, so whole blocks of them are drawn.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from framestorm.stats.checks import LEVEL, Floats, finite
from framestorm.stats.estimate import Ends, Estimate, nearest_rank
from framestorm.stats.evidence import Evidence, Scale

RESAMPLES = 10_000
LEAST_UNITS = 5  # blocks of a sample; with fewer its spread is not estimated
MOST_UNITS = 2_000  # blocks per resample: more cost time and change the interval by less than 2 %
_AT_ONCE = 1 << 20  # drawn blocks held in memory together: 8 MB of indices, 8 MB of means
Seed = int | Sequence[int] | np.random.Generator


@dataclass(frozen=True)
class Resamples(Evidence):
    """Evidence by resampling for a statistic of one sample, or for the change between two; in the sample's unit.

    Percentile interval and its p-value (Efron and Tibshirani, An Introduction to the Bootstrap, 1993, chapters 13 and
    16); one is added to both counts, so that no p-value is below what this number of resamples can show (Davison and
    Hinkley, Bootstrap Methods and their Application, 1997, section 4.2.5).

    value: the statistic itself.
    least: the smallest possible value of each resample, as far from `value` as the true statistic may be; -inf or inf
        if that is beyond the sample, NaN (no evidence) if there are too few samples. Sums, differences and ratios of
        resamples of independent samples are resamples of the sum, difference or ratio.
    most: the largest possible value of each resample: `least`, or inf if a time that was cut off hides it.
    block: successive samples that were drawn together; n: samples.
    """

    value: float
    least: Floats
    most: Floats
    block: int = 1
    n: int = 0

    def interval(self, level: float = LEVEL) -> Ends:
        """The ends, each of which excludes (1 - level) / 2 of the resamples; unknown resamples widen both ends."""
        tail = (1 - level) / 2
        # Order statistics: interpolation next to an infinite value would give NaN.
        low = float(np.quantile(np.where(np.isnan(self.least), -np.inf, self.least), tail, method="lower"))
        high = float(np.quantile(np.where(np.isnan(self.most), np.inf, self.most), 1 - tail, method="higher"))
        return low if math.isfinite(low) else None, high if math.isfinite(high) else None

    def above(self, at: float) -> float:
        return float((1 + np.count_nonzero(~(self.least > at))) / (1 + self.least.size))

    def below(self, at: float) -> float:
        return float((1 + np.count_nonzero(~(self.most < at))) / (1 + self.most.size))

    def estimate(self) -> Estimate:
        """Return the statistic with its interval, which does not include between-run variation."""
        method = f"block bootstrap within one run, 95 %, {self.least.size} resamples, blocks of {self.block}"
        return Estimate(self.value, *self.interval(), self.n, method)

    def change_from(self, old: "Resamples", scale: Scale) -> "Resamples":
        """Return the difference from an independent sample, or (of times above 0) the ratio to it."""
        # Both are unknown: so is their difference, which is NaN.
        with np.errstate(invalid="ignore", divide="ignore"):
            if scale == "difference":
                return Resamples(self.value - old.value, self.least - old.most, self.most - old.least)
            # A value below the smallest time is unknown, but above 0; a ratio of 0 means that it is unknown.
            least = np.maximum(self.least, 0) / np.maximum(old.most, 0)
            most = np.maximum(self.most, 0) / np.maximum(old.least, 0)
            least, most = np.where(least == 0, -np.inf, least), np.where(most == 0, -np.inf, most)
            return Resamples(self.value / old.value, least, most)


@dataclass(frozen=True)
class BlockMeans:
    """Means of resamples of one sample.

    means: one per resample, in the sample's unit; mean: that of the sample itself.
    scale: factor that makes a deviation from `mean` as wide as the true error of the mean; NaN with fewer than
        LEAST_UNITS blocks.
    """

    means: Floats
    mean: float
    scale: float


def draw(
    samples: ArrayLike,
    statistic: str = "mean",
    *,
    cut: ArrayLike | None = None,
    block: int | None = None,
    seed: Seed = 0,
    resamples: int = RESAMPLES,
) -> Resamples:
    """Resample a statistic of one run's samples.

    Successive samples of a run depend on each other, so whole blocks of them are drawn (`resample_blocks`). A
    percentile's resamples are those of the share of samples up to it, read off the sorted sample (Woodruff, Confidence
    Intervals for Medians and Other Position Measures, JASA 47, 1952): of independent samples their percentiles are the
    ends of Le Boudec's interval. Resamples of a standard deviation are the roots of those of the mean square deviation,
    and need some thousands of samples: with 1,000 log-normal times, each depending on the one before, only 92.5 % of
    the intervals include the true value.

    Args:
        samples: in the order they were taken.
        statistic: "mean", "sd", or a percentile as text, e.g. "95" (nearest rank).
        cut: for each sample whether it is a time that was cut off (the true time is longer, by an unknown amount).
        block: successive samples that are drawn together, 1 for independent samples; None: `choose_block`.
        seed: of the resamples, or their generator; the same seed gives the same figures. Samples of several series of
            one run, if they are equally many, use the same draws with the same seed and block.
        resamples: their number; accuracy and time grow with it, memory hardly does.

    Raises:
        ValueError: no samples, or one is not finite.
    """
    row, random = finite(samples), np.random.default_rng(seed)
    value = statistic_of(row, statistic)
    block = choose_block(row) if block is None else block
    if statistic == "mean":
        drawn = resample_blocks(row, block, resamples, random)
        if row.min() > 0:  # widened in proportion, so that times stay above 0
            values: Floats = value * (drawn.means / value) ** drawn.scale
        else:
            values = value + drawn.scale * (drawn.means - value)
    elif statistic == "sd":
        drawn = resample_blocks((row - row.mean()) ** 2, block, resamples, random)
        values = value * (drawn.means / drawn.mean) ** (drawn.scale / 2) if value > 0 else np.full(resamples, value)
    else:
        drawn, values = _percentiles(row, statistic, block, resamples, random)
    if math.isnan(drawn.scale):
        values = np.full(resamples, math.nan)
    return Resamples(value, values, _most(values, row, cut, statistic), block, row.size)


def statistic_of(row: Floats, statistic: str) -> float:
    """The mean ("mean"), standard deviation ("sd") or percentile ("95": nearest rank, as in the report) of samples."""
    if statistic == "mean":
        return float(row.mean())
    if statistic == "sd":
        return float(row.std(ddof=1)) if row.size > 1 else math.nan
    rank = nearest_rank(row.size, statistic)
    return float(np.partition(row, rank - 1)[rank - 1])


def _most(values: Floats, row: Floats, cut: ArrayLike | None, statistic: str) -> Floats:
    hidden = np.asarray(False if cut is None else cut)
    if not hidden.any():
        return values
    # A percentile is known up to the longest fully measured time that is not above the shortest time cut off.
    in_full = row[~hidden & (row <= row[hidden].min())]
    limit = in_full.max() if in_full.size and statistic not in {"mean", "sd"} else -np.inf
    most: Floats = np.where(values > limit, np.inf, values)
    return most


def _percentiles(
    row: Floats, statistic: str, block: int, resamples: int, random: np.random.Generator
) -> tuple[BlockMeans, Floats]:
    n, share = row.size, float(statistic) / 100
    # Equal samples are put in random order, otherwise their order would look like dependence. This uses a separate
    # generator, so that a run's mean and percentile use the same draws.
    ordered: NDArray[np.intp] = np.lexsort((random.spawn(1)[0].random(n), row))
    # The share of samples up to the percentile is a mean: of 1 for these samples and 0 for the others. If this includes
    # all samples, it cannot vary: then the last but one is used, scaled to the percentile's spread.
    upto = max(1, min(n - 1, math.ceil(share * n)))
    within = np.zeros(n)
    within[ordered[:upto]] = 1.0
    drawn = resample_blocks(within, block, resamples, random)
    if np.ptp(drawn.means) < 1e-9:
        # Two labels in turn, of which one is always faster: blocks show no spread of the share, though there is one.
        drawn = replace(drawn, scale=math.nan)
    reached = upto / n
    spread = math.sqrt(share * (1 - share) / (reached * (1 - reached))) if n > 1 else math.nan
    # Half-way between the two ranks that hold the percentile, counted from 1.
    ranks = n * (share + (drawn.means - drawn.mean) * drawn.scale * spread) + 0.5
    read: Floats = np.interp(ranks, np.arange(1, n + 1), row[ordered], left=-math.inf, right=math.inf)
    # The resample with the most samples up to the percentile has the smallest percentile: assign the same values to the
    # resamples in reverse order of their means.
    upwards = np.argsort(drawn.means, kind="stable")
    values = np.empty_like(read)
    values[upwards] = read[upwards[::-1]]
    return drawn, values


def choose_block(samples: ArrayLike) -> int:
    """Return how many successive samples make a block, so that blocks are as good as independent.

    `block_length`, but at least the cube root of the number of samples, because a short run does not show dependence
    (the best length is of that order: Hall, Horowitz and Jing, On Blocking Rules for the Bootstrap with Dependent Data,
    Biometrika 82, 1995), and at most so many that LEAST_UNITS pairs of blocks are left.
    """
    row = finite(samples)
    length = round(max(math.cbrt(row.size), block_length(row)))
    return max(1, min(length, row.size // (2 * LEAST_UNITS)))


def block_length(samples: ArrayLike) -> float:
    """Return the best length of a block, in samples; below 1 if they do not depend on each other.

    The length with the least mean squared error of the variance, from the autocorrelation up to the lag beyond which
    none is left (Politis and White, Automatic Block-Length Selection for the Dependent Bootstrap, Econometric Reviews
    23(1), 2004, for the circular bootstrap, as corrected by Patton, Politis and White, 28(4), 2009).
    """
    row = finite(samples)
    n = row.size
    centred = row - row.mean()
    variance = float(centred @ centred) / n
    # At most the rounding error of equal samples: no spread, no dependence.
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
    """Return the lag after which autocorrelation stays within what chance gives (Politis and White, section 3.2)."""
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
    """
    n = row.size
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
    # Dependence beyond a block shows in blocks of twice its length, of which there are half as many.
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
    """The factor by which the standard error is too small because blocks cut off dependence at their ends; at least 1.

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
