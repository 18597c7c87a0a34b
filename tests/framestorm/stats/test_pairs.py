"""Tests and intervals of pairs, against scipy's and by hand."""

import numpy as np
import pytest
from scipy import stats

from framestorm.stats.pairs import hodges_lehmann, more_often, paired_difference, signed_rank_below


@pytest.mark.parametrize("middle", [-0.3, 0.0, 0.3])
def test_the_signed_rank_test_is_scipys(middle: float) -> None:
    values = np.random.default_rng(1).normal(middle, 1, 60).round(1)  # with ties
    other = stats.wilcoxon(values, alternative="less", method="asymptotic", correction=True)
    assert signed_rank_below(values) == pytest.approx(other.pvalue, rel=1e-9)


def test_no_difference_is_no_evidence() -> None:
    assert signed_rank_below([0.0, 0.0]) == 1


def test_wins_and_losses_are_those_of_a_coin() -> None:
    assert more_often(5, 0) == pytest.approx(1 / 32)
    assert more_often(2, 1) == pytest.approx(1 / 2)
    assert more_often(0, 3) == more_often(0, 0) == 1


def test_the_middle_is_the_median_of_the_means_of_two() -> None:
    assert hodges_lehmann([1.0, 2.0, 9.0]).value == pytest.approx((2 + 5) / 2)  # of 1, 1.5, 2, 5, 5.5, 9


def test_few_differences_have_no_interval() -> None:
    assert hodges_lehmann([1.0, 2.0]).ends == (None, None)


def test_the_interval_holds_the_middle_in_95_of_100() -> None:
    draw = np.random.default_rng(2)
    estimates = [hodges_lehmann(draw.laplace(0.1, 1, 40)) for _ in range(400)]
    held = sum((each.low or 0) <= 0.1 <= (each.high or 0) for each in estimates)
    assert 0.92 <= held / 400 <= 0.98


@pytest.mark.parametrize(
    ("counts", "low", "high"),
    # Examples of Newcombe, Statistics in Medicine 17, 1998, by method 10.
    [((36, 12, 2, 0), 0.0569, 0.3404), ((54, 0, 0, 0), -0.0664, 0.0664)],
)
def test_the_interval_of_paired_shares_is_the_published_one(
    counts: tuple[int, int, int, int], low: float, high: float
) -> None:
    assert paired_difference(*counts).ends == pytest.approx((low, high), abs=5e-5)


def test_the_interval_of_paired_shares_holds_the_difference_in_95_of_100() -> None:
    draw = np.random.default_rng(4)
    tables = draw.multinomial(80, [0.7, 0.05, 0.15, 0.1], 1000)
    estimates = [paired_difference(*map(int, table)) for table in tables]
    held = sum((each.low or -1) <= -0.1 <= (each.high or 1) for each in estimates)
    assert 0.93 <= held / 1000 <= 0.98
