"""A run's hosts as a whole, by members that answer as agents would."""

import csv
import shutil
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from framestorm import paths
from framestorm.errors import FramestormError
from framestorm.hosts import fleet
from framestorm.hosts.fleet import Fleet, finished_hosts
from framestorm.hosts.inventory import Hosts, InventoryHost
from framestorm.hosts.member import Delivery, HostError
from framestorm.hosts.messages import Beat, Begin, Description, Do, HostFacts, Order, Ready
from framestorm.probe import Limits
from framestorm.run import target, video
from framestorm.run.options import What, Where
from framestorm.run.preparation import prepare

DESCRIBED = Description(client="/kit/client/client.py", runs="/runs", rmi_port=8001)


class FakeMember:
    """A member whose agent does all that it is ordered to."""

    limits = Limits()
    cut_off: frozenset[tuple[str, str]] = frozenset()  # from host:port
    addresses_there: Mapping[tuple[str, str], dict[str, str | None]] = {}  # by the host's name, and what it looks up

    def __init__(self, host: InventoryHost, run_dir: Path) -> None:
        self.host, self.run_dir = host, run_dir
        self.facts = HostFacts(DESCRIBED, host.name, limits=self.limits)
        self.share: dict[str, str] = {}
        self.clock_offset_ms = 0.12345
        self.set_by_ms = 0.0
        self.lost: str | None = None
        self.lost_ms: int | None = None
        self.unwritable: str | None = None
        self.lines: dict[str, int] | None = {}
        self.exit_status: int | None = None
        self.free_bytes: int | None = None
        self.beats: list[Beat] = []
        self.orders: list[Order] = []
        self.reasons: list[str] = []
        self.closed = False

    def learn(self, kit_files: list[str]) -> None:
        pass

    def why_unreached(self, target: str) -> str | None:
        return "no route" if (self.host.name, target) in self.cut_off else None

    def addresses(self, hosts: Iterable[str], port: int) -> dict[str, str | None]:
        (host,) = hosts
        return self.addresses_there.get((self.host.name, host), {})

    def measure_clock(self) -> None:
        self.clock_offset_ms = max(self.clock_offset_ms, self.set_by_ms, key=abs)

    def ask(self, order: Order, kind: Any, timeout_s: float) -> Ready:
        self.order(order)
        return Ready(0)

    def deliver(self, delivery: Delivery) -> None:
        self.order(delivery.begin)

    def order(self, order: Order) -> None:
        self.orders.append(order)

    def look(self) -> str | None:
        if self.lost is None and self.reasons:
            self.lost, self.lost_ms = self.reasons.pop(), 1_790_000_000_000
            return self.lost
        return None

    def handed_in(self, timeout_s: float) -> bool:
        return self.lines is not None

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Fleet]:
    """A fleet of slaves and a master that has begun."""
    monkeypatch.setattr(target, "check_reachable", lambda *_: None)
    monkeypatch.setattr(video, "cut", lambda video, properties: Path("/here/frames"))
    monkeypatch.setattr(fleet, "Member", FakeMember)
    monkeypatch.setattr(
        fleet.preflight,
        "faults",
        lambda members, slaves, target: {
            member: [faults[member.host.name]] if member.host.name in faults else [] for member in members
        },
    )
    faults: dict[str, str] = {}

    def make(
        slaves: int = 2,
        users: str = "4",
        bad: tuple[str, ...] = (),
        master: InventoryHost | None = InventoryHost("master1", (), "192.0.2.8"),  # noqa: B008 - it is frozen
        **options: Any,
    ) -> Fleet:
        faults.update({name: f"{name} is bad" for name in bad})
        run_dir = tmp_path / "run7"
        given = {"url": "http://192.0.2.9/f", "users": users}
        prepared = prepare(What(paths.JMX / "face-blur.jmx", given), run_dir, Where("slaves", **options))
        run_dir.mkdir()
        hosts = [InventoryHost(f"slave{number}", (), f"192.0.2.{number}") for number in range(1, slaves + 1)]
        made = Fleet(prepared, Hosts(hosts, master, [InventoryHost("function1", (), "192.0.2.9")]))
        made.start()
        return made

    return make


