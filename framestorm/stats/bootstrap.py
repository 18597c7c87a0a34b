"""What one run's samples say of their own mean or percentile: its resamples, and an interval from them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from framestorm.stats.checks import LEVEL, Ends, Floats, check_level, finite
from framestorm.stats.estimate import Estimate
from framestorm.stats.resampling import BlockMeans, choose_block, resample_blocks

RESAMPLES = 10_000
Seed = int | Sequence[int] | np.random.Generator


@dataclass(frozen=True)
class Resamples:
    """A statistic of one sample and of its resamples, in the sample's unit.

    values: one a resample, as far from `value` as the true one may be; -inf or inf where that is beyond the sample, NaN
        where there are too few samples to tell. Sums, differences and ratios of those of independent samples are
        resamples of the sum, difference or ratio.
    most: the largest that each may be: `values`, or inf where a time that was cut off hides it.
    block: successive samples that were drawn together; n: samples.
    """

    value: float
    values: Floats
    most: Floats
    block: int
    n: int


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
    ends of Le Boudec's interval. A standard deviation's are the roots of those of the mean square deviation, and need
    some thousands of samples: of 1,000 log-normal times, each depending on the one before, 92.5 % of intervals hold it.

    Args:
        samples: in the order they were taken.
        statistic: "mean", "sd", "median", or a percentile as text, e.g. "95" (nearest rank).
        cut: for each sample whether it is a time that was cut off, and in truth longer by what is not known.
        block: successive samples that are drawn together, 1 for independent samples; None: `choose_block`.
        seed: of the resamples, or their generator; the same seed gives the same figures. Samples of several series of
            one run, as many of each, are drawn alike with the same seed and block.
        resamples: how many; the accuracy of what is made of them and the time grow with it, memory hardly does.

    Raises:
        ValueError: no samples, one not finite, a statistic that is not known, or a block longer than the sample.
    """
    row, random = finite(samples, "samples"), np.random.default_rng(seed)
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


def bootstrap(
    samples: ArrayLike,
    statistic: str = "mean",
    *,
    cut: ArrayLike | None = None,
    block: int | None = None,
    seed: Seed = 0,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
) -> Estimate:
    """A statistic of one run's samples with its percentile interval; what another run would have given is not in it.

    Args:
        samples: in the order they were taken.
        statistic: as of `draw`, as are `cut`, `block`, `seed` and `resamples`.
        cut: see `draw`.
        block: see `draw`.
        seed: see `draw`.
        resamples: see `draw`.
        level: share of intervals that hold the true figure.

    Raises:
        ValueError: as `draw`, or `level` is not between 0 and 1.
    """
    drawn = draw(samples, statistic, cut=cut, block=block, seed=seed, resamples=resamples)
    low, high = percentile_ends(drawn.values, drawn.most, level=level)
    method = f"block bootstrap within one run, {level * 100:g} %, {resamples} resamples, blocks of {drawn.block}"
    return Estimate(drawn.value, low, high, drawn.n, method)


def statistic_of(row: Floats, statistic: str) -> float:
    """The "mean", "sd", "median" or a percentile as text (nearest rank, as in the report), in the samples' unit."""
    if statistic == "mean":
        return float(row.mean())
    if statistic == "sd":
        return float(row.std(ddof=1)) if row.size > 1 else math.nan
    rank = max(1, math.ceil(_share(statistic) * row.size))
    return float(np.partition(row, rank - 1)[rank - 1])


def change_of(a: Resamples, b: Resamples, scale: Literal["difference", "ratio"]) -> tuple[Floats, Floats]:
    """Resamples of a - b, or of a / b of times above 0, of two independent samples: the least and the most of each."""
    # Both beyond what is known: they can be any way apart, and that is no number.
    with np.errstate(invalid="ignore", divide="ignore"):
        if scale == "difference":
            return a.values - b.most, a.most - b.values
        # What lies below the smallest time is above 0 at least; a ratio of 0 only says that it is not known.
        least, most = (np.maximum(of, 0) / np.maximum(to, 0) for of, to in ((a.values, b.most), (a.most, b.values)))
        return np.where(least == 0, -np.inf, least), np.where(most == 0, -np.inf, most)


def percentile_ends(values: Floats, most: Floats | None = None, *, level: float = LEVEL) -> Ends:
    """The ends that leave out (1 - level) / 2 of the resamples each (Efron and Tibshirani, 1993, chapter 13).

    What is not known (NaN) counts against either end; an end beyond what is known is None. `most`: see `Resamples`.
    """
    check_level(level)
    tail, most = (1 - level) / 2, values if most is None else most
    # Order statistics: interpolated ones would not be numbers beside an infinite value.
    low = float(np.quantile(np.where(np.isnan(values), -np.inf, values), tail, method="lower"))
    high = float(np.quantile(np.where(np.isnan(most), np.inf, most), 1 - tail, method="higher"))
    return low if math.isfinite(low) else None, high if math.isfinite(high) else None


def _most(values: Floats, row: Floats, cut: ArrayLike | None, statistic: str) -> Floats:
    hidden = np.zeros(row.size, dtype=np.bool_) if cut is None else np.asarray(cut, dtype=np.bool_)
    if hidden.shape != row.shape:
        raise ValueError(f"{row.size} samples but {hidden.size} marks of being cut off: as many of each are wanted")
    if not hidden.any():
        return values
    # A percentile is known up to the last time in full before the first that was cut off.
    in_full = row[~hidden & (row <= row[hidden].min())]
    limit = in_full.max() if in_full.size and statistic not in {"mean", "sd"} else -np.inf
    most: Floats = np.where(values > limit, np.inf, values)
    return most


def _percentiles(
    row: Floats, statistic: str, block: int, resamples: int, random: np.random.Generator
) -> tuple[BlockMeans, Floats]:
    n, share = row.size, float(_share(statistic))
    # Of equal samples chance says which comes first, or their order would look like dependence. By a generator of its
    # own: a run's mean and percentile are drawn alike.
    ordered: NDArray[np.intp] = np.lexsort((random.spawn(1)[0].random(n), row))
    # The share of samples up to the percentile is a mean: of 1 for these samples and 0 for the others. If that is all
    # of them it cannot vary, so the last but one is looked at, with the percentile's spread.
    upto = max(1, min(n - 1, math.ceil(share * n)))
    within = np.zeros(n)
    within[ordered[:upto]] = 1.0
    drawn = resample_blocks(within, block, resamples, random)
    reached = upto / n
    spread = math.sqrt(share * (1 - share) / (reached * (1 - reached))) if n > 1 else math.nan
    # Half-way between the two ranks that hold the percentile, counted from 1.
    ranks = n * (share + (drawn.means - drawn.mean) * drawn.scale * spread) + 0.5
    read: Floats = np.interp(ranks, np.arange(1, n + 1), row[ordered], left=-math.inf, right=math.inf)
    # The resample with the most samples up to the percentile is that with the smallest one: the same values, the other
    # way round, go with the resamples' means.
    upwards = np.argsort(drawn.means, kind="stable")
    values = np.empty_like(read)
    values[upwards] = read[upwards[::-1]]
    return drawn, values


def _share(statistic: str) -> Fraction:
    try:
        share = Fraction("50" if statistic == "median" else statistic) / 100
    except (ValueError, ZeroDivisionError):
        share = Fraction(0)
    if not 0 < share <= 1:
        raise ValueError(f"statistic {statistic!r}: mean, sd, median or a percentile such as '95' is wanted")
    return share
