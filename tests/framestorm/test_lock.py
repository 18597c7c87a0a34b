"""A lock on a folder: whom it keeps out, and that it never outlives its process."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from framestorm import paths
from framestorm.errors import FramestormError
from framestorm.lock import locked

HOLDING = """
import sys, time
from pathlib import Path
from framestorm.lock import locked
with locked(Path(sys.argv[1])):
    print("locked", flush=True)
    time.sleep(600)
"""


def test_a_lock_ends_with_its_process_also_when_that_is_killed(tmp_path: Path) -> None:
    file = tmp_path / ".lock"
    command = [sys.executable, "-c", HOLDING, str(file)]
    with subprocess.Popen(command, cwd=paths.ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout and process.stdout.readline() == "locked\n"
        shown = rf"{tmp_path} is being run by another process; wait for it, or end it"
        with pytest.raises(FramestormError, match=shown), locked(file):
            pass
        process.send_signal(signal.SIGKILL)
    with locked(file):
        pass
