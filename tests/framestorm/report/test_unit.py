"""Runs of requests and of tasks: read like those of frames, and spoken of by their own word."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from framestorm import paths
from framestorm.model import plan
from framestorm.model.files import read
from framestorm.model.summary import Summary
from framestorm.report import build

START_MS = 1_790_000_000_000


@pytest.fixture
def requests_run(tmp_path: Path, make_jtl: Callable[..., None]) -> Path:
    """A hundred requests at a fixed rate to two replicas, of which ten started late and one failed."""
    rows = [
        {"timeStamp": START_MS + 100 * i + (50 if i >= 90 else 0), "elapsed": 20, "label": "request",
         "responseCode": "500" if i == 7 else "200", "responseMessage": "status-500" if i == 7 else "OK",
         "success": str(i != 7).lower(), "threadName": "arrivals 1-1", "bytes": 5, "sentBytes": 6,
         "intended_ms": START_MS + 100 * i, "worker": "" if i == 7 else f"replica-{i % 2}"}
        for i in range(100)
    ]  # fmt: skip
    make_jtl(tmp_path / "samples.jtl", rows, plan.read(paths.JMX / "requests.jmx").sample_variables)
    properties = {"rate_per_s": "10", "hold_s": "10.3", "concurrency_limit": "50", "url": "http://127.0.0.1:1/"}
    run = {"format": 2, "state": "complete", "plan": "jmx/request-rate.jmx", "properties": properties}
    (tmp_path / "run.json").write_text(json.dumps({**run, "label": "request", "default_criteria": True}))
    (tmp_path / "jmeter.log").write_text('INFO next arrival: {"type":"arrivals","due":103,"dropped":3}\n')
    return tmp_path


@pytest.fixture
def tasks_run(three_users: Any) -> Path:
    """The run of three users, as if each of its frames were a task."""
    folder: Path = three_users.write(plan="jmx/tasks.jmx", label="task", properties={"tasks": "37", "mode": "push"})
    for name, frame, task in (("tree.xml", 'lb="frame"', 'lb="task"'), ("samples.jtl", ",frame,", ",task,")):
        path = folder / name
        path.write_text(path.read_text().replace(frame, task))
    for path in (folder / "tree.xml", folder / "journal.jsonl"):
        path.write_text(
            path.read_text().replace('"label": "frame"', '"label": "task"').replace('"label":"frame"', '"label":"task"')
        )
    return folder


def summary(folder: Path) -> Summary:
    return read(folder / "summary.json", Summary)


def shown(folder: Path) -> str:
    """What a reader sees of the page, without names of files and of the CSV's source."""
    page = (folder / "index.html").read_text()
    text = re.sub(r"<(script|style).*?</\1>|<[^>]*>", " ", page, flags=re.DOTALL)
    figures = json.loads((re.search(r'id="figures">(.*?)</script>', page) or [""])[1])
    titles = [figure["title"] + figure["layout"]["yaxis"]["title"]["text"] for figure in figures]
    return " ".join([text, *titles, *re.findall(r'aria-label="([^"]*)"', page)]).replace("samples.csv", "")


def test_requests(requests_run: Path) -> None:
    assert build(requests_run).exit_status == 3
    made = summary(requests_run)
    assert (made.label, made.main.n, made.main.causes) == ("request", 100, {"status-500": 1})
    assert [criterion.text for criterion in made.criteria] == ["request success < 100 %"]
    assert made.verdict.text.endswith("on 100 requests")
    assert made.warnings[0].startswith("3 of 103 arrivals were dropped")
    assert not any("image" in sentence for sentence in made.warnings)
    assert made.facts.other_labels == {}
    assert "frame" not in shown(requests_run).lower().replace("framestorm", "")
    frames = pl.read_csv(requests_run / "samples.csv")
    late_ms = frames["start_ms"] - frames["intended_ms"]
    assert late_ms.to_list() == [0] * 90 + [50] * 10
    assert frames["worker"].value_counts(sort=True)["count"].to_list() == [50, 49, 1]
    assert frames["worker"][7] is None
    assert frames["index"].null_count() == 100


def test_criteria_of_requests(requests_run: Path) -> None:
    assert build(requests_run, ["p95 > 1 s", "request success < 98 %"]).exit_status == 0
    # Nothing that the run has none of is ever passed.
    assert build(requests_run, ["frame p95 > 1 s"]).exit_status == 3
    assert summary(requests_run).criteria[0].why.startswith("no frame was measured")


def test_tasks(tasks_run: Path) -> None:
    assert build(tasks_run).exit_status == 3
    made = summary(tasks_run)
    assert (made.label, made.main.n, made.users.n, made.missing) == ("task", 111, 3, [])
    assert [criterion.text for criterion in made.criteria] == ["user success < 100 %", "task success < 100 %"]
    assert made.facts.other_labels == {}
    assert made.hosts[0].in_samples == made.hosts[0].in_tree == 111
    assert "frame" not in shown(tasks_run).lower().replace("framestorm", "")


def test_what_contradicts_itself_is_told_in_the_runs_word(tasks_run: Path) -> None:
    samples = tasks_run / "samples.jtl"
    lines = samples.read_text().splitlines(keepends=True)
    samples.write_text("".join(lines[:-1]))
    assert build(tasks_run).exit_status == 4
    assert summary(tasks_run).missing == ["samples.jtl has 110 rows labelled task, but tree.xml holds 111 tasks"]
