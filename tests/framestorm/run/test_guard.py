import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from framestorm import guard
from framestorm.guard import Guarded
from framestorm.machine import wait_until

# Starts a child that leaves its session and ignores SIGTERM, the worst that a plan may start; then waits for ever.
STUBBORN = r"""
import os, signal, subprocess, sys, time
child = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(600)"
orphaner = f"import subprocess, sys\nprint(subprocess.Popen([sys.executable, '-c', {child!r}], "
orphaner += "start_new_session=True, stdout=subprocess.DEVNULL).pid)"
print(subprocess.run([sys.executable, "-c", orphaner], stdout=subprocess.PIPE, text=True).stdout.strip(), flush=True)
time.sleep(600)
"""


def printed_pid(log: Path) -> int:
    assert wait_until(lambda: log.exists() and log.read_text().strip(), 20)
    return int(log.read_text())


def gone(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


@pytest.mark.parametrize(("code", "status"), [("pass", 0), ("raise SystemExit(7)", 7), ("import os; os.abort()", 134)])
def test_status_is_the_commands(tmp_path: Path, code: str, status: int) -> None:
    with Guarded([sys.executable, "-c", code], tmp_path / "log", os.environ) as guarded:
        assert guarded.wait(20) == status


def test_stop_ends_orphans_that_ignore_being_asked(tmp_path: Path) -> None:
    with Guarded([sys.executable, "-c", STUBBORN], tmp_path / "log", os.environ) as guarded:
        orphan = printed_pid(tmp_path / "log")
        assert orphan in [process.pid for process in guarded.processes()]
    assert gone(orphan)


def test_a_command_that_ends_leaves_no_orphan(tmp_path: Path) -> None:
    code = STUBBORN.replace("\ntime.sleep(600)\n", "\n")
    with Guarded([sys.executable, "-c", code], tmp_path / "log", os.environ) as guarded:
        assert guarded.wait(20) == 0
        assert gone(printed_pid(tmp_path / "log"))


@pytest.mark.parametrize("killed", ["conductor", "guard"])
def test_nothing_outlives_a_kill(tmp_path: Path, killed: str) -> None:
    # The stand-in for a conductor: it starts a guard with a pipe as Guarded does, then hangs.
    conductor = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import subprocess, sys, time\n"
            "guard = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=open(sys.argv[-1], 'w'))\n"
            "print(guard.pid, flush=True)\n"
            "time.sleep(600)",
            *(sys.executable, guard.__file__, sys.executable, "-c", STUBBORN, str(tmp_path / "log")),
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert conductor.stdout is not None
        guard_pid = int(conductor.stdout.readline())
        orphan = printed_pid(tmp_path / "log")
        command = [process.pid for process in psutil.Process(guard_pid).children()]
        if killed == "conductor":
            conductor.kill()
            assert wait_until(lambda: all(map(gone, [guard_pid, orphan, *command])), 10)
        else:
            os.kill(guard_pid, signal.SIGKILL)
            # Its command goes with it; what the command had let go of is nobody's then.
            assert wait_until(lambda: gone(command[0]), 10)
            os.kill(orphan, signal.SIGKILL)
    finally:
        conductor.kill()
        conductor.communicate()


# Root without the right to signal others stands in for an ordinary user, whose plan starts a program by sudo.
ORDINARY = ("setpriv", "--bounding-set=-kill")
BY_ANOTHER = """
setpriv --reuid 65534 sleep 60 >/dev/null 2>&1 &
other=$!
until [ "$(stat -c %u /proc/$other)" = 65534 ]; do sleep 0.05; done
sleep 600 >/dev/null 2>&1 &
echo $other $!
exit 7
"""


def test_a_process_of_another_account_is_left_and_all_others_end() -> None:
    command = [*ORDINARY, sys.executable, guard.__file__, "sh", "-c", BY_ANOTHER]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as guarding:
        assert guarding.stdout is not None and guarding.stderr is not None
        other, own = map(int, guarding.stdout.readline().split())
        assert guarding.wait(60) == 7
        assert gone(own) and not gone(other)
        os.kill(other, signal.SIGKILL)
        assert guarding.stderr.read().strip().endswith(f"end them yourself: {other}")
