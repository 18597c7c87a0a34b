from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from scipy import optimize

from framestorm.stats.scalability import Knee, Usl, fit_usl, knee

# Gunther, Guerrilla Capacity Planning, 2007: a ray tracer (table 4.1), and SPEC SDM91 on a SPARCcenter 2000.
RAY_TRACER = ([1, 4, 8, 12, 16, 20, 24, 28, 32, 48, 64], [20, 78, 130, 170, 190, 200, 210, 230, 260, 280, 310])
SPEC_SDM91 = ([1, 18, 36, 72, 108, 144, 216], [64.9, 995.9, 1652.4, 1853.2, 1828.9, 1775.0, 1702.2])


def law(loads: list[float], lambda_: float, sigma: float, kappa: float) -> np.ndarray:
    at = np.array(loads, dtype=float)
    made: np.ndarray = lambda_ * at / (1 + sigma * (at - 1) + kappa * at * (at - 1))
    return made


def figures(fitted: Usl) -> tuple[float, float, float]:
    return fitted.lambda_per_s.value, fitted.sigma.value, fitted.kappa.value


def test_ray_tracer_agrees_with_r() -> None:
    """R's package usl 2.0 gives gamma 21.8488, alpha 0.0578, beta 0; so there is no peak but a limit."""
    fitted = fit_usl(*RAY_TRACER)
    assert figures(fitted) == (pytest.approx(21.8488, abs=5e-5), pytest.approx(0.0578, abs=5e-5), 0.0)
    assert (fitted.peak, fitted.peak_throughput) == (None, pytest.approx(21.8488 / 0.0577708, rel=1e-5))


def test_spec_sdm91_agrees_with_r() -> None:
    """R's package usl 2.0 gives the fitted values below and a peak at 97."""
    fitted = fit_usl(*SPEC_SDM91)
    assert fitted.throughput(SPEC_SDM91[0]) == pytest.approx([90, 1078, 1541, 1850, 1879, 1822, 1646], abs=0.5)
    assert fitted.peak is not None and round(fitted.peak) == 97
    assert fitted.peak_throughput == pytest.approx(fitted.throughput([fitted.peak])[0], rel=1e-12)
    assert fitted.throughput([90, 110]).max() < (fitted.peak_throughput or 0)


# The least squares of SPEC SDM91, by Newton's method on their gradient in 60 digits.
EXACT_SPEC = (89.99523310433222, 0.02772847561863439, 0.00010436548384409088)


def test_figures_to_nine_digits() -> None:
    assert figures(fit_usl(*SPEC_SDM91)) == pytest.approx(EXACT_SPEC, rel=1e-9, abs=0)


def test_intervals_are_of_hc3() -> None:
    """By its sandwich, at scipy's least squares, of slopes by finite differences."""
    loads, measured = (np.array(row, dtype=float) for row in SPEC_SDM91)
    expected, _ = optimize.curve_fit(law, loads, measured, p0=(90, 0.03, 1e-4), xtol=1e-15, ftol=1e-15)
    fitted = fit_usl(loads, measured)
    assert figures(fitted) == pytest.approx(tuple(expected), rel=1e-6, abs=0)
    steps = np.diag(expected) * 1e-6
    slopes = np.column_stack([(law(loads, *(expected + h)) - law(loads, *(expected - h))) / 2 / h.sum() for h in steps])
    bread = np.linalg.inv(slopes.T @ slopes)
    off = (measured - law(loads, *expected)) / (1 - np.diag(slopes @ bread @ slopes.T))
    variances = np.diag(bread @ slopes.T @ np.diag(off**2) @ slopes @ bread)
    t = 2.7764451051977987  # R: qt(0.975, 4)
    for seen, value, variance in zip(
        (fitted.lambda_per_s, fitted.sigma, fitted.kappa), expected, variances, strict=True
    ):
        assert seen.high is not None and seen.high - seen.value == pytest.approx(t * np.sqrt(variance), rel=1e-5)
        assert seen.low == pytest.approx(max(0, value - t * np.sqrt(variance)), rel=1e-5)
    residuals = law(SPEC_SDM91[0], *expected) - measured
    assert fitted.r_squared == pytest.approx(1 - residuals @ residuals / (measured.var() * 7), rel=1e-9)


@pytest.mark.parametrize(
    ("parameters", "peak", "most"),
    [
        # R's package usl: tests/coef.R makes its data so.
        ((1.0, 0.02, 0.02), 7.0, law([7.0], 1, 0.02, 0.02)[0]),
        ((995.6486, 0.02671591, 7.690945e-4), 35.573, None),
        ((50.0, 0.1, 0.0), None, 500.0),
        ((50.0, 0.0, 0.0), None, None),
        ((50.0, 0.0, 0.01), 10.0, law([10.0], 50, 0, 0.01)[0]),
        ((50.0, 1.5, 0.001), 1.0, 50.0),
        ((50.0, 0.2, 0.9), 1.0, 50.0),  # would be highest with less than one
    ],
)
def test_exact_data_give_back_their_law(
    parameters: tuple[float, float, float], peak: float | None, most: float | None
) -> None:
    loads = [1, 2, 3, 4, 6, 8, 12, 16, 32]
    fitted = fit_usl(loads, law(loads, *parameters))
    assert figures(fitted) == pytest.approx(parameters, rel=1e-9, abs=1e-11)
    assert fitted.peak == (None if peak is None else pytest.approx(peak, rel=1e-4))
    if most is not None or peak is None:
        assert fitted.peak_throughput == (None if most is None else pytest.approx(most, rel=1e-9))


