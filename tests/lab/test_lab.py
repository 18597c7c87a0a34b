"""The lab by its command line: up, status, down, and what it does after a crash."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from framestorm import paths, testing
from framestorm.errors import FramestormError, UsageError
from framestorm.machine import execute, wait_until
from framestorm.setup import archives, log
from framestorm.setup.archives import Archive, unpack
from lab import base, distance, groups, keys, lifecycle, network, registries, swarm
from lab.__main__ import main
from lab.hosts import HOME, LabError, LabHost, planned

Cli = Callable[..., subprocess.CompletedProcess[str]]
Traces = tuple[list[str], list[str], list[int], bool]


def traces() -> Traces:
    """What a lab could leave on the machine: links, mounts, processes, disks."""
    links = [line.split()[1] for line in execute("ip", "-oneline", "link").splitlines() if network.LINK in line]
    mounts = [line for line in Path("/proc/mounts").read_text().splitlines() if str(HOME) in line]
    control_groups = [str(folder) for folder in groups._folders("") if folder.exists()]
    return links + control_groups, mounts, groups.processes(), (HOME / "hosts").exists()


NOTHING: Traces = ([], [], [], False)


def boot_time(host: str) -> str:
    """When the host's init started, in ticks of the machine's clock."""
    return ssh(host, "cut -d' ' -f22 /proc/1/stat").stdout


def ssh(host: str, command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(keys.ssh(LabHost(host), command), capture_output=True, text=True, check=False)


def lines(done: subprocess.CompletedProcess[str]) -> list[list[str]]:
    return [line.split() for line in done.stdout.splitlines()]


def test_a_system_that_cannot_be_unpacked_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine where nothing is set up, the folder above the new system is not there either."""
    monkeypatch.setattr(log, "LOG", tmp_path / "log")
    nowhere = Archive(f"file://{tmp_path}/nowhere", "stable", "main", "")
    with pytest.raises(FramestormError, match=r"(?s)`mmdebstrap …`, whole output in .*log:.*E: "):
        unpack(tmp_path / "made" / "root", ["python3"], [nowhere])
    assert "nowhere" in (tmp_path / "log").read_text()


def test_the_password_of_apt_s_proxy_is_in_no_command_and_not_in_the_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tmp_path / "root/etc/apt/apt.conf.d/99mmdebstrap"
    commands = []

    def make_system(command: list[str]) -> None:
        commands.append(" ".join(command))
        (settings,) = (Path(word.removeprefix("--aptopt=")) for word in command if word.startswith("--aptopt="))
        assert settings.parent.stat().st_mode & 0o077 == 0
        kept.parent.mkdir(parents=True)
        kept.write_text(settings.read_text())
        assert "secret" in kept.read_text()

    monkeypatch.setattr(archives.packages, "install", lambda names: None)
    monkeypatch.setattr(archives, "execute", lambda *_: 'Acquire::http::Proxy "http://user:secret@proxy:3128";\n')
    monkeypatch.setattr(archives, "call", make_system)
    unpack(tmp_path / "root", ["python3"], [Archive("http://deb.example", "stable", "main", "")])
    assert len(commands) == 1 and "secret" not in commands[0] and not kept.exists()


def test_down_without_a_lab_is_no_error(lab_cli: Cli) -> None:
    lab_cli("down")
    assert traces() == NOTHING
    assert lab_cli("down").stderr == "there was no lab\n"
    done = lab_cli("status", status=1)
    assert done.stdout == "" and "`./run.sh lab up` starts it" in done.stderr


def test_up_gives_hosts_of_their_own_and_twice_changes_nothing(lab_cli: Cli) -> None:
    done = lab_cli("up", "--slaves", "1", "--registries")
    assert lines(done) == [
        ["host", "address", "state", "ssh"],
        ["master1", "198.18.0.2", "running", "yes"],
        ["slave1", "198.18.0.11", "running", "yes"],
        ["function1", "198.18.0.3", "running", "yes"],
    ]
    assert ssh("slave1", "hostname; id -un; sudo -n id -un").stdout.split() == ["slave1", "tester", "root"]
    boots = [boot_time(host) for host in ("master1", "slave1", "function1")]
    assert lines(lab_cli("up", "--slaves", "2")) == [
        *lines(done)[:3],
        ["slave2", "198.18.0.12", "running", "yes"],
        lines(done)[3],
    ]
    assert [boot_time(host) for host in ("master1", "slave1", "function1")] == boots
    names = {urlsplit(url).hostname for url in registries.urls()}
    assert names <= set(network.ALLOWED.read_text().replace("\\", "").replace("^", "").replace("$", "").split())
    assert len(lines(lab_cli("status"))) == 5


