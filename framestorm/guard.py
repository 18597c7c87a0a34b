"""Runs one command and sees to it that nothing of it outlives the conductor.

    guard.py COMMAND [ARG ...]

Run as a script of its own. Its standard input is the conductor's end of a pipe: when that closes, because the conductor
stops it or was itself killed, the command and every process that came of it are ended. As a child subreaper it also
inherits those whose parents are gone: a frame client that JMeter left behind at its sampler's time-out.
"""

import ctypes
import os
import select
import signal
import subprocess
import sys
import time

import psutil

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
GRACE_S = 5.0
POLL_S = 0.2
LIBC = ctypes.CDLL(None, use_errno=True)


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
    # Should the guard itself be killed, its command goes too.
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _end_descendants(child: subprocess.Popen[bytes]) -> None:
    """Ask all that came of the command to end, then make them."""
    deadline_s = time.monotonic() + GRACE_S
    asked: set[psutil.Process] = set()
    while descendants := _alive():
        for process in descendants:
            try:
                if time.monotonic() >= deadline_s:
                    process.kill()
                elif process not in asked:
                    process.terminate()
                    asked.add(process)
            except psutil.NoSuchProcess:
                continue
        time.sleep(POLL_S / 4)
        child.poll()
        _reap_strangers(child.pid)


def _alive() -> list[psutil.Process]:
    alive = []
    for process in psutil.Process().children(recursive=True):
        try:
            if process.status() != psutil.STATUS_ZOMBIE:
                alive.append(process)
        except psutil.NoSuchProcess:
            continue
    return alive


def _reap_strangers(own_child_pid: int) -> None:
    """Take the exit status of inherited processes, which would stay zombies; the command's own is left to Popen."""
    for process in psutil.Process().children():
        if process.pid != own_child_pid:
            try:
                os.waitpid(process.pid, os.WNOHANG)
            except ChildProcessError:
                continue


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
