import numpy as np
import pytest
from scipy import stats

from framestorm.stats.effects import cliffs_delta, hedges_g, magnitude


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ([1, 2, 3], [4, 5, 6], -1.0),
        ([4, 5, 6], [1, 2, 3], 1.0),
        ([1, 2, 3], [1, 2, 3], 0.0),
        ([2], [1, 2, 3, 4], -0.25),  # more than one, less than two, equal to one, of four
    ],
)
def test_cliffs_delta(a: list[float], b: list[float], expected: float) -> None:
    assert cliffs_delta(a, [], b, []) == expected


def test_cliffs_delta_where_a_time_out_leaves_pairs_open() -> None:
    assert cliffs_delta([], [10], [5, 20], []) == 0.5
    assert cliffs_delta([5, 20], [], [], [10]) == -0.5
    # As long in full as the wait was: the one that was cut off is longer.
    assert cliffs_delta([], [10], [10], []) == 1.0


def test_cliffs_delta_agrees_with_mann_whitney() -> None:
    """delta = 2 U / (n_a n_b) - 1, also with many ties."""
    noise = np.random.default_rng(1)
    for size_a, size_b, values in ((50, 80, 10), (300, 7, 100_000), (1, 1, 2)):
        a, b = noise.integers(0, values, size_a), noise.integers(0, values, size_b)
        u = stats.mannwhitneyu(a, b).statistic
        assert cliffs_delta(a, [], b, []) == pytest.approx(2 * u / (size_a * size_b) - 1, abs=1e-12)
        assert cliffs_delta(b, [], a, []) == -cliffs_delta(a, [], b, [])
        assert cliffs_delta(np.exp(a / values), [], np.exp(b / values), []) == cliffs_delta(a, [], b, [])


@pytest.mark.parametrize(
    ("delta", "word"),
    [(0.0, "negligible"), (-0.146, "negligible"), (0.147, "small"), (-0.33, "medium"), (0.474, "large"), (-1, "large")],
)
def test_magnitude(delta: float, word: str) -> None:
    assert magnitude(delta) == word


def test_hedges_g() -> None:
    """By hand: means 4 and 2, pooled deviation sqrt(2.5), and the exact factor at 8 degrees, 0.9027 (Hedges' table)."""
    a, b = [2, 3, 4, 5, 6], [0, 1, 2, 3, 4]
    g = hedges_g(a, b)
    assert g == pytest.approx(2 / np.sqrt(2.5) * 0.9027, rel=1e-4)
    assert hedges_g(b, a) == pytest.approx(-(g or 0), rel=1e-12)
    assert hedges_g(np.multiply(a, 1000.0) + 7, np.multiply(b, 1000.0) + 7) == pytest.approx(g, rel=1e-12)
    # For many values it is Cohen's d.
    many_a, many_b = np.tile(a, 10_000), np.tile(b, 10_000)
    assert hedges_g(many_a, many_b) == pytest.approx(2 / np.sqrt(2), rel=1e-4)


@pytest.mark.parametrize(("a", "b"), [([1], [2]), ([1], [2, 3]), ([1, 1], [2, 2]), ([0.95] * 3, [1] * 3)])
def test_hedges_g_is_none_where_nothing_spreads(a: list[float], b: list[float]) -> None:
    assert hedges_g(a, b) is None
