"""What tests of several rooms share: the lab, the lab deployed, run.sh, a function that answers as asked."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from framestorm import paths
from lab import keys
from lab.hosts import LabHost
from tests.runs import RunSh
from tests.stand_in import StartServer, serving

TOOLS = paths.LOCAL / "ansible-test-venv" / "bin"
SCAN = paths.ROOT / "tests" / "ansible" / "scan.py"


# There is one lab and one local OpenFaaS on a machine, so the tests of each stay together, in this order. In the lab,
# those that break it come before those that deploy on it, and taking back what was deployed comes last. What takes
# minutes on hosts of its own begins early and is looked at later: the bare host's set-up, and what deploy does to ssh.
TOGETHER = {
    "lab": (
        "tests/lab/test_lab",
        "tests/lab/test_bare_host.py::test_a_new_host",
        "tests/ansible/test_deploy",
        "tests/ansible/test_ssh_stays.py::test_ssh_is_set_up",
        "tests/lab/",
        "tests/slaves/",
        "tests/ansible/test_ssh_stays",
        "tests/ansible/test_changes",
    ),
    "openfaas": ("tests/openfaas/", "tests/docs/test_openfaas"),
}
# What takes longest begins first.
ORDER = [*(part for parts in TOGETHER.values() for part in parts), "tests/run/", "tests/jmx/", "tests/foreign/"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes longest comes first."""
    items.sort(key=lambda item: next((n for n, part in enumerate(ORDER) if part in item.nodeid), len(ORDER)))


class Pieces(LoadScopeScheduling):
    """Hands to each worker what stays together as one piece, and the rest by files."""

    def _split_scope(self, nodeid: str) -> str:
        for name, parts in TOGETHER.items():
            if any(part in nodeid for part in parts):
                return name
        return nodeid.partition("::")[0]


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Pieces:
    return Pieces(config, log)


@dataclass(frozen=True)
class Lab:
    """A lab that is up, by the commands that a person would use."""

    before: dict[str, frozenset[int]]  # ports that answered before anything was deployed

    def ssh(self, host: str, command: str, check: bool = True) -> str:
        done = subprocess.run(
            keys.ssh(LabHost(host), command), capture_output=True, text=True, check=False, timeout=120
        )
        assert done.returncode == 0 or not check, f"{host}: {command}: {done.returncode}: {done.stderr}{done.stdout}"
        return done.stdout

    def scan(self, source: str, target: str, ports: str = "1-65535") -> frozenset[int]:
        """TCP ports of `target` that answer to `source`."""
        command = keys.ssh(LabHost(source), "python3", "-", LabHost(target).address, ports)
        done = subprocess.run(command, input=SCAN.read_bytes(), capture_output=True, check=True, timeout=120)
        return frozenset(int(port) for port in done.stdout.split())


def ansible_tool(*words: str | Path) -> str:
    """Run one of Ansible's tools as it is run by hand, in its folder and with its settings; its output."""
    environment = {**os.environ, "PATH": f"{TOOLS}{os.pathsep}{os.environ['PATH']}", "ANSIBLE_NOCOLOR": "1"}
    environment |= {"NO_COLOR": "1", "ANSIBLE_CONFIG": str(paths.ANSIBLE / "ansible.cfg"), "COLUMNS": "200"}
    done = subprocess.run(
        [TOOLS / words[0], *words[1:]], cwd=paths.ANSIBLE, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="session")
def lab_cli() -> Iterator[Callable[..., subprocess.CompletedProcess[str]]]:
    """The lab's command line; whatever lab there is at the end goes."""
    if os.geteuid() != 0:
        pytest.fail("the lab needs root: run the tests as root or by sudo")

    def run(*words: str, status: int = 0) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "lab", *words]
        done = subprocess.run(command, cwd=paths.ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == status, done.stderr
        return done

    yield run
    run("down")


@pytest.fixture(scope="session")
def fresh_lab(lab_cli: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory) -> RunSh:
    """A lab with an outsider, on which nothing was deployed yet; run.sh with a folder of its own."""
    run_sh = RunSh(tmp_path_factory.mktemp("deployed"))
    lab_cli("down")
    run_sh("./run.sh lab up", "--outsider", out="")
    return run_sh


@pytest.fixture(scope="session")
def deployed(fresh_lab: RunSh) -> Lab:
    """A fresh lab, deployed by the inventory as shipped."""
    before = {host: Lab({}).scan("outsider", host, "1-10000") for host in ("slave1", "function1")}
    fresh_lab("./run.sh deploy", out="")
    return Lab(before)


@pytest.fixture
def run_sh(tmp_path: Path) -> Iterator[RunSh]:
    """run.sh with the folder of the test; nothing of it outlives the test."""
    calls = RunSh(tmp_path)
    yield calls
    calls.close()


@pytest.fixture
def stand_in() -> Iterator[StartServer]:
    """Return a function that starts a server with the answers given, each the fields of an Answer that differ."""
    with ExitStack() as stack:
        yield lambda *answers: stack.enter_context(serving(*answers))
