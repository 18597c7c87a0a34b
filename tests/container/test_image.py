"""The kit's image: conducts runs, and is a slave, as an ordinary user whose files are all read-only but for volumes."""

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from framestorm import paths
from framestorm.machine import wait_until
from framestorm.platform.openfaas import docker
from framestorm.results.jtl_file import has_rows
from lab.container import IMAGE
from tests.stand_in import Answer, StandIn, serving

# The engine's bridge: containers reach the tests there.
HERE = docker.BRIDGE_ADDRESS.partition("/")[0]
KIT = "/opt/framestorm"
# The sources of this checkout in the place of those that the image was made with.
SOURCES = [f"--volume={paths.ROOT / name}:{KIT}/{name}:ro" for name in ("framestorm", "client", "ansible", "jmx")]
SLAVES = ("slave1", "slave2")
INVENTORY = """[slaves]
{slaves}
[slaves:vars]
ansible_user=framestorm
ansible_port=8022
ansible_become=false
ansible_ssh_private_key_file=/keys/key
ansible_ssh_common_args=-o StrictHostKeyChecking=accept-new -o UserKnownHostsFile=/tmp/known_hosts
"""
READY_WITHIN_S = 90


def start(name: str, *words: str, options: tuple[str, ...] = ()) -> str:
    """Start a container whose own files are read-only; returns its id."""
    command = ("run", "--detach", "--read-only", "--hostname", name, *SOURCES, *options, IMAGE, *words)
    return docker.ENGINE.run(*command).split()[-1]


def said(container: str) -> str:
    """Return what a container has written to both of its outputs."""
    command = ["docker", "logs", container]
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True).stdout


@pytest.fixture(scope="module")
def engine() -> Iterator[None]:
    with docker.engine():
        yield


@pytest.fixture
def started(engine: None) -> Iterator[Callable[..., str]]:
    """Return a function that starts a container, which ends with the test."""
    with ExitStack() as stack:

        def begin(name: str, *words: str, options: tuple[str, ...] = ()) -> str:
            container = start(name, *words, options=options)
            stack.callback(docker.ENGINE.run, "rm", "--force", "--volumes", container)
            return container

        yield begin


@pytest.fixture
def slaves(started: Callable[..., str], tmp_path: Path) -> dict[str, str]:
    """Two slaves by their names; tmp_path has the inventory and the key that a conductor needs."""
    keys = tmp_path / "keys"
    keys.mkdir()
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", keys / "key"], check=True)
    public = (keys / "key.pub").read_text()
    containers = {
        name: started(name, "slave", options=("--env", f"FRAMESTORM_AUTHORIZED_KEYS={public}")) for name in SLAVES
    }
    lines = []
    for name, container in containers.items():
        assert wait_until(lambda each=container: "Server listening" in said(each), READY_WITHIN_S), said(container)
        networks = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}"
        address = docker.ENGINE.run("inspect", "--format", networks, container).strip()
        lines.append(f"{name} ansible_host={address}")
    (tmp_path / "inventory.ini").write_text(INVENTORY.format(slaves="\n".join(lines)))
    user = int(docker.USER.partition(":")[0])
    (tmp_path / "out").mkdir()
    for path in (keys / "key", tmp_path / "out"):
        shutil.chown(path, user, user)
    tmp_path.chmod(0o755)
    return containers


@pytest.fixture
def conduct(started: Callable[..., str], slaves: dict[str, str], tmp_path: Path) -> Callable[..., str]:
    """Return a function that starts a run over the slaves."""
    given = (
        f"--volume={tmp_path / 'inventory.ini'}:{KIT}/inventory.ini:ro",
        f"--volume={tmp_path / 'keys'}:/keys:ro",
        f"--volume={tmp_path / 'out'}:{KIT}/dashboards",
        f"--volume={paths.JMX}:/plans:ro",
    )

    def begin(*words: str) -> str:
        return started("conductor", *words, "-R", ",".join(SLAVES), options=given)

    return begin


@pytest.fixture
def function() -> Iterator[StandIn]:
    with serving(server=StandIn([Answer()], HERE)) as server:
        yield server


def processes(container: str) -> list[str]:
    return docker.ENGINE.run("exec", container, "ps", "-eo", "args").splitlines()


