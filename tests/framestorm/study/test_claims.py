"""Claims on made-up figures whose answers are worked out by hand, or by scipy."""

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from framestorm.report.stats import wilson
from framestorm.statistics.shares import newcombe
from framestorm.study.answers import claims
from framestorm.study.answers.analysis import Study
from framestorm.study.answers.summary import study_of
from framestorm.study.design import expectation
from framestorm.study.design.folder import StudyFolder

Judge = Callable[..., dict[str, Any]]
# Mean round trips in ms by users, and factors by which the repetitions differ.
FORK, KEPT = {1: 400.0, 2: 900.0}, {1: 10.0, 2: 15.0}
SHAKE = (1.0, 1.1, 0.95)
BOTH = {"users": [1, 2], "way": {"fork": {}, "kept-alive": {}}}


@pytest.fixture
def study(fake_study: Any, make_result: Any, make_frames: Any) -> Callable[..., Study]:
    """A study of which each run has just the mean that `means` gives of its factors and repetition.

    Or these times, None for a sample that fails; or it fails for a reason, or is not there.
    """

    def make(
        means: Callable[[Mapping[str, Any], int], float | list[float | None] | str | None],
        factors: Mapping[str, Any] = BOTH,
        repetitions: int = 3,
        summary: Callable[[Mapping[str, Any], int], dict[str, Any]] = lambda factors, repetition: {},
        **content: Any,
    ) -> Study:
        def simulate(point: Any, repetition: int) -> Any:
            mean = means(point.factors, repetition)
            if mean is None or isinstance(mean, str):
                return make_result(reason=mean) if mean else None
            times = mean if isinstance(mean, list) else [mean, mean]
            frames = make_frames([10.0 if time is None else time for time in times])
            for frame in (frame for frame, time in zip(frames, times, strict=True) if time is None):
                frame.update({"ok": "false", "cause": "status-500"})
            return make_result(frames, summary(point.factors, repetition))

        folder: Path = fake_study.make(simulate, {"factors": dict(factors), "repetitions": repetitions, **content})
        return study_of(StudyFolder(folder))

    return make


def by_way(factors: Mapping[str, Any], repetition: int) -> float:
    if factors["way"] == "fork":
        return FORK[factors["users"]] * SHAKE[repetition - 1]
    return KEPT[factors["users"]]


def student(values: list[float]) -> tuple[float, float, float]:
    mean, half = sum(values) / len(values), stats.t.ppf(0.975, len(values) - 1) * stats.sem(values)
    return mean, mean - half, mean + half


@pytest.mark.parametrize(
    ("text", "low", "high", "verdict"),
    [
        ("> 2", 2.1, 3.0, "confirmed"),
        ("> 2", 1.0, 2.0, "not confirmed"),
        ("> 2", 1.9, 2.1, "undecided"),
        (">= 2", 2.0, 2.0, "confirmed"),
        ("< 1", 0.5, 1.0, "undecided"),
        ("< 1", 1.0, 1.2, "not confirmed"),
        ("<= 1", 0.5, 1.0, "confirmed"),
        ("< -0.5", -2.0, -1.0, "confirmed"),
        ("= 1 within 10 %", 0.95, 1.05, "confirmed"),
        ("= 1 within 10 %", 0.95, 1.2, "undecided"),
        ("= 1 within 10 %", 1.2, 1.3, "not confirmed"),
        ("= -2 within 10 %", -2.1, -1.9, "confirmed"),
        ("> 2", None, None, "undecided"),
        ("> 2", 3.0, math.inf, "confirmed"),
        ("< 2", math.inf, math.inf, "not confirmed"),
        ("< 2", 1.0, math.inf, "undecided"),
    ],
)
def test_expectations(text: str, low: float | None, high: float | None, verdict: str) -> None:
    assert expectation.parse(text).verdict(low, high) == verdict


@pytest.mark.parametrize("text", ["2", "about 2", "= 2", "> two", "!= 3"])
def test_an_expectation_that_is_none(text: str) -> None:
    with pytest.raises(ValueError, match="expect"):
        expectation.parse(text)


