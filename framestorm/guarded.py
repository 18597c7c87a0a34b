"""Long-running parts of a run (JMeter, the embedded target), each under a guard that ends what came of it."""

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

GUARD = Path(__file__).with_name("guard.py")


class Guarded:
    """A command that runs until it ends, is stopped, or this process is gone, however that happens."""

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
                [sys.executable, GUARD, *command],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env=dict(environment),
                cwd=working_dir,
                start_new_session=True,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def exit_status(self) -> int | None:
        """The command's exit status once nothing of it is left, None until then."""
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
        """What runs below the guard at this moment."""
        try:
            return psutil.Process(self._guard.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            return []
