"""The embedded target: the face-blur function's own HTTP app on this machine's loopback, for the length of a run."""

import os
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from framestorm import paths
from framestorm.errors import FramestormError, UsageError
from framestorm.guard import Guarded
from framestorm.machine import LOOPBACK, answers, last_lines, port_holder, wait_until
from framestorm.platform.base import Check, Platform, TargetSettings, attempt
from framestorm.setup.pieces import FACE_GRAPH, FUNCTION_VENV, Piece

LOG = "target.log"
READY_WITHIN_S = 90.0


class EmbeddedSettings(TargetSettings):
    """The embedded target has no settings."""

    kind: Literal["embedded"] = "embedded"


class Embedded(Platform[EmbeddedSettings]):
    """The face-blur function as the kit runs it itself; over slaves it is the function host of the inventory."""

    kind = "embedded"
    settings = EmbeddedSettings
    serves_any_function = False
    runs_with_load = True
    _guarded: Guarded | None = None

    def pieces(self) -> Sequence[Piece]:
        return () if self.site.over_slaves else (FUNCTION_VENV, FACE_GRAPH)

    def checks(self, points: Mapping[str, EmbeddedSettings], usual: Mapping[str, object]) -> Iterator[Check]:
        if not self.site.over_slaves:
            yield attempt(f"port {self.site.port}", "free", lambda: self._check_port("kind: url"))

    def _bring_to(self, settings: EmbeddedSettings) -> str:
        if self.site.over_slaves:
            return ""
        self._check_port("-Jurl=")
        # Shaped like an address behind a gateway, so that plans and clients see no difference.
        return f"http://{LOOPBACK}:{self.site.port}/function/face-blur"

    @contextmanager
    def serving(self, run_dir: Path) -> Iterator[Mapping[str, Guarded]]:
        log = run_dir / LOG
        environment = {"FACE_MODEL": str(paths.FACE_GRAPH), **os.environ}
        app: tuple[str | Path, ...] = (paths.FUNCTION_PYTHON, paths.FACE_BLUR / "app.py", "--host", LOOPBACK)
        with Guarded([*app, "--port", str(self.site.port)], log, environment) as self._guarded:
            print("starting the embedded target …", file=sys.stderr, flush=True)
            self._wait_until_ready(self._guarded, log)
            yield {"target": self._guarded}

    def versions(self) -> Mapping[str, str]:
        if self.site.over_slaves:
            return {}
        (tensorflow,) = paths.FUNCTION_PYTHON.parents[1].glob("lib/python*/site-packages/tensorflow_cpu-*.dist-info")
        return {"tensorflow": tensorflow.name.split("-")[1].removesuffix(".dist")}

    def trouble(self) -> str | None:
        status = self._guarded.exit_status() if self._guarded else None
        return None if status is None else f"the embedded target ended during the run with status {status}; see {LOG}"

    def _wait_until_ready(self, guarded: Guarded, log: Path) -> None:
        """Wait for the model to be loaded and warmed up."""
        ready = f"http://{LOOPBACK}:{self.site.port}/_/ready"
        is_ready = wait_until(lambda: guarded.exit_status() is not None or answers(ready), READY_WITHIN_S)
        if (status := guarded.exit_status()) is not None:
            raise FramestormError(f"the embedded target ended with status {status}; {last_lines(log)}")
        if not is_ready:
            raise FramestormError(f"the embedded target was not ready in {READY_WITHIN_S:.0f} s; {last_lines(log)}")

    def _check_port(self, instead: str) -> None:
        """Check that the port is free; `instead` is how to test what listens on it.

        Raises:
            UsageError: there is no such port.
            FramestormError: the port is taken; the message names the process (if visible to this user) and what to do.
        """
        port = self.site.port
        if not 0 < port < 2**16:
            raise UsageError(f"--port {port}: a port is a number from 1 to {2**16 - 1}")
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((LOOPBACK, port))
            except PermissionError:
                raise FramestormError(
                    f"port {port} may not be used by this user; choose one above 1023 by --port"
                ) from None
            except OSError:
                raise FramestormError(
                    f"port {port} for the embedded target is taken by {port_holder(port) or 'another process'}; "
                    f"end that, choose another port by --port, or test what is there by {instead}"
                ) from None
