"""Random faults in real runs, checked by a function that numbers every request it gets.

    python -m tests.nemesis --seed 7 --runs 10 --minutes 5 [--slaves]

The same seed gives the same plans, faults and moments. With --slaves the runs are over the lab, which must be up and
deployed; else on this machine. Prints a line for each run; ends with 1 if a run broke a promise, and keeps its folder:

- every request that the function got is one row of samples.csv, or the run does not pass and says what it lost;
- no request is there twice, and tree, journal, table and summary agree;
- what was killed can be reported, the same way each time, and state files can be read;
- the command ends in time and without a traceback, nothing stays running, and the next run works.

A step of the clock is not among the faults: no namespace of Linux has a wall clock of its own.
"""

import argparse
import json
import os
import random
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from framestorm import report
from framestorm.errors import FramestormError
from framestorm.machine import wait_until
from framestorm.model import files
from framestorm.model.run import Record
from framestorm.model.summary import Summary
from lab import faults, keys
from lab.hosts import CONTROLLER_ADDRESS, Host, LabError
from tests.runs import Running, RunSh
from tests.stand_in import Answer, Received, StandIn

USERS = 3
HOLD_S = 4.0
TIMEOUT_S = 2
ENDS_WITHIN_S = 120
IDLE_WITHIN_S = 60
DISK_BYTES = 256 << 20
# A user that is any program: five requests, a line for each.
CLIENT = """
import http.client, json, sys, time, urllib.error, urllib.request
is_ok = True
for index in range(5):
    start_s, line = time.time(), {"label": "call", "status": None, "worker": None}
    try:
        with urllib.request.urlopen(sys.argv[1], b"x", timeout=2) as answer:
            answer.read()
            line |= {"ok": True, "status": answer.status, "worker": answer.headers["X-Worker"]}
    except urllib.error.HTTPError as error:
        line |= {"ok": False, "cause": "status", "status": error.code, "worker": error.headers["X-Worker"]}
    except (OSError, http.client.HTTPException) as error:
        line |= {"ok": False, "cause": "broken"}
    line |= {"start_ms": start_s * 1000, "rtt_ms": (time.time() - start_s) * 1000}
    is_ok = is_ok and line["ok"]
    print(json.dumps(line), flush=True)
sys.exit(0 if is_ok else 1)
"""
HTTP = ("-Jbody=x", f"-Jtimeout_s={TIMEOUT_S}", "-Jexpect=fine", "-Jramp_s=0", f"-Jhold_s={HOLD_S}")
FRAMES = ("-Jframes=4", "-Jencoding=jpeg", "-Jverify_share=0", "-Jmin_faces=0", "-Jramp_s=0", f"-Jhold_s={HOLD_S}")
# `url` and `client` are put in; the embedded target numbers nothing, so only the run's own files are compared.
PLANS: dict[str, tuple[str, ...]] = {
    "requests": (*HTTP, f"-Jusers={USERS}", "-Jsleep_s=0.02", "-Jurl={url}"),
    "request-rate": (*HTTP, "-Jrate_per_s=20", "-Jurl={url}"),
    "face-blur": (*FRAMES, f"-Jusers={USERS}", f"-Jtimeout_s={TIMEOUT_S}", "-Jsleep_s=0.02", "-Jurl={url}"),
    "process": (
        f"-Jcommand={sys.executable}", "-Jarguments={client} {url}", f"-Jusers={USERS}", "-Jramp_s=0",
        f"-Jhold_s={HOLD_S}",
    ),
    "embedded": (*FRAMES, "-Jusers=2"),
}  # fmt: skip
OVER_SLAVES = ("requests", "request-rate", "face-blur")
PHASES: tuple[tuple[str, float], ...] = (("load", HOLD_S), ("load", HOLD_S), ("start", 5.0), ("end", 4.0))


