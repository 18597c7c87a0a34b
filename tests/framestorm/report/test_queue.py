"""Answers that say accepted (status 202): the note on them, and the queue behind them where metrics tell of it."""

import json
from pathlib import Path

import numpy as np
import pytest

from framestorm.model.files import read
from framestorm.model.summary import Summary
from framestorm.report import build
from tests.framestorm.results.conftest import START_MS, write_jtl


def run_of(
    folder: Path, done_per_s: float | None = None, status: str = "200", length_s: int = 60, labels: int = 1
) -> Path:
    """Two users who send 20/s to a queue, of which the gateway says what was done."""
    rows = [
        {"timeStamp": START_MS + 50 * n, "elapsed": 5, "label": f"job {n % labels}", "responseCode": "202",
         "responseMessage": "Accepted", "success": "true", "threadName": f"users 1-{n % 2 + 1}"}
        for n in range(20 * length_s)
    ]  # fmt: skip
    write_jtl(folder / "samples.jtl", rows)
    run = {"format": 2, "state": "complete", "plan": "own.jmx", "label": "all", "started_ms": START_MS}
    url = "http://127.0.0.1:8080/async-function/ocr"
    (folder / "run.json").write_text(json.dumps(run | {"url": url, "properties": {}}))
    if done_per_s is not None:
        random = np.random.default_rng(1)
        lines = ["time_ms,metric,function,detail,value"]
        for second in range(length_s):
            grown = done_per_s * min(1, second / 10) + random.normal(0, 0.2)
            lines.append(f"{START_MS + 1000 * second},requests_per_s,ocr,{status},{grown}")
        (folder / "metrics.csv").write_text("\n".join(lines) + "\n")
    return folder


def summary_of(folder: Path, status: int) -> Summary:
    assert build(folder).exit_status == status
    return read(folder / "summary.json", Summary)


def plain(text: str) -> str:
    return text.replace("\u00a0", " ")


def test_an_answer_that_is_accepted_only_is_no_warning_but_a_note_by_label(tmp_path: Path) -> None:
    made = summary_of(run_of(tmp_path, labels=2), 0)
    assert made.facts.accepted == {"job 0": 600, "job 1": 600} and made.facts.overload is None
    assert plain(made.notes[0]).startswith(
        "1,200 samples got status 202 (job 0 600 and job 1 600), which means accepted, not done: their response times "
        "are those of acceptance."
    )
    assert not any("202" in warning for warning in made.warnings)


def test_of_many_labels_the_note_names_some(tmp_path: Path) -> None:
    note = plain(summary_of(run_of(tmp_path, labels=60), 0).notes[0])
    assert "job 13 20 and 54 more labels)" in note


def test_a_queue_that_grows_behind_users_who_are_answered_at_once_fails_the_run(tmp_path: Path) -> None:
    made = summary_of(run_of(tmp_path, done_per_s=12), 3)
    overload = made.facts.overload
    assert overload is not None and overload.queue is not None and overload.signs == ["queued"]
    assert overload.queue.accepted_per_s == pytest.approx(20) and overload.queue.done_per_s < 12.5
    assert plain(made.warnings[0]).startswith("The function did not keep up: 20.0/s accepted (status 202), ")
    failed = [each for each in made.criteria if each.state == "failed"]
    assert [each.text for each in failed] == ["overload"]
    assert failed[0].measured.startswith("accepted 20.0/s, done 1")
    assert "overloaded" in made.doubts
    assert build(tmp_path, accepts_overload=True).exit_status == 0
    assert read(tmp_path / "summary.json", Summary).warnings[0] == made.warnings[0]


@pytest.mark.parametrize(("done_per_s", "length_s"), [(20.0, 60), (40.0, 60), (12.0, 25)])
def test_a_queue_that_is_worked_off_or_not_seen_for_long_enough_is_not_blamed(
    tmp_path: Path, done_per_s: float, length_s: int
) -> None:
    assert summary_of(run_of(tmp_path, done_per_s, length_s=length_s), 0).facts.overload is None


def test_what_a_gateway_has_accepted_is_not_done(tmp_path: Path) -> None:
    assert summary_of(run_of(tmp_path, done_per_s=20, status="202"), 0).facts.overload is None
