"""Faults do to a host what they say, and can be undone."""

import subprocess
import time
from collections.abc import Callable, Iterator

import pytest

from lab import faults, keys, lifecycle
from lab.hosts import Host, LabError

SLAVE = Host("slave1")


@pytest.fixture(scope="module", autouse=True)
def _up(lab_cli: Callable[..., subprocess.CompletedProcess[str]]) -> Iterator[None]:
    assert lab_cli("up", "--slaves", "1").returncode == 0
    yield
    assert lab_cli("down").returncode == 0


def ssh(command: str) -> str:
    return subprocess.run(keys.ssh(SLAVE, command), capture_output=True, text=True, check=False).stdout


def wait_until(true: Callable[[], bool], within_s: float = 20) -> None:
    deadline = time.monotonic() + within_s
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def sleeper() -> None:
    ssh("sudo systemd-run --quiet --collect --unit=sleeper sleep 4242")
    wait_until(lambda: bool(faults.matching(SLAVE, "sleep 4242")))


def test_cut_and_reconnect() -> None:
    faults.cut(SLAVE)
    assert ssh("hostname") == ""
    faults.reconnect(SLAVE)
    wait_until(lambda: ssh("hostname") == "slave1\n")


def test_freeze_and_thaw_then_kill() -> None:
    sleeper()
    faults.freeze(SLAVE, "sleep 4242")
    assert ssh("ps -o stat= -C sleep")[0] == "T"
    faults.thaw(SLAVE, "sleep 4242")
    assert ssh("ps -o stat= -C sleep")[0] == "S"
    faults.kill(SLAVE, "sleep 4242")
    wait_until(lambda: ssh("systemctl is-active sleeper") != "active\n")
    with pytest.raises(LabError, match="no process on slave1 has 'sleep 4242'"):
        faults.kill(SLAVE, "sleep 4242")


def test_reboot() -> None:
    sleeper()
    faults.reboot(SLAVE)
    wait_until(lambda: ssh("systemctl is-system-running; pgrep -c sleep").split() == ["running", "0"])


def test_power_off_and_on() -> None:
    ssh("echo kept >note && sync")
    faults.power_off(SLAVE)
    assert lifecycle.status_of(SLAVE).state == "stopped"
    faults.power_on(SLAVE)
    assert ssh("cat note") == "kept\n"
