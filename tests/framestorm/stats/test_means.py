import numpy as np
import pytest
from scipy import stats

from framestorm.stats.estimate import Estimate
from framestorm.stats.means import relative_half_width, student, welch, without_repetition

# R's dataset sleep, group 1: the data of Student's paper of 1908.
SLEEP = (0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0)


@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
@pytest.mark.parametrize("values", [SLEEP, (565.0, 1008.0, 816.0), (1e-9, 3e-9), (1e12, 1e12 + 1, 1e12 + 5)])
def test_student_agrees_with_scipy(values: tuple[float, ...], level: float) -> None:
    seen = student(values, level)
    expected = stats.ttest_1samp(values, 0).confidence_interval(level)
    assert seen.value == pytest.approx(np.mean(values), rel=1e-12)
    assert (seen.low, seen.high) == pytest.approx((expected.low, expected.high), rel=1e-9)
    assert seen.n == len(values)


def test_one_value_has_no_ends_and_equal_values_have_both_at_the_mean() -> None:
    assert student([7]) == Estimate(7.0, None, None, 1, "Student, 95 %, n = 1")
    seen = student([3.0, 3.0, 3.0])
    assert (seen.value, seen.low, seen.high) == (3.0, 3.0, 3.0)


@pytest.mark.parametrize(
    ("interval", "expected"),
    [
        (Estimate(10.0, 9.0, 11.0, 3, ""), 0.1),
        (Estimate(-10.0, -11.0, -9.0, 3, ""), 0.1),
        (Estimate(10.0, None, None, 1, ""), None),
        (Estimate(0.0, -1.0, 1.0, 3, ""), None),
    ],
)
def test_relative_half_width(interval: Estimate, expected: float | None) -> None:
    assert relative_half_width(interval) == (None if expected is None else pytest.approx(expected))


def test_a_mean_of_two_slopes_pools_what_both_lines_leave() -> None:
    x = np.array([1.0, 2, 4])
    lines = np.array([3.0, 4, 7]), np.array([1.0, 1.5, 1])
    design = np.zeros((6, 4))
    design[:3, 0] = design[3:, 2] = 1
    design[:3, 1] = design[3:, 3] = x
    centred = x - x.mean()
    weights = np.tile(centred / (centred @ centred) / 2, 2)
    seen = without_repetition(np.concatenate(lines), weights, design)
    fits = [stats.linregress(x, y) for y in lines]
    left = sum(float(((y - fit.intercept - fit.slope * x) ** 2).sum()) for y, fit in zip(lines, fits, strict=True))
    half = stats.t.ppf(0.975, 2) * np.sqrt(left / 2 * 2 / (centred @ centred) / 4)
    slope = (fits[0].slope + fits[1].slope) / 2
    assert (seen.value, seen.low, seen.high) == pytest.approx((slope, slope - half, slope + half), rel=1e-9)


def test_as_many_settings_as_parameters_give_no_interval() -> None:
    seen = without_repetition([3.0, 5.0], [-1.0, 1.0], [[1, 1], [1, 2]])
    assert (seen.value, seen.low, seen.high) == (2.0, None, None)


@pytest.mark.parametrize("values", [[], [1.0, float("nan")], [float("inf"), 1.0]])
def test_what_is_no_row_of_numbers_is_refused(values: list[float]) -> None:
    with pytest.raises(ValueError, match="finite numbers are wanted"):
        student(values)


@pytest.mark.parametrize("level", [0.9, 0.95, 0.99])
@pytest.mark.parametrize("sizes", [(3, 3), (2, 10), (5, 3)])
def test_welch_agrees_with_scipy(sizes: tuple[int, int], level: float) -> None:
    noise = np.random.default_rng(2)
    a, b = noise.lognormal(0, 0.3, sizes[0]), noise.lognormal(1, 0.1, sizes[1])
    seen = welch(a, b, level)
    expected = stats.ttest_ind(a, b, equal_var=False).confidence_interval(level)
    assert (seen.low, seen.high) == pytest.approx((expected.low, expected.high), rel=1e-9)


def test_one_value_borrows_the_other_sides_spread() -> None:
    """As scipy's test with equal variances, which takes a single value too."""
    seen = welch([4.0], [1.0, 2.0, 3.0])
    expected = stats.ttest_ind([4.0], [1.0, 2.0, 3.0]).confidence_interval()
    assert (seen.low, seen.high) == pytest.approx((expected.low, expected.high), rel=1e-9)
    assert (seen.value, seen.n) == (2.0, 4)
    assert seen.method == "Student with equal variances, 95 %, n = 1 and 3"


def test_where_nothing_spreads() -> None:
    lone = welch([4.0], [2.0])
    assert (lone.value, lone.low, lone.high, lone.n) == (2.0, None, None, 2)
    equal = welch([4.0, 4.0], [1.0, 1.0])
    assert (equal.value, equal.low, equal.high) == (3.0, 3.0, 3.0)
