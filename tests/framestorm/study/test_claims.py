"""Claims on made-up figures whose answers are worked out by hand, or by scipy."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from scipy import stats

from framestorm.model.expectation import whole_verdict
from framestorm.model.study_summary import Basis, EffectSize
from framestorm.points.folder import Point, StudyFolder
from framestorm.points.results_csv import write_rows
from framestorm.points.study_results import StudyResults
from framestorm.stats.evidence import of_shares
from framestorm.stats.shares import wilson
from tests.framestorm.compare.conftest import compare
from tests.framestorm.study.conftest import BOTH, FakeResult, FakeStudy, frames_of, judge, timed_out

# Mean response times in ms by users, and factors by which the repetitions differ.
FORK, KEPT = {1: 400.0, 2: 900.0}, {1: 10.0, 2: 15.0}
SHAKE = (1.0, 1.1, 0.95)


def by_way(factors: Mapping[str, Any], repetition: int) -> float:
    if factors["way"] == "fork":
        return FORK[factors["users"]] * SHAKE[repetition - 1]
    return KEPT[factors["users"]]


def student(values: list[float]) -> tuple[float, float, float]:
    mean, half = sum(values) / len(values), stats.t.ppf(0.975, len(values) - 1) * stats.sem(values)
    return mean, mean - half, mean + half


def few_fail(factors: Mapping[str, Any], repetition: int) -> list[float | None]:
    fails = factors["way"] == "fork" and repetition == 1
    return [by_way(factors, repetition)] * 18 + [None if fails else 10.0] * 2


@pytest.mark.parametrize(
    ("means", "metric", "as_", "users"),
    [
        (by_way, "mean_ms", "ratio", [1, 2]),
        (lambda *at: by_way(*at) + 0.123, "mean_ms", "ratio", [1, 2]),
        (lambda *at: by_way(*at) + 0.123, "mean_ms", "difference", [1]),
        (few_fail, "success", "difference", [1, 2]),
    ],
)
def test_a_claim_is_what_a_comparison_of_the_two_levels_says(
    study: Any, tmp_path: Path, means: Any, metric: str, as_: str, users: list[int]
) -> None:
    made = study(means, {**BOTH, "users": users}, metrics=[metric])
    answer = judge(made, {"metric": metric, "compare": {"way": ["fork", "kept-alive"]}, "as": as_, "expect": "> 0"})
    write_rows(made.folder, made.record, made.rows)
    _, compared = compare(tmp_path, made.folder, "--factor", "way=kept-alive,fork")
    (contrast,) = (each for each in compared["comparisons"][0]["overall"] if each["metric"] == metric)
    change = contrast[as_]
    assert answer.low is not None and (change["value"], change["low"], change["high"]) == pytest.approx(
        (answer.value, answer.low, answer.high), rel=1e-9
    )


def test_a_ratio_of_one_pair(study: Any) -> None:
    claim = {"metric": "mean_ms", "where": {"users": 1}, "compare": {"way": ["fork", "kept-alive"]}, "expect": "> 2"}
    answer = judge(study(by_way), claim)
    mean, low, high = student([math.log(40 * shake) for shake in SHAKE])
    assert answer.value == pytest.approx(math.exp(mean), rel=1e-9)
    assert (answer.low, answer.high) == pytest.approx((math.exp(low), math.exp(high)), rel=1e-9)
    assert (answer.verdict, answer.n, answer.kind) == ("confirmed", 3, "ratio")
    assert answer.effect == EffectSize("Cliff's delta", "samples", 1.0, "large")
    assert answer.sentence == (
        "fork against kept-alive at users=1, mean response time: 40.6 times [33.7, 48.8] "
        "(95 % confidence interval, 3 repetitions); expected > 2. Of two samples, one of each side, "
        "that of the first is the larger in 100\u00a0% of cases (Cliff's delta 1.00, large)."
    )


def test_a_difference(study: Any) -> None:
    claim = {"metric": "mean_ms", "where": {"users": 1}, "compare": {"way": ["fork", "kept-alive"]}, "as": "difference"}
    answer = judge(study(by_way), {**claim, "expect": "< 300"})
    mean, low, high = student([400 * shake - 10 for shake in SHAKE])
    assert (answer.value, answer.low, answer.high) == pytest.approx((mean, low, high))
    assert answer.verdict == "rejected"
    assert "397\u00a0ms [" in answer.sentence and "; expected < 300 ms." in answer.sentence


def test_a_trend(study: Any) -> None:
    made = study(lambda factors, repetition: 50 + 7 * repetition * factors["users"], {"users": [1, 2, 5]})
    answer = judge(made, {"metric": "mean_ms", "trend": "users", "expect": "> 0"})
    mean, low, high = student([7.0, 14.0, 21.0])
    assert (answer.value, answer.low, answer.high) == pytest.approx((mean, low, high))
    assert answer.verdict == "inconclusive", "three slopes so far apart"
    assert answer.sentence.endswith("; expected > 0.")


@pytest.mark.parametrize(("expect", "verdict"), [("> 3", "inconclusive"), ("> 1.5", "confirmed")])
def test_whole_milliseconds_that_repeat_are_not_exact(study: Any, expect: str, verdict: str) -> None:
    """8 ms against 2, in every repetition: anything from 7 : 3 to 9 : 1."""
    made = study(lambda factors, repetition: 8 if factors["way"] == "fork" else 2, BOTH)
    answer = judge(made, {"metric": "mean_ms", "compare": {"way": ["fork", "kept-alive"]}, "expect": expect})
    assert answer.value == pytest.approx(4)
    assert (answer.low, answer.high) == pytest.approx((7 / 3, 9 / 1))
    assert answer.verdict == verdict


def test_a_time_of_a_millisecond_leaves_the_end_open_that_it_hides(study: Any) -> None:
    """8 ms against 1, which may be next to nothing: 7 : 2 at least."""
    made = study(lambda factors, repetition: 8 if factors["way"] == "fork" else 1, BOTH)
    answer = judge(made, {"metric": "mean_ms", "compare": {"way": ["fork", "kept-alive"]}, "expect": "> 3"})
    assert (answer.low, answer.high, answer.verdict) == (pytest.approx(7 / 2), None, "confirmed")


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
    answer = judge(made, claim)
    assert (answer.low, answer.high) == pytest.approx((0, 0), abs=1e-9)


def test_a_trend_of_a_ratio(study: Any) -> None:
    """The ratio of fork to kept alive falls by a tenth for each user, exactly."""

    def means(factors: Mapping[str, Any], repetition: int) -> float:
        return 1000.3 * SHAKE[repetition - 1] * (0.9 ** factors["users"] if factors["way"] == "fork" else 1)

    made = study(means, {"users": [1, 2, 3, 4], "way": BOTH["way"]})
    claim = {"metric": "mean_ms", "compare": {"way": ["fork", "kept-alive"]}, "trend": "users", "expect": "< 0"}
    answer = judge(made, claim)
    assert answer.value == pytest.approx(-10)
    assert (answer.low, answer.high) == pytest.approx((-10, -10))
    assert (answer.verdict, answer.kind) == ("confirmed", "trend of the ratio")


def test_equal_figures_are_equal(study: Any) -> None:
    """Whatever rounding makes of a sum of them."""
    made = study(lambda factors, repetition: 0.1, {"users": [1, 2, 3, 4, 5, 6, 7]})
    for claim in ({"trend": "users", "expect": "> 0"}, {"trend": "users", "expect": "< 0"}):
        assert judge(made, {"metric": "mean_ms", **claim}).verdict == "rejected"
    exact = judge(made, {"metric": "mean_ms", "expect": "= 0.1 within 0.000001 %"})
    assert exact.verdict == "confirmed" and exact.sentence.endswith("; expected = 0.1 within 0.000001 %.")


def some_failed(n: int, failed: int) -> list[float | None]:
    return [None] * failed + [10.0] * (n - failed)


def test_success_that_never_failed(study: Any) -> None:
    made = study(lambda factors, repetition: [10.0] * 50, {"users": [1]})
    answer = judge(made, {"metric": "success", "expect": "< 1"})
    assert (answer.low, answer.high) == pytest.approx(wilson(150, 150))
    assert answer.verdict == "rejected", "none failed"
    for expect in ("> 0.99", "< 0.99", "= 0.98 within 1 %"):
        assert judge(made, {"metric": "success", "expect": expect}).verdict == "inconclusive", "too few samples"


def test_success_is_no_surer_than_the_repetitions_agree(study: Any) -> None:
    made = study(lambda factors, repetition: some_failed(400, 160 * (repetition == 3)), {"users": [1]}, repetitions=5)
    answer = judge(made, {"metric": "success", "expect": "< 0.95"})
    assert (answer.value, answer.low, answer.high) == pytest.approx((0.92, student([1, 1, 0.6, 1, 1])[1], 1))
    assert answer.verdict == "inconclusive"


def test_success_of_repetitions_that_agree_is_no_surer_than_the_samples(study: Any) -> None:
    made = study(lambda factors, repetition: some_failed(20, factors["way"] == "fork"))
    claim = {"metric": "success", "compare": {"way": ["fork", "kept-alive"]}, "where": {"users": 1}}
    ratio = judge(made, {**claim, "expect": "< 1"})
    apart = judge(made, {**claim, "as": "difference", "expect": "< 0"})
    assert (ratio.verdict, apart.verdict, ratio.effect) == ("inconclusive", "inconclusive", None)
    low, high = of_shares([(1, 0.95, 60), (-1, 1, 60)]).interval()
    assert (apart.low, apart.value, apart.high) == pytest.approx((low, -0.05, high))
    assert (ratio.low, ratio.high) == pytest.approx((1 + low, 1 + high), abs=0.01)


def test_a_claim_is_about_the_levels_that_were_measured(study: Any) -> None:
    """Of a part of a study, as with --quick and --only."""
    made = study(lambda factors, repetition: 10.0 + repetition, {"users": [2, 3], "way": {"fork": {}}})
    answer = judge(made, {"metric": "mean_ms", "where": {"users": [1, 2, 3, 4], "way": "fork"}, "expect": "> 1"})
    assert answer.verdict == "confirmed"
    assert answer.sentence.startswith("Mean response time at users=2 or 3, way=fork: ")


def test_a_count_of_repetitions_that_agree_is_no_surer_than_the_samples(study: Any) -> None:
    """Two samples in each of three runs, of which none fails at one user, and one at two users."""
    made = study(lambda factors, _: [10.0, 10.0 if factors["users"] == 1 else None])
    for where, expect, value in ((1, "< 0.7", 0.0), (2, "> 0.5", 1.0)):
        claim = {"metric": "failed", "where": {"users": where, "way": "fork"}, "expect": expect}
        answer = judge(made, claim)
        assert (answer.verdict, answer.value) == ("inconclusive", value)
        assert answer.low is not None and answer.high is not None and answer.high > max(value, 0.7)
    claim = {"metric": "failed", "compare": {"users": [2, 1]}, "as": "difference", "expect": "> 0.9"}
    assert judge(made, claim).verdict == "inconclusive"
    of_success = judge(made, {**claim, "metric": "success", "expect": "< 0"}).sentence
    assert "\N{MINUS SIGN}50.0\u00a0points [" in of_success and of_success.count("points") == 5, of_success
    of_success = judge(made, {**claim, "metric": "success", "expect": "< -0.05"}).sentence
    assert "; expected < \N{MINUS SIGN}5\u00a0points." in of_success, of_success
    of_one = judge(made, {"metric": "success", "expect": "= 0.9 within 3 %"}).sentence
    assert of_one.endswith("; expected = 90\u00a0% within 3 %."), of_one


def test_success_over_points_counts_each_alike(study: Any) -> None:
    """However many samples it has."""

    def means(factors: Mapping[str, Any], repetition: int) -> list[float | None]:
        return some_failed(10 * factors["users"], 320 if factors["users"] == 64 else 0)

    answer = judge(study(means, {"users": [1, 2, 4, 64]}), {"metric": "success", "expect": "> 0.8"})
    assert (answer.value, answer.verdict) == (pytest.approx(0.875), "confirmed")


def test_a_claim_on_times_says_how_many_samples_had_none(study: Any) -> None:
    """A limit answers some quickly by refusing the others."""
    made = study(lambda factors, repetition: some_failed(20, 15 if factors["way"] == "fork" else 0))
    claim = {"compare": {"way": ["fork", "kept-alive"]}, "expect": "< 2"}
    (note,) = judge(made, {"metric": "mean_ms", **claim}).notes
    assert "users=1, way=fork is only 25.0\u00a0%" in note and "1 more point" in note
    assert judge(made, {"metric": "mean_ms", "where": {"way": "kept-alive"}, "expect": "< 20"}).notes == []
    assert judge(made, {"metric": "success", **claim}).notes == []


@pytest.mark.parametrize(
    ("cut", "expect", "verdict", "is_open"),
    [
        (["fork"], "> 5", "confirmed", (False, True)),
        (["fork"], "< 50", "inconclusive", (False, True)),
        (["kept-alive"], "< 50", "confirmed", (True, False)),
        (["kept-alive"], "> 50", "rejected", (True, False)),
        (["fork", "kept-alive"], "> 5", "inconclusive", (True, True)),
    ],
)
def test_timeouts_are_told(study: Any, cut: list[str], expect: str, verdict: str, is_open: tuple[bool, bool]) -> None:
    made = study(lambda factors, repetition: 100.0 if factors["way"] == "fork" else 10.0)
    for row in made.rows:
        if row.point.factors["way"] in cut:
            row.bounds["mean_ms"] = "lower"
    answer = judge(made, {"metric": "mean_ms", "compare": {"way": ["fork", "kept-alive"]}, "expect": expect})
    assert (answer.verdict, (answer.low is None, answer.high is None)) == (verdict, is_open)
    assert "timeouts" in answer.notes[0]


def test_timeouts_of_the_point_that_is_compared_with_make_a_derived_metric_unsure(fake_study: FakeStudy) -> None:
    def simulate(point: Point, repetition: int) -> FakeResult:
        frames = frames_of([100.0 / point.factors["users"]] * 20)
        return FakeResult([timed_out(each) for each in frames] if point.factors["users"] == 1 else frames)

    of_one = {"metric": "mean", "against": {"users": 1}, "as": "inverse_ratio"}
    derived = {"speed_up": of_one, "doubled": "=2 * speed_up"}
    rows = StudyResults(StudyFolder(fake_study.make(simulate, {"derived": derived}))).rows
    unsure = {row.point.factors["users"]: {"speed_up", "doubled"} & row.bounds.keys() for row in rows}
    assert unsure == {1: set(), 2: {"speed_up", "doubled"}}


@pytest.mark.parametrize(("expect", "trend"), [("<= 2", None), (">= 2", None), (">= 1", "users"), ("<= 1", "users")])
def test_the_last_digit_of_a_sum_decides_nothing(study: Any, expect: str, trend: str | None) -> None:
    made = study(lambda factors, repetition: [10.0] * factors["users"], {"users": [1, 2, 3]})
    claim = {"metric": "n", "expect": expect} | ({"trend": trend} if trend else {})
    assert judge(made, claim).verdict == "confirmed"


def test_a_spread_with_timeouts_is_left_out_and_named(study: Any) -> None:
    made = study(lambda factors, repetition: [10.0, 10.0 + factors["users"] * repetition], {"users": [1, 2]})
    for row in made.rows:
        if row.point.factors["users"] == 2:
            row.bounds["sd_ms"] = "unsure"
    answer = judge(made, {"metric": "sd_ms", "expect": "> 0"})
    assert answer.cells == ["users=1"]
    assert len(answer.notes) == 1
    assert "users=2" in answer.notes[0] and "timeouts" in answer.notes[0]


def test_points_without_figures_are_named_and_leave_it_inconclusive(study: Any) -> None:
    def means(factors: Mapping[str, Any], repetition: int) -> float | str:
        return "no gateway" if factors == {"users": 2, "way": "fork"} else by_way(factors, repetition)

    answer = judge(study(means), {"metric": "mean_ms", "compare": {"way": ["fork", "kept-alive"]}, "expect": "> 2"})
    assert answer.verdict == "inconclusive"
    assert answer.low > 2, "what there is, is told all the same"
    assert answer.notes[0] == "No figure of users=2: the claim stays inconclusive."


def test_a_missing_run_does_not_tilt_its_repetition(study: Any) -> None:
    """The slow one of three points is missing in repetition 2: filled in by point and repetition, not left out."""
    base = {1: 10.0, 2: 20.0, 3: 90.0}

    def means(factors: Mapping[str, Any], repetition: int) -> float | None:
        users = factors["users"]
        return None if (users, repetition) == (3, 2) else base[users] + 2 * repetition

    answer = judge(study(means, {"users": [1, 2, 3]}), {"metric": "mean_ms", "expect": "> 40"})
    assert answer.value == pytest.approx(44, abs=0.01)
    assert answer.high - answer.low == pytest.approx(2 * 2 * stats.t.ppf(0.975, 2) / math.sqrt(3), rel=0.01)
    assert "1 missing value of 9" in answer.notes[0]


def test_a_point_seen_only_in_what_is_left_out_has_no_figure(study: Any) -> None:
    def means(factors: Mapping[str, Any], repetition: int) -> float | None:
        return 1000.0 if repetition == 3 else 100.3 + repetition if factors["users"] < 4 else None

    made = study(
        lambda factors, repetition: means(factors, repetition) if repetition < 3 or factors["users"] == 4 else None,
        {"users": [1, 2, 3, 4]},
    )
    answer = judge(made, {"metric": "mean_ms", "expect": "> 0"})
    assert (answer.value, answer.verdict) == (pytest.approx(101.8), "inconclusive")
    assert answer.notes[0] == "No figure of users=4: the claim stays inconclusive."


def test_a_ratio_beyond_all_bounds_has_an_open_end(study: Any) -> None:
    def means(factors: Mapping[str, Any], repetition: int) -> float:
        return 100.3 * (1 + (factors["way"] == "fork" and factors["users"] == 2 and repetition == 2))

    def tiny(factors: Mapping[str, Any], repetition: int) -> float:
        return means({**factors, "users": 2 if factors["sleep_s"] else 1}, repetition)

    made = study(tiny, {"sleep_s": [0, 0.005], "way": BOTH["way"]}, repetitions=2)
    claim = {"metric": "mean_ms", "compare": {"way": ["fork", "kept-alive"]}, "trend": "sleep_s", "expect": "> 0"}
    answer = judge(made, claim)
    assert (answer.high, answer.verdict) == (None, "inconclusive")


@pytest.mark.parametrize(
    "speed", [{"metric": "median_ms", "against": {"way": "kept-alive"}, "as": "ratio"}, "=median_ms - 2"]
)
def test_whole_milliseconds_are_not_exact_in_what_is_made_of_them(study: Any, speed: Any) -> None:
    made = study(lambda factors, repetition: 3 if factors["way"] == "fork" else 4, derived={"speed": speed})
    answer = judge(made, {"metric": "speed", "where": {"way": "fork"}, "expect": "< 1.5"})
    assert (answer.low, answer.high, answer.verdict) == (None, None, "inconclusive")
    assert any("whole milliseconds" in note for note in answer.notes)


def test_what_is_set_against_itself_is_exact(study: Any) -> None:
    speed = {"metric": "median_ms", "against": {"way": "fork"}, "as": "ratio"}
    made = study(lambda factors, repetition: 4, derived={"speed": speed})
    answer = judge(made, {"metric": "speed", "where": {"way": "fork"}, "expect": "= 1 within 1 %"})
    assert (answer.low, answer.high, answer.verdict) == (1, 1, "confirmed")


def test_a_repetition_that_has_hardly_begun_is_left_out(study: Any) -> None:
    made = study(
        lambda factors, repetition: None if repetition == 3 and factors["users"] > 1 else by_way(factors, repetition)
    )
    answer = judge(made, {"metric": "mean_ms", "compare": {"way": ["fork", "kept-alive"]}, "expect": "> 2"})
    assert answer.n == 2
    assert "repetition 3" in answer.notes[0]


@pytest.mark.parametrize(
    ("claim", "why"),
    [
        ({"metric": "mean_ms", "where": {"users": 1, "way": "fork"}, "compare": {"way": ["fork", "kept-alive"]}}, None),
        ({"metric": "asked_per_s"}, "no run has a value"),
        ({"metric": "failed", "compare": {"way": ["fork", "kept-alive"]}}, "a figure of 0 has no ratio"),
        ({"metric": "mean_ms", "where": {"users": 9}}, "at users=9: this study has no such point"),
        ({"metric": "mean_ms", "where": {"users": 1}, "trend": "users"}, "not two levels of users"),
    ],
)
def test_what_cannot_be_judged_says_why(study: Any, claim: dict[str, Any], why: str | None) -> None:
    answer = judge(study(by_way), {**claim, "expect": "> 1"})
    if why is None:
        assert answer.verdict == "confirmed"
    else:
        assert (answer.verdict, answer.value) == ("inconclusive", None)
        assert why in answer.sentence


def saturated_with_one_user(factors: Mapping[str, Any], repetition: int) -> dict[str, Any]:
    return {"doubts": ["saturated"]} if (factors["users"], repetition) == (1, 2) else {}


@pytest.mark.parametrize(
    ("claim", "basis"),
    [
        ({"metric": "mean_ms"}, Basis(11, 1, {"saturated": 2})),
        # The repetition with the failed run is left out.
        ({"metric": "mean_ms", "compare": {"way": ["fork", "kept-alive"]}}, Basis(8, 1, {"saturated": 2})),
        ({"metric": "mean_ms", "where": {"users": 1, "way": "fork"}}, Basis(3, 0, {"saturated": 1})),
        ({"metric": "mean_ms", "where": {"users": 2}}, Basis(4, 1)),
        # By its definition it is of the runs with one user too.
        ({"metric": "more", "where": {"users": 2, "way": "fork"}}, Basis(6, 0, {"saturated": 1})),
        ({"metric": "twice_more", "where": {"users": 2, "way": "fork"}}, Basis(6, 0, {"saturated": 1})),
        (
            {"metric": "served_per_s", "knee": {"over": "users"}, "where": {"way": "kept-alive"}},
            Basis(5, 1, {"saturated": 1}),
        ),
    ],
)
def test_what_the_runs_behind_a_claim_were_warned_of(study: Any, claim: dict[str, Any], basis: Basis) -> None:
    def means(factors: Mapping[str, Any], repetition: int) -> float | str:
        if (factors["users"], factors["way"], repetition) == (2, "kept-alive", 3):
            return "memory was full"
        return by_way(factors, repetition)

    derived = {"more": {"metric": "mean_ms", "against": {"users": 1}, "as": "ratio"}, "twice_more": "=2 * more"}
    made = study(means, summary=saturated_with_one_user, derived=derived)
    assert judge(made, {**claim, "expect": "> 0"}).basis == basis


@pytest.mark.parametrize(
    ("verdicts", "all_", "any_"),
    [
        (["confirmed", "confirmed"], "confirmed", "confirmed"),
        (["confirmed", "inconclusive"], "inconclusive", "confirmed"),
        (["rejected", "confirmed"], "rejected", "confirmed"),
        (["rejected", "inconclusive"], "rejected", "inconclusive"),
        (["rejected", "rejected"], "rejected", "rejected"),
        (["inconclusive"], "inconclusive", "inconclusive"),
    ],
)
def test_a_hypothesis_of_several_claims(verdicts: list[str], all_: str, any_: str) -> None:
    assert whole_verdict(verdicts) == all_
    assert whole_verdict(verdicts, one_is_enough=True) == any_
