"""Operating system packages: looked for, then installed by apt as root or through sudo."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence

from framestorm import paths
from framestorm.errors import FramestormError


def missing(packages: Sequence[str]) -> list[str]:
    """Those of the Debian packages that are not installed; all of them where there is no dpkg."""
    if shutil.which("dpkg-query") is None:
        return list(packages)
    seen = subprocess.run(
        ["dpkg-query", "--show", "--showformat=${Package} ${db:Status-Status}\n", *packages],
        capture_output=True,
        text=True,
        check=False,
    )
    installed = {line.split()[0] for line in seen.stdout.splitlines() if line.endswith(" installed")}
    return [package for package in packages if package not in installed]


def install(packages: Sequence[str]) -> None:
    """Install what is missing of the packages.

    Raises:
        FramestormError: apt is not there, may not be used, or failed; the message holds the line to run by hand.
    """
    wanted = missing(packages)
    if not wanted:
        return
    by_hand = f"apt-get install {' '.join(wanted)}"
    if shutil.which("apt-get") is None:
        raise FramestormError(f"this needs packages that are not installed; by their Debian names: {' '.join(wanted)}")
    as_root: list[str] = []
    if os.geteuid() != 0:
        if shutil.which("sudo") is None or not (sys.stdin.isatty() or _sudo_asks_nothing()):
            raise FramestormError(f"packages are missing and this user may not install them; as root: {by_hand}")
        as_root = ["sudo"]
    log_path = paths.LOCAL / "apt.log"
    environment = ["env", "DEBIAN_FRONTEND=noninteractive"]
    with log_path.open("ab") as log:
        for command in (["apt-get", "update", "-qq"], ["apt-get", "install", "-y", "-qq", *wanted]):
            done = subprocess.run([*as_root, *environment, *command], stdout=log, stderr=log, check=False)
            if done.returncode != 0:
                raise FramestormError(f"`{' '.join(command)}` failed; its output is in {paths.shown(log_path)}")


def _sudo_asks_nothing() -> bool:
    return subprocess.run(["sudo", "-n", "true"], capture_output=True, check=False).returncode == 0
