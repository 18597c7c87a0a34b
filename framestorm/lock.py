"""A lock on a folder, for what one process at a time may do in it."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from framestorm import paths
from framestorm.errors import FramestormError


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Keep other processes from running what is in the folder of `file` during the block; killed, it locks nothing.

    The file is made if it is missing. It has to be one that is never replaced: another file has another lock.

    Raises:
        FramestormError: another process is running it.
    """
    with file.open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            shown = paths.shown(file.parent)
            raise FramestormError(f"{shown} is being run by another process; wait for it, or end it") from None
        yield
