import re
import shlex
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest

from framestorm import paths
from framestorm.model import files
from framestorm.model.study import Study
from framestorm.model.summary import Doubt, LabelSummary, Times
from framestorm.points.folder import Overrides, StudyFolder
from framestorm.stats.estimate import Estimate
from framestorm.study.design import reading
from framestorm.study.page.charts import study_charts
from framestorm.study.page.page import (
    DOUBTS,
    basis_sentences,
    build,
    exit_status,
    is_complete,
    page_html,
    repeating_command,
    terminal_text,
)
from framestorm.study.summary import StudySummary, read_published
from tests.framestorm.conftest import function_of, own_text
from tests.framestorm.study.conftest import PLAIN, FakeResult, frames_of

STUDIES = sorted(paths.STUDIES.glob("*/*.yml"))
every_study = pytest.mark.parametrize("file", STUDIES, ids=lambda file: f"{file.parent.name}-{file.stem}")
CONTENT: dict[str, Any] = {
    "factors": {"users": [1, 2, 4], "way": {"fork": {}, "kept-alive": {}}},
    "metrics": ["mean_ms", "p95_ms", "success", "served_per_s", "timed_out"],
    "hypotheses": [
        {
            "name": "forks are slow",
            "text": "A fork takes more than twice as long.",
            "published": "About ten times.",
            "claims": [{"metric": "mean_ms", "compare": {"way": ["fork", "kept-alive"]}, "expect": "> 2"}],
        },
        {"name": "failures", "text": "Frames fail.", "claims": [{"metric": "success", "expect": "< 1"}]},
        {"name": "unseen", "text": "Nobody knows.", "claims": [{"metric": "asked_per_s", "expect": "> 1"}]},
    ],
    "charts": [
        {"title": "Mean response time", "metric": "mean_ms", "x": "users", "lines": "way"},
        {"title": "Success by way", "metric": "success", "x": "users", "panels": "way", "log": "x"},
        {"title": "Served", "kind": "bars", "metric": "served_per_s", "x": "way", "lines": "users", "log": "y"},
        {"title": "Served by users", "metric": "served_per_s", "x": "users", "lines": "way"},
        {"title": "By frame", "kind": "per-frame", "rows": "way", "panels": "users"},
    ],
    "published": "published.csv",
    "published_from": "Somebody, somewhere.",
}
PUBLISHED = "way,users,mean_ms,was\nfork,1,9790,their words\nfork,4,10980,\n"


def simulate(point: Any, repetition: int) -> FakeResult:
    slow = 300.0 if point.factors["way"] == "fork" else 10.0
    return FakeResult(frames_of([slow + 5 * repetition + 3 * number for number in range(12)]))


def spread(point: Any, repetition: int) -> FakeResult:
    return FakeResult(frames_of([10.3 * repetition**3]))


@pytest.fixture
def made(fake_study: Any) -> Path:
    folder: Path = fake_study.make(simulate, CONTENT, published=PUBLISHED)
    build(folder)
    return folder


def load(folder: Path) -> StudySummary:
    return files.read(folder / "summary.json", StudySummary)


def test_runs_made_again_and_other_versions_are_said(made: Path) -> None:
    """As after a resumption elsewhere: a run that failed is made again, with another Java."""
    folder = StudyFolder(made)
    line = next(line for line in folder.lines().values() if line.state == "complete")
    assert (load(made).progress.repeated_runs, load(made).mixed) == (0, [])
    again = replace(line, run=f"{line.run}-retry-2")
    (made / line.run).rename(made / again.run)
    folder.append(replace(line, run=f"{line.run}-failed", state="failed", reason="memory was full"))
    folder.append(again)
    record = (made / again.run / "run.json").read_text()
    (made / again.run / "run.json").write_text(record.replace("17.0.12", "21.0.1"))
    build(made)
    summary, page = load(made), (made / "index.html").read_text()
    assert (summary.progress.repeated_runs, summary.progress.repeated_causes) == (2, ["memory was full"])
    assert summary.mixed == ["versions"]
    for words in ("They failed: memory was full.", "Not all runs have the same versions"):
        assert words in page
    text = terminal_text(summary, made / "index.html")
    assert "2 made again" in text and "warning: not all runs have the same versions" in text


