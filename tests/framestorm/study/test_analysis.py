from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scipy import stats

from framestorm.judge.knees import scalability
from framestorm.judge.point_figures import summarise_points
from framestorm.model.files import dump
from framestorm.model.study_summary import PointRun
from framestorm.points.folder import StudyFolder
from framestorm.points.study_results import StudyResults
from framestorm.stats.shares import wilson
from framestorm.study.summary import _level, summarise
from tests.framestorm.study.conftest import FakeResult, frames_of, timed_out

Make = Callable[..., StudyResults]


@pytest.fixture
def make(fake_study: Any) -> Make:
    def study(simulate: Callable[[Any, int], Any], **content: Any) -> StudyResults:
        folder: Path = fake_study.make(simulate, content)
        return StudyResults(StudyFolder(folder))

    return study


def test_means_over_repetitions_with_students_interval(make: Make) -> None:
    study = make(lambda point, repetition: FakeResult(frames_of([90 + 10.0 * repetition**2] * 3)))
    figure = summarise_points(study)[0].figures["mean_ms"]
    half = stats.t.ppf(0.975, 2) * stats.sem([100.0, 130.0, 180.0])
    assert figure.value == pytest.approx(410 / 3)
    assert (figure.low, figure.high) == pytest.approx((410 / 3 - half, 410 / 3 + half), rel=1e-9)
    assert (figure.n, figure.bound) == (3, "exact")
    assert figure.method.startswith("Student")


def test_an_interval_ends_where_the_metric_does(make: Make) -> None:
    def simulate(point: Any, repetition: int) -> Any:
        frames = frames_of([10.0**repetition] * 4, worker="a")
        frames[0]["worker"] = "b" if repetition == 2 else "a"
        return FakeResult(frames)

    figures = summarise_points(make(simulate, repetitions=2))[0].figures
    mean, share = figures["mean_ms"], figures["worker_share_max"]
    assert (mean.value, mean.low) == (55.0, 0.0)
    assert mean.high == pytest.approx(55 + stats.t.ppf(0.975, 1) * 45)
    assert (share.value, share.low, share.high) == (0.875, 0.0, 1.0)


@pytest.mark.parametrize(("time_ms", "ends"), [(4.0, (3, 5)), (4.25, (4.25, 4.25))])
def test_whole_milliseconds_that_repeat_are_not_exact(make: Make, time_ms: float, ends: tuple[float, float]) -> None:
    figure = summarise_points(make(lambda point, repetition: FakeResult(frames_of([time_ms] * 3))))[0].figures[
        "mean_ms"
    ]
    assert (figure.low, figure.value, figure.high) == pytest.approx((ends[0], time_ms, ends[1]))


@pytest.mark.parametrize(("failing", "widest"), [(range(5), True), (range(0, 100, 20), False)])
def test_failures_in_a_cluster_say_less_than_single_ones(make: Make, failing: range, widest: bool) -> None:
    def simulate(point: Any, repetition: int) -> Any:
        frames = frames_of([10.0] * 100)
        for number in failing:
            frames[number] |= {"ok": "false", "cause": "status-500"}
        return FakeResult(frames)

    figure = summarise_points(make(simulate, repetitions=1))[0].figures["success"]
    low, high = wilson(95, 100) or (0, 0)
    assert figure.value == 0.95
    assert ((figure.low, figure.high) == (low, high)) is not widest
    assert figure.low <= low and high <= figure.high


def test_one_repetition_has_intervals_within_the_run_and_says_so(make: Make) -> None:
    times = [100.0 + 7 * (number * 37 % 10) for number in range(100)]
    study = make(lambda point, repetition: FakeResult(frames_of(times)), repetitions=1)
    figures = summarise_points(study)[0].figures
    for name in ("mean_ms", "median_ms", "handler_mean_ms"):
        assert figures[name].method.startswith("block bootstrap within one run, 95 %")
        assert figures[name].low <= figures[name].value <= figures[name].high
    assert figures["mean_ms"].low < figures["mean_ms"].high
    assert (figures["served_per_s"].low, figures["served_per_s"].method) == (None, "one run")


def test_time_outs_mark_figures_and_give_a_restricted_mean(make: Make) -> None:
    def simulate(point: Any, repetition: int) -> Any:
        frames = frames_of([10.0, 20.0, 30.0, 1000.0 + repetition])
        return FakeResult([*frames[:3], timed_out(frames[3])])

    point = summarise_points(make(simulate))[0]
    assert point.figures["mean_ms"].bound == "lower"
    assert point.figures["median_ms"].bound == "exact"
    assert point.figures["sd_ms"].bound == "unsure"
    assert point.figures["mean_ms"].high is None and point.figures["sd_ms"].low is None
    assert point.restricted_mean.mean.value == pytest.approx(1061 / 4)
    assert point.restricted_mean.up_to_ms == 1001.0
    assert point.counts["timed_out"] == 3


