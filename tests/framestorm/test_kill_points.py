"""The conductor, its reports and a client, killed at every write that they make: what is left is read, and not trusted.

The enumeration is that of tests/kill_points.py. JMeter's own files come from a program that replays them.
"""

import json
import os
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

from framestorm import conductor, paths
from framestorm.errors import FramestormError
from framestorm.model import files
from framestorm.model.run import Record
from framestorm.model.study import Study
from framestorm.model.summary import Summary
from framestorm.points import run_figures
from framestorm.points.folder import COMPLETE, StudyFolder, StudyRecord
from framestorm.points.run_figures import RunFigures
from framestorm.report import build
from framestorm.results.clients import read_clients
from framestorm.results.reading import RAW_FILES
from framestorm.run import jmeter, target, video
from framestorm.run.options import Output, RunOptions, What
from framestorm.study.design import matrix
from framestorm.study.engine import Engine
from tests import kill_points
from tests.client.conftest import write_video
from tests.framestorm.results.conftest import FakeRun
from tests.framestorm.study.conftest import PLAIN
from tests.kill_points import at_each_write
from tests.stand_in import StartServer

# What takes long to import is imported once, before the forks.
kill_points.FORKS.set_forkserver_preload([__name__, "framestorm.report.page"])
USERS, FRAMES = 3, 4
# JMeter and its users: each file in two halves.
REPLAY = """
import pathlib, sys, time
source, run = map(pathlib.Path, sys.argv[1:])
for part in (0, 1):
    for name in ("journal.jsonl", "samples.jtl", "tree.xml"):
        text = (source / name).read_bytes()
        with (run / name).open("ab") as file:
            file.write(text[len(text) // 2:] if part else text[:len(text) // 2])
    time.sleep(0.1)
"""


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    """The files of a complete run."""
    run = FakeRun(tmp_path / "raw")
    for _ in range(USERS):
        run.user([{}] * FRAMES)
    return run.write()


def make_run(folder: Path) -> None:
    """A run and its report, by a JMeter that replays the raw files."""
    replay = [sys.executable, "-I", "-S", "-c", REPLAY, str(folder.parent / "raw"), str(folder / "run")]
    jmeter.run_command = lambda *_, **__: replay
    target.check_reachable = lambda *_: None
    video.cut = lambda video, properties: Path("/here/frames")
    what = What(paths.JMX / "face-blur.jmx", {"url": "http://127.0.0.1:9/x"})
    conductor.run(RunOptions(what, output=Output(folder / "run")))


def make_run_on_disk(folder: Path) -> None:
    """A run; what run.json calls complete has been flushed to disk, as it is, before run.json says so."""
    on_disk: dict[int, tuple[int, int]] = {}
    is_checked = False
    fsync, write = os.fsync, files.write

    def flush(descriptor: int) -> None:
        fsync(descriptor)
        status = os.fstat(descriptor)
        on_disk[status.st_ino] = (status.st_size, status.st_mtime_ns)

    def check(path: Path, noun: object, **words: Any) -> None:
        nonlocal is_checked
        if isinstance(noun, Record) and noun.state == "complete":
            is_checked = True
            for each in (folder, *(folder / "run").iterdir()):
                status = each.stat()
                assert on_disk.get(status.st_ino) == (status.st_size, status.st_mtime_ns), each
        write(path, noun, **words)

    os.fsync, files.write = flush, check
    make_run(folder)
    assert is_checked


def make_report(folder: Path) -> None:
    build(folder)


def check_run(run: Path) -> str:
    """Report what a killed run left; the verdict."""
    for name, kind in (("run.json", Record), ("summary.json", Summary)):
        if (run / name).exists():
            files.read(run / name, kind)
    if not any((run / name).exists() for name in RAW_FILES):
        with pytest.raises(FramestormError):
            build(run)
        return "nothing"
    verdict = build(run).word
    summary = files.read(run / "summary.json", Summary)
    if verdict == "pass":
        assert summary.run.state == "complete" and summary.labels["frame"].n == USERS * FRAMES
    else:
        assert verdict in ("partial", "unjudged") and summary.missing and summary.run.state == "running"
    return verdict


def test_a_run_killed_at_any_write_is_reported_and_never_complete(raw: Path, tmp_path: Path) -> None:
    verdicts = [check_run(folder / "run") for folder in at_each_write(make_run, tmp_path)]
    assert len(verdicts) > 30 and {"nothing", "partial", "pass"} <= set(verdicts)
    assert verdicts[-1] == "pass"