def test_a_ratio_of_one_pair(study: Any) -> None:
    claim = {"metric": "mean_ms", "where": {"users": 1}, "compare": {"way": ["fork", "kept-alive"]}, "expect": "> 2"}
    found = claims.judge(study(by_way), claim)
    mean, low, high = student([math.log(40 * shake) for shake in SHAKE])
    assert found["value"] == pytest.approx(math.exp(mean), rel=1e-9)
    assert (found["low"], found["high"]) == pytest.approx((math.exp(low), math.exp(high)), rel=1e-9)
    assert (found["verdict"], found["n"], found["kind"]) == ("confirmed", 3, "ratio")
    assert found["effect"] == {"name": "Cliff's delta", "of": "samples", "value": 1.0, "size": "large"}
    assert found["sentence"] == (
        "fork against kept-alive at users=1, mean round trip: 40.6 times [33.7, 48.8] (95 %, 3 repetitions); "
        "expected > 2. Cliff's delta 1.00 (large), of the samples."
    )


def test_a_ratio_over_several_pairs_is_their_geometric_mean(study: Any) -> None:
    found = claims.judge(
        study(by_way), {"metric": "mean_ms", "compare": {"way": ["fork", "kept-alive"]}, "expect": "< 2"}
    )
    by_repetition = [math.log(math.sqrt(40 * 60) * shake) for shake in SHAKE]
    assert found["value"] == pytest.approx(math.exp(sum(by_repetition) / 3), rel=1e-9)
    assert found["low"] == pytest.approx(math.exp(student(by_repetition)[1]), rel=1e-9)
    assert (found["verdict"], found["cells"]) == ("not confirmed", ["users=1", "users=2"])


def test_a_ratio_turned_round_is_its_inverse(study: Any) -> None:
    made = study(by_way)
    one, other = (
        claims.judge(made, {"metric": "mean_ms", "compare": {"way": pair}, "expect": "> 1"})
        for pair in (["fork", "kept-alive"], ["kept-alive", "fork"])
    )
    assert one["value"] * other["value"] == pytest.approx(1)
    assert one["low"] * other["high"] == pytest.approx(1)


def test_a_difference(study: Any) -> None:
    claim = {"metric": "mean_ms", "where": {"users": 1}, "compare": {"way": ["fork", "kept-alive"]}, "as": "difference"}
    found = claims.judge(study(by_way), {**claim, "expect": "< 300"})
    mean, low, high = student([400 * shake - 10 for shake in SHAKE])
    assert (found["value"], found["low"], found["high"]) == pytest.approx((mean, low, high))
    assert found["verdict"] == "not confirmed"
    assert "397\u00a0ms [" in found["sentence"]


def test_a_value_over_several_points_is_their_mean(study: Any) -> None:
    found = claims.judge(study(by_way), {"metric": "mean_ms", "where": {"way": "fork"}, "expect": "> 100"})
    assert found["value"] == pytest.approx(650 * sum(SHAKE) / 3)
    assert found["kind"] == "value"


def test_a_trend(study: Any) -> None:
    made = study(lambda factors, repetition: 50 + 7 * repetition * factors["users"], {"users": [1, 2, 5]})
    found = claims.judge(made, {"metric": "mean_ms", "trend": "users", "expect": "> 0"})
    mean, low, high = student([7.0, 14.0, 21.0])
    assert (found["value"], found["low"], found["high"]) == pytest.approx((mean, low, high))
    assert found["verdict"] == "undecided", "three slopes so far apart"


@pytest.mark.parametrize(("expect", "verdict"), [("> 3", "undecided"), ("> 1.5", "confirmed")])
def test_whole_milliseconds_that_repeat_are_not_exact(study: Any, expect: str, verdict: str) -> None:
    """8 ms against 2, in every repetition: anything from 7 : 3 to 9 : 1."""
    made = study(lambda factors, repetition: 8 if factors["way"] == "fork" else 2, BOTH)
    found = claims.judge(made, {"metric": "mean_ms", "compare": {"way": ["fork", "kept-alive"]}, "expect": expect})
    assert found["value"] == pytest.approx(4)
    assert (found["low"], found["high"]) == pytest.approx((7 / 3, 9 / 1))
    assert found["verdict"] == verdict


