"""The failure table: what happens to a run when a slave, the network or the controller does."""

import signal
import time
from collections.abc import Callable
from typing import Any

import pytest

from framestorm.machine import wait_until
from lab import faults
from lab.hosts import LabHost
from tests.conftest import Lab
from tests.nemesis.faults import signal_agent
from tests.runs import Running, RunSh

SLAVE2 = LabHost("slave2")
SERVER = "ApacheJMeter.jar"
LONG = ("-R", "slaves", "-Jusers=4", "-Jramp_s=0", "-Jhold_s=90", "-Jsleep_s=0.2", "-Jencoding=jpeg")
SHORT = ("-t", "jmx/video-per-user.jmx", "-Jramp_s=0", "-Jframes=2")


def started(run_sh: RunSh, *words: str) -> Running:
    """A run whose slaves both send."""
    running = run_sh.start(*words)
    running.until_lines("journal-slave1.jsonl", "journal-slave2.jsonl")
    return running


def assert_idle(lab: Lab, *hosts: str) -> None:
    """No frame client and no agent runs on the hosts soon, as each sees to by itself."""
    of_a_run = "pgrep -f '/client/client[.]py' || pgrep -f 'framestorm-agen[t]'"
    for host in hosts:
        assert wait_until(lambda host=host: lab.look(host, of_a_run) == "", 40), f"{host} is not idle"


def a_loss(
    name: str,
    break_it: Callable[[], object],
    reason: str,
    mend_it: Callable[[], object] = object,
    is_long: bool = False,
) -> Any:
    return pytest.param(break_it, mend_it, reason, id=name, marks=(pytest.mark.long,) if is_long else ())


@pytest.mark.parametrize(
    ("break_it", "mend_it", "reason"),
    [
        a_loss("frozen", lambda: faults.freeze(SLAVE2, SERVER), "frozen", lambda: faults.thaw(SLAVE2, SERVER)),
        a_loss("cut off", lambda: faults.cut(SLAVE2), "no sign of life", lambda: faults.reconnect(SLAVE2)),
        a_loss("rebooted", lambda: faults.reboot(SLAVE2), "slave2 was lost", is_long=True),
        a_loss("agent killed", lambda: signal_agent(SLAVE2, signal.SIGKILL), "slave2 was lost"),
        a_loss("agent stopped", lambda: signal_agent(SLAVE2, signal.SIGSTOP), "no sign of life", is_long=True),
    ],
)
def test_a_lost_slave_is_named_and_the_rest_kept(
    run_sh: RunSh, deployed: Lab, break_it: Callable[[], object], mend_it: Callable[[], object], reason: str
) -> None:
    running = started(run_sh, *LONG)
    broken_s = time.time()
    try:
        break_it()
        done = running.ended(4)
    finally:
        mend_it()
    run = done.json("run.json")
    for word in ("slave2 was lost at", reason, "(2 of 4 users)"):
        assert word in run["reason"]
    assert run["reason"].partition(":")[0] in done.text("index.html")
    (loss,) = run["losses"]
    assert loss["host"] == "slave2"
    assert -3 < loss["time_ms"] / 1000 - broken_s < 5, "from its last sign of life on, not when that was noticed"
    assert run["ended_ms"] / 1000 - broken_s < 60
    assert done.json("summary.json")["labels"]["frame"]["n"] >= done.sent("slave1") > 0
    # That both slaves take the next run, the next test shows: it begins with frames from both.
    assert_idle(deployed, "slave1", "slave2")


def test_the_others_go_on_where_asked(run_sh: RunSh, deployed: Lab) -> None:
    running = started(run_sh, "./run.sh -R slaves -Jusers=4 --continue-on-loss", *LONG[2:], "-Jhold_s=20")
    faults.kill(SLAVE2, SERVER)
    done = running.ended(4)
    assert done.json("summary.json")["load"]["duration_ms"] > 15_000
    assert "slave2 was lost" in done.json("run.json")["reason"]
    assert "JMeter's server" in done.json("run.json")["reason"]
    assert_idle(deployed, "slave1", "slave2")


def test_a_killed_conductor_leaves_idle_slaves(run_sh: RunSh, deployed: Lab) -> None:
    started(run_sh, *LONG).process.kill()
    assert_idle(deployed, "slave1", "slave2", "master1")


def test_slaves_under_load_are_refused_to_others_and_stopped_by_an_interrupt(run_sh: RunSh, deployed: Lab) -> None:
    running = started(run_sh, *LONG)
    refused = run_sh("-R", "slaves", *SHORT, out="second", status=1)
    assert "is busy with the run run of" in refused.stderr
    running.interrupt()
    done = running.ended(4)
    assert "SIGINT" in done.json("run.json")["reason"]
    assert done.json("run.json")["losses"] == [], "users were told to stop, and JMeter's servers were not"
    assert done.json("summary.json")["labels"]["frame"]["n"] == done.sent("slave1") + done.sent("slave2")
    assert_idle(deployed, "slave1", "slave2")


def test_what_cannot_take_part_is_left_out_where_asked(run_sh: RunSh, deployed: Lab) -> None:
    deployed.ssh("slave2", "sudo sh -c 'echo \"# older\" >> /opt/framestorm/kit/client/client.py'")
    try:
        done = run_sh("./run.sh -R slaves -Jusers=4 --continue-without", *SHORT, status=4)
    finally:
        deployed.ssh("slave2", "sudo sed -i '$d' /opt/framestorm/kit/client/client.py")
    assert done.count("label", "Hostname") == {("user", "slave1"): 4, ("frame", "slave1"): 8}
    assert "slave2 (198.18.0.12) has another version of the kit" in done.json("run.json")["reason"]


def test_an_absent_slave_is_refused_by_name(run_sh: RunSh, deployed: Lab) -> None:
    faults.cut(SLAVE2)
    try:
        refused = run_sh("-R", "slaves", *SHORT, status=1)
    finally:
        faults.reconnect(SLAVE2)
    assert "slave2 (198.18.0.12)" in refused.stderr
    assert "slave1" not in refused.stderr
    assert not refused.folder.exists()
