"""The README's first command on a bare machine: a host of the lab, by an ordinary user who may use sudo."""

import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from framestorm.paths import ROOT
from lab import keys
from lab.hosts import Host

HOST = Host("master1")
SET_UP_WITHIN_S = 900
# Of this machine the host has the addresses of its registries and the certificates that it trusts; no file of a cache.
RUN = "./run.sh -Jusers=1 -Jramp_s=0 -Jhold_s=2 -o dashboards/first"


def ssh(command: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        keys.ssh(HOST, command), input=stdin, capture_output=True, check=False, timeout=SET_UP_WITHIN_S
    )


@pytest.fixture(scope="module")
def checkout(lab_cli: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The project as it lies here, cloned by the user of a host that has a minimal system and nothing else."""
    bundle = tmp_path_factory.mktemp("clone") / "framestorm.bundle"
    git = ["git", f"--git-dir={bundle.parent / 'copy'}", f"--work-tree={ROOT}", "-c", "user.name=test"]
    git += ["-c", "user.email=test@localhost"]
    for command in (
        ["git", "clone", "--quiet", "--bare", "--shared", ROOT, bundle.parent / "copy"],
        [*git, "read-tree", "HEAD"],
        [*git, "add", "--all"],
        [*git, "commit", "--quiet", "--allow-empty", "--message", "as it lies here"],
        [*git, "bundle", "create", "--quiet", bundle, "HEAD"],
    ):
        subprocess.run(command, check=True, capture_output=True)
    lab_cli("down")
    lab_cli("up", "--slaves", "0", "--registries")
    installed = ssh("sudo apt-get update -q && sudo apt-get install -qy --no-install-recommends git")
    assert installed.returncode == 0, installed.stdout + installed.stderr
    cloned = ssh("cat >bundle && git clone --quiet bundle framestorm", bundle.read_bytes())
    assert cloned.returncode == 0, cloned.stderr
    yield "framestorm"
    lab_cli("down")


def test_the_first_command_leads_to_a_report(checkout: str) -> None:
    assert ssh("id -un; command -v java mvn pip").stdout.split() == [b"tester"]
    done = ssh(f"cd {checkout} && {RUN}")
    assert done.returncode == 0, done.stderr.decode()[-4000:]
    for word in (b"installing", b"set-up 1/", b"TensorFlow"):
        assert word in done.stderr
    assert b"report: dashboards/first/index.html" in done.stdout
    files = ssh(f"ls {checkout}/dashboards/first").stdout.split()
    assert {b"index.html", b"summary.json", b"samples.jtl"} <= set(files)
    assert not ssh(f"cd {checkout} && git status --porcelain; find . -user root").stdout
    again = ssh(f"cd {checkout} && {RUN.replace('first', 'second')}")
    assert again.returncode == 0 and b"set-up" not in again.stderr
