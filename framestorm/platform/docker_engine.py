"""A Docker engine, called by its command-line client."""

import os
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from framestorm.errors import FramestormError

CALL_WITHIN_S = 600.0
MOST_LINES = 12  # of an error


@dataclass(frozen=True)
class DockerEngine:
    """The engine of a socket, called with settings of its own; without one, the engine that the user's docker calls.

    settings: the folder of docker's settings, which are not the user's.
    """

    socket: Path | None = None
    settings: Path | None = None

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment in which docker, and programs that call it, find this engine."""
        if self.socket is None:
            return dict(os.environ)
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        return {**kept, "DOCKER_HOST": f"unix://{self.socket}", "DOCKER_CONFIG": str(self.settings)}

    def run(self, *arguments: str, stdin: IO[bytes] | None = None) -> str:
        """Call docker and return its output, without what it says beside that.

        Raises:
            FramestormError: it failed, did not end in time, or is not installed.
        """
        try:
            done = subprocess.run(
                ["docker", *arguments],
                stdin=stdin or subprocess.DEVNULL,
                capture_output=True,
                env=self.environment,
                timeout=CALL_WITHIN_S,
                check=False,
                start_new_session=True,  # a Ctrl-C is for the conductor, which decides
            )
        except subprocess.TimeoutExpired:
            raise FramestormError(f"docker {arguments[0]} did not end within {CALL_WITHIN_S:.0f} s") from None
        except FileNotFoundError:
            raise FramestormError("there is no docker on the PATH; install Docker's command-line client") from None
        output, problem = done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
        if done.returncode != 0:
            tail = "\n".join([*output.splitlines(), *problem.splitlines()][-MOST_LINES:])
            raise FramestormError(f"docker {' '.join(arguments)} failed:\n{tail}")
        return output

    def succeeds(self, *arguments: str) -> bool:
        """Call docker and return whether it succeeds."""
        with suppress(FramestormError):
            self.run(*arguments)
            return True
        return False

    def save(self, images: Sequence[str], archive: Path) -> None:
        """Write images into an archive."""
        self.run("save", "--output", str(archive), *images)

    def load(self, archive: Path) -> None:
        """Take the images of an archive."""
        self.run("load", "--quiet", "--input", str(archive))

    def import_system(self, root: Path, tag: str) -> None:
        """Make an image of an unpacked system."""
        with subprocess.Popen(["tar", "-C", root, "-c", "."], stdout=subprocess.PIPE) as tar:
            self.run("import", "-", tag, stdin=tar.stdout)
        if tar.returncode:
            raise FramestormError(f"docker import failed: tar cannot read {root}")
