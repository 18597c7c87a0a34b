"""Where a run writes its files, checked before the load."""

import os
import shutil
from pathlib import Path

from framestorm.errors import FramestormError, UsageError

NEEDED_DISK_BYTES = 200 * 2**20
# A run is stopped when a disk has less than this left, so that its end and its report can still be written.
ROOM_FOR_THE_END_BYTES = 32 * 2**20


def check_output(run_dir: Path, samples_copy: Path | None, log_copy: Path | None) -> None:
    """Check the folder of a run, and the files of -l and -j.

    Raises:
        UsageError: the folder or the file of -l exists, or -j is a folder.
        FramestormError: one of them cannot be written, or the disk is nearly full.
    """
    if os.path.lexists(run_dir):  # a link that leads nowhere too
        raise UsageError(f"{run_dir} exists; a run makes its own folder: choose another with -o")
    if samples_copy is not None and os.path.lexists(samples_copy):
        raise UsageError(f"-l {samples_copy}: the file exists; results are never appended to or overwritten")
    if log_copy is not None and log_copy.is_dir():
        raise UsageError(f"-j {log_copy} is a folder; name a file")
    files = {"-o": run_dir, "-l": samples_copy, "-j": log_copy}
    # JMeter makes the folders of its files too.
    parents = {
        option: next(folder for folder in path.absolute().parents if folder.exists())
        for option, path in files.items()
        if path is not None
    }
    parent = parents["-o"]
    for option, folder in parents.items():
        probe = folder / f".framestorm-{os.getpid()}.probe"
        try:
            probe.touch()
            probe.unlink()
        except OSError as error:
            what = f"{folder} cannot be written to: {error.strerror}; fix that, or choose another place with {option}"
            raise FramestormError(what) from None
    free_bytes = shutil.disk_usage(parent).free
    if free_bytes < NEEDED_DISK_BYTES:
        raise FramestormError(
            f"{parent} has {free_bytes / 2**20:.0f} MiB left and a run needs {NEEDED_DISK_BYTES / 2**20:.0f}; make room"
        )


def disk_trouble(disk: str, free_bytes: int) -> str | None:
    """Return the reason to stop a run while its end can still be written to a disk; None if that has room."""
    if free_bytes >= ROOM_FOR_THE_END_BYTES:
        return None
    return f"{disk} has less than {ROOM_FOR_THE_END_BYTES >> 20} MiB left; make room"
