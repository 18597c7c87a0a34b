import numpy as np
import pytest
from scipy import stats

from framestorm.statistics.repetitions import paired_difference, paired_ratio, welch_difference, welch_ratio

# R's dataset sleep; R: t.test(extra ~ group) and t.test(extra[group == 1], extra[group == 2], paired = TRUE).
SLEEP_1 = (0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0)
SLEEP_2 = (1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4)


def test_welch_agrees_with_r() -> None:
    seen = welch_difference(SLEEP_1, SLEEP_2)
    assert (seen.value, seen.low, seen.high) == pytest.approx((-1.58, -3.3654832, 0.2054832), abs=5e-8)


def test_pairs_agree_with_r() -> None:
    seen = paired_difference(SLEEP_1, SLEEP_2)
    assert (seen.value, seen.low, seen.high) == pytest.approx((-1.58, -2.4598858, -0.7001142), abs=5e-8)


@pytest.mark.parametrize("level", [0.9, 0.95, 0.99])
@pytest.mark.parametrize("sizes", [(3, 3), (2, 10), (5, 3)])
def test_agreement_with_scipy(sizes: tuple[int, int], level: float) -> None:
    noise = np.random.default_rng(2)
    a, b = noise.lognormal(0, 0.3, sizes[0]), noise.lognormal(1, 0.1, sizes[1])
    seen = welch_difference(a, b, level)
    expected = stats.ttest_ind(a, b, equal_var=False).confidence_interval(level)
    assert (seen.low, seen.high) == pytest.approx((expected.low, expected.high), rel=1e-9)
    ratio = welch_ratio(a, b, level)
    logs = stats.ttest_ind(np.log(a), np.log(b), equal_var=False).confidence_interval(level)
    assert ratio.value == pytest.approx(stats.gmean(a) / stats.gmean(b), rel=1e-12)
    assert (ratio.low, ratio.high) == pytest.approx((np.exp(logs.low), np.exp(logs.high)), rel=1e-9)


def test_paired_ratio_agrees_with_scipy_and_forgets_what_repetitions_share() -> None:
    a, b = np.array([2.0, 3.0, 5.0]), np.array([1.0, 1.6, 2.4])
    seen = paired_ratio(a, b)
    logs = stats.ttest_rel(np.log(a), np.log(b)).confidence_interval()
    assert (seen.low, seen.high) == pytest.approx((np.exp(logs.low), np.exp(logs.high)), rel=1e-9)
    slow = np.array([1.0, 10.0, 100.0])
    shared = paired_ratio(a * slow, b * slow)
    assert (shared.value, shared.low, shared.high) == pytest.approx((seen.value, seen.low, seen.high), rel=1e-12)


def test_one_value_borrows_the_other_sides_spread() -> None:
    """As scipy's test with equal variances, which takes a single value too."""
    seen = welch_difference([4.0], [1.0, 2.0, 3.0])
    expected = stats.ttest_ind([4.0], [1.0, 2.0, 3.0]).confidence_interval()
    assert (seen.low, seen.high) == pytest.approx((expected.low, expected.high), rel=1e-9)
    assert (seen.value, seen.n) == (2.0, 4)
    assert seen.method == "Student with equal variances, 95 %, n = 1 and 3"


def test_where_nothing_spreads() -> None:
    lone = welch_ratio([4.0], [2.0])
    assert (lone.value, lone.low, lone.high, lone.n) == (pytest.approx(2.0), None, None, 2)
    equal = welch_difference([4.0, 4.0], [1.0, 1.0])
    assert (equal.value, equal.low, equal.high) == (3.0, 3.0, 3.0)


def test_refusals() -> None:
    with pytest.raises(ValueError, match="2 values of a but 3 values of b"):
        paired_ratio([1, 2], [1, 2, 3])
    with pytest.raises(ValueError, match=r"values of b: -1\.0 is among them"):
        welch_ratio([1, 2], [1, -1])
    with pytest.raises(ValueError, match="values of a: there are none"):
        welch_difference([], [1])