def test_a_time_of_a_millisecond_leaves_the_end_open_that_it_hides(study: Any) -> None:
    """8 ms against 1, which may be next to nothing: 7 : 2 at least."""
    made = study(lambda factors, repetition: 8 if factors["way"] == "fork" else 1, BOTH)
    found = claims.judge(made, {"metric": "mean_ms", "compare": {"way": ["fork", "kept-alive"]}, "expect": "> 3"})
    assert (found["low"], found["high"], found["verdict"]) == (pytest.approx(7 / 2), None, "confirmed")


def test_the_middle_of_a_trend_hides_nothing(study: Any) -> None:
    def means(factors: Mapping[str, Any], repetition: int) -> float:
        return 1.0 if factors["users"] == 2 and factors["way"] == "kept-alive" else 100.3 * factors["users"]

    made = study(means, {"users": [1, 2, 3], "way": BOTH["way"]})
    claim = {
        "metric": "mean_ms",
        "compare": {"way": ["fork", "kept-alive"]},
        "trend": "users",
        "expect": "= 0 within 5 %",
    }
    found = claims.judge(made, claim)
    assert (found["low"], found["high"]) == pytest.approx((0, 0), abs=1e-9)


def test_a_trend_of_a_ratio(study: Any) -> None:
    """The ratio of fork to kept alive falls by a tenth for each user, exactly."""

    def means(factors: Mapping[str, Any], repetition: int) -> float:
        return 1000.3 * SHAKE[repetition - 1] * (0.9 ** factors["users"] if factors["way"] == "fork" else 1)

    made = study(means, {"users": [1, 2, 3, 4], "way": BOTH["way"]})
    claim = {"metric": "mean_ms", "compare": {"way": ["fork", "kept-alive"]}, "trend": "users", "expect": "< 0"}
    found = claims.judge(made, claim)
    assert found["value"] == pytest.approx(-10)
    assert (found["low"], found["high"]) == pytest.approx((-10, -10))
    assert (found["verdict"], found["kind"]) == ("confirmed", "trend of the ratio")


def test_equal_figures_are_equal(study: Any) -> None:
    """Whatever rounding makes of a sum of them."""
    made = study(lambda factors, repetition: 0.1, {"users": [1, 2, 3, 4, 5, 6, 7]})
    for claim in ({"trend": "users", "expect": "> 0"}, {"trend": "users", "expect": "< 0"}):
        assert claims.judge(made, {"metric": "mean_ms", **claim})["verdict"] == "not confirmed"
    assert claims.judge(made, {"metric": "mean_ms", "expect": "= 0.1 within 0.000001 %"})["verdict"] == "confirmed"


def some_failed(n: int, failed: int) -> list[float | None]:
    return [None] * failed + [10.0] * (n - failed)


def test_success_that_never_failed(study: Any) -> None:
    made = study(lambda factors, repetition: [10.0] * 50, {"users": [1]})
    found = claims.judge(made, {"metric": "success", "expect": "< 1"})
    assert (found["low"], found["high"]) == pytest.approx(wilson(150, 150))
    assert found["verdict"] == "not confirmed", "none failed"
    for expect in ("> 0.99", "< 0.99", "= 0.98 within 1 %"):
        assert claims.judge(made, {"metric": "success", "expect": expect})["verdict"] == "undecided", "too few samples"


def test_success_is_no_surer_than_the_repetitions_agree(study: Any) -> None:
    made = study(lambda factors, repetition: some_failed(400, 160 * (repetition == 3)), {"users": [1]}, repetitions=5)
    found = claims.judge(made, {"metric": "success", "expect": "< 0.95"})
    assert (found["value"], found["low"], found["high"]) == pytest.approx((0.92, student([1, 1, 0.6, 1, 1])[1], 1))
    assert found["verdict"] == "undecided"


def test_success_of_repetitions_that_agree_is_no_surer_than_the_samples(study: Any) -> None:
    made = study(lambda factors, repetition: some_failed(20, factors["way"] == "fork"))
    claim = {"metric": "success", "compare": {"way": ["fork", "kept-alive"]}, "where": {"users": 1}}
    ratio = claims.judge(made, {**claim, "expect": "< 1"})
    apart = claims.judge(made, {**claim, "as": "difference", "expect": "< 0"})
    assert (ratio["verdict"], apart["verdict"], ratio["effect"]) == ("undecided", "undecided", None)
    low, high = newcombe((0.95, 60), (1, 60), 0.95)
    assert (apart["low"], apart["value"], apart["high"]) == pytest.approx((low, -0.05, high))
    assert (ratio["low"], ratio["high"]) == pytest.approx((1 + low, 1 + high), abs=0.01)