def test_a_figure_that_some_runs_lack_is_said_to_be_of_the_others(fake_study: Any) -> None:
    """A run of which every sample failed has no response time, but a success rate."""

    def simulated(point: Any, repetition: int) -> FakeResult:
        frames = frames_of([10.0 + repetition])
        return FakeResult([frames[0] | {"ok": "false", "cause": "status-500"}] if repetition == 2 else frames)

    folder = fake_study.make(simulated)
    build(folder)
    page = (folder / "index.html").read_text()
    assert page.count("<small>of 2 of 3 runs</small>") == 2, "of each point the mean, not the success rate"


def test_warnings_of_runs_are_on_the_terminal_too(fake_study: Any) -> None:
    """Beside a hypothesis that is confirmed."""
    folder = fake_study.make(lambda *_: FakeResult(frames_of([10.0]), {"doubts": ["saturated"]}))
    assert "warning: in 6 of 6 runs the machine was saturated" in terminal_text(build(folder), folder / "index.html")


def test_without_charts_there_is_one_of_each_metric_over_the_factors_that_vary(fake_study: Any) -> None:
    factors = {"users": [1, 2], "way": {"fork": {}, "kept-alive": {}}, "frames": [3], "sleep_s": [0, 1]}
    folder = fake_study.make(lambda *_: FakeResult(frames_of([10.0])), {"factors": factors, "repetitions": 1})
    mean, success = study_charts(build(folder))
    assert (mean.title, success.title) == ("Mean response time", "Success rate")
    assert [entry["name"] for entry in mean.legend()] == ["fork", "kept-alive"]
    assert [note["text"] for note in mean.layout["annotations"]] == ["sleep 0\u00a0s", "sleep 1\u00a0s"]


def test_a_verdict_has_the_warnings_of_the_runs_that_decide_it(fake_study: Any) -> None:
    def some(point: Any, repetition: int) -> FakeResult:
        if point.factors["way"] == "fork" and repetition == 2:
            return FakeResult(reason="memory was full")
        doubts = ["saturated"] if point.factors == {"users": 4, "way": "fork"} else []
        return FakeResult(simulate(point, repetition).frames, {"doubts": doubts})

    claims = [
        {"metric": "mean_ms", "where": {"way": way, "users": users}, "expect": "> 1"}
        for way, users in (("fork", 4), ("kept-alive", 4))
    ]
    hypotheses = [{"name": str(n), "text": "It takes time.", "claims": [claim]} for n, claim in enumerate(claims)]
    folder = fake_study.make(some, CONTENT | {"hypotheses": hypotheses}, published=PUBLISHED)
    summary = build(folder)
    of_fork, of_kept = (
        (
            "In all 2 runs behind this figure the machine was saturated.",
            "1 run of these points failed, and the figure is of the others: if the load made them fail, it looks "
            "better than it is.",
        ),
        (),
    )
    assert [[*basis_sentences(each.claims[0].basis)] for each in summary.hypotheses] == [[*of_fork], [*of_kept]]
    page, text = (folder / "index.html").read_text(), terminal_text(summary, folder / "index.html")
    for sentence in of_fork:
        assert page.count(f'<span class="doubt">{sentence}</span>') == 1
        assert text.count(f"warning: {sentence}") == 1
    assert page.count("<small>read its warnings</small>") == 1


def test_made_of_the_summary_alone(made: Path) -> None:
    names = ("results.csv", "summary.json", "junit.xml", "index.html")
    before = {name: (made / name).read_bytes() for name in names}
    assert page_html(load(made)).encode() == before["index.html"]
    build(made)
    assert {name: (made / name).read_bytes() for name in names} == before