@dataclass(frozen=True)
class Scheme:
    """What one run is to suffer: all of it from the seed.

    after_s: from the start of the command, of the load, or from when the load should end; pick: which of several
        processes or slaves, as a share of them; lasts_s: of a fault that goes away.
    """

    name: str
    plan: str
    fault: str
    phase: str
    after_s: float
    lasts_s: float
    pick: float
    continues: bool
    over_slaves: bool

    @classmethod
    def of(cls, seed: int, number: int, over_slaves: bool) -> "Scheme":
        choice = random.Random(f"{seed} {number} {over_slaves}")  # noqa: S311
        plan = choice.choice(OVER_SLAVES if over_slaves else tuple(PLANS))
        phase, within_s = choice.choice(PHASES)
        return cls(
            name=f"seed {seed} run {number}",
            plan=plan,
            fault=choice.choice([name for name, fault in FAULTS.items() if fault.fits(plan, over_slaves)]),
            phase=phase,
            after_s=round(choice.uniform(0, within_s), 2),
            lasts_s=round(choice.choice((0.3, 3, 15 if over_slaves else 6)) * choice.uniform(0.5, 1.5), 2),
            pick=choice.random(),
            continues=over_slaves and choice.random() < 0.5,
            over_slaves=over_slaves,
        )

    def __str__(self) -> str:
        words = f"{self.name}: {self.plan}, {self.fault} {self.after_s} s into the {self.phase} (for {self.lasts_s} s)"
        return words + (" with --continue-on-loss" if self.continues else "")


class Witness(StandIn):
    """A function that numbers the requests it gets; the number comes back as the worker, a column of samples.csv."""

    def __init__(self, host: str) -> None:
        super().__init__([], host)
        self.is_up = True
        self.mood: dict[str, Any] = {}
        self._serve()

    def _serve(self) -> None:
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()

    def next_answer(self, request: Received) -> Answer:
        with self.lock:
            self.received.append(request)
            number = len(self.received)
        # A frame comes back as it is, with one face.
        frame = (
            {"body": request.body, "content_type": "image/jpeg"} if request.headers["Accept"] == "image/jpeg" else {}
        )
        headers = (("X-Worker", str(number)), ("X-Faces", "[[1, 1, 9, 9, 0.9]]"))
        return Answer(**{"body": b"fine", "delay_s": 0.02, "headers": headers, **frame, **self.mood})

    def verify_request(self, request: Any, client_address: Any) -> bool:
        if self.mood is RESETS:
            request.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return self.mood is not RESETS

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Connections that break are what this is for."""

    def go_away(self) -> None:
        if self.is_up:
            self.is_up = False
            self.shutdown()
            self.server_close()

    def come_back(self) -> None:
        if not self.is_up:
            self.socket = socket.socket()
            self.server_bind()
            self.server_activate()
            self.is_up = True
            self._serve()

    def close(self) -> None:
        self.released.set()
        self.go_away()


RESETS: dict[str, Any] = {"delay_s": 0.0}  # and connections are refused
MOODS: dict[str, dict[str, Any]] = {
    "function is slow": {"delay_s": 1.0},
    "function hangs": {"delay_s": 60.0},
    "function answers garbage": {"body": b"\x00\xff<[/x]>\x1b[2J=1+1"},
    "function answers 500": {"status": 500},
    "function breaks off": {"sent_bytes": 2},
    "function resets": RESETS,
}


@dataclass
class Attack:
    """One run under way, and what a fault may be done to."""

    scheme: Scheme
    run_sh: RunSh
    running: Running
    witness: Witness
    is_killed: bool = False

    def processes(self, part: str) -> list[psutil.Process]:
        """Those of the run with a part in their command line, oldest first; the conductor for no part."""
        with suppress(psutil.Error):
            conductor = psutil.Process(self.running.process.pid)
            below = conductor.children(recursive=True) if part else [conductor]
            return [each for each in below if re.search(part, " ".join(each.cmdline()))]
        return []

    def target(self, part: str) -> psutil.Process | None:
        found = self.processes(part)
        return found[int(self.scheme.pick * len(found))] if found else None

    @property
    def slave(self) -> Host:
        return Host(("slave1", "slave2")[int(self.scheme.pick * 2)])

    @contextmanager
    def lasting(self, begin: Callable[[], object], end: Callable[[], object]) -> Iterator[None]:
        begin()
        try:
            wait_until(lambda: self.running.process.poll() is not None, self.scheme.lasts_s, 0.05)
            yield
        finally:
            end()


@dataclass(frozen=True)
class Fault:
    """Something that goes wrong: `strike` returns when it is over."""

    strike: Callable[[Attack], object]
    locally: bool = True
    over_slaves: bool = True
    plans: tuple[str, ...] = tuple(PLANS)
    needs_root: bool = False

    def fits(self, plan: str, over_slaves: bool) -> bool:
        is_able = not self.needs_root or os.geteuid() == 0
        return plan in self.plans and is_able and (self.over_slaves if over_slaves else self.locally)


def sends(part: str, *numbers: signal.Signals) -> Callable[[Attack], object]:
    """Send signals to a process of the run on this machine, with the time that the fault lasts between them."""

    def strike(attack: Attack) -> None:
        process = attack.target(part)
        attack.is_killed = attack.is_killed or (part == CONDUCTOR and numbers[0] == signal.SIGKILL)
        for number, pause_s in zip(numbers, [0.0, *([attack.scheme.lasts_s] * len(numbers))], strict=False):
            time.sleep(pause_s)
            with suppress(psutil.NoSuchProcess):
                if process is not None:
                    process.send_signal(number)

    return strike


def feels(mood: dict[str, Any]) -> Callable[[Attack], object]:
    def strike(attack: Attack) -> None:
        def change(mood: dict[str, Any]) -> None:
            attack.witness.mood = mood

        with attack.lasting(lambda: change(mood), lambda: change({})):
            pass

    return strike


def goes_away(attack: Attack) -> None:
    with attack.lasting(attack.witness.go_away, attack.witness.come_back):
        pass


def fills_disk(attack: Attack) -> None:
    """Leave a few pages of the file system that holds the run's folder, to the end of the run."""
    disk = attack.running.folder.parent
    usage = os.statvfs(disk)
    remount(disk, (usage.f_blocks - usage.f_bfree + 1 + int(attack.scheme.pick * 4)) * usage.f_frsize)


