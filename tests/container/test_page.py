"""docs/containers.md, as a reader's shell runs it, with the image of the tests in the place of the reader's."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from framestorm import paths
from framestorm.platform.openfaas import docker
from lab.container import IMAGE
from tests.docs.test_pages import blocks
from tests.stand_in import Answer, StandIn, serving

# The engine's bridge: containers reach the tests there.
HERE = docker.BRIDGE_ADDRESS.partition("/")[0]
TAG, NETWORK, SLAVES = "framestorm", "load", ("slave1", "slave2")
SUBNET = "198.19.254.0/24"


@pytest.fixture
def engine() -> Iterator[None]:
    """Start a Docker engine; what the page creates in it is removed before and after the test."""

    def clear() -> None:
        for words in (("rm", "--force", "--volumes", *SLAVES), ("network", "rm", NETWORK), ("image", "rm", TAG)):
            subprocess.run(["docker", *words], capture_output=True, check=False)

    with docker.engine():
        clear()
        yield
        clear()


@pytest.fixture
def shop(engine: None) -> Iterator[StandIn]:
    with serving(server=StandIn([Answer()], HERE)) as server:
        yield server


def test_the_page_s_blocks(shop: StandIn, tmp_path: Path) -> None:
    *for_an_engine, _for_a_cluster = blocks("containers.md", "console")
    (inventory,) = blocks("containers.md", "ini")
    (tmp_path / "hosts.ini").write_text(inventory)
    (tmp_path / "plans").mkdir()
    shutil.copy(paths.JMX / "requests.jmx", tmp_path / "plans" / "shop.jmx")
    (tmp_path / "results").mkdir()
    shutil.chown(tmp_path / "results", *map(int, docker.USER.split(":")))
    here = {
        "docker build -t framestorm .": f"docker tag {IMAGE} {TAG}",
        "http://shop.example:8080/": f"http://{HERE}:{shop.server_port}/ -Jusers=2 -Jramp_s=0 -Jhold_s=2",
        "network create": f"network create --subnet {SUBNET}",
        "sudo ": "",
    }
    for number, block in enumerate(for_an_engine, 1):
        for theirs, ours in here.items():
            block = block.replace(theirs, ours)  # noqa: PLW2901
        done = subprocess.run(["bash", "-euc", block], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        assert len(list((tmp_path / "results").iterdir())) == number
    summaries = [json.loads(path.read_text()) for path in (tmp_path / "results").glob("*/summary.json")]
    assert sum(summary["labels"]["request"]["n"] for summary in summaries) == len(shop.received) > 0
