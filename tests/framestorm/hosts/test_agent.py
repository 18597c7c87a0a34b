"""The agent on this machine: lines however they are cut, and the orders of a run without systemd and ssh."""

import base64
import contextlib
import getpass
import hashlib
import json
import os
import pwd
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path

import psutil
import pytest

from framestorm import client_server, paths, probe
from framestorm.hosts import agent, followed, messages, server
from framestorm.hosts.account import HostAccount
from framestorm.hosts.agent import Agent
from framestorm.hosts.controller import Controller
from framestorm.hosts.followed import FollowedFiles
from framestorm.hosts.messages import (
    Beat,
    Begin,
    CannotError,
    Chunk,
    Description,
    DescriptorLines,
    Done,
    FilePiece,
    Got,
    Open,
)
from framestorm.hosts.server import Unit
from framestorm.machine import wait_until
from tests import fuzz

HANDLES = "import signal, time; signal.signal(signal.SIGTERM, lambda *_: exit(7)); print(flush=True); time.sleep(60)"


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    read, write = os.pipe()
    yield read, write
    os.close(read)
    os.close(write)


def test_lines_come_whole_however_they_are_cut(pipe: tuple[int, int]) -> None:
    lines, read = DescriptorLines(pipe[0]), []
    for part in (b"one\ntw", b"o", b"\n", b"\nthree\nfo"):
        os.write(pipe[1], part)
        read += lines.wait(1)
    assert read == [b"one", b"two", b"", b"three"]
    assert not lines.ended


def test_a_line_without_end_is_refused(pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "LINE_AT_MOST_BYTES", 10)
    lines = DescriptorLines(pipe[0])
    os.write(pipe[1], b"x" * 10)
    assert lines.wait(1) == []
    os.write(pipe[1], b"x")
    with pytest.raises(ValueError, match="longer than 10 bytes"):
        lines.wait(1)


