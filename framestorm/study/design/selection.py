"""What the command line makes of a study: properties set otherwise, fewer points, other repetitions."""

import difflib
from collections.abc import Iterable, Mapping, Sequence

from framestorm.errors import UsageError
from framestorm.study.design import definition, matrix
from framestorm.study.design.definition import Study
from framestorm.study.design.lines import PointError
from framestorm.study.design.matrix import Point


def override(study: Study, given: Mapping[str, str], repetitions: int | None) -> Study:
    """The study with fixed properties and repetitions as given by -J and --repetitions.

    Raises:
        UsageError: a property is none of the plan's, is varied by the study, or its value is out of range.
    """
    factors = study.factors.values()
    varied = {name: factor.name for factor in factors for level in factor.levels for name in level.properties}
    for name in given:
        if name in varied:
            raise UsageError(f"-J{name}: the study varies it, by its factor {varied[name]}; choose levels by --only")
    content = study.as_json()
    content["properties"] = {**content["properties"], **given}
    if repetitions is not None:
        if repetitions < 1:
            raise UsageError(f"--repetitions {repetitions}: at least one is needed")
        if study.stop and repetitions < 2:
            raise UsageError(f"--repetitions {repetitions}: stop goes by how far runs vary, so 2 are needed")
        content["repetitions"] = repetitions
        if study.stop and study.stop.at_most < repetitions:
            content["stop"] = {**content["stop"], "at_most": repetitions}
    changed = definition.from_json(content, study.name)
    points_of(changed)
    return changed


def points_of(study: Study) -> list[Point]:
    """The points of a study, of which every value is known to be in range.

    Raises:
        UsageError: one cannot be.
    """
    try:
        points = matrix.points(study)
        for point in points:
            matrix.estimate_s(study, point)
    except PointError as error:
        allowed = f"; allowed: {', '.join(error.allowed)}" if error.allowed else ""
        raise UsageError(f"{error.what}{allowed}") from None
    return points


def parse_only(words: Iterable[str], study: Study) -> dict[str, list[str]]:
    """`factor=level` or `factor=level,level` words as levels wanted by factor.

    Raises:
        UsageError: there is no such factor, or it has no such level.
    """
    only: dict[str, list[str]] = {}
    for word in words:
        name, equals, wanted = word.partition("=")
        if not equals or not wanted:
            raise UsageError(f"--only {word}: give factor=level, for example --only {_example(study)}")
        if name not in study.factors:
            raise UsageError(f"--only {word}: unknown factor {name!r}{_hint(name, list(study.factors))}")
        levels = [matrix.as_text(value) for value in study.factors[name].values]
        for level in [wanted] if wanted in levels else wanted.split(","):
            if level not in levels:
                raise UsageError(f"--only {word}: unknown level {level!r} of {name}{_hint(level, levels)}")
            only.setdefault(name, []).append(level)
    return only


def choose(points: Sequence[Point], only: Mapping[str, Sequence[str]]) -> list[Point]:
    """The points that have one of the levels wanted of each factor.

    Raises:
        UsageError: there is none.
    """
    chosen = [
        point for point in points if all(matrix.as_text(point.factors[name]) in levels for name, levels in only.items())
    ]
    if not chosen:
        asked = ", ".join(f"{name}={level}" for name, levels in only.items() for level in levels)
        raise UsageError(f"--only: the study has no point with {asked}; ./run.sh study NAME --dry-run lists them")
    return chosen


def _example(study: Study) -> str:
    factor = next(iter(study.factors.values()))
    return f"{factor.name}={matrix.as_text(factor.values[0])}"


def _hint(seen: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(seen, known, n=1)
    return (f"; did you mean {close[0]}?" if close else "") + f"; allowed: {', '.join(known)}"
