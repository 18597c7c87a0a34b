import getpass
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from framestorm import paths, probe
from framestorm.machine import wait_until


def test_usage_is_of_an_account_and_of_the_whole_host() -> None:
    usage = probe.usage(probe.processes(getpass.getuser()))
    assert usage.processes >= 1
    assert usage.cpu_s > 0
    assert usage.rss_bytes >= os.sysconf("SC_PAGE_SIZE")
    assert 0 < usage.host_memory_bytes < os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


FORKS = """
import os, time
held = b"x" * 30_000_000
for _ in range(4):
    if os.fork() == 0:
        break
print(flush=True)
time.sleep(60)
"""


def test_what_forks_share_is_counted_once() -> None:
    with subprocess.Popen([sys.executable, "-c", FORKS], stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout is not None
        for _ in range(5):
            process.stdout.readline()
        children = map(int, Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split())
        usage = probe.usage([process.pid, *children])
        assert usage.processes == 5
        assert 30_000_000 < usage.rss_bytes < 90_000_000
        assert probe.usage([process.pid]).rss_bytes > 30_000_000
        os.killpg(process.pid, 9)


def test_what_programs_share_is_counted_once() -> None:
    """As the launchers of users do, which are no forks of each other."""
    programs = [
        subprocess.Popen(["perl", "-e", "$| = 1; print 1; sleep 60"], stdout=subprocess.PIPE) for _ in range(30)
    ]
    try:
        for each in programs:
            assert each.stdout is not None and each.stdout.read(1) == b"1"
        alone = probe.usage([programs[0].pid]).rss_bytes
        assert 0 < probe.usage([each.pid for each in programs]).rss_bytes < 0.6 * 30 * alone
    finally:
        for each in programs:
            each.kill()
            each.communicate()


def test_a_missing_file_has_no_digest(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a")
    assert probe.digest(tmp_path, ["a"]) != probe.digest(tmp_path, [])
    assert probe.digest(tmp_path, ["a", "b"]) is None


@pytest.mark.parametrize("jar", [None, b"no jar", {"framestorm/other": "x"}, {probe.ADDITIONS_OF: "a1"}])
def test_additions_to_jmeter_say_what_they_were_made_of(jar: bytes | dict[str, str] | None, tmp_path: Path) -> None:
    path = tmp_path / probe.ADDITIONS
    path.parent.mkdir(parents=True)
    if isinstance(jar, bytes):
        path.write_bytes(jar)
    elif jar:
        with zipfile.ZipFile(path, "w") as file:
            for name, text in jar.items():
                file.writestr(name, text)
    assert probe.additions(tmp_path) == (jar.get(probe.ADDITIONS_OF) if isinstance(jar, dict) else None)


HANDLES = "import signal, time; signal.signal(signal.SIGTERM, lambda *_: None); print(flush=True); time.sleep(60)"
IGNORES = "import time; print(flush=True); time.sleep(60)"


@pytest.mark.parametrize(
    ("command", "is_client"),
    [
        ([sys.executable, "-c", HANDLES, "any_client.py"], True),
        ([sys.executable, "-c", IGNORES, "client.py"], False),
        ([sys.executable, "-c", HANDLES, "/kit/client/launch.pl"], False),
        ([sys.executable, "-c", HANDLES, "-jar", "/opt/jmeter/bin/ApacheJMeter.jar"], False),
        ([sys.executable, "-c", HANDLES, "-cp", "/opt/jmeter/bin/ApacheJMeter.jar:/opt/jmeter/lib/*"], False),
    ],
)
def test_a_client_is_what_handles_being_told_to_end(command: list[str], is_client: bool) -> None:
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert probe.clients([process.pid, 2**22]) == ([process.pid] if is_client else [])
        process.kill()


def test_a_timeout_around_a_client_is_none_itself() -> None:
    with subprocess.Popen(["timeout", "60", sys.executable, "-c", HANDLES], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        (child,) = map(int, Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split())
        assert probe.clients([process.pid, child]) == [child]
        os.kill(child, 9)


TRAPS = "trap 'exit 9' TERM; echo; while :; do sleep 0.1; done"
STOPS = "import sys; from framestorm import probe; probe.stop_clients(map(int, sys.argv[1:]), set())"


def test_a_client_of_another_account_is_left_alone() -> None:
    """Root without the right to signal others stands in for an ordinary user, whose plan starts a program by sudo."""
    commands = (["setpriv", "--reuid", "65534", "sh", "-c", TRAPS], ["sh", "-c", TRAPS])
    users = [subprocess.Popen(command, stdout=subprocess.PIPE) for command in commands]
    try:
        for each in users:
            assert each.stdout is not None and each.stdout.readline()
        pids = [str(each.pid) for each in users]
        command = ["setpriv", "--bounding-set=-kill", sys.executable, "-c", STOPS, *pids]
        subprocess.run(command, cwd=paths.ROOT, check=True)
        assert users[1].wait(20) == 9
        assert users[0].poll() is None
    finally:
        for each in users:
            each.kill()
            each.communicate()


def test_the_name_of_a_program_may_be_any_bytes(tmp_path: Path) -> None:
    """Of a longer name the kernel keeps 15 bytes, which may end within a letter."""
    program = tmp_path / "téléchargé-çà"
    program.symlink_to("/bin/sleep")
    with subprocess.Popen([program, "60"]) as process:
        try:
            name = Path(f"/proc/{process.pid}/comm")
            # The kernel names a process a moment after the program that started it goes on.
            assert wait_until(lambda: name.read_bytes()[14:15] == b"\xc3", 10), "cut"
            assert probe.usage([process.pid, os.getpid()]).processes == 2
            assert probe.clients([process.pid]) == []
        finally:
            process.kill()


SERVER, POD, OTHER = "system.slice/server.service", "kubepods/pod1", "user.slice"


@pytest.mark.parametrize(
    ("own", "files", "cores"),
    [
        ("0::/", {}, 4),
        ("0::/", {"cpu.max": "max 100000", "cpu.stat": "usage_usec 9000000"}, 4),
        ("0::/", {"cpu.max": "50000 100000", "cpu.stat": "usage_usec 9000000\nuser_usec 1"}, 0.5),
        ("0::/", {"cpu.max": "800000 100000", "cpu.stat": "usage_usec 9000000"}, 4),
        (
            f"0::/{SERVER}",
            {
                "system.slice/cpu.max": "300000 100000",
                "system.slice/cpu.stat": "usage_usec 9000000",
                f"{SERVER}/cpu.max": "10000 30000",
                f"{SERVER}/cpu.stat": "usage_usec 9000000",
                f"{OTHER}/cpu.max": "10000 100000",
                f"{OTHER}/cpu.stat": "usage_usec 1",
            },
            0.333,
        ),
        (
            f"4:cpuset:/{POD}\n3:cpu,cpuacct:/{POD}\n0::/",
            {
                f"cpu,cpuacct/{POD}/cpu.cfs_quota_us": "150000\n",
                f"cpu,cpuacct/{POD}/cpu.cfs_period_us": "100000\n",
                "cpu,cpuacct/cpu.cfs_quota_us": "-1\n",
                "cpu,cpuacct/cpu.cfs_period_us": "100000\n",
                f"cpuacct/{POD}/cpuacct.usage": "9000000000\n",
            },
            1.5,
        ),
        # Within a container, which sees its own group as the root.
        (
            f"2:cpuacct:/{POD}\n1:cpu:/{POD}",
            {
                "cpu/cpu.cfs_quota_us": "200000",
                "cpu/cpu.cfs_period_us": "100000",
                "cpuacct/cpuacct.usage": "9000000000",
            },
            2,
        ),
    ],
)
def test_the_cores_are_those_that_cgroups_leave(
    own: str, files: dict[str, str], cores: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3})
    (tmp_path / "self").mkdir()
    (tmp_path / "self" / "cgroup").write_text(f"{own}\n")
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    for name in ("meminfo", "stat"):
        (tmp_path / name).write_text(Path("/proc", name).read_text())
    monkeypatch.setattr(probe, "PROC", tmp_path)
    monkeypatch.setattr(probe, "CGROUPS", tmp_path)
    assert probe.cores() == cores
    quota = probe.usage([]).quota
    assert (None if quota is None else (round(quota.cores, 3), quota.used_s)) == ((cores, 9.0) if cores < 4 else None)


@pytest.mark.parametrize(
    ("files", "memory"),
    [
        ({}, (8 << 30, 6 << 30)),
        ({"memory.max": "max", "memory.current": f"{1 << 30}"}, (8 << 30, 6 << 30)),
        ({"memory.max": f"{2 << 30}", "memory.current": f"{1 << 30}"}, (2 << 30, (1 << 30) + 4096)),
        ({"memory.max": f"{7 << 30}", "memory.current": f"{1 << 20}"}, (7 << 30, 6 << 30)),  # the host has no more
    ],
)
def test_the_memory_is_what_cgroups_leave(
    files: dict[str, str], memory: tuple[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "self").mkdir()
    (tmp_path / "self" / "cgroup").write_text("0::/\n")
    for name, text in {**files, "memory.stat": "anon 1\ninactive_file 4096\n"}.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "meminfo").write_text(f"MemTotal:  {8 << 20} kB\nMemAvailable:  {6 << 20} kB\n")
    (tmp_path / "stat").write_text(Path("/proc/stat").read_text())
    monkeypatch.setattr(probe, "PROC", tmp_path)
    monkeypatch.setattr(probe, "CGROUPS", tmp_path)
    assert probe.memory() == memory
    assert probe.usage([]).host_memory_bytes == memory[0] - memory[1]


@pytest.mark.parametrize(
    ("busy_s", "group_s", "percent"),
    [
        (0.6, 0.5, 50),  # the cgroup uses what it may
        (3.4, 0.2, 20),  # the other cores are not for it
        (3.9, 0.1, 40),  # a tenth of a core is idle: four tenths of its five are not to be had
    ],
)
def test_the_cores_of_a_quota_are_busy_if_the_processes_cannot_have_them(
    busy_s: float, group_s: float, percent: float
) -> None:
    before = probe.Usage(10.0, 1.0, 60, 2, 4.0, 90, 4, probe.Quota(0.5, 7.0))
    after = before._replace(at_s=11.0, host_cpu_s=4.0 + busy_s, quota=probe.Quota(0.5, 7.0 + group_s))
    assert after.percents_since(before) == (0, pytest.approx(percent))


ON_ONE_CORE = """
import json, os
from framestorm import paths, probe
os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
before = probe.usage([])
while probe.time.process_time() < 1:
    pass
print(json.dumps([probe.cores(), probe.usage([]).percents_since(before)[1]]))
"""


def test_the_cores_are_those_of_the_affinity() -> None:
    command = [sys.executable, "-c", ON_ONE_CORE]
    done = subprocess.run(command, cwd=paths.ROOT, stdout=subprocess.PIPE, check=True)
    cores, percent = json.loads(done.stdout)
    assert cores == 1 and percent <= 110, "of that core alone, whatever others do on the rest"
