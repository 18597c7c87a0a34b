"""Functions on Docker Swarm: what is asked of it, and what its tasks tell. `python -m tests.swarm` has the real one."""

import json
import socket
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import pytest

from framestorm.errors import FramestormError
from framestorm.platform import registry
from framestorm.platform.base import SettingError, Site
from framestorm.platform.docker_engine import DockerEngine
from framestorm.platform.swarm import services
from framestorm.platform.swarm.platform import SwarmSettings

SERVICE = {
    "Spec": {
        "Name": "framestorm-noop",
        "Labels": {"framestorm.function": "noop", "framestorm.route": "mesh", "framestorm.owner": "target"},
        "Mode": {"Replicated": {"Replicas": 3}},
        "TaskTemplate": {
            "ContainerSpec": {"Image": "framestorm/noop:0.1"},
            "Resources": {"Limits": {"NanoCPUs": 250_000_000, "MemoryBytes": 134_217_728}},
        },
    },
    "Version": {"Index": 59},
}


def task(
    slot: int, created: str, changed: str, state: str, exit_code: int | None = 0, error: str = ""
) -> dict[str, Any]:
    """A task as the engine tells it; its times are seconds of the minute after 16:13 UTC."""
    status: dict[str, Any] = {"Timestamp": f"2026-11-26T16:13:{changed}Z", "State": state, "Message": "started"}
    if exit_code is not None:
        status["ContainerStatus"] = {"ContainerID": "06050c9c", "PID": 0, "ExitCode": exit_code}
    status |= {"Err": error} if error else {}
    wanted = "running" if state in ("running", "preparing") else "shutdown"
    return {"CreatedAt": f"2026-11-26T16:13:{created}Z", "Slot": slot, "Status": status, "DesiredState": wanted}


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Callable[[list[dict[str, Any]]], None]:
    """An engine with one service; its tasks can be set."""

    def has(tasks: list[dict[str, Any]]) -> None:
        def run(_: DockerEngine, *words: str) -> str:
            if words[0] == "inspect":
                return json.dumps({"task": tasks, "service": [SERVICE], "node": NODES}[words[2]])
            if words[0] == "info":
                return json.dumps({"ControlAvailable": True, "NodeAddr": "198.18.0.221"})
            return "an-id\n"

        monkeypatch.setattr(DockerEngine, "run", run)
        monkeypatch.setattr("shutil.which", lambda _: "/usr/bin/docker")

    return has


NODES = [{"Status": {"Addr": f"198.18.0.22{number}"}} for number in (1, 2, 3)]


@pytest.mark.parametrize(
    ("values", "what"),
    [
        ({"function": "theirs"}, "theirs needs target.image"),
        ({"function": "noop", "route": "ingress"}, "target.route cannot be 'ingress'; allowed: mesh, dnsrr, redirect"),
        ({"function": "noop", "cpu": "fast"}, "cores, or thousandths of one"),
        ({"function": "No op"}, "target.function"),
        ({"function": "noop", "port": 70000}, "target.port is 70000, but has to be a port from 1 to 65535"),
        ({"function": "noop", "memory": "512MB"}, 'target.memory is "512MB", but has to be a number of bytes'),
    ],
)
def test_what_is_wrong_is_named(values: dict[str, object], what: str) -> None:
    with pytest.raises(SettingError, match=what):
        registry.read({"kind": "swarm", **values})


def test_what_is_asked_of_the_swarm() -> None:
    values = {"kind": "swarm", "function": "cpu", "replicas": 3, "cpu": "250m", "memory": "128Mi"}
    settings = registry.read({**values, "environment": {"WORK": "2"}})
    assert isinstance(settings, SwarmSettings)
    words = settings.service.words("study")
    assert {"--limit-cpu=0.25", "--limit-memory=134217728", "--env=WORK=2", "--replicas=3"} <= set(words)
    assert "--publish=published=8094,target=8080,mode=ingress" in words
    by_name = settings.model_copy(update={"route": "dnsrr"}).service
    assert {"--endpoint-mode=dnsrr", "--network=framestorm"} <= set(by_name.words("study"))
    # More replicas of the same are no new service.
    assert settings.model_copy(update={"replicas": 5}).service.version == settings.service.version != by_name.version


