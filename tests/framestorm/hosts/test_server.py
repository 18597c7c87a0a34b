"""JMeter's server of a slave in a container, by a script in its place."""

import getpass
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from framestorm.hosts import server
from framestorm.hosts.messages import CannotError, Description
from framestorm.hosts.server import Child
from framestorm.machine import wait_until

# It starts a user that does not end on SIGTERM, and one in the group of its own.
SCRIPT = """#!/bin/sh
[ -e "$SETTINGS" ] || { echo no settings; exit 1; }
printf '%s\\n' "$PWD" "$KEY" "$@" > "$STATE/told"
sh -c 'trap "" TERM; touch "$STATE/deaf"; while :; do sleep 1; done' &
sh -c 'set -m; sleep 60' &
until [ -e "$STATE/deaf" ]; do sleep 0.05; done
echo "Bound to RMI registry" > "$LOG"
exec sleep 60
"""


@pytest.fixture
def child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Child]:
    monkeypatch.setattr(server, "END_WITHIN_S", 0.5)
    (tmp_path / "jmx").mkdir()
    (tmp_path / "jmx" / "jmeter-server").write_text(SCRIPT)
    (tmp_path / "settings").touch()
    environment = {"SETTINGS": f"{tmp_path}/settings", "STATE": str(tmp_path), "LOG": f"{tmp_path}/log"}
    described = Description(user=getpass.getuser(), folder=str(tmp_path), log=f"{tmp_path}/log", server=environment)
    (tmp_path / "run").mkdir()
    made = server.of(described)
    assert isinstance(made, Child)
    yield made
    made.make_idle(tmp_path / "run")


@pytest.mark.parametrize(("heap", "heap_bytes"), [("2g", 2 << 30), ("1536m", 1536 << 20), ("many", 0)])
def test_the_heap_is_known_before_the_server_runs(heap: str, heap_bytes: int, tmp_path: Path) -> None:
    """Or a run with more users than it holds would begin."""
    limits = server.of(Description(user=getpass.getuser(), server={"HEAP": heap})).limits()
    assert limits.heap_bytes == heap_bytes
    assert limits.ports > 0


def alive(pids: list[int]) -> list[int]:
    return [pid for pid in pids if psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE]


def test_a_server_is_started_in_the_runs_folder_and_ends_with_its_users(child: Child, tmp_path: Path) -> None:
    run_dir = tmp_path / "run"
    (run_dir / "system.properties").touch()
    with subprocess.Popen(["sleep", "60"]) as other:
        assert child.pid() == "" and child.processes() == []
        child.start(run_dir, {"KEY": "secret"})
        given = ["--addprop", f"{run_dir}/run.properties", "--systemPropertyFile", f"{run_dir}/system.properties"]
        assert (tmp_path / "told").read_text().splitlines() == [str(run_dir), "secret", *given]
        assert psutil.Process(int(child.pid())).name() == "sleep"
        users = child.processes()
        assert len(users) >= 4 and {os.getpid(), other.pid}.isdisjoint(users)
        server.of(child.described).make_idle(run_dir)  # as the fence does, which did not start it
        assert wait_until(lambda: not alive(users), 20)
        assert child.pid() == "" and alive([other.pid])
        other.kill()


def test_processes_of_another_unit_of_the_account_are_not_the_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of a host that is in both groups: a stop would end the function under test."""
    units = {1: "framestorm-jmeter-server.service", 2: "framestorm-function.service", 3: "user-0.slice/session-1.scope"}
    for pid, unit in units.items():
        (tmp_path / f"{pid}").mkdir()
        (tmp_path / f"{pid}" / "cgroup").write_text(f"0::/system.slice/{unit}\n")
    monkeypatch.setattr(server.probe, "PROC", tmp_path)
    monkeypatch.setattr(server.probe, "processes", lambda _: [1, 2, 3, 4])
    described = Description(user=getpass.getuser(), folder=str(tmp_path), unit=units[1])
    assert server.of(described).processes() == [1, 3, 4]


def test_a_user_that_the_server_left_behind_ends_too(child: Child, tmp_path: Path) -> None:
    child.start(tmp_path / "run", {})
    users = child.processes()
    psutil.Process(int(child.pid())).kill()
    assert wait_until(lambda: child.pid() == "", 20) and alive(users)
    assert child.processes(), "those of its session are still the run's"
    (tmp_path / "run" / server.OUTPUT).write_text("Terminating due to java.lang.OutOfMemoryError: Java heap space\n")
    assert child.said_last(tmp_path / "run").splitlines() == [
        "Terminating due to java.lang.OutOfMemoryError: Java heap space",
        "killed by SIGKILL",  # as by the kernel, for the memory of the container
    ]
    child.make_idle(tmp_path / "run")
    assert wait_until(lambda: not alive(users), 20)


def test_a_server_that_does_not_start_says_why(child: Child, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the log of the run before says that it was ready."""
    monkeypatch.setattr(server, "READY_WITHIN_S", 0.5)
    (tmp_path / "settings").unlink()
    (tmp_path / "log").write_text("Bound to RMI registry")
    with pytest.raises(CannotError, match=r"not ready.*no settings"):
        child.start(tmp_path / "run", {})
