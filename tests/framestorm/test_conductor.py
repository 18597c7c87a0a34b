import os
import signal
import subprocess
import sys
import time
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from framestorm import conductor, paths
from framestorm.conductor import _check_for_slaves
from framestorm.errors import FramestormError, UsageError
from framestorm.hosts.inventory import Hosts, InventoryHost
from framestorm.model import files, plan, run
from framestorm.run import jmeter, target
from framestorm.run.load import LocalLoad
from framestorm.run.options import Output, RunOptions, What, Where

REQUESTS = RunOptions(What(paths.JMX / "requests.jmx", {"url": "http://127.0.0.1:9/", "body": "x"}))


def hosts(count: int, functions: int = 1) -> Hosts:
    def host(name: str) -> InventoryHost:
        return InventoryHost(name, (), "192.0.2.1")

    return Hosts([host(f"slave{number}") for number in range(count)], None, [host("function1")] * functions)


@pytest.fixture(autouse=True)
def _nobody_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any function is taken to be reachable, and a program that ends at once runs in place of JMeter."""
    monkeypatch.setattr(target, "check_reachable", lambda *_: None)
    monkeypatch.setattr(jmeter, "run_command", lambda *_, **__: ["true"])


@pytest.mark.parametrize(
    ("name", "given", "there", "words"),
    [
        ("tasks", {}, hosts(2), r"no total to split over 2 slaves \(slave0, slave1\)"),
        ("face-blur", {}, hosts(2, functions=0), r"\[function\] of .* is empty"),
        ("tasks", {}, hosts(1), None),
        ("requests", {"url": "http://192.0.2.1/"}, hosts(2, functions=0), None),
        ("face-blur", {}, hosts(2), None),
    ],
)
def test_what_slaves_cannot_take(name: str, given: dict[str, str], there: Hosts, words: str | None) -> None:
    what = What(paths.JMX / f"{name}.jmx", given)
    with pytest.raises(UsageError, match=words) if words else nullcontext():
        _check_for_slaves(what, Where("slaves"), plan.read(what.plan), there)


def test_the_record_has_the_hosts_as_the_load_left_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their clocks are measured again."""
    offsets_ms = iter((0.0, 5000.0))
    monkeypatch.setattr(LocalLoad, "hosts", lambda _: (run.Host("a", "generator", clock_offset_ms=next(offsets_ms)),))
    run_dir = conductor.run(replace(REQUESTS, output=Output(tmp_path / "run")))
    assert [host.clock_offset_ms for host in files.read(run_dir / "run.json", run.Record).hosts] == [5000.0]


def test_a_clock_that_is_set_during_a_run_is_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An hour back, while JMeter runs."""
    set_by = {"ms": 0}
    monkeypatch.setattr(conductor, "now_ms", lambda: int(time.time() * 1000) + set_by["ms"])
    monkeypatch.setattr(LocalLoad, "wait", lambda *_: set_by.update(ms=-3_600_000) or 0)
    run_dir = conductor.run(replace(REQUESTS, output=Output(tmp_path / "run")))
    assert files.read(run_dir / "run.json", run.Record).clock_step_ms == pytest.approx(-3_600_000, abs=50)


def test_two_runs_in_one_second_have_a_folder_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if one makes its folder while the other is being prepared."""
    monkeypatch.setattr(paths, "DASHBOARDS", tmp_path)
    monkeypatch.setattr(time, "strftime", lambda *_: "20260101T000000Z")
    name = "requests-20260101T000000Z"
    made = [conductor.run(REQUESTS), conductor.run(REQUESTS)]
    monkeypatch.setattr(target, "check_reachable", lambda *_: (tmp_path / f"{name}-3").mkdir(exist_ok=True))
    made.append(conductor.run(REQUESTS))
    assert [path.name for path in made] == [name, f"{name}-2", f"{name}-4"]
    assert list((tmp_path / f"{name}-3").iterdir()) == []
    assert {files.read(path / "run.json", run.Record).state for path in made} == {"complete"}


def test_what_is_ignored_stays_so() -> None:
    """As under nohup, which is there so that the run goes on without its terminal."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        stop = conductor.StopSignals()
        with stop.caught():
            os.kill(os.getpid(), signal.SIGHUP)
            os.kill(os.getpid(), signal.SIGTERM)
        assert (stop.count, stop.name) == (1, "SIGTERM")
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_terminal_that_closes_stops_a_run_gently() -> None:
    """The kernel tells it, and so does the shell."""
    stop = conductor.StopSignals()
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # where the tests run under nohup, it is ignored
    try:
        with stop.caught():
            for number in (signal.SIGHUP, signal.SIGHUP):
                os.kill(os.getpid(), number)
    finally:
        signal.signal(signal.SIGHUP, before)
    assert (stop.count, stop.name) == (1, "SIGHUP")


def test_a_signal_is_counted_where_nobody_reads_the_messages() -> None:
    """As with `2>&1 | less`, once the pipe is full."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with suppress(BlockingIOError):
        while True:
            os.write(writer, b"x" * 4096)
    os.set_blocking(writer, True)
    program = (
        "import os, signal\n"
        "from framestorm.conductor import StopSignals\n"
        "stop = StopSignals()\n"
        "with stop.caught():\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "print(stop.count, stop.name)\n"
    )
    try:
        words = [sys.executable, "-P", "-c", program]
        environment = {**os.environ, "PYTHONPATH": str(paths.ROOT)}
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=writer, env=environment, timeout=60, check=True)
    finally:
        os.close(reader)
        os.close(writer)
    assert done.stdout.split() == [b"1", b"SIGTERM"]


