"""The failure table: what happens to a run when a slave, the network or the controller does."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lab import faults
from lab.hosts import Host

SLAVE2 = Host("slave2")
SERVER = "ApacheJMeter.jar"
LONG = ("-Jusers=4", "-Jramp_s=0", "-Jhold_s=90", "-Jsleep_s=0.2", "-Jencoding=jpeg")
SHORT = ("-t", "jmx/video-per-user.jmx", "-Jusers=2", "-Jramp_s=0", "-Jframes=2")


@pytest.mark.parametrize(
    ("break_it", "mend_it", "said"),
    [
        (lambda: faults.kill(SLAVE2, SERVER), lambda: None, "JMeter's server"),
        (lambda: faults.freeze(SLAVE2, SERVER), lambda: faults.thaw(SLAVE2, SERVER), "frozen"),
        (lambda: faults.cut(SLAVE2), lambda: faults.reconnect(SLAVE2), "no sign of life"),
        (lambda: faults.reboot(SLAVE2), lambda: None, "slave2 was lost"),
    ],
    ids=["killed", "frozen", "cut off", "rebooted"],
)
def test_a_lost_slave_is_named_and_the_rest_kept(
    start: Callable[..., Any],
    deployed: Any,
    break_it: Callable[[], object],
    mend_it: Callable[[], object],
    said: str,
) -> None:
    running = start(*LONG)
    running.until_frames("slave1", "slave2")
    broken_s = time.time()
    try:
        break_it()
        done = running.ended()
    finally:
        mend_it()
    assert done.status == 4, done.stderr
    reason = done.json("run.json")["reason"]
    assert "slave2 was lost at" in reason
    assert said in reason
    assert "(2 of 4 users)" in reason
    assert reason.partition(":")[0] in (done.folder / "index.html").read_text()
    losses = done.json("run.json")["losses"]
    assert [loss["host"] for loss in losses] == ["slave2"]
    assert -3 < losses[0]["time_ms"] / 1000 - broken_s < 5, "from its last sign of life on, not when that was noticed"
    assert done.json("run.json")["ended_ms"] / 1000 - broken_s < 60
    assert done.json("summary.json")["labels"]["frame"]["n"] >= done.frames_sent("slave1") > 0
    # That both slaves take the next run, the next test shows: it begins with frames from both.
    wait_until_idle(deployed, "slave1", "slave2")


def test_the_others_go_on_where_asked(start: Callable[..., Any], deployed: Any) -> None:
    running = start(*LONG, "-Jhold_s=20", "--continue-on-loss")
    running.until_frames("slave1", "slave2")
    faults.kill(SLAVE2, SERVER)
    done = running.ended()
    assert done.status == 4, done.stderr
    frames = done.json("summary.json")
    assert frames["load"]["duration_ms"] > 15_000
    assert "slave2 was lost" in done.json("run.json")["reason"]
    wait_until_idle(deployed, "slave1", "slave2")


def test_a_killed_conductor_leaves_idle_slaves(start: Callable[..., Any], deployed: Any) -> None:
    running = start(*LONG)
    running.until_frames("slave1", "slave2")
    os.kill(running.process.pid, signal.SIGKILL)
    wait_until_idle(deployed, "slave1", "slave2", "master1")


def test_slaves_under_load_are_refused_to_others_and_stopped_by_an_interrupt(
    start: Callable[..., Any], run_slaves: Callable[..., Any], deployed: Any
) -> None:
    running = start(*LONG)
    running.until_frames("slave1", "slave2")
    refused = run_slaves(*SHORT)
    assert refused.status == 1
    assert "is busy with the run run0 of" in refused.stderr
    running.process.send_signal(signal.SIGINT)
    done = running.ended()
    assert done.status == 4, done.stderr
    assert "SIGINT" in done.json("run.json")["reason"]
    assert done.json("run.json")["losses"] == [], "users were told to stop, and JMeter's servers were not"
    summary = done.json("summary.json")
    assert summary["labels"]["frame"]["n"] == done.frames_sent("slave1") + done.frames_sent("slave2")
    wait_until_idle(deployed, "slave1", "slave2")


def wait_until_idle(deployed: Any, *hosts: str) -> None:
    """Wait until no frame client and no agent runs on the hosts, as each sees to by itself."""
    deadline_s = time.monotonic() + 40
    for host in hosts:
        while deployed.ssh(host, "pgrep -f '/client/client[.]py' || pgrep -f 'framestorm-agen[t]'", check=False):
            assert time.monotonic() < deadline_s, f"{host} is not idle"
            time.sleep(0.5)


def test_what_cannot_take_part_is_refused_by_name(
    run_slaves: Callable[..., Any], deployed: Any, tmp_path: Path
) -> None:
    deployed.ssh("slave2", "sudo sh -c 'echo \"# older\" >> /opt/framestorm/kit/client/client.py'")
    try:
        refused = run_slaves(*SHORT)
        assert refused.status == 1
        assert "slave2 (198.18.0.12) has another version of the client" in refused.stderr
        assert "./run.sh deploy" in refused.stderr
        assert not refused.folder.exists()
        without = run_slaves(*SHORT, "--continue-without")
        assert without.status == 4, without.stderr
        assert without.rows() == {("user", "slave1"): 2, ("frame", "slave1"): 4}
        assert "another version of the client" in without.json("run.json")["reason"]
    finally:
        deployed.ssh("slave2", "sudo sed -i '$d' /opt/framestorm/kit/client/client.py")


def test_an_absent_slave_is_refused_by_name(run_slaves: Callable[..., Any], deployed: Any) -> None:
    faults.cut(SLAVE2)
    try:
        refused = run_slaves(*SHORT)
    finally:
        faults.reconnect(SLAVE2)
    assert refused.status == 1
    assert "slave2 (198.18.0.12)" in refused.stderr
    assert "slave1" not in refused.stderr
    assert not refused.folder.exists()
