"""Changes of level in series of figures, with fixed random numbers."""

import numpy as np
import pytest

from framestorm.stats.change_points import LEAST, change_points


def series(*levels: tuple[float, int], noise: float = 0.01, seed: int = 2) -> list[float]:
    """Figures about each level in turn, so many of each."""
    random = np.random.default_rng(seed)
    return [float(level * (1 + noise * random.normal())) for level, n in levels for _ in range(n)]


def test_a_step_is_found_where_it_is() -> None:
    (point,) = change_points(series((100, 24), (105, 6)))
    assert point.at == 24
    assert point.p_value <= 0.01


def test_a_step_is_found_three_runs_after_it() -> None:
    assert [point.at for point in change_points(series((100, 24), (105, 3)))] == [24]
    assert change_points(series((100, 24), (105, 1))) == []


def test_several_steps_come_in_the_order_of_time() -> None:
    points = change_points(series((100, 20), (90, 20), (100, 20)))
    assert [point.at for point in points] == [20, 40]


@pytest.mark.parametrize("seed", range(5))
def test_noise_alone_is_no_change(seed: int) -> None:
    assert change_points(series((100, 40), seed=seed)) == []


def test_two_outliers_are_no_change() -> None:
    figures = series((100, 30))
    figures[10] = figures[11] = 200.0
    assert change_points(figures) == []


def test_the_last_runs_of_a_long_history_are_looked_at() -> None:
    points = change_points(series((50, 100), (100, 180), (105, 20)))
    assert [point.at for point in points] == [280]


@pytest.mark.parametrize("figures", [[], [1.0], [1.0, 1.0, 1.0, 2.0, 2.0], [3.0] * 50])
def test_too_few_figures_or_equal_ones_have_no_change(figures: list[float]) -> None:
    assert change_points(figures) == []


def test_the_smallest_series_cannot_be_significant() -> None:
    assert change_points([1.0] * LEAST + [2.0] * LEAST) == []
