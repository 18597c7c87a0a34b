"""JMeter on this machine: the load of a run, the set-up of a plan by itself, and a plan in the GUI."""

import copy
import csv
import re
import shutil
import socket
import subprocess
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import psutil

from framestorm import client_server, paths, probe
from framestorm.errors import FramestormError, UsageError
from framestorm.guard import Guarded
from framestorm.load import kit_load
from framestorm.machine import LOOPBACK, in_background, now_ms
from framestorm.model import plan as plans
from framestorm.model.run import Host, Loss, Rmi, Role
from framestorm.plain import tell
from framestorm.platform.base import Platform, Reading
from framestorm.results.jmeter_log import read_log
from framestorm.run import jmeter, properties
from framestorm.run.options import What
from framestorm.run.output import check_output
from framestorm.run.preparation import Prepared, prepare
from framestorm.run.resources import log_resources

METRICS = "metrics.csv"
SET_UP_S = 120  # for the checks of a plan's set-up
# What a set-up calls that looks at properties (jmx/java/plan).
_CHECKS = re.compile(re.escape(plans.KIT_CALL) + r"(Requests|Answer)\.check\b")


class LocalLoad:
    """JMeter on this machine, beside a target that runs for it or against a function elsewhere.

    It has the same methods as Fleet in hosts/fleet.py. Close it however the run ends.
    """

    def __init__(self, prepared: Prepared) -> None:
        self.arguments: tuple[str, ...] = ()
        self._prepared = prepared
        self._platform = prepared.platform
        self._stack = ExitStack()
        self._has_target = False
        self._is_shut_down = False
        self._stopped_clients: set[int] = set()
        self._started_ms = now_ms()
        self._clients: _Clients | None = None

    def start(self) -> None:
        """Start target and JMeter; raises FramestormError, in which case no request was sent."""
        run_dir, what, settings = self._prepared.run_dir, self._prepared.what, self._prepared.settings
        plan = self._prepared.plan.path
        if name := settings.values.get("client_server"):
            self._clients = _Clients(name, run_dir)
            self._stack.enter_context(self._clients)
        target = self._stack.enter_context(self._platform.serving(run_dir))
        self._has_target = bool(target)
        if self._clients is not None:
            self._clients.wait_until_ready()
        # At its end, JMeter would wait for what threads are left: a minute for those of an Open Model Thread Group.
        values = {"jmeterengine.force.system.exit": "true", **settings.values, **settings.of_jmeter, **settings.extra}
        words = self._stack.enter_context(options_for_jmeter(what))
        java_options = jmeter.under_load(self._prepared.asked.heap_bytes)
        command = jmeter.run_command(plan, values, run_dir, None, java_options, words, is_unpatched=what.is_unpatched)
        self.arguments = tuple(command[1:])
        self._jmeter = self._stack.enter_context(Guarded(command, run_dir / "jmeter.out", jmeter.environment()))
        parts = {"generator": self._processes, **{name: part.processes for name, part in target.items()}}
        log = partial(log_resources, run_dir / "resources.csv", socket.gethostname(), parts)
        self._stack.enter_context(in_background(log))

    def hosts(self) -> tuple[Host, ...]:
        """Return the machines that take part."""
        role: Role = "generator and target" if self._has_target else "generator"
        cores, (memory_bytes, _) = probe.cores(), probe.memory()
        return (Host(socket.gethostname(), role, LOOPBACK, cores=cores, memory_bytes=memory_bytes),)

    def rmi(self) -> Rmi | None:
        """Return nothing: there are no slaves."""
        return None

    def wait(self, timeout_s: float) -> int | None:
        """Wait up to `timeout_s` for JMeter's exit status; None if it still runs."""
        return self._jmeter.wait(timeout_s)

    def exit_status(self) -> int | None:
        """Return JMeter's exit status, None while it runs."""
        return self._jmeter.exit_status()

    def trouble(self) -> str | None:
        """Return the reason to stop the run; None if there is none."""
        return self._platform.trouble() or (self._clients.trouble() if self._clients else None)

    def stop_gently(self) -> None:
        """Start no new users, and let running ones hand in their results; called repeatedly until JMeter has ended."""
        # The plan's own stop file works in any JMeter that has the kit's jar.
        if "stop" in self._prepared.plan.filled_in:
            (self._prepared.run_dir / "stop").touch()
        elif not self._is_shut_down:
            probe.stop_jmeter(self._prepared.run_dir, is_now=False)
            self._is_shut_down = True
        probe.stop_clients((process.pid for process in self._processes()), self._stopped_clients)

    def _processes(self) -> list[psutil.Process]:
        """JMeter, the client server, and all users, whichever of the two started them."""
        return [*self._jmeter.processes(), *(self._clients.processes() if self._clients else ())]

    def interrupt(self) -> None:
        """Tell JMeter to interrupt its users and end."""
        probe.stop_jmeter(self._prepared.run_dir, is_now=True)

    def stop(self) -> None:
        """End JMeter and all it started."""
        self._jmeter.stop()

    def collect(self) -> list[str]:
        """After the end, have all measured data on this machine; returns sentences on what is missing."""
        (self._prepared.run_dir / "stop").unlink(missing_ok=True)
        return save_metrics(self._platform, self._prepared.run_dir, self._started_ms, now_ms())

    def losses(self) -> tuple[Loss, ...]:
        """Return the hosts that were lost: there are no others."""
        return ()

    def close(self) -> None:
        """Leave nothing running."""
        self._stack.close()