def test_answers_come_first(made: Path) -> None:
    summary = load(made)
    lines = terminal_text(summary, made / "index.html").splitlines()
    assert exit_status(summary) == 3 and lines[0] == "made-up: 18 of 18 runs complete."
    assert [line.split()[:2] for line in lines[1:-1:2]] == [
        ["confirmed", "forks"], ["rejected", "failures:"], ["inconclusive", "unseen:"],
    ]  # fmt: skip
    assert set(summary.verdicts.values()) == {1}
    assert "9.00 times [" in lines[2] and lines[-1].endswith("index.html")
    page = own_text((made / "index.html").read_text())
    places = [page.index(f"<h2>{title}</h2>") for title in ("Answers", "Charts", "All points", "What was run")]
    assert places == sorted(places)
    assert page.index('<p class="word">Confirmed</p>') < places[1]
    assert "About ten times." in page and "Quick:" not in page and "Not complete" not in page


@pytest.mark.parametrize(
    ("verdicts", "status"),
    [
        ({}, 0),
        ({"confirmed": 2}, 0),
        ({"confirmed": 1, "inconclusive": 1}, 5),
        ({"confirmed": 1, "rejected": 1, "inconclusive": 1}, 3),
    ],
)
def test_a_study_exits_by_its_hypotheses(made: Path, verdicts: dict[Any, int], status: int) -> None:
    whole = replace(load(made), verdicts={"confirmed": 0, "rejected": 0, "inconclusive": 0} | verdicts)
    assert exit_status(whole) == status
    states: dict[Any, int] = {"complete": 5, "partial": 1, "failed": 0, "missing": 0}
    assert exit_status(replace(whole, progress=replace(whole.progress, states=states))) == 4
    assert exit_status(replace(whole, progress=replace(whole.progress, complete_runs=0))) == 1


def test_a_failed_run_that_a_stop_rule_added_decides_the_exit_status(made: Path) -> None:
    folder = StudyFolder(made)
    line = next(iter(folder.lines().values()))
    folder.append(replace(line, repetition=4, run=f"{line.run}-4", state="failed", reason="it broke"))
    summary = build(made)
    assert exit_status(summary) == 4
    assert "18 of 18 runs complete, 1 failed." in terminal_text(summary, made)
    assert "Not complete" in (made / "index.html").read_text()


def test_each_kind_of_doubt_has_its_words() -> None:
    assert DOUBTS.keys() == {*get_args(Doubt)}


def test_junit_has_a_case_a_hypothesis(made: Path) -> None:
    suite = ET.fromstring((made / "junit.xml").read_text())[0]  # noqa: S314 - written just above
    cases = {each.get("name"): each for each in suite if each.get("classname") == "framestorm.study.made-up.hypothesis"}
    failures = {name: None if (of := case.find("failure")) is None else of.get("type") for name, case in cases.items()}
    assert failures == {"forks are slow": None, "failures": "rejected", "unseen": "inconclusive"}
    assert "9.00 times" in str(cases["forks are slow"].findtext("system-out"))
    assert str(cases["failures"].findtext("failure")).startswith("rejected: ")


def test_links_every_run_and_needs_nothing_from_outside(made: Path) -> None:
    page = own_text((made / "index.html").read_text())
    links = set(re.findall(r'href="([^"]+)"', page)) - {"data:,"}
    runs = {f"runs/{run.name}/index.html" for run in (made / "runs").iterdir()}
    assert {link.replace("%3D", "=").replace("%2C", ",") for link in links if link.startswith("runs/")} == runs
    assert all((made / link).exists() for link in links if not link.startswith("runs/"))
    assert not re.search(r"""["'(]//[a-z]|https?://""", page)


