"""What is compared: the names given on the command line, found and read."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from framestorm import paths
from framestorm.errors import FramestormError, UsageError
from framestorm.model.files import FileError, FormatError, read
from framestorm.model.run import Record, Target
from framestorm.model.study import Value
from framestorm.model.summary import Summary
from framestorm.results.jtl import read_jtl, read_users
from framestorm.results.reading import read_run
from framestorm.results.table import lengths, read_table, serving_ms
from framestorm.stats.checks import Floats
from framestorm.stats.percentiles import Sample
from framestorm.study.design.folder import FILE, Point, StudyFolder, StudyRecord

RUN, STUDY = "run.json", "study.json"
LABELS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True)
class Times:
    """Times in ms in the order of their starts; `cut` marks those that are only lower bounds (timeouts)."""

    values_ms: Floats
    cut: np.ndarray[Any, np.dtype[np.bool_]]

    @property
    def n(self) -> int:
        return int(self.values_ms.size)

    def sample(self) -> Sample:
        return Sample(self.values_ms[~self.cut], self.values_ms[self.cut])


@dataclass(frozen=True)
class Run:
    """One run as read.

    times: by series, "" is the response time; ended_ms: the end of each sample without error; serving_ms: when these
    could come; target: as `targets` has it.
    """

    folder: Path
    record: Record
    summary: Summary
    times: dict[str, Times]
    right: np.ndarray[Any, np.dtype[np.bool_]]
    ended_ms: Floats
    serving_ms: tuple[float, float] | None
    target: dict[str, Any] | None = None

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def rate_per_s(self) -> float | None:
        """Right answers a second."""
        if self.serving_ms is None or self.serving_ms[1] <= self.serving_ms[0]:
            return None
        return self.ended_ms.size / (self.serving_ms[1] - self.serving_ms[0]) * 1000


@dataclass(frozen=True)
class RunSide:
    """One side of a comparison of runs; several runs are repetitions of the same thing."""

    label: str
    runs: tuple[Run, ...]

    @property
    def name(self) -> str:
        first = self.runs[0].name
        return first if len(self.runs) == 1 else f"{first} and {len(self.runs) - 1} more"


@dataclass(frozen=True)
class StudySide:
    """One study, or one level of a factor of it: study.json, and the rows of results.csv that are complete.

    points: by what two sides may have in common, their factors. schedule: two sides that have the same one ran the same
    points in the same order in each repetition, so that repetitions pair.
    """

    label: str
    name: str
    folder: Path
    study: StudyRecord
    results: pl.DataFrame
    left_out: int
    points: dict[str, Point]
    schedule: str

    @property
    def repetitions(self) -> int:
        """How many repetitions have a complete run."""
        return self.results["repetition"].n_unique()

    def values(self, point: str, metric: str) -> dict[int, float]:
        """A metric of the point with that key by repetition, where it is known."""
        if metric not in self.results.columns:
            return {}
        rows = self.results.filter(pl.col("point") == self.points[point].id)
        values = rows.select("repetition", pl.col(metric).cast(pl.Float64, strict=False)).drop_nulls()
        return {int(repetition): float(value) for repetition, value in values.iter_rows()}


def point_key(factors: dict[str, Value], without: str | None = None) -> str:
    """What two points have in common that are the same (but for the factor `without`)."""
    return ", ".join(f"{name}={value}" for name, value in factors.items() if name != without) or "the one point"


def read_sides(words: Sequence[str]) -> list[RunSide] | list[StudySide]:
    """Find and read what is to be compared.

    Raises:
        UsageError: a name is neither run nor study, both kinds are named, or repetitions are no runs.
        FramestormError: files are missing or from another version of the kit.
    """
    if len(words) > len(LABELS):
        raise UsageError(f"{len(words)} sides; at most {len(LABELS)} can be compared")
    by_side = [_folders(word) for word in words]
    kinds = {word: _kind(folders[0]) for word, folders in zip(words, by_side, strict=True)}
    if len(set(kinds.values())) > 1:
        are = ", ".join(f"{word} is a {kind.removesuffix('.json')}" for word, kind in kinds.items())
        raise UsageError(f"{are}: runs are compared with runs and studies with studies")
    if STUDY in kinds.values():
        return [_read_study(label, folders[0]) for label, folders in zip(LABELS, by_side, strict=False)]
    cache: dict[Path, Run] = {}
    for folder in (folder for folders in by_side for folder in folders):
        if folder not in cache:
            cache[folder] = _read_run(folder)
    return [
        RunSide(label, tuple(cache[folder] for folder in folders))
        for label, folders in zip(LABELS, by_side, strict=False)
    ]


def _folders(word: str) -> list[Path]:
    """The folders that a word names: one, or several runs with commas between; a folder's name may hold commas too."""
    whole = _find(word)
    if whole is not None:
        return [whole]
    parts, folders = word.split(","), []
    while parts:
        ends = (end for end in range(len(parts), 0, -1) if _find(",".join(parts[:end])) is not None)
        end = next(ends, 0)
        folder = _find(",".join(parts[:end])) if end else None
        if folder is None:
            raise UsageError(
                f"{parts[0] or word!r} is neither a run nor a study: no {RUN} and no {STUDY} in it, nor in a folder of "
                f"that name in {paths.shown(paths.DASHBOARDS)}/"
            )
        folders.append(folder)
        parts = parts[end:]
    studies = [folder for folder in folders if _kind(folder) == STUDY]
    if studies:
        raise UsageError(f"{studies[0].name} is a study: it has its repetitions in it, only runs are given with commas")
    if len(set(folders)) < len(folders):
        raise UsageError(f"{word}: the same run twice; a repetition is a run of its own")
    return folders


