"""Lists: the studies of the checkout, and the runs of one of them."""

import contextlib
from collections.abc import Sequence
from pathlib import Path

from framestorm import paths
from framestorm.errors import UsageError
from framestorm.model.study import DEFINITION, Study
from framestorm.platform.base import Check
from framestorm.platform.registry import Platforms
from framestorm.study.design import matrix, reading
from framestorm.study.design.record import Point
from framestorm.study.design.yaml_lines import did_you_mean
from framestorm.study.readiness import Location


def names() -> list[str]:
    """The studies in studies/."""
    return sorted(file.parent.name for file in paths.STUDIES.glob(f"*/{DEFINITION}"))


def find(name: str) -> Path:
    """The study.yml of a study by its name or path.

    Raises:
        UsageError: there is no such study.
    """
    for candidate in (paths.STUDIES / name / DEFINITION, Path(name) / DEFINITION, Path(name)):
        if is_file(candidate):
            return candidate.resolve()
    hint = did_you_mean(name, names())
    studies = ", ".join(names()) or "none"
    raise UsageError(f"no study {name}{hint}; studies/ has {studies}; or give the path of a {DEFINITION}")


def is_file(path: Path) -> bool:
    """Whether a file exists; False also for a path that no file can have."""
    try:
        return path.is_file()
    except OSError:
        return False


def show() -> int:
    """Print every study with its size and time; 2 if one of them is wrong."""
    status = 0
    for name in names():
        try:
            full = reading.load(paths.STUDIES / name)
        except UsageError as error:
            print(f"{name}\n  {error}")
            status = error.exit_status
            continue
        print(f"{name}: {full.title}\n  full  {_size(full, matrix.points(full))}")
        with contextlib.suppress(UsageError):  # it has no quick form; one that it has was checked with the full
            quick = reading.load(paths.STUDIES / name, quick=True)
            print(f"  quick {_size(quick, matrix.points(quick))}")
    return status


def dry_run(
    study: Study,
    points: Sequence[Point],
    runs: Sequence[tuple[int, Point, int]],
    seed: int,
    location: Location,
    checks: Sequence[Check],
) -> int:
    """Print the runs of a study in their order and what they need; 1 if something is missing.

    `runs` are those that are left to make, each with its number in the order.
    """
    order = f"seed {seed}" if study.order == "randomised" else study.order
    left_s = matrix.TimeLeft(study, points).of(point for _, point, _ in runs)
    is_all = len(runs) == len(points) * study.repetitions
    left = "" if is_all else f", {len(runs)} left in about {matrix.shown_time(left_s)}"
    print(f"{study.name}: {_size(study, points)}{left}, order: {order}")
    for number, point, repetition in runs:
        load_s = matrix.estimate_s(study, point)
        print(f"{number:>4}  {point.id} r{repetition}  ({matrix.shown_time(load_s)} of load)")
    print()
    platforms = Platforms(location.site)
    wanted = {point.id for _, point, _ in runs}
    for point in points:
        if point.id in wanted:
            properties = " ".join(f"{name}={value}" for name, value in point.properties.items())
            target = platforms.of(point.target.kind).describe(point.target)
            print(f"{point.id}\n      {point.plan} {properties}\n      {target}")
    print()
    for check in checks:
        print(f"{'ok' if check.is_there else 'MISSING':<8}{check.what}: {check.words}")
    return 0 if all(check.is_there for check in checks) else 1


def _size(study: Study, points: Sequence[Point]) -> str:
    runs = len(points) * study.repetitions
    more = f", up to {len(points) * study.stop.at_most} where they vary" if study.stop else ""
    took = matrix.shown_time(matrix.total_s(study, points))
    budget = f" (budget: {study.budget_min:g} min)" if study.budget_min else ""
    return f"{len(points)} points x {study.repetitions} repetitions = {runs} runs{more}, about {took}{budget}"
