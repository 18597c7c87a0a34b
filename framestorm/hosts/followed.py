"""Files of a run that are sent to the conductor as they grow.

This file is sent to the host with the agent, so like the agent it needs only the host's Python (3.10 or later).
"""

import base64
import os
import re
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import BinaryIO

from framestorm import probe
from framestorm.hosts import messages
from framestorm.hosts.messages import CannotError

# Sent of each file before the next look at orders: over a slow network that may take long.
CHUNKS_AT_A_TIME = 8
END_TAG_BYTES = 64  # more than a result tree's end tag and the space around it


class FollowedFiles:
    """The files by name; each is held open, because a restart of JMeter's server puts its log aside."""

    def __init__(self, paths: Mapping[str, Path]) -> None:
        self._missing = dict(paths)
        self._opened: dict[str, BinaryIO] = {}

    @property
    def are_missing(self) -> bool:
        """Whether some are not there yet, or were not when `open` was called last."""
        return bool(self._missing)

    def open(self) -> None:
        """Open those that are there by now.

        Raises:
            CannotError: one is no ordinary file.
            OSError: one is a link.
        """
        for name, path in list(self._missing.items()):
            try:
                self._opened[name] = _opened(path)
            except FileNotFoundError:
                continue
            del self._missing[name]

    def send_growth(self, send: Callable[[messages.Chunk], None], is_over: Callable[[], bool]) -> bool:
        """Send what has been added to each file since the last time; returns whether there may be more.

        is_over: whether what writes them has ended.
        """
        may_be_more = False
        for name, file in self._opened.items():
            for _ in range(CHUNKS_AT_A_TIME):
                stays = os.fstat(file.fileno()).st_size if is_over() else _without_end_tag(file)
                data = file.read(max(0, min(stays - file.tell(), messages.PIECE_BYTES)))
                if not data:
                    break
                send(messages.Chunk(name, base64.b64encode(data).decode()))
            else:
                may_be_more = True
        return may_be_more

    def close(self) -> None:
        """Close them."""
        for file in self._opened.values():
            file.close()

    def count_lines(self) -> dict[str, int]:
        """Return how many lines each has."""
        return {name: probe.count_lines(file) for name, file in self._opened.items()}


def _opened(path: Path) -> BinaryIO:
    """Return a file opened for reading; no link is followed, and what would block, such as a pipe, is refused."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise CannotError(f"{path} is not a file")
    return os.fdopen(descriptor, "rb", buffering=0)  # what was read ahead could be taken back


def _without_end_tag(file: BinaryIO) -> int:
    """Return the bytes of a result tree that stay as they are.

    JMeter ends the tree when all slaves that have started are done. If another starts later, it takes the end back.
    """
    size = os.fstat(file.fileno()).st_size
    tail = os.pread(file.fileno(), END_TAG_BYTES, max(0, size - END_TAG_BYTES))
    end = re.search(rb"\s*</testResults>\s*\Z", tail)
    return size - (len(tail) - end.start()) if end else size
