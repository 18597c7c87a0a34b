"""A small study as its user runs it: from start to page, killed, stopped, gone on with, and with points that fail."""

import csv
import hashlib
import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

STUDY = """\
title: Two users
question: Does a second user make it slower?
plan: jmx/video-per-user.jmx
target: {{kind: url, url: "{url}"}}
properties: {{frames: 2, ramp_s: 0, verify_share: 0}}
factors:
  users: [1, 2]
{more}
repetitions: 2
run_s: 2
budget_min: 5
metrics: [mean_ms, success]
hypotheses:
  - name: slower
    text: Two users wait longer than one.
    claims:
      - {{metric: mean_ms, compare: {{users: [2, 1]}}, expect: "> 1"}}
charts:
  - {{title: Mean, metric: mean_ms, x: users}}
"""
FAILING = """\
  video:
    there: {}
    gone: {properties: {video: /none.mp4}}
"""


@pytest.fixture
def write(tmp_path: Path, faulty: Callable[[str], str]) -> Callable[..., str]:
    """Write a study of a function that answers every frame; the path of its folder."""

    def write(more: str = "") -> str:
        folder = tmp_path / "two-users"
        folder.mkdir(exist_ok=True)
        (folder / "study.yml").write_text(STUDY.format(url=faulty("unblurred"), more=more))
        return str(folder)

    return write


def lines(study_dir: Path) -> list[dict[str, Any]]:
    file = study_dir / "runs.jsonl"
    text = file.read_text() if file.exists() else ""
    return [json.loads(line) for line in text.splitlines() if line.endswith("}")]


def complete(study_dir: Path) -> set[tuple[str, int]]:
    return {(line["point"], line["repetition"]) for line in lines(study_dir) if line["state"] == "complete"}


def rows(study_dir: Path) -> list[dict[str, str]]:
    with (study_dir / "results.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def contents(run_dir: Path) -> dict[str, tuple[str, int]]:
    """Every file of a run: a hash of its bytes, and when it was last written."""
    return {
        str(path.relative_to(run_dir)): (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns)
        for path in run_dir.rglob("*")
        if path.is_file()
    }


def test_from_start_to_page(run_sh: Callable[..., Any], write: Callable[..., str]) -> None:
    study = write()
    planned = run_sh("study", study, "--dry-run", "--seed", "3", output=False)
    assert planned.status == 0, planned.stdout
    assert "2 points x 2 repetitions = 4 runs" in planned.stdout
    done = run_sh("study", study, "--seed", "3")
    assert done.status == 0, done.stderr
    study_dir = done.run_dir
    runs = lines(study_dir)
    assert [line["state"] for line in runs] == ["complete"] * 4
    for line in runs:
        assert f"{line['order']:>4}  {line['point']} r{line['repetition']} " in planned.stdout
        assert (study_dir / line["run"] / "index.html").exists() and (study_dir / line["run"] / "jmeter").exists()
        record = json.loads((study_dir / line["run"] / "run.json").read_text())
        assert record["state"] == "complete"
        assert record["properties"]["users"] == line["point"].removeprefix("users=")
    assert {(row["point"], row["repetition"], row["success"]) for row in rows(study_dir)} == {
        (f"users={users}", repetition, "1.0") for users in (1, 2) for repetition in ("1", "2")
    }
    assert "slower" in (study_dir / "index.html").read_text()
    assert "[4/4]" in done.stderr and "left" in done.stderr
    assert "4 of 4 runs complete" in done.stdout
    settings = done.json("study.json")
    assert (settings["state"], settings["seed"], settings["quick"]) == ("complete", 3, False)

    for name in ("results.csv", "index.html", "summary.json", "junit.xml"):
        (study_dir / name).unlink()
    again = run_sh("report", str(study_dir), output=False)
    assert again.status == 0, again.stderr
    assert "slower" in (study_dir / "index.html").read_text()
    refused = run_sh("study", study)
    assert refused.status == 2 and "exists" in refused.stderr
    resumed = run_sh("study", str(study_dir), "--resume", output=False)
    assert resumed.status == 0 and lines(study_dir) == runs


def test_killed_and_gone_on_with(
    start: Callable[..., subprocess.Popen[str]],
    run_sh: Callable[..., Any],
    wait_for: Callable[..., None],
    left_running: Callable[[], list[str]],
    write: Callable[..., str],
    tmp_path: Path,
) -> None:
    study_dir = tmp_path / "run"
    study = write()
    process = start("study", study)

    def under_way() -> bool:
        runs = study_dir / "runs"
        journals = list(runs.glob("*/journal.jsonl")) if runs.is_dir() else []
        return len(lines(study_dir)) == 1 and len(journals) == 2

    wait_for(under_way, what="for the second run to be under way")
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    wait_for(lambda: left_running() == [], timeout_s=15, what="for the processes of the run to end")
    [first] = lines(study_dir)
    before = contents(study_dir / first["run"])
    # As a crash in mid-writing would leave it.
    with (study_dir / "runs.jsonl").open("a") as file:
        file.write('{"point": "users=')

    changed = Path(study) / "study.yml"
    was = changed.read_text()
    changed.write_text(was.replace("run_s: 2", "run_s: 3"))
    refused = run_sh("study", study, "--resume")
    assert refused.status == 2 and "has changed since" in refused.stderr and "in run_s" in refused.stderr
    changed.write_text(was)
    refused = run_sh("study", study, "--resume", "--repetitions", "5")
    assert refused.status == 2 and "leave out --repetitions" in refused.stderr

    done = run_sh("study", study, "--resume")
    assert done.status == 0, done.stderr
    assert contents(study_dir / first["run"]) == before
    assert "left by a crash" in done.stderr
    [aside] = (study_dir / "runs").glob("*-aborted-1")
    assert (aside / "run.json").exists()
    assert len(complete(study_dir)) == 4 and len(rows(study_dir)) == 4
    assert "4 of 4 runs complete" in done.stdout


def test_stopped_and_gone_on_with(
    start: Callable[..., subprocess.Popen[str]],
    run_sh: Callable[..., Any],
    wait_for: Callable[..., None],
    left_running: Callable[[], list[str]],
    write: Callable[..., str],
    tmp_path: Path,
) -> None:
    study_dir = tmp_path / "run"
    # Long enough to be stopped in the middle.
    process = start("study", write(), "-J", "sleep_s=2")
    wait_for(lambda: len(lines(study_dir)) == 1, what="for the first run to end")
    wait_for(lambda: len(list((study_dir / "runs").glob("*/journal.jsonl"))) == 2, what="for the second run to begin")
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=90)
    assert process.returncode == 4, stderr
    assert left_running() == []
    assert "stopped by SIGINT" in stderr
    assert f"./run.sh study {study_dir} --resume" in stdout
    assert (study_dir / "index.html").exists()
    assert json.loads((study_dir / "study.json").read_text())["state"] == "stopped"
    done = run_sh("study", str(study_dir), "--resume", output=False)
    assert done.status == 0, done.stderr
    assert len(complete(study_dir)) == 4
    records = [json.loads((study_dir / line["run"] / "run.json").read_text()) for line in lines(study_dir)]
    # What it was started with holds for the rest too.
    assert {record["properties"]["sleep_s"] for record in records} == {"2"}


