import math

import pytest

from framestorm.stats.rounding import difference_ends, ratio_ends, rounding_ms, with_rounding


@pytest.mark.parametrize(("figures", "hidden"), [([3.0, 4.0], 1), ([3], 1), ([3.0, 4.2], 0), ([0.0], 1), ([3.5, 4], 1)])
def test_whole_figures_hide_a_millisecond(figures: list[float], hidden: float) -> None:
    assert rounding_ms(figures) == hidden


def test_an_interval_is_widened_only_where_it_is_narrower() -> None:
    assert with_rounding((3.0, 3.0), 3.0, [3, 3]) == (2.0, 4.0)
    assert with_rounding((1.0, 3.2), 3.0, [3, 3]) == (1.0, 4.0)
    assert with_rounding((3.1, 3.1), 3.1, [3.1, 3.1]) == (3.1, 3.1)
    assert with_rounding((None, 3.0), 3.0, [3, 3]) == (None, 4.0)


def test_each_side_is_off_to_its_own() -> None:
    assert difference_ends([5, 5], [2, 2], (1, 1)) == (1.0, 5.0)
    assert difference_ends([5.2, 5.2], [2, 2], (0, 1)) == pytest.approx((2.2, 4.2))
    assert ratio_ends([5, 5], [2, 2], (1, 1)) == pytest.approx((4 / 3, 6 / 1))
    assert ratio_ends([3, 8], [4, 4], (1, 1)) == pytest.approx((math.sqrt(2 * 7) / 5, math.sqrt(4 * 9) / 3))
    assert ratio_ends([3.2], [1.6], (0, 0)) == pytest.approx((2, 2))


def test_what_may_be_next_to_nothing_leaves_an_end_open() -> None:
    low, high = ratio_ends([3, 3], [1, 2], (1, 1))
    assert low == pytest.approx(2 / math.sqrt(2 * 3)) and high is None
    low, high = ratio_ends([1], [2], (1, 1))
    assert low is None and high == pytest.approx(2 / 1)
