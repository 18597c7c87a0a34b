"""The first screen of a run's page: the load in words, criteria, key figures, and the run over time."""

import re
import shlex
import xml.etree.ElementTree as ET
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from framestorm.model import series
from framestorm.model.criteria import Criterion
from framestorm.model.files import read
from framestorm.model.judgement import Judgement
from framestorm.model.load import Load
from framestorm.model.overload import Rates
from framestorm.model.run import Record
from framestorm.model.summary import Facts, Summary
from framestorm.report import build
from framestorm.report.figure import BAD, QUIET
from framestorm.report.junit import junit_xml
from framestorm.report.load_words import load_in_words
from framestorm.report.overview import criteria, errors_in_words, overview
from framestorm.report.page import page_html
from tests.framestorm.conftest import own_text, summary_of
from tests.framestorm.results.conftest import START_MS, write_jtl


def load(model: Any, *points: tuple[float, float], **more: Any) -> Load:
    curve: series.Curves = {"x": [x for x, _ in points], "y": [y for _, y in points]}
    return Load(**{"name": "group", "kind": "ThreadGroup", "model": model, "curve": curve, **more})


@pytest.mark.parametrize(
    ("loads", "words"),
    [
        ([load("arrivals", (0, 80), (10, 80))], "80/s for 10 s"),
        ([load("arrivals", (0, 0), (0, 80), (10, 80))], "80/s for 10 s"),
        ([load("users", (0, 0), (2, 20), (32, 20))], "20 users for 30 s, ramp-up 2 s"),
        ([load("users", (0, 0), (0, 1), (600, 1))], "1 user for 10 min"),
        ([load("users", (0, 0), (3, 3), has_end=False)], "3 users, ramp-up 3 s"),
        ([load("users", (0, 0), (60, 5), (7260, 5), (7320, 0))], "5 users for 2 h, ramp-up 60 s"),
        (
            [load("arrivals", (0, 5), (10, 5), (40, 60), (60, 60))],
            "5/s for 10 s, then from 5 to 60/s in 30 s, then 60/s for 20 s",
        ),
        (
            [load("users", *((10 * (n // 2 + n % 2), 1 + n // 2) for n in range(8)))],
            "up to 4 users in 4 steps over 40 s",
        ),
        ([load("users", total=None, unknown="it follows a timer")], "it follows a timer"),
        (
            [load("users", (0, 2), (9, 2)), load("arrivals", (0, 7), (9, 7), kind="XTimer", groups=("group",))],
            "2 users for 9 s, paced to 7/s for 9 s",
        ),
        (
            [load("users", (0, 2), (9, 2), name=name) for name in ("a", "b", "c", "d", "e")],
            "a: 2 users for 9 s; b: 2 users for 9 s; c: 2 users for 9 s; 2 more thread groups",
        ),
        ([load("users", (0, 1), (1, 1), is_aside=True)], ""),
    ],
)
def test_the_load_in_words(loads: list[Load], words: str) -> None:
    assert load_in_words(summary_of(1, run=Record(loads=tuple(loads)))) == words


def test_the_load_of_a_run_that_did_not_record_it() -> None:
    asked: series.Curves = {"x": [4.0, 6.0, 16.0], "y": [0, 80, 80]}
    old = summary_of(1, series=series.Series(asked_per_s=asked), run=Record(properties={"sleep_s": "0"}))
    assert load_in_words(old) == "80/s for 10 s, ramp-up 2 s"
    threads = series.InFlight("users", [0.0], [7], 7)
    assert load_in_words(summary_of(1, series=series.Series(threads=threads))) == "up to 7 users"
    tasks = Record(properties={"tasks": "20", "workers": "4", "task_s": "0.1"})
    assert load_in_words(summary_of(1, run=tasks)) == "20 tasks of 0.1 s on 4 workers"
    own = Record(properties={"tasks": "20", "workers": "4"}, loads=(load("users", (0, 4), (10, 4)),))
    assert load_in_words(summary_of(1, run=own)) == "4 users for 10 s", "of a plan with properties of its own"


def judged(*states: Any, default: bool = False) -> Summary:
    criterion = Criterion("", "frame", "rtt", "p95", ">", 1.0, "ms")
    made = [
        Judgement(**vars(criterion) | {"text": f"c{n}"}, state=state, measured="2 ms", value=2.0, bound=None, why="")
        for n, state in enumerate(states)
    ]
    return summary_of(5, criteria=made, has_default_criteria=default)


def test_criteria_that_did_not_pass_come_first() -> None:
    few = criteria(judged("passed", "failed", "unjudged"))
    assert ([each.text for each in few.shown], few.folded) == (["c1", "c2", "c0"], [])
    many = criteria(judged(*["passed"] * 4, *["failed"] * 7))
    assert [each.state for each in many.shown] == ["failed"] * 5
    assert many.folded_title == "6 more criteria: 2 failed and 4 passed"
    assert criteria(judged(*["failed"] * 6)).folded_title == "1 more criterion failed"
    assert criteria(judged(*["unjudged"] * 7)).folded_title == "2 more criteria not judged"
    every = criteria(judged(*["failed"] * 6, "unjudged", "passed"))
    assert every.folded_title == "3 more criteria: 1 failed, 1 not judged and 1 passed"


def test_default_criteria_that_passed_are_one_line() -> None:
    passed = judged(*["passed"] * 60, default=True)
    assert criteria(passed).shown == [] and len(criteria(passed).folded) == 60
    page = own_text(page_html(passed))
    assert page.count("<summary>Default criteria: every frame must succeed</summary>") == 1
    one = criteria(judged(*["passed"] * 58, "failed", default=True))
    assert ([each.text for each in one.shown], one.folded_title) == (["c58"], "58 more criteria passed")


def test_the_causes_of_errors_stand_beside_the_verdict() -> None:
    summary = summary_of(9)
    causes = {"timeout": 2, "status-503": 40, "reset": 1, "expect-not-met": 3}
    failed = replace(summary.main, failed=46, causes=causes)
    assert errors_in_words(replace(summary, labels={"frame": failed})) == (
        "status-503 (40), expect-not-met (3), timeout (2), and 1 other"
    )
    assert errors_in_words(summary) == ""
    page = own_text(page_html(replace(summary, labels={"frame": failed}, warnings=["Doubt."])))
    assert 'and 1 other. <a href="#warnings">1 warning</a>' in " ".join(page.split())


def run_over_time(**more: Any) -> Summary:
    rates = series.RatesOverTime(1.0, [3.5, 4.5], [80, 80], [60, 58], more.pop("failed", [0, 0]))
    none: series.Curves = {"x": [], "y": []}
    times = series.OverTime(1.0, 2, 2, none, none, none, [3.5, 4.5], [10.0, 20.0], [30.0, 40.0])
    flying = series.InFlight("frames", [3.0, 5.0], [1, 40], 40)
    asked: series.Curves = {"x": [3.0, 5.0], "y": [80, 80]}
    return summary_of(
        9, series=series.Series(rates=rates, over_time=times, in_flight=flying, asked_per_s=asked, **more)
    )


def test_one_chart_has_the_run_over_time() -> None:
    chart = overview(run_over_time(failed=[0, 2]))
    assert chart is not None
    assert [(trace["name"], trace["yaxis"]) for trace in chart.traces] == [
        ("started", "y"), ("answered", "y"), ("errors", "y"), ("asked for", "y"), ("median", "y2"), ("p95", "y2"),
        ("frames in flight", "y3"),
    ]  # fmt: skip
    assert [note["text"] for note in chart.layout["annotations"]] == [
        "Frames per second", "Response time (ms)", "Frames in flight"
    ]  # fmt: skip
    assert chart.caption.endswith("Response times by their start."), "there are no samples of other labels"
    assert overview(summary_of(0)) is None


def test_few_users_are_whole_and_the_last_answers_are_in_sight() -> None:
    few = series.Series(
        in_flight=series.InFlight("users", [0.0, 5.0], [2, 1], 2),
        rates=series.RatesOverTime(5.0, [2.5, 7.5], [1, 0], [1, 1], [0, 0]),
    )
    chart = overview(summary_of(1, series=few))
    assert chart is not None
    assert chart.layout["yaxis2"]["dtick"] == 1 and chart.xaxis["range"][1] > 7.5


def test_a_pause_of_the_generator_does_not_draw_the_eye() -> None:
    marks = [series.Mark(4.0, "generator held up", False, is_quiet=True), series.Mark(4.5, "a lost", is_shaded=False)]
    chart = overview(run_over_time(marks=marks))
    assert chart is not None
    assert [(shape["xref"], shape["line"]["color"]) for shape in chart.layout["shapes"]] == [
        ("x", BAD), ("x2", BAD), ("x3", BAD)
    ]  # fmt: skip
    from framestorm.report.charts import charts

    (over_time,) = [each for each in charts(run_over_time(marks=marks)) if each.name == "response-time-over-time"]
    assert [shape["line"]["color"] for shape in over_time.layout["shapes"]] == [BAD, QUIET]
    assert [note["text"] for note in over_time.layout["annotations"]] == ["a lost"]
    assert "Marked: a lost at 4.5 s; generator held up at 4 s." in over_time.caption


def test_asked_stands_beside_answered() -> None:
    facts = Facts(0, 0, None, rates=Rates(73.3, 80.0, 73.3, 58.7, 218))
    page = re.sub(r"<[^>]+>", "|", own_text(page_html(summary_of(800, facts=facts))))
    figures = re.sub(r"[|\s]+", " ", page)
    assert "Asked for 73.3/s up to 80.0/s Answered 58.7/s" in figures and "In flight, at most 218" in figures


def test_times_count_from_the_start_of_the_load(three_users: Any) -> None:
    """JMeter took 3 s until it sent anything: the axis begins with the load, as do the sentences."""
    folder: Path = three_users.write()
    build(folder)
    summary = read(folder / "summary.json", Summary)
    assert summary.load is not None and summary.run.started_ms is not None
    later = replace(summary, run=replace(summary.run, started_ms=summary.load.start_ms - 3000))
    shifted = replace(later.series, in_flight=series.InFlight("users", [3.0, 9.0], [1, 1], 1))
    chart = overview(replace(later, series=shifted))
    assert chart is not None
    assert chart.traces[-1]["x"] == [0, 6] and chart.xaxis["range"][0] > -0.5
    assert chart.xaxis["title"]["text"] == "time since the start of the load (s)"


def test_a_title_of_ones_own(three_users: Any) -> None:
    folder: Path = three_users.write(plan="jmx/face-blur.jmx", title="OCR, v1.2")
    build(folder)
    page, suite = (folder / "index.html").read_text(), names(folder)
    assert "<h1>OCR, v1.2</h1>" in page and "<title>Failed · OCR, v1.2 · Framestorm</title>" in page
    assert folder.name in own_text(page), "the folder is still found"
    assert suite == "framestorm.OCR, v1_2"
    build(folder, title="Another")
    assert "<h1>Another</h1>" in (folder / "index.html").read_text()


def names(folder: Path) -> str:
    """The name of the suite, by which that of each case begins."""
    (suite,) = ET.fromstring((folder / "junit.xml").read_bytes()).iter("testsuite")  # noqa: S314 - made by ourselves
    name = str(suite.get("name"))
    assert all(str(case.get("classname")).startswith(name) for case in suite.iter("testcase"))
    properties = {each.get("name"): each.get("value") for each in suite.iter("property")}
    assert properties["folder"] == folder.name
    return name


def test_names_in_junit_stay_the_same_from_run_to_run(three_users: Any) -> None:
    folder: Path = three_users.write(plan="jmx/face-blur.jmx")
    build(folder)
    again = folder.rename(folder.with_name("face-blur-20270101T000000Z"))
    build(again)
    assert names(again) == "framestorm.face-blur"
    cases = {(case.get("classname"), case.get("name")) for case in ET.parse(again / "junit.xml").iter("testcase")}  # noqa: S314
    assert ("framestorm.face-blur.frame", "not (frame success < 100 %)") in cases
    assert "folder" in junit_xml(read(again / "summary.json", Summary))


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("-t a.jmx -l out.jtl -Jload='4 users' -o out", "-t a.jmx '-Jload=4 users'"),
        ("-t a.jmx --reportoutputfolder out --logfile=b.jtl -j log", "-t a.jmx -j log"),
        ("-n -oout --live --fail-if 'p95 > 1 s'", "-n --live --fail-if 'p95 > 1 s'"),
    ],
)
def test_the_command_to_repeat_a_run_names_no_folder_that_exists(words: str, shown: str) -> None:
    page = page_html(summary_of(1, run=Record(command=("./run.sh", *shlex.split(words)))))
    (command,) = re.findall(r'<code class="command">(.*?)</code>', page)
    assert unescape(re.sub("<[^>]*>", "", command)) == f"./run.sh {shown}"


def test_a_dot_of_a_label_does_not_divide_its_class(tmp_path: Path) -> None:
    """CI systems take what is before the last dot for a package."""
    labels = ("/v1.2/pay", "index.html")
    rows = [
        {"timeStamp": START_MS + 100 * n, "elapsed": 50, "label": labels[n % 2], "success": "true"} for n in range(20)
    ]
    write_jtl(tmp_path / "samples.jtl", rows)
    build(tmp_path, title="Shop 2.0")
    root = ET.fromstring((tmp_path / "junit.xml").read_bytes())  # noqa: S314 - made by ourselves
    of_labels = {str(case.get("classname")): case.get("name") for case in root.iter("testcase")}
    assert of_labels["framestorm.Shop 2_0./v1_2/pay"] == 'not ("/v1.2/pay" success < 100 %)'
    assert {name.count(".") for name in of_labels} == {1, 2}


def test_words_of_a_load_are_shown_as_written_and_no_other_property_of_that_name() -> None:
    curve: series.Curves = {"x": [0, 2], "y": [10, 10]}
    arrivals = Load("arrivals", "ThreadGroup", "arrivals", 20, curve, words="10/s for 2 s", seed=7)
    words = load_in_words(summary_of(1, run=Record(loads=(arrivals,))))
    assert words == "10/s for 2 s, arriving at random (Poisson, seed 7)"
    users = Load("users", "ThreadGroup", "users", 3, {"x": [0, 2], "y": [3, 3]})
    record = Record(loads=(users,), properties={"load": "high"})
    assert load_in_words(summary_of(1, run=record)) == "3 users for 2 s" and not record.is_open_model
