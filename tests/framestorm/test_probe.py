import getpass
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from framestorm import probe


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
