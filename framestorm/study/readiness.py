"""Checks of what a study needs: set-up, slaves, and what its platforms need."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from framestorm import paths
from framestorm.errors import FramestormError
from framestorm.hosts.inventory import find_hosts
from framestorm.model.study import Study
from framestorm.platform.base import Check, Platform, Site, attempt
from framestorm.platform.registry import PLATFORMS, Platforms
from framestorm.setup import pieces as setup
from framestorm.study.design import reading
from framestorm.study.design.record import Point


@dataclass(frozen=True)
class Location:
    """Where a study runs, by the command line."""

    gateway: str | None
    slaves: str | None
    inventory: Path
    port: int

    @property
    def site(self) -> Site:
        """What of it is the platforms'."""
        return Site(self.port, self.gateway, over_slaves=self.slaves is not None)


def checks(study: Study, study_file: Path, points: Sequence[Point], location: Location) -> list[Check]:
    """Every check of what a study needs beyond its definition; nothing is started or made."""
    return list(_checks(study, study_file, points, location))


def pieces(points: Sequence[Point], location: Location) -> list[setup.Piece]:
    """The set-up that the points need."""
    wanted = list(setup.FOR_A_RUN)
    for platform in _platforms(points, location):
        wanted += [piece for piece in platform.pieces() if piece not in wanted]
    return [*wanted, setup.ANSIBLE_VENV] if location.slaves is not None else wanted


def _platforms(points: Sequence[Point], location: Location) -> list[Platform[Any]]:
    """The platforms that the points need."""
    platforms = Platforms(location.site)
    return [platforms.of(kind) for kind in dict.fromkeys(point.target.kind for point in points)]


def _checks(study: Study, study_file: Path, points: Sequence[Point], location: Location) -> Iterator[Check]:
    missing = [piece.title for piece in pieces(points, location) if not piece.is_made()]
    yield Check("set-up", True, f"to be made: {', '.join(missing)}" if missing else "made")
    if study.published:
        file = study_file.parent / study.published
        yield attempt("published", paths.shown(file), partial(reading.check_published, file))
    if location.slaves is not None:
        yield _slaves(location)
    platforms = _platforms(points, location)
    if location.gateway is not None and not any(platform.takes_gateway for platform in platforms):
        kinds = " or ".join(kind for kind, platform in PLATFORMS.items() if platform.takes_gateway)
        yield Check("gateway", False, f"--gateway: the study has no target of kind {kinds}; leave it out")
    for platform in platforms:
        targets = {point.id: point.target for point in points if point.target.kind == platform.kind}
        yield from platform.checks(targets, study.target)


def _slaves(location: Location) -> Check:
    if not setup.ANSIBLE_VENV.is_made():
        return Check("slaves", True, f"{location.slaves}; not looked up before the set-up is made")
    try:
        slaves = find_hosts(location.inventory, str(location.slaves)).slaves
    except FramestormError as error:
        return Check("slaves", False, str(error))
    return Check("slaves", True, ", ".join(slave.name for slave in slaves))
