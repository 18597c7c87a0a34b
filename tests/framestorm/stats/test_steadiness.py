"""Since when a series is steady; benchmarks/steadiness.py has how often that is right."""

import math

import numpy as np
import pytest

from framestorm.stats.checks import Floats
from framestorm.stats.steadiness import BINS, steadiness

AT = np.arange(BINS) / BINS


def noise(seed: int, spread: float = 0.03) -> Floats:
    return np.random.default_rng(seed).normal(3.0, spread, BINS)


@pytest.mark.parametrize("seed", range(5))
def test_a_level_is_steady_from_its_beginning(seed: int) -> None:
    assert steadiness(noise(seed)).since == 0


def test_equal_values_are_steady() -> None:
    assert steadiness(np.full(BINS, 2.5)).since == 0


@pytest.mark.parametrize("seed", range(5))
def test_a_warm_part_ends_where_it_ends(seed: int) -> None:
    warm = np.where(AT < 0.2, math.log(1.5), 0.0)
    found = steadiness(noise(seed) + warm)
    assert found.since is not None and abs(found.since - 0.2 * BINS) <= 1
    assert math.expm1(found.change) == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize("seed", range(5))
def test_one_long_first_bin_is_a_warm_part(seed: int) -> None:
    values = noise(seed)
    values[0] += math.log(3)
    since = steadiness(values).since
    assert since is not None and 1 <= since <= BINS / 6, "it, and little more"


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    "change",
    [np.log1p(0.4 * AT), np.log1p(-0.3 * AT), np.where(AT > 0.7, math.log(1.3), 0.0)],
    ids=["up", "down", "step"],
)
def test_what_goes_on_changing_is_never_steady(seed: int, change: Floats) -> None:
    found = steadiness(noise(seed) + change)
    assert found.since is None
    assert (found.change > 0) == (change[-1] > 0) and abs(found.change) > math.log(1.05)


def test_a_change_too_small_to_matter_is_none() -> None:
    assert steadiness(noise(1, 0.001) + np.log1p(0.04 * AT)).since == 0