def test_points_that_fail_stay_with_their_cause(run_sh: Callable[..., Any], write: Callable[..., str]) -> None:
    study = write(FAILING)
    done = run_sh("study", study, "--repetitions", "1", "--only", "users=1")
    assert done.status == 4, done.stderr
    states = {row["video"]: (row["state"], row["reason"]) for row in rows(done.run_dir)}
    assert states["there"] == ("complete", "")
    assert states["gone"][0] == "failed" and "/none.mp4" in states["gone"][1]
    assert "/none.mp4" in (done.run_dir / "index.html").read_text()
    assert done.json("study.json")["state"] == "partial"
    # They alone are tried again.
    again = run_sh("study", study, "--resume")
    assert again.status == 4
    assert [line["point"].split("=")[-1] for line in lines(done.run_dir)].count("there") == 1
    assert [line["point"].split("=")[-1] for line in lines(done.run_dir)].count("gone") == 2


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        ([], 2, ["say which study"]),
        (["threads-by-slep"], 2, ["no study threads-by-slep", "did you mean threads-by-sleep?"]),
        (["STUDY", "--only", "user=1"], 2, ["unknown factor 'user'", "did you mean users?"]),
        (["STUDY", "-Jframs=1"], 2, ["no property 'frams'", "frames"]),
        (["STUDY", "-Jusers=1"], 2, ["the study varies it"]),
        (["STUDY", "--quick"], 2, ["has no part `quick`"]),
        (["STUDY", "--repetitions", "300"], 2, ["budget_min allows 5 min", "--over-budget", "--only"]),
        (["STUDY", "--gateway", "http://127.0.0.1:9/"], 1, ["no target of kind openfaas"]),
        (["STUDY", "--resume"], 2, ["study.json is missing"]),
        (["watchdog", "--quick", "-R", "slaves"], 1, ["slaves cannot reach the local one", "--gateway"]),
        (["watchdog", "--quick", "--gateway", "http://127.0.0.1:9/"], 1, ["nothing answers at 127.0.0.1:9"]),
    ],
)
def test_is_refused(
    run_sh: Callable[..., Any], write: Callable[..., str], words: list[str], status: int, said: list[str]
) -> None:
    done = run_sh("study", *[write() if word == "STUDY" else word for word in words])
    assert done.status == status, done.stderr
    for word in said:
        assert word in done.stderr
    assert "Traceback" not in done.stderr
    assert not done.run_dir.exists()


def test_studies_are_listed(run_sh: Callable[..., Any]) -> None:
    done = run_sh("study", "--list", output=False)
    assert done.status == 0, done.stdout
    for name in ("threads-by-sleep", "scaling", "rate", "watchdog", "balancers"):
        assert f"{name}: " in done.stdout


def test_all_studies_can_be_looked_over(run_sh: Callable[..., Any]) -> None:
    done = run_sh("study", "--all", "--quick", "--dry-run", output=False)
    assert "Traceback" not in done.stderr
    for name in ("threads-by-sleep", "scaling", "rate", "watchdog", "balancers"):
        assert f"\n{name}: dry run" in done.stdout
