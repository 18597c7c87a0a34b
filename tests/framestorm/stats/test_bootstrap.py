import math
import tracemalloc
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import signal, stats

from framestorm.stats.bootstrap import (
    LEAST_UNITS,
    Resamples,
    block_length,
    choose_block,
    draw,
    resample_blocks,
    statistic_of,
)
from framestorm.stats.estimate import Estimate
from framestorm.stats.percentiles import interval_ranks


def bootstrap(samples: Any, statistic: str = "mean", **more: Any) -> Estimate:
    return draw(samples, statistic, **more).estimate()


def latencies(seed: int, n: int) -> NDArray[np.float64]:
    return np.random.default_rng(seed).lognormal(3, 0.5, n)


def autoregressive(noise: np.random.Generator, n: int, rho: float) -> NDArray[np.float64]:
    made: NDArray[np.float64] = signal.lfilter([1], [1, -rho], noise.standard_normal(n + 200))
    return made[200:]


def dependent(noise: np.random.Generator, n: int, rho: float) -> NDArray[np.float64]:
    """Log-normal times in ms, each depending on the one before."""
    made: NDArray[np.float64] = 40 * np.exp(0.5 * math.sqrt(1 - rho**2) * autoregressive(noise, n, rho))
    return made


def test_draws_of_a_mean_are_scipys_bootstrap_widened() -> None:
    """The same generator draws the same resamples; their deviations grow by sqrt(n / (n - 3)), in proportion."""
    row = latencies(1, 50)
    expected = stats.bootstrap((row,), np.mean, n_resamples=999, method="percentile", rng=np.random.default_rng(4))
    plain = expected.bootstrap_distribution
    seen = draw(row, block=1, seed=4, resamples=999)
    assert seen.least == pytest.approx(row.mean() * (plain / row.mean()) ** math.sqrt(50 / 47), rel=1e-9)
    interval, ordered = bootstrap(row, block=1, seed=4, resamples=999), np.sort(seen.least)
    assert (interval.value, interval.low, interval.high) == (row.mean(), ordered[24], ordered[974])
    # Of values that are not all above 0 they grow as they are.
    moved = draw(row - 20, block=1, seed=4, resamples=999)
    assert moved.least == pytest.approx(moved.value + (plain - row.mean()) * math.sqrt(50 / 47), rel=1e-9)


@pytest.mark.parametrize("statistic", ["50", "90", "99"])
def test_percentile_of_independent_samples_has_le_boudecs_interval(statistic: str) -> None:
    """Ends lie within two ranks of the exact ones."""
    row = latencies(3, 1000)
    share = Fraction(statistic) / 100
    seen = bootstrap(row, statistic, block=1, resamples=40_000)
    low, high = interval_ranks(1000, share)
    assert low is not None and high is not None and seen.low is not None and seen.high is not None
    ordered = np.sort(row)
    assert seen.value == ordered[math.ceil(share * 1000) - 1]
    assert ordered[low - 3] <= seen.low <= ordered[low + 1]
    assert ordered[high - 3] <= seen.high <= ordered[min(999, high + 1)]


@pytest.mark.parametrize("n", [1, 4])
@pytest.mark.parametrize("statistic", ["mean", "50", "99"])
def test_too_few_samples_have_no_ends(n: int, statistic: str) -> None:
    seen = bootstrap(latencies(1, n), statistic)
    assert (seen.low, seen.high, seen.n) == (None, None, n)


def test_ends_beyond_the_sample_are_not_known() -> None:
    few = bootstrap(latencies(2, 50), "99", block=1)
    assert few.low is not None and few.low < few.value and few.high is None
    assert bootstrap(latencies(2, 50), "1", block=1).low is None
    assert bootstrap(latencies(2, 50), "100").low is None


@pytest.mark.parametrize(
    ("n", "statistic", "rank"), [(1, "50", 1), (4, "50", 2), (5, "50", 3), (100, "99.5", 100), (9, "1", 1)]
)
def test_statistic_of_is_the_nearest_rank(n: int, statistic: str, rank: int) -> None:
    assert statistic_of(np.random.default_rng(1).permutation(np.arange(1.0, n + 1)), statistic) == rank


