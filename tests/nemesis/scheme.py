"""What one run is to suffer, and the run under way that suffers it."""

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import psutil

from framestorm.machine import wait_until
from lab.hosts import LabHost
from tests.nemesis.witness import Witness
from tests.runs import Running, RunSh

USERS = 3
HOLD_S = 4
TIMEOUT_S = 2
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

    def __str__(self) -> str:
        words = f"{self.name}: {self.plan}, {self.fault} {self.after_s} s into the {self.phase} (for {self.lasts_s} s)"
        return words + (" with --continue-on-loss" if self.continues else "")


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
    def slave(self) -> LabHost:
        return LabHost(("slave1", "slave2")[int(self.scheme.pick * 2)])

    @contextmanager
    def lasting(self, begin: Callable[[], object], end: Callable[[], object]) -> Iterator[None]:
        begin()
        try:
            wait_until(lambda: self.running.process.poll() is not None, self.scheme.lasts_s, 0.05)
            yield
        finally:
            end()
