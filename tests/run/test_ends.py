"""How runs end that do not end by themselves: nothing stays behind, and what was measured is reported."""

import json
import os
import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

LONG = ("-Jusers=2", "-Jramp_s=0", "-Jhold_s=120")


def journal_lines(run_dir: Path) -> int:
    journal = run_dir / "journal.jsonl"
    return journal.read_text().count('"sample"') if journal.exists() else 0


@pytest.mark.parametrize("plan", ["jmx/face-blur.jmx", "jmx/video-per-user.jmx", "jmx/face-blur-http.jmx"])
def test_one_interrupt_stops_gently_and_reports(
    start: Callable[..., subprocess.Popen[str]],
    wait_for: Callable[..., None],
    left_running: Callable[[], list[str]],
    tmp_path: Path,
    plan: str,
) -> None:
    run_dir = tmp_path / "run"
    with_users = plan != "jmx/face-blur-http.jmx"
    load = ("-Jusers=2", "-Jsleep_s=0.2") if with_users else ("-Jrate_per_s=5", "-Jhold_s=120", "-Jencoding=jpeg")
    hold = ("-Jhold_s=120",) if plan == "jmx/face-blur.jmx" else ()
    process = start("-t", plan, *load, *hold)
    seen = run_dir / ("journal.jsonl" if with_users else "samples.jtl")
    wait_for(lambda: seen.exists() and seen.read_text().count("\n") > 5, what="for the first frames")
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 4, stderr
    assert "stopping gently" in stderr
    assert left_running() == []
    report = (run_dir / "index.html").read_text()
    assert "SIGINT" in report
    rows = (run_dir / "samples.csv").read_text().count("\n") - 1
    # Every frame that was sent is in the report, also those of the users that were stopped.
    assert rows == (journal_lines(run_dir) if with_users else seen.read_text().count("\n") - 1)


@pytest.mark.parametrize("plan", ["jmx/tasks.jmx", "jmx/requests.jmx", "jmx/request-rate.jmx"])
def test_one_interrupt_stops_any_plan_gently(
    start: Callable[..., subprocess.Popen[str]],
    wait_for: Callable[..., None],
    left_running: Callable[[], list[str]],
    faulty: Callable[[str], str],
    tmp_path: Path,
    plan: str,
) -> None:
    run_dir = tmp_path / "run"
    words = [f"-Jurl={faulty('garbage')}", "-Jhold_s=120"]
    if plan == "jmx/tasks.jmx":
        words = ["-Jmode=local", "-Jtasks=2000", "-Jtask_s=0.2", "-Jworkers=2"]
    process = start("-t", plan, *words)
    seen = run_dir / ("journal.jsonl" if plan == "jmx/tasks.jmx" else "samples.jtl")
    wait_for(lambda: seen.exists() and seen.read_text().count("\n") > 5, what="for the first samples")
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 4, stderr
    assert left_running() == []
    rows = (run_dir / "samples.csv").read_text().count("\n") - 1
    # The pool has all tasks in hand: those not done are told as cut off.
    assert rows == (2000 if plan == "jmx/tasks.jmx" else seen.read_text().count("\n") - 1)
    reasons = json.loads((run_dir / "summary.json").read_text())["missing"]
    assert len(reasons) == 1 and "SIGINT" in reasons[0]


def test_a_second_interrupt_ends_it_at_once(
    start: Callable[..., subprocess.Popen[str]],
    wait_for: Callable[..., None],
    left_running: Callable[[], list[str]],
    tmp_path: Path,
) -> None:
    process = start(*LONG)
    wait_for(lambda: journal_lines(tmp_path / "run") > 5)
    process.send_signal(signal.SIGINT)
    wait_for((tmp_path / "run" / "stop").exists)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=40)
    assert process.returncode == 4
    assert left_running() == []


def test_a_killed_conductor_leaves_nothing_running(
    start: Callable[..., subprocess.Popen[str]],
    run_sh: Callable[..., Any],
    wait_for: Callable[..., None],
    left_running: Callable[[], list[str]],
    tmp_path: Path,
) -> None:
    process = start(*LONG)
    wait_for(lambda: journal_lines(tmp_path / "run") > 5)
    os.kill(process.pid, signal.SIGKILL)
    wait_for(lambda: left_running() == [], timeout_s=10, what="for the processes of the run to end")
    done = run_sh("report", str(tmp_path / "run"), output=False)
    assert done.status == 4, done.stderr
    assert (tmp_path / "run" / "samples.csv").read_text().count("\n") - 1 >= journal_lines(tmp_path / "run") > 5
    assert (tmp_path / "run" / "index.html").exists()


def test_a_target_that_dies_makes_the_run_partial(
    start: Callable[..., subprocess.Popen[str]], wait_for: Callable[..., None], tmp_path: Path, port: int
) -> None:
    process = start(*LONG)
    wait_for(lambda: journal_lines(tmp_path / "run") > 5)
    [target] = [
        each
        for each in psutil.process_iter(["cmdline"])
        if re.search(rf"^\S+python\S* \S*app\.py .*--port {port}", " ".join(each.info["cmdline"] or ()))
    ]
    target.kill()
    _, stderr = process.communicate(timeout=90)
    assert process.returncode == 4, stderr
    assert "target ended during the run" in (tmp_path / "run" / "index.html").read_text()


def test_a_report_can_be_made_again(run_sh: Callable[..., Any], faulty: Callable[[str], str]) -> None:
    done = run_sh("-t", "jmx/video-per-user.jmx", f"-Jurl={faulty('error')}", "-Jusers=1", "-Jframes=3")
    before = {name: (done.run_dir / name).read_bytes() for name in ("index.html", "summary.json", "samples.csv")}
    for name in (*before, "junit.xml"):
        (done.run_dir / name).unlink()
    again = run_sh("report", str(done.run_dir), output=False)
    assert again.status == done.status == 3
    assert {name: (done.run_dir / name).read_bytes() for name in before} == before
    relaxed = run_sh("report", os.path.relpath(done.run_dir), "--fail-if", "frame success < 0 %", output=False)
    assert relaxed.status == 0
    assert "no dashboard" not in relaxed.stderr
