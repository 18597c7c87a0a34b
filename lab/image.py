"""An image of a lab: its hosts as they are, with which further labs begin.

Nothing is copied: what the hosts have on their disks becomes a layer below the disks of all labs that begin with the
image, this one too.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from framestorm.hosts.orders import CONTROLLER_PROPERTIES
from framestorm.machine import wait_until
from framestorm.setup import archives
from lab import base, groups, keys
from lab.hosts import LabError, planned

ENDS_WITHIN_S = 60


def keep(image: Path) -> None:
    """Shut down the hosts that the inventory names, and make an image of them; `up` starts them again."""
    hosts = planned()
    for host in hosts:
        # Its status is of no use: ssh may lose the connection first.
        subprocess.run(keys.ssh(host, "sudo systemctl poweroff"), capture_output=True, check=False)
    if not wait_until(lambda: not [host for host in hosts if groups.processes(host.name)], ENDS_WITHIN_S):
        raise LabError(f"not all hosts ended within {ENDS_WITHIN_S} s; see {hosts[0].console} and the others'")
    draft = image.with_name(f"{image.name}.new")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    for host in hosts:
        host.disk.rename(draft / host.name)
        host.disk.mkdir()
        (host.folder / "image").symlink_to(image / host.name)
    # What this machine needs to reach them.
    shutil.copytree(keys.FOLDER, draft / "ssh")
    shutil.copy(CONTROLLER_PROPERTIES, draft)
    draft.rename(image)


def use(image: Path) -> None:
    """Give a lab without hosts those of an image; `up` starts them."""
    system = base.current(archives.of_this_machine())
    for host in planned():
        host.make_folders(system)
        (host.folder / "image").symlink_to(image / host.name)
        (host.folder / "complete").touch()
    shutil.copytree(image / "ssh", keys.FOLDER)
    shutil.copy(image / CONTROLLER_PROPERTIES.name, CONTROLLER_PROPERTIES)
