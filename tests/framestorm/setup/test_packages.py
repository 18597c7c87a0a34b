"""Debian packages: installed by one process at a time, which waits for others and starts no service."""

import fcntl
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from framestorm import paths, testing
from framestorm.errors import FramestormError
from framestorm.setup import packages

STATUS = "Package: tool\nStatus: install ok installed\nArchitecture: all\nVersion: 1\nMaintainer: a\nDescription: a\n\n"
ISOLATED = """
Dir "{root}"; Dir::State::status "{root}/var/lib/dpkg/status"; Dir::Etc::main "none"; Dir::Etc::parts "none";
Dir::Etc::sourcelist "none"; Dir::Etc::sourceparts "none"; APT::Sandbox::User "root"; APT::Architectures {{ "amd64"; }};
"""

Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def system(tmp_path: Path) -> Path:
    """A system below a directory of its own with one package; its apt and dpkg are this machine's."""
    lists, archives = "var/lib/apt/lists/partial", "var/cache/apt/archives/partial"
    for folder in ("usr/sbin", "run", "tmp", "var/lib/dpkg", lists, archives):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "var/lib/dpkg/status").write_text(STATUS)
    (tmp_path / "apt.conf").write_text(ISOLATED.format(root=tmp_path))
    return tmp_path


@pytest.fixture
def start(system: Path) -> Iterator[Start]:
    """Start apt.sh on that system."""
    processes: list[subprocess.Popen[str]] = []

    def start(*names: str, **environment: str) -> subprocess.Popen[str]:
        variables = {**os.environ, "DPKG_ROOT": str(system), "APT_CONFIG": str(system / "apt.conf"), **environment}
        pipe = subprocess.PIPE
        command = ["bash", packages.SCRIPT, *names]
        processes.append(subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=variables))
        return processes[-1]

    yield start
    for process in processes:
        process.kill()
        process.communicate()


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock as apt and dpkg do."""
    with path.open("w") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX)
        yield


def fake_apt(folder: Path, script: str) -> str:
    """The PATH with an apt-get that runs this script."""
    (folder / "bin").mkdir()
    (folder / "bin" / "apt-get").write_text(f"#!/bin/bash\n{script}\n")
    (folder / "bin" / "apt-get").chmod(0o755)
    return f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"


@pytest.mark.parametrize(
    "lock", ["var/lib/apt/lists/lock", "var/lib/dpkg/lock-frontend", "var/cache/apt/archives/lock"]
)
def test_it_waits_for_another_apt_and_says_so(system: Path, start: Start, lock: str) -> None:
    with locked(system / lock):
        process = start("tool")
        assert process.stderr is not None
        assert "waiting for another package installation" in process.stderr.readline()
        assert process.poll() is None
    stdout, stderr = process.communicate(timeout=120)
    assert process.returncode == 0, stdout + stderr
    assert "Skipping tool, it is already installed" in stdout


def test_it_does_not_wait_for_ever(system: Path, start: Start) -> None:
    with locked(system / "var/lib/dpkg/lock-frontend"):
        process = start("tool", APT_WAIT_S="0")
        stdout, _ = process.communicate(timeout=120)
    assert process.returncode != 0
    assert "lock-frontend" in stdout


def test_two_installations_of_this_kit_wait_for_each_other(system: Path, start: Start) -> None:
    release = system / "release"
    path = fake_apt(system, f'echo "$@" >>{system}/calls; while [ ! -e {release} ]; do sleep 0.05; done')
    first = start("one", PATH=path)
    while not (system / "calls").exists():
        assert first.poll() is None
    second = start("two", PATH=path)
    assert second.stderr is not None
    assert "waiting for another set-up" in second.stderr.readline()
    release.touch()
    assert (first.wait(timeout=120), second.wait(timeout=120)) == (0, 0)
    installed = [line.split()[-1] for line in (system / "calls").read_text().splitlines() if " --yes " in line]
    assert installed == ["one", "two"]


def test_no_service_may_start_while_packages_are_installed(system: Path, start: Start) -> None:
    policy = system / "usr/sbin/policy-rc.d"
    path = fake_apt(system, f"{policy}; echo $? $@")
    stdout, _ = start("tool", PATH=path).communicate(timeout=120)
    assert re.search(r"^101 .* install --yes --no-upgrade tool$", stdout, re.MULTILINE), stdout
    assert not policy.exists()


def test_what_somebody_else_installs_meanwhile_starts_its_services(system: Path, start: Start) -> None:
    policy, release = system / "usr/sbin/policy-rc.d", system / "release"
    process = start("tool", PATH=fake_apt(system, f"while [ ! -e {release} ]; do sleep 0.05; done"))
    while not policy.exists() or not policy.stat().st_mode & 0o100:
        assert process.poll() is None
    assert subprocess.run([policy, "nginx", "start"], check=False).returncode == 0
    release.touch()
    assert process.wait(timeout=120) == 0


LISTED = ("/usr/lib/systemd/system/$1.service", "/lib/systemd/system/$1.path", "/etc/init.d/$1-script")


@pytest.mark.parametrize(("installation", "status"), [("exit 0", 0), ("exit 7", 7), ("kill -INT $PPID $$", 130)])
def test_only_services_of_new_packages_are_disabled(system: Path, start: Start, installation: str, status: int) -> None:
    """Also where the installation fails or is interrupted after they have come, and one of them is masked."""
    simulated = (
        "Inst new (1 test [all])\nInst old [1] (2 test [all])\nConf new (1 test [all])\nInst late (1 test [all])"
    )
    path = fake_apt(
        system, f"case $* in *--simulate*) printf '{simulated}\n' ;; *--no-upgrade*) {installation} ;; esac"
    )
    listed = "; ".join(f"echo {each}" for each in LISTED)
    for name, script in (
        ("dpkg-query", f"shift; while [ $# != 0 ]; do {listed}; shift; done"),
        ("systemctl", f"echo $* >>{system}/asked; exit 1"),
    ):
        (system / "bin" / name).write_text(f"#!/bin/sh\n{script}\n")
        (system / "bin" / name).chmod(0o755)
    process = start("new", "old", "late", PATH=path)
    assert process.communicate(timeout=120)[1] == "" and process.returncode in (status, -signal.SIGINT)
    units = [f"{name}{kind}" for name in ("late", "new") for kind in ("-script.service", ".path", ".service")]
    assert (system / "asked").read_text().splitlines() == [f"disable --quiet {unit}" for unit in units]
    assert not (system / "usr/sbin/policy-rc.d").exists()


def test_what_a_kill_leaves_forbids_nothing_and_is_removed(system: Path, start: Start) -> None:
    policy = system / "usr/sbin/policy-rc.d"
    path = fake_apt(system, "kill -KILL $PPID")
    start("tool", PATH=path).communicate(timeout=120)
    assert policy.exists()
    assert subprocess.run([policy], check=False).returncode == 0
    assert start("tool").wait(timeout=120) == 0
    assert not policy.exists()


def test_a_policy_of_somebody_else_stays(system: Path, start: Start) -> None:
    policy = system / "usr/sbin/policy-rc.d"
    policy.write_text("#!/bin/sh\nexit 0\n")
    assert start("tool").wait(timeout=120) == 0
    assert policy.read_text() == "#!/bin/sh\nexit 0\n"


def test_a_package_that_does_not_exist_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "LOCAL", tmp_path)
    monkeypatch.setattr(packages.os, "geteuid", lambda: 0)
    monkeypatch.setenv("PATH", fake_apt(tmp_path, "echo 'E: Unable to locate package'; exit 100"))
    monkeypatch.setenv("DPKG_ROOT", str(tmp_path))
    (tmp_path / "usr/sbin").mkdir(parents=True)
    (tmp_path / "run").mkdir()
    with pytest.raises(FramestormError, match=r"no-such-package` failed(.|\n)*Unable to locate package"):
        packages.install(["no-such-package"])


def test_missing_packages_are_found() -> None:
    assert packages.missing(["bash", "no-such-package"]) == ["no-such-package"]


def test_a_user_who_may_not_install_is_told_what_to_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages.os, "geteuid", lambda: 1000)
    monkeypatch.setattr(packages, "_sudo_asks_nothing", lambda: False)
    monkeypatch.setattr(packages.sys.stdin, "isatty", lambda: False, raising=False)
    with pytest.raises(FramestormError, match="as root: apt-get install no-such-package"):
        packages.install(["no-such-package"])


@pytest.mark.parametrize(("after", "status"), [({"bash"}, 0), ({"bash", "sudo", "git"}, 1)])
def test_a_package_that_a_test_installs_fails_the_tests(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], after: set[str], status: int
) -> None:
    states = iter([frozenset({"bash"}), frozenset(after)])
    monkeypatch.setattr(testing, "_set_up", lambda: None)
    monkeypatch.setattr(testing, "_passes", lambda *words, **options: True)
    monkeypatch.setattr(packages, "installed", lambda: next(states))
    assert testing.run(["tests"]) == status
    output = capsys.readouterr()
    assert ("git sudo" in output.out) == ("failed: packages" in output.err) == bool(status)


@pytest.mark.parametrize(
    ("words", "failing", "message"),
    [([], "ruff check", "failed: ruff check\n"), ([], "pytest", "failed: pytest\n"), (["tests"], "ruff check", "")],
)
def test_a_static_check_that_fails_is_named_after_the_tests(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str], failing: str, message: str
) -> None:
    monkeypatch.setattr(testing, "_set_up", lambda: None)
    monkeypatch.setattr(testing.os, "geteuid", lambda: 0)
    monkeypatch.setattr(testing, "_passes", lambda name, *words, **options: name != failing)
    assert testing.run(words) == bool(message)
    assert capsys.readouterr().err == message


def test_an_interrupt_ends_the_static_checks_too(monkeypatch: pytest.MonkeyPatch) -> None:
    began = []

    def passes(name: str, *words: object, **options: object) -> bool:
        began.append(name)
        if name == "pytest":
            raise KeyboardInterrupt
        time.sleep(0.2)
        return True

    monkeypatch.setattr(testing, "_set_up", lambda: None)
    monkeypatch.setattr(testing.os, "geteuid", lambda: 0)
    monkeypatch.setattr(testing, "_passes", passes)
    with pytest.raises(KeyboardInterrupt):
        testing.run([])
    assert len(began) <= 3