def fills_disk_for_a_while(attack: Attack) -> None:
    with attack.lasting(lambda: fills_disk(attack), lambda: remount(attack.running.folder.parent, DISK_BYTES)):
        pass


def remount(disk: Path, size_bytes: int) -> None:
    subprocess.run(["mount", "-o", f"remount,size={size_bytes}", disk], check=True)


def in_lab(begin: Callable[[Host], object], end: Callable[[Host], object] = lambda host: None) -> Callable[..., object]:
    def strike(attack: Attack) -> None:
        # A process that has ended already cannot be hit.
        with suppress(LabError), attack.lasting(lambda: begin(attack.slave), lambda: end(attack.slave)):
            pass

    return strike


def kill_agent(host: Host) -> None:
    """Kill the agent alone: not sudo, which started it, nor the fence, which it started."""
    agents = faults.matching(host, "framestorm-agent")
    agents = [pid for pid in agents if Path(f"/proc/{pid}/comm").read_text().startswith("python3")]
    if agents:
        os.kill(min(agents), signal.SIGKILL)


CONDUCTOR, JMETER, GUARD = "", "ApacheJMeter.jar", r"/guard\.py"
CLIENTS, FUNCTION = r"^\S*python[0-9.]* (-\S+ )*\S*/client\.py ", r"^\S*python[0-9.]* \S*/app\.py "
AGENT = "framestorm-agent"
KILL, STOP, CONT, INT = signal.SIGKILL, signal.SIGSTOP, signal.SIGCONT, signal.SIGINT
NUMBERED = ("requests", "request-rate", "face-blur", "process")
FAULTS: dict[str, Fault] = {
    "nothing": Fault(lambda attack: None),
    "conductor killed": Fault(sends(CONDUCTOR, KILL)),
    "conductor frozen": Fault(sends(CONDUCTOR, STOP, CONT)),
    "JMeter killed": Fault(sends(f"^[^ ]*java .*{JMETER}", KILL), over_slaves=False),
    "JMeter frozen": Fault(sends(f"^[^ ]*java .*{JMETER}", STOP, CONT), over_slaves=False),
    "guard killed": Fault(sends(GUARD, KILL), over_slaves=False),
    "client killed": Fault(sends(CLIENTS, KILL), over_slaves=False, plans=("face-blur", "process", "embedded")),
    "client frozen": Fault(sends(CLIENTS, STOP, CONT), over_slaves=False, plans=("face-blur", "process", "embedded")),
    "target killed": Fault(sends(FUNCTION, KILL), over_slaves=False, plans=("embedded",)),
    "target frozen": Fault(sends(FUNCTION, STOP, CONT), over_slaves=False, plans=("embedded",)),
    "Ctrl-C": Fault(sends(CONDUCTOR, INT)),
    "Ctrl-C twice": Fault(sends(CONDUCTOR, INT, INT)),
    "ended": Fault(sends(CONDUCTOR, signal.SIGTERM)),
    "hung up": Fault(sends(CONDUCTOR, signal.SIGHUP)),
    "disk full for a while": Fault(fills_disk_for_a_while, needs_root=True),
    "disk full": Fault(fills_disk, needs_root=True),
    "function goes away": Fault(goes_away, plans=NUMBERED),
    **{name: Fault(feels(mood), over_slaves=False, plans=NUMBERED) for name, mood in MOODS.items()},
    "a second run": Fault(lambda attack: None, over_slaves=False, plans=NUMBERED),
    "slave's JMeter killed": Fault(in_lab(lambda host: faults.kill(host, JMETER)), locally=False),
    "slave's JMeter frozen": Fault(
        in_lab(lambda host: faults.freeze(host, JMETER), lambda host: faults.thaw(host, JMETER)), locally=False
    ),
    "agent killed": Fault(in_lab(kill_agent), locally=False),
    "agent frozen": Fault(
        in_lab(lambda host: faults.freeze(host, AGENT), lambda host: faults.thaw(host, AGENT)), locally=False
    ),
    "slave's clients killed": Fault(
        in_lab(lambda host: faults.kill(host, "/client/client.py")), locally=False, plans=("face-blur",)
    ),
    "slave cut off": Fault(in_lab(faults.cut, faults.reconnect), locally=False),
    "slave deaf": Fault(
        in_lab(lambda host: faults.drop(host, "INPUT"), lambda host: faults.pass_all(host, "INPUT")), locally=False
    ),
    "slave mute": Fault(
        in_lab(lambda host: faults.drop(host, "OUTPUT"), lambda host: faults.pass_all(host, "OUTPUT")), locally=False
    ),
    "slave rebooted": Fault(in_lab(faults.reboot), locally=False),
    "controller killed": Fault(in_lab(lambda _: faults.kill(Host("master1"), JMETER)), locally=False),
}


