import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import signal, stats

from framestorm.stats.resampling import LEAST_UNITS, block_length, choose_block, resample_blocks


def autoregressive(noise: np.random.Generator, n: int, rho: float) -> NDArray[np.float64]:
    made: NDArray[np.float64] = signal.lfilter([1], [1, -rho], noise.standard_normal(n + 200))
    return made[200:]


def test_blocks_of_one_are_scipys_bootstrap() -> None:
    """The same generator draws the same resamples: every resampled mean agrees."""
    row = np.random.default_rng(3).lognormal(0, 1, 40)
    seen = resample_blocks(row, 1, 500, np.random.default_rng(9))
    expected = stats.bootstrap((row,), np.mean, n_resamples=500, method="percentile", rng=np.random.default_rng(9))
    assert seen.means == pytest.approx(expected.bootstrap_distribution, rel=1e-9)
    assert seen.mean == pytest.approx(row.mean(), rel=1e-12)
    # The variance's n / (n - 1) times that of Student's t, (n - 1) / (n - 3).
    assert seen.scale == pytest.approx(np.sqrt(40 / 37), rel=1e-12)


def test_blocks_go_round_the_end() -> None:
    """Three samples in blocks of two: the first two, the last two, or the last and the first; two blocks a resample."""
    seen = resample_blocks(np.array([0.0, 3.0, 9.0]), 2, 4000, np.random.default_rng(1)).means
    blocks = np.array([1.5, 6.0, 4.5])
    possible = np.unique((blocks[:, None] + blocks) / 2)
    nearest = np.abs(seen[:, None] - possible).argmin(axis=1)
    assert seen == pytest.approx(possible[nearest], abs=1e-12)
    assert set(nearest) == set(range(possible.size))


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.8])
def test_spread_of_resamples_is_that_of_the_mean(rho: float) -> None:
    """The mean of n AR(1) samples with unit innovations has a variance of 1 / (n (1 - rho)^2) for large n."""
    row = autoregressive(np.random.default_rng(4), 200_000, rho)
    seen = resample_blocks(row, choose_block(row), 4000, np.random.default_rng(1))
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


def test_block_length_tends_to_that_of_theory() -> None:
    """AR(1): g(0) = 1 / (1 - rho)^2 and G = 2 rho / ((1 - rho)^3 (1 + rho)), so G / g(0) = 2 rho / (1 - rho^2)."""
    rho, n = 0.5, 200_000
    theory = (1.5 * (2 * rho / (1 - rho**2)) ** 2 * n) ** (1 / 3)
    assert block_length(autoregressive(np.random.default_rng(6), n, rho)) == pytest.approx(theory, rel=0.1)


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


def test_refusals() -> None:
    with pytest.raises(ValueError, match="a block of 5 samples: there are 4"):
        resample_blocks(np.arange(4.0), 5, 10, np.random.default_rng(0))
    with pytest.raises(ValueError, match="there are none"):
        choose_block([])
