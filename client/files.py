"""Files that are there whole or not at all."""

import os
from pathlib import Path


def write_whole(path: Path, content: bytes) -> None:
    """Write a new read-only file, without flushing it to disk; the caller does that."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o444)
    with open(descriptor, "wb") as file:  # noqa: PTH123 - a descriptor, no path
        file.write(content)