def test_success_over_points_counts_each_alike(study: Any) -> None:
    """However many samples it has."""

    def means(factors: Mapping[str, Any], repetition: int) -> list[float | None]:
        return some_failed(10 * factors["users"], 320 if factors["users"] == 64 else 0)

    found = claims.judge(study(means, {"users": [1, 2, 4, 64]}), {"metric": "success", "expect": "> 0.8"})
    assert (found["value"], found["verdict"]) == (pytest.approx(0.875), "confirmed")


def test_a_claim_on_times_says_how_many_samples_had_none(study: Any) -> None:
    """A limit answers some quickly by refusing the others."""
    made = study(lambda factors, repetition: some_failed(20, 15 if factors["way"] == "fork" else 0))
    claim = {"compare": {"way": ["fork", "kept-alive"]}, "expect": "< 2"}
    (note,) = claims.judge(made, {"metric": "mean_ms", **claim})["notes"]
    assert note.replace("\u00a0", " ") == (
        "At users=1, way=fork only 25.0 % were answered rightly, and too few at 1 more point: failing can be "
        "faster than working."
    )
    assert claims.judge(made, {"metric": "mean_ms", "where": {"way": "kept-alive"}, "expect": "< 20"})["notes"] == []
    assert claims.judge(made, {"metric": "success", **claim})["notes"] == []


@pytest.mark.parametrize(
    ("cut", "expect", "verdict", "note"),
    [
        (["fork"], "> 5", "confirmed", "the true figure is larger, by how much is not known"),
        (["fork"], "< 50", "undecided", "the true figure is larger, by how much is not known"),
        (["kept-alive"], "< 50", "confirmed", "the true figure is smaller, by how much is not known"),
        (["kept-alive"], "> 50", "not confirmed", "the true figure is smaller, by how much is not known"),
        (["fork", "kept-alive"], "> 5", "undecided", "the true figure may be larger or smaller"),
    ],
)
def test_time_outs_are_told(study: Any, cut: list[str], expect: str, verdict: str, note: str) -> None:
    made = study(lambda factors, repetition: 100.0 if factors["way"] == "fork" else 10.0)
    for row in made.rows:
        if row["factors"]["way"] in cut:
            row["bounds"]["mean_ms"] = "lower"
    found = claims.judge(made, {"metric": "mean_ms", "compare": {"way": ["fork", "kept-alive"]}, "expect": expect})
    assert found["verdict"] == verdict
    assert note in found["notes"][0]


def test_a_spread_with_time_outs_is_left_out_and_named(study: Any) -> None:
    made = study(lambda factors, repetition: [10.0, 10.0 + factors["users"] * repetition], {"users": [1, 2]})
    for row in made.rows:
        if row["factors"]["users"] == 2:
            row["bounds"]["sd_ms"] = "unsure"
    found = claims.judge(made, {"metric": "sd_ms", "expect": "> 0"})
    assert found["cells"] == ["users=1"]
    assert found["notes"] == ["Without users=2, where time-outs cut the spread off."]


def test_points_without_figures_are_named_and_leave_it_undecided(study: Any) -> None:
    def means(factors: Mapping[str, Any], repetition: int) -> float | str:
        return "no gateway" if factors == {"users": 2, "way": "fork"} else by_way(factors, repetition)

    found = claims.judge(
        study(means), {"metric": "mean_ms", "compare": {"way": ["fork", "kept-alive"]}, "expect": "> 2"}
    )
    assert found["verdict"] == "undecided"
    assert found["low"] > 2, "what there is, is told all the same"
    assert found["notes"][0] == "No figure of users=2: the claim stays undecided."


