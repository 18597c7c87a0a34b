"""JMeter driving a run's load: what any way of it can be asked, and the way on this machine alone."""

import contextlib
import csv
import os
import signal
import socket
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Protocol

from framestorm import probe
from framestorm.errors import FramestormError
from framestorm.guard import Guarded
from framestorm.machine import now_ms
from framestorm.model.run import Host, Loss, Rmi
from framestorm.platform.base import Platform, Reading
from framestorm.run import jmeter
from framestorm.run.preparation import Prepared
from framestorm.run.record import this_host
from framestorm.run.resources import ResourceLog

METRICS = "metrics.csv"


class Load(Protocol):
    """JMeter under way, here or over slaves; to be closed however the run ends."""

    arguments: tuple[str, ...]

    def start(self) -> None:
        """Start target and JMeter; raises FramestormError, and has sent nothing then."""

    def hosts(self) -> tuple[Host, ...]:
        """The machines that take part."""

    def rmi(self) -> Rmi | None:
        """How samples come from the slaves, and why in that way; None without slaves."""

    def wait(self, timeout_s: float) -> int | None:
        """JMeter's exit status, waited for up to `timeout_s`; None while it runs."""

    def exit_status(self) -> int | None:
        """JMeter's exit status, None while it runs."""

    def trouble(self) -> str | None:
        """Why the run is to be stopped, None while all is well."""

    def stop_gently(self) -> None:
        """Start no new users, have those under way hand in what they have; called again until JMeter has ended."""

    def interrupt(self) -> None:
        """Tell JMeter to interrupt its users and end."""

    def stop(self) -> None:
        """End JMeter and all it started."""

    def collect(self) -> list[str]:
        """After the end, have everything here that was measured; says what is missing."""

    def losses(self) -> tuple[Loss, ...]:
        """The hosts that were lost."""

    def close(self) -> None:
        """Leave nothing running."""


class LocalLoad:
    """JMeter on this machine, beside a target that runs for it or against a function elsewhere."""

    def __init__(self, prepared: Prepared) -> None:
        self.arguments: tuple[str, ...] = ()
        self._prepared = prepared
        self._platform = prepared.platform
        self._stack = ExitStack()
        self._has_target = False
        self._stop_port = jmeter.free_udp_port()
        self._stopped_clients: set[int] = set()
        self._started_ms = now_ms()

    def start(self) -> None:
        run_dir = self._prepared.run_dir
        target = self._stack.enter_context(self._platform.serving(run_dir))
        self._has_target = bool(target)
        values = {**self._prepared.values, **self._prepared.jmeter_values, **self._prepared.options.extra}
        command = jmeter.run_command(self._prepared.plan.path, values, run_dir, self._stop_port)
        self.arguments = tuple(command[1:])
        self._jmeter = self._stack.enter_context(Guarded(command, run_dir / "jmeter.out", jmeter.environment()))
        parts = {"generator": self._jmeter, **target}
        self._stack.enter_context(ResourceLog(run_dir / "resources.csv", socket.gethostname(), parts))

    def hosts(self) -> tuple[Host, ...]:
        return (this_host("generator and target" if self._has_target else "generator"),)

    def rmi(self) -> None:
        return None

    def wait(self, timeout_s: float) -> int | None:
        return self._jmeter.wait(timeout_s)

    def exit_status(self) -> int | None:
        return self._jmeter.exit_status()

    def trouble(self) -> str | None:
        return self._platform.trouble()

    def stop_gently(self) -> None:
        # The plan's own stop. JMeter's Shutdown message would have some thread groups interrupt their users.
        (self._prepared.run_dir / "stop").touch()
        # Again at each turn: a user may start between a plan's last look and its end.
        running = probe.clients(process.pid for process in self._jmeter.processes())
        for pid in set(running) - self._stopped_clients:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        self._stopped_clients.update(running)

    def interrupt(self) -> None:
        jmeter.interrupt(self._stop_port)

    def stop(self) -> None:
        self._jmeter.stop()

    def collect(self) -> list[str]:
        (self._prepared.run_dir / "stop").unlink(missing_ok=True)
        return save_metrics(self._platform, self._prepared.run_dir, self._started_ms, now_ms())

    def losses(self) -> tuple[Loss, ...]:
        return ()

    def close(self) -> None:
        self._stack.close()


def save_metrics(platform: Platform[Any], run_dir: Path, start_ms: float, end_ms: float) -> list[str]:
    """Keep what a platform saw of its functions as metrics.csv, a row a moment and series; says why it could not."""
    try:
        readings = platform.metrics(start_ms, end_ms)
    except FramestormError as error:
        return [str(error)]
    if readings is not None:
        with (run_dir / METRICS).open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(Reading._fields)
            writer.writerows(readings)
    return []