def test_states_and_causes_of_points(make: Make) -> None:
    def simulate(point: Any, repetition: int) -> Any:
        users = point.factors["users"]
        if users == 1 or (users == 2 and repetition == 1):
            return FakeResult(frames_of([10.0]))
        if users == 4:
            return None
        return FakeResult(reason=f"no answer from {'nobody' if users == 3 else 'the gateway'}")

    study = make(simulate, factors={"users": [1, 2, 3, 4]})
    points = summarise_points(study)
    assert [point.state for point in points] == ["complete", "partial", "failed", "missing"]
    assert [(point.complete, point.failed) for point in points] == [(3, 0), (1, 2), (0, 3), (0, 0)]
    assert points[2].causes == ["no answer from nobody"]
    assert points[2].figures == {}
    second = points[1].runs[1]
    assert second == PointRun(2, second.run, "failed", "no answer from the gateway", 6, None, ())


def test_grave_warnings_of_the_runs_are_counted(make: Make) -> None:
    def simulate(point: Any, repetition: int) -> Any:
        doubts = ["saturated"] if repetition < 3 else []
        return FakeResult(frames_of([10.0]), {"doubts": doubts})

    study = make(simulate)
    assert [point.doubts for point in summarise_points(study)] == [{"saturated": 2}] * 2
    assert summarise(study).progress.doubts == {"saturated": 4}


def test_the_scalability_law_and_the_knee_where_users_vary(make: Make) -> None:
    """Served: 10 N / (1 + 0.05 (N - 1)), but for rounding; from 3 users on that is less than 95 % of 10 N."""

    def simulate(point: Any, repetition: int) -> Any:
        users = point.factors["users"]
        return FakeResult(frames_of([100 * (1 + 0.05 * (users - 1)) / users] * 10))

    found = scalability(make(simulate, factors={"users": [1, 2, 3, 4, 8]}))
    assert len(found) == 1
    law = found[0].usl
    assert law.lambda_per_s.value == pytest.approx(10, rel=1e-5)
    assert law.sigma.value == pytest.approx(0.05, rel=1e-4)
    assert law.kappa.value == pytest.approx(0, abs=1e-5)
    assert (found[0].knee.at, found[0].factors) == (3.0, {})


def test_levels_are_those_of_the_points_and_of_published_results(fake_study: Any) -> None:
    published = "users,way,mean_ms\n2.0,fork,1\n8,7,1\n,fork,1\n"
    content = {"factors": {"users": [2, 1], "way": {"fork": {}}}, "published": "published.csv"}
    folder = fake_study.make(lambda point, repetition: FakeResult(frames_of([10.0])), content, published=published)
    summary = summarise(StudyResults(StudyFolder(folder)))
    assert summary.levels == {"users": [1, 2, 8], "way": ["fork", "7"]}
    assert summary.levels_run == {"users": [2, 1], "way": ["fork"]}
    assert summary.published is not None
    assert [row.factors for row in summary.published] == [
        {"users": 2, "way": "fork"}, {"users": 8, "way": "7"}, {"way": "fork"},
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["nan", "-inf", "1e999", "9" * 400])
def test_published_numbers_that_are_not_finite_are_none(text: str, fake_study: Any) -> None:
    published = f"users,mean_ms,p95_ms\n1,{text},5\n{text},1,5\n"
    content = {"published": "published.csv"}
    folder = fake_study.make(lambda point, repetition: FakeResult(frames_of([10.0])), content, published=published)
    summary = summarise(StudyResults(StudyFolder(folder)))
    first, second = summary.published or ()
    assert (set(first.figures), second.factors) == ({"p95_ms"}, {"users": text})
    assert dump(summary)


def test_published_levels_that_are_true_or_false() -> None:
    assert _level("true", (False, True)) is True
    assert _level("1", (False, True)) is not True


def test_times_by_index_share_points_where_there_are_many(make: Make) -> None:
    """401 samples in points of two; a timeout counts with the time waited, an error not at all."""
    frames = frames_of([1000.0, *[10.0] * 400])
    frames[:2] = timed_out(frames[0]), frames[1] | {"ok": "false", "cause": "status-500"}
    chart = {"title": "By frame", "kind": "per-frame", "rows": "users"}
    study = make(lambda point, repetition: FakeResult(frames), factors={"users": [1]}, repetitions=2, charts=[chart])
    (cell,) = summarise(study).by_index[0]
    assert (cell.panel, cell.row, cell.runs, cell.step, cell.timed_out) == (None, 1, 2, 2, 2)
    assert cell.bands["rtt_ms"].x == list(range(0, 401, 2)) and cell.bands["rtt_ms"].mid[:2] == [1000, 10]
    assert cell.bands["handler_ms"].x == list(range(2, 401, 2)) and set(cell.bands["handler_ms"].high) == {8}
