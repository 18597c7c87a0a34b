import math

import numpy as np
import pytest

from framestorm.stats.shares import design_effect, margins, wilson


# Newcombe 1998, table II, method 10; (c) and (d) of the same table are at the edge.
@pytest.mark.parametrize(
    ("first", "second", "low", "high"),
    [
        ((56, 70), (48, 80), 0.0524, 0.3339),
        ((9, 10), (3, 10), 0.1705, 0.8090),
        ((10, 10), (0, 20), 0.6791, 1.0000),
        ((10, 10), (0, 10), 0.6075, 1.0000),
    ],
)
def test_newcombe_as_published(first: tuple[int, int], second: tuple[int, int], low: float, high: float) -> None:
    shares = first[0] / first[1], second[0] / second[1]
    below, above = margins([(1, shares[0], first[1]), (-1, shares[1], second[1])], 0.95)
    difference = shares[0] - shares[1]
    assert (difference - below, difference + above) == pytest.approx((low, high), abs=5e-5)


def test_margins_of_a_single_share_are_wilsons() -> None:
    low, high = wilson(45, 50)  # type: ignore[misc]
    assert margins([(1, 0.9, 50)], 0.95) == pytest.approx((0.9 - low, high - 0.9))
    assert margins([(-2, 0.9, 50)], 0.95) == pytest.approx((2 * (high - 0.9), 2 * (0.9 - low)))
    logs = math.log(0.9) - math.log(low), math.log(high) - math.log(0.9)
    assert margins([(1, 0.9, 50)], 0.95, of_logs=True) == pytest.approx(logs)


def test_design_effect() -> None:
    alone = np.random.default_rng(3).random(3000) > 0.1
    assert design_effect(alone) < 1.6
    assert design_effect(np.repeat(alone[:300], 10)) > 5
    assert design_effect(np.ones(50, dtype=bool)) == 1.0