def test_parameters_are_never_negative() -> None:
    superlinear = fit_usl([1, 2, 4], [10, 25, 60])
    assert figures(superlinear)[1:] == (0.0, 0.0)
    assert superlinear.lambda_per_s.value == pytest.approx((10 + 50 + 240) / 21, rel=1e-12)  # least squares by hand
    steep = fit_usl([1, 2, 4], [10, 9, 5])
    assert steep.sigma.value >= 0 and steep.kappa.value > 0


def test_repetitions_narrow_the_intervals() -> None:
    loads = [1, 2, 4, 8, 16]
    noise = np.random.default_rng(1)
    measured = law(loads * 20, 100, 0.05, 0.001) * noise.normal(1, 0.02, 100)
    few, many = fit_usl(loads, measured[:5]), fit_usl(loads * 20, measured)
    assert many.sigma.low is not None and many.sigma.high is not None and few.sigma.high is not None
    assert many.sigma.low < 0.05 < many.sigma.high
    assert many.sigma.high - many.sigma.value < few.sigma.high - few.sigma.value


def test_scale_of_throughput_changes_lambda_only() -> None:
    plain, scaled = fit_usl(*SPEC_SDM91), fit_usl(SPEC_SDM91[0], np.multiply(SPEC_SDM91[1], 1e6))
    assert figures(scaled) == pytest.approx((1e6 * figures(plain)[0], *figures(plain)[1:]), rel=1e-7)
    assert scaled.peak == pytest.approx(plain.peak, rel=1e-7)


def test_three_measurements_have_no_intervals_and_constant_ones_no_variance() -> None:
    fitted = fit_usl([1, 2, 4], [10, 10, 10])
    assert (fitted.sigma.low, fitted.sigma.high, fitted.r_squared) == (None, None, None)
    assert fitted.sigma.value == pytest.approx(1, rel=1e-6)


RATES = [5, 50, 500]
AROUND = (0.99, 1.0, 1.01)


def served(*shares: float) -> dict[float, list[float]]:
    return {load: [share * load * around for around in AROUND] for load, share in zip(RATES, shares, strict=True)}


def of(rates: Mapping[float, Sequence[float]], within: float = 0.05, *, closed: bool = False) -> Knee:
    seen = knee(rates, within, closed=closed)
    assert seen is not None
    return seen


@pytest.mark.parametrize(
    ("shares", "follows_to", "at"),
    [
        ((1, 1, 1), 500, None),
        ((1, 1, 0.5), 50, 500),
        ((1, 0.5, 0.1), 5, 50),
        ((0.8, 0.5, 0.1), 0, 5),
        ((1, 0.5, 1), 500, None),  # falls short once, but follows again
        ((1, 0.95, 0.5), 5, 500),  # not sure at 50
        ((1, 1, 0.95), 50, None),  # not sure at the largest load
        ((0.5, 0.95, 0.5), 0, 500),
    ],
)
def test_open_loop(shares: tuple[float, ...], follows_to: float, at: float | None) -> None:
    seen = of(served(*shares))
    assert (seen.follows_to, seen.at) == (follows_to, at)
    assert seen.shares == pytest.approx(shares)


def test_closed_loop_follows_in_proportion_to_the_smallest_load() -> None:
    rates = {1: [70, 71, 69], 2: [140, 141, 142], 8: [300, 310, 305], 4: [280, 279, 275]}
    seen = of(rates, closed=True)
    assert (seen.follows_to, seen.at) == (4, 8)
    assert seen.shares == pytest.approx((1, 141 / 140, 278 / 280, 305 / 560))
    assert of({load: rates[load] for load in (1, 2, 4)}, closed=True).follows_to == 4
    assert of(rates, 0.5, closed=True).at is None


def test_closed_loop_knows_the_spread_of_its_base() -> None:
    sure = of({1: [70, 71, 69], 4: [250, 251, 249]}, closed=True)
    vague = of({1: [50, 70, 90], 4: [250, 251, 249]}, closed=True)
    assert (sure.at, vague.at, vague.follows_to) == (4, None, 1)


def test_one_repetition_decides_nothing() -> None:
    seen = of({1: [1.0], 2: [0.1]})
    assert (seen.follows_to, seen.at) == (0, None)


@pytest.mark.parametrize(
    ("rates", "closed"), [({}, False), ({1: [1.0]}, False), ({0: [1.0], 1: [1.0]}, False), ({1: [0.0], 2: [1.0]}, True)]
)
def test_nothing_to_find_a_knee_by(rates: dict[float, list[float]], closed: bool) -> None:
    assert knee(rates, 0.05, closed=closed) is None