def status(container: str) -> int:
    return int(docker.ENGINE.run("wait", container))


def samples(folder: Path, label: str) -> dict[str, Any]:
    """Return what the run's summary says of a label."""
    (path,) = (folder / "out").glob("*/summary.json")
    return dict(json.loads(path.read_text())["labels"][label])


def is_complete(*options: str) -> bool:
    """Whether the Dockerfile takes the image, with options of its container, for a base that lacks no package."""
    text = (paths.ROOT / "Dockerfile").read_text()
    condition = re.search(r"^RUN (.*?)[\s\\]*\|\| \{", text, re.MULTILINE | re.DOTALL)
    assert condition
    return docker.ENGINE.succeeds("run", "--rm", "--entrypoint", "sh", *options, IMAGE, "-c", condition[1])


def test_a_base_gets_what_it_lacks(engine: None, tmp_path: Path) -> None:
    """A Java of another version is not the one that set-up links."""
    java = tmp_path / "java"
    java.write_text("#!/bin/sh\n")
    java.chmod(0o755)
    assert is_complete()
    for program in ("ssh", "tini"):
        assert not is_complete(f"--volume=/dev/null:/usr/bin/{program}:ro"), program
    assert not is_complete("--tmpfs=/usr/lib/jvm", f"--volume={java}:/other/java:ro", "--env=PATH=/other:/usr/bin:/bin")


def test_frames_are_sent_by_two_slaves(
    conduct: Callable[..., str], slaves: dict[str, str], function: StandIn, tmp_path: Path
) -> None:
    url = f"http://{HERE}:{function.server_port}/"
    sent = ("-Jusers=4", "-Jframes=3", "-Jsleep_s=0", "-Jhold_s=3", "-Jverify_share=0")
    conductor = conduct("-t", "/plans/face-blur.jmx", f"-Jurl={url}", *sent)
    assert status(conductor) == 0, said(conductor)
    frames = samples(tmp_path, "frame")
    assert frames["ok"] == frames["n"] == len(function.received) > 0
    for container in slaves.values():
        assert not [line for line in processes(container) if "java" in line or "client" in line]
        assert docker.ENGINE.run("exec", container, "ls", "/var/lib/framestorm/runs") == ""
        assert "/opt" not in docker.ENGINE.run("diff", container)


@pytest.mark.long
def test_a_slave_that_is_killed_is_named(
    conduct: Callable[..., str], slaves: dict[str, str], function: StandIn, tmp_path: Path
) -> None:
    url = f"http://{HERE}:{function.server_port}/"
    conductor = conduct("-t", "/plans/requests.jmx", f"-Jurl={url}", "-Jusers=4", "-Jhold_s=60")
    rows = (tmp_path / "out").glob
    assert wait_until(lambda: any(has_rows(path) for path in rows("*/samples.jtl")), READY_WITHIN_S), said(conductor)
    docker.ENGINE.run("kill", slaves["slave2"])
    assert status(conductor) == 4, said(conductor)
    assert "slave2 was lost" in said(conductor) and "slave1 was lost" not in said(conductor)
    assert samples(tmp_path, "request")["n"] > 0


def test_sigterm_ends_a_run_gently_with_its_report(
    conduct: Callable[..., str], slaves: dict[str, str], function: StandIn, tmp_path: Path
) -> None:
    url = f"http://{HERE}:{function.server_port}/"
    conductor = conduct("-t", "/plans/requests.jmx", f"-Jurl={url}", "-Jusers=4", "-Jhold_s=300")
    assert wait_until(lambda: function.received, READY_WITHIN_S), said(conductor)
    docker.ENGINE.run("kill", "--signal", "TERM", conductor)
    assert status(conductor) == 4, said(conductor)
    assert samples(tmp_path, "request")["n"] == len(function.received)
    for container in slaves.values():
        assert wait_until(lambda each=container: not any("java" in line for line in processes(each)), 30)


def test_a_slave_without_keys_says_who_could_come_in(started: Callable[..., str]) -> None:
    container = started("slave1", "slave")
    assert status(container) == 2
    assert "FRAMESTORM_AUTHORIZED_KEYS" in said(container)