def test_hosts_reach_packages_and_nothing_else(lab_cli: Cli) -> None:
    assert ssh("master1", "sudo apt-get update -qq").returncode == 0
    direct = "import socket; socket.create_connection(('192.0.2.1', 80), timeout=2)"
    assert "unreachable" in ssh("master1", f'python3 -c "{direct}"').stderr
    proxied = "import urllib.request; urllib.request.urlopen('http://example.org')"
    assert "403" in ssh("master1", f'http_proxy=http://198.18.0.254:3128 python3 -c "{proxied}"').stderr


@pytest.mark.parametrize("group", ["network", "proxy", "slave1"])
def test_up_mends_what_was_killed(lab_cli: Cli, group: str) -> None:
    for pid in groups.processes(group):
        with contextlib.suppress(ProcessLookupError):  # the others of a host end with its first
            os.kill(pid, signal.SIGKILL)
    lab_cli("up", "--slaves", "2")
    lab_cli("status")
    assert ssh("slave1", "sudo apt-get update -qq").returncode == 0


def test_a_host_keeps_its_disk_when_it_is_started_again(lab_cli: Cli) -> None:
    ssh("slave2", "echo kept | sudo tee /root/note; sudo systemctl poweroff")
    assert wait_until(lambda: not groups.processes("slave2"), 20)
    assert ["slave2", "198.18.0.12", "stopped", "no"] in lines(lab_cli("status", status=1))
    lab_cli("up")
    assert ssh("slave2", "sudo cat /root/note").stdout == "kept\n"


def test_down_leaves_nothing(lab_cli: Cli) -> None:
    assert traces() != NOTHING
    lab_cli("down")
    assert traces() == NOTHING


