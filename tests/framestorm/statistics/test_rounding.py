import math

import pytest

from framestorm.statistics.rounding import difference_ends, hidden_ms, hidden_too, ratio_ends


@pytest.mark.parametrize(
    ("figures", "hidden"), [([3.0, 4.0], 0.5), ([3], 0.5), ([3.0, 4.2], 0), ([0.0], 0.5), ([3.5, 4], 0.5)]
)
def test_whole_figures_hide_half_a_millisecond(figures: list[float], hidden: float) -> None:
    assert hidden_ms(figures) == hidden


def test_an_interval_is_widened_only_where_it_is_narrower() -> None:
    assert hidden_too((3.0, 3.0), 3.0, [3, 3]) == (2.5, 3.5)
    assert hidden_too((1.0, 3.2), 3.0, [3, 3]) == (1.0, 3.5)
    assert hidden_too((3.1, 3.1), 3.1, [3.1, 3.1]) == (3.1, 3.1)
    assert hidden_too((None, 3.0), 3.0, [3, 3]) == (None, 3.5)


def test_each_side_is_off_to_its_own() -> None:
    assert difference_ends([3, 3], [1, 1]) == (1.0, 3.0)
    assert difference_ends([3.2, 3.2], [1, 1]) == pytest.approx((1.7, 2.7))
    assert ratio_ends([3, 3], [1, 1]) == pytest.approx((2.5 / 1.5, 3.5 / 0.5))
    assert ratio_ends([2, 8], [4, 4]) == pytest.approx((math.sqrt(1.5 * 7.5) / 4.5, math.sqrt(2.5 * 8.5) / 3.5))
    assert ratio_ends([3.2], [1.6]) == pytest.approx((2, 2))


def test_nothing_but_rounding_leaves_an_end_open() -> None:
    """0.5 ms and less may be as near to 0 as one likes."""
    assert ratio_ends([3], [0.6, 0.4]) == pytest.approx((2.5 / math.sqrt(0.24), 3.5 / math.sqrt(0.24)))
    low, high = ratio_ends([1, 3], [0])
    assert low == pytest.approx(math.sqrt(0.5 * 2.5) / 0.5) and high is None
    low, high = ratio_ends([0], [2])
    assert low is None and high == pytest.approx(0.5 / 1.5)