@pytest.mark.parametrize(
    ("memory", "limit"),
    [("512m", 512_000_000), ("1g", 10**9), ("512Mi", 2**29), (536_870_912, 2**29), ("1.5Gi", 3 * 2**29)],
)
def test_a_memory_limit_may_be_written_as_docker_has_it(memory: object, limit: int) -> None:
    settings = registry.read({"kind": "swarm", "function": "noop", "memory": memory})
    assert isinstance(settings, SwarmSettings)
    assert f"--limit-memory={limit}" in settings.service.words("study")


def test_nodes_may_pull_from_a_registry_that_wants_a_login(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[str, ...]] = []

    def run(_: DockerEngine, *words: str) -> str:
        if words[:2] == ("service", "create"):
            made.append(words)
        if words[0] == "inspect":
            return json.dumps([task(1, "00", "01", "running")])
        return {"info": json.dumps({"ControlAvailable": True, "NodeAddr": "198.18.0.221"}), "service": "an-id"}.get(
            words[0] if words[:2] != ("service", "ls") else "", ""
        )

    monkeypatch.setattr(DockerEngine, "run", run)
    monkeypatch.setattr("shutil.which", lambda _: "/usr/bin/docker")
    monkeypatch.setattr(services, "check_reachable", lambda url: None)
    settings = registry.read({"kind": "swarm", "function": "ocr", "image": "registry.example.com/ocr:1"})
    assert isinstance(settings, SwarmSettings)
    assert services.bring_to(settings.service, "study") == "http://198.18.0.221:8094/"
    ((*_, image),) = made
    assert "--with-registry-auth" in made[0] and image == "registry.example.com/ocr:1"


