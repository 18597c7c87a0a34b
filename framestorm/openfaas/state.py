"""What was started and runs on after the command has returned: process ids, each with its start time."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from framestorm.openfaas.layout import STATE

GRACE_S = 10.0
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
    try:
        content = json.loads(path.read_text())
    except FileNotFoundError:
        return None
    return State(content["backend"], {name: Service(**service) for name, service in content["services"].items()})


def write(state: State, path: Path = STATE) -> None:
    """Keep it; a reader sees the state before or after, never half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    following = path.with_suffix(".next")
    following.write_text(json.dumps(asdict(state), indent=2))
    following.replace(path)


def end(services: Sequence[Service], grace_s: float = GRACE_S) -> None:
    """Ask processes to end, make them after a grace period, together with all that came of them."""
    processes = [process for service in services if (process := service.process()) is not None]
    family = {child for process in processes for child in _children(process)}
    for process in processes:
        _quietly(process.terminate)
    _, still = psutil.wait_procs(processes, timeout=grace_s)
    family |= {child for process in still for child in _children(process)}
    for process in {*still, *family}:
        _quietly(process.kill)
    psutil.wait_procs([*still, *family], timeout=grace_s)


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
