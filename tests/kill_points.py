"""Kills a piece of work at each of its writes in turn, so that a test sees what a crash at any moment leaves.

The points, all below one folder and in the order in which they come: before each opening for writing, creation of a
folder, rename, link, removal and flush to disk (fsync); before each write, and after the first half of it. Those are
the writes of Python's own code: not of processes that the work starts, nor of native libraries.
"""

import builtins
import io
import itertools
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Iterator
from functools import partial
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

# A clean process, with what takes long already imported, forks one for each point.
FORKS = multiprocessing.get_context("forkserver")
ENDS_WITHIN_S = 120
CHANGES = {"os.mkdir", "os.rmdir", "os.rename", "os.remove", "os.link", "os.symlink", "os.truncate"}
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
Work = Callable[[Path], object]


def at_each_write(work: Work, parent: Path, begin: Work = Path.mkdir) -> Iterator[Path]:
    """A folder for each point, in which `work`, a function of a module, was killed there; in the last one it ended.

    `begin` makes the folder before.
    """
    for number in itertools.count(1):
        folder = parent / f"point-{number}"
        begin(folder)
        process = FORKS.Process(target=_work, args=(work, folder, number))
        process.start()
        status = ended(process)
        assert status in (0, -signal.SIGKILL), f"point {number}: {status}"
        yield folder
        if status == 0:
            return


def ended(process: ForkServerProcess) -> int | None:
    """How a process ended; one that does not end in time is killed, and has no status."""
    process.join(ENDS_WITHIN_S)
    status = process.exitcode
    process.kill()
    process.join()
    return status


class _Points:
    """Counts the points that this process passes, and kills it at one of them."""

    def __init__(self, folder: Path, fatal: int) -> None:
        self.folder = folder
        self.left = fatal
        self.open, self.write, self.fsync = io.open, os.write, os.fsync

    def is_inside(self, path: Any) -> bool:
        try:
            name = Path(f"/proc/self/fd/{path}").readlink() if isinstance(path, int) else Path(os.fsdecode(path))
        except (OSError, TypeError):
            return False
        return name.is_relative_to(self.folder)

    def passed(self) -> None:
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def heard(self, event: str, arguments: tuple[Any, ...]) -> None:
        is_change = event in CHANGES or (event == "open" and arguments[2] & WRITING)
        if is_change and not isinstance(arguments[0], int) and self.is_inside(arguments[0]):
            self.passed()

    def in_halves(self, write: Callable[[bytes], int], data: bytes) -> int:
        self.passed()
        half = len(data) // 2
        written = write(data[:half]) if half else 0
        if written < half:
            return written
        self.passed()
        return written + write(data[half:])

    def opened(self, file: Any, mode: str = "r", buffering: int = -1, *words: Any, **named: Any) -> Any:
        if not set(mode) & set("wax+") or not self.is_inside(file):
            return self.open(file, mode, buffering, *words, **named)
        raw = _Raw(file, mode.replace("b", "").replace("t", ""))
        raw.points = self
        buffered: Any = io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)
        return buffered if "b" in mode else io.TextIOWrapper(buffered, *words, **named)

    def written(self, descriptor: int, data: bytes) -> int:
        if not self.is_inside(descriptor):
            return self.write(descriptor, data)
        return self.in_halves(partial(self.write, descriptor), bytes(data))

    def flushed(self, descriptor: int) -> None:
        if self.is_inside(descriptor):
            self.passed()
        self.fsync(descriptor)


class _Raw(io.FileIO):
    points: _Points

    def write(self, data: Any) -> int:
        return self.points.in_halves(super().write, bytes(data))


def _work(work: Work, folder: Path, fatal: int) -> None:
    points = _Points(folder, fatal)
    sys.addaudithook(points.heard)
    builtins.open = io.open = points.opened  # type: ignore[assignment]
    os.write, os.fsync = points.written, points.flushed  # type: ignore[assignment]
    work(folder)
