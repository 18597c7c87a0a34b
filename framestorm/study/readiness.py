"""The runs of a study, and whether everything they need is available: set-up, slaves, and platforms."""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from framestorm import paths
from framestorm.errors import FramestormError
from framestorm.hosts.pods import find_slaves
from framestorm.model.study import Study
from framestorm.model.units import plural
from framestorm.plain import say
from framestorm.platform.base import PODS, Check, Platform, attempt
from framestorm.platform.registry import PLATFORMS, Platforms
from framestorm.points.folder import Point, StudyRecord
from framestorm.run.pieces import of_plan
from framestorm.setup import pieces as setup
from framestorm.study.design import matrix, reading


def checks(study: StudyRecord, folder: Path) -> Iterator[Check]:
    """Yield every check of what a study needs beyond its definition; nothing is started or made.

    `folder` has its study.yml and the published results.
    """
    missing = [piece.title for piece in pieces(study) if not piece.is_made()]
    yield Check("set-up", True, f"to be made: {', '.join(missing)}" if missing else "made")
    if study.definition.published:
        file = folder / study.definition.published
        yield attempt("published", paths.shown(file), partial(reading.check_published, file))
    if study.slaves is not None:
        yield _slaves(study.slaves, Path(study.inventory), study.context)
    platforms = _platforms(study)
    if study.gateway is not None and not any(platform.takes_gateway for platform in platforms):
        kinds = " or ".join(kind for kind, platform in PLATFORMS.items() if platform.takes_gateway)
        yield Check("gateway", False, f"--gateway: the study has no target of kind {kinds}; leave it out")
    of_cluster = [each for each in platforms if each.takes_context or (study.gateway and each.takes_gateway)]
    if study.context is not None and not study.has_pods and not of_cluster:
        kinds = " or ".join(kind for kind, platform in PLATFORMS.items() if platform.takes_context)
        yield Check("context", False, f"--context: the study has no target of kind {kinds}; leave it out")
    for platform in platforms:
        targets = {point.id: point.target for point in study.points if point.target.kind == platform.kind}
        yield from platform.checks(targets, study.definition.target)


def _slaves(names: str, inventory: Path, context: str | None) -> Check:
    if not names.startswith(PODS) and not setup.ANSIBLE_VENV.is_made():
        return Check("slaves", True, f"{names}; not looked up yet: the first run sets up what that needs")
    try:
        slaves = find_slaves(names, inventory, context=context).slaves
    except FramestormError as error:
        return Check("slaves", False, str(error))
    return Check("slaves", True, ", ".join(slave.name for slave in slaves))


def pieces(study: StudyRecord) -> list[setup.Piece]:
    """Return the pieces of set-up that a study needs."""
    of_plans = [piece for point in study.points for piece in of_plan(matrix.read_plan(point.plan), point.properties)]
    of_platforms = [
        piece
        for platform in _platforms(study)
        for piece in platform.pieces([point.target for point in study.points if point.target.kind == platform.kind])
    ]
    of_slaves = [setup.ANSIBLE_VENV] if study.slaves is not None else []
    return list(dict.fromkeys([*of_plans, *of_platforms, *of_slaves]))


def _platforms(study: StudyRecord) -> list[Platform[Any]]:
    platforms = Platforms(study.site)
    return [platforms.of(kind) for kind in dict.fromkeys(point.target.kind for point in study.points)]


def show(study: StudyRecord, runs: Sequence[tuple[int, Point, int]], needed: Sequence[Check]) -> int:
    """Print the runs, each with its position in the order, and what they need; returns 1 if something is missing."""
    definition = study.definition
    order = f"seed {study.seed}" if definition.order == "randomised" else definition.order
    is_all = len(runs) == len(study.points) * definition.repetitions
    left_s = matrix.time_s(point for _, point, _ in runs)
    left = "" if is_all else f", {len(runs)} left in about {matrix.shown_time(left_s)}"
    say(f"{study.name}: {size(definition, study.points)}{left}, order: {order}")
    for number, point, repetition in runs:
        say(f"{number:>4}  {point.id} r{repetition}  ({matrix.shown_time(point.load_s)} of load)")
    say("")
    for point in {point.id: point for _, point, _ in runs}.values():
        properties = " ".join(f"{name}={value}" for name, value in point.properties.items())
        say(f"{point.id}\n      {point.plan} {properties}\n      {point.target.describe()}")
    say("")
    for check in needed:
        say(str(check))
    return 0 if all(check.is_there for check in needed) else 1


def size(study: Study, points: Sequence[Point]) -> str:
    """Return how many runs a study has, and how long they take."""
    runs = len(points) * study.repetitions
    more = f", up to {len(points) * study.stop.at_most} where they vary" if study.stop else ""
    took = matrix.shown_time(study.repetitions * matrix.time_s(points))
    budget = f" (budget: {study.budget_min:g} min)" if study.budget_min else ""
    of = f"{plural(len(points), 'point')} x {plural(study.repetitions, 'repetition')}"
    return f"{of} = {plural(runs, 'run')}{more}, about {took}{budget}"
