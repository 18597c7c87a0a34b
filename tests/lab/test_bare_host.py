"""The README's first command on a bare machine: a host of the lab, by an ordinary user who may use sudo.

It takes minutes, in which the lab's other hosts are deployed and tested.
"""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from framestorm.paths import ROOT
from lab import keys
from lab.hosts import Host
from tests.runs import RunSh

HOST = Host("slave3")  # no inventory names it
SET_UP_WITHIN_S = 900
# Of this machine the host has the addresses of its registries and the certificates that it trusts; no file of a cache.
RUN = "./run.sh -Jusers=1 -Jramp_s=0 -Jhold_s=2 -o dashboards/first"


def ssh(command: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        keys.ssh(HOST, command), input=stdin, capture_output=True, check=False, timeout=SET_UP_WITHIN_S
    )


class FirstCommand(NamedTuple):
    """The command while it runs, what there was before it, and the files that have what it prints."""

    before: list[bytes]
    process: subprocess.Popen[bytes]
    out: Path
    err: Path


@pytest.fixture(scope="session")
def first_command(
    lab_cli: Callable[..., Any], fresh_lab: RunSh, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[FirstCommand]:
    """The command, begun in the project as it lies here, on a host that has a minimal system and nothing else."""
    bundle = tmp_path_factory.mktemp("bare_host") / "framestorm.bundle"
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
    lab_cli("up", "--slaves", "3", "--registries")
    before = ssh("id -un; command -v java mvn pip").stdout.split()
    installed = ssh("sudo apt-get update -q && sudo apt-get install -qy --no-install-recommends git")
    assert installed.returncode == 0, installed.stdout + installed.stderr
    cloned = ssh("cat >bundle && git clone --quiet bundle framestorm", bundle.read_bytes())
    assert cloned.returncode == 0, cloned.stderr
    out, err = bundle.with_name("out"), bundle.with_name("err")
    with out.open("wb") as stdout, err.open("wb") as stderr:
        command = keys.ssh(HOST, f"cd framestorm && {RUN}")
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr)
    yield FirstCommand(before, process, out, err)
    process.kill()
    process.wait()


def test_a_new_host_has_nothing_of_what_set_up_installs(first_command: FirstCommand) -> None:
    assert first_command.before == [b"tester"]


def test_the_first_command_leads_to_a_report(first_command: FirstCommand) -> None:
    status, stderr = first_command.process.wait(SET_UP_WITHIN_S), first_command.err.read_text()
    assert status == 0, stderr[-4000:]
    for word in ("installing", "set-up 1/", "TensorFlow"):
        assert word in stderr
    assert "report: dashboards/first/index.html" in first_command.out.read_text()
    files = ssh("ls framestorm/dashboards/first").stdout.split()
    assert {b"index.html", b"summary.json", b"samples.jtl"} <= set(files)
    assert not ssh("cd framestorm && git status --porcelain; find . -user root").stdout
    again = ssh(f"cd framestorm && {RUN.replace('first', 'second')}")
    assert again.returncode == 0 and b"set-up" not in again.stderr
