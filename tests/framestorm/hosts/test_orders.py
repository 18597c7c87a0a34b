"""What slaves and master are ordered to do for a run."""

import tempfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from framestorm import paths
from framestorm.hosts import orders, parcel, shares
from framestorm.hosts.inventory import InventoryHost
from framestorm.hosts.member import Delivery, Member
from framestorm.hosts.messages import Description
from framestorm.run import target, video
from framestorm.run.options import What, Where
from framestorm.run.preparation import Prepared, prepare
from framestorm.run.properties import written

DESCRIBED = Description(
    python="/kit/python", client="/kit/client/client.py", cache="/state/cache", video="/kit/sample.mp4",
    runs="/state/runs", log="/log/server.log", folder="/kit", jmeter="/jmeter", rmi_port=8001,
)  # fmt: skip


def member(name: str, address: str, **share: str) -> Member:
    facts = SimpleNamespace(described=DESCRIBED)
    return cast(Member, SimpleNamespace(host=InventoryHost(name, (), address), facts=facts, share=share))


def delivery(prepared: Prepared, slave: Member) -> Delivery:
    with tempfile.TemporaryDirectory() as folder:
        return orders.slave_delivery(prepared, parcel.make(prepared, 1, Path(folder)), 0, slave)


def properties(delivery: Delivery) -> dict[str, str]:
    content = delivery.files["run.properties"]
    assert isinstance(content, bytes)
    return dict(line.split("=", 1) for line in content.decode("ascii").splitlines())


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> object:
    monkeypatch.setattr(target, "check_reachable", lambda *_: None)
    monkeypatch.setattr(video, "cut", lambda video, properties: Path("/here/frames"))

    def make(plan: str = "face-blur", run: str = "run7", **given: str) -> Prepared:
        what = What(paths.JMX / f"{plan}.jmx", {"url": "http://192.0.2.9/f", **given}, {"own": "1"})
        return prepare(what, tmp_path / run, Where("slaves"))

    return make


@pytest.mark.parametrize(
    ("plan", "given", "shares_of", "written"),
    [
        (
            "request-rate",
            {"load": "10/s for 2 s", "concurrency_limit": "9"},
            [{"concurrency_limit": "5"}, {"concurrency_limit": "4"}],
            "arrivals 0.0:10.0 2.0:10.0",
        ),
        (
            "request-rate",
            {"rate_per_s": "10", "hold_s": "2", "arrivals": "poisson", "concurrency_limit": "9"},
            [{"concurrency_limit": "5"}, {"concurrency_limit": "4"}],
            "arrivals 0.0:0.0 0.0:10.0 0.0:10.0 2.0:10.0 seed=1",
        ),
        ("requests", {"load": "5 users for 2 s"}, [{"users": "3"}, {"users": "2"}], "users 0.0:5.0 2.0:5.0"),
    ],
)
def test_slaves_take_the_arrivals_and_users_of_a_load_in_turn(
    make, plan: str, given: dict[str, str], shares_of: list[dict[str, str]], written: str
) -> None:
    prepared = make(plan, **given)
    assert shares.split(prepared.plan, prepared.settings.values, 2) == shares_of
    with tempfile.TemporaryDirectory() as folder:
        of_two = parcel.make(prepared, 2, Path(folder))
        deliveries = [orders.slave_delivery(prepared, of_two, n, member(f"s{n}", "192.0.2.1")) for n in range(2)]
    assert {each.files["load.txt"] for each in deliveries} == {written.encode()}
    loads = [properties(each)["framestorm.load"].replace("\\", "") for each in deliveries]
    assert [load.rpartition("/load.txt ")[2] for load in loads] == ["0/2", "1/2"]


def test_a_slave_gets_its_share_and_its_own_paths(make) -> None:
    order = delivery(make(users="5"), member("slave1", "192.0.2.1", users="3"))
    values = properties(order)
    assert (values["users"], values["own"], values["url"]) == ("3", "1", "http://192.0.2.9/f")
    assert (values["python"], values["client_dir"], values["video"]) == (
        "/kit/python", "/kit/client", "/kit/sample.mp4",
    )  # fmt: skip
    for name in ("journal", "stop", "client_log"):
        assert values[name].startswith("/state/runs/run7/")
    assert (order.open.run, order.begin.command) == ("run7", None)
    assert [*order.files] == ["run.properties"] and values["framestorm.plan"] == "/state/runs/run7/plan"
    assert order.begin.follow == {
        "journal-slave1.jsonl": "journal.jsonl",
        "client-slave1.log": "client.log",
        "jmeter-server-slave1.log": "/log/server.log",
    }
    assert order.begin.cut == [
        "--video",
        "/kit/sample.mp4",
        "--encoding",
        values["encoding"],
        "--frames",
        "0",
        "--cache",
        "/state/cache",
    ]


