"""The agent on this machine: lines however they are cut, and the orders of a run without systemd and ssh."""

import base64
import getpass
import os
import pwd
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from framestorm import probe
from framestorm.hosts import agent, messages
from framestorm.hosts.agent import Agent, CannotError, Lines
from framestorm.hosts.messages import Beat, Begin, Chunk, Description, Done, Ready

HANDLES = "import signal, time; signal.signal(signal.SIGTERM, lambda *_: exit(7)); print(flush=True); time.sleep(60)"


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    read, write = os.pipe()
    yield read, write
    os.close(read)
    os.close(write)


def test_lines_come_whole_however_they_are_cut(pipe: tuple[int, int]) -> None:
    lines, read = Lines(pipe[0]), []
    for part in (b"one\ntw", b"o", b"\n", b"\nthree\nfo"):
        os.write(pipe[1], part)
        read += lines.wait(1)
    assert read == [b"one", b"two", b"", b"three"]
    assert not lines.ended


def test_a_part_of_a_line_is_a_sign_of_life_too(pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    lines = Lines(pipe[0])
    later = time.monotonic() + 100
    monkeypatch.setattr(agent.time, "monotonic", lambda: later)
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
        agents[-1].host = Description(user=account, runs=str(runs))
        return agents[-1]

    yield make
    for each in agents:
        each.become_idle()
        for file in (each.lock, *each.followed.values()):
            if file is not None:
                file.close()


@pytest.fixture
def on_host(new_agent: Callable[..., Agent], tmp_path: Path) -> Agent:
    """An agent of this machine, by the account of the tests."""
    (tmp_path / "runs").mkdir()
    return new_agent(getpass.getuser(), tmp_path / "runs")


def begin(command: str, **files: str) -> Begin:
    encoded = {name: base64.b64encode(text.encode()).decode() for name, text in files.items()}
    return Begin("run7", "run7 of here", encoded, {"tree.xml": "tree.xml"}, ["/bin/sh", "-c", command])


def test_a_controller_runs_and_its_files_are_handed_in(
    on_host: Agent, answers: list[messages.Answer], tmp_path: Path
) -> None:
    left_over = tmp_path / "runs" / "run7" / "old"
    left_over.mkdir(parents=True)
    on_host.begin(begin("cat plan >> tree.xml; exit 3", plan="a\nb\n"))
    assert [type(each) for each in answers] == [Ready]
    assert not left_over.exists()
    assert on_host.controller is not None and on_host.controller.wait(20) == 3
    on_host._beat()
    with pytest.raises(SystemExit):
        on_host.end()
    chunks = [each for each in answers if isinstance(each, Chunk)]
    assert {each.file for each in chunks} == {"tree.xml"}
    assert b"".join(base64.b64decode(each.data) for each in chunks) == b"a\nb\n"
    assert [each.exit_status for each in answers if isinstance(each, Beat)] == [3]
    assert answers[-1] == Done({"tree.xml": 2})
    assert list((tmp_path / "runs").iterdir()) == []


def test_a_busy_host_names_its_run(on_host: Agent, new_agent: Callable[..., Agent]) -> None:
    on_host.begin(begin("sleep 60"))
    other = new_agent(on_host.host.user, Path(on_host.host.runs))
    with pytest.raises(CannotError, match="run7 of here"):
        other.begin(begin("true"))
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
        with pytest.raises(CannotError, match="folder cannot be made"):
            taken_over.begin(begin("true", plan="written"))
        assert list(elsewhere.iterdir()) == []
        taken_over.running = False
    assert os.geteuid() == os.getuid()