def test_down_after_up_was_killed_leaves_nothing(lab_cli: Cli) -> None:
    up = subprocess.Popen([sys.executable, "-m", "lab", "up"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    assert wait_until(lambda: groups.processes("slave1"), 30, poll_s=0.01)
    up.kill()
    up.wait()
    assert traces() != NOTHING
    lab_cli("down")
    assert traces() == NOTHING


def test_a_half_made_host_is_made_anew(lab_cli: Cli) -> None:
    (HOME / "hosts" / "slave1" / "disk" / "etc").mkdir(parents=True)
    lab_cli("up", "--slaves", "1")
    lab_cli("down")


def test_without_root_it_says_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert main(["up"]) == 1
    assert "needs root; run it as root or by sudo" in capsys.readouterr().err
    with pytest.raises(UsageError, match=r"`sudo ./run.sh test`"):
        testing.run([])


def test_a_path_that_programs_would_split_is_refused_as_wrong_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(paths, "ROOT", tmp_path / "a b")
    assert main(["up"]) == UsageError.exit_status
    assert "move the checkout" in capsys.readouterr().err


def test_hosts_have_addresses_of_their_own() -> None:
    hosts = planned(slaves=50, outsider=True)
    assert len({host.address for host in hosts}) == len(hosts) == 53
    with pytest.raises(LabError, match="no host of a lab is called 'slave51'"):
        LabHost("slave51")


def test_status_without_root_says_that_the_key_is_root_s(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(lifecycle, "existing", lambda: [LabHost("slave1")])
    assert main(["status"]) == 1
    assert "the lab's key is root's; run it as root or by sudo" in capsys.readouterr().err


def test_a_base_with_hosts_stays_where_the_lab_s_folder_is_a_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "link"
    (tmp_path / "lab").mkdir()
    folder.symlink_to(tmp_path / "lab")
    used, unused = folder / "base-used", folder / "base-unused"
    for each in (used, unused):
        each.mkdir()
    monkeypatch.setattr(base, "HOME", folder)
    base.prune({used.resolve()})
    assert (used.exists(), unused.exists()) == (True, False)


def test_the_umask_of_root_is_not_that_of_the_hosts_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = tmp_path / "made"
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(lifecycle, "HOME", tmp_path)
    monkeypatch.setattr(lifecycle.packages, "install", lambda names: None)
    monkeypatch.setattr(lifecycle.archives, "of_this_machine", list)
    monkeypatch.setattr(lifecycle.base, "ensure", lambda sources: made.mkdir())
    former = os.umask(0o077)
    try:
        lifecycle.prepare()
        assert made.stat().st_mode & 0o777 == 0o755
        assert os.umask(0o077) == 0o077
    finally:
        os.umask(former)


class Engines:
    """Stands for Docker on the hosts of a swarm, each host's membership by its name."""

    def __init__(self) -> None:
        self.ids: dict[str, str] = {}
        self.listed: dict[str, str] = {}
        self._count = 0

    def answer(self, node: swarm.Node, *words: str) -> str:
        match words:
            case ("info", *_):
                return f"active {self.ids[node.name]}\n" if node.name in self.ids else "inactive \n"
            case ("swarm", "init" | "join" as verb, *_):
                assert node.name not in self.ids, "already part of a swarm"
                if verb == "init":
                    self.listed = {}
                self._count += 1
                self.ids[node.name] = f"id{self._count}"
                self.listed[self.ids[node.name]] = node.name
            case ("swarm", "leave", *_):
                del self.ids[node.name]
            case ("node", "ls", *_):
                return "".join(f"{identity} {name}\n" for identity, name in self.listed.items())
            case ("node", "rm", *_, identity):
                del self.listed[identity]
        return ""


@pytest.mark.parametrize("started_again", [[], ["swarm2"], ["swarm1"], ["swarm1", "swarm2"]])
def test_hosts_that_are_added_or_started_again_join_the_swarm(
    started_again: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    engines = Engines()

    def docker(node: swarm.Node, *words: str) -> str:
        return engines.answer(node, *words)

    monkeypatch.setattr(swarm.Node, "docker", docker)
    monkeypatch.setattr(swarm.Node, "answers", lambda node: True)
    for name in ("_ensure_disk", "_start", "_make_images"):
        monkeypatch.setattr(swarm, name, lambda *_: None)
    swarm.up(1)
    before = swarm.up(2)
    members = dict(engines.ids)
    for name in started_again:
        del engines.ids[name]
    nodes = swarm.up(3)
    assert engines.listed == {engines.ids[node.name]: node.name for node in nodes}
    if "swarm1" not in started_again:
        kept = [node.name for node in before if node.name not in started_again]
        assert {name: engines.ids[name] for name in kept} == {name: members[name] for name in kept}


@pytest.mark.parametrize(
    ("console", "cpu", "said"),
    [
        ("...\nKernel panic - not syncing: Attempted to kill init!\n", "amx_tile", r"not syncing.*\); this.* has AMX"),
        (
            "Kernel panic - not syncing: no root\n",
            "avx2",
            r"the kernel of swarm1 ended \(Kernel panic.* no root\); see ",
        ),
        ("tap-swarm1: busy\n", "avx2", "^swarm1 ended; see .*swarm1.log"),
    ],
)
def test_a_host_of_a_swarm_that_ends_says_why(
    console: str, cpu: str, said: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "swarm1.log").write_text(console)
    (tmp_path / "cpuinfo").write_text(f"flags\t\t: {cpu}\n")
    monkeypatch.setattr(swarm, "CPU", tmp_path / "cpuinfo")
    monkeypatch.setattr(swarm, "_console", lambda node: tmp_path / f"{node.name}.log")
    monkeypatch.setattr(swarm.Node, "answers", lambda node: False)
    monkeypatch.setattr(groups, "processes", lambda _: [])
    for name in ("_ensure_disk", "_start", "_make_images"):
        monkeypatch.setattr(swarm, name, lambda *_: None)
    with pytest.raises(swarm.LabError, match=said):
        swarm.up(1)


def test_a_swarm_s_packages_are_installed_before_anything_else(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    wanted: list[str] = []

    def install(names: list[str]) -> None:
        wanted.extend(names)
        raise FramestormError("no apt")

    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(lifecycle, "HOME", tmp_path)
    monkeypatch.setattr(lifecycle.packages, "install", install)
    monkeypatch.setenv("PATH", str(tmp_path))  # where nothing is
    with pytest.raises(FramestormError, match="no apt"):
        lifecycle.swarm_up(1)
    assert {"iproute2", "docker.io"} < set(wanted)


def test_a_kernel_that_cannot_be_fetched_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "apt-get").write_text("#!/bin/sh\necho 'E: no such package' >&2\nexit 100\n")
    (tmp_path / "apt-get").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(swarm, "HOME", tmp_path)
    monkeypatch.setattr(swarm.archives, "of_this_machine", list)
    with pytest.raises(FramestormError, match="E: no such package"):
        swarm._ensure_disk()


@pytest.mark.parametrize(("delay_ms", "loss"), [("nan", "0"), ("inf", "0"), ("-1", "0"), ("1", "nan"), ("1", "1.5")])
def test_a_distance_that_is_none_is_refused(delay_ms: str, loss: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["distance.py", "near", "far", "--delay-ms", delay_ms, "--loss", loss])
    monkeypatch.setattr(distance, "make_device", lambda name: pytest.fail(f"{name} was made"))
    with pytest.raises(SystemExit):
        distance.main()