def test_what_jmeter_does_not_have_is_the_plans_and_reaches_the_slaves(make) -> None:
    """Such as one that is read only by a script, or by a part of the plan that it includes."""
    given = {"of.script": "1", "users": "5", "client.tries": "3"}
    values = properties(delivery(make(**given), member("slave1", "192.0.2.1", users="3")))
    assert {name: values.get(name) for name in given} == {"of.script": "1", "users": "3", "client.tries": None}


def test_a_folder_there_has_no_space_in_its_name(make) -> None:
    order = delivery(make(run="my 'run'\n"), member("slave1", "192.0.2.1", users="3"))
    assert order.open.run == "my__run__"
    assert properties(order)["stop"] == "/state/runs/my__run__/stop"


def test_ones_own_video_goes_along(make, tmp_path: Path) -> None:
    (tmp_path / "mine.mp4").write_bytes(b"video")
    order = delivery(make(video=str(tmp_path / "mine.mp4"), encoding="jpeg", frames="3"), member("s", "192.0.2.1"))
    assert order.files["video.mp4"] == tmp_path / "mine.mp4"
    assert properties(order)["video"] == "/state/runs/run7/video.mp4"
    assert order.begin.cut is not None and order.begin.cut[1:6] == [
        "/state/runs/run7/video.mp4",
        "--encoding",
        "jpeg",
        "--frames",
        "3",
    ]


def test_a_plan_without_a_video_cuts_none(make) -> None:
    assert delivery(make("requests"), member("s", "192.0.2.1")).begin.cut is None


def test_the_master_gets_plan_and_slaves(make, tmp_path: Path) -> None:
    slaves = [member("slave1", "192.0.2.1"), member("slave2", "192.0.2.2")]
    prepared = make()
    (tmp_path / "of java").write_text("")
    given = ("-Done=1", f"-S{tmp_path}/of java", "-Ltwo")
    what = replace(prepared.what, jmeter_options=given, property_files=(Path("/mine"),))
    prepared = replace(prepared, what=what)
    contents = parcel.make(prepared, 2, tmp_path / "parcel", "master1")
    order = orders.controller_delivery(prepared, contents, member("master1", "192.0.2.5"), slaves)
    plan = {"plan/face-blur.jmx": tmp_path / "parcel" / "plan" / "face-blur.jmx"}
    assert order.files == {**plan, "settings-1": tmp_path / "of java", "settings-3": Path("/mine")}
    assert order.begin.command is not None
    words = " ".join(order.begin.command)
    assert "-R 192.0.2.1:8001,192.0.2.2:8001" in words
    assert "-Done=1 -S/state/runs/run7/settings-1 -Ltwo -q/state/runs/run7/settings-3" in words
    assert "-Djava.rmi.server.hostname=192.0.2.5" in words and "-Jmode=framestorm.GroupSender" in words
    assert "-Dframestorm.slaves=192.0.2.1,192.0.2.2 " in words
    assert "-t /state/runs/run7/plan/face-blur.jmx" in words
    assert set(order.begin.follow) == {"samples.jtl", "tree.xml", "jmeter.log", "jmeter.out"}


@pytest.mark.parametrize(
    ("value", "text"), [("plain", "plain"), (" led", "\\ led"), ("a\\b", "a\\\\b"), ('"é"\n', '"\\u00e9"\\n')]
)
def test_properties_are_as_java_reads_them(value: str, text: str) -> None:
    assert written({"name": value}) == f"name={text}\n".encode()


@pytest.mark.parametrize(
    ("ports", "ssl", "of_slaves", "of_controller"),
    [((8001, 8001), False, "8001", "8002 and 8003"), ((8001, 9001), True, "8001 and 8002, 9001 and 9002", "any")],
)
def test_ports_and_mode(ports: tuple[int, ...], ssl: bool, of_slaves: str, of_controller: str) -> None:
    way = orders.rmi(Description(rmi_port=port, rmi_ssl=ssl) for port in ports)
    assert (way.mode, way.ssl, way.slave_ports, way.controller_ports) == ("GroupSender", ssl, of_slaves, of_controller)