def test_a_part_of_a_line_is_a_sign_of_life_too(pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    lines = DescriptorLines(pipe[0])
    later = time.monotonic() + 100
    monkeypatch.setattr(messages.time, "monotonic", lambda: later)
    assert lines.wait(0) == []
    assert lines.heard_s < later
    os.write(pipe[1], b"x" * 1000)
    assert lines.wait(1) == []
    assert lines.heard_s == later


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[messages.Answer]:
    """What the agents of a test answer."""
    given: list[messages.Answer] = []
    monkeypatch.setattr(agent, "answer", given.append)
    monkeypatch.setattr(agent, "LOCK", tmp_path / "lock")
    return given


@pytest.fixture
def new_agent(answers: list[messages.Answer]) -> Iterator[Callable[..., Agent]]:
    """Make an agent that knows its host; what it holds open is closed with the test."""
    agents = []

    def make(account: str, runs: Path) -> Agent:
        agents.append(Agent())
        agents[-1].server = server.of(Description(user=account, runs=str(runs)))
        return agents[-1]

    yield make
    for each in agents:
        each.become_idle()
        each.followed.close()
        if each.lock is not None:
            each.lock.close()


@pytest.fixture
def on_host(new_agent: Callable[..., Agent], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Agent:
    """An agent of this machine, by the account of the tests, which has other processes: none of them may be stopped."""
    monkeypatch.setattr(probe, "processes", lambda account: [])
    (tmp_path / "runs").mkdir()
    return new_agent(getpass.getuser(), tmp_path / "runs")


OPEN = Open("run7", "run7 of here")


def begin(command: str) -> Begin:
    return Begin({"tree.xml": "tree.xml"}, ["/bin/sh", "-c", command])


def piece(file: str, content: bytes, digest: str = "") -> FilePiece:
    return FilePiece(file, base64.b64encode(content).decode(), digest)


def test_a_controller_runs_and_its_files_are_handed_in(
    on_host: Agent, answers: list[messages.Answer], tmp_path: Path
) -> None:
    left_over = tmp_path / "runs" / "run7" / "old"
    left_over.mkdir(parents=True)
    (tmp_path / "runs" / "crashed").mkdir()
    on_host.open(OPEN)
    assert [path.name for path in (tmp_path / "runs").rglob("*")] == ["run7"], "what crashed runs left is gone"
    on_host.take(piece("data/plan", b"a\n"))
    on_host.take(piece("data/plan", b"b\n", hashlib.sha256(b"a\nb\n").hexdigest()))
    assert answers[1:] == [Got("data/plan")] * 2
    on_host.begin(begin("cat data/plan >> tree.xml; exit 3"))
    assert on_host.controller is not None and on_host.controller.wait(20) == 3
    on_host._beat()
    on_host.end()
    assert (tmp_path / "runs" / "run7").exists(), "until the conductor has confirmed the receipt"
    chunks = [each for each in answers if isinstance(each, Chunk)]
    assert {each.file for each in chunks} == {"tree.xml"}
    assert b"".join(base64.b64decode(each.data) for each in chunks) == b"a\nb\n"
    assert [each.exit_status for each in answers if isinstance(each, Beat)] == [3]
    assert answers[-1] == Done({"tree.xml": 2})
    for _ in range(2):  # the second time the folder is gone, as if someone had deleted it
        with pytest.raises(SystemExit):
            on_host.leave()
    assert list((tmp_path / "runs").iterdir()) == []


def test_what_is_left_of_a_run_of_the_same_name_is_out_of_the_way_even_if_it_cannot_be_deleted(
    on_host: Agent, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    left_over = tmp_path / "runs" / "run7" / "old"
    left_over.mkdir(parents=True)
    with monkeypatch.context() as written_to:
        written_to.setattr(shutil, "rmtree", lambda *_, **__: None)
        on_host.open(OPEN)
    assert list((tmp_path / "runs" / "run7").iterdir()) == []
    assert on_host.lock is not None
    on_host.lock.close()
    on_host.open(OPEN)
    assert [path.name for path in (tmp_path / "runs").rglob("*")] == ["run7"], "the next run deletes it"


def test_a_controller_that_is_stopped_by_a_signal_is_frozen(on_host: Agent, answers: list[messages.Answer]) -> None:
    """Or the run would wait for it for ever."""
    on_host.open(OPEN)
    on_host.begin(begin("exec sleep 60"))
    assert on_host.controller is not None
    for number in (signal.SIGCONT, signal.SIGSTOP):
        on_host.controller.send_signal(number)
        assert wait_until(lambda number=number: frozen(on_host, answers) == (number == signal.SIGSTOP), 20)
    on_host.controller.kill()


def frozen(agent: Agent, answers: list[messages.Answer]) -> bool:
    agent._beat()
    beat = answers[-1]
    return isinstance(beat, Beat) and beat.frozen


def test_a_controller_finds_the_key_of_ssl(on_host: Agent, tmp_path: Path) -> None:
    key = tmp_path / "kit" / ".local" / "deploy" / "key"
    key.parent.mkdir(parents=True)
    key.write_text("of the deployment")
    on_host.server = server.of(replace(on_host.host, folder=str(tmp_path / "kit")))
    on_host.open(OPEN)
    on_host.begin(begin("cat .local/deploy/key > tree.xml"))
    assert on_host.controller is not None and on_host.controller.wait(20) == 0
    assert (tmp_path / "runs" / "run7" / "tree.xml").read_text() == "of the deployment"
    on_host.end()
    with pytest.raises(SystemExit):
        on_host.leave()
    assert key.exists()


def test_a_client_server_stands_beside_jmeters_and_its_end_is_the_hosts(
    on_host: Agent, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(on_host, "_start_server", lambda secrets: None)
    monkeypatch.setattr(Unit, "_systemctl", lambda *_: None)
    monkeypatch.setattr(server, "ENVIRONMENT", tmp_path / "run.env")
    monkeypatch.setattr(probe, "show", lambda *_: "1")
    on_host.server = server.of(replace(on_host.host, python=sys.executable, folder=str(paths.ROOT)))
    name = client_server.new_name("run7")
    on_host.open(OPEN)
    on_host.begin(Begin({}, client_server=name))
    assert on_host.client_server is not None
    status = Path(f"/proc/{on_host.client_server.pid}/status").read_text()
    assert "NoNewPrivs:\t1" in status
    on_host._beat()
    with monkeypatch.context() as full:
        full.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(1 << 30, 1 << 30, 0))  # type: ignore[attr-defined]
        with pytest.raises(CannotError, match="is full"):
            on_host._beat()
    on_host.client_server.kill()
    with pytest.raises(CannotError, match="client server ended"):
        wait_until(on_host._beat, 20)
    on_host.become_idle()


def test_a_busy_host_names_its_run(on_host: Agent, new_agent: Callable[..., Agent]) -> None:
    on_host.open(OPEN)
    on_host.begin(begin("sleep 60"))
    other = new_agent(on_host.host.user, Path(on_host.host.runs))
    with pytest.raises(CannotError, match="run7 of here"):
        other.open(OPEN)
    assert (Path(on_host.host.runs) / "run7").is_dir()
    assert probe.lock_holder(agent.LOCK) == "run7 of here"
    on_host.become_idle()
    assert on_host.controller is not None and on_host.controller.returncode not in (0, None)


def test_clients_are_told_to_stop_once(on_host: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_host.run_dir = tmp_path
    with subprocess.Popen([sys.executable, "-c", HANDLES], stdout=subprocess.PIPE) as client:
        assert client.stdout is not None
        client.stdout.readline()
        monkeypatch.setattr(probe, "processes", lambda account: [client.pid])
        on_host.stop()
        assert client.wait(20) == 7
    assert (tmp_path / "stop").exists()
    assert on_host.stopping and on_host.stopped_clients == {client.pid}


def test_a_controller_is_told_to_stop_gently_and_at_once(on_host: Agent) -> None:
    on_host.open(OPEN)
    on_host.begin(begin("exec sleep 60"))
    on_host.stop()
    assert on_host.run_dir is not None and on_host.controller is not None
    assert (on_host.run_dir / "Shutdown").exists() and not (on_host.run_dir / "StopTestNow").exists()
    on_host.interrupt()
    assert (on_host.run_dir / "StopTestNow").exists()
    on_host.kill()
    assert on_host.controller.wait(20) == -signal.SIGTERM


def test_a_link_in_place_of_the_folder_leads_nowhere(new_agent: Callable[..., Agent]) -> None:
    """The account of the runs may be taken over: nothing is written where it could not write by itself."""
    account = "nobody" if os.geteuid() == 0 else getpass.getuser()
    with tempfile.TemporaryDirectory() as folder:
        runs, elsewhere = Path(folder) / "runs", Path(folder) / "elsewhere"
        elsewhere.mkdir()
        runs.mkdir()
        Path(folder).chmod(0o755)
        if os.geteuid() == 0:
            os.chown(runs, pwd.getpwnam(account).pw_uid, -1)
        (runs / "run7").symlink_to(elsewhere)
        taken_over = new_agent(account, runs)
        taken_over.open(OPEN)
        (runs / "run7" / "data").symlink_to(elsewhere)
        (runs / "run7" / "tree.xml").symlink_to(elsewhere / "tree.xml")
        if os.geteuid() == 0:
            with pytest.raises(CannotError, match="cannot be written"):
                taken_over.take(piece("data/plan", b"written"))
        taken_over.followed = FollowedFiles({"tree.xml": runs / "run7" / "tree.xml"})
        (elsewhere / "tree.xml").write_text("not of the run")
        with pytest.raises(OSError, match="symbolic links"):
            taken_over._send_growth()
        assert [path.name for path in elsewhere.iterdir()] == ["tree.xml"]
    assert os.geteuid() == os.getuid()


def test_a_pipe_in_place_of_a_file_blocks_nobody(on_host: Agent, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "tree.xml")
    on_host.followed = FollowedFiles({"tree.xml": tmp_path / "tree.xml"})
    with pytest.raises(CannotError, match="is not a file"):
        on_host._send_growth()


def test_a_file_that_was_changed_on_its_way_is_refused(on_host: Agent) -> None:
    on_host.open(OPEN)
    with pytest.raises(CannotError, match="plan arrived damaged"):
        on_host.take(piece("plan", b"a", hashlib.sha256(b"b").hexdigest()))


def test_orders_are_heard_while_much_is_sent(
    on_host: Agent, answers: list[messages.Answer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messages, "PIECE_BYTES", 10)
    content = bytes(range(200))
    (tmp_path / "tree.xml").write_bytes(content)
    on_host.followed = FollowedFiles({"tree.xml": tmp_path / "tree.xml"})
    assert on_host._send_growth()
    assert len(answers) == followed.CHUNKS_AT_A_TIME
    while on_host._send_growth():
        pass
    assert b"".join(base64.b64decode(each.data) for each in answers if isinstance(each, Chunk)) == content


def test_what_a_fast_controller_writes_does_not_wait_for_beats(
    on_host: Agent, answers: list[messages.Answer], pipe: tuple[int, int], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """The live view, and what ends a run early, would see the load of a minute ago."""
    for name, value in (("TICK_S", 0.01), ("BEAT_S", 1.0), ("SILENCE_S", 1.9)):
        monkeypatch.setattr(agent, name, value)
    written = tmp_path / "samples.jtl"
    written.write_bytes(bytes(4 * followed.CHUNKS_AT_A_TIME * messages.PIECE_BYTES))
    on_host.followed, on_host.watching = FollowedFiles({"samples.jtl": written}), True
    with os.fdopen(os.dup(pipe[0])) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        on_host.serve()
    chunks = [base64.b64decode(each.data) for each in answers if isinstance(each, Chunk)]
    assert sum(map(len, chunks)) == written.stat().st_size
    assert sum(isinstance(each, Beat) for each in answers) == 1


def test_the_end_of_a_result_tree_is_taken_back_when_another_slave_starts(
    on_host: Agent, answers: list[messages.Answer], tmp_path: Path
) -> None:
    tree = tmp_path / "tree.xml"
    tree.write_text("<testResults>\n<sample/>\n\n</testResults>\n")
    on_host.followed = FollowedFiles({"tree.xml": tree})
    with Controller(["sleep", "60"], tmp_path, on_host.account, tmp_path) as on_host.controller:
        on_host._send_growth()
        os.truncate(tree, len("<testResults>\n<sample/>\n"))
        with tree.open("a") as file:
            file.write("<sample of='the other slave'/>\n\n</testResults>\n")
        on_host._send_growth()
        on_host.controller.end()
    on_host._send_growth()
    assert b"".join(base64.b64decode(each.data) for each in answers if isinstance(each, Chunk)) == tree.read_bytes()


def test_a_sudo_that_was_stopped_with_its_agent_goes_on() -> None:
    start = f"{sys.executable} -c 'from framestorm.hosts import agent; agent.main()' & kill -STOP $$; wait"
    with subprocess.Popen(["sh", "-c", start], cwd=paths.ROOT) as in_place_of_sudo:
        try:
            assert in_place_of_sudo.wait(20) == 0
        finally:
            in_place_of_sudo.kill()


def test_a_controller_dies_with_its_agent() -> None:
    kill = "import os, signal, subprocess, sys\nfrom framestorm.hosts import controller\n"
    kill += "child = subprocess.Popen(['sleep', '60'], preexec_fn=controller._end_with_agent)\n"
    kill += "print(child.pid, flush=True)\nos.kill(os.getpid(), signal.SIGKILL)"
    done = subprocess.run([sys.executable, "-c", kill], cwd=paths.ROOT, capture_output=True, check=False)
    assert wait_until(lambda: probe.stat(done.stdout.decode().strip())[:1] in ([], ["Z"]), 20)


def test_a_controller_has_no_more_rights_than_its_account() -> None:
    """Whatever groups the agent has, which is root."""
    account, own = HostAccount("nobody" if os.geteuid() == 0 else getpass.getuser()), os.getgroups()
    with tempfile.TemporaryDirectory() as folder:
        if os.geteuid() == 0:
            os.chown(folder, account.entry.pw_uid, account.entry.pw_gid)
            os.setgroups([*own, 4])
        try:
            command = ["grep", "-E", "^(Groups|NoNewPrivs):", "/proc/self/status"]
            with Controller(command, Path(folder), account, Path(folder)) as process:
                assert process.wait(20) == 0
        finally:
            if os.geteuid() == 0:
                os.setgroups(own)
        told = dict(line.split(":", 1) for line in Path(folder, "jmeter.out").read_text().splitlines())
    expected = os.getgrouplist(account.name, account.entry.pw_gid) if os.geteuid() == 0 else own
    assert sorted(map(int, told["Groups"].split())) == sorted(expected)
    assert told["NoNewPrivs"].strip() == "1"


@pytest.mark.parametrize("has_more", [False, True])
def test_a_server_starts_with_the_files_of_its_run(
    has_more: bool, on_host: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the plan brings no file, and where a run that crashed has left its link."""
    started: list[tuple[str, ...]] = []
    monkeypatch.setattr(server, "ENVIRONMENT", tmp_path / "environment")
    monkeypatch.setattr(Unit, "_systemctl", lambda unit, word: started.append((word, unit.described.unit)))
    (tmp_path / "log").write_text("Bound to RMI registry")
    on_host.server = server.of(replace(on_host.host, folder=str(tmp_path), log=str(tmp_path / "log"), unit="server"))
    on_host.open(OPEN)
    run_dir, words = tmp_path / "runs" / "run7", ""
    if has_more:
        (tmp_path / "plan").symlink_to("gone")
        on_host.take(piece("plan/a.csv", b"a"))
        on_host.take(piece("system.properties", b""))
        words = f" --systemPropertyFile {run_dir}/system.properties"
    on_host._start_server({"KEY": "k"})
    assert started == [("restart", "server")]
    assert (tmp_path / "plan").readlink() == run_dir / "plan"
    assert [path.name for path in (tmp_path / "plan").iterdir()] == ["a.csv"] * has_more
    given = (tmp_path / "environment").read_text().splitlines()
    assert given == ['KEY="k"', f'FRAMESTORM_RUN="--addprop {run_dir}/run.properties{words}"']
    for _ in range(2):  # by the agent and by its fence
        on_host._end_server()
        assert not (tmp_path / "environment").is_symlink() and not (tmp_path / "plan").is_symlink()
    assert started == [("restart", "server")] * 3


def test_a_server_that_is_not_ready_in_time_is_a_fault(
    on_host: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "ENVIRONMENT", tmp_path / "environment")
    monkeypatch.setattr(Unit, "_systemctl", lambda *_: None)
    monkeypatch.setattr(server, "READY_WITHIN_S", 0.3)
    on_host.server = server.of(replace(on_host.host, folder=str(tmp_path), log=str(tmp_path / "log")))
    on_host.open(OPEN)
    begun_s = time.monotonic()
    with pytest.raises(CannotError, match=r"not ready in 0 s \(see .*/log there\)"):
        on_host._start_server({})
    assert time.monotonic() - begun_s >= 0.3


@pytest.mark.parametrize("pid", ["", "0", "server", "gone"])
def test_limits_are_those_of_the_unit(pid: str, on_host: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which are other ones than those of the login; without a server the login's have to do."""
    with subprocess.Popen(["/bin/sh", "-c", "ulimit -n 77; echo; exec sleep 60"], stdout=subprocess.PIPE) as started:
        assert started.stdout is not None
        started.stdout.readline()
        shown = {"server": str(started.pid), "gone": str(1 << 23)}.get(pid, pid)
        monkeypatch.setattr(probe, "show", lambda unit, name: shown)
        own = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        assert on_host.server.limits().open_files == {"server": 77, "gone": 0}.get(pid, own)
        started.kill()


def test_a_connection_is_tried_from_this_machine(on_host: Agent, answers: list[messages.Answer]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as function:
        target = "{}:{}".format(*function.getsockname())
        on_host.obey(messages.Connect(target))
    on_host.obey(messages.Connect(target))
    on_host.obey(messages.Connect("a..b:80"))
    on_host.obey(messages.Resolve(["127.0.0.2", "a..b", "127.0.0.1"], int(target.rpartition(":")[2])))
    resolved = answers.pop()
    assert isinstance(resolved, messages.Resolved) and [*resolved.addresses] == ["127.0.0.2", "127.0.0.1"]
    assert all(resolved.addresses.values())
    assert [isinstance(each, messages.Connected) and bool(each.error) for each in answers] == [False, True, True]


def test_facts_are_those_of_this_machine(
    on_host: Agent, answers: list[messages.Answer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent, "DESCRIPTION", tmp_path / "host.json")
    with pytest.raises(CannotError, match=r"host\.json cannot be read"):
        on_host.tell_facts(messages.TellFacts([]))
    described = replace(on_host.host, folder=str(tmp_path), jmeter=str(paths.JMETER_HOME))
    agent.DESCRIPTION.write_text(json.dumps(asdict(described)))
    (tmp_path / "a").write_text("x")
    on_host.tell_facts(messages.TellFacts(["a"]))
    (facts,) = answers
    assert isinstance(facts, messages.HostFacts)
    assert (facts.described, facts.cores) == (described, probe.cores())
    assert facts.memory_bytes == probe.memory()[0] <= psutil.virtual_memory().total
    assert facts.jmeter == probe.jmeter_version(paths.JMETER_HOME) is not None
    assert facts.kit == probe.digest(tmp_path, ["a"]) is not None
    assert facts.additions == probe.additions(paths.JMETER_HOME) is not None
    assert facts.free_bytes > 0 and facts.limits.ports > 0


def test_a_slave_in_a_container_needs_no_program_of_systemd(
    on_host: Agent, answers: list[messages.Answer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The base of the published image has none."""
    monkeypatch.setattr(agent, "DESCRIPTION", tmp_path / "host.json")
    monkeypatch.setenv("PATH", str(tmp_path))
    agent.DESCRIPTION.write_text(json.dumps(asdict(replace(on_host.host, server={"STATE": str(tmp_path)}))))
    on_host.tell_facts(messages.TellFacts([]))
    (facts,) = answers
    assert isinstance(facts, messages.HostFacts) and facts.unit == ""


def test_a_beat_tells_what_was_used_since_the_last(
    on_host: Agent, answers: list[messages.Answer], monkeypatch: pytest.MonkeyPatch
) -> None:
    used = iter([probe.Usage(12.0, 4.0, 70, 3, 9.0, 80), probe.Usage(13.0, 3.0, 71, 4, 8.0, 81)])
    monkeypatch.setattr(probe, "usage", lambda pids, process: next(used))
    on_host.before = probe.Usage(10.0, 1.0, 60, 2, 4.0, 90)
    on_host._beat()
    on_host._beat()
    first, second = (answer for answer in answers if isinstance(answer, Beat))
    assert (first.cpu_percent, first.host_cpu_percent) == (150, 250)
    assert (first.rss_bytes, first.processes, first.host_memory_bytes) == (70, 3, 80)
    assert (second.cpu_percent, second.host_cpu_percent) == (0, 0), "a process that ended takes its time with it"
    assert first.exit_status is None and not first.frozen
    assert first.free_bytes is not None and first.free_bytes > 0
    assert abs(first.time_ms / 1000 - time.time()) < 60


@pytest.mark.parametrize(
    ("pids", "fault"), [(["7", "7"], None), (["7", "8"], "was restarted"), (["7", ""], "ended"), (["0"], "ended")]
)
def test_a_server_is_watched(
    pids: list[str], fault: str | None, on_host: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What ended it is in the words that it said last, as that Java had no memory left."""
    shown = iter(pids)
    monkeypatch.setattr(probe, "show", lambda unit, name: next(shown))
    monkeypatch.setattr(probe, "output", lambda *_: "Terminating due to java.lang.OutOfMemoryError\nStarted.")
    on_host.open(OPEN)
    match = f"{fault}.*: Terminating due to java.lang.OutOfMemoryError \\| Started"
    with pytest.raises(CannotError, match=match) if fault else contextlib.nullcontext():
        for _ in pids:
            on_host._check_server()
    assert next(shown, None) is None


@pytest.mark.parametrize("unit", ["", "server.service"])
def test_the_usage_of_the_function_s_host_is_that_of_the_function(
    unit: str, new_agent: Callable[..., Agent], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The usage of JMeter's server, where the host has one too, does not count."""
    units = {1: "function.service", 2: "", 3: unit}
    monkeypatch.setattr(probe, "processes", lambda _: [*units])
    monkeypatch.setattr(probe, "unit_of", lambda pid: units[pid])
    agent = new_agent(getpass.getuser(), tmp_path)
    agent.server = server.of(replace(agent.host, unit=unit))
    assert agent._watched() == ([1, 2] if unit else [1, 2, 3])


@pytest.mark.parametrize(("order", "beats"), [("watch", True), ("tell_time", False)])
def test_an_agent_beats_once_it_watches_until_the_conductor_is_silent(
    order: messages.Doing, beats: bool, on_host: Agent, answers: list[messages.Answer], pipe: tuple[int, int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    for name, value in (("TICK_S", 0.01), ("BEAT_S", 0.1), ("SILENCE_S", 1.0)):
        monkeypatch.setattr(agent, name, value)
    os.write(pipe[1], messages.line(messages.Do(order)))
    begun_s = time.monotonic()
    with os.fdopen(os.dup(pipe[0])) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        on_host.serve()
    served_s = time.monotonic() - begun_s
    ready, *others = answers
    assert isinstance(ready, messages.Ready) and served_s > 1.0
    assert all(isinstance(answer, Beat) for answer in others)
    assert (1 <= len(others) <= served_s / 0.1) if beats else not others


def test_a_file_that_cannot_be_written_is_named(
    on_host: Agent, answers: list[messages.Answer], pipe: tuple[int, int], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    on_host.open(OPEN)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k,nr_inodes=1", "tmpfs", tmp_path / "runs/run7"], check=True)
    os.write(pipe[1], messages.line(messages.Do("stop")))
    try:
        with os.fdopen(os.dup(pipe[0])) as stdin:
            monkeypatch.setattr(sys, "stdin", stdin)
            on_host.serve()
    finally:
        subprocess.run(["umount", tmp_path / "runs/run7"], check=True)
    failed = answers[-1]
    assert isinstance(failed, messages.Failed)
    assert failed.error == f"[Errno 28] No space left on device: '{tmp_path}/runs/run7/stop'"


def test_secrets_stay_in_memory(on_host: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the unit reads is gone with the agent, and reads back as it was given."""
    environment = tmp_path / "environment"
    monkeypatch.setattr(server, "ENVIRONMENT", environment)
    unit = Unit(on_host.host)
    unit._set_environment({"FRAMESTORM_RUN": "--addprop x", "KEY": 'a "b" $c `d` \\ é'})
    assert str(environment.readlink()).startswith(f"/proc/{os.getpid()}/fd/")
    read = subprocess.run(["sh", "-c", '. "$0"; printf %s "$KEY"', environment], capture_output=True, check=True)
    assert read.stdout.decode() == 'a "b" $c `d` \\ é'
    assert unit._environment_fd is not None
    os.close(unit._environment_fd)
    assert not environment.exists()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # a lock opened twice
def test_an_agent_outlives_every_order_until_it_has_answered(
    answers: list[messages.Answer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As an account that can do no harm here; each order comes first, or after a run was opened."""
    account = "nobody" if os.geteuid() == 0 else getpass.getuser()
    monkeypatch.setattr(Unit, "_systemctl", lambda *_: None)
    monkeypatch.setattr(server, "READY_WITHIN_S", 0)
    monkeypatch.setattr(probe, "java_version", lambda: None)
    monkeypatch.setattr(probe, "show", lambda *_: "")
    with tempfile.TemporaryDirectory() as folder:
        runs = Path(folder) / "runs"
        runs.mkdir()
        shutil.chown(runs, account)
        Path(folder).chmod(0o755)
        described = Description(user=account, runs=str(runs), folder=folder, python="/bin/false", cache=folder)
        monkeypatch.setattr(server, "ENVIRONMENT", Path(folder) / "run.env")
        monkeypatch.setattr(agent, "DESCRIPTION", Path(folder) / "host.json")
        agent.DESCRIPTION.write_text(json.dumps(asdict(described)))
        orders = [messages.TellFacts(["x"]), OPEN, piece("x", b"a"), Begin({"x": "x"}, ["/bin/true"]), Begin({})]
        orders += [Begin({}, cut=["--video", "x"]), *map(messages.Do, messages.DOINGS)]
        process = psutil.Process()
        others = process.children()  # of tests before
        for number, line in enumerate(fuzz.messages(7, [json.loads(messages.line(order)) for order in orders])):
            taken = Agent()
            taken.server = server.of(described)
            read, write = os.pipe()
            os.write(write, (messages.line(OPEN) if number % 2 else b"") + line + b"\n")
            os.close(write)
            with os.fdopen(read) as stdin, contextlib.suppress(SystemExit):
                monkeypatch.setattr(sys, "stdin", stdin)
                taken.serve()
            assert not taken.running
            if taken.lock is not None:
                taken.lock.close()
            if isinstance(taken.server, Unit) and taken.server._environment_fd is not None:
                os.close(taken.server._environment_fd)
            if number == 200:
                before = process.memory_info().rss, process.num_fds()
                answers.clear()
        answers.clear()
        assert process.memory_info().rss - before[0] < 20 << 20
        assert process.num_fds() <= before[1]
        assert [child for child in process.children() if child not in others] == []
