"""Finds and reads the two sides of a comparison: runs, studies, or levels of one study's factor."""

import csv
import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from framestorm import paths
from framestorm.compare.runs import ONE_POINT, Run, RunSide, read_compared
from framestorm.errors import FramestormError, UsageError
from framestorm.model.comparison import SideFigure
from framestorm.model.files import FileError, read
from framestorm.model.metric import split_label
from framestorm.model.study import Value
from framestorm.model.summary import Doubt
from framestorm.model.units import as_number, as_text, names_in, plural
from framestorm.plain import note
from framestorm.points.folder import COMPLETE, FILE, Point, StudyRecord
from framestorm.points.results_csv import FILE as RESULTS
from framestorm.points.results_csv import names_cut_off
from framestorm.points.run_figures import figures_or_why_not
from framestorm.report import build
from framestorm.results.imported import import_jtl

RUN, STUDY = "run.json", FILE
LABELS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


class StudyRun(NamedTuple):
    """A complete run of a study: its folder in the study's, its metrics, and the names of those cut off by timeouts."""

    run: str
    metrics: dict[str, float]
    cut_off: frozenset[str]


@dataclass(frozen=True)
class StudySide:
    """One study, or one level of a factor of it: study.json, and the rows of results.csv that are complete.

    points: by their factors, which the two sides may have in common. rows: by point and repetition.
    schedule: the order of the points in each repetition. If it is the same on both sides, repetitions pair.
    """

    label: str
    name: str
    folder: Path
    study: StudyRecord
    columns: list[str]
    rows: dict[tuple[str, int], StudyRun]
    left_out: int
    points: dict[str, Point]
    schedule: str

    @property
    def folders(self) -> list[Path]:
        return [self.folder]

    @property
    def extent(self) -> str:
        """How much data it has."""
        return f"{plural(len(self.points), 'point')}, {plural(len(self.repetitions), 'repetition')}"

    @property
    def repetitions(self) -> set[int]:
        """The repetitions that have a complete run."""
        return {repetition for _, repetition in self.rows}

    def figures(self, point: str, name: str) -> dict[int, SideFigure]:
        """Return a metric's figures by repetition at the point with that key, where they are known."""
        return {
            repetition: SideFigure(row.metrics[name], name in row.cut_off)
            for (id_, repetition), row in self.rows.items()
            if id_ == self.points[point].id and name in row.metrics
        }

    def with_metrics(self, names: Collection[str]) -> "StudySide":
        """Return the same study with these metrics too: those that results.csv lacks, by the samples of its runs."""
        lacking = [name for name in names if name not in self.columns]
        if not lacking:
            return self
        rows: dict[tuple[str, int], StudyRun] = {}
        for cell, row in self.rows.items():
            figures, _ = figures_or_why_not(self.folder / row.run, self.study.definition, lacking)
            values = {name: float(value) for name in lacking if (value := figures.metrics.get(name)) is not None}
            rows[cell] = StudyRun(row.run, row.metrics | values, row.cut_off | (values.keys() & figures.bounds.keys()))
        columns = [*self.columns, *(name for name in lacking if any(name in row.metrics for row in rows.values()))]
        return replace(self, rows=rows, columns=columns)

    @property
    def main_label(self) -> str:
        """Not known of runs: their metrics without a label are of the main samples."""
        return ""

    def labels(self) -> set[str]:
        """Return the labels named in study.yml: results.csv has columns for these only."""
        return {label for name in self.columns if (label := split_label(name)[0]) is not None}

    def metrics_of(self, label: str | None) -> set[str]:
        """Return the columns of results.csv that are of a label, without it; or of none."""
        parts = [split_label(name) for name in self.columns]
        return {rest for of, rest in parts if of == label}

    def has(self, name: str) -> bool:
        """Return whether it may have a metric."""
        return name in self.columns

    def points_with(self, doubt: Doubt) -> set[str]:
        """Return the points of which runs have that kind of doubt, by the study's own summary; without that, none."""
        try:
            summary = json.loads((self.folder / "summary.json").read_text(encoding="utf-8"))
            ids = {point["id"] for point in summary["points"] if doubt in point["doubts"]}
        except (OSError, ValueError, LookupError, TypeError):
            return set()
        return {key for key, point in self.points.items() if point.id in ids}

    def total(self, point: str, name: str) -> int:
        """Return the sum of a count over all repetitions of a point."""
        return int(sum(figure.value for figure in self.figures(point, name).values()))

    def levels(self) -> dict[str, list[str]]:
        """Return the levels of each factor, in order."""
        levels: dict[str, dict[str, None]] = {}
        for point in self.points.values():
            for name, level in point.factors.items():
                levels.setdefault(name, {})[as_text(level)] = None
        return {name: list(of_factor) for name, of_factor in levels.items()}


def point_key(factors: dict[str, Value], without: str | None = None) -> str:
    """Return a key that is equal for equal points of two sides (the factor `without` is ignored)."""
    levels = (f"{name}={as_text(value)}" for name, value in factors.items() if name != without)
    return ", ".join(levels) or ONE_POINT


