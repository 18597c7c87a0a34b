"""What there is to run, in words: the studies of the checkout, and the runs of one of them."""

import contextlib
import difflib
from collections.abc import Sequence
from pathlib import Path

from framestorm import paths
from framestorm.errors import UsageError
from framestorm.study.design import matrix, reading
from framestorm.study.design.definition import FILE, Study
from framestorm.study.design.matrix import Point
from framestorm.study.design.target import Target
from framestorm.study.running import estimate
from framestorm.study.running.readiness import Check, Place


def names() -> list[str]:
    """The studies in studies/."""
    return sorted(file.parent.name for file in paths.STUDIES.glob(f"*/{FILE}"))


def find(name: str) -> Path:
    """The study.yml of a study by its name or path.

    Raises:
        UsageError: there is none.
    """
    for candidate in (paths.STUDIES / name / FILE, Path(name) / FILE, Path(name)):
        if is_file(candidate):
            return candidate.resolve()
    known = names()
    close = difflib.get_close_matches(name, known, n=1)
    hint = f"; did you mean {close[0]}?" if close else ""
    there = ", ".join(known) or "none in studies/"
    raise UsageError(f"no study {name}{hint}; there are {there}, or give the path of a {FILE}")


def is_file(path: Path) -> bool:
    """Whether there is such a file; a path that no file can have is none."""
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
        with contextlib.suppress(UsageError):  # it has no quick form: what there is of one was checked with the full
            quick = reading.load(paths.STUDIES / name, quick=True)
            print(f"  quick {_size(quick, matrix.points(quick))}")
    return status


def dry_run(
    study: Study,
    points: Sequence[Point],
    runs: Sequence[tuple[int, Point, int]],
    seed: int,
    place: Place,
    checks: Sequence[Check],
) -> int:
    """Print the runs of a study in their order and whether all is there for them; 1 if something is not.

    `runs` are those that are left to make, each with its place in the order.
    """
    order = f"seed {seed}" if study.order == "randomised" else study.order
    left_s = estimate.Estimate(study, points).of(point for _, point, _ in runs)
    is_all = len(runs) == len(points) * study.repetitions
    left = "" if is_all else f", {len(runs)} left in about {estimate.shown(left_s)}"
    print(f"{study.name}: {_size(study, points)}{left}, order: {order}")
    for number, point, repetition in runs:
        load_s = matrix.estimate_s(study, point)
        print(f"{number:>4}  {point.id} r{repetition}  ({estimate.shown(load_s)} of load)")
    print()
    wanted = {point.id for _, point, _ in runs}
    for point in points:
        if point.id in wanted:
            properties = " ".join(f"{name}={value}" for name, value in point.properties.items())
            print(f"{point.id}\n      {point.plan} {properties}\n      {_target(Target(**point.target), place)}")
    print()
    for check in checks:
        print(f"{'ok' if check.is_there else 'MISSING':<8}{check.what}: {check.words}")
    return 0 if all(check.is_there for check in checks) else 1


def _size(study: Study, points: Sequence[Point]) -> str:
    runs = len(points) * study.repetitions
    more = f", up to {len(points) * study.stop.at_most} where they vary" if study.stop else ""
    took = estimate.shown(estimate.whole_s(study, points))
    budget = f" of {study.budget_min:g} min" if study.budget_min else ""
    return f"{len(points)} points x {study.repetitions} repetitions = {runs} runs{more}, about {took}{budget}"


def _target(target: Target, place: Place) -> str:
    """A target in words."""
    if target.kind == "url":
        return f"function at {target.url}"
    if target.kind == "embedded":
        return "the embedded target"
    if place.gateway is not None:
        return f"{target.function} behind {place.gateway}, as it is there"
    words = [f"{target.function}, {target.replicas} replica{'s' if target.replicas > 1 else ''}, by {target.route}"]
    words += [target.policy] if target.policy != "round-robin" else []
    words += [f"autoscaled up to {target.autoscale_max}"] if target.autoscale else []
    words += [f"{target.concurrency_limit} at a time each"] if target.concurrency_limit else []
    words += [f"{name} {value}" for name, value in (("cpu", target.cpu), ("memory", target.memory)) if value]
    words += [f"{name}={value}" for name, value in target.environment.items()]
    words += [f"queue {target.queue_at_once} at a time"] if target.queue_at_once else []
    return ", ".join(words)
