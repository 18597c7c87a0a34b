"""The hosts of one run over slaves: prepares, watches and stops them, and collects their results."""

import contextlib
import os
import re
import shutil
import socket
import tempfile
import time
from pathlib import Path

from framestorm import connections, probe
from framestorm.errors import FramestormError
from framestorm.guard import Guarded
from framestorm.hosts import orders, parcel, preflight, shares
from framestorm.hosts.inventory import Hosts
from framestorm.hosts.member import ANSWER_WITHIN_S, HostError, Member, together
from framestorm.hosts.messages import Do, Ready
from framestorm.machine import now_ms, wait_until
from framestorm.model.run import Host, Loss, Rmi
from framestorm.plain import note, tell, visible
from framestorm.run import jmeter, names
from framestorm.run.load import save_metrics
from framestorm.run.output import disk_trouble
from framestorm.run.preparation import Prepared, refuse
from framestorm.run.proxy import Proxies
from framestorm.run.resources import FIELDS, row
from framestorm.run.row_log import RowLog

END_WITHIN_S = 30.0
# After a slave is lost: how long JMeter may take to end by itself once all other slaves are done.
CONTROLLER_GRACE_S = 5.0
FINISHED = re.compile(r"Finished remote host: (.+?)(?::\d+)?(?:\s|$)")


