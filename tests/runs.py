"""run.sh as its user calls it, and what a run leaves."""

import csv
import json
import shlex
import signal
import socket
import subprocess
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from framestorm import paths
from framestorm.machine import wait_until

ENDS_WITHIN_S = 600
STUDY = """\
title: Users
question: Does a third user make it slower?
plan: jmx/video-per-user.jmx
target: {target}
properties: {{frames: 2, ramp_s: 0, verify_share: 0}}
factors:
  users: [2, 3]
{more}
repetitions: 2
run_s: 2
budget_min: 5
metrics: [mean_ms, success]
hypotheses:
  - name: slower
    text: Three users wait longer than two.
    claims:
      - {{metric: mean_ms, compare: {{users: [3, 2]}}, expect: "> 1"}}
charts:
  - {{title: Mean, metric: mean_ms, x: users}}
"""


# All runs of a study are complete, whatever its hypotheses came to.
COMPLETE = (0, 3, 5)


def write_study(parent: Path, target: str = "{kind: embedded}", more: str = "") -> str:
    """Write a study of 2 points, of more with `more` factors; its folder."""
    folder = parent / "three-users"
    folder.mkdir()
    (folder / "study.yml").write_text(STUDY.format(target=target, more=more))
    return str(folder)


@dataclass
class RunFiles:
    """The files that a run, or JMeter alone, leaves in a folder."""

    folder: Path

    def text(self, name: str) -> str:
        return (self.folder / name).read_text()

    def json(self, name: str) -> Any:
        return json.loads(self.text(name))

    def rows(self, name: str = "samples.jtl") -> list[dict[str, str]]:
        with (self.folder / name).open(newline="") as file:
            return list(csv.DictReader(file))

    def count(self, *columns: str) -> Counter[tuple[str, ...]]:
        return Counter(tuple(row[column] for column in columns) for row in self.rows())

    def tree(self) -> ET.Element:
        return ET.parse(self.folder / "tree.xml").getroot()  # noqa: S314 - JMeter has just written it

    def lines(self, name: str) -> int:
        """Lines of a file so far, but for samples.jtl's header."""
        path = self.folder / name
        return max(0, path.read_text().count("\n") - (name == "samples.jtl")) if path.exists() else 0

    def sent(self, slave: str) -> int:
        """Samples in a slave's journal."""
        return self.text(f"journal-{slave}.jsonl").count('"type":"sample"')


@dataclass
class Done(RunFiles):
    """A call of run.sh that has ended."""

    status: int
    stdout: str
    stderr: str


@dataclass
class Running(RunFiles):
    """A call of run.sh under way."""

    process: subprocess.Popen[str]

    def until(self, condition: Callable[[], object], within_s: float = 240) -> None:
        assert wait_until(lambda: self.process.poll() is not None or condition(), within_s), "waited in vain"
        assert self.process.poll() is None, self.process.communicate()

    def until_lines(self, *names: str) -> None:
        """Wait until files have some lines each: its users are sending."""
        self.until(lambda: all(self.lines(name) > 5 for name in names))

    def interrupt(self) -> None:
        self.process.send_signal(signal.SIGINT)

    def ended(self, *statuses: int) -> Done:
        stdout, stderr = self.process.communicate(timeout=ENDS_WITHIN_S)
        assert self.process.returncode in statuses, f"{self.process.args}: {stdout[-3000:]}{stderr[-5000:]}"
        return Done(self.folder, self.process.returncode, stdout, stderr)


class RunSh:
    """Calls run.sh; a run's folder is below that of the test, its port is one that nothing else holds."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self.started: list[subprocess.Popen[str]] = []

    def start(self, *words: str, out: str = "run", dashboard: bool = False) -> Running:
        """Start it; the first word may be a command as a page shows it; without `out` for what makes no run.

        dashboard: a run makes JMeter's own dashboard too, which takes longer than most of these runs.
        """
        if words and words[0].startswith("./run.sh"):
            words = (*shlex.split(words[0])[1:], *words[1:])
        elif out and not dashboard and (not words or words[0].startswith("-")):
            words += ("--no-dashboard",)
        if out:
            words += ("-o", str(self.folder / out))
            words += () if {"-R", "-r", "compare"} & {*words} else ("--port", str(self.port))
        process = subprocess.Popen(
            [paths.ROOT / "run.sh", *words], cwd=paths.ROOT, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.started.append(process)
        return Running(self.folder / out, process)

    def __call__(
        self, *words: str, out: str = "run", status: int | tuple[int, ...] = 0, dashboard: bool = False
    ) -> Done:
        """Call it to its end."""
        running = self.start(*words, out=out, dashboard=dashboard)
        return running.ended(*(status if isinstance(status, tuple) else (status,)))

    def left_running(self) -> list[str]:
        """Command lines of processes that name the test's folder."""
        running = list(psutil.process_iter(["cmdline", "status"]))
        lines = [" ".join(each.info["cmdline"] or ()) for each in running if each.info["status"] != "zombie"]
        return [line for line in lines if str(self.folder) in line]

    def close(self) -> None:
        for process in self.started:
            process.kill()
            process.communicate()