def members(made: Fleet) -> list[Any]:
    return [*made.slaves]


@pytest.mark.parametrize(("users", "fits"), [("6", True), ("8", False)])
def test_slaves_that_cannot_hold_their_part_are_named_before_the_load(
    users: str, fits: bool, make: Callable[..., Fleet], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FakeMember, "limits", Limits(tasks=80))
    if fits:
        assert make(users=users).slaves
        return
    with pytest.raises(FramestormError, match=r"slave1 .*4 users need 84, but only 80 .*\n.*slave2 "):
        make(users=users)


def test_each_slave_begins_with_its_share(make: Callable[..., Fleet], tmp_path: Path) -> None:
    made = make(users="5")
    assert [slave.share["users"] for slave in made.slaves] == ["3", "2"]
    assert all(isinstance(slave.orders[0], Begin) for slave in members(made))
    roles = {host.inventory_name: host.role for host in made.hosts()}
    assert roles == {"slave1": "slave", "slave2": "slave", "master1": "master", "function1": "target"}
    assert {host.clock_offset_ms for host in made.hosts()} == {0.123}
    assert "-R" in made.arguments
    assert made.rmi().slave_ports == "8001"
    (folder,) = (path for path in tmp_path.glob("run7/*") if path.is_dir())
    made.close()
    assert not folder.exists(), "the controller's copy of the plan"


def test_slaves_without_a_user_take_no_part_in_a_load_that_is_whole(
    make: Callable[..., Fleet], capsys: pytest.CaptureFixture[str]
) -> None:
    made = make(slaves=3, users="2")
    assert [slave.host.name for slave in made.slaves] == ["slave1", "slave2"]
    assert "note: slave3 takes no part: there are fewer users than slaves" in capsys.readouterr().err
    assert made.collect() == []


def test_a_fault_stops_the_run_unless_the_others_may_go_on(make: Callable[..., Fleet], tmp_path: Path) -> None:
    with pytest.raises(FramestormError, match=r"slave2 is bad\n\(--continue-without leaves"):
        make(bad=("slave2",))
    shutil.rmtree(tmp_path / "run7")
    made = make(bad=("slave2",), without_faulty=True)
    assert [(slave.host.name, slave.closed) for slave in members(made)] == [("slave1", False)]
    assert made.collect() == ["slave2 is bad"]
    for bad in (("master1",), ("slave1", "slave2")):
        shutil.rmtree(tmp_path / "run7")
        with pytest.raises(FramestormError, match="is bad") as told:
            make(bad=bad, without_faulty=True)
        assert ("--continue-without" in str(told.value)) == (bad == ("master1",))


def test_a_server_that_the_controller_does_not_reach_is_named(
    make: Callable[..., Fleet], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FakeMember, "cut_off", {("master1", "192.0.2.2:8001"), ("slave1", "192.0.2.2:8001")})
    with pytest.raises(FramestormError, match=r"^master1 cannot connect .* slave2, 192\.0\.2\.2:8001: no route"):
        make()


def test_a_slave_that_does_not_reach_the_controller_is_named(
    make: Callable[..., Fleet], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleet.orders, "_own_address", lambda towards: "127.0.0.1")
    monkeypatch.setattr(fleet.connections, "why_unreached", lambda target: None)
    monkeypatch.setattr(FakeMember, "cut_off", {("slave2", "127.0.0.1:8002")})
    with pytest.raises(FramestormError, match=r"^slave2 cannot connect to 127\.0\.0\.1:8002, .*: no route"):
        make(master=None)