def read_study(label: str, folder: Path) -> StudySide:
    """Read a study.

    Raises:
        UsageError: study.json cannot be read.
        FramestormError: it has no results.csv, or no point of it is complete.
    """
    try:
        study = read(folder / STUDY, StudyRecord)
    except FileError as error:
        raise UsageError(str(error)) from None
    path = folder / RESULTS
    if not path.is_file():
        raise FramestormError(f"{folder.name} has no results.csv yet; make it by ./run.sh report {paths.shown(folder)}")
    with path.open(encoding="utf-8", newline="") as file:
        table = csv.DictReader(file)
        rows = list(table)
        columns = list(table.fieldnames or ())
    complete = {
        (row["point"], int(row["repetition"])): StudyRun(
            row["run"],
            {name: float(number) for name, text in row.items() if (number := as_number(text)) is not None},
            names_cut_off(row),
        )
        for row in rows
        if row["state"] == COMPLETE
    }
    if not complete:
        raise FramestormError(f"{folder.name}: no point is complete, there is nothing to compare")
    points = {point_key(point.factors): point for point in study.points}
    schedule = json.dumps([study.seed, study.definition.order, sorted(points)])
    left_out = len(rows) - len(complete)
    return StudySide(label, folder.name, folder, study, columns, complete, left_out, points, schedule)


def factors_text(side: StudySide) -> str:
    """Return a study's factors and their levels, in the form of the option --factor."""
    return "; ".join(f"{name}={','.join(of_factor)}" for name, of_factor in side.levels().items())


Sides = Sequence[RunSide] | Sequence[StudySide]


def read_sides(words: Sequence[str], factor: str | None = None) -> list[RunSide] | list[StudySide]:
    """Find and read what is to be compared: with a factor, the one study that has it.

    Raises:
        UsageError: a name is neither run nor study, both kinds are named, or repetitions are not runs.
        FramestormError: files are missing or from another version of the kit.
    """
    if len(words) > len(LABELS):
        raise UsageError(f"{len(words)} sides; at most {len(LABELS)} can be compared")
    by_side = [_places(word) for word in words]
    are_studies = [(places[0] / STUDY).is_file() for places in by_side]
    if len(set(are_studies)) > 1:
        study, run = words[are_studies.index(True)], words[are_studies.index(False)]
        raise UsageError(f"{study} is a study and {run} a run: runs are compared with runs and studies with studies")
    if factor is not None and (len(words) > 1 or not are_studies[0]):
        raise UsageError("--factor compares levels of one study: name one study and nothing else")
    if are_studies[0]:
        return [read_study(label, places[0]) for label, places in zip(LABELS, by_side, strict=False)]
    if len(words) == 1:
        raise UsageError(f"{words[0]} is only one side: two are needed, the baseline first")
    runs = {place: _read_run(place) for place in dict.fromkeys(place for each in by_side for place in each)}
    return [
        RunSide(label, tuple(runs[place] for place in places)) for label, places in zip(LABELS, by_side, strict=False)
    ]


def _places(word: str) -> list[Path]:
    """The folders and JTLs that a word names: one, or several runs with commas between; a name may hold commas too."""
    places = list[Path]()
    for name in names_in(word, lambda text: _find(text) is not None):
        if (place := _find(name)) is None:
            raise UsageError(
                f"{name or word!r} is neither a run nor a study: no {RUN} and no {STUDY} in it, nor in a folder of "
                f"that name in {paths.shown(paths.DASHBOARDS)}/"
            )
        places.append(place)
    studies = [place for place in places if (place / STUDY).is_file()]
    if studies and len(places) > 1:
        raise UsageError(
            f"{studies[0].name} is a study, which has its own repetitions; only runs can be joined by commas"
        )
    if len(set(places)) < len(places):
        raise UsageError(f"{word}: the same run twice; a repetition is a run of its own")
    return places


def find_run(word: str) -> Path | None:
    """Return the folder of a run by its path or its name in dashboards/; None if there is none."""
    candidates = (Path(word), paths.DASHBOARDS / word) if word else ()
    return next((folder.resolve() for folder in candidates if paths.is_file(folder / RUN)), None)


def _find(word: str) -> Path | None:
    if word and paths.exists(file := Path(word)) and not file.is_dir():
        return file.resolve() if file.is_file() else file  # a pipe, as of a shell's <(command), has no other name
    candidates = (Path(word), paths.DASHBOARDS / word) if word else ()
    return next((f.resolve() for f in candidates if paths.is_file(f / RUN) or paths.is_file(f / STUDY)), None)


def _read_run(place: Path) -> Run:
    """Read the run in a folder, or make a run from a JTL and read that."""
    if place.is_dir():
        return read_compared(place)
    folder = paths.new_dashboard(place.stem)
    import_jtl([place], folder)
    build(folder)
    note(f"the report of {paths.shown(place)} is {paths.shown(folder / 'index.html')}")
    return read_compared(folder)


def levels(side: StudySide, factor: str) -> list[StudySide]:
    """Split a study into sides by levels of one factor, NAME=LEVEL,LEVEL; runs of the same repetition are paired.

    Raises:
        UsageError: it has no such factor or level, or fewer than two levels are wanted.
    """
    name, _, text = factor.partition("=")
    known = side.levels().get(name, [])
    chosen = names_in(text, known.__contains__)
    if len(chosen) > len(LABELS):
        raise UsageError(f"--factor {name}: {len(chosen)} levels; at most {len(LABELS)} can be compared")
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