@pytest.mark.parametrize(
    ("repetitions", "status", "words"),
    [
        (2, 4, ["12 of 18 runs complete", "few repetitions and short runs; not for publication"]),
        (0, 1, ["Nothing was measured"]),
    ],
)
def test_unfinished_studies_say_so(fake_study: Any, repetitions: int, status: int, words: list[str]) -> None:
    def some(point: Any, repetition: int) -> Any:
        return simulate(point, repetition) if repetition <= repetitions else None

    folder = fake_study.make(some, {**CONTENT, "quick": {"repetitions": 3}}, quick=True, published=PUBLISHED)
    assert exit_status(build(folder)) == status
    page = (folder / "index.html").read_text()
    assert all(text in page for text in words)
    assert ET.fromstring((folder / "junit.xml").read_text())[0].get("skipped") == "6"  # noqa: S314


def test_failed_points_stay_with_their_cause(fake_study: Any) -> None:
    def some(point: Any, repetition: int) -> Any:
        if point.id == "users=4,way=fork" or (point.id == "users=2,way=fork" and repetition == 2):
            return FakeResult(reason="the gateway said <b>502</b> & no more")
        return simulate(point, repetition)

    folder = fake_study.make(some, CONTENT, published=PUBLISHED)
    summary = build(folder)
    assert exit_status(summary) == 4
    assert "3 of 3 runs failed at users=4,way=fork: the gateway said <b>502</b> & no more" in terminal_text(
        summary, folder
    )
    page = (folder / "index.html").read_text()
    assert page.count("the gateway said &lt;b&gt;502&lt;/b&gt; &amp; no more") >= 2
    suite = ET.fromstring((folder / "junit.xml").read_text())[0]  # noqa: S314 - written just above
    of_points = [case for case in suite.iter("testcase") if case.get("classname") == "framestorm.study.made-up"]
    assert (len(of_points), suite.get("tests"), suite.get("skipped")) == (6, "9", "0")
    progress = summary.progress
    assert (progress.points, progress.planned_runs, progress.complete_runs, progress.failed_runs) == (6, 18, 14, 4)
    assert progress.states == {"complete": 4, "partial": 1, "failed": 1, "missing": 0}
    assert (progress.engine_mean_ms, progress.engine_max_ms, progress.counts["n"]) == (800, 800, 14 * 12)
    started_ms = progress.started_ms or summary.study.started_ms
    assert progress.ended_ms is not None
    assert float(suite.get("time", "")) == pytest.approx((progress.ended_ms - started_ms) / 1000, abs=0.001)
    failed = {case.get("name") for case in of_points if case.find("failure") is not None}
    assert failed == {"users=4,way=fork", "users=2,way=fork"}


def test_charts_have_intervals_and_the_published_panel(made: Path) -> None:
    drawn = study_charts(load(made))
    assert [chart.name for chart in drawn] == [
        "mean-response-time", "success-by-way", "served", "served-by-users", "by-frame",
    ]  # fmt: skip
    lines = [trace for trace in drawn[0].traces if trace.get("showlegend", True)]
    assert [(trace["name"], trace["xaxis"]) for trace in lines] == [("fork", "x"), ("kept-alive", "x")]
    assert [entry["name"] for entry in drawn[0].legend()] == ["fork", "kept-alive"]
    published = [trace for trace in drawn[0].traces if trace["xaxis"] == "x2" and trace["type"] == "scatter"]
    assert [(trace["x"], trace["y"]) for trace in published] == [([1, 4], [9.79, 10.98])], "on an axis of its own, in s"
    assert sum(trace["name"] == "interval" for trace in drawn[0].traces) == 2
    assert [note["text"] for note in drawn[0].layout["annotations"]] == ["here", "published"]
    assert drawn[1].xaxis["type"] == "log"
    assert all("error_y" in trace for trace in drawn[2].traces)
    assert {trace["type"] for trace in drawn[2].traces} == {"scatter"}, (
        "a logarithmic axis has no 0 for bars to stand on"
    )
    laws = [trace for trace in drawn[3].traces if trace["name"] == "law"]
    assert [(law["line"]["dash"], law["x"][0], law["x"][-1]) for law in laws] == [("dash", 1, 4)] * 2
    served = [trace["y"] for trace in drawn[3].traces if trace.get("showlegend", True)]
    assert [law["y"][0] for law in laws] == pytest.approx([y[0] for y in served], rel=0.1)
    assert "Dashed: the fitted universal scalability law." in drawn[3].caption
    assert list(drawn[4].choices) == ["users 1", "users 2", "users 4"]
    by_frame = drawn[4]
    assert by_frame.chosen == "users 4"
    shown = [trace["visible"] for trace in by_frame.traces]
    assert (shown, sum(shown) * 3) == (by_frame.choices["users 4"][0]["visible"], len(shown))
    assert [note["text"] for note in by_frame.layout["annotations"]][3:] == [
        f"{series}, way: kept-alive" for series in ("response time", "handler time", "model time")
    ]
    around, median = by_frame.traces[-2:]
    assert around["x"] == [*range(12), *reversed(range(12))] and median["x"] == [*range(12)]
    middle = [10 + 1.5 * number for number in range(12)]
    assert around["y"] == [*(y + 2.5 for y in middle), *(y - 2.5 for y in reversed(middle))]
    assert median["y"] == middle


