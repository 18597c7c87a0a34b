"""JMeter driving a run's load: what any way of it can be asked, and the way on this machine alone."""

import contextlib
import socket
import sys
from collections.abc import Set
from contextlib import ExitStack
from typing import Any, Protocol

import psutil

from framestorm import jmeter, paths, target
from framestorm.errors import FramestormError
from framestorm.guarded import Guarded
from framestorm.openfaas import metrics, routes
from framestorm.preparation import Prepared
from framestorm.record import host, now_ms
from framestorm.resources import ResourceLog


class Storm(Protocol):
    """JMeter under way, here or over slaves; to be closed however the run ends."""

    arguments: list[str]

    def start(self) -> None:
        """Start target and JMeter; raises FramestormError, and has sent nothing then."""

    def hosts(self) -> list[dict[str, Any]]:
        """The machines that take part, as run.json has them."""

    def rmi(self) -> dict[str, Any] | None:
        """How samples come from the slaves, and why in that way, as run.json has it; None without slaves."""

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

    def losses(self) -> list[dict[str, Any]]:
        """The hosts that were lost, as run.json has them: host, address, reason, time_ms, share."""

    def close(self) -> None:
        """Leave nothing running."""


class LocalStorm:
    """JMeter on this machine, beside the embedded target or against a function elsewhere."""

    def __init__(self, prepared: Prepared) -> None:
        self.arguments: list[str] = []
        self._prepared = prepared
        self._stack = ExitStack()
        self._embedded: Guarded | None = None
        self._stop_port = jmeter.free_udp_port()
        self._asked: set[psutil.Process] = set()
        url = "" if prepared.is_embedded else prepared.values.get("url", "")
        self._url = url if url and routes.leads_here(url) else None
        # Asked now: by the end the replica may be gone.
        self._function = routes.past_gateway(url) if self._url else None
        self._started_ms = now_ms()

    def start(self) -> None:
        run_dir = self._prepared.run_dir
        if self._prepared.is_embedded:
            port, log_path = self._prepared.options.port, run_dir / "target.log"
            self._embedded = self._stack.enter_context(target.start_embedded(port, log_path))
            print("starting the embedded target …", file=sys.stderr, flush=True)
            target.wait_until_ready(self._embedded, port, log_path)
        values = {**self._prepared.values, **self._prepared.jmeter_values, **self._prepared.options.extra}
        command = jmeter.run_command(self._prepared.plan, values, run_dir, self._stop_port)
        self.arguments = command[1:]
        self._jmeter = self._stack.enter_context(Guarded(command, run_dir / "jmeter.out", jmeter.environment()))
        parts = {"generator": self._jmeter} | ({"target": self._embedded} if self._embedded else {})
        self._stack.enter_context(ResourceLog(run_dir / "resources.csv", socket.gethostname(), parts))

    def hosts(self) -> list[dict[str, Any]]:
        return [host(role="generator and target" if self._prepared.is_embedded else "generator")]

    def rmi(self) -> None:
        return None

    def wait(self, timeout_s: float) -> int | None:
        return self._jmeter.wait(timeout_s)

    def exit_status(self) -> int | None:
        return self._jmeter.exit_status()

    def trouble(self) -> str | None:
        if self._url is not None:
            return routes.trouble(self._url)
        if self._embedded is None or (status := self._embedded.exit_status()) is None:
            return None
        return f"the embedded target ended in mid-run with status {status}; see target.log"

    def stop_gently(self) -> None:
        # The plan's own stop. JMeter's Shutdown message would have some thread groups interrupt their users.
        (self._prepared.run_dir / "stop").touch()
        # Again at each turn: a user may start between a plan's last look and its end.
        self._asked |= _stop_clients(self._jmeter, self._asked)

    def interrupt(self) -> None:
        jmeter.interrupt(self._stop_port)

    def stop(self) -> None:
        self._jmeter.stop()

    def collect(self) -> list[str]:
        (self._prepared.run_dir / "stop").unlink(missing_ok=True)
        if self._url is not None:
            try:
                metrics.save(self._prepared.run_dir, self._started_ms, now_ms(), function=self._function)
            except FramestormError as error:
                return [str(error)]
        return []

    def losses(self) -> list[dict[str, Any]]:
        return []

    def close(self) -> None:
        self._stack.close()


def _stop_clients(storm: Guarded, already_asked: Set[psutil.Process]) -> set[psutil.Process]:
    """Ask each client to stop: it writes down what is under way as cut off, and its user's line."""
    clients = {str(paths.CLIENT / name) for name in ("client.py", "tasks.py")}
    asked = set()
    for process in storm.processes():
        with contextlib.suppress(psutil.NoSuchProcess):
            if process not in already_asked and not clients.isdisjoint(process.cmdline()):
                process.terminate()
                asked.add(process)
    return asked
