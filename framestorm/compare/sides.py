"""The sides of a comparison: find and read the runs or studies named on the command line."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from framestorm import paths
from framestorm.compare.runs import RunSide, read_compared
from framestorm.compare.studies import StudySide, factors_text, point_key, read_study
from framestorm.errors import FramestormError, UsageError
from framestorm.study.design.folder import FILE
from framestorm.study.design.matrix import as_text

RUN, STUDY = "run.json", FILE
LABELS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

Sides = Sequence[RunSide] | Sequence[StudySide]


def read_sides(words: Sequence[str]) -> list[RunSide] | list[StudySide]:
    """Find and read what is to be compared.

    Raises:
        UsageError: a name is neither run nor study, both kinds are named, or repetitions are not runs.
        FramestormError: files are missing or from another version of the kit.
    """
    if len(words) > len(LABELS):
        raise UsageError(f"{len(words)} sides; at most {len(LABELS)} can be compared")
    by_side = [_folders(word) for word in words]
    are_studies = [(folders[0] / STUDY).is_file() for folders in by_side]
    if len(set(are_studies)) > 1:
        study, run = words[are_studies.index(True)], words[are_studies.index(False)]
        raise UsageError(f"{study} is a study and {run} a run: runs are compared with runs and studies with studies")
    if are_studies[0]:
        return [read_study(label, folders[0]) for label, folders in zip(LABELS, by_side, strict=False)]
    runs = {folder: read_compared(folder) for folder in dict.fromkeys(folder for each in by_side for folder in each)}
    return [
        RunSide(label, tuple(runs[folder] for folder in folders))
        for label, folders in zip(LABELS, by_side, strict=False)
    ]


def _folders(word: str) -> list[Path]:
    """The folders that a word names: one, or several runs with commas between; a folder's name may hold commas too."""
    parts, folders = word.split(","), list[Path]()
    while parts:
        ends = range(len(parts), 0, -1)
        end, folder = next(((end, at) for end in ends if (at := _find(",".join(parts[:end])))), (0, None))
        if folder is None:
            raise UsageError(
                f"{parts[0] or word!r} is neither a run nor a study: no {RUN} and no {STUDY} in it, nor in a folder of "
                f"that name in {paths.shown(paths.DASHBOARDS)}/"
            )
        folders.append(folder)
        parts = parts[end:]
    studies = [folder for folder in folders if (folder / STUDY).is_file()]
    if studies and len(folders) > 1:
        raise UsageError(
            f"{studies[0].name} is a study, which has its own repetitions; only runs can be joined by commas"
        )
    if len(set(folders)) < len(folders):
        raise UsageError(f"{word}: the same run twice; a repetition is a run of its own")
    return folders


def _find(word: str) -> Path | None:
    candidates = (Path(word), paths.DASHBOARDS / word) if word else ()
    return next((f.resolve() for f in candidates if (f / RUN).is_file() or (f / STUDY).is_file()), None)


def levels(sides: Sides, factor: str) -> list[StudySide]:
    """Split a study into sides by levels of one factor, NAME=LEVEL,LEVEL; runs of the same repetition are paired.

    Raises:
        UsageError: it is not one study, or has no such factor or level, or fewer than two levels are wanted.
    """
    (side,) = sides if len(sides) == 1 else (None,)
    if not isinstance(side, StudySide):
        raise UsageError("--factor compares levels of one study: name one study and nothing else")
    name, _, text = factor.partition("=")
    chosen, known = text.split(","), side.levels().get(name, [])
    if len(set(chosen)) < max(2, len(chosen)) or not known or not set(chosen) <= set(known):
        raise UsageError(
            f"--factor {factor}: expected NAME=LEVEL,LEVEL with two or more different levels of a factor of "
            f"{side.name}: {factors_text(side)}"
        )
    parts = []
    for label, level in zip(LABELS, chosen, strict=False):
        points = {
            point_key(point.factors, name): point
            for point in side.points.values()
            if as_text(point.factors.get(name)) == level
        }
        ids = {point.id for point in points.values()}
        rows = {cell: row for cell, row in side.rows.items() if cell[0] in ids}
        if not rows:
            raise FramestormError(f"{side.name}: no point with {name}={level} is complete")
        of_level = f"{name}={level}"
        parts.append(replace(side, label=label, name=of_level, rows=rows, points=points, schedule=str(side.folder)))
    return parts
