"""What a run promises, held against what the function got."""

import json
import signal
import subprocess
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress

from framestorm import report
from framestorm.errors import FramestormError
from framestorm.machine import wait_until
from framestorm.model import files
from framestorm.model.run import Record
from framestorm.model.summary import Summary
from lab import faults, keys
from lab.hosts import LabHost
from tests.nemesis.faults import NUMBERED
from tests.nemesis.scheme import USERS, Attack
from tests.runs import Running

ENDS_WITHIN_S = 120
IDLE_WITHIN_S = 60


class ViolationError(AssertionError):
    """A run broke a promise; the message says which."""


def promise(kept: object, sentence: str) -> None:
    if not kept:
        raise ViolationError(sentence)


def end(attack: Attack) -> str:
    """Wait for the end of the command, and check how it ended; its words on that."""
    try:
        stdout, stderr = attack.running.process.communicate(timeout=ENDS_WITHIN_S)
    except subprocess.TimeoutExpired:
        raise ViolationError(f"has not ended in {ENDS_WITHIN_S} s") from None
    status = attack.running.process.returncode
    (attack.run_sh.folder / f"{attack.running.folder.name}.out").write_text(stdout + stderr)
    promise("Traceback" not in stderr, f"status {status}: {stderr[-2000:]}")
    allowed = (-signal.SIGKILL,) if attack.is_killed and status < 0 else (0, 1, 3, 4)
    # Before Python's own handlers are replaced a signal ends it as it ends any program.
    is_by_signal = attack.scheme.fault in ("ended", "hung up", "Ctrl-C", "Ctrl-C twice")
    promise(status in allowed or (is_by_signal and status in (130, -2, -15, -1)), f"status {status}: {stderr[-2000:]}")
    return f"exit {status}"


def judge(attack: Attack) -> str:
    """Check what a run left against what the function got; returns both in words."""
    run, status, got = attack.running, attack.running.process.returncode, len(attack.witness.received)
    if not (run.folder / "run.json").exists():
        promise(status not in (0, 3), "it passed without run.json")
        promise(not got or attack.is_killed or status < 0, f"the function got {got} requests and there is no run.json")
        return f"no run, {got} received"
    record = files.read(run.folder / "run.json", Record)
    verdicts = set()
    for _ in range(2):  # the report of a report is the same
        try:
            verdicts.add(report.build(run.folder).exit_status)
        except FramestormError as error:
            raise ViolationError(f"no report: {error}") from None
    promise(len(verdicts) == 1, f"two reports differ: {verdicts}")
    (verdict,) = verdicts
    promise(verdict == status or status < 0 or status in (1, 130), f"exit status {status}, report {verdict}")
    summary = files.read(run.folder / "summary.json", Summary)
    rows = run.rows("samples.csv")
    shown = sum(label.n for name, label in summary.labels.items() if name != "user")
    promise(shown == len(rows), f"summary.json has {shown} samples, samples.csv {len(rows)}")
    check_once(run, rows, got if attack.scheme.plan in NUMBERED else None)
    unknown = sum(1 for row in rows if not row.get("worker"))
    numbers = {row["worker"] for row in rows if row.get("worker")}
    failed_users = summary.labels["user"].failed if "user" in summary.labels else 0
    lost = max(0, got - len(numbers) - unknown)
    words = f"{record.state}, verdict {summary.verdict.word}, {got} received, {len(rows)} rows, {lost} lost"
    # The request that a killed client had sent is part of that user's failure.
    is_told = verdict in (1, 4) or (verdict == 3 and lost <= failed_users)
    promise(not lost or is_told, words)
    promise(verdict not in (0, 3) or record.state == "complete", f"state {record.state}, verdict {verdict}")
    promise(verdict != 0 or got in (0, len(rows)), f"passed with {len(rows)} rows of {got}")
    promise(verdict != 4 or summary.missing, "partial, and nothing is missing")
    if attack.scheme.over_slaves and lost > USERS:
        promise(record.losses or record.reason, f"{words}: no host or reason is named")
    return words


def check_once(run: Running, rows: Sequence[dict[str, str]], got: int | None) -> None:
    """Each request is in the table once, and what the journals and the tree have is there too."""
    twice = [
        key for key, n in Counter((row["label"], row["worker"]) for row in rows if row.get("worker")).items() if n > 1
    ]
    if got is not None:
        promise(not twice, f"in samples.csv twice: {twice[:5]}")
        made_up = [row["worker"] for row in rows if row.get("worker") and int(row["worker"]) > got]
        promise(not made_up, f"never received: {made_up[:5]}")
    lines = []
    for journal in run.folder.glob("journal*.jsonl"):
        for line in journal.read_bytes().split(b"\n")[:-1]:
            with suppress(ValueError):
                lines.append(json.loads(line))
    sent = Counter((line["user"], str(line["index"])) for line in lines if line.get("type") == "sample")
    table = Counter((row["user"], row["index"]) for row in rows)
    if sent:
        promise(max(sent.values()) == 1, "a journal has a sample twice")
        promise(not sent - table, f"in the journal, not in the table: {list(sent - table)[:5]}")
        promise(max(table.values()) == 1, "the table has a sample twice")


def wait_for_lab() -> None:
    """Wait until no host has anything of a run left, and each slave's server waits for the next one."""
    words = "! pgrep -f '/client/client[.]py|framestorm-agen[t]' && systemctl is-system-running"
    for name in ("slave1", "slave2", "master1"):
        faults.reconnect(LabHost(name))

        def is_idle(name: str = name) -> bool:
            command = keys.ssh(LabHost(name), words)
            return subprocess.run(command, capture_output=True, check=False, timeout=30).returncode == 0

        promise(wait_until(is_idle, IDLE_WITHIN_S, 1), f"{name} is not idle {IDLE_WITHIN_S} s later")
