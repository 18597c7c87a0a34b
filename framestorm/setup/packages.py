"""Operating system packages: the missing ones are installed by apt as root or through sudo; see apt.sh."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from framestorm import paths
from framestorm.errors import FramestormError
from framestorm.plain import tell

SCRIPT = Path(__file__).with_name("apt.sh")


def installed() -> frozenset[str]:
    """Return names of all Debian packages that are installed; none where there is no dpkg."""
    if shutil.which("dpkg-query") is None:
        return frozenset()
    query = ["dpkg-query", "--show", "--showformat=${db:Status-Status} ${Package}\n"]
    listing = subprocess.run(query, capture_output=True, text=True, check=True).stdout
    return frozenset(line.split()[1] for line in listing.splitlines() if line.startswith("installed "))


def missing(packages: Iterable[str]) -> list[str]:
    """Return those of the Debian packages that are not installed; all of them where there is no dpkg."""
    present = installed()
    return [package for package in packages if package not in present]


def install(packages: Iterable[str]) -> None:
    """Install those of the packages that are missing; services that come with them are not started, now or at boot.

    Waits for other package installations, and says so on stderr.

    Raises:
        FramestormError: apt is not there, may not be used, or failed; the message holds the line to run by hand.
    """
    needed = missing(packages)
    if not needed:
        return
    names = " ".join(needed)
    if shutil.which("apt-get") is None:
        raise FramestormError(f"this needs packages that are not installed; by their Debian names: {names}")
    as_root: list[str] = []
    if os.geteuid() != 0:
        if shutil.which("sudo") is None or not (sys.stdin.isatty() or _sudo_asks_nothing()):
            raise FramestormError(
                f"packages are missing and this user may not install them; as root: apt-get install {names}"
            )
        as_root = ["sudo"]
    tell(f"framestorm: installing {names}")
    _run_apt([*as_root, "bash", str(SCRIPT), *needed], names)


def _run_apt(command: Sequence[str], names: str) -> None:
    """Run the installation, apt's output into a log; its messages reach the user's stderr."""
    log_path = paths.LOCAL / "apt.log"
    log_path.parent.mkdir(parents=True, exist_ok=True)
    with log_path.open("ab") as log:
        done = subprocess.run(command, stdout=log, check=False)
    if done.returncode != 0:
        tail = "\n".join(log_path.read_text(errors="replace").splitlines()[-8:])
        raise FramestormError(f"`apt-get install {names}` failed; the end of {paths.shown(log_path)}:\n{tail}")


def _sudo_asks_nothing() -> bool:
    return subprocess.run(["sudo", "-n", "true"], capture_output=True, check=False).returncode == 0
