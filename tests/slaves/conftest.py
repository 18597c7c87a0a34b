"""Runs over the lab's slaves, by run.sh as its user calls it."""

import csv
import json
import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
RUN_WITHIN_S = 240


@dataclass(frozen=True)
class SlaveRun:
    """A run over slaves that has ended."""

    status: int
    stderr: str
    folder: Path

    def json(self, name: str) -> Any:
        return json.loads((self.folder / name).read_text())

    def rows(self) -> Counter[tuple[str, str]]:
        """Rows of samples.jtl by label and host name."""
        with (self.folder / "samples.jtl").open(newline="") as file:
            return Counter((row["label"], row["Hostname"]) for row in csv.DictReader(file))

    def frames_sent(self, slave: str) -> int:
        """Frames in the journal that came from a slave."""
        journal = self.folder / f"journal-{slave}.jsonl"
        return journal.read_text().count('"type":"sample"') if journal.exists() else 0


class Running:
    """A run over slaves under way."""

    def __init__(self, folder: Path, words: tuple[str, ...]) -> None:
        self.folder = folder
        command = [str(ROOT / "run.sh"), "-R", "slaves", "-o", str(folder), *words]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True, cwd=ROOT
        )

    def until_frames(self, *slaves: str, count: int = 3) -> None:
        """Wait until the slaves are sending."""
        deadline_s = time.monotonic() + 90
        run = SlaveRun(0, "", self.folder)
        while not all(run.frames_sent(slave) >= count for slave in slaves):
            assert self.process.poll() is None, self.process.communicate()
            assert time.monotonic() < deadline_s, "no frames came"
            time.sleep(0.2)

    def ended(self) -> SlaveRun:
        _, stderr = self.process.communicate(timeout=RUN_WITHIN_S)
        return SlaveRun(self.process.returncode, stderr, self.folder)


@pytest.fixture
def start(deployed: Any, tmp_path: Path) -> Iterator[Callable[..., Running]]:
    """Start run.sh over the slaves."""
    started: list[Running] = []

    def start(*words: str) -> Running:
        started.append(Running(tmp_path / f"run{len(started)}", words))
        return started[-1]

    yield start
    for running in started:
        if running.process.poll() is None:
            os.kill(running.process.pid, signal.SIGKILL)
        running.process.communicate()


@pytest.fixture
def run_slaves(start: Callable[..., Running]) -> Callable[..., SlaveRun]:
    """Call run.sh over the slaves to its end."""
    return lambda *words: start(*words).ended()


@pytest.fixture
def master_here(tmp_path: Path) -> Path:
    """The inventory as shipped, but with the controller on this machine."""
    text = (ROOT / "inventory.ini").read_text().replace("{{ inventory_dir }}", str(ROOT))
    path = tmp_path / "inventory.ini"
    path.write_text("\n".join(line for line in text.splitlines() if not line.startswith("master1 ")))
    return path