@contextmanager
def options_for_jmeter(what: What) -> Iterator[list[str]]:
    """JMeter's own options of a command line, the proxy's password in a file that only this user may read.

    JMeter's -a would show it in the list of processes, and JMeter writes it to its log.
    """
    if what.proxy_password is None:
        yield what.for_jmeter
        return
    with tempfile.NamedTemporaryFile(suffix=".properties") as file:
        file.write(properties.written({"http.proxyPass": what.proxy_password}))
        file.flush()
        yield [*what.for_jmeter, "-q", file.name]


class _Clients(Guarded):
    """The client server of a run on this machine."""

    def __init__(self, name: str, run_dir: Path) -> None:
        """Start it; what it says goes where its users' stderr goes."""
        self._name = name
        self._watch: client_server.Heartbeat | None = None
        command = client_server.command(paths.CLIENT_PYTHON, paths.CLIENT, name)
        super().__init__(command, run_dir / "client.log", jmeter.environment())

    def wait_until_ready(self) -> None:
        """Return when it can start users; raises FramestormError if it cannot be started."""
        try:
            self._watch = client_server.Heartbeat(self._name, lambda: self.exit_status() is not None)
        except OSError as error:
            raise FramestormError(f"the client server cannot be started: {error}; see client.log") from None

    def trouble(self) -> str | None:
        """Return why its users have failed, None while it works."""
        return self._watch.trouble() if self._watch else None

    def stop(self) -> None:
        """End it and all its users."""
        if self._watch is not None:
            self._watch.close()
        super().stop()


def save_metrics(platform: Platform[Any], run_dir: Path, start_ms: float, end_ms: float) -> list[str]:
    """Save a platform's metrics of its functions as metrics.csv, one row per time and series; returns any problem."""
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


def check_properties(prepared: Prepared) -> None:
    """Run in JMeter the checks of the kit's that a plan's set-up calls, and nothing else of the plan: nothing is sent.

    Raises:
        UsageError: a property cannot be used.
        FramestormError: JMeter cannot run them.
    """
    root = copy.deepcopy(prepared.plan.root)
    top = root.find("hashTree")
    if not prepared.plan.is_for_kit or top is None or len(top) < 2 or top[0].tag != "TestPlan":
        return
    del top[2:]
    _keep_checks(top[1])
    if top.find(".//JSR223Sampler") is None:
        return
    with tempfile.TemporaryDirectory(prefix="framestorm-check-") as scratch:
        plan = Path(scratch) / "plan.jmx"
        plans.write(root, plan)
        values = {**prepared.settings.values, **prepared.settings.of_jmeter, "framestorm.warm_up": "false"}
        words = prepared.what.for_jmeter
        command = jmeter.run_command(plan, values, plan.parent, java_options=jmeter.QUICK_START, words=words)
        with (plan.parent / "jmeter.out").open("wb") as output:
            try:
                done = subprocess.run(
                    command, stdout=output, stderr=output, env=jmeter.environment(), timeout=SET_UP_S, check=False
                )
            except subprocess.TimeoutExpired:
                raise FramestormError(f"the checks of the plan's set-up took more than {SET_UP_S} s") from None
        if refusal := read_log(plan.parent).refusal:
            raise UsageError(refusal)
        if done.returncode:
            raise FramestormError(f"JMeter cannot run the checks of the plan's set-up{jmeter.failure(plan.parent)}")


def _keep_checks(tree: ET.Element) -> None:
    """Reduce a test plan to its variables and to the setUp Thread Groups that check properties by the kit's classes."""
    for element, below in zip(tree[::2], tree[1::2], strict=False):
        is_enabled = element.get("enabled") != "false"
        if is_enabled and element.tag == "SetupThreadGroup":
            for sampler, others in zip(below[::2], below[1::2], strict=False):
                if not _CHECKS.match(plans.field_text(sampler, "script")):
                    below.remove(sampler)
                    below.remove(others)
        elif not (is_enabled and element.tag == "Arguments"):
            tree.remove(element)
            tree.remove(below)


def open_gui(what: What) -> None:
    """Open a plan in JMeter's GUI with the target and properties of a run, and wait until the window is closed.

    The folder keeps the results of the window's runs: tree.xml and journal.jsonl, to which each run appends.
    """
    run_dir = paths.new_dashboard(f"{what.plan.stem}-gui")
    check_output(run_dir, None, None)
    prepared = prepare(what, run_dir)
    run_dir.mkdir(parents=True)
    prepared.write_load()
    name = prepared.settings.values.get("client_server")
    clients = _Clients(name, run_dir) if name else nullcontext()
    with prepared.platform.serving(run_dir), clients, options_for_jmeter(what) as words:
        tell(f"opening JMeter's window; runs in it write their files to {paths.shown(run_dir)}")
        command = jmeter.gui_command(what.plan, prepared.settings.of_window(prepared.plan), run_dir, words)
        process = subprocess.run(command, env=jmeter.environment(), capture_output=True, text=True, check=False)
    if process.returncode != 0:
        output = process.stderr.strip() or process.stdout.strip()
        raise FramestormError(f"JMeter's GUI ended with status {process.returncode}: {output}")
    if {path.name for path in run_dir.iterdir()} <= {"jmeter.log", kit_load.FILE}:  # nothing was run in the window
        shutil.rmtree(run_dir)
