"""Claims on studies that ran once, on figures whose answers are worked out by hand, or by scipy."""

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tests.framestorm.study.conftest import BOTH, judge


def test_one_repetition_has_an_interval_within_its_runs(study: Any) -> None:
    noisy = [[100.0 + 10 * math.sin(7 * number) for number in range(60)], [10.25 + number % 3 for number in range(60)]]
    speedup = {"metric": "mean_ms", "against": {"way": "kept-alive"}, "as": "ratio"}
    made = study(
        lambda factors, repetition: noisy[factors["way"] != "fork"], repetitions=1, derived={"speedup": speedup}
    )
    claim = {"metric": "mean_ms", "compare": {"way": ["fork", "kept-alive"]}, "where": {"users": 1}, "expect": "> 5"}
    answer = judge(made, claim)
    assert answer.verdict == "confirmed"
    assert answer.low < answer.value < answer.high
    assert answer.notes[-1].startswith("One repetition: the interval shows within-run variation")
    where = {"users": 1, "way": "fork"}
    nothing = judge(made, {"metric": "served_per_s", "where": where, "expect": "> 0"})
    assert (nothing.verdict, nothing.low) == ("inconclusive", None)
    derived = judge(made, {"metric": "speedup", "where": where, "expect": "> 5"})
    assert (derived.low, derived.high) == pytest.approx((answer.low, answer.high), rel=1e-9), "of the same resamples"


def test_one_repetition_of_several_points_goes_by_how_far_they_differ(study: Any) -> None:
    """What runs differ by is in what points differ by: each of them is steady, but they do not agree."""
    factor = {1: 10.0, 2: 14.0, 4: 9.0}
    made = study(
        lambda factors, repetition: [10.0 if factors["way"] != "fork" else 10 * factor[factors["users"]]] * 60,
        BOTH | {"users": [1, 2, 4]}, repetitions=1,
    )  # fmt: skip
    claim = {"metric": "mean_ms", "compare": {"way": ["fork", "kept-alive"]}, "expect": "> 5"}
    answer = judge(made, claim)
    logs = np.log(list(factor.values()))
    half = stats.t.ppf(0.975, 2) * stats.sem(logs)
    expected = [math.exp(logs.mean() + by * half) for by in (-1, 0, 1)]
    assert [answer.low, answer.value, answer.high] == pytest.approx(expected, rel=1e-9)
    assert answer.notes[-1].startswith("One repetition: the variation between points")
    trend = judge(made, {**claim, "trend": "users", "expect": "< 0"})
    line = stats.linregress([1, 2, 4], logs)
    half = stats.t.ppf(0.975, 1) * line.stderr
    expected = [100 * math.expm1(line.slope + by * half) for by in (-1, 0, 1)]
    assert [trend.low, trend.value, trend.high] == pytest.approx(expected, rel=1e-9)


def test_one_repetition_of_what_is_not_known_to_one_side(study: Any) -> None:
    """Of 60 samples the 99th percentile is the largest, and the true one is that at least or more."""
    slow, quick = [100.0 + number * 37 % 60 for number in range(60)], [10.0 + number * 37 % 60 for number in range(60)]
    made = study(lambda factors, repetition: slow if factors["way"] == "fork" else quick, repetitions=1)
    answer = judge(made, {"metric": "p99_ms", "where": {"way": "fork"}, "expect": "> 120"})
    assert (answer.verdict, answer.high) == ("confirmed", None)
    assert f"[{answer.low:.0f}" in answer.sentence and "…]" in answer.sentence
    both = judge(made, {"metric": "p99_ms", "compare": {"way": ["fork", "kept-alive"]}, "expect": "> 1"})
    assert (both.verdict, both.low, both.high) == ("inconclusive", None, None)
    assert both.notes[-1].startswith("Insufficient data (n < 2 repetitions)")


def test_one_repetition_is_not_sure_of_what_never_failed(study: Any) -> None:
    made = study(lambda factors, repetition: [10.0] * 60, repetitions=1)
    claim = {"metric": "success", "compare": {"way": ["fork", "kept-alive"]}, "expect": "= 1 within 10 %"}
    answer = judge(made, claim)
    assert (answer.verdict, answer.value) == ("confirmed", 1.0)
    assert 0.9 < answer.low < 0.99 and 1.01 < answer.high < 1.1


def test_one_repetition_of_equal_runs_is_drawn_by_chance(study: Any) -> None:
    """Two runs that happened to give the same times are two samples, not one."""
    times = [100.0 + number * 37 % 60 for number in range(60)]
    made = study(lambda factors, repetition: times, repetitions=1)
    answer = judge(made, {"metric": "mean_ms", "compare": {"way": ["fork", "kept-alive"]}, "expect": "> 2"})
    assert answer.low < 0.98 and answer.high > 1.02


def test_one_repetition_of_a_derived_metric(study: Any) -> None:
    made = study(
        lambda factors, repetition: [10.0 + number % 5 for number in range(40)], {"users": [1]}, repetitions=1,
        derived={"share": "=outside_mean_ms / mean_ms"},
    )  # fmt: skip
    answer = judge(made, {"metric": "share", "expect": "< 0.5"})
    assert (answer.value, answer.low, answer.high) == pytest.approx((0.2, 0.2, 0.2)), "drawn alike"


def test_one_repetition_of_a_rate_is_not_surer_as_a_part_of_another_metric(study: Any) -> None:
    derived = {"work_per_s": "=served_per_s * mean_ms"}
    made = study(lambda factors, repetition: [10.0] * 60, {"users": [1]}, repetitions=1, derived=derived)
    answer = judge(made, {"metric": "work_per_s", "expect": "> 0"})
    assert (answer.verdict, answer.low, answer.high) == ("inconclusive", None, None)
