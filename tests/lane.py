"""A lane: a lab of its own for some of the lab's tests, at the same addresses and paths as that of the others."""

import ctypes
import subprocess
from pathlib import Path

from framestorm import paths
from framestorm.setup import archives
from lab import base
from lab.hosts import HOME

LAB_FOLDERS = (HOME, paths.LOCAL / "ssh", paths.LOCAL / "deploy")
_NEW_FILES, _NEW_NETWORK = 0x00020000, 0x40000000  # CLONE_NEWNS, CLONE_NEWNET of unshare(2)


def enter(lane: Path) -> None:
    """Give this thread, and all that it starts from now on, a network of its own, and a lab's folders below `lane`."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_NEW_FILES | _NEW_NETWORK):
        raise OSError(ctypes.get_errno(), "unshare failed")
    _call("ip", "link", "set", "lo", "up")
    _call("mount", "--make-rprivate", "/")
    for folder in LAB_FOLDERS:
        folder.mkdir(mode=0o700, exist_ok=True)
        own = lane / folder.name
        own.mkdir(parents=True, mode=0o700)
        if folder == HOME:
            system = base.current(archives.of_this_machine())  # of all lanes
            (own / system.name).mkdir()
            _call("mount", "--bind", "-o", "ro", system, own / system.name)
        _call("mount", "--rbind", own, folder)


def _call(*command: str | Path) -> None:
    subprocess.run(command, check=True)
