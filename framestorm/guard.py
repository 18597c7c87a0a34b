"""Long-running parts of a run (JMeter, the embedded target): nothing of them outlives the conductor.

    guard.py COMMAND [ARG ...]

`Guarded` starts a command under this file, run as a script of its own. The script's standard input is the conductor's
end of a pipe: when that closes, because the conductor stops it or was itself killed, the command and every process that
came of it are ended. As a child subreaper it also inherits those whose parents are gone: a client that JMeter
left behind at its sampler's time-out.
"""

import ctypes
import os
import resource
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path

import psutil

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
GRACE_S = 5.0
POLL_S = 0.2
LIBC = ctypes.CDLL(None, use_errno=True)


class Guarded(AbstractContextManager["Guarded"]):
    """A command that runs until it ends, it is stopped, or this process ends in any way."""

    def __init__(
        self,
        command: Sequence[str | Path],
        log_path: Path,
        environment: Mapping[str, str],
        working_dir: Path | None = None,
    ) -> None:
        """Start the command; what it prints goes to `log_path`."""
        with log_path.open("ab") as log:
            self._guard = subprocess.Popen(
                [sys.executable, __file__, *command],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env=dict(environment),
                cwd=working_dir,
                start_new_session=True,
            )

    def __exit__(self, *_: object) -> None:
        self.stop()

    def exit_status(self) -> int | None:
        """Return the command's exit status once nothing of it is left, None until then."""
        return self._guard.poll()

    def wait(self, timeout_s: float) -> int | None:
        """As `exit_status`, after waiting for it up to `timeout_s`."""
        try:
            return self._guard.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None

    def stop(self) -> None:
        """Ask the command to end, make it after a grace period, and return when nothing of it is left."""
        if self._guard.stdin is not None:
            self._guard.stdin.close()
        self._guard.wait()

    def processes(self) -> list[psutil.Process]:
        """Return what runs below the guard at this moment."""
        with suppress(psutil.NoSuchProcess):
            return psutil.Process(self._guard.pid).children(recursive=True)
        return []


def main(command: list[str]) -> int:
    """Run the command to its end or the conductor's; its exit status, or 128 + signal as a shell has it."""
    if LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER) was refused")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # A Ctrl-C is for the conductor, which decides; it reaches this group only from a terminal.
        signal.signal(number, signal.SIG_IGN)
    child = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        preexec_fn=_child_setup,  # noqa: PLW1509 - there are no threads here
    )
    conductor_is_gone = False
    while not conductor_is_gone and child.poll() is None:
        _reap_strangers(child.pid)
        conductor_is_gone = bool(select.select([sys.stdin], [], [], POLL_S)[0]) and not os.read(sys.stdin.fileno(), 1)
    _end_descendants(child)
    status = child.wait()
    return status if status >= 0 else 128 - status


def _child_setup() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # often 1,024 until asked for, and each connection is one
    # Should the guard itself be killed, its command goes too.
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _end_descendants(child: subprocess.Popen[bytes]) -> None:
    """Terminate all descendants of the command, and kill those that are left after the grace period.

    One of another account, as of sudo, cannot be ended: it is left if it has not ended by then.
    """
    deadline_s = time.monotonic() + GRACE_S
    asked: set[psutil.Process] = set()
    while descendants := _alive():
        of_others = []
        is_over = time.monotonic() >= deadline_s
        for process in descendants:
            try:
                if is_over:
                    process.kill()
                elif process not in asked:
                    asked.add(process)
                    process.terminate()
            except psutil.NoSuchProcess:
                pass
            except psutil.AccessDenied:
                of_others.append(process)
        if is_over and len(of_others) == len(descendants):
            pids = ", ".join(str(each.pid) for each in of_others)
            print(f"processes of another account are left, end them yourself: {pids}", file=sys.stderr)
            return
        time.sleep(POLL_S / 4)
        child.poll()
        _reap_strangers(child.pid)


def _alive() -> list[psutil.Process]:
    alive = []
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if process.status() != psutil.STATUS_ZOMBIE:
                alive.append(process)
    return alive


def _reap_strangers(own_child_pid: int) -> None:
    """Take the exit status of inherited processes, which would stay zombies; the command's own is left to Popen."""
    for process in psutil.Process().children():
        if process.pid != own_child_pid:
            with suppress(ChildProcessError):
                os.waitpid(process.pid, os.WNOHANG)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