def test_a_complete_run_is_on_disk(raw: Path, tmp_path: Path) -> None:
    (tmp_path / "whole").mkdir()
    process = kill_points.FORKS.Process(target=make_run_on_disk, args=(tmp_path / "whole",))
    process.start()
    assert kill_points.ended(process) == 0


def test_a_report_killed_at_any_write_is_made_again(raw: Path, tmp_path: Path) -> None:
    def copy(folder: Path) -> None:
        folder.mkdir()
        for file in raw.iterdir():
            (folder / file.name).write_bytes(file.read_bytes())

    verdicts = [check_run(folder) for folder in at_each_write(make_report, tmp_path, copy)]
    assert len(verdicts) > 30 and set(verdicts) == {"pass"}


def figures_of_run(run_dir: Path, *_: object) -> RunFigures:
    return RunFigures({"mean_ms": float((run_dir / "figure").read_text()), "n": 1}, {}, ())


def run_point(_: Engine, options: RunOptions) -> None:
    assert options.output.run_dir is not None
    options.output.run_dir.mkdir()
    (options.output.run_dir / "figure").write_text(options.what.given["users"])


def make_study(folder: Path) -> None:
    """A study of two points, made or gone on with; each run is a file of one figure."""
    Engine._run = run_point  # type: ignore[assignment]
    run_figures.figures_of_run = figures_of_run
    where = folder / "study"
    if not where.exists():
        content = PLAIN | {"name": "killed", "target": {"kind": "url", "url": "http://127.0.0.1:9/x"}, "repetitions": 1}
        study = Study.model_validate(content)
        (folder / "study.yml").write_text(json.dumps(content))
        StudyFolder.create(where, StudyRecord.begin(folder / "study.yml", study, matrix.points(study), seed=1))
    Engine(StudyFolder(where)).run()


def test_a_study_killed_at_any_write_is_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Engine, "_run", run_point)
    monkeypatch.setattr(run_figures, "figures_of_run", figures_of_run)
    states = []
    for folder in at_each_write(make_study, tmp_path):
        where = folder / "study"
        if not (where / "study.json").exists():
            assert not (where / "runs.jsonl").exists() or not (where / "runs.jsonl").read_text()
            continue
        study = StudyFolder(where)
        states.append(study.record.state)
        is_done = [line.state for line in study.lines().values()] == [COMPLETE] * 2
        assert is_done or study.record.state != COMPLETE
        make_study(folder)
        study = StudyFolder(where)
        lines = [line for line in study._all() if line.state == COMPLETE]
        assert len(lines) == len({line.point for line in lines}) == 2 and study.record.state == COMPLETE
        for line in lines:
            assert (where / line.run / "figure").read_text() in "12"
    assert len(states) > 40 and states[0] == "running" and states[-1] == COMPLETE


def send_video(folder: Path) -> None:
    """The client as JMeter starts it, with its output in a file."""
    os.dup2(os.open(folder / "stdout", os.O_WRONLY | os.O_CREAT), 1)
    sys.path.insert(0, str(paths.CLIENT))
    url = (folder.parent / "url").read_text()
    words = ["--url", url, "--video", folder.parent / "clip.mp4", "--cache", folder.parent / "cache", "--frames", "2"]
    sys.argv = ["client.py", *map(str, words), "--journal", str(folder / "journal.jsonl"), "--verify-share", "0"]
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(paths.CLIENT / "client.py"), run_name="__main__")
    assert ended.value.code == 0


def test_a_client_killed_at_any_write_has_in_the_journal_what_it_sent(tmp_path: Path, stand_in: StartServer) -> None:
    function = stand_in({})
    (tmp_path / "url").write_text(function.url)
    write_video(tmp_path / "clip.mp4", 2)
    seen, lines = 0, [0]
    for folder in at_each_write(send_video, tmp_path):
        sent, seen = len(function.received) - seen, len(function.received)
        clients = read_clients(folder, folder / "samples.csv")
        (user,) = clients.users.values() or [None]
        known = user.sources.count(2) if user else 0
        assert sent - 1 <= known <= sent, "the one that it was about to write may be lost"
        assert user is None or user.ended == user.has_last_line
        assert known == sent == 2 or not (user and user.ended)
        lines.append(known)
    assert lines == sorted(lines) and lines[-1] == 2 and len(lines) > 12