def test_standard_deviation() -> None:
    """Of normal samples near the interval by the chi-squared distribution."""
    row = np.random.default_rng(9).normal(100, 5, 400)
    seen = bootstrap(row, "sd", block=1)
    exact = np.sqrt(399 * row.var(ddof=1) / stats.chi2.ppf([0.975, 0.025], 399))
    assert seen.value == row.std(ddof=1)
    assert (seen.low, seen.high) == pytest.approx(tuple(exact), rel=0.03)
    equal, alone = bootstrap([5.0] * 20, "sd"), bootstrap([5.0], "sd")
    assert (equal.value, equal.low, equal.high) == (0.0, 0.0, 0.0)
    assert math.isnan(alone.value) and (alone.low, alone.high) == (None, None)


def test_figures_of_one_run_are_drawn_alike() -> None:
    row = dependent(np.random.default_rng(2), 300, 0.5)
    mean, double = draw(row, seed=3, block=4), draw(2 * row, seed=3, block=4)
    assert double.least / mean.least == pytest.approx(np.full(mean.least.size, 2.0))
    median = draw(row, "50", seed=3, block=4)
    assert np.corrcoef(mean.least, median.least)[0, 1] > 0.5


def test_times_that_were_cut_off_hide_the_upper_end() -> None:
    row = np.append(latencies(4, 200), np.full(8, 1000.0))
    cut = row == 1000.0
    mean, median, p95 = (bootstrap(row, statistic, cut=cut, block=1) for statistic in ("mean", "50", "95"))
    assert mean.low is not None and mean.high is None
    assert median.high is not None and median.high < 1000 and p95.low is not None and p95.high is None
    # A time in full as long as the wait for a time-out is known.
    assert bootstrap([5.0] * 30, "50", cut=np.arange(30) > 25, block=1).high == 5.0


def test_dependent_samples_have_wider_intervals() -> None:
    row = dependent(np.random.default_rng(12), 1000, 0.8)
    loose, right = bootstrap(row, block=1), bootstrap(row)
    assert loose.low is not None and loose.high is not None and right.low is not None and right.high is not None
    assert right.high - right.low > 2 * (loose.high - loose.low)


def test_apart_of_what_is_not_known() -> None:
    """Of 50 samples the 99th percentile is the largest: how far beyond them the true one lies they do not say."""
    few, many = draw(latencies(3, 50), "99", block=1), draw(np.full(1500, 1.0), "99", block=1)
    low, high = few.change_from(many, "difference").interval()
    assert low is not None and low > 0 and high is None
    low, high = many.change_from(few, "ratio").interval()
    assert low is None and high is not None and high < 1
    assert few.change_from(few, "ratio").interval() == (None, None)
    cut = draw(np.append(np.full(99, 2.0), 9.0), cut=np.arange(100) == 99)
    low, high = cut.change_from(many, "ratio").interval()
    assert low is not None and low > 1 and high is None


def test_a_change_reaches_from_the_least_to_the_most() -> None:
    old = Resamples(2.0, np.array([2.0, 0.0, 4.0, -1.0]), np.array([2.0, 8.0, 4.0, 1.0]))
    new = Resamples(6.0, np.array([6.0, 4.0, 0.0, 1.0]), np.array([8.0, 4.0, 2.0, 1.0]))
    difference, ratio = new.change_from(old, "difference"), new.change_from(old, "ratio")
    assert (difference.value, ratio.value) == (4.0, 3.0)
    assert (difference.least.tolist(), difference.most.tolist()) == ([4, -4, -4, 0], [6, 4, -2, 2])
    assert (ratio.least.tolist(), ratio.most.tolist()) == ([3, 0.5, -np.inf, 1], [4, np.inf, 0.5, np.inf])


def test_memory_is_bounded() -> None:
    """Resamples of 100,000 samples each are not held together: they alone would be 8 GB."""
    row = dependent(np.random.default_rng(15), 100_000, 0)
    tracemalloc.start()
    bootstrap(row, "99")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100e6


