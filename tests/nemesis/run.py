"""One run that suffers a scheme, and is checked."""

import subprocess
import time
from contextlib import ExitStack
from pathlib import Path

from framestorm.machine import wait_until
from lab import faults
from lab.hosts import CONTROLLER_ADDRESS, LabHost
from tests.nemesis.checker import end, judge, promise, wait_for_lab
from tests.nemesis.faults import DISK_BYTES, FAULTS, RUNS, SLAVE_DISK_FULL, remount
from tests.nemesis.scheme import CLIENT, HOLD_S, PLANS, Attack, Scheme
from tests.nemesis.witness import Witness
from tests.runs import RunSh


def suffer(scheme: Scheme, folder: Path) -> str:
    """Make a run, strike it, and check what it left; returns how it ended.

    Raises:
        ViolationError: a promise was broken.
    """
    with ExitStack() as stack:
        run_sh = RunSh(folder)
        stack.callback(run_sh.close)
        if scheme.fault.startswith("disk full"):
            (folder / "disk").mkdir(parents=True)
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", folder / "disk"], check=True)
            stack.callback(subprocess.run, ["umount", "--lazy", folder / "disk"], check=True)
        if scheme.fault == SLAVE_DISK_FULL:
            for host in (LabHost("slave1"), LabHost("slave2")):
                faults.mount_disk(host, RUNS, DISK_BYTES)
                stack.callback(faults.unmount_disk, host, RUNS)
        attack = begin(scheme, run_sh, stack, "disk/run" if scheme.fault.startswith("disk full") else "run")
        others = [begin(scheme, run_sh, stack, "second")] if scheme.fault == "a second run" else []
        wait_for(scheme, attack)
        FAULTS[scheme.fault].strike(attack)
        endings = [end(each) for each in (attack, *others)]
        # Before the count: after a kill JMeter may send for a moment.
        promise(wait_until(lambda: not run_sh.left_running(), 20), f"still running: {run_sh.left_running()}")
        if scheme.fault == "disk full":
            remount(folder / "disk", DISK_BYTES)
        endings = [f"{ending}, {judge(each)}" for ending, each in zip(endings, (attack, *others), strict=True)]
        if scheme.over_slaves:
            wait_for_lab()
        return "; ".join(endings)


def begin(scheme: Scheme, run_sh: RunSh, stack: ExitStack, out: str) -> Attack:
    witness = Witness(CONTROLLER_ADDRESS if scheme.over_slaves else "127.0.0.1")
    stack.callback(witness.close)
    run_sh.folder.mkdir(parents=True, exist_ok=True)
    client = run_sh.folder / "client.py"
    client.write_text(CLIENT)
    words = [word.format(url=witness.url, client=client) for word in PLANS[scheme.plan]]
    if scheme.over_slaves:
        words += ["-R", "slaves", *(["--continue-on-loss"] if scheme.continues else [])]
    plan = "face-blur" if scheme.plan == "embedded" else scheme.plan
    return Attack(scheme, run_sh, run_sh.start("-t", f"jmx/{plan}.jmx", *words, out=out), witness)


def wait_for(scheme: Scheme, attack: Attack) -> None:
    """Wait for the moment of the fault."""

    def has_begun() -> object:
        return (
            attack.running.process.poll() is not None
            or attack.witness.received
            or attack.running.lines("journal.jsonl")
        )

    if scheme.phase != "start":
        wait_until(has_begun, 90, 0.02)
    time.sleep(scheme.after_s + (HOLD_S if scheme.phase == "end" else 0))
