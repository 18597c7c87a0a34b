"""What set-up tells: its commands with their output in a log, and a line for the user on stderr."""

import contextlib
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from framestorm import paths
from framestorm.errors import FramestormError

LOG = paths.LOCAL / "setup.log"


def call(command: Sequence[str | Path]) -> None:
    """Run a command that makes a piece; the set-up log gets it, when it began, how long it took, and its output.

    Raises:
        FramestormError: it failed; the message ends with the last lines of its output.
    """
    began, began_s = time.strftime("%Y-%m-%d %H:%M:%S %z"), time.monotonic()
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, check=False
    )
    # Written in one go after the command has ended, because other pieces are made at the same time.
    with LOG.open("ab") as log:
        took_s = time.monotonic() - began_s
        log.write(f"$ {' '.join(map(str, command))}  # {began}, {took_s:.1f} s\n".encode() + done.stdout)
    if done.returncode != 0:
        tail = "\n".join(done.stdout.decode(errors="replace").splitlines()[-12:])
        raise FramestormError(f"set-up failed in `{command[0]} …`, whole output in {paths.shown(LOG)}:\n{tail}")


def say(text: str) -> None:
    """Print a part of a line on stderr at once, where somebody reads it."""
    with contextlib.suppress(OSError):
        sys.stderr.write(text)
        sys.stderr.flush()