def test_a_manager_is_called_as_docker_reaches_it_where_its_own_address_is_closed(
    engine: Callable[[list[dict[str, Any]]], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine([task(1, "00", "01", "running")])
    in_swarm = DockerEngine.run

    def run(self: DockerEngine, *words: str) -> str:
        if words[0] == "context":
            return "ssh://me@swarm.example:22\n"
        return "" if words[1] == "ls" else in_swarm(self, *words)

    def reach(url: str) -> None:
        if "swarm.example" not in url:
            raise FramestormError("nothing answers")

    monkeypatch.setattr(DockerEngine, "run", run)
    monkeypatch.setattr(services, "check_reachable", reach)
    monkeypatch.setattr(services, "_addresses", lambda host: {"198.51.100.7"} if host == "swarm.example" else set())
    settings = registry.read({"kind": "swarm", "function": "noop"})
    assert isinstance(settings, SwarmSettings)
    url = services.bring_to(settings.service, "study")
    assert url == "http://swarm.example:8094/"
    assert services.leads_to(SERVICE, urlsplit(url))


@pytest.mark.parametrize(("port", "is_renewed"), [(32768, False), (32769, True)])
def test_the_redirect_leads_to_the_replicas_that_are_there(
    port: int, is_renewed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that the swarm has replaced between two runs is at another port."""
    settings = registry.read({"kind": "swarm", "function": "noop", "route": "redirect"})
    assert isinstance(settings, SwarmSettings)
    labels = {
        "framestorm.owner": "study",
        "framestorm.route": "redirect",
        "framestorm.version": settings.service.version,
    }
    of_noop = {"Name": "framestorm-noop", "Labels": {**labels, "framestorm.function": "noop"}}
    told = {"ContainerSpec": {"Args": ["-listen", ":8080", "-workers", "198.18.0.221:32768"]}}
    front = {"Name": "framestorm-noop-front", "Labels": {**labels, "framestorm.function": ""}, "TaskTemplate": told}
    replica = {**task(1, "00", "01", "running"), "NodeID": "first"}
    replica["Status"]["PortStatus"] = {"Ports": [{"PublishedPort": port}]}
    objects = {
        "service": [{"Spec": of_noop}, {"Spec": front}],
        "task": [replica],
        "node": [{"ID": "first", "Status": {"Addr": "198.18.0.221"}}],
    }
    changes: list[tuple[str, ...]] = []

    def run(_: DockerEngine, *words: str) -> str:
        if words[0] == "inspect":
            return json.dumps(objects[words[2]])
        if words[0] == "info":
            return json.dumps({"ControlAvailable": True, "NodeAddr": "198.18.0.221"})
        if words[:2] in (("service", "rm"), ("service", "create")):
            changes.append(words)
        return "an-id"

    monkeypatch.setattr(DockerEngine, "run", run)
    monkeypatch.setattr(DockerEngine, "load", lambda *_: None)
    monkeypatch.setattr("shutil.which", lambda _: "/usr/bin/docker")
    monkeypatch.setattr("framestorm.platform.images.write", lambda *_: None)
    monkeypatch.setattr(services, "check_reachable", lambda url: None)
    services.bring_to(settings.service, "study")
    if not is_renewed:
        assert not changes
        return
    (removed, created) = changes
    assert removed == ("service", "rm", "framestorm-noop-front") and created[-1] == f"198.18.0.221:{port}"


def test_replicas_over_time(engine: Callable[[list[dict[str, Any]]], None]) -> None:
    engine(
        [
            task(1, "00.5", "10.416894098", "running"),
            task(2, "00.5", "11", "running"),
            task(3, "00.5", "40.018691738", "failed", 137, "task: non-zero exit (137)"),
            task(3, "40.1", "52", "running"),
            task(3, "53", "54", "preparing", None),  # not running yet
            task(5, "00.2", "25", "shutdown"),  # ended because it was asked to
            task(4, "00.1", "05", "shutdown", None),  # of a service with other settings, over before the run
        ]
    )
    start_ms = datetime(2026, 11, 26, 16, 13, 20, tzinfo=UTC).timestamp() * 1000
    rows = list(services.readings(SERVICE, start_ms, start_ms + 39_000))
    ready = {round(row.time_ms - start_ms): row.value for row in rows if row.metric == "replicas_ready"}
    assert [ready[each] for each in (0, 5_000, 20_000, 20_019, 31_000, 32_000, 39_000)] == [4, 3, 3, 2, 2, 3, 3]
    (end,) = (row for row in rows if row.metric == "replica_ended")
    assert end == (round(start_ms + 20_019), "replica_ended", "noop", end.detail, 137)
    assert end.detail == "framestorm-noop.3: task: non-zero exit (137)"
    short = [row.value for row in rows if row.metric == "replicas_short_s"]
    assert short[-1] == pytest.approx(52 - 40.019, abs=0.01)
    assert [row.value for row in rows if row.metric == "replicas_lost"][-1] == 1
    assert {row.value for row in rows if row.metric == "replicas_wanted"} == {3}


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("http://198.18.0.223:8094/x", "swarm"),  # a node without a task passes on
        ("http://198.18.0.9:8094/", "url"),
        ("http://198.18.0.221:8095/", "url"),  # of the other route
    ],
)
def test_an_address_of_the_mesh_is_known(url: str, kind: str, engine: Callable[[list[dict[str, Any]]], None]) -> None:
    engine([])
    platform = registry.at(url, Site())
    assert platform.kind == kind
    if kind == "swarm":
        texts = platform.settings_as_text()
        assert (texts["cpu_limit"], texts["memory_limit"], texts["max_scale"]) == ("0.25", "134217728", "3")


@pytest.mark.parametrize(
    ("host", "kind"),
    [("swarm3.example", "swarm"), ("other.example", "url"), ("absent.example", "url"), ("127.0.0.1", "url")],
)
def test_a_node_is_known_by_its_name(
    host: str, kind: str, engine: Callable[[list[dict[str, Any]]], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine([])
    known = {"swarm3.example": "198.18.0.223", "other.example": "198.18.0.9", "127.0.0.1": "127.0.0.1"}

    def resolved(name: str, *_: object) -> list[Any]:
        if name not in known:
            raise socket.gaierror
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (known[name], 0))]

    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    monkeypatch.setattr(services, "own_addresses", lambda: {"127.0.0.1", "198.18.0.9"})
    assert registry.at(f"http://{host}:8094/", Site()).kind == kind


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_node_that_is_this_machine_is_known_by_its_loopback(
    host: str, engine: Callable[[list[dict[str, Any]]], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine([])
    monkeypatch.setattr(services, "own_addresses", lambda: {"127.0.0.1", "198.18.0.222"})
    assert registry.at(f"http://{host}:8094/", Site()).kind == "swarm"


def test_an_engine_without_a_swarm_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    with pytest.raises(FramestormError, match="this machine has no docker command"):
        services.manager()
    monkeypatch.setattr("shutil.which", lambda _: "/usr/bin/docker")
    monkeypatch.setattr(
        DockerEngine, "run", lambda *_: json.dumps({"LocalNodeState": "inactive", "ControlAvailable": False})
    )
    with pytest.raises(FramestormError, match=r"no manager of a swarm \(its state: inactive\); run docker swarm init"):
        services.manager()
