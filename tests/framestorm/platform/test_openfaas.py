"""OpenFaaS where nothing of it runs: what is refused, what is left behind, what a point makes of a function."""

import os
import stat
import subprocess
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from ruamel.yaml import YAML

from framestorm import paths
from framestorm.errors import FramestormError, UsageError
from framestorm.model import files
from framestorm.platform import cli, registry
from framestorm.platform.base import Site
from framestorm.platform.openfaas import balancers, config, gateway, services, stack
from framestorm.platform.openfaas.balancers import Balanced
from framestorm.platform.openfaas.platform import OpenFaas, OpenFaasSettings, stack_functions
from framestorm.platform.openfaas.services import StartedServices
from lab import lifecycle


@pytest.fixture(autouse=True)
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout in which it was never started."""
    monkeypatch.setattr(config, "CREDENTIALS", tmp_path)
    monkeypatch.setattr(config, "PASSWORD_FILE", tmp_path / "basic-auth-password")
    monkeypatch.setattr(services.read, "__defaults__", (tmp_path / "state.json",))
    monkeypatch.setattr(stack, "HOME", tmp_path)
    monkeypatch.setattr(balancers, "STATE", tmp_path / "balancers.json")
    monkeypatch.setattr(balancers, "FOLDER", tmp_path / "balancers")
    return tmp_path


@pytest.mark.parametrize(
    "words", [["deploy"], ["scale", "noop", "2"], ["balance", "nginx", "noop"], ["restart", "nats"]]
)
def test_verbs_before_the_start_say_how_to_start(words: list[str]) -> None:
    with pytest.raises(FramestormError, match=r"\./run\.sh target openfaas"):
        cli.main(words)


def test_an_image_alone_does_not_deploy_the_whole_stack() -> None:
    with pytest.raises(UsageError, match="not --image"):
        cli.main(["deploy", "--image=you/ocr:1", "--name", "ocr"])


@pytest.mark.parametrize("words", [["--regex", "noop.*"], ["--regex=noop"], ["-n", "shop"], ["--namespace=shop"]])
def test_functions_of_the_cluster_are_chosen_by_a_filter(words: list[str]) -> None:
    """Images are made for these, and they are waited for."""
    with pytest.raises(UsageError, match="choose functions by --filter"):
        cli.main(["deploy", "--on", "kind", *words])


def test_deploy_names_functions_that_are_not_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    counts = {"ocr": (1, 0), "noop": (1, 1), "idle": (0, 0)}
    # The provider leaves out a number that is 0.
    functions = [
        {"name": name} | {what: n for what, n in zip(("replicas", "availableReplicas"), of, strict=True) if n}
        for name, of in counts.items()
    ]
    deployed: list[Path] = []
    monkeypatch.setattr(gateway, "deploy", lambda file, _: deployed.append(file))
    monkeypatch.setattr(gateway, "call", lambda *_: functions)
    (tmp_path / "ocr.yml").touch()
    assert cli.main(["deploy", "--yaml", str(tmp_path / "ocr.yml")]) == 0
    assert deployed == [tmp_path / "ocr.yml"]
    assert "no replica of ocr is ready" in capsys.readouterr().err


@pytest.mark.parametrize("before", [None, ""])
def test_a_password_is_made_whole_and_for_its_owner_alone(before: str | None) -> None:
    if before is not None:
        config.PASSWORD_FILE.write_text(before)  # left by a full disk
    config._make_password()
    password = config.password()
    assert len(password) >= 24
    assert stat.S_IMODE(config.PASSWORD_FILE.stat().st_mode) == 0o600
    config._make_password()
    assert config.password() == password


def test_nothing_is_ended_for_another_checkouts_sake(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[Any] = []

    def refuse(programs: Any) -> None:
        raise FramestormError("port 8083 is taken")

    monkeypatch.setattr(stack.setup, "ensure", lambda pieces: None)
    monkeypatch.setattr(stack, "_clear_cgroups", lambda: ended.append("cgroups"))
    monkeypatch.setattr(services, "check_ports_free", refuse)
    with pytest.raises(FramestormError, match="8083"):
        stack.up("process")
    assert ended == []


@pytest.mark.parametrize("folder", ["with blanks", "a'b", "100%", "new\nline"])
def test_where_its_programs_would_split_the_path_nothing_starts(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stack.setup, "ensure", pytest.fail)
    monkeypatch.setattr(lifecycle, "_exclusive", pytest.fail)
    monkeypatch.setattr(paths, "ROOT", Path("/home/me") / folder)
    with pytest.raises(UsageError, match="the local OpenFaaS cannot start"):
        stack.up("process")
    with pytest.raises(UsageError, match="the lab cannot start"):
        lifecycle.up(1)


def test_a_set_clock_ends_no_part(monkeypatch: pytest.MonkeyPatch) -> None:
    own = services.of(os.getpid())
    monkeypatch.setattr(psutil.Process, "create_time", lambda process: 5.0)
    assert own.process() is not None
    assert services.Service(own.pid, own.started_s - 0.01).process() is None


def has_started(path: Path, **is_running: bool) -> None:
    """Leave the state of services that run, or that a restart of the machine ended."""
    own = services.of(os.getpid())
    ended = services.Service(own.pid, own.started_s - 0.01)
    started = {name: own if runs else ended for name, runs in is_running.items()}
    files.write(path, StartedServices("process", started))


@pytest.mark.parametrize("port", [8080, 8083, 8092])
def test_after_a_restart_of_the_machine_its_addresses_are_those_of_others(port: int, empty: Path) -> None:
    has_started(empty / "state.json", gateway=False, provider=False)
    has_started(empty / "balancers.json", nginx=False)
    assert registry.at(f"http://127.0.0.1:{port}/", Site()).kind == "url"


def test_a_part_that_ends_during_a_run_is_told(empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    has_started(empty / "state.json", gateway=True, provider=True)
    has_started(empty / "balancers.json", nginx=True)
    balanced = Balanced("noop", "round-robin", ("127.0.0.1:9000",))
    (empty / "balancers" / "nginx").mkdir(parents=True)
    files.write(empty / "balancers" / "nginx" / "workers.json", balanced)
    monkeypatch.setattr(gateway, "replicas", list)
    by_gateway, by_balancer = (registry.at(f"http://127.0.0.1:{port}/", Site()) for port in (8080, 8092))
    assert (by_gateway.kind, by_balancer.kind) == ("openfaas", "openfaas")
    assert (by_gateway.trouble(), by_balancer.trouble()) == (None, None)
    has_started(empty / "state.json", gateway=False, provider=True)
    has_started(empty / "balancers.json", nginx=False)
    assert "gateway of the local OpenFaaS ended during the run" in (by_gateway.trouble() or "")
    assert "the balancer nginx ended during the run" in (by_balancer.trouble() or "")


def test_functions_elsewhere_are_taken_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    platform = OpenFaas(Site(gateway="http://192.0.2.1:8080/"))
    settings = OpenFaasSettings(function="noop", route="queue")
    assert platform.prepare(settings) == "http://192.0.2.1:8080/async-function/noop"
    assert platform.settings_as_text() == {"function": "noop"}
    assert (platform.pieces(), platform.trouble(), platform.metrics(0, 1), platform.close()) == ((), None, None, None)


def test_ending_a_process_does_not_wait_for_its_parent_to_notice() -> None:
    """The first process of a container may leave zombies for seconds."""
    command = "sleep 60 >/dev/null & echo $!; exec sleep 60 >/dev/null"
    with subprocess.Popen(["sh", "-c", command], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = services.of(int(parent.stdout.readline()))
        started_s = time.monotonic()
        services.end([child])
        assert time.monotonic() - started_s < services.GRACE_S / 2
        assert child.process() is None
        assert parent.poll() is None
        services.end([services.of(parent.pid)])


def target(**values: object) -> OpenFaasSettings:
    return OpenFaasSettings.read({"function": "noop", **values})


@pytest.mark.parametrize(
    ("values", "usual", "refused"),
    [
        ({}, {}, None),
        ({"route": "queue"}, {}, None),
        ({"route": "direct"}, {}, "route direct"),
        ({"replicas": 3}, {}, "replicas 3"),
        # The same in all points: taken as it is there.
        ({"replicas": 3, "cpu": "250m"}, {"replicas": 3, "cpu": "250m"}, None),
        ({"replicas": 5, "cpu": "250m"}, {"replicas": 3, "cpu": "250m"}, "replicas 5"),
        ({"replicas": 1}, {"replicas": "=users"}, None),
        ({"replicas": 2}, {"replicas": "=users"}, "replicas 2"),
        ({"autoscale": True}, {}, "autoscale True"),
        ({"concurrency_limit": 8}, {"concurrency_limit": 0}, "concurrency_limit 8"),
        ({"environment": {"a": "1"}}, {}, "environment {'a': '1'}"),
    ],
)
def test_of_a_gateway_elsewhere(values: dict[str, object], usual: dict[str, object], refused: str | None) -> None:
    assert target(**values).refused_by_gateway_elsewhere(usual) == refused


def test_a_stack_file_has_just_the_function_as_the_point_wants_it() -> None:
    values = {"replicas": 2, "autoscale": True, "concurrency_limit": 8, "cpu": "250m"}
    wanted = target(function="noop-fork", environment={"read_timeout": "9s"}, **values)
    ((name, entry),) = YAML(typ="safe").load(wanted.stack_file())["functions"].items()
    before = stack_functions()["noop-fork"]
    assert (name, entry["image"]) == ("noop-fork", before["image"])
    assert entry["environment"] == {**before["environment"], "read_timeout": "9s", "max_inflight": "8"}
    assert entry["limits"] == {"cpu": "250m"}
    assert entry["labels"] == {"com.openfaas.scale.min": "2", "com.openfaas.scale.max": "5"}
    fixed = YAML(typ="safe").load(target(replicas=3).stack_file())["functions"]["noop"]
    assert fixed["labels"] == {"com.openfaas.scale.min": "3", "com.openfaas.scale.max": "3"}
    assert "limits" not in fixed
