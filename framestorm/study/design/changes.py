"""What is changed of a study: by the command line before its runs, and in the study.yml of its folder after them."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from framestorm import paths
from framestorm.errors import UsageError
from framestorm.model.study import DEFINITION, Study
from framestorm.study.design import matrix, reading
from framestorm.study.design.folder import Overrides, Point, StudyFolder, StudyRecord, file_sha256
from framestorm.study.design.yaml_lines import choices

# Of a study that has runs: how they are judged and shown, not how they were made.
CHANGEABLE = (
    "title", "question", "metrics", "derived", "hypotheses", "charts", "published", "published_from",
)  # fmt: skip


def override(study: Study, overrides: Overrides) -> Study:
    """The study with fixed properties and repetitions as set by -J and --repetitions.

    Raises:
        UsageError: a property is none of the plan's, is varied by the study, or its value is out of range.
    """
    properties, repetitions = overrides.properties, overrides.repetitions
    varied = {
        property_: name
        for name, factor in study.factors.items()
        for value in factor.values
        for property_ in factor.level(name, value).properties
    }
    for name in properties:
        if name in varied:
            raise UsageError(f"-J{name}: the study varies it, by its factor {varied[name]}; choose levels by --only")
    changes: dict[str, object] = {"properties": {**study.properties, **properties}}
    if repetitions is not None:
        if repetitions < 1:
            raise UsageError(f"--repetitions {repetitions}: at least one is needed")
        if study.stop and repetitions < 2:
            raise UsageError(f"--repetitions {repetitions}: stop needs the variation between runs, so at least 2")
        changes["repetitions"] = repetitions
        if study.stop and study.stop.at_most < repetitions:
            changes["stop"] = study.stop.model_copy(update={"at_most": repetitions})
    return study.model_copy(update=changes)


def choose(points: Sequence[Point], words: Iterable[str]) -> list[Point]:
    """The points that have one of the levels wanted of each factor, by `factor=level` or `factor=level,level` words.

    Raises:
        UsageError: there is no such factor, level or point.
    """
    chosen = list(points)
    wanted: dict[str, list[str]] = {}
    for word in words:
        name, equals, text = word.partition("=")
        factors = points[0].factors
        if not equals or not text:
            example = next(f"{factor}={matrix.as_text(level)}" for factor, level in factors.items())
            raise UsageError(f"--only {word}: give factor=level, for example --only {example}")
        if name not in factors:
            raise UsageError(f"--only {word}: unknown factor {name!r}{choices(name, list(factors))}")
        levels = list(dict.fromkeys(matrix.as_text(point.factors[name]) for point in points))
        for level in [text] if text in levels else text.split(","):
            if level not in levels:
                raise UsageError(f"--only {word}: unknown level {level!r} of {name}{choices(level, levels)}")
            wanted.setdefault(name, []).append(level)
    for name, levels in wanted.items():
        chosen = [point for point in chosen if matrix.as_text(point.factors[name]) in levels]
    if not chosen:
        which = " ".join(words)
        raise UsageError(f"--only: the study has no point with {which}; ./run.sh study NAME --dry-run lists them")
    return chosen


def record_now(folder: StudyFolder) -> StudyRecord:
    """The record of a study, judged as the study.yml in its folder says by now; `rejudged` names what has changed.

    Raises:
        UsageError: that file is wrong, or changes how runs are made; or published results cannot be read.
    """
    record, file = folder.record, folder.path / DEFINITION
    if file.exists() and file_sha256(file) != record.file_sha256:
        changed = differing(file, record)
        if made := [key for key in changed if key not in CHANGEABLE]:
            raise UsageError(
                f"{paths.shown(file)}: the existing runs were made with another {', '.join(made)}. Put that back "
                f"({paths.shown(folder.path)}/study.json has it); {', '.join(CHANGEABLE)} may be changed"
            )
        record = replace(record, definition=record.definition.model_copy(update=changed), rejudged=tuple(changed))
    name = record.definition.published
    if name and ((folder.path / name).exists() or "published" in record.rejudged):
        reading.check_published(folder.path / name)
    return record


def differing(file: Path, record: StudyRecord) -> dict[str, Any]:
    """What a study.yml says that is not so in the record, by key, with what the command line changed at the start.

    Raises:
        UsageError: the file is wrong.
    """
    now = override(reading.load(file, record.quick), record.overrides)
    keys = sorted(key for key in Study.model_fields if getattr(now, key) != getattr(record.definition, key))
    return {key: getattr(now, key) for key in keys if key != "name"}  # which is that of the folder