class ViolationError(AssertionError):
    """A run broke a promise; the message says which."""


def promise(kept: object, sentence: str) -> None:
    if not kept:
        raise ViolationError(sentence)


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
        attack = begin(scheme, run_sh, stack, "disk/run" if scheme.fault.startswith("disk full") else "run")
        others = [begin(scheme, run_sh, stack, "second")] if scheme.fault == "a second run" else []
        wait_for(scheme, attack)
        FAULTS[scheme.fault].strike(attack)
        endings = [end(each) for each in (attack, *others)]
        if scheme.fault == "disk full":
            remount(folder / "disk", DISK_BYTES)
        endings = [f"{ending}, {judge(each)}" for ending, each in zip(endings, (attack, *others), strict=True)]
        left = wait_until(lambda: not run_sh.left_running(), 20)
        promise(left, f"still running: {run_sh.left_running()}")
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
        faults.reconnect(Host(name))

        def is_idle(name: str = name) -> bool:
            command = keys.ssh(Host(name), words)
            return subprocess.run(command, capture_output=True, check=False, timeout=30).returncode == 0

        promise(wait_until(is_idle, IDLE_WITHIN_S, 1), f"{name} is not idle {IDLE_WITHIN_S} s later")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.nemesis", description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=1, help="of the faults (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=10, help="at most (default: %(default)s)")
    parser.add_argument("--minutes", type=float, default=10, help="after which no run starts (default: %(default)s)")
    parser.add_argument("--slaves", action="store_true", help="over the lab, which is up and deployed")
    parser.add_argument("--only", type=int, help="this run of the seed alone")
    asked = parser.parse_args(argv)
    deadline_s = time.monotonic() + asked.minutes * 60
    violations = 0
    folder = Path(tempfile.mkdtemp(prefix="nemesis-"))
    numbers = [asked.only] if asked.only else range(1, asked.runs + 1)
    for number in numbers:
        if time.monotonic() > deadline_s:
            break
        scheme = Scheme.of(asked.seed, number, asked.slaves)
        print(f"{scheme} … ", end="", flush=True)
        try:
            print(suffer(scheme, folder / f"{asked.seed}-{number}"), flush=True)
        except (ViolationError, FramestormError) as violation:
            violations += 1
            print(f"VIOLATION: {violation}; see {folder / f'{asked.seed}-{number}'}", flush=True)
    print(f"{violations} violations")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
