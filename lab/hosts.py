"""Which hosts a lab has, and where each keeps its things."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from framestorm import paths
from framestorm.errors import FramestormError

HOME = paths.LOCAL / "lab"

NETWORK = "198.18.0.0/24"  # RFC 2544: set aside for test networks, so it is nobody's real address
BRIDGE_ADDRESS = "198.18.0.1"
CONTROLLER_ADDRESS = "198.18.0.254"  # the controlling machine's own end in the lab's network
USER = "tester"  # logs in by key and may use sudo, as on a VM

DEFAULT_SLAVES = 2
MAX_SLAVES = 50
_SLAVE = re.compile(r"slave([1-9][0-9]?)")
_FIXED = {"master1": 2, "function1": 3, "outsider": 200}


class LabError(FramestormError):
    """The lab cannot do this; the message says what is wrong and what to do."""


@dataclass(frozen=True)
class LabHost:
    """One host of the lab; its files are below `.local/lab/hosts/NAME`."""

    name: str

    def __post_init__(self) -> None:
        slave = _SLAVE.fullmatch(self.name)
        if self.name not in _FIXED and not (slave and int(slave[1]) <= MAX_SLAVES):
            raise LabError(
                f"no host of a lab is called {self.name!r}: there are {', '.join(_FIXED)}, slave1 to slave{MAX_SLAVES}"
            )

    @property
    def address(self) -> str:
        slave = _SLAVE.fullmatch(self.name)
        return f"198.18.0.{10 + int(slave[1]) if slave else _FIXED[self.name]}"

    @property
    def folder(self) -> Path:
        return HOME / "hosts" / self.name

    @property
    def disk(self) -> Path:
        """What the host has written over its base."""
        return self.folder / "disk"

    @property
    def layers(self) -> list[Path]:
        """What is below its disk, topmost first: its part of an image, if it has one, and its base."""
        return [layer.resolve() for layer in (self.folder / "image", self.folder / "base") if layer.exists()]

    def make_folders(self, base: os.PathLike[str]) -> None:
        """Make the empty folders of a host that stands on this base."""
        for folder in (self.disk, self.folder / "work", self.folder / "root"):
            folder.mkdir(parents=True)
        (self.folder / "base").symlink_to(base)

    @property
    def console(self) -> Path:
        return self.folder / "console.log"


def planned(slaves: int = DEFAULT_SLAVES, outsider: bool = False) -> list[LabHost]:
    """Return the hosts of a lab with so many slaves, in the order they are shown."""
    names = ["master1", *(f"slave{number}" for number in range(1, slaves + 1)), "function1"]
    return [LabHost(name) for name in [*names, *(["outsider"] if outsider else [])]]


def existing() -> list[LabHost]:
    """Return the hosts that have a disk, running or not."""
    folder = HOME / "hosts"
    if not folder.is_dir():
        return []
    hosts = [LabHost(entry.name) for entry in folder.iterdir() if (entry / "disk").is_dir()]
    return sorted(hosts, key=lambda host: [int(part) for part in host.address.split(".")])
