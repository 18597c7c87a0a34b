"""What was started and runs on after the command has returned: process ids, each with its start time."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from framestorm.machine import wait_until
from framestorm.model import files
from framestorm.platform.openfaas.layout import STATE

GRACE_S = 10.0
POLL_S = 0.02
# The kernel's start times are counted from the boot, whose time of day moves when the clock is set.
CLOCK_SLACK_S = 2.0


@dataclass(frozen=True)
class Service:
    """A started process; its start time (s since the epoch) tells it from a later one of the same id."""

    pid: int
    started_s: float

    def process(self) -> psutil.Process | None:
        """The process, while it is alive."""
        try:
            process = psutil.Process(self.pid)
            moved_s = abs(process.create_time() - self.started_s)
            alive = moved_s < CLOCK_SLACK_S and process.status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return None
        return process if alive else None


@dataclass(frozen=True)
class State:
    """All of the local OpenFaaS that was started, by name in the order of starting."""

    backend: str
    services: Mapping[str, Service]

    def dead(self) -> list[str]:
        """Names of the services that have ended although nobody stopped them."""
        return [name for name, service in self.services.items() if service.process() is None]


def of(pid: int) -> Service:
    """A running process as a service."""
    return Service(pid, psutil.Process(pid).create_time())


def read(path: Path = STATE) -> State | None:
    """What was started, None if nothing was."""
    return files.read(path, State) if path.exists() else None


def write(state: State, path: Path = STATE) -> None:
    """Keep it; a reader sees the state before or after, never half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    files.write(path, state, indent=2)


def end(services: Sequence[Service], grace_s: float = GRACE_S) -> None:
    """Ask processes to end, make them after a grace period, together with all that came of them."""
    processes = [process for service in services if (process := service.process()) is not None]
    family = {child for process in processes for child in _children(process)}
    for process in processes:
        _quietly(process.terminate)
    running = _wait(processes, grace_s)
    family |= {child for process in running for child in _children(process)}
    for process in {*running, *family}:
        _quietly(process.kill)
    _wait([*running, *family], grace_s)


def _wait(processes: Sequence[psutil.Process], timeout_s: float) -> list[psutil.Process]:
    """Wait for processes to end; those that have not. A zombie has ended: its parent may take seconds to notice."""
    running = list(processes)

    def all_ended() -> bool:
        running[:] = [process for process in running if _is_running(process)]
        return not running

    wait_until(all_ended, timeout_s, POLL_S)
    return running


def _is_running(process: psutil.Process) -> bool:
    try:
        if process.status() != psutil.STATUS_ZOMBIE:
            return True
        process.wait(0)  # clears it away if it is a child of this process
    except (psutil.NoSuchProcess, psutil.TimeoutExpired):
        pass
    return False


def _children(process: psutil.Process) -> list[psutil.Process]:
    try:
        return process.children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def _quietly(action: Callable[[], None]) -> None:
    try:
        action()
    except psutil.NoSuchProcess:
        return
