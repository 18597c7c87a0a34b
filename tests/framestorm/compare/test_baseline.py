"""A run against its baseline: which it is, what the verdict says, and where it is shown."""

import json
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from framestorm import paths
from framestorm.compare import baseline
from framestorm.errors import UsageError
from framestorm.model.files import read
from framestorm.model.summary import Summary
from framestorm.report import build, write_pages
from framestorm.report.markdown import markdown_text
from framestorm.report.summary import run_files
from framestorm.report.terminal import terminal_text
from tests.framestorm.compare.conftest import steady

MakeDay = Callable[..., Path]


@pytest.fixture
def make_day(make_jtl_run: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MakeDay:
    """Return a function that leaves the run of a day, so many times as slow as others."""
    monkeypatch.setattr(paths, "DASHBOARDS", tmp_path / "dashboards")

    def make(day: int, factor: float = 1.0, n: int = 600, **fields: Any) -> Path:
        folder = make_jtl_run(f"day-{day}", {"request": steady(n, day, factor)})
        record = json.loads((folder / "run.json").read_text())
        (folder / "run.json").write_text(
            json.dumps(record | {"started_ms": 1000.0 + day, "has_journal": False} | fields)
        )
        build(folder)
        return folder

    return make


def judged(folder: Path, asked: str, *thresholds: str, undecided: str = "pass") -> Summary:
    """The summary of a run with its baseline, with its pages written."""
    summary = read(folder / "summary.json", Summary)
    run = replace(summary.run, baseline=asked, thresholds=thresholds, undecided=undecided)
    summary = baseline.with_baseline(folder, replace(summary, run=run))
    write_pages(folder, summary)
    return summary


def name_of(summary: Summary) -> str | None:
    assert summary.against
    return summary.against.baseline


def test_a_run_that_got_worse_fails_everywhere(make_day: MakeDay) -> None:
    make_day(1)
    folder = make_day(2, 1.4)
    summary = judged(folder, "last", "p95 10 %")
    assert (summary.verdict.word, summary.verdict.exit_status) == ("fail", 3)
    assert summary.verdict.text.startswith("worse than the baseline day-1: p95 response time: 1.")
    cases = {each.get("name"): each for each in ET.parse(folder / "junit.xml").iter("testcase")}  # noqa: S314
    assert cases["p95 10 %"].find("failure") is not None
    assert cases["success 1 point"].find("failure") is None
    assert (folder / "baseline" / "index.html").exists()
    page = (folder / "index.html").read_text()
    assert 'href="baseline/index.html"' in page and "Against the baseline" in page
    assert "### Against the baseline" in markdown_text(summary)
    assert "failed: p95 10 %: p95 response time: 1." in terminal_text(summary)
    # What is on disk says the same to who reads it later.
    assert read(folder / "summary.json", Summary).verdict == summary.verdict


def test_a_run_that_is_the_same_passes(make_day: MakeDay) -> None:
    make_day(1)
    summary = judged(make_day(2), "last")
    assert (summary.verdict.word, summary.verdict.exit_status) == ("pass", 0)
    assert "against the baseline day-1: no worsening beyond a threshold was shown" in summary.verdict.text


def test_what_is_not_compared_has_its_reason(make_day: MakeDay) -> None:
    make_day(1, n=60)
    folder = make_day(2, n=60)
    summary = judged(folder, "last")
    reason = "not compared: insufficient data (n < 200): n = 60"
    page, markdown = unescape((folder / "index.html").read_text()), markdown_text(summary).replace("\\", "")
    assert all(reason in text for text in (page, markdown, terminal_text(summary)))


def test_last_best_and_main(make_day: MakeDay) -> None:
    make_day(1, 0.8, checkout={"commit": "a" * 40, "branch": "feature"})
    make_day(2, 1.0, checkout={"commit": "b" * 40, "branch": "main"})
    make_day(3, 1.1, checkout={"commit": "c" * 40, "branch": "maintenance"})
    make_day(4, 0.5, properties={"users": "9"}, given={"users": "9"})
    folder = make_day(5)
    make_day(6)
    assert [name_of(judged(folder, each)) for each in ("last", "best", "main")] == ["day-3", "day-1", "day-2"]


def test_a_run_that_is_named_may_be_of_another_load(make_day: MakeDay) -> None:
    other = make_day(1, given={"users": "9"})
    assert name_of(judged(make_day(2), baseline.checked(str(other), ()))) == "day-1"


def test_runs_of_which_only_a_part_is_left_are_no_baseline(make_day: MakeDay) -> None:
    make_day(1)
    make_day(2, state="stopped", reason="SIGINT was received")
    assert name_of(judged(make_day(3), "last")) == "day-1"


def test_without_a_run_to_compare_with_undecided_decides(make_day: MakeDay) -> None:
    folder = make_day(1)
    summary = judged(folder, "last")
    assert (summary.verdict.word, summary.verdict.exit_status) == ("pass", 0)
    assert "not compared (--baseline last): no earlier complete run of the same plan" in summary.verdict.text
    case = next(each for each in ET.parse(folder / "junit.xml").iter("testcase") if "compare" in each.get("name", ""))  # noqa: S314
    assert case.find("skipped") is not None
    summary = judged(folder, "last", undecided="fail")
    assert (summary.verdict.word, summary.verdict.exit_status) == ("fail", 5)


def test_a_threshold_of_what_was_not_measured_fails(make_day: MakeDay) -> None:
    make_day(1)
    summary = judged(make_day(2), "last", "login p95 10 %")
    assert (summary.verdict.word, summary.verdict.exit_status) == ("fail", 3)
    assert "there is no label login" in summary.verdict.text


def test_runs_without_a_success_are_compared_by_what_they_have(make_day: MakeDay, tmp_path: Path) -> None:
    for day in (1, 2):
        folder = make_day(day)
        jtl = folder / "samples.jtl"
        jtl.write_text(jtl.read_text().replace(",200,OK,", ",503,no,").replace(",true,", ",false,"))
        build(folder)
    summary = judged(folder, "last")
    assert summary.against and summary.against.baseline == "day-1"
    assert {check.name: check.state for check in summary.against.checks} == {
        "success 1 point": "passed", "mean 10 %": "undecided", "median 10 %": "undecided", "p95 10 %": "undecided",
    }  # fmt: skip


def test_a_run_is_not_its_own_baseline(make_day: MakeDay) -> None:
    folder = make_day(1)
    summary = judged(folder, str(folder))
    assert summary.against and summary.against.text.endswith("it is this run itself")
    assert (name_of(summary), summary.verdict.exit_status) == (None, 0)


def test_a_baseline_that_lost_its_report_says_how_to_make_it(make_day: MakeDay) -> None:
    gone = make_day(1)
    (gone / "summary.json").write_text("")
    summary = judged(make_day(2), str(gone), undecided="fail")
    assert summary.against and summary.against.text.endswith(f"make it by ./run.sh report {gone}")
    assert summary.verdict.exit_status == 5


def test_a_partial_run_is_not_compared(make_day: MakeDay) -> None:
    make_day(1)
    summary = judged(make_day(2, state="stopped", reason="SIGINT was received"), "last")
    assert (summary.verdict.exit_status, summary.against) == (4, None)
    assert summary.verdict.text.endswith("not compared with a baseline, because the run is not whole")


@pytest.mark.parametrize("asked", [None, "last"])
def test_a_comparison_of_an_earlier_report_is_not_on_the_page(make_day: MakeDay, asked: str | None) -> None:
    make_day(1)
    folder = make_day(2)
    judged(folder, "last")
    if asked:
        record = json.loads((folder / "run.json").read_text())
        (folder / "run.json").write_text(json.dumps(record | {"state": "stopped"}))
    build(folder)
    summary = judged(folder, asked) if asked else read(folder / "summary.json", Summary)
    assert summary.against is None and not any(each.path.startswith("baseline") for each in run_files(folder))
    assert "baseline/index.html" not in (folder / "index.html").read_text()
    assert not (folder / "baseline").exists()


def test_a_run_in_a_folder_of_that_name_is_kept(make_day: MakeDay) -> None:
    folder = make_day(2)
    make_day(1).rename(folder / "baseline")
    summary = judged(folder, str(folder / "baseline"))
    assert summary.against and summary.against.baseline == "baseline"
    build(folder)
    assert (folder / "baseline" / "samples.jtl").exists()


def test_mistakes_are_found_before_the_run(make_day: MakeDay) -> None:
    with pytest.raises(UsageError, match="--baseline yesterday: expected last, best, main, or a run"):
        baseline.checked("yesterday", ())
    jtl = make_day(1) / "samples.jtl"
    with pytest.raises(UsageError, match=rf"--baseline {jtl} is a file: make it a run by ./run.sh report {jtl} -o DIR"):
        baseline.checked(str(jtl), ())
    with pytest.raises(UsageError, match="expected a metric, a number and %"):
        baseline.checked("last", ("p95",))
    with pytest.raises(UsageError, match="expected a metric, a number and %"):
        baseline.checked("last", (f"p95 {'9' * 400} %",))