def test_a_missing_run_does_not_tilt_its_repetition(study: Any) -> None:
    """The slow one of three points is missing in repetition 2: filled in by point and repetition, not left out."""
    base = {1: 10.0, 2: 20.0, 3: 90.0}

    def means(factors: Mapping[str, Any], repetition: int) -> float | None:
        users = factors["users"]
        return None if (users, repetition) == (3, 2) else base[users] + 2 * repetition

    found = claims.judge(study(means, {"users": [1, 2, 3]}), {"metric": "mean_ms", "expect": "> 40"})
    assert found["value"] == pytest.approx(44, abs=0.01)
    assert found["high"] - found["low"] == pytest.approx(2 * 2 * stats.t.ppf(0.975, 2) / math.sqrt(3), rel=0.01)
    assert "1 missing value of 9" in found["notes"][0]


def test_a_missing_value_is_what_its_point_and_repetition_make_of_it(study: Any) -> None:
    def means(factors: Mapping[str, Any], repetition: int) -> float | None:
        return None if (factors["users"], repetition) == (3, 3) else 10.0 * factors["users"] + 6 * (repetition == 3)

    found = claims.judge(study(means, {"users": [1, 2, 3]}), {"metric": "mean_ms", "expect": "> 0"})
    assert found["value"] == pytest.approx(22)


def test_a_point_seen_only_in_what_is_left_out_has_no_figure(study: Any) -> None:
    def means(factors: Mapping[str, Any], repetition: int) -> float | None:
        return 1000.0 if repetition == 3 else 100.3 + repetition if factors["users"] < 4 else None

    made = study(
        lambda factors, repetition: means(factors, repetition) if repetition < 3 or factors["users"] == 4 else None,
        {"users": [1, 2, 3, 4]},
    )
    found = claims.judge(made, {"metric": "mean_ms", "expect": "> 0"})
    assert (found["value"], found["verdict"]) == (pytest.approx(101.8), "undecided")
    assert found["notes"][0] == "No figure of users=4: the claim stays undecided."


def test_a_ratio_beyond_all_bounds_has_an_open_end(study: Any) -> None:
    def means(factors: Mapping[str, Any], repetition: int) -> float:
        return 100.3 * (1 + (factors["way"] == "fork" and factors["users"] == 2 and repetition == 2))

    def tiny(factors: Mapping[str, Any], repetition: int) -> float:
        return means({**factors, "users": 2 if factors["sleep_s"] else 1}, repetition)

    made = study(tiny, {"sleep_s": [0, 0.005], "way": BOTH["way"]}, repetitions=2)
    claim = {"metric": "mean_ms", "compare": {"way": ["fork", "kept-alive"]}, "trend": "sleep_s", "expect": "> 0"}
    found = claims.judge(made, claim)
    assert (found["high"], found["verdict"]) == (None, "undecided")


@pytest.mark.parametrize(
    "speed", [{"metric": "median_ms", "against": {"way": "kept-alive"}, "as": "ratio"}, "=median_ms - 2"]
)
def test_whole_milliseconds_are_not_exact_in_what_is_made_of_them(study: Any, speed: Any) -> None:
    made = study(lambda factors, repetition: 3 if factors["way"] == "fork" else 4, derived={"speed": speed})
    found = claims.judge(made, {"metric": "speed", "where": {"way": "fork"}, "expect": "< 1.5"})
    assert (found["low"], found["high"], found["verdict"]) == (None, None, "undecided")
    assert "Times in whole milliseconds leave it open." in found["notes"]


def test_what_is_set_against_itself_is_exact(study: Any) -> None:
    speed = {"metric": "median_ms", "against": {"way": "fork"}, "as": "ratio"}
    made = study(lambda factors, repetition: 4, derived={"speed": speed})
    found = claims.judge(made, {"metric": "speed", "where": {"way": "fork"}, "expect": "= 1 within 1 %"})
    assert (found["low"], found["high"], found["verdict"]) == (1, 1, "confirmed")


def test_a_repetition_that_has_hardly_begun_is_left_out(study: Any) -> None:
    made = study(
        lambda factors, repetition: None if repetition == 3 and factors["users"] > 1 else by_way(factors, repetition)
    )
    found = claims.judge(made, {"metric": "mean_ms", "compare": {"way": ["fork", "kept-alive"]}, "expect": "> 2"})
    assert found["n"] == 2
    assert "repetition 3" in found["notes"][0]


