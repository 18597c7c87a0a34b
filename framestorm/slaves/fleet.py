"""The hosts of one run over slaves: made ready, watched, stopped and collected from."""

import csv
import sys
import time
import urllib.parse
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from framestorm import jmeter, paths
from framestorm.errors import FramestormError
from framestorm.guarded import Guarded
from framestorm.openfaas import metrics, routes
from framestorm.preparation import Prepared
from framestorm.record import now_ms
from framestorm.resources import FIELDS, host_row, part_row
from framestorm.slaves import orders, preflight, probe, rmi, shares
from framestorm.slaves.inventory import Hosts, own_addresses
from framestorm.slaves.member import HostError, Member

ANSWER_WITHIN_S = 20.0
BEGIN_WITHIN_S = 120.0
END_WITHIN_S = 30.0
# After a slave is lost: how long JMeter may take to end by itself once all others have.
CONTROLLER_GRACE_S = 5.0
T = TypeVar("T")
R = TypeVar("R")


class Fleet:
    """The slaves of a run, the master where it is another host, and the function's host where it is in the inventory.

    From pre-flight to collection; close it whatever happens.
    """

    def __init__(self, prepared: Prepared, hosts: Hosts) -> None:
        self.arguments: list[str] = []
        self.slaves: list[Member] = []
        self.master: Member | None = None
        self.function: Member | None = None
        self._prepared = prepared
        self._hosts = hosts
        self._run_dir = prepared.run_dir
        self._controller: Guarded | None = None
        self._left_out: list[str] = []
        self._stop_ordered = False
        self._others_done_s: float | None = None
        self._openfaas_url = _local_openfaas(prepared.values.get("url", ""))
        # Asked now: by the end the replica may be gone.
        self._openfaas_function = routes.past_gateway(self._openfaas_url) if self._openfaas_url else None
        self._started_ms = now_ms()

    # Before the load

    def start(self) -> None:
        """Look at every host, give each slave its share, wait until all are ready, then start JMeter's controller.

        Raises:
            FramestormError: a host cannot take part and may not be left out; none has sent anything then.
        """
        self._connect()
        self._share_out()
        self._watch_function()
        given = [(slave, orders.slave_order(self._prepared, slave)) for slave in self.slaves]
        _together(lambda each: each[0].ask("begin", "ready", BEGIN_WITHIN_S, **each[1]), given)
        self._started_ms = now_ms()
        self._start_controller()

    def _connect(self) -> None:
        members = [Member(host, self._run_dir) for host in self._hosts.slaves]
        self.slaves = members
        if self._hosts.master is not None:
            self.master = Member(self._hosts.master, self._run_dir)
        if (function := self._hosts.function_at(self._prepared.values.get("url", ""))) is not None:
            self.function = Member(function, self._run_dir)
        faults = self._faults(members)
        found = [fault for member in self._members() for fault in faults[member]]
        well = [member for member in members if not faults[member]]
        may_go_on = self._prepared.options.without_faulty and well and not (self.master and faults[self.master])
        if found and not may_go_on:
            hint = "\n(--continue-without makes the run with the slaves that can)"
            raise FramestormError("the run cannot start:\n  " + "\n  ".join(found) + (hint if well else ""))
        for member in members:
            if faults[member]:
                member.close()
        self.slaves, self._left_out = well, found

    def _faults(self, slaves: Sequence[Member]) -> dict[Member, list[str]]:
        """Why each host cannot take part; an empty list for those that can."""
        everyone = self._members()
        files = preflight.kit_files(self._prepared.plan)
        faults = dict(zip(everyone, _together(lambda member: _unlearnt(member, files), everyone), strict=True))
        reached = [member for member in everyone if not faults[member]]
        versions = [str(member.facts["java"]) for member in reached]
        java = max(versions, key=versions.count, default=None)
        digest = probe.digest(paths.ROOT, files)
        for member in reached:
            faults[member] = preflight.faults(member, java, jmeter.version(), digest)
        for name in {member.facts["hostname"] for member in reached}:
            twins = [member for member in slaves if member.facts.get("hostname") == name]
            for twin in twins[1:]:
                faults[twin].append(
                    f"{twin.host.name} calls itself {name}, as {twins[0].host.name} does: their samples could not be "
                    "told apart; give them different host names"
                )
        return faults

    def _share_out(self) -> None:
        parts = shares.split(self._prepared.values, len(self.slaves))
        for member, part in zip(self.slaves, parts, strict=True):
            member.share = part
            if part.get("users") == "0":
                self._left_out.append(f"{member.host.name} was left out: there are fewer users than slaves")
                member.close()
        self.slaves = [member for member in self.slaves if member.share.get("users") != "0"]

    def _watch_function(self) -> None:
        """Have the function's host tell how busy it is; a run does not depend on that."""
        if self.function is None:
            return
        try:
            _learn(self.function, [])
            self.function.ask("watch", "ready", ANSWER_WITHIN_S)
        except HostError as error:
            print(f"note: how busy the function's host is will not be known: {error}", file=sys.stderr, flush=True)
            self.function.close()
            self.function = None

    def _start_controller(self) -> None:
        if self.master is None:
            command = orders.controller_command(self._prepared, self.slaves)
            # The slaves look for a plan's scripts where they are as seen from here.
            self._controller = Guarded(command, self._run_dir / "jmeter.out", jmeter.environment(), paths.ROOT)
        else:
            order = orders.controller_order(self._prepared, self.master, self.slaves)
            command = order["command"]
            self.master.ask("begin", "ready", BEGIN_WITHIN_S, **order)
        self.arguments = command[1:]

    # Under load: what a run's watch asks of it

    def wait(self, timeout_s: float) -> int | None:
        """JMeter's exit status, waited for up to `timeout_s`."""
        if self._controller is not None:
            status = self._controller.wait(timeout_s)
        else:
            time.sleep(timeout_s)
            status = self.exit_status()
        self._write_beats()
        return status

    def exit_status(self) -> int | None:
        if self._controller is not None:
            return self._controller.exit_status()
        assert self.master is not None  # noqa: S101 - one of the two has the controller
        return self.master.exit_status

    def trouble(self) -> str | None:
        """Why the run is to be stopped gently; a lost slave is no reason where the others are to go on."""
        for member in self._members():
            if member.look() is None:
                continue
            said = self._loss(member)
            print(said, file=sys.stderr, flush=True)
            if member is self.master or not self._prepared.options.continue_on_loss:
                return said
        if self.function is not None and (reason := self.function.look()):
            print(f"note: how busy {self.function.host.name} is is not known any more: {reason}", file=sys.stderr)
        lost = [member for member in self.slaves if member.lost]
        if lost and self._left_to_itself():
            self.stop()
        return routes.trouble(self._openfaas_url) if self._openfaas_url else None

    def stop_gently(self) -> None:
        """Have every slave stop: nobody new starts, users under way hand in what they have."""
        if not self._stop_ordered:
            self._stop_ordered = True
            for member in self.slaves:
                member.order("stop")
        if any(member.lost for member in self.slaves) and self._left_to_itself():
            self.stop()

    def interrupt(self) -> None:
        """End the controller; its files stay as far as they are written, and the slaves go idle at the end."""
        self.stop()

    def stop(self) -> None:
        if self._controller is not None:
            self._controller.stop()
        elif self.master is not None:
            self.master.order("interrupt")
            deadline_s = time.monotonic() + CONTROLLER_GRACE_S
            while self.master.exit_status is None and self.master.lost is None and time.monotonic() < deadline_s:
                time.sleep(0.1)
            if self.master.exit_status is None:
                self.master.exit_status = 143

    def _left_to_itself(self) -> bool:
        """Whether all living slaves are done and JMeter waits for a dead one, which it would do for ever."""
        living = [member for member in self.slaves if not member.lost]
        log = self._run_dir / "jmeter.log"
        text = log.read_text(errors="replace") if log.exists() else ""
        done = all(f"Finished remote host: {member.host.address}" in text for member in living)
        if not done:
            self._others_done_s = None
            return False
        self._others_done_s = self._others_done_s or time.monotonic()
        return time.monotonic() - self._others_done_s > CONTROLLER_GRACE_S

    # After the load

    def collect(self) -> list[str]:
        """Fetch what the hosts still have and compare it with what came; what is missing, by host."""
        ended_ms = now_ms()
        missing = [*self._left_out, *self._losses()]
        for member in self._members():
            member.order("end")
        for member in self._members():
            if not member.lost and not member.handed_in(END_WITHIN_S):
                missing.append(f"{member.host.name} did not hand in the rest of its files")
            for name, lines in (member.lines or {}).items():
                path = self._run_dir / name
                came = path.read_bytes().count(b"\n") if path.exists() else 0
                if came != lines:
                    missing.append(f"{member.host.name} has {lines} lines of {name}, {came} of them came here")
        self._write_beats()
        if self._openfaas_url is not None:
            try:
                metrics.save(self._run_dir, self._started_ms, ended_ms, function=self._openfaas_function)
            except FramestormError as error:
                missing.append(str(error))
        return missing

    def _losses(self) -> list[str]:
        """Which share of the load was missing, and from when on."""
        said = []
        for member in self.slaves:
            if member.lost:
                share = ", ".join(
                    f"{part} of {self._prepared.values[name]} {name}" for name, part in member.share.items()
                )
                said.append(f"{self._loss(member)}; its share ({share}) was missing from then on")
        return said

    def _loss(self, member: Member) -> str:
        when = time.strftime("%H:%M:%S", time.gmtime((member.lost_ms or 0) / 1000))
        return f"{member.host.name} was lost at {when} UTC: {member.lost}"

    def hosts(self) -> list[dict[str, Any]]:
        """The hosts as run.json has them."""
        return [
            {
                "name": member.facts["hostname"],
                "inventory_name": member.host.name,
                "address": member.host.address,
                "role": "target" if member is self.function else "master" if member is self.master else "slave",
                "cores": member.facts["cores"],
                "memory_bytes": member.facts["memory_bytes"],
                "clock_offset_ms": round(member.clock_offset_ms, 3),
                "java": member.facts["java"],
                "share": member.share,
            }
            for member in self._everyone()
        ]

    def rmi(self) -> dict[str, Any]:
        """How samples come from the slaves, as run.json has it."""
        return rmi.described(slave.facts["described"] for slave in self.slaves)

    def losses(self) -> list[dict[str, Any]]:
        """The hosts that were lost, named as in `hosts`; a master has no share."""
        return [
            {
                "host": member.facts["hostname"],
                "address": member.host.address,
                "reason": member.lost,
                "time_ms": member.lost_ms,
                "share": member.share,
            }
            for member in self._members()
            if member.lost
        ]

    def close(self) -> None:
        if self._controller is not None:
            self._controller.stop()
        _together(lambda member: member.close(), self._everyone())

    def _members(self) -> list[Member]:
        """Those that the run depends on."""
        return [*self.slaves, *([self.master] if self.master else [])]

    def _everyone(self) -> list[Member]:
        return [*self._members(), *([self.function] if self.function else [])]

    def _write_beats(self) -> None:
        is_new = not (self._run_dir / "resources.csv").exists()
        with (self._run_dir / "resources.csv").open("a", newline="") as file:
            writer = csv.writer(file)
            if is_new:
                writer.writerow(FIELDS)
            for member in self._everyone():
                beats, member.beats = member.beats, []
                part = "target" if member is self.function else "generator"
                for beat in beats:
                    where = (int(beat["time_ms"]), member.facts["hostname"])
                    writer.writerow(part_row(*where, part, beat["cpu_percent"], beat["rss_bytes"], beat["processes"]))
                    writer.writerow(host_row(*where, beat["host_cpu_percent"], beat["host_memory_bytes"], beat["load"]))


def _learn(member: Member, files: Sequence[str]) -> None:
    member.facts = member.ask("facts", "facts", ANSWER_WITHIN_S, kit_files=files)
    member.measure_clock()


def _unlearnt(member: Member, files: Sequence[str]) -> list[str]:
    """Why nothing can be known of a host; empty when all is."""
    try:
        _learn(member, files)
    except HostError as error:
        return [str(error)]
    return []


def _local_openfaas(url: str) -> str | None:
    """The URL as seen from this machine itself if it leads to this machine's OpenFaaS, by whichever address."""
    parts = urllib.parse.urlsplit(url)
    if parts.hostname in own_addresses():
        url = parts._replace(netloc=f"127.0.0.1:{parts.port or 80}").geturl()
    return url if routes.leads_here(url) else None


def _together(do: Callable[[T], R], each: Sequence[T]) -> list[R]:
    """Do it for all at once; the first failure is raised when all are through."""
    with ThreadPoolExecutor(max(1, len(each))) as pool:
        return list(pool.map(do, each))
