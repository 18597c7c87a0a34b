"""Processes that continue after the command: start them, recognise them by their start time, and end them."""

import contextlib
import os
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from framestorm.errors import FramestormError
from framestorm.machine import last_lines, port_holder, wait_until
from framestorm.model import files
from framestorm.platform.openfaas.layout import HOME, LOGS, STATE

READY_WITHIN_S = 30.0
GRACE_S = 10.0
POLL_S = 0.02
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Service:
    """A started process; its start time (s since boot, so that no set clock moves it) tells it from a later one."""

    pid: int
    started_s: float

    def process(self) -> psutil.Process | None:
        """Return the process, while it is alive."""
        try:
            process = psutil.Process(self.pid)
            alive = _started_s(self.pid) == self.started_s and process.status() != psutil.STATUS_ZOMBIE
        except (psutil.NoSuchProcess, FileNotFoundError, ProcessLookupError):
            return None
        return process if alive else None


def of(pid: int) -> Service:
    """Return a running process as a service."""
    return Service(pid, _started_s(pid))


def _started_s(pid: int) -> float:
    """When a process started, by the kernel's own count from boot."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[19]) / TICKS_PER_S


@dataclass(frozen=True)
class StartedServices:
    """What was started, by name in the order of starting; `backend` is how replicas of the local OpenFaaS run."""

    backend: str
    services: Mapping[str, Service] = field(default_factory=dict)

    def dead(self) -> list[str]:
        """Return names of the services that ended without being stopped."""
        return [name for name, service in self.services.items() if service.process() is None]


def read(path: Path = STATE) -> StartedServices | None:
    """Return the state of the started services; None if nothing was started."""
    return files.read(path, StartedServices) if path.exists() else None


@dataclass(frozen=True)
class Program:
    """A program that can be started: it listens on `ports`, and `ready` tells whether it can be used."""

    name: str
    command: Sequence[str | Path]
    ready: Callable[[], bool]
    ports: tuple[int, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


def check_ports_free(wanted: Iterable[Program]) -> None:
    """Check that all ports are free.

    Raises:
        FramestormError: one is taken; the message names port, program and, if visible to this user, the process.
    """
    for program in wanted:
        for port in program.ports:
            if holder := port_holder(port):
                raise FramestormError(f"port {port} of the {program.name} is taken by {holder}; end that first")


def start(program: Program, before: StartedServices, path: Path = STATE) -> StartedServices:
    """Start a program with its output in its log, wait until it is ready, and return the new state, saved in `path`.

    Raises:
        FramestormError: it is not installed, ended, or was not ready in time; it is not left running.
    """
    LOGS.mkdir(parents=True, exist_ok=True)
    log_path = LOGS / f"{program.name}.log"
    environment = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "DOCKER_HOST") if name in os.environ}
    with log_path.open("wb") as log:
        try:
            process = subprocess.Popen(
                program.command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**environment, **program.environment},
                cwd=HOME,
                start_new_session=True,
            )
        except FileNotFoundError:
            raise FramestormError(f"{program.name} cannot be started: there is no {program.command[0]}") from None
    try:
        # Saved before it is ready: if this process is killed now, the next start still knows the program.
        started = StartedServices(before.backend, {**before.services, program.name: of(process.pid)})
        files.write(path, started, indent=2)
        wait_until(lambda: process.poll() is not None or program.ready(), READY_WITHIN_S, POLL_S)
        if process.returncode is not None:
            raise FramestormError(f"{program.name} ended with status {process.returncode}; {last_lines(log_path)}")
        if not program.ready():
            raise FramestormError(f"{program.name} was not ready in {READY_WITHIN_S:.0f} s; {last_lines(log_path)}")
    except BaseException:
        process.kill()
        process.wait()
        raise
    # Otherwise Popen would warn that the process was not waited for.
    process.returncode = 0
    return started


def end(services: Iterable[Service], grace_s: float = GRACE_S) -> None:
    """Ask processes and their descendants to end, and kill them after a grace period."""
    processes = [process for service in services if (process := service.process()) is not None]
    family = _with_children(processes)
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.terminate()
    wait_until(lambda: not any(_is_running(process) for process in processes), grace_s, POLL_S)
    family |= _with_children(processes)
    for process in family:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    wait_until(lambda: not any(_is_running(process) for process in family), grace_s, POLL_S)


def _with_children(processes: Iterable[psutil.Process]) -> set[psutil.Process]:
    family = set(processes)
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            family.update(process.children(recursive=True))
    return family


def _is_running(process: psutil.Process) -> bool:
    """Return whether a process has not ended. A zombie has: its parent may take seconds to notice."""
    with contextlib.suppress(psutil.NoSuchProcess, psutil.TimeoutExpired):
        if process.status() != psutil.STATUS_ZOMBIE:
            return True
        process.wait(0)  # clears it away if it is a child of this process
    return False
