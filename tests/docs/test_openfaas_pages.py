"""The commands of README and of the pages that need this machine alone, with its local OpenFaaS."""

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from framestorm import paths

ROOT = Path(__file__).parents[2]
Commands = Callable[[str], list[Any]]


@pytest.fixture(scope="module")
def noop_deployed() -> Iterator[None]:
    """A local OpenFaaS with the function that README's examples call."""
    for words in (["target", "openfaas"], ["target", "deploy", "--filter", "noop"]):
        subprocess.run([ROOT / "run.sh", *words], check=True, capture_output=True, timeout=600)
    yield
    subprocess.run([ROOT / "run.sh", "target", "down"], check=True, capture_output=True, timeout=120)


def test_readme(reader: Any, commands: Commands, noop_deployed: None, tmp_path: Path, display: str) -> None:
    main_job, test, requests, rate, gui, study = commands("README.md")
    reader.run(main_job)
    assert test.words == ["test"]  # runs this
    for command in (requests, rate):
        reader.run(command)
    environment = {**os.environ, "DISPLAY": display}
    window = subprocess.Popen([ROOT / "run.sh", *gui.words, "--port", "18081"], env=environment, start_new_session=True)
    try:
        with pytest.raises(subprocess.TimeoutExpired):
            window.wait(15)  # the window stays open until it is closed
    finally:
        os.killpg(window.pid, 15)
        window.wait()
    out = tmp_path / "study"
    reader.run(study, "--only", "users=1", "--only", "sleep_s=0", "--repetitions", "1", "-o", str(out))
    assert json.loads((out / "study.json").read_text())["state"] == "complete"


def test_openfaas(reader: Any, commands: Commands) -> None:
    for command in commands("openfaas.md"):
        output = reader.run(command)
        if command.words[:2] == ["target", "status"]:
            assert "noop: 3 of 3 replicas ready" in output


def test_report(reader: Any, commands: Commands, tmp_path: Path) -> None:
    run, rebuild, judge = commands("report.md")
    folder = run.words[-1]
    reader.names[folder] = str(tmp_path / "first")
    reader.run(run)
    first = (tmp_path / "first" / "summary.json").read_bytes()
    reader.run(rebuild)
    assert (tmp_path / "first" / "summary.json").read_bytes() == first
    reader.run(judge)


def test_studies(reader: Any, commands: Commands, tmp_path: Path) -> None:
    listing, dry_run, quick, every, resume = commands("studies.md")
    assert "balancers" in reader.run(listing)
    reader.run(dry_run)
    only = ("--only", "runtime=go", "--only", "way=fork", "--only", "users=1", "--repetitions", "1")
    reader.run(quick, *only, "-o", str(tmp_path / "watchdog"))
    reader.run(every, "--dry-run")
    name = resume.words[1]
    folder = interrupted_study(name)
    try:
        reader.run(resume)
        assert json.loads((folder / "study.json").read_text())["state"] == "complete"
    finally:
        shutil.rmtree(folder)


def interrupted_study(name: str) -> Path:
    """Begin a study of two short runs where --resume looks for it, and stop it after the first; its folder."""
    before = set(paths.DASHBOARDS.glob(f"{name}-*"))
    words = ["--only", "way=kept-alive", "--only", "users=1", "--only", "sleep_s=0,1", "--repetitions", "1"]
    command = [ROOT / "run.sh", "study", name, *words, "-Jframes=1"]
    study = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline_s = time.monotonic() + 120
    while True:
        assert study.poll() is None and time.monotonic() < deadline_s
        folders = set(paths.DASHBOARDS.glob(f"{name}-*")) - before
        if folders and (runs := next(iter(folders)) / "runs.jsonl").exists() and runs.stat().st_size:
            break
        time.sleep(0.1)
    study.send_signal(signal.SIGINT)
    study.wait(60)
    return folders.pop()


def test_comparing(reader: Any, commands: Commands, tmp_path: Path) -> None:
    two_runs, repetitions, levels = commands("comparing.md")
    runs = []
    for number in range(2):
        runs.append(tmp_path / f"run{number}")
        words = ["-Jusers=1", "-Jhold_s=3", "-Jframes=4", "--port", "18080", "-o", str(runs[-1])]
        subprocess.run([ROOT / "run.sh", *words], check=True, capture_output=True, timeout=120)
    first, second = two_runs.words[1:3]
    copies = []
    for name in "ABCD":
        copies.append(str(shutil.copytree(runs[0], tmp_path / name)))
    reader.run(two_runs, "-o", str(tmp_path / "c1"), instead={first: str(runs[0]), second: str(runs[1])})
    a, b = repetitions.words[1:3]
    instead = {a: f"{runs[0]},{copies[0]}", b: f"{runs[1]},{copies[1]}"}
    reader.run(repetitions, "-o", str(tmp_path / "c2"), instead=instead, status=0)
    study = tmp_path / "levels"
    assert levels.words[-2:] == ["--factor", "way=fork,kept-alive"]
    words = ["study", "threads-by-sleep", "--quick", "--only", "users=1", "--only", "sleep_s=0", "--repetitions", "1"]
    subprocess.run([ROOT / "run.sh", *words, "-o", str(study)], check=True, capture_output=True, timeout=300)
    reader.run(levels, "-o", str(tmp_path / "c3"), instead={levels.words[1]: str(study)})