def test_blocks_go_round_the_end() -> None:
    """Three samples in blocks of two: the first two, the last two, or the last and the first; two blocks a resample."""
    seen = resample_blocks(np.array([0.0, 3.0, 9.0]), 2, 4000, np.random.default_rng(1)).means
    blocks = np.array([1.5, 6.0, 4.5])
    possible = np.unique((blocks[:, None] + blocks) / 2)
    nearest = np.abs(seen[:, None] - possible).argmin(axis=1)
    assert seen == pytest.approx(possible[nearest], abs=1e-12)
    assert set(nearest) == set(range(possible.size))


@pytest.mark.parametrize(
    ("rho", "n", "block"), [(0.0, 200_000, 0), (0.5, 200_000, 0), (0.8, 200_000, 0), (0.5, 5000, 5)]
)
def test_spread_of_resamples_is_that_of_the_mean(rho: float, n: int, block: int) -> None:
    """The mean of n AR(1) samples with unit innovations has a variance of 1 / (n (1 - rho)^2) for large n.

    Also if the block is so short that its means alone would have a seventh less spread.
    """
    row = autoregressive(np.random.default_rng(4), n, rho)
    seen = resample_blocks(row, block or choose_block(row), 4000, np.random.default_rng(1))
    assert seen.scale * seen.means.std() == pytest.approx(1 / (1 - rho) / np.sqrt(row.size), rel=0.1)


def test_block_length_by_the_formula() -> None:
    """AR(1), 0.3: the lags up to 2 are beyond chance, so M = 4; the sums written out for that M."""
    row = autoregressive(np.random.default_rng(0), 10_000, 0.3)
    centred = row - row.mean()
    r0, r1, r2, r3 = (float(centred[k:] @ centred[: row.size - k]) / row.size for k in range(4))
    assert abs(r2 / r0) > 0.04 > abs(r3 / r0)  # 2 sqrt(log10(n) / n) is 0.04
    spectrum = r0 + 2 * (r1 + r2 + 0.5 * r3)
    curvature = 2 * (r1 + 2 * r2 + 0.5 * 3 * r3)
    expected = (2 * curvature**2 / (4 / 3 * spectrum**2)) ** (1 / 3) * 10_000 ** (1 / 3)
    assert block_length(row) == pytest.approx(expected, rel=1e-9)


def test_choose_block() -> None:
    noise = np.random.default_rng(5)
    assert choose_block(noise.standard_normal(5000)) == 17, "the cube root, where no dependence is seen"
    lengths = [choose_block(autoregressive(noise, 5000, rho)) for rho in (0.3, 0.6, 0.9)]
    assert lengths == sorted(lengths) and lengths[-1] > 17
    row = autoregressive(noise, 5000, 0.9)
    assert choose_block(row * 1000 + 7) == choose_block(row)
    assert choose_block([5.0] * 100) == 5


@pytest.mark.parametrize(("n", "block"), [(1, 1), (12, 1), (20, 2), (37, 3), (90, 9)])
def test_blocks_of_a_trend_leave_enough_of_them(n: int, block: int) -> None:
    row = np.linspace(0, 1, n)
    assert choose_block(row) == block
    assert np.isfinite(resample_blocks(row, block, 10, np.random.default_rng(0)).scale) == (n >= LEAST_UNITS)


def test_few_blocks_do_not_tell_their_spread() -> None:
    row = np.arange(20.0)
    assert np.isnan(resample_blocks(row[: LEAST_UNITS - 1], 1, 10, np.random.default_rng(0)).scale)
    assert np.isnan(resample_blocks(row, 3, 10, np.random.default_rng(0)).scale)
    assert resample_blocks(row, 2, 10, np.random.default_rng(0)).scale > np.sqrt(4 / 2)


def test_a_percentile_between_two_labels_in_turn_has_no_interval() -> None:
    """Every block has as many of the fast as of the slow: its spread would be none, beside the median itself."""
    times = latencies(1, 120) + np.tile([0.0, 1000.0], 60)
    assert bootstrap(times, "50", block=4).low is bootstrap(times, "50", block=4).high is None
    within = bootstrap(times, "75", block=4)
    assert within.low is not None and within.high is not None and within.low < within.value < within.high