def test_one_repetition_has_an_interval_within_its_runs(study: Any) -> None:
    noisy = [[100.0 + 10 * math.sin(7 * number) for number in range(60)], [10.0 + number % 3 for number in range(60)]]
    made = study(lambda factors, repetition: noisy[factors["way"] != "fork"], repetitions=1)
    claim = {"metric": "mean_ms", "compare": {"way": ["fork", "kept-alive"]}, "where": {"users": 1}, "expect": "> 5"}
    found = claims.judge(made, claim)
    assert found["verdict"] == "confirmed"
    assert found["low"] < found["value"] < found["high"]
    assert found["notes"][-1].startswith("One repetition: the interval is of the samples within each run")
    where = {"users": 1, "way": "fork"}
    nothing = claims.judge(made, {"metric": "served_per_s", "where": where, "expect": "> 0"})
    assert (nothing["verdict"], nothing["low"]) == ("undecided", None)


def test_one_repetition_of_several_points_goes_by_how_far_they_differ(study: Any) -> None:
    """What runs differ by is in what points differ by: each of them is steady, but they do not agree."""
    factor = {1: 10.0, 2: 14.0, 4: 9.0}
    made = study(
        lambda factors, repetition: [10.0 if factors["way"] != "fork" else 10 * factor[factors["users"]]] * 60,
        {**BOTH, "users": [1, 2, 4]}, repetitions=1,
    )  # fmt: skip
    claim = {"metric": "mean_ms", "compare": {"way": ["fork", "kept-alive"]}, "expect": "> 5"}
    found = claims.judge(made, claim)
    logs = np.log(list(factor.values()))
    half = stats.t.ppf(0.975, 2) * stats.sem(logs)
    expected = [math.exp(logs.mean() + by * half) for by in (-1, 0, 1)]
    assert [found["low"], found["value"], found["high"]] == pytest.approx(expected, rel=1e-9)
    assert found["notes"][-1].startswith("One repetition: how far the points differ stands in")
    trend = claims.judge(made, {**claim, "trend": "users", "expect": "< 0"})
    line = stats.linregress([1, 2, 4], logs)
    half = stats.t.ppf(0.975, 1) * line.stderr
    expected = [100 * math.expm1(line.slope + by * half) for by in (-1, 0, 1)]
    assert [trend["low"], trend["value"], trend["high"]] == pytest.approx(expected, rel=1e-9)


def test_one_repetition_of_what_is_not_known_to_one_side(study: Any) -> None:
    """Of 60 samples the 99th percentile is the largest, and the true one is that at least or more."""
    slow, quick = [100.0 + number * 37 % 60 for number in range(60)], [10.0 + number * 37 % 60 for number in range(60)]
    made = study(lambda factors, repetition: slow if factors["way"] == "fork" else quick, repetitions=1)
    found = claims.judge(made, {"metric": "p99_ms", "where": {"way": "fork"}, "expect": "> 120"})
    assert (found["verdict"], found["high"]) == ("confirmed", None)
    assert f"[{found['low']:.0f}" in found["sentence"] and "…]" in found["sentence"]
    both = claims.judge(made, {"metric": "p99_ms", "compare": {"way": ["fork", "kept-alive"]}, "expect": "> 1"})
    assert (both["verdict"], both["low"], both["high"]) == ("undecided", None, None)
    assert "One repetition gives no interval of this figure: repeat the study." in both["notes"]


def test_one_repetition_is_not_sure_of_what_never_failed(study: Any) -> None:
    made = study(lambda factors, repetition: [10.0] * 60, repetitions=1)
    claim = {"metric": "success", "compare": {"way": ["fork", "kept-alive"]}, "expect": "= 1 within 10 %"}
    found = claims.judge(made, claim)
    assert (found["verdict"], found["value"]) == ("confirmed", 1.0)
    assert 0.9 < found["low"] < 0.99 and 1.01 < found["high"] < 1.1


def test_one_repetition_of_equal_runs_is_drawn_by_chance(study: Any) -> None:
    """Two runs that happened to give the same times are two samples, not one."""
    times = [100.0 + number * 37 % 60 for number in range(60)]
    made = study(lambda factors, repetition: times, repetitions=1)
    found = claims.judge(made, {"metric": "mean_ms", "compare": {"way": ["fork", "kept-alive"]}, "expect": "> 2"})
    assert found["low"] < 0.98 and found["high"] > 1.02


