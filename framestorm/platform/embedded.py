"""The embedded target: a function's own HTTP app on this machine's loopback, for the length of a run."""

import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from pydantic import Field

from framestorm import paths
from framestorm.errors import FramestormError, UsageError
from framestorm.guard import Guarded
from framestorm.machine import LOOPBACK, answers, last_lines, port_holder, wait_until
from framestorm.plain import tell
from framestorm.platform.base import Check, Platform, TargetSettings, attempt
from framestorm.setup.pieces import CHAT_VENV, FACE_GRAPH, FUNCTION_VENV, Piece

LOG = "target.log"
READY_WITHIN_S = 90.0


FunctionName = Literal["face-blur", "chat"]
FACE_BLUR: FunctionName = "face-blur"


@dataclass(frozen=True)
class EmbeddedFunction:
    """A function of the kit that can be the embedded target.

    path: what follows /function/NAME. package: what its versions are told by.
    """

    folder: Path
    python: Path
    pieces: tuple[Piece, ...]
    package: str
    path: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)


FUNCTIONS: Mapping[FunctionName, EmbeddedFunction] = {
    "face-blur": EmbeddedFunction(
        paths.FACE_BLUR,
        paths.FUNCTION_PYTHON,
        (FUNCTION_VENV, FACE_GRAPH),
        "tensorflow_cpu",
        environment={"FACE_MODEL": str(paths.FACE_GRAPH)},
    ),
    "chat": EmbeddedFunction(paths.CHAT, paths.CHAT_PYTHON, (CHAT_VENV,), "numpy", "/v1/chat/completions"),
}


def function_at(url: str | None) -> FunctionName:
    """Return the function that a plan means, by the address that it has by default."""
    path = urlsplit(url or "").path
    named = (name for name in FUNCTIONS if f"{path}/".startswith(f"/function/{name}/"))
    return next(named, FACE_BLUR)


class EmbeddedSettings(TargetSettings):
    """What runs as the embedded target."""

    kind: Literal["embedded"] = "embedded"
    function: FunctionName = Field(default=FACE_BLUR, description="the function of the kit that is started")

    def texts(self) -> dict[str, str]:
        """Return the settings for a page, without the usual function."""
        return {} if self.function == FACE_BLUR else super().texts()


class Embedded(Platform[EmbeddedSettings]):
    """A function as the kit runs it itself; over slaves, face-blur is on the function host of the inventory."""

    kind = "embedded"
    settings = EmbeddedSettings
    serves_any_function = False
    runs_with_load = True
    _guarded: Guarded | None = None
    function: FunctionName = FACE_BLUR  # of a plan that is not of a study

    def pieces(self, settings: Sequence[EmbeddedSettings] = ()) -> Sequence[Piece]:
        functions = dict.fromkeys(each.function for each in settings) or (self.function,)
        return () if self.site.over_slaves else [piece for each in functions for piece in FUNCTIONS[each].pieces]

    def checks(self, points: Mapping[str, EmbeddedSettings], usual: Mapping[str, object]) -> Iterator[Check]:
        if not self.site.over_slaves:
            yield attempt(f"port {self.site.port}", "free", lambda: self._check_port("kind: url"))

    def _bring_to(self, settings: EmbeddedSettings) -> str:
        if self.site.over_slaves:
            return ""
        self._check_port("-Jurl=")
        self.function = settings.function
        # Shaped like an address behind a gateway, so that plans and clients see no difference.
        return f"http://{LOOPBACK}:{self.site.port}/function/{self.function}{FUNCTIONS[self.function].path}"

    @contextmanager
    def serving(self, run_dir: Path) -> Iterator[Mapping[str, Guarded]]:
        log, of_function = run_dir / LOG, FUNCTIONS[self.function]
        environment = {**of_function.environment, **os.environ}
        app: tuple[str | Path, ...] = (of_function.python, of_function.folder / "app.py", "--host", LOOPBACK)
        with Guarded([*app, "--port", str(self.site.port)], log, environment) as self._guarded:
            tell("starting the embedded target …")
            self._wait_until_ready(self._guarded, log)
            yield {"target": self._guarded}

    def versions(self) -> Mapping[str, str]:
        if self.site.over_slaves:
            return {}
        of_function = FUNCTIONS[self.function]
        installed = of_function.python.parents[1].glob(f"lib/python*/site-packages/{of_function.package}-*.dist-info")
        versions = [each.name.split("-")[1].removesuffix(".dist") for each in installed]
        return {of_function.package.partition("_")[0]: version for version in versions[:1]}

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