class Fleet:
    """The slaves of a run, the master where it is another host, and the function's host where it is in the inventory.

    From pre-flight to collection; close it whatever happens.
    """

    def __init__(self, prepared: Prepared, hosts: Hosts) -> None:
        self.arguments: tuple[str, ...] = ()
        self.slaves: list[Member] = []
        self.master: Member | None = None
        self.function: Member | None = None
        self._prepared = prepared
        self._hosts = hosts
        self._up = contextlib.ExitStack()
        self._run_dir = prepared.run_dir
        self._resources = RowLog(self._run_dir / "resources.csv", FIELDS, "how busy the hosts are")
        self._controller: Guarded | None = None
        self._parcel: parcel.Parcel | None = None
        self._totals: dict[str, str] = {}
        self._left_out: list[str] = []
        self._stop_ordered = False
        self._others_done_s: float | None = None
        self._started_ms = now_ms()

    # Before the load

    def start(self) -> None:
        """Check every host, give each slave its share, wait until all are ready, then start JMeter's controller.

        Raises:
            FramestormError: a host cannot take part and may not be left out; no host has sent a request then.
        """
        self.connect()
        self._share_out()
        self._check_capacity()
        self._watch_function()
        folder, master = Path(tempfile.mkdtemp(dir=self._run_dir)), self.master.host.name if self.master else ""
        self._parcel = parcel.make(self._prepared, len(self.slaves), folder, master)
        for text in self._parcel.notes:
            note(text)
        for slave, share in zip(self.slaves, self._parcel.division.shares, strict=True):
            slave.share |= share
        self._totals |= self._parcel.division.totals
        deliveries = [
            (slave, orders.slave_delivery(self._prepared, self._parcel, number, slave))
            for number, slave in enumerate(self.slaves)
        ]
        together(lambda each: each[0].deliver(each[1]), deliveries)
        self._check_rmi()
        self._started_ms = now_ms()
        self._start_controller(self._parcel)

    def connect(self) -> None:
        """Check every host; raises FramestormError if one cannot take part and may not be left out."""
        self._hosts = self._up.enter_context(self._hosts.up())
        members = [Member(host, self._run_dir) for host in self._hosts.slaves]
        self.slaves = members
        if self._hosts.master is not None:
            self.master = Member(self._hosts.master, self._run_dir)
        if (function := self._hosts.function_at(self._prepared.platform.url)) is not None:
            self.function = Member(function, self._run_dir)
        faults = preflight.faults(self._members(), members, self._prepared.target)
        reasons = [reason for member in self._members() for reason in faults[member]]
        able = [member for member in members if not faults[member]]
        may_go_on = self._prepared.where.without_faulty and able and not (self.master and faults[self.master])
        if reasons and not may_go_on:
            hint = "\n(--continue-without leaves these slaves out)"
            raise FramestormError("the run cannot start:\n  " + "\n  ".join(reasons) + (hint if able else ""))
        for member in members:
            if faults[member]:
                member.close()
        self.slaves, self._left_out = able, reasons
        together(self._note_names, able)

    def _note_names(self, slave: Member) -> None:
        """Note the names with several addresses that a slave's requests go to, as the slave sees them."""
        prepared = self._prepared
        for name in names.several(prepared.plan, prepared.called, Proxies({}), slave.addresses):
            note(f"{slave.host.name}: {name.before_load}")

    def _share_out(self) -> None:
        parts = shares.split(self._prepared.plan, self._prepared.settings.values, len(self.slaves))
        self._totals = {name: self._prepared.settings.values[name] for name in parts[0]}
        for member, part in zip(self.slaves, parts, strict=True):
            member.share = part
            if part.get("users") == "0":
                # The others make the whole load.
                note(f"{member.host.name} takes no part: there are fewer users than slaves")
                member.close()
        self.slaves = [member for member in self.slaves if member.share.get("users") != "0"]

    def _check_capacity(self) -> None:
        asked = self._prepared.asked
        part = asked if self._prepared.where.whole_plan else asked.of_each(len(self.slaves))
        refuse(
            preflight.shortages(self.slaves, part), "a slave cannot hold its users", anyway=self._prepared.what.anyway
        )

    def _watch_function(self) -> None:
        """Let the function's host report its resource usage; a run does not depend on that."""
        if self.function is None:
            return
        try:
            self.function.learn([])
            self._check_name(self.function)
            self.function.ask(Do("watch"), Ready, ANSWER_WITHIN_S)
        except HostError as error:
            note(f"the CPU use of the function's host will not be recorded: {error}")
            self.function.close()
            self.function = None

    def _check_name(self, function: Member) -> None:
        """Raise HostError if the function's host has the name of another one: their CPU use could not be told apart."""
        for member in self._members():
            is_other = member.host.address != function.host.address
            if is_other and member.facts.hostname == function.facts.hostname:
                name = function.facts.hostname
                raise HostError(f"{function.host.name} and {member.host.name} have the same host name, {name}")

    def _check_rmi(self) -> None:
        """Raise FramestormError unless the controller can connect to each server, which waits by now, and back.

        Back is tried to this machine, whose firewall is the user's; the playbook opens that of a master.
        """
        controller, back = self.master.host.name if self.master else "this machine", ""

        def check(slave: Member) -> None:
            server = orders.rmi_address(slave)
            if why := self.master.why_unreached(server) if self.master else connections.why_unreached(server):
                raise FramestormError(
                    f"{controller} cannot connect to JMeter's server on {slave.host.name}, {server}: {why}; see the "
                    "firewalls between, or have a master in its network"
                )
            if back and (why := slave.why_unreached(back)):
                raise FramestormError(
                    f"{slave.host.name} cannot connect to {back}, where JMeter's controller will listen: {why}; let "
                    "slaves in (docs/security.md has the ports), or have a master in their network"
                )

        with contextlib.ExitStack() as stack:
            if self.master is None:
                address = orders.callback(self.slaves[0])
                with contextlib.suppress(OSError):  # taken: there is something to connect to
                    # Nobody accepts: each slave's connection waits.
                    listener = socket.create_server(address, backlog=len(self.slaves))
                    address = stack.enter_context(listener).getsockname()
                back = "{}:{}".format(*address)
            together(check, self.slaves)

    def _start_controller(self, contents: parcel.Parcel) -> None:
        if self.master is None:
            command = orders.controller_command(self._prepared, contents, self.slaves)
            # JMeter tells the slaves where the plan is, from the folder that it is started in.
            self._controller = Guarded(command, self._run_dir / "jmeter.out", jmeter.environment(), contents.folder)
        else:
            delivery = orders.controller_delivery(self._prepared, contents, self.master, self.slaves)
            command = delivery.begin.command or []
            self.master.deliver(delivery)
        self.arguments = tuple(command[1:])

    # Under load: called by the watch of the run

    def wait(self, timeout_s: float) -> int | None:
        """Wait up to `timeout_s` for JMeter's exit status."""
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
        """Return the reason to stop the run gently; a lost slave is none if the others should continue."""
        for member in self._members():
            if member.unwritable:
                return member.unwritable
            if member.look() is None:
                disk = f"the disk of {member.facts.described.runs} on {member.host.name} ({member.host.place})"
                if not member.lost and member.free_bytes is not None and (why := disk_trouble(disk, member.free_bytes)):
                    return why
                continue
            loss = self._loss(member)
            tell(visible(loss))
            if member is self.master or not self._prepared.where.continue_on_loss:
                return loss
        if self.function is not None and (reason := self.function.look()):
            note(f"the CPU use of {self.function.host.name} is no longer recorded: {reason}")
        self._end_if_left_to_itself()
        return self._prepared.platform.trouble()

    def stop_gently(self) -> None:
        """Tell every slave to stop: no new users start, and running users hand in their results."""
        if not self._stop_ordered:
            self._stop_ordered = True
            for member in self.slaves:
                member.order(Do("stop"))
            # Plans of the kit look at what the slaves were told.
            if "stop" not in self._prepared.plan.filled_in:
                self._tell_controller(is_now=False)
        self._end_if_left_to_itself()

    def interrupt(self) -> None:
        """Have the controller interrupt the users of all slaves: their samples still arrive."""
        self._tell_controller(is_now=True)

    def _tell_controller(self, *, is_now: bool) -> None:
        if self.master is not None:
            self.master.order(Do("interrupt" if is_now else "stop"))
        else:
            probe.stop_jmeter(self._run_dir, is_now=is_now)

    def stop(self) -> None:
        """End the controller. What it has written is kept; the slaves become idle when the run is collected."""
        if self._controller is not None:
            self._controller.stop()
        elif self.master is not None:
            master = self.master
            master.order(Do("kill"))
            wait_until(lambda: master.exit_status is not None or master.lost, CONTROLLER_GRACE_S)
            if master.exit_status is None:
                master.exit_status = 143

    def _end_if_left_to_itself(self) -> None:
        """End JMeter if all remaining slaves are done; otherwise it would wait for a lost slave forever."""
        living = {member.host.address for member in self.slaves if not member.lost}
        if len(living) == len(self.slaves) or not living <= finished_hosts(self._run_dir / "jmeter.log"):
            self._others_done_s = None
            return
        self._others_done_s = self._others_done_s or time.monotonic()
        if time.monotonic() - self._others_done_s > CONTROLLER_GRACE_S:
            self.stop()

    # After the load

    def collect(self) -> list[str]:
        """Fetch the remaining data of the hosts and compare it with what arrived; returns what is missing, by host."""
        ended_ms = now_ms()
        missing = [*self._left_out]
        for member in self.slaves:
            if member.lost:
                of_all = [f"{part} of {self._totals[name]} {name}" for name, part in member.share.items()]
                missing.append(f"{self._loss(member)}; its share ({', '.join(of_all)}) was missing from then on")
        with contextlib.suppress(HostError):  # who does not answer is lost, and is named below
            together(lambda member: member.measure_clock(), [slave for slave in self.slaves if not slave.lost])
        for member in self._members():
            member.order(Do("end"))
        for member in self._members():
            if not member.lost and not member.handed_in(END_WITHIN_S):
                missing.append(f"{member.host.name} did not deliver the rest of its files")
            for name, lines in (member.lines or {}).items():
                came = 0
                with contextlib.suppress(FileNotFoundError), (self._run_dir / name).open("rb") as file:
                    came = probe.count_lines(file)
                    os.fsync(file.fileno())  # the host deletes its own as it leaves
                if came != lines:
                    missing.append(f"{member.host.name} has {lines} lines of {name}, {came} of them arrived")
            if member.lines is not None and not member.unwritable:
                member.order(Do("leave"))
        self._write_beats()
        return missing + save_metrics(self._prepared.platform, self._run_dir, self._started_ms, ended_ms)

    def _loss(self, member: Member) -> str:
        when = time.strftime("%H:%M:%S", time.gmtime((member.lost_ms or 0) / 1000))
        return f"{member.host.name} was lost at {when} UTC: {member.lost}"

    def hosts(self) -> tuple[Host, ...]:
        """Return the machines that take part."""
        return tuple(
            Host(
                name=member.facts.hostname,
                inventory_name=member.host.name,
                address=member.host.address,
                role="target" if member is self.function else "master" if member is self.master else "slave",
                cores=member.facts.cores,
                memory_bytes=member.facts.memory_bytes,
                clock_offset_ms=round(member.clock_offset_ms, 3),
                java=member.facts.java,
                share=member.share,
            )
            for member in self._everyone()
        )

    def rmi(self) -> Rmi:
        """Return how samples come from the slaves."""
        return orders.rmi(slave.facts.described for slave in self.slaves)

    def losses(self) -> tuple[Loss, ...]:
        """Return the hosts that were lost, named as in `hosts`; a master has no share."""
        return tuple(
            Loss(member.facts.hostname, member.lost_ms or 0, member.lost, member.host.address, member.share)
            for member in self._members()
            if member.lost
        )

    def close(self) -> None:
        if self._controller is not None:
            self._controller.stop()
        together(lambda member: member.close(), self._everyone())
        if self._parcel is not None:
            shutil.rmtree(self._parcel.folder, ignore_errors=True)
        self._up.close()

    def _members(self) -> list[Member]:
        """Return the hosts that the run depends on."""
        return [*self.slaves, *([self.master] if self.master else [])]

    def _everyone(self) -> list[Member]:
        return [*self._members(), *([self.function] if self.function else [])]

    def _write_beats(self) -> None:
        rows = []
        for member in self._everyone():
            beats, member.beats = member.beats, []
            part = "target" if member is self.function else "generator"
            for beat in beats:
                where = (int(beat.time_ms), member.facts.hostname)
                rows.append(row(*where, part, beat.cpu_percent, beat.rss_bytes, beat.processes))
                rows.append(row(*where, "host", beat.host_cpu_percent, beat.host_memory_bytes, load=beat.load))
        self._resources.append(rows)


def finished_hosts(log: Path) -> set[str]:
    """Return the addresses of the slaves that are done according to the log of JMeter's controller."""
    with contextlib.suppress(FileNotFoundError), log.open(errors="replace") as lines:
        return {match[1] for line in lines if (match := FINISHED.search(line))}
    return set()