def _find(word: str) -> Path | None:
    if not word:
        return None
    candidates = (Path(word), paths.DASHBOARDS / word)
    return next((f.resolve() for f in candidates if (f / RUN).is_file() or (f / STUDY).is_file()), None)


def _kind(folder: Path) -> str:
    return STUDY if (folder / STUDY).is_file() else RUN


def _read_run(folder: Path) -> Run:
    record, problem = read_run(folder)
    if problem:
        raise FramestormError(f"{folder}: {problem}")
    try:
        summary = read(folder / "summary.json", Summary)
    except FormatError:
        raise
    except FileError as error:
        raise FramestormError(f"{error}; make it by ./run.sh report {paths.shown(folder)}") from None
    if not (folder / "samples.csv").is_file():
        raise FramestormError(f"{folder.name} has no samples.csv; make it by ./run.sh report {paths.shown(folder)}")
    frames = read_table(folder / "samples.csv").filter(pl.col("label") == summary.label)
    frames = frames.sort("start_ms", maintain_order=True)
    if not frames.height:
        raise FramestormError(f"{folder.name} measured nothing: samples.csv has no sample to compare")
    return replace(run_of(folder, record, summary, frames, _users(folder)), target=_target(folder, record))


def run_of(folder: Path, record: Record, summary: Summary, frames: pl.DataFrame, users: Times | None = None) -> Run:
    """A run of its frames, in the order of their starts."""
    ok = frames.filter("ok")
    seen = frames.filter((pl.col("ok") & pl.col("rtt_ms").is_not_null()) | pl.col("timed_out"))
    times = {"": Times(_floats(seen["rtt_ms"]), seen["timed_out"].to_numpy())}
    times |= {name.removesuffix("_ms"): _all_full(ok[name]) for name in lengths(frames)}
    times |= {"user": users} if users is not None else {}
    ended = (ok["start_ms"] + ok["rtt_ms"]).drop_nulls().sort()
    known = {name: series for name, series in times.items() if series.n}
    serving = serving_ms(frames, at_rate=record.is_open_model)
    return Run(folder, record, summary, known, frames["ok"].to_numpy(), _floats(ended), serving)


def _users(folder: Path) -> Times:
    """Users that ended well, and as lower bounds those that ran out of time; JMeter's own times."""
    jtl = read_jtl(folder, "")
    if jtl.rows is None or not jtl.count("user"):
        return Times(np.empty(0), np.empty(0, dtype=bool))
    users = read_users(jtl).sort("start_ms").filter(pl.col("ok") | pl.col("censored"))
    return Times(_floats(users["elapsed_ms"]), (~users["ok"]).to_numpy())


