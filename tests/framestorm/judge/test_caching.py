"""Caches that are planted are seen; others are not."""

import numpy as np

from framestorm.judge.caching import judge_caching
from framestorm.model.function_audit import Caching, RepeatedInput


def judged(n: int, saves: float, share: float = 1.0, noise: float = 0.1) -> Caching:
    draw = np.random.default_rng(3)
    first, second = 50 * draw.lognormal(0, noise, n), 50 * draw.lognormal(0, noise, n)
    second[: round(share * n)] *= 1 - saves
    return judge_caching([RepeatedInput(at + 1, 0, first[at], second[at]) for at in range(n)])


def test_a_cache_of_every_answer_is_seen() -> None:
    caching = judged(40, saves=0.9)
    assert caching.is_faster and caching.is_often_hit
    assert 0.08 <= caching.ratio.value <= 0.12
    assert (caching.hits, caching.reverse) == (40, 0)


def test_a_cache_of_a_prefix_is_seen_without_a_clear_hit() -> None:
    caching = judged(40, saves=0.3)
    assert caching.is_faster and not caching.is_often_hit
    low, high = caching.ratio.ends
    assert low is not None and high is not None and low <= 0.7 <= high


def test_a_cache_of_1_in_10_is_seen_by_its_hits() -> None:
    caching = judged(100, saves=0.9, share=0.1, noise=0.3)
    assert caching.is_often_hit and caching.is_found
    low, high = caching.hit_share.ends
    assert low is not None and high is not None and low <= 0.1 <= high


def test_no_cache_is_none() -> None:
    caching = judged(100, saves=0)
    assert not caching.is_found
    low, high = caching.ratio.ends
    assert low is not None and high is not None and low < 1 < high


def test_what_a_processors_cache_saves_is_no_cache() -> None:
    assert not judged(1000, saves=0.01, noise=0.02).is_found


def test_slower_repeats_are_no_cache() -> None:
    assert not judged(40, saves=-3).is_found
