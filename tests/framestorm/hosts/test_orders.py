"""What slaves and master are ordered to do for a run."""

from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from framestorm import paths
from framestorm.hosts import orders
from framestorm.hosts.inventory import Host
from framestorm.hosts.member import Delivery, Member
from framestorm.hosts.messages import Description
from framestorm.model import plan
from framestorm.run import preparation
from framestorm.run.preparation import Prepared, RunOptions, prepare
from framestorm.run.properties import written

DESCRIBED = Description(
    python="/kit/python", client="/kit/client/client.py", cache="/state/cache", video="/kit/sample.mp4",
    runs="/state/runs", log="/log/server.log", folder="/kit", jmeter="/jmeter", rmi_port=8001,
)  # fmt: skip


def member(name: str, address: str, **share: str) -> Member:
    facts = SimpleNamespace(described=DESCRIBED)
    return cast(Member, SimpleNamespace(host=Host(name, (), address), facts=facts, share=share))


def properties(delivery: Delivery) -> dict[str, str]:
    content = delivery.files["run.properties"]
    assert isinstance(content, bytes)
    return dict(line.split("=", 1) for line in content.decode("ascii").splitlines())


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> object:
    monkeypatch.setattr(preparation, "check_reachable", lambda url: None)
    monkeypatch.setattr(preparation, "_cut", lambda video, encoding: Path("/here/frames"))

    def make(plan: str = "face-blur", run: str = "run7", **given: str) -> Prepared:
        options = RunOptions(
            paths.JMX / f"{plan}.jmx", {"url": "http://192.0.2.9/f", **given}, slaves="slaves", extra={"own": "1"}
        )
        return prepare(options, tmp_path / run)

    return make


def test_a_slave_gets_its_share_and_its_own_paths(make) -> None:
    order = orders.slave_delivery(make(users="5"), member("slave1", "192.0.2.1", users="3"))
    values = properties(order)
    assert (values["users"], values["own"], values["url"]) == ("3", "1", "http://192.0.2.9/f")
    assert (values["python"], values["client_dir"], values["video"]) == (
        "/kit/python", "/kit/client", "/kit/sample.mp4",
    )  # fmt: skip
    for name in ("journal", "stop", "client_log"):
        assert values[name].startswith("/state/runs/run7/")
    assert (order.open.run, order.begin.command, list(order.files)) == ("run7", None, ["run.properties"])
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
        "--cache",
        "/state/cache",
    ]


def test_a_folder_there_has_no_space_in_its_name(make) -> None:
    order = orders.slave_delivery(make(run="my 'run'\n"), member("slave1", "192.0.2.1", users="3"))
    assert order.open.run == "my__run__"
    assert properties(order)["stop"] == "/state/runs/my__run__/stop"


def test_ones_own_video_goes_along(make, tmp_path: Path) -> None:
    (tmp_path / "mine.mp4").write_bytes(b"video")
    order = orders.slave_delivery(make(video=str(tmp_path / "mine.mp4"), encoding="jpeg"), member("s", "192.0.2.1"))
    assert order.files["video.mp4"] == tmp_path / "mine.mp4"
    assert properties(order)["video"] == "/state/runs/run7/video.mp4"
    assert order.begin.cut is not None and order.begin.cut[1:4] == ["/state/runs/run7/video.mp4", "--encoding", "jpeg"]


def test_a_plan_without_a_video_cuts_none(make) -> None:
    assert orders.slave_delivery(make("requests"), member("s", "192.0.2.1")).begin.cut is None


def test_the_master_gets_plan_and_slaves(make) -> None:
    slaves = [member("slave1", "192.0.2.1"), member("slave2", "192.0.2.2")]
    order = orders.controller_delivery(make(), member("master1", "192.0.2.5"), slaves)
    assert order.files == {"jmx/face-blur.jmx": paths.JMX / "face-blur.jmx"}
    assert order.begin.command is not None
    words = " ".join(order.begin.command)
    assert "-R 192.0.2.1:8001,192.0.2.2:8001" in words
    assert "-Djava.rmi.server.hostname=192.0.2.5" in words and "-Jmode=Standard" in words
    assert "-t /state/runs/run7/jmx/face-blur.jmx" in words
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
    assert (way.mode, way.ssl, way.slave_ports, way.controller_ports) == ("Standard", ssl, of_slaves, of_controller)


VIDEO, RATE, TASKS = (plan.read(paths.JMX / f"{name}.jmx") for name in ("video-per-user", "request-rate", "tasks"))


@pytest.mark.parametrize(
    ("total", "slaves", "parts"), [(5, 2, [3, 2]), (6, 3, [2, 2, 2]), (1, 3, [1, 0, 0]), (10, 4, [3, 3, 2, 2])]
)
def test_users_are_split_whole(total: int, slaves: int, parts: list[int]) -> None:
    assert [int(share["users"]) for share in orders.split(VIDEO, {"users": str(total)}, slaves)] == parts


@pytest.mark.parametrize("total", ["10", "0.5", "7.3", "1000", "0.000001"])
@pytest.mark.parametrize("slaves", [1, 2, 3, 7])
def test_rates_add_up_exactly(total: str, slaves: int) -> None:
    values = {"rate_per_s": total, "concurrency_limit": "9"}
    parts = [Decimal(share["rate_per_s"]) for share in orders.split(RATE, values, slaves)]
    assert sum(parts) == Decimal(total)
    assert max(parts) - min(parts) <= Decimal("0.00001")


def test_what_is_no_total_is_not_split() -> None:
    assert orders.split(TASKS, {"hold_s": "30", "sleep_s": "1"}, 2) == [{}, {}]
