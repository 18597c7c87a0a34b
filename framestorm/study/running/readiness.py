"""Whether all that a study needs is there: set-up, ports or the local OpenFaaS, slaves, gateway, rights."""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from framestorm import paths, setup, target
from framestorm.errors import FramestormError
from framestorm.openfaas import parts, services, state
from framestorm.slaves.inventory import find_hosts
from framestorm.study.design import reading
from framestorm.study.design.definition import Study
from framestorm.study.design.matrix import Point
from framestorm.study.design.target import Target, stack_functions

NAMED_AT_MOST = 5


@dataclass(frozen=True)
class Place:
    """Where a study runs, by the command line."""

    gateway: str | None
    slaves: str | None
    inventory: Path
    port: int


@dataclass(frozen=True)
class Check:
    """Something that a study needs: whether it is there, or why not and what to do."""

    what: str
    is_there: bool
    words: str


def checks(study: Study, study_file: Path, points: Sequence[Point], place: Place) -> list[Check]:
    """Every check of what a study needs beyond its definition; nothing is started or made."""
    return list(_checks(study, study_file, points, place))


def pieces(points: Sequence[Point], place: Place) -> list[setup.Piece]:
    """The set-up that the points need."""
    wanted = list(setup.FOR_A_RUN)
    if _needs_local(points, place):
        wanted += [piece for piece in parts.PIECES if piece not in wanted]
    return [*wanted, setup.ANSIBLE_VENV] if place.slaves is not None else wanted


def _needs_local(points: Sequence[Point], place: Place) -> bool:
    return place.gateway is None and any(point.target["kind"] == "openfaas" for point in points)


def _checks(study: Study, study_file: Path, points: Sequence[Point], place: Place) -> Iterator[Check]:
    kinds = {str(point.target["kind"]) for point in points}
    missing = [piece.title for piece in pieces(points, place) if not piece.is_made()]
    yield Check("set-up", True, f"to be made: {', '.join(missing)}" if missing else "made")
    if study.published:
        file = study_file.parent / study.published
        yield _attempt("published", paths.shown(file), partial(reading.check_published, file))
    if "embedded" in kinds and place.slaves is None:
        yield _attempt(f"port {place.port}", "free", lambda: target.check_port_free(place.port, "kind: url"))
    for url in sorted({str(point.target["url"]) for point in points if point.target["kind"] == "url"}):
        yield _attempt(url, "answers", partial(target.check_reachable, url))
    if place.slaves is not None:
        yield _slaves(place)
    if place.gateway is not None:
        yield from _gateway(study, points, place.gateway, kinds)
    elif "openfaas" in kinds:
        yield from _local(points, place)


def _slaves(place: Place) -> Check:
    if not setup.ANSIBLE_VENV.is_made():
        return Check("slaves", True, f"{place.slaves}; not looked up before the set-up is made")
    try:
        found = find_hosts(place.inventory, str(place.slaves)).slaves
    except FramestormError as error:
        return Check("slaves", False, str(error))
    return Check("slaves", True, ", ".join(slave.name for slave in found))


def _gateway(study: Study, points: Sequence[Point], gateway: str, kinds: set[str]) -> Iterator[Check]:
    if "openfaas" not in kinds:
        yield Check("gateway", False, "--gateway: the study has no target of kind openfaas; leave it out")
        return
    words = "answers; functions, replicas and limits are taken as they are there"
    yield _attempt(gateway, words, lambda: target.check_reachable(gateway))
    refused: dict[str, list[str]] = {}
    for point in points:
        if point.target["kind"] == "openfaas":
            what = Target(**point.target).asks_of_a_gateway_elsewhere(study.target)
            if what is not None:
                refused.setdefault(what, []).append(point.id)
    for what, ids in refused.items():
        more = f" and {len(ids) - NAMED_AT_MOST} more" if len(ids) > NAMED_AT_MOST else ""
        named = "; ".join(ids[:NAMED_AT_MOST]) + more
        yield Check(what, False, f"a gateway elsewhere cannot be brought to it; leave out by --only: {named}")


def _local(points: Sequence[Point], place: Place) -> Iterator[Check]:
    if place.slaves is not None:
        words = "slaves cannot reach the local one, which is on loopback; test one that they reach by --gateway URL"
        yield Check("OpenFaaS", False, words)
        return
    started = state.read()
    if started is not None and not started.dead():
        yield Check("OpenFaaS", True, f"runs here, with the {started.backend} backend, and is used")
    elif started is not None:
        yield Check("OpenFaaS", True, f"{', '.join(started.dead())} of it has ended; it is started anew")
    else:
        words = "is started for the study; its ports are free"
        yield _attempt("OpenFaaS", words, lambda: services.check_ports_free(services.programs("process")))
    backend = started.backend if started else "process"
    if os.geteuid() != 0 and backend == "process":
        names = {str(point.target["function"]) for point in points}
        forking = sorted(name for name in names if "-fork:" in str(stack_functions()[name]["image"]))
        limited = any(point.target["cpu"] or point.target["memory"] for point in points)
        if forking or limited:
            why = f"{', '.join(forking)} needs network namespaces" if forking else "limits need cgroups"
            yield Check("rights", False, f"{why}, for which root is needed; run as root, or use the docker backend")


def _attempt(what: str, words: str, action: Callable[[], object]) -> Check:
    try:
        action()
    except FramestormError as error:
        return Check(what, False, str(error))
    return Check(what, True, words)
