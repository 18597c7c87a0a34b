"""The smallest setting that is enough, of functions of which it is known: how it is found, and in how many probes."""

from collections.abc import Callable

import numpy as np
import pytest

from framestorm.judge.smallest import SmallestSearch
from framestorm.model.search import LoadRange, Outcome, Probe, Smallest

REPLICAS = LoadRange("target.replicas", 1, 64, is_whole=True)
Function = Callable[[float], Probe]


def probe(value: float, *, is_met: bool, generator: str = "") -> Probe:
    return Probe(value, "", [Outcome("p95 < 500 ms", is_met, "that")], generator=generator)


def searched(function: Function, over: LoadRange = REPLICAS) -> tuple[list[float], Smallest]:
    """The values that were tried, and the answer."""
    probes: list[Probe] = []
    while (value := SmallestSearch(over, probes).next_load()) is not None:
        assert len(probes) < 30
        probes.append(function(value))
    answer = SmallestSearch(over, probes).answer()
    assert answer is not None
    return [each.load for each in probes], answer


@pytest.mark.parametrize("needed", range(1, 65))
def test_the_smallest_that_is_enough_is_found(needed: int) -> None:
    tried, answer = searched(lambda value: probe(value, is_met=value >= needed))
    last_fail = needed - 1 if needed > 1 else None
    assert (answer.word, answer.least, answer.last_fail) == ("found", needed, last_fail)
    assert answer.binding == ("p95 < 500 ms" if needed > 1 else "")
    assert all(value in range(1, 65) for value in tried) and len(tried) <= 15
    # Both ends were seen twice.
    assert tried.count(needed) >= 2 and (needed == 1 or tried.count(needed - 1) >= 2)


def test_one_probe_that_fails_by_chance_does_not_decide() -> None:
    right = 0
    for seed in range(200):
        draw = np.random.default_rng(seed)
        _, answer = searched(lambda value, draw=draw: probe(value, is_met=(value >= 5) != (draw.random() < 0.03)))
        right += answer.least == 5
    assert right >= 180


def test_a_range_that_is_too_small_is_said() -> None:
    tried, answer = searched(
        lambda value: probe(value, is_met=False), LoadRange("target.replicas", 2, 7, is_whole=True)
    )
    assert tried == [2, 4, 7, 7]
    assert answer == Smallest("above_range", None, 7, "p95 < 500 ms")


def test_a_generator_that_cannot_make_the_load_ends_it() -> None:
    tried, answer = searched(
        lambda value: probe(value, is_met=False, generator="vm was saturated" if value > 1 else "")
    )
    assert tried == [1, 2, 2]
    # What failed for want of load was not too small.
    assert answer == Smallest("not_known", None, 1, why="vm was saturated")


def test_a_generator_that_was_disturbed_once_is_asked_again() -> None:
    reasons = ["vm was saturated"]
    tried, answer = searched(
        lambda value: probe(value, is_met=value >= 3, generator=reasons.pop() if value == 2 and reasons else "")
    )
    assert (tried[:3], answer.word, answer.least, answer.why) == ([1, 2, 2], "found", 3, "")