def test_an_interrupt_ends_a_start_that_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ends = []

    def start(_: LocalLoad) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        ends.append("the wait for a slave, say")

    monkeypatch.setattr(LocalLoad, "start", start)
    with pytest.raises(FramestormError, match="stopped by SIGINT before the run began"):
        conductor.run(replace(REQUESTS, output=Output(tmp_path / "run")))
    assert (ends, list(tmp_path.iterdir())) == ([], [])


def test_an_interrupt_before_a_start_of_a_study_lets_nothing_begin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop = conductor.StopSignals()
    stop.count, stop.name = 1, "SIGTERM"
    monkeypatch.setattr(LocalLoad, "start", lambda _: pytest.fail("it was started"))
    with pytest.raises(FramestormError, match="stopped by SIGTERM before the run began"):
        conductor.run(replace(REQUESTS, output=Output(tmp_path / "run")), stop)


def test_an_interrupt_after_the_load_leaves_a_run_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LocalLoad, "collect", lambda _: os.kill(os.getpid(), signal.SIGINT) or [])
    stop = conductor.StopSignals()
    run_dir = conductor.run(replace(REQUESTS, output=Output(tmp_path / "run")), stop)
    record = files.read(run_dir / "run.json", run.Record)
    assert (stop.count, record.state, record.reason) == (1, "complete", None)


def test_an_interrupt_as_the_folder_is_made_leaves_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def make(run_dir: Path) -> bool:
        run_dir.mkdir()
        os.kill(os.getpid(), signal.SIGINT)
        return True

    monkeypatch.setattr(conductor, "_made", make)
    with pytest.raises(FramestormError, match="stopped by SIGINT before the run began"):
        conductor.run(replace(REQUESTS, output=Output(tmp_path / "run")))
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_another_run_makes_meanwhile_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "run"
    monkeypatch.setattr(target, "check_reachable", lambda *_: folder.mkdir())
    with pytest.raises(UsageError, match="was made by another run"):
        conductor.run(replace(REQUESTS, output=Output(folder)))
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(("logger", "rows"), [("f.p.Requests", ""), ("o.a.j.x", "1790000000000,5,request\n")])
def test_only_the_elements_of_the_kit_refuse_a_run(
    logger: str, rows: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A script of the plan may log an answer that looks like a refusal."""
    left, run_dir = tmp_path / "left", tmp_path / "run"
    left.mkdir()
    (left / "jmeter.log").write_text(f'ERROR {logger}: {{"type":"refused","why":"an answer"}}\n')
    (left / "samples.jtl").write_text(f"timeStamp,elapsed,label\n{rows}")
    monkeypatch.setattr(jmeter, "run_command", lambda *_, **__: ["cp", "-r", f"{left}/.", str(run_dir)])
    with nullcontext() if rows else pytest.raises(UsageError, match="an answer"):
        conductor.run(replace(REQUESTS, output=Output(run_dir)))
    assert run_dir.exists() == bool(rows)
    if rows:
        assert "an answer" not in (files.read(run_dir / "run.json", run.Record).reason or "")


def test_a_run_in_which_one_of_the_slaves_refused_is_partial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left, run_dir = tmp_path / "left", tmp_path / "run"
    left.mkdir()
    (left / "jmeter-server-slave1.log").write_text(
        'ERROR f.p.Requests: {"type":"refused","why":"rows.csv has no rows"}\n'
    )
    (left / "samples.jtl").write_text("timeStamp,elapsed,label\n1790000000000,5,request\n")
    monkeypatch.setattr(jmeter, "run_command", lambda *_, **__: ["cp", "-r", f"{left}/.", str(run_dir)])
    monkeypatch.setattr(conductor, "find_slaves", lambda *_: hosts(2))
    monkeypatch.setattr(conductor, "Fleet", lambda prepared, _: LocalLoad(prepared))
    what = What(paths.JMX / "requests.jmx", {"url": "http://192.0.2.1/", "body": "x"})
    conductor.run(RunOptions(what, Where("slaves"), Output(run_dir)))
    record = files.read(run_dir / "run.json", run.Record)
    assert (record.state, record.reason) == ("failed", "a part of the load was not sent: rows.csv has no rows")


@pytest.mark.parametrize(
    ("command", "how"), [("exit 3", "ended with status 3"), ("kill -9 $$", "was ended by signal 9 (Killed)")]
)
def test_how_jmeter_ended_is_recorded(command: str, how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jmeter, "run_command", lambda *_, **__: ["sh", "-c", command])
    run_dir = conductor.run(replace(REQUESTS, output=Output(tmp_path / "run")))
    record = files.read(run_dir / "run.json", run.Record)
    assert f"JMeter {how}" in (record.reason or "")
