"""Load for a given time on what runs for long, which must not grow by it.

    python -m tests.soak --minutes 30

Watches the conductor and the embedded function during one run, the provider of the local OpenFaaS, if it is up, during
another one of its function `noop`, and an agent that watches this machine. After the first third of the time none may
grow past the bounds; docs/security.md states them.
"""

import argparse
import getpass
import json
import re
import shlex
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from framestorm.hosts.inventory import InventoryHost
from framestorm.hosts.member import ANSWER_WITHIN_S, Member
from framestorm.hosts.messages import Do, Ready
from framestorm.machine import wait_until
from framestorm.platform.openfaas import layout
from tests.nemesis.faults import FUNCTION
from tests.runs import RunSh

LOOK_EVERY_S = 1.0
ENDS_BEFORE_S = 10.0  # the end of the load, after which the conductor makes the report
BOUNDS = {"descriptors": 16, "threads": 8, "MiB": 24}
DISK_AT_MOST_BYTES_PER_SAMPLE = 8 << 10
USERS = ("-Jusers=2", "-Jramp_s=0", "-Jsleep_s=0.05")


@dataclass(frozen=True)
class Here(InventoryHost):
    """This machine as a host, reached without ssh and without root, and described by a file of its own."""

    described: Path = Path()

    def ssh(self, remote_command: str) -> list[str]:
        main = f'module.DESCRIPTION = module.Path("{self.described}")\nmodule.main()'
        return ["sh", "-c", remote_command.replace("sudo -n ", "").replace("module.main()", main)]


@dataclass
class Part:
    """A program, by what its command line has, among the processes below one."""

    name: str
    above: int
    pattern: str
    held: list[dict[str, float]] = field(default_factory=list)

    def look(self) -> None:
        """Note what it holds now, all of its processes together."""
        with suppress(psutil.Error):
            top = psutil.Process(self.above)
            processes = [each for each in (top, *top.children(recursive=True)) if self._is_of(each)]
            held = dict.fromkeys(BOUNDS, 0.0)
            for each in processes:
                held["descriptors"] += each.num_fds()
                held["threads"] += each.num_threads()
                held["MiB"] += each.memory_info().rss / 2**20
            if processes:
                self.held.append(held)

    def _is_of(self, process: psutil.Process) -> bool:
        return bool(re.search(self.pattern, " ".join(process.cmdline())))

    def growth(self) -> dict[str, float]:
        """By how much the most after the first third of the time is above the most within it."""
        third = len(self.held) // 3
        first, later = self.held[:third], self.held[third:]
        return {name: max(each[name] for each in later) - max(each[name] for each in first) for name in BOUNDS}


def soak(folder: Path, load_s: float, provider: psutil.Process | None = None) -> list[str]:
    """Load for that time; prints what each part held, and returns what grew, in words.

    provider: of the local OpenFaaS, which is loaded too and has to be there until the end.
    """
    run_sh = RunSh(folder)
    folder.mkdir(parents=True, exist_ok=True)
    held = (*USERS, f"-Jhold_s={load_s:.0f}")
    runs = [run_sh.start("-t", "jmx/face-blur.jmx", *held)]
    parts = [Part("conductor", runs[0].process.pid, r"python\S* (-\S+ )*-m framestorm")]
    parts.append(Part("embedded function", runs[0].process.pid, FUNCTION))
    if provider:
        url = f"{layout.GATEWAY_URL}/function/noop"
        runs.append(run_sh.start("-t", "jmx/requests.jmx", f"-Jurl={url}", "-Jbody=x", *held, out="openfaas"))
        parts.append(Part("provider", provider.pid, re.escape(str(layout.BIN / "provider"))))
    described = folder / "host.json"
    described.write_text(json.dumps({"user": getpass.getuser(), "runs": str(folder)}))
    with closing(run_sh), closing(Member(Here("here", (), "127.0.0.1", described=described), folder)) as member:
        member.learn([])
        member.ask(Do("watch"), Ready, ANSWER_WITHIN_S)
        parts.append(Part("agent", member._agent.pid, r"framestorm-agent$"))
        with ThreadPoolExecutor(len(runs)) as pool:
            ended = [pool.submit(run.process.communicate) for run in runs]
            for run in runs:  # users hand in their samples at their end, but note them in the journal
                wait_until(lambda run=run: run.lines("journal.jsonl") or run.lines("samples.jtl"), 120)
            until_s = time.monotonic() + load_s - ENDS_BEFORE_S
            while time.monotonic() < until_s and not any(each.done() for each in ended):
                for part in parts:
                    part.look()
                time.sleep(LOOK_EVERY_S)
            for run, said in zip(runs, ended, strict=True):
                words = said.result()[1][-500:]
                assert run.process.returncode in (0, 3), f"{shlex.join(map(str, run.process.args))}: {words}"
    grown = []
    for part in parts:
        assert len(part.held) > 2, f"{part.name} was not there"
        growth = part.growth()
        most = {name: max(each[name] for each in part.held) for name in BOUNDS}
        print(part.name, *(f"{name} {most[name]:.0f} ({growth[name]:+.0f})" for name in BOUNDS), sep=", ", flush=True)
        grown += [f"{part.name}: {growth[name]:+.0f} {name}" for name in BOUNDS if growth[name] > BOUNDS[name]]
    for run in runs:
        on_disk = sum(each.stat().st_size for each in run.folder.glob("*.j*") if each.is_file())
        each = on_disk / max(1, len(run.rows("samples.csv")))
        print(f"{run.folder.name}: {each:.0f} bytes of raw files a sample", flush=True)
        grown += [f"{run.folder.name}: {each:.0f} bytes a sample"] if each > DISK_AT_MOST_BYTES_PER_SAMPLE else []
    return grown


def _is_provider(process: psutil.Process) -> bool:
    return (process.info["cmdline"] or [""])[0] == str(layout.BIN / "provider")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description="Load on what must not grow by it.")
    parser.add_argument("--minutes", type=float, default=30, help="of load (default: %(default)s)")
    asked = parser.parse_args(argv)
    provider = next((each for each in psutil.process_iter(["cmdline"]) if _is_provider(each)), None)
    grown = soak(Path(tempfile.mkdtemp(prefix="soak-")), asked.minutes * 60, provider)
    print("\n".join(grown) or "nothing grew")
    return 1 if grown else 0


if __name__ == "__main__":
    sys.exit(main())
