"""Minimal systems for hosts, nodes and images, unpacked from the distribution's archives that this machine uses."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from framestorm.errors import FramestormError
from framestorm.machine import execute
from framestorm.setup import packages
from framestorm.setup.log import call

# Settings of this machine's apt without which its archives may be out of reach; mmdebstrap does not read them itself.
_FOR_MMDEBSTRAP = ("http::Proxy", "https::Proxy", "Check-Valid-Until", "Check-Date")


@dataclass(frozen=True)
class Archive:
    """A line of apt's sources that leads to the distribution's own packages."""

    url: str
    suite: str
    component: str
    signed_by: str

    @property
    def line(self) -> str:
        options = f" [signed-by={self.signed_by}]" if self.signed_by.startswith("/") else ""
        return f"deb{options} {self.url} {self.suite} {self.component}"


def of_this_machine() -> list[Archive]:
    """Return the distribution's archives that this machine itself uses; other vendors' are left out."""
    layout = "$(ORIGIN)|$(REPO_URI)|$(RELEASE)|$(COMPONENT)|$(SIGNED_BY)"
    known_archives = []
    for line in execute("apt-get", "indextargets", "--format", layout, "Created-By: Packages").splitlines():
        origin, url, suite, component, signed_by = line.split("|")
        archive = Archive(url, suite, component, signed_by)
        if origin in ("Debian", "Ubuntu") and archive not in known_archives:
            known_archives.append(archive)
    if not known_archives:
        raise FramestormError("apt knows no archive of Debian or Ubuntu; run `apt-get update` first")
    return known_archives


def unpack(root: Path, included: Sequence[str], sources: Sequence[Archive]) -> None:
    """Unpack a minimal system with these packages below `root`, by mmdebstrap, which is installed if it is missing."""
    packages.install(["mmdebstrap"])
    root.parent.mkdir(parents=True, exist_ok=True)
    # A proxy's password is neither for the command line, which all accounts and the log see, nor for the system.
    with tempfile.NamedTemporaryFile("w", suffix=".conf") as settings:
        settings.write(execute("apt-config", "dump", *(f"Acquire::{name}" for name in _FOR_MMDEBSTRAP)))
        settings.flush()
        command = ["mmdebstrap", "--mode=root", "--variant=minbase", "--format=directory", f"--aptopt={settings.name}"]
        command += [f"--include={','.join(included)}", sources[0].suite, str(root), *(each.line for each in sources)]
        call(command)
    (root / "etc/apt/apt.conf.d/99mmdebstrap").unlink(missing_ok=True)