def test_one_repetition_of_a_derived_metric(study: Any) -> None:
    made = study(
        lambda factors, repetition: [10.0 + number % 5 for number in range(40)], {"users": [1]}, repetitions=1,
        derived={"share": "=outside_mean_ms / mean_ms"},
    )  # fmt: skip
    found = claims.judge(made, {"metric": "share", "expect": "< 0.5"})
    assert (found["value"], found["low"], found["high"]) == pytest.approx((0.2, 0.2, 0.2)), "drawn alike"


@pytest.mark.parametrize(
    ("claim", "why"),
    [
        ({"metric": "mean_ms", "where": {"users": 1, "way": "fork"}, "compare": {"way": ["fork", "kept-alive"]}}, None),
        ({"metric": "asked_per_s"}, "no run gave asked"),
        ({"metric": "failed", "compare": {"way": ["fork", "kept-alive"]}}, "a figure of 0 has no ratio"),
        ({"metric": "mean_ms", "where": {"users": 9}}, "this study has no point with users=9"),
        ({"metric": "mean_ms", "where": {"users": 1}, "trend": "users"}, "not two levels of users"),
    ],
)
def test_what_cannot_be_judged_says_why(study: Any, claim: dict[str, Any], why: str | None) -> None:
    found = claims.judge(study(by_way), {**claim, "expect": "> 1"})
    if why is None:
        assert found["verdict"] == "confirmed"
    else:
        assert (found["verdict"], found["value"]) == ("undecided", None)
        assert why in found["sentence"]


def served(limit: float, wobble: float = 0.0) -> Callable[[Mapping[str, Any], int], list[float]]:
    """Runs of one frame after the other whose served rate follows users up to a limit."""
    return lambda factors, repetition: [1000 / min(factors["users"], limit) * (1 + wobble * repetition)] * 4


@pytest.mark.parametrize(("limit", "expect", "verdict"), [
    (2, "< 8", "confirmed"), (2, "> 4", "not confirmed"), (99, "< 8", "not confirmed"), (99, "> 8", "confirmed"),
    (2, "> 2", "confirmed"), (2, ">= 3", "undecided"), (99, "> 100", "undecided"),  # between and beyond those tried
])  # fmt: skip
def test_a_knee(study: Any, limit: float, expect: str, verdict: str) -> None:
    made = study(served(limit, 0.001), {"users": [1, 2, 4, 8]})
    found = claims.judge(made, {"metric": "served_per_s", "knee": {"over": "users"}, "expect": expect})
    assert found["verdict"] == verdict
    assert found["value"] == (4 if limit == 2 else None)
    assert found["sentence"].startswith("Served, knee over users: it f")


def test_a_knee_of_each_line_has_to_meet_it(study: Any) -> None:
    def both(factors: Mapping[str, Any], repetition: int) -> list[float]:
        return served(2 if factors["way"] == "fork" else 99)(factors, repetition)

    made = study(both, {"users": [1, 2, 4], "way": BOTH["way"]})
    found = claims.judge(made, {"metric": "served_per_s", "knee": {"over": "users"}, "expect": "<= 4"})
    assert found["verdict"] == "not confirmed"
    assert "way=fork: it follows up to 2, and falls short from 4 on" in found["sentence"]
    assert "way=kept-alive: it follows up to 4, the largest users tried" in found["sentence"]


@pytest.mark.parametrize(
    ("verdicts", "all_", "any_"),
    [
        (["confirmed", "confirmed"], "confirmed", "confirmed"),
        (["confirmed", "undecided"], "undecided", "confirmed"),
        (["not confirmed", "confirmed"], "not confirmed", "confirmed"),
        (["not confirmed", "undecided"], "not confirmed", "undecided"),
        (["not confirmed", "not confirmed"], "not confirmed", "not confirmed"),
        (["undecided"], "undecided", "undecided"),
    ],
)
def test_a_hypothesis_of_several_claims(verdicts: list[str], all_: str, any_: str) -> None:
    assert claims.whole_verdict(verdicts, one_is_enough=False) == all_
    assert claims.whole_verdict(verdicts, one_is_enough=True) == any_