def test_the_addresses_of_a_name_are_those_that_each_slave_sees(
    make: Callable[..., Fleet], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    some: dict[str, str | None] = {"192.0.2.9": None, "192.0.2.19": "Connection refused"}
    monkeypatch.setattr(FakeMember, "addresses_there", {("slave2", "192.0.2.9"): some})
    make()
    told = [line for line in capsys.readouterr().err.splitlines() if "addresses" in line]
    assert len(told) == 1 and told[0].startswith("note: slave2: 1 of 2 addresses of 192.0.2.9:80 takes no connection")


@pytest.mark.parametrize("goes_on", [False, True])
def test_a_lost_slave_is_told_with_its_share(goes_on: bool, make: Callable[..., Fleet]) -> None:
    made = make(users="5", continue_on_loss=goes_on)
    members(made)[1].reasons = ["the connection ended"]
    trouble = made.trouble()
    assert (trouble is None) == goes_on
    (missing,) = made.collect()
    assert "slave2 was lost at 14:13:20 UTC: the connection ended" in missing
    assert "(2 of 5 users)" in missing
    (loss,) = made.losses()
    assert (loss.host, loss.reason, loss.time_ms, loss.share) == (
        "slave2", "the connection ended", 1_790_000_000_000, {"users": "2"},
    )  # fmt: skip


def test_a_lost_master_always_ends_the_run(make: Callable[..., Fleet]) -> None:
    made = make(continue_on_loss=True)
    made.master.reasons = ["no sign of life"]  # type: ignore[union-attr]
    assert "master1 was lost" in (made.trouble() or "")


def test_what_cannot_be_kept_here_is_no_loss(make: Callable[..., Fleet]) -> None:
    made = make()
    made.slaves[0].unwritable = "journal.jsonl cannot be written: No space left on device"
    assert "No space left" in (made.trouble() or "")
    assert made.losses() == ()


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_host_whose_disk_is_nearly_full_stops_the_run_while_its_end_can_be_written(
    number: int, make: Callable[..., Fleet]
) -> None:
    """A master's too, which has the samples: of what JMeter cannot write there, nothing else would tell."""
    made = make(continue_on_loss=True)
    hosts = made._members()
    for each in hosts:
        each.free_bytes = 32 << 20
    assert made.trouble() is None
    hosts[number].free_bytes = (32 << 20) - 1
    place = f"{hosts[number].host.name} ({hosts[number].host.place})"
    assert made.trouble() == f"the disk of /runs on {place} has less than 32 MiB left; make room"
    assert made.losses() == ()


def test_jmeter_waiting_for_a_dead_slave_is_ended(
    make: Callable[..., Fleet], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleet, "CONTROLLER_GRACE_S", 0.0)
    made = make(slaves=3, continue_on_loss=True)
    members(made)[2].reasons = ["the connection ended"]
    log = tmp_path / "run7" / "jmeter.log"
    log.write_text("Finished remote host: 192.0.2.1:8001 (1)\n")
    assert made.trouble() is None and made.exit_status() is None
    log.write_text("Finished remote host: 192.0.2.1:8001 (1)\nFinished remote host: 192.0.2.2:8001 (2)\n")
    with monkeypatch.context() as patient:
        patient.setattr(fleet, "CONTROLLER_GRACE_S", 100.0)
        assert [made.trouble(), made.trouble(), made.exit_status()] == [None] * 3
    made.trouble()
    assert made.exit_status() == 143


def test_jmeter_is_not_ended_while_every_slave_lives(
    make: Callable[..., Fleet], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleet, "CONTROLLER_GRACE_S", 0.0)
    made = make()
    (tmp_path / "run7" / "jmeter.log").write_text(
        "".join(f"Finished remote host: 192.0.2.{n}:8001 (1)\n" for n in (1, 2))
    )
    assert [made.trouble(), made.trouble(), made.exit_status()] == [None] * 3


def test_lines_that_did_not_come_are_counted(make: Callable[..., Fleet], tmp_path: Path) -> None:
    made = make()
    (tmp_path / "run7" / "journal-slave1.jsonl").write_text("a\nb\n")
    made.slaves[0].lines = {"journal-slave1.jsonl": 2}
    made.slaves[1].lines = {"journal-slave2.jsonl": 3}
    made.master.lines = None  # type: ignore[union-attr]
    assert made.collect() == [
        "slave2 has 3 lines of journal-slave2.jsonl, 0 of them arrived",
        "master1 did not deliver the rest of its files",
    ]
    assert [Do("leave") in slave.orders for slave in (*members(made), made.master)] == [True, True, False]


def test_a_clock_that_was_set_during_the_load_is_told(make: Callable[..., Fleet]) -> None:
    made = make()
    members(made)[1].set_by_ms = -5000.0
    made.collect()
    assert {host.inventory_name: host.clock_offset_ms for host in made.hosts()} == {
        "slave1": 0.123, "slave2": -5000.0, "master1": 0.123, "function1": 0.123,
    }  # fmt: skip


def test_a_run_goes_on_where_beats_cannot_be_written(
    make: Callable[..., Fleet], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As on a full disk; here a folder is in the way."""
    made = make()
    (tmp_path / "run7" / "resources.csv").mkdir()
    made.wait(0)
    assert "how busy the hosts are will not be known" in capsys.readouterr().err


def test_beats_are_rows_of_resources(make: Callable[..., Fleet], tmp_path: Path) -> None:
    made = make()
    made.slaves[0].beats.append(Beat(5000.0, 150.0, 1000, 7, 80.0, 2000, 0.5))
    made.function.beats.append(Beat(5001.0, 50.0, 3000, 1, 60.0, 4000, 0.25))  # type: ignore[union-attr]
    made.wait(0)
    made.slaves[1].beats.append(Beat(6000.0, 10.0, 1000, 2, 30.0, 2000, 1.5))
    made.wait(0)
    with (tmp_path / "run7" / "resources.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    assert header == ["time_ms", "host", "part", "cpu_percent", "rss_bytes", "processes", "load"]
    assert [",".join(row) for row in rows] == [
        "5000,slave1,generator,150.0,1000,7,",
        "5000,slave1,host,80.0,2000,,0.50",
        "5001,function1,target,50.0,3000,1,",
        "5001,function1,host,60.0,4000,,0.25",
        "6000,slave2,generator,10.0,1000,2,",
        "6000,slave2,host,30.0,2000,,1.50",
    ]


def test_a_function_that_is_not_watched_stops_no_run(
    make: Callable[..., Fleet], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = make()
    assert made.function is not None and Do("watch") in made.function.orders  # type: ignore[attr-defined]
    made.function.reasons = ["gone"]  # type: ignore[attr-defined]
    assert made.trouble() is None
    assert "note: the CPU use of function1 is no longer recorded: gone" in capsys.readouterr().err
    made.close()
    shutil.rmtree(made._run_dir)

    def learn(member: FakeMember, kit_files: list[str]) -> None:
        raise HostError("no answer")

    monkeypatch.setattr(FakeMember, "learn", learn)
    made = make()
    assert made.function is None
    assert "note: the CPU use of the function's host will not be recorded: no answer" in capsys.readouterr().err
    assert [host.inventory_name for host in made.hosts()] == ["slave1", "slave2", "master1"]


def test_an_end_is_told_to_the_master(make: Callable[..., Fleet], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet, "CONTROLLER_GRACE_S", 0.0)
    made = make()
    made.interrupt()
    made.stop_gently()
    made.stop()
    assert made.exit_status() == 143
    assert made.master.orders[1:] == [Do("interrupt"), Do("kill")]  # type: ignore[union-attr]
    made.master.exit_status = 3  # type: ignore[union-attr]
    made.stop()
    assert made.exit_status() == 3


def test_all_are_told_to_stop_once_and_closed_at_the_end(make: Callable[..., Fleet]) -> None:
    made = make()
    made.stop_gently()
    made.stop_gently()
    assert members(made)[0].orders.count(Do("stop")) == 1
    made.close()
    assert all(slave.closed for slave in members(made))


@pytest.mark.parametrize(
    ("lines", "finished"),
    [
        (["Finished remote host: 10.0.0.11:8001 (1790000000000)"], {"10.0.0.11"}),
        (["Finished remote host: slave-1 (1790000000000)", "Finished remote host: 10.0.0.1"], {"slave-1", "10.0.0.1"}),
        (["Starting the test on host 10.0.0.1:8001 @ 2026"], set()),
    ],
)
def test_a_host_has_finished_by_its_whole_address(lines: list[str], finished: set[str], tmp_path: Path) -> None:
    log = tmp_path / "jmeter.log"
    assert finished_hosts(log) == set()
    log.write_text("".join(f"2026-11-22 10:00:00,000 INFO o.a.j.JMeter: {line}\n" for line in lines))
    assert finished_hosts(log) == finished
