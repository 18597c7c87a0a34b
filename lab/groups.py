"""The lab's processes, found and ended by the control groups that they were started in.

The kernel keeps a process and all its children in its group whatever they do, so this is true after any crash, where a
file of process numbers is not: numbers are used again.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from lab.hosts import HOME, LabError

JOIN_S = 10  # how long a process may take to be in its group; it is a few ms
# systemd in a host needs a tree of its own in these hierarchies (on a machine with cgroup v2 alone there is only one).
_LEGACY = ("name=systemd", "memory")

_JOIN = 'while [ "$1" != -- ]; do echo $$ >"$1/cgroup.procs" || exit 125; shift; done; shift; exec "$@"'


def _hierarchies() -> list[Path]:
    hierarchies = []
    for line in Path("/proc/mounts").read_text().splitlines():
        _, mount_point, kind, options, *_ = line.split()
        if kind == "cgroup2" or (kind == "cgroup" and set(options.split(",")) & set(_LEGACY)):
            hierarchies.append(Path(mount_point))
    if not hierarchies:
        raise LabError("no control groups are mounted below /sys/fs/cgroup, which systemd in the lab's hosts needs")
    return hierarchies


def _folders(group: str) -> list[Path]:
    # Not by its path, at which a lane of the tests sees a folder of its own.
    HOME.mkdir(parents=True, exist_ok=True)
    root = f"framestorm-lab-{HOME.stat().st_ino}"
    return [hierarchy / root / group for hierarchy in _hierarchies()]


def start(group: str, command: Sequence[str], log: Path) -> None:
    """Start `command` inside `group`, apart from this process and its terminal; its output goes to `log`."""
    folders = _folders(group)
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
    # setsid forks: what runs in the lab is not a child of this process and outlives it
    joined = ["setsid", "--fork", "/bin/sh", "-c", _JOIN, "lab", *map(str, folders), "--", *command]
    with log.open("ab") as output:
        subprocess.run(joined, stdin=subprocess.DEVNULL, stdout=output, stderr=output, check=True)
    deadline = time.monotonic() + JOIN_S
    while not processes(group):
        if time.monotonic() > deadline:
            raise LabError(f"`{command[0]}` of {group} did not start within {JOIN_S} s; see {log}")
        time.sleep(0.01)


def processes(group: str = "") -> list[int]:
    """Return the living processes of a group and of all groups below it, smallest number first."""
    pids: set[int] = set()
    for folder in _folders(group):
        for below, _, _ in os.walk(folder):  # passes over groups that go meanwhile
            try:
                pids.update(int(line) for line in (Path(below) / "cgroup.procs").read_text().split())
            except OSError:
                continue
    return sorted(pid for pid in pids if pid > 0 and _state(pid) not in ("Z", None))


def _state(pid: int) -> str | None:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return None


def groups() -> list[str]:
    """Return the names of the groups that exist."""
    return sorted({entry.name for root in _folders("") if root.is_dir() for entry in root.iterdir() if entry.is_dir()})


def end(group: str = "", within_s: float = 20) -> None:
    """Kill all processes of a group and remove it."""
    deadline = time.monotonic() + within_s
    while left := processes(group):
        if time.monotonic() > deadline:
            raise LabError(
                f"processes {left} of the lab did not end within {within_s:g} s after SIGKILL; try `down` again"
            )
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(0.05)
    for folder in _folders(group):
        while folder.is_dir():
            try:
                for below, _, _ in os.walk(folder, topdown=False):
                    Path(below).rmdir()
            except OSError as error:  # the kernel lets go of a group a moment after its last process
                if time.monotonic() > deadline:
                    raise LabError(f"control group {folder} cannot be removed: {error}") from error
                time.sleep(0.05)
