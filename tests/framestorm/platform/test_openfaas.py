"""The local OpenFaaS where nothing of it runs: what is refused, and what is left behind."""

import stat
from pathlib import Path
from typing import Any

import pytest

from framestorm.errors import FramestormError
from framestorm.platform.base import Site
from framestorm.platform.openfaas import cli, config, services, stack, state
from framestorm.platform.openfaas.platform import OpenFaas
from framestorm.platform.openfaas.target import OpenFaasSettings


@pytest.fixture(autouse=True)
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout in which it was never started."""
    monkeypatch.setattr(config, "CREDENTIALS", tmp_path)
    monkeypatch.setattr(config, "PASSWORD_FILE", tmp_path / "basic-auth-password")
    monkeypatch.setattr(state.read, "__defaults__", (tmp_path / "state.json",))
    monkeypatch.setattr(stack, "HOME", tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "words", [["deploy"], ["scale", "noop", "2"], ["balance", "nginx", "noop"], ["restart", "nats"]]
)
def test_verbs_before_the_start_say_how_to_start(words: list[str]) -> None:
    with pytest.raises(FramestormError, match=r"\./run\.sh target openfaas"):
        cli.main(words)


@pytest.mark.parametrize("before", [None, ""])
def test_a_password_is_made_whole_and_for_its_owner_alone(before: str | None) -> None:
    if before is not None:
        config.PASSWORD_FILE.write_text(before)  # left by a full disk
    config._credentials()
    password = config.password()
    assert len(password) >= 24
    assert stat.S_IMODE(config.PASSWORD_FILE.stat().st_mode) == 0o600
    config._credentials()
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


def test_functions_elsewhere_are_taken_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    platform = OpenFaas(Site(gateway="http://192.0.2.1:8080/"))
    settings = OpenFaasSettings(function="noop", route="queue")
    assert platform.prepare(settings) == "http://192.0.2.1:8080/async-function/noop"
    assert platform.settings_as_text() == {"function": "noop"}
    assert (platform.pieces(), platform.trouble(), platform.metrics(0, 1), platform.close()) == ((), None, None, None)
