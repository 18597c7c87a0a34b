"""Where a figure crosses its limit, by probes that vary."""

import numpy as np
import pytest

from framestorm.stats.crossing import crossing

LOADS = [80, 90, 95, 98, 100, 102, 105, 110, 125]


def margins(loads: list[float], at: float, steepness: float = 6.0, noise: float = 0.0, seed: int = 1) -> list[float]:
    draw = np.random.default_rng(seed)
    return [steepness * np.log(load / at) + draw.normal(0, noise) for load in loads]


def test_a_line_without_noise_is_found_exactly() -> None:
    found = crossing(LOADS, margins(LOADS, 101), 100)
    assert found is not None
    assert found == pytest.approx((101, 101, 101, 6))


def test_the_interval_holds_the_truth_as_often_as_it_says() -> None:
    held, widths = 0, []
    for seed in range(400):
        found = crossing(LOADS, margins(LOADS, 101, noise=0.15, seed=seed), 100)
        assert found is not None
        held += found.low <= 101 <= found.high
        widths.append(found.high / found.low)
    assert 0.92 <= held / 400 <= 0.99
    assert np.median(widths) < 1.1


def test_what_does_not_rise_or_crosses_elsewhere_has_no_crossing() -> None:
    assert crossing(LOADS, margins(LOADS, 101, steepness=-6), 100) is None
    assert crossing(LOADS, margins(LOADS, 200), 100) is None
    assert crossing(LOADS[:4], margins(LOADS[:4], 101), 100) is None
    assert crossing([100, 100, 100, 105, 105], [0.1, 0, -0.1, 0.2, 0.3], 100) is None, "two loads are no line"
    assert crossing([1, 2, 4, 8, 100], margins([1, 2, 4, 8, 100], 101), 100) is None, "the others are far away"
