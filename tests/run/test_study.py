"""A small study as its user runs it: from start to page, stopped, killed, gone on with, and with points that fail."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from framestorm.machine import wait_until
from tests.runs import COMPLETE, RunFiles, RunSh, write_study
from tests.stand_in import StartServer

FAILING = """\
  video:
    there: {}
    gone: {properties: {video: /none.mp4}}
"""


@pytest.fixture
def write(tmp_path: Path, stand_in: StartServer) -> Callable[..., str]:
    """Write a study of a function that answers every frame; the path of its folder."""
    return lambda more="": write_study(tmp_path, f'{{kind: url, url: "{stand_in().url}"}}', more)


def runs_of(study: RunFiles) -> list[dict[str, Any]]:
    """The lines of runs.jsonl that are whole."""
    text = study.text("runs.jsonl") if (study.folder / "runs.jsonl").exists() else ""
    return [json.loads(line) for line in text.splitlines() if line.endswith("}")]


def begun(study: RunFiles) -> int:
    return len(list(study.folder.glob("runs/*/journal.jsonl")))


def contents(run_dir: Path) -> dict[Path, tuple[str, int]]:
    """Every file of a run: a hash of its bytes, and when it was last written."""
    files = [path for path in run_dir.rglob("*") if path.is_file()]
    return {path: (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns) for path in files}


def test_from_start_to_page(run_sh: RunSh, write: Callable[..., str]) -> None:
    study = write()
    planned = run_sh("study", study, "--dry-run", "--seed", "3", out="").stdout
    assert "2 points x 2 repetitions = 4 runs" in planned
    done = run_sh("study", study, "--seed", "3", status=COMPLETE)
    runs = runs_of(done)
    assert [line["state"] for line in runs] == ["complete"] * 4
    for line in runs:
        assert f"{line['order']:>4}  {line['point']} r{line['repetition']} " in planned
        run = RunFiles(done.folder / line["run"])
        assert (run.folder / "index.html").exists() and (run.folder / "jmeter").exists()
        record = run.json("run.json")
        assert (record["state"], f"users={record['properties']['users']}") == ("complete", line["point"])
    assert {(row["point"], row["repetition"], row["success"]) for row in done.rows("results.csv")} == {
        (f"users={users}", repetition, "1.0") for users in (2, 3) for repetition in ("1", "2")
    }
    assert "slower" in done.text("index.html")
    assert "[4/4]" in done.stderr and "left" in done.stderr
    assert "4 of 4 runs complete" in done.stdout
    settings = done.json("study.json")
    assert (settings["state"], settings["seed"], settings["quick"]) == ("complete", 3, False)

    for name in ("results.csv", "index.html", "summary.json", "junit.xml"):
        (done.folder / name).unlink()
    page_of_run = done.folder / runs[0]["run"] / "index.html"
    page_of_run.unlink()
    run_sh("report", str(done.folder), out="", status=done.status)
    assert page_of_run.exists()
    assert "slower" in done.text("index.html")
    assert "exists" in run_sh("study", study, status=2).stderr
    run_sh("study", str(done.folder), "--resume", out="", status=done.status)
    assert runs_of(done) == runs


@pytest.mark.long
def test_stopped_killed_and_gone_on_with(run_sh: RunSh, write: Callable[..., str]) -> None:
    study = write()
    # Long enough to be stopped in the middle.
    running = run_sh.start("study", study, "-J", "sleep_s=2")
    running.until(lambda: len(runs_of(running)) == 1 and begun(running) == 2)
    running.interrupt()
    stopped = running.ended(4)
    assert run_sh.left_running() == []
    assert "SIGINT was received" in stopped.stderr
    assert f"./run.sh study {stopped.folder} --resume" in stopped.stdout
    assert (stopped.folder / "index.html").exists()
    assert stopped.json("study.json")["state"] == "stopped"

    changed = Path(study) / "study.yml"
    text = changed.read_text()
    changed.write_text(text.replace("run_s: 2", "run_s: 3"))
    refused = run_sh("study", study, "--resume", status=2).stderr
    assert "has changed since" in refused and "in run_s" in refused
    changed.write_text(text)
    assert "leave out --repetitions" in run_sh("study", study, "--resume", "--repetitions", "5", status=2).stderr

    first = next(line for line in runs_of(stopped) if line["state"] == "complete")
    before = contents(stopped.folder / first["run"])
    seen = begun(stopped)
    resumed = run_sh.start("study", str(stopped.folder), "--resume", out="")
    resumed.until(lambda: begun(stopped) > seen)
    resumed.process.kill()
    assert wait_until(lambda: not run_sh.left_running(), 30)
    # As a crash in mid-writing would leave it.
    with (stopped.folder / "runs.jsonl").open("a") as file:
        file.write('{"point": "users=')
    done = run_sh("study", study, "--resume", status=COMPLETE)
    assert contents(stopped.folder / first["run"]) == before
    assert "left by a crash" in done.stderr
    assert any((aside / "run.json").exists() for aside in done.folder.glob("runs/*-aborted-1"))
    complete = [line for line in runs_of(done) if line["state"] == "complete"]
    assert len({(line["point"], line["repetition"]) for line in complete}) == len(done.rows("results.csv")) == 4
    assert "4 of 4 runs complete" in done.stdout
    # What it was started with holds for the rest too.
    records = [RunFiles(done.folder / line["run"]).json("run.json") for line in complete]
    assert {record["properties"]["sleep_s"] for record in records} == {"2"}


@pytest.mark.long
def test_points_that_fail_stay_with_their_cause(run_sh: RunSh, write: Callable[..., str]) -> None:
    study = write(FAILING)
    definition = Path(study) / "study.yml"
    definition.write_text(definition.read_text().replace("x: users}", "x: users, lines: video}"))
    done = run_sh("study", study, "--repetitions", "1", "--only", "users=2", status=4)
    states = {row["video"]: (row["state"], row["reason"]) for row in done.rows("results.csv")}
    assert states["there"] == ("complete", "")
    assert states["gone"][0] == "failed" and "/none.mp4" in states["gone"][1]
    assert "/none.mp4" in done.text("index.html")
    assert done.json("study.json")["state"] == "partial"
    # They alone are tried again.
    run_sh("study", study, "--resume", status=4)
    tried = [line["point"].split("=")[-1] for line in runs_of(done)]
    assert (tried.count("there"), tried.count("gone")) == (1, 2)