def _read_study(label: str, folder: Path) -> StudySide:
    try:
        study = read(folder / STUDY, StudyRecord)
    except FileError as error:
        raise UsageError(str(error)) from None
    path = folder / "results.csv"
    if not path.is_file():
        raise FramestormError(f"{folder.name} has no results.csv yet; ./run.sh report {paths.shown(folder)}")
    results = pl.read_csv(path, infer_schema_length=None, schema_overrides={"point": pl.String, "state": pl.String})
    complete = results.filter(pl.col("state") == "complete")
    if not complete.height:
        raise FramestormError(f"{folder.name}: no point is complete, there is nothing to compare")
    points = {point_key(point.factors): point for point in study.points}
    schedule = json.dumps([study.seed, study.definition.order, sorted(points)])
    left_out = results.height - complete.height
    return StudySide(label, folder.name, folder, study, complete, left_out, points, schedule)


def levels(side: StudySide, factor: str, chosen: Sequence[str]) -> list[StudySide]:
    """A study taken apart by the levels of one factor; what ran in one repetition pairs.

    Raises:
        UsageError: the study has no such factor or level, or fewer than two levels are wanted.
    """
    by_factor = _levels_of(side)
    if factor not in by_factor:
        raise UsageError(f"--factor {factor}: {side.name} has no such factor; there are {factors_text(side)}")
    unknown = [level for level in chosen if level not in by_factor[factor]]
    if unknown:
        raise UsageError(f"--factor {factor}={unknown[0]}: no such level; there are {', '.join(by_factor[factor])}")
    if len(set(chosen)) < 2 or len(set(chosen)) < len(chosen):
        raise UsageError(f"--factor {factor}={','.join(chosen)}: two or more different levels are compared")
    sides = []
    for label, level in zip(LABELS, chosen, strict=False):
        points = [point for point in side.points.values() if str(point.factors.get(factor)) == level]
        of_level = side.results.filter(pl.col("point").is_in([point.id for point in points]))
        if not of_level.height:
            raise FramestormError(f"{side.name}: no point with {factor}={level} is complete")
        by_key = {point_key(point.factors, factor): point for point in points}
        name = f"{factor}={level}"
        sides.append(replace(side, label=label, name=name, results=of_level, points=by_key, schedule=str(side.folder)))
    return sides


def factors_text(side: StudySide) -> str:
    """A study's factors and their levels, as they are given with --factor."""
    return "; ".join(f"{name}={','.join(levels)}" for name, levels in _levels_of(side).items())


def _levels_of(side: StudySide) -> dict[str, list[str]]:
    levels: dict[str, dict[str, None]] = {}
    for point in side.points.values():
        for name, level in point.factors.items():
            levels.setdefault(name, {})[str(level)] = None
    return {name: list(of_factor) for name, of_factor in levels.items()}


def _all_full(column: pl.Series) -> Times:
    values = _floats(column.drop_nulls())
    return Times(values, np.zeros(values.size, dtype=bool))


def _floats(column: pl.Series) -> Floats:
    values: Floats = column.drop_nulls().to_numpy().astype(np.float64, copy=False)
    return values


def settings_of(target: Target) -> dict[str, Any]:
    """Kind, URL and settings of a run's target, as a study's point has them."""
    return {"kind": target.kind, "url": target.url, **target.settings}


def _target(folder: Path, record: Record) -> dict[str, Any] | None:
    """The target's settings; None where no more than its URL is known.

    A function is set up outside of the run, whose run.json has only the URL: what it was set to, its study knows.
    """
    if record.target and record.target.kind == "embedded":
        return settings_of(record.target)
    where = folder.parent.parent
    if folder.parent.name != "runs" or not (where / FILE).is_file():
        return None
    try:
        study = StudyFolder(where)
    except UsageError:
        return None
    # A gateway elsewhere is asked for its functions as they are there.
    if study.record.gateway is not None:
        return None
    run = f"runs/{folder.name}"
    ids = {line.point for line in study.lines().values() if line.run == run}
    targets = [point.target for point in study.record.points if point.id in ids and point.target.kind != "url"]
    return targets[0].model_dump() if targets else None
