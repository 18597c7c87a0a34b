"""Why a host cannot take part, by what it tells of itself."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from framestorm import paths, probe
from framestorm.hosts import preflight
from framestorm.hosts.inventory import InventoryHost
from framestorm.hosts.member import HostError, Member
from framestorm.hosts.messages import Description, HostFacts

DESCRIBED = Description(name="slave1", address="192.0.2.1", unit="server.service")
GOOD = HostFacts(DESCRIBED, "slave1", "17", "5.5", "", "loaded", "additions", free_bytes=2**33)


class FakeMember(SimpleNamespace):
    """A member that tells these facts, or cannot be reached."""

    __hash__ = object.__hash__

    def learn(self, kit_files: list[str]) -> None:
        if self.silent:
            raise HostError(f"{self.host.name}: no answer")
        if self.facts.kit == "":
            self.facts = replace(self.facts, kit=probe.digest(paths.ROOT, kit_files))

    def why_unreached(self, target: str) -> str | None:
        return f"no {target}" if self.is_cut_off else None


def member(
    name: str = "slave1", offset_ms: float = 0.0, silent: bool = False, is_cut_off: bool = False, **facts: Any
) -> Member:
    told = replace(GOOD, **{"hostname": name, **facts})
    fake = FakeMember(host=InventoryHost(name, (), "192.0.2.1"), facts=told, clock_offset_ms=offset_ms, silent=silent)
    fake.is_cut_off = is_cut_off
    return cast(Member, fake)


def faults(*members: Member) -> list[list[str]]:
    return list(preflight.faults(members, members, "h:8080").values())


@pytest.fixture(autouse=True)
def jmeter_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight.probe, "jmeter_version", lambda home: "5.5")
    monkeypatch.setattr(preflight.probe, "additions", lambda home: "additions")


@pytest.mark.parametrize("offset_ms", [0.0, 100.0, -100.0])
def test_a_good_host_takes_part(offset_ms: float) -> None:
    assert faults(member(offset_ms=offset_ms, free_bytes=200 * 2**20)) == [[]]


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({"jmeter": "5.4"}, "JMeter 5.4"),
        ({"additions": "other"}, "other additions to JMeter"),
        ({"additions": None}, "run ./run.sh deploy"),
        ({"kit": "other"}, "another version of the kit"),
        ({"unit": "not-found"}, "no unit server.service"),
        ({"described": replace(DESCRIBED, address="192.0.2.7")}, "with the address 192.0.2.7, and now has 192.0.2.1"),
        ({"is_cut_off": True}, "cannot connect to h:8080: no h:8080"),
        ({"busy_with": "run7 of here"}, "run7 of here"),
        ({"free_bytes": 200 * 2**20 - 1}, "199 MiB"),
        ({"offset_ms": 100.1}, "+100 ms"),
        ({"offset_ms": -250.0}, "-250 ms"),
        ({"silent": True}, "no answer"),
    ],
)
def test_each_fault_is_named_with_its_host(facts: dict[str, Any], reason: str) -> None:
    ((fault,),) = faults(member(**facts))
    assert fault.startswith("slave1") and reason in fault


def test_all_have_the_java_that_most_have() -> None:
    ok, also_ok, (fault,) = faults(member("a"), member("b"), member("c", java="21"))
    assert ok == also_ok == []
    assert "Java 21" in fault and "17" in fault


@pytest.mark.parametrize("of_others", [None, "17"])
def test_a_host_without_java_is_named(of_others: str | None) -> None:
    (first,), *others = faults(member("a", java=None), member("b", java=of_others), member("c", java=None))
    assert first == "a (192.0.2.1) has no Java; run ./run.sh deploy"
    assert [bool(each) for each in others] == [of_others is None, True]


def test_all_have_the_ssl_that_most_have() -> None:
    with_ssl = replace(DESCRIBED, rmi_ssl=True)
    (fault,), ok, _ = faults(member("a"), member("b", described=with_ssl), member("c", described=with_ssl))
    assert ok == []
    assert "without framestorm_rmi_ssl=true" in fault


def test_two_hosts_of_one_name_could_not_be_told_apart() -> None:
    first, (fault,), other = faults(member("a", hostname="debian"), member("b", hostname="debian"), member("c"))
    assert first == other == []
    assert "a and b have the same host name, debian" in fault
    # With the faulty one left out, the others can be told apart.
    (java,), second, _ = faults(member("a", hostname="debian", java="21"), member("b", hostname="debian"), member("c"))
    assert "Java" in java and second == []


def test_a_slave_is_told_apart_from_a_master_on_another_host() -> None:
    master, slave = member("master1", hostname="debian"), member("slave1", hostname="debian")
    assert list(preflight.faults([slave, master], [slave], "").values()) == [[], []], "it is one host"
    elsewhere = replace(DESCRIBED, address="192.0.2.2")
    master = member("master1", hostname="debian", described=elsewhere)
    master.host = InventoryHost("master1", (), elsewhere.address)
    (fault,), of_master = preflight.faults([slave, master], [slave], "").values()
    assert "master1 and slave1 have the same host name" in fault and of_master == []


def test_slaves_alone_have_to_reach_the_function() -> None:
    slave, master = member("slave1"), member("master1", is_cut_off=True)
    assert list(preflight.faults([slave, master], [slave], "h:8080").values()) == [[], []]
    assert list(preflight.faults([slave, master], [slave, master], "").values()) == [[], []]


def test_the_kit_s_files_are_those_of_the_client_and_jmeter_s_settings() -> None:
    files = preflight.kit_files()
    assert {"client/client.py", "jmx/user.properties"} <= set(files)
    assert all((paths.ROOT / Path(name)).is_file() for name in files)
