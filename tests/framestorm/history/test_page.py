"""The page of a history, its lines for the terminal, and the command that makes it."""

import json
import math
import re
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from framestorm import cli, paths
from framestorm.history.headlines import read_headlines
from framestorm.history.page import MAX_TOLD, _runs_axis, terminal_text
from framestorm.history.trends import LevelChange, trends
from framestorm.model.units import NONE
from tests.docs.test_pages import shown
from tests.framestorm.conftest import own_text
from tests.framestorm.history.conftest import MakeRun
from tests.framestorm.history.test_trends import medians


@pytest.mark.parametrize(
    ("part", "damage"),
    [
        ("run", {"started_ms": 1e18}),
        ("run", {"started_ms": math.nan}),
        ("main", {"rate_per_s": math.inf}),
        ("main", {"success": math.nan}),
        ("main", {"success_low": 10**400}),
    ],
)
def test_one_damaged_report_prevents_no_page(make_run: MakeRun, tmp_path: Path, part: str, damage: Any) -> None:
    make_run("whole")
    path = make_run("damaged", day=1) / "summary.json"
    summary = json.loads(path.read_text())
    (summary["run"] if part == "run" else summary["labels"]["request"]).update(damage)
    path.write_text(json.dumps(summary))
    assert cli.main(["history", str(tmp_path), "-o", str(tmp_path / "index.html")]) == 0
    page = own_text((tmp_path / "index.html").read_text())
    assert 'href="whole/index.html"' in page and 'href="damaged/index.html"' in page


@pytest.mark.parametrize(
    ("days", "words"),
    [((0, 0, None), [NONE, "14:13", "14:13"]), ((0, 1), ["09-21", "09-22"]), ((None, None), [NONE, NONE])],
)
def test_the_axis_has_the_times_that_are_known(
    make_run: MakeRun, tmp_path: Path, days: tuple[int | None, ...], words: list[str]
) -> None:
    for number, day in enumerate(days):
        folder = make_run(f"run-{number}", day=day or 0)
        if day is None:
            summary = json.loads((folder / "summary.json").read_text())
            summary["run"]["started_ms"] = None
            (folder / "summary.json").write_text(json.dumps(summary))
    (trend,) = trends(read_headlines([tmp_path]))
    assert _runs_axis(trend)["ticktext"] == words


def test_changes_that_are_left_out_are_counted(make_run: MakeRun, tmp_path: Path) -> None:
    make_run("before")
    make_run("after", day=1)
    (trend,) = trends(read_headlines([tmp_path]))
    change = LevelChange("median_ms", 0, 1, 1, 20.0, 30.0, 0.01)
    told = terminal_text([replace(trend, changes=[change])] * (MAX_TOLD + 2)).split("\n\n")[1].splitlines()
    assert len(told) == MAX_TOLD + 1 and told[-1] == "… 2 more changes on the page"


def test_a_run_without_a_page_has_no_link(stepped: Path) -> None:
    (stepped / "run-16" / "index.html").unlink()
    assert cli.main(["history", str(stepped), "-o", str(stepped / "index.html")]) == 0
    page = own_text((stepped / "index.html").read_text())
    assert "since run-16" in page and 'href=""' not in page


@pytest.fixture
def stepped(make_run: MakeRun, tmp_path: Path) -> Path:
    """A folder of 24 runs whose times are longer from the 17th on, and one of another plan."""
    for day, median_ms in enumerate([*medians(16), *(each * 1.1 for each in medians(8))]):
        make_run(f"run-{day:02}", median_ms, day)
    make_run("<b>other", day=2, plan="shop.jmx", title="<i>nightly")
    return tmp_path


def test_the_page_draws_what_changed_and_links_each_run(
    stepped: Path, draws: Callable[[Path, int], None], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["history", str(stepped), "-o", str(stepped / "index.html")]) == 0
    draws(stepped, 1)
    page = own_text((stepped / "index.html").read_text())
    assert len(set(re.findall(r'href="(run-\d+)/index.html"', page))) == 24
    assert 'href="%3Cb%3Eother/index.html"' in page
    assert "<b>other" not in page.partition("</style>")[2]
    assert "<i>nightly" not in page
    out = capsys.readouterr().out
    assert re.search(r"worse: requests.jmx: median \+\S+ %, from \S+ ms to \S+ ms, since run-16", out)
    assert "1 run without another of the same plan, target and load" in out


def test_two_runs_of_one_name_are_told_apart(make_run: MakeRun, tmp_path: Path) -> None:
    for day, name in enumerate(("monday/nightly", "tuesday/nightly", "other")):
        make_run(name, day=day)
    assert cli.main(["history", str(tmp_path)]) == 0
    names = re.findall(r'href="([^"]+)/index.html">([^<]+)</a>', own_text((tmp_path / "history.html").read_text()))
    assert names == [("other", "other"), *((name, name) for name in ("tuesday/nightly", "monday/nightly"))]


def test_commands_of_the_docs_are_run(stepped: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "DASHBOARDS", stepped)
    monkeypatch.chdir(stepped)
    (stepped / "nightly").mkdir()
    (stepped / "run-00").rename(stepped / "nightly" / "run-00")
    for command in shown("history.md"):
        assert cli.main(shlex.split(command)[1:]) == 0
    assert (stepped / "history.html").exists()


def test_a_page_is_made_again_and_nothing_else_is_replaced(stepped: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = stepped / "mine.html"
    other.write_text("my own page")
    assert [cli.main(["history", str(stepped)]) for _ in range(2)] == [0, 0]
    assert cli.main(["history", str(stepped), "-o", str(other)]) == 2
    assert other.read_text() == "my own page"
    assert "is no page of a history" in capsys.readouterr().err


def test_a_folder_without_a_run_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["history", str(tmp_path)]) == 1
    assert "there is no run in" in capsys.readouterr().err
    gone = tmp_path / "gone"
    assert cli.main(["history", str(gone), "-o", str(tmp_path / "page.html")]) == 2
    assert f"there is no folder {gone}" in capsys.readouterr().err
    (tmp_path / "results.jtl").write_text("")
    assert cli.main(["history", str(tmp_path / "results.jtl")]) == 2
    assert "of a JTL, ./run.sh report FILE.jtl -o DIR makes a run" in capsys.readouterr().err
    assert cli.main(["history", str(tmp_path), "-o", str(tmp_path)]) == 2
    assert f"{tmp_path} is a folder; name a file with -o" in capsys.readouterr().err


def test_an_ignored_property_is_named_and_its_value_stays_with_each_run(
    make_run: MakeRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for day in range(2):
        make_run(f"run-{day}", day=day, given={"headers": f"X-Commit: {day}", "body": "a"})
    assert cli.main(["history", str(tmp_path), "--ignore", "headers"]) == 0
    page = own_text((tmp_path / "history.html").read_text())
    assert "in 1 group of" in page
    assert [value in page for value in ("headers=X-Commit: 0", "headers=X-Commit: 1")] == [True, True]
    assert "and for headers, by --ignore" in page
    capsys.readouterr()
    assert cli.main(["history", str(tmp_path), "--ignore", "header"]) == 2
    assert "what keeps runs apart: body, headers" in capsys.readouterr().err
