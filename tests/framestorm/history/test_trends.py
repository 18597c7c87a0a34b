"""Runs grouped by plan, target and load, and the changes of their figures."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from framestorm.history.headlines import read_headline
from framestorm.history.trends import trends
from framestorm.model.headline import Headline
from framestorm.stats.estimate import Estimate
from tests.framestorm.history.conftest import DAY_MS, START_MS, MakeRun


def medians(n: int, level: float = 20.0) -> list[float]:
    return [float(each) for each in level * (1 + 0.01 * np.random.default_rng(3).normal(size=n))]


def test_a_planted_step_is_found_with_its_run(make_run: MakeRun) -> None:
    figures = [*medians(20), *(each * 1.05 for each in medians(10))]
    runs = [read_headline(make_run(f"run-{day:02}", each, day)) for day, each in enumerate(figures)]
    (trend,) = trends(runs)
    assert {change.metric for change in trend.changes} == {"median_ms", "p95_ms", "p99_ms"}
    for change in trend.changes:
        assert (change.first, change.last, change.is_worse) == (20, 29, True)
        assert 1.04 < change.after / change.before < 1.06
    assert trend.runs[20].run == "run-20"
    assert trend.last_changes()["median_ms"].text.startswith("+")


def of_medians(make_run: MakeRun, figures: Sequence[float]) -> list[Headline]:
    """Runs whose medians are these, with no other figure."""
    run = read_headline(make_run("run"))
    return [
        replace(run, run=f"run-{day:03}", started_ms=START_MS + day * DAY_MS, figures={"median_ms": Estimate(each)})
        for day, each in enumerate(figures)
    ]


def test_a_level_has_the_runs_alone_in_which_changes_are_sought(make_run: MakeRun) -> None:
    """Those before the last 200 had other levels, which say nothing of the last change."""
    (trend,) = trends(of_medians(make_run, [*medians(250, 90.0), *medians(180), *medians(20, 25.0)]))
    change = trend.last_changes()["median_ms"]
    assert (change.begin, change.first, change.last) == (250, 430, 449)
    assert (change.before, change.after) == (pytest.approx(20.0, rel=0.01), pytest.approx(25.0, rel=0.01))


def test_levels_of_the_same_median_are_told_by_their_means(make_run: MakeRun) -> None:
    """As success rates: where one run in three has errors, most have none as before."""
    (trend,) = trends(of_medians(make_run, [*[20.0] * 40, *[20.0, 32.0, 20.0] * 13]))
    change = trend.last_changes()["median_ms"]
    assert (change.before, change.after) == (20.0, pytest.approx(24.0, rel=0.05))
    assert change.is_worse and change.text.startswith("+")


def test_a_level_that_only_varies_more_is_no_other(make_run: MakeRun) -> None:
    (trend,) = trends(of_medians(make_run, [*[20.0] * 30, *[10.0, 30.0] * 15]))
    assert trend.changes == []


def test_a_partial_run_does_not_count(make_run: MakeRun) -> None:
    figures = [*medians(12), 500.0, 500.0, 500.0]
    words = ["pass"] * 12 + ["partial"] * 3
    made = [
        make_run(f"run-{day}", each, day, word) for day, (each, word) in enumerate(zip(figures, words, strict=True))
    ]
    (trend,) = trends([read_headline(each) for each in made])
    assert (len(trend.runs), trend.changes) == (15, [])


def test_the_group_of_the_latest_run_comes_first(make_run: MakeRun) -> None:
    made = [make_run("a", day=0), make_run("b", day=3, plan="shop.jmx"), make_run("c", day=1)]
    by_plan = [(trend.key.plan, [run.run for run in trend.runs]) for trend in trends(map(read_headline, made))]
    assert by_plan == [("shop.jmx", ["b"]), ("requests.jmx", ["a", "c"])]


def test_an_ignored_setting_keeps_no_runs_apart_and_another_does(make_run: MakeRun) -> None:
    given = [{"headers": f"X-Commit: {n}", "body": body} for n, body in enumerate("aab")]
    runs = [read_headline(make_run(f"run-{day}", day=day, given=each)) for day, each in enumerate(given)]
    assert len(trends(runs)) == 3
    by_settings = {trend.key.settings: len(trend.runs) for trend in trends(runs, ["headers"])}
    assert by_settings == {("body=a",): 2, ("body=b",): 1}
