"""How an engine is called: a program on the path stands in for docker."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from framestorm.errors import FramestormError
from framestorm.platform import docker_engine
from framestorm.platform.docker_engine import DockerEngine
from framestorm.platform.kubernetes.cluster import Cluster


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A docker that warns, says what it was called with, and fails where it should."""
    program = tmp_path / "docker"
    program.write_text(
        "#!/bin/sh\n"
        'echo "WARNING: no swap limit support" >&2\n'
        'printf \'{"host": "%s", "settings": "%s", "words": "%s"}\' "$DOCKER_HOST" "$DOCKER_CONFIG" "$*"\n'
        '[ "$1" != fail ]\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")


@pytest.mark.usefixtures("stand_in")
def test_the_output_is_without_warnings() -> None:
    assert json.loads(DockerEngine().run("info", "--format", "json"))["words"] == "info --format json"


@pytest.mark.usefixtures("stand_in")
def test_an_error_ends_with_what_docker_says_of_it() -> None:
    with pytest.raises(FramestormError) as error:
        DockerEngine().run("fail", "now")
    first, output, last = str(error.value).splitlines()
    assert first == "docker fail now failed:" and output.startswith("{") and last.endswith("no swap limit support")
    assert (DockerEngine().succeeds("fail"), DockerEngine().succeeds("info")) == (False, True)


def test_without_docker_it_is_told_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FramestormError, match="no docker on the PATH"):
        DockerEngine().run("info")
    assert not DockerEngine().succeeds("info")


def test_an_engine_that_does_not_answer_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As one by TCP behind a firewall."""
    monkeypatch.setattr(docker_engine, "CALL_WITHIN_S", 0.2)
    (tmp_path / "docker").write_text("#!/bin/sh\nexec sleep 600\n")
    (tmp_path / "docker").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with pytest.raises(FramestormError, match="docker info did not end within 0 s"):
        DockerEngine().run("info")
    assert not DockerEngine().succeeds("info")


@pytest.mark.usefixtures("stand_in")
def test_an_engine_of_a_socket_has_settings_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_CONFIG", "/theirs")
    monkeypatch.setenv("DOCKER_HOST", "tcp://theirs:2375")
    own = json.loads(DockerEngine(Path("/run/own.sock"), Path("/own")).run("ps"))
    theirs = json.loads(DockerEngine().run("ps"))
    assert (own["host"], own["settings"]) == ("unix:///run/own.sock", "/own")
    assert (theirs["host"], theirs["settings"]) == ("tcp://theirs:2375", "/theirs")


@pytest.mark.parametrize(
    ("program", "call"), [("docker", DockerEngine().run), ("kubectl", Cluster("kind").call)], ids=["docker", "kubectl"]
)
def test_a_ctrl_c_is_not_for_what_is_called(
    program: str, call: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A terminal sends it to all processes of its session, and what ends a run may be under way, as a removal."""
    (tmp_path / program).write_text('#!/bin/sh\nread -r stat </proc/$$/stat\nset -- ${stat##*) }\necho "$4"\n')
    (tmp_path / program).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert int(call("info")) != os.getsid(0)
