"""The README's first commands on a bare machine: a host of the lab, by an ordinary user who may use sudo.

It takes minutes, in which the lab's other hosts are deployed and tested.
"""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from framestorm.paths import ROOT
from lab import keys
from lab.hosts import LabHost
from tests.runs import RunSh

HOST = LabHost("slave3")  # no inventory names it
SET_UP_WITHIN_S = 900
# Of this machine the host has the addresses of its registries and the certificates that it trusts; no file of a cache.
SERVE = "python3 -m http.server --bind 127.0.0.1 8000 >/dev/null 2>&1 & trap 'kill %1' EXIT"
LOAD = "-Jusers=1 -Jramp_s=0 -Jhold_s=2"
OF_ONE_URL = f"./run.sh -t jmx/requests.jmx -Jurl=http://127.0.0.1:8000/ -Jmethod=GET {LOAD} -o dashboards/one-url"
RUN = f"./run.sh {LOAD} -o dashboards/first"


def ssh(command: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        keys.ssh(HOST, command), input=stdin, capture_output=True, check=False, timeout=SET_UP_WITHIN_S
    )


class FirstCommands(NamedTuple):
    """The commands while they run, what there was before them, and the files that have what they print."""

    before: list[bytes]
    process: subprocess.Popen[bytes]
    out: Path
    err: Path


@pytest.fixture(scope="session")
def first_commands(
    lab_cli: Callable[..., Any], fresh_lab: RunSh, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[FirstCommands]:
    """The commands, begun in the project as it lies here, on a host that has a minimal system and nothing else."""
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
        command = keys.ssh(HOST, f"{SERVE}; cd framestorm && {OF_ONE_URL} && ls .local && {RUN}")
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr)
    yield FirstCommands(before, process, out, err)
    process.kill()
    process.wait()


def test_a_new_host_has_nothing_of_what_set_up_installs(first_commands: FirstCommands) -> None:
    assert first_commands.before == [b"tester"]


def test_the_first_commands_lead_to_reports(first_commands: FirstCommands) -> None:
    status, stderr = first_commands.process.wait(SET_UP_WITHIN_S), first_commands.err.read_text()
    assert status == 0, stderr[-4000:]
    for word in ("installing", "set-up 1/3", "TensorFlow"):
        assert word in stderr
    of_one_url, _, of_demo = first_commands.out.read_text().partition("report: dashboards/one-url/index.html\n")
    assert "Passed" in of_one_url and "report: dashboards/first/index.html" in of_demo
    # A run of an address of one's own installs neither TensorFlow nor a video.
    made = {line for line in of_demo.splitlines() if line.endswith("venv") or line.startswith(("face", "sample"))}
    assert made == {"venv"}
    files = ssh("ls framestorm/dashboards/first").stdout.split()
    assert {b"index.html", b"summary.json", b"samples.jtl"} <= set(files)
    assert not ssh("cd framestorm && git status --porcelain; find . -user root").stdout
    again = ssh(f"cd framestorm && {RUN.replace('first', 'second')}")
    assert again.returncode == 0 and b"set-up" not in again.stderr
