"""What tests of several packages share: the lab, the lab deployed, run.sh, a function that answers as asked."""

import os
import shutil
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from framestorm import paths
from framestorm.machine import wait_until
from lab import image, keys
from lab.hosts import LabHost
from tests.lane import enter
from tests.runs import RunSh
from tests.stand_in import StartServer, serving

TOOLS = paths.LOCAL / "ansible-test-venv" / "bin"
SCAN = paths.ROOT / "tests" / "ansible" / "scan.py"
SSH_FAILED = 255  # of ssh itself


# Tests of one lab, or of the one local OpenFaaS and Docker engine of a machine, stay together, in this order. In the
# first lab, those that break it come before those that deploy on it, and taking back what was deployed comes last. What
# takes minutes on hosts of its own begins early and is looked at later: the bare host, and what deploy does to ssh.
TOGETHER = {
    "lab": (
        "tests/lab/test_lab",
        "tests/lab/test_bare_host.py::test_a_new_host",
        "tests/ansible/test_deploy",
        "tests/ansible/test_ssh_stays.py::test_ssh_is_set_up",
        "tests/lab/",
        "tests/ansible/test_ssh_stays",
        "tests/ansible/test_changes",
    ),
    # `target down` of a test takes away the cluster too.
    "openfaas": ("tests/kubernetes/test_kind", "tests/openfaas/", "tests/docs/test_openfaas", "tests/container/"),
    "slaves": ("tests/slaves/test_slave_runs", "tests/slaves/test_any_plan"),
    "losses": ("tests/slaves/",),
}
# Each of these lanes has a lab of its own; the first is deployed, and the others begin with an image of that.
LANES = ("lab", "slaves", "losses")
DEPLOYS = "tests/ansible/test_deploy"
DEPLOYED_WITHIN_S = 1200
# What takes longest begins first; the lanes that need the image when it is about to be there.
ORDER = [
    *TOGETHER["lab"],
    *TOGETHER["openfaas"],
    "tests/run/test_study",
    "tests/run/test_soak",
    "tests/run/test_audit",
    "tests/run/test_ends",
    *TOGETHER["slaves"],
    *TOGETHER["losses"],
    "tests/run/",
    "tests/jmx/",
    "tests/foreign/",
]


def piece_of(nodeid: str) -> str:
    """What must stay on one worker: the tests of a lane or of OpenFaaS, or those of a file."""
    named = (name for name, parts in TOGETHER.items() if any(part in nodeid for part in parts))
    return next(named, nodeid.partition("::")[0])


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give each test of the lab its lane: what the tests of one lane share ends before those of another begin."""
    if "lane" in metafunc.fixturenames:
        lane = piece_of(metafunc.definition.nodeid)
        metafunc.parametrize("lane", [lane], ids=[pytest.HIDDEN_PARAM], indirect=True, scope="session")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes longest comes first."""
    items.sort(key=lambda item: next((n for n, part in enumerate(ORDER) if part in item.nodeid), len(ORDER)))


class Pieces(LoadScopeScheduling):
    """Hands to each worker what stays together as one piece, and the rest by files."""

    def _split_scope(self, nodeid: str) -> str:
        piece = piece_of(nodeid)
        # A lab that is not deployed makes no image: then the lanes follow one another.
        return LANES[0] if piece in LANES and not self._is_deployed() else piece

    def _is_deployed(self) -> bool:
        nodeids = self.collection or []
        return any(DEPLOYS in each for each in nodeids) or not any(piece_of(each) == LANES[0] for each in nodeids)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Pieces:
    return Pieces(config, log)


@pytest.fixture(scope="session", autouse=True)
def unflushed() -> Iterator[None]:
    """Files of tests need not outlast a power cut; flushing 11,000 of them took 20 s of a page's tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.fsync", lambda _descriptor: None)
        yield


@dataclass(frozen=True)
class Lab:
    """A lab that is up, by the commands that a person would use."""

    before: dict[str, frozenset[int]]  # ports that answered before anything was deployed

    def ssh(self, host: str, command: str) -> str:
        """Run a command that has to succeed; returns what it prints."""
        done = self._run(host, command)
        assert done.returncode == 0, f"{host}: {command}: {done.returncode}: {done.stderr}{done.stdout}"
        return done.stdout

    def look(self, host: str, command: str) -> str | None:
        """Return what a command prints, however it ends; None if ssh does not reach the host, where nothing is seen."""
        done = self._run(host, command)
        return None if done.returncode == SSH_FAILED else done.stdout

    @staticmethod
    def _run(host: str, command: str) -> subprocess.CompletedProcess[str]:
        words = keys.ssh(LabHost(host), command)
        return subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)

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


def pytest_configure(config: pytest.Config) -> None:
    """Name the session; its workers are told."""
    config.option.testrunuid = getattr(config, "workerinput", vars(config.option))["testrunuid"] or uuid.uuid4().hex


def folder_of_lanes(config: pytest.Config) -> Path:
    """What the lanes of one session have on this machine."""
    return paths.LOCAL / "lanes" / str(config.option.testrunuid)


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        shutil.rmtree(folder_of_lanes(config), ignore_errors=True)


def deployed_lanes(session: pytest.Session) -> list[str]:
    """The lanes with tests that need a lab deployed; the first of them makes the image."""
    items = (item for item in session.items if isinstance(item, pytest.Function) and "deployed" in item.fixturenames)
    return list(dict.fromkeys(piece_of(item.nodeid) for item in items))


@pytest.fixture(scope="session")
def lane(request: pytest.FixtureRequest) -> bool:
    """Whether the lab begins with the image, in a network of its own, and is not deployed in the machine's."""
    name = str(request.param)
    if name in (LANES[0], *deployed_lanes(request.session)[:1]):
        return False
    enter(folder_of_lanes(request.config) / name)
    return True


@pytest.fixture(scope="session")
def lab_cli(lane: bool) -> Iterator[Callable[..., subprocess.CompletedProcess[str]]]:
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
def deployed(lane: bool, lab_cli: Callable[..., Any], request: pytest.FixtureRequest) -> Lab:
    """A fresh lab, deployed by the inventory as shipped, or one that begins with the image of that."""
    folder = folder_of_lanes(request.config)
    made, is_over = folder / "image", folder / "is_over"
    if lane:
        assert wait_until(is_over.exists, DEPLOYED_WITHIN_S) and made.exists(), "there is no image to begin with"
        image.use(made)
        lab_cli("up")
        return Lab({})
    fresh_lab = request.getfixturevalue("fresh_lab")
    before = {host: Lab({}).scan("outsider", host, "1-10000") for host in ("slave1", "function1")}
    folder.mkdir(parents=True, exist_ok=True)
    try:
        fresh_lab("./run.sh deploy", out="")
        if len(deployed_lanes(request.session)) > 1:
            image.keep(made)
            lab_cli("up")
    finally:
        is_over.touch()
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