@pytest.mark.parametrize(
    ("factors", "types"),
    [
        ({"users": [1, 2, 4]}, [None, None]),
        ({"way": {"fork": {}, "kept-alive": {}}, "users": [1, 2, 4]}, ["category", "category"]),
        ({"users": [1, 2], "sleep_s": [0, 1], "hold_s": [8, 9], "min_faces": [0, 1]}, []),
    ],
)
def test_a_study_without_charts_has_one_of_each_metric(
    factors: dict[str, Any], types: list[str | None], fake_study: Any
) -> None:
    definition = {"factors": factors, "metrics": ["mean_ms", "success"]}
    drawn = study_charts(build(fake_study.make(spread, definition)))
    assert [chart.xaxis.get("type") for chart in drawn] == types
    assert [chart.title for chart in drawn] == ["Mean response time", "Success rate"][: len(types)]


def test_one_repetition_is_no_mean_over_them(fake_study: Any) -> None:
    folder = fake_study.make(simulate, CONTENT | {"repetitions": 1}, published=PUBLISHED)
    captions = [chart.caption for chart in study_charts(build(folder))]
    assert captions[0].startswith("Band or bar: 95 % confidence interval within the run.")
    assert captions[2] == "One repetition: no interval."


def test_a_derived_metric_ends_at_0_unless_it_is_a_difference(fake_study: Any) -> None:
    derived = {"twice": "=2 * mean_ms", "over": "=mean_ms - 1", "twice_over": "=2 * over"}
    folder = fake_study.make(spread, {"repetitions": 3, "metrics": list(derived), "derived": derived})
    figures = build(folder).points[0].figures
    assert figures["twice"].low == 0 and figures["over"].low < -100 and figures["twice_over"].low < -200


def test_what_was_changed_on_the_command_line(made: Path) -> None:
    summary = load(made)
    changed = replace(summary.study, overrides=Overrides({"hold_s": "5"}, 1))
    page = own_text(page_html(replace(summary, study=changed)))
    assert "<dt>Changed</dt>" in page and "1 repetition" in page and "<code>hold_s=5</code>" in page
    assert "<dt>Changed</dt>" not in own_text(page_html(summary))


def test_runs_and_figures_stand_in_the_table(made: Path) -> None:
    page = own_text((made / "index.html").read_text())
    row = page[page.index('<th scope="row" class="apart">1</th>') :].split("</tr>")[0]
    assert re.findall(r">(\d)</a>", row[: row.index('class="number"')]) == ["1", "2", "3"]
    assert "326\u00a0ms" in row
    assert '<small class="ends">314 \u2013 339</small>' in row, "the unit stands in the figure above"
    assert '<small class="published">9.79\u00a0s</small>' in row
    assert '<th scope="row" class="together">1, fork</th>' in page


@pytest.mark.parametrize(
    ("words", "repeated"),
    [
        ("rate --quick", "rate --quick --seed 17"),
        ("rate --seed 3", "rate --seed 3"),
        ("rate --resume", "rate --seed 17"),
        ("--all --quick", "rate --quick --seed 17"),
        ("rate -o out --quick", "rate --quick --seed 17"),
    ],
)
def test_the_command_to_repeat_it_has_the_seed(made: Path, words: str, repeated: str) -> None:
    study = replace(load(made).study, name="rate", seed=17, command=("./run.sh", "study", *words.split()))
    assert shlex.join(repeating_command(study)) == f"./run.sh study {repeated}"


def test_strange_names_stay_text(fake_study: Any) -> None:
    evil = "</script><script>alert(1)</script><b>&"
    folder = fake_study.make(simulate, {**CONTENT, "title": evil, "question": evil}, published=PUBLISHED)
    build(folder)
    assert "<script>alert" not in (folder / "index.html").read_text()


def test_published_percentiles_among_timeouts_are_lower_bounds(tmp_path: Path) -> None:
    text = (
        "users,mean_ms,median_ms,p95_ms,success,mean_is_lower_bound\n1,24100,25200,25300,0.3,true\n2,9,8,12,0.9,true\n"
    )
    # A table that Excel saved begins with a mark, which is no part of a name.
    (tmp_path / "published.csv").write_text(text, encoding="utf-8-sig")
    rows = read_published(tmp_path, Study.model_validate({**PLAIN, "published": "published.csv"}))
    assert [row.factors for row in rows or []] == [{"users": 1}, {"users": 2}]
    names = ("mean_ms", "median_ms", "p95_ms")
    assert [[row.figures[name].bound for name in names] for row in rows or []] == [
        ["lower", "lower", "lower"], ["lower", "exact", "lower"],
    ]  # fmt: skip


@every_study
def test_published_results_fit_their_study(file: Path) -> None:
    study = reading.load(file)
    rows = read_published(file.parent, study) or []
    assert bool(rows) is (study.published is not None)
    for row in rows:
        assert row.figures, row
        for factor, level in row.factors.items():
            values = study.factors[factor].values
            assert level in values or not any(isinstance(value, str) for value in values), (factor, level)


@every_study
@pytest.mark.parametrize("quick", [True, False])
def test_the_pages_of_the_studies(fake_study: Any, file: Path, quick: bool) -> None:
    """Each has all its charts and answers, whatever was measured."""
    study = reading.load(file, quick)
    duration = Times(2, 0, *[Estimate(900.0)] * 7)
    users = LabelSummary("user", 2, 2, 0, 0, {}, 1.0, None, None, None, {"duration": duration})

    def run(point: Any, repetition: int) -> Any:
        base = 10.0 + len(point.id) + repetition
        frames = frames_of([base])  # in the warm-up, where there is one
        frames += frames_of([base, base + 1, base + 5], start_ms=frames[0]["start_ms"] + 20_000)
        for frame, worker in zip(frames, "aaab", strict=True):
            frame |= {"worker": worker, "ttft_ms": 5.0, "itl_mean_ms": 1.0, "itl_p99_ms": 3.0, "tokens": 20}
        return FakeResult(
            frames,
            {"labels": {"user": users}, "functions": [function]},
            {"rate_per_s": point.properties.get("rate_per_s", "")},
        )

    replica = {"cores_mean": 0.2, "received_bytes_per_s": 900.0, "sent_bytes_per_s": 100.0}
    function = function_of(replica, cores_mean=0.2, memory_max_bytes=1e6, throttled_mean=0.1)

    folder = fake_study.make(run, file, quick=quick)
    summary = build(folder)
    assert is_complete(summary) and len(summary.points) > 1
    assert len(summary.hypotheses) == len(study.hypotheses)
    if not quick:
        titles = [chart.title for chart in study_charts(summary)]
        assert titles == [chart.title for chart in study.charts]


def test_draws_in_a_browser_without_scrolling_sideways(made: Path, draws: Callable[[Path, int], None]) -> None:
    draws(made, 5)
