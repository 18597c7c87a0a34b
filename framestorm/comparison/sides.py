"""What is compared: the names given on the command line, found and read."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from framestorm import paths
from framestorm.comparison.targets import target_of_run
from framestorm.errors import FramestormError, UsageError
from framestorm.report.files import read_run
from framestorm.report.jtl import read_jtl, read_users
from framestorm.report.stats import Floats, Sample
from framestorm.report.table import is_at_rate, read_frames, serving_ms

RUN, STUDY = "run.json", "study.json"
LABELS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True)
class Times:
    """Times in ms in the order of their starts; `cut` marks those that are only lower bounds (time-outs)."""

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

    times: by series, "" is the round trip; ended_ms: the end of each frame answered rightly; serving_ms: when these
    could come; target: as `targets` has it.
    """

    folder: Path
    record: dict[str, Any]
    summary: dict[str, Any]
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
    study: dict[str, Any]
    results: pl.DataFrame
    left_out: int
    points: dict[str, dict[str, Any]]
    schedule: str

    @property
    def repetitions(self) -> int:
        """How many repetitions have a complete run."""
        return self.results["repetition"].n_unique()

    def values(self, point: str, metric: str) -> dict[int, float]:
        """A metric of the point with that key by repetition, where it is known."""
        if metric not in self.results.columns:
            return {}
        rows = self.results.filter(pl.col("point") == self.points[point]["id"])
        known = rows.select("repetition", pl.col(metric).cast(pl.Float64, strict=False)).drop_nulls()
        return {int(repetition): float(value) for repetition, value in known.iter_rows()}


def point_key(factors: dict[str, Any], without: str | None = None) -> str:
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
    found = [_folders(word) for word in words]
    kinds = {word: _kind(folders[0]) for word, folders in zip(words, found, strict=True)}
    if len(set(kinds.values())) > 1:
        said = ", ".join(f"{word} is a {kind.removesuffix('.json')}" for word, kind in kinds.items())
        raise UsageError(f"{said}: runs are compared with runs and studies with studies")
    if STUDY in kinds.values():
        return [_read_study(label, folders[0]) for label, folders in zip(LABELS, found, strict=False)]
    cache: dict[Path, Run] = {}
    for folder in (folder for folders in found for folder in folders):
        if folder not in cache:
            cache[folder] = _read_run(folder)
    return [
        RunSide(label, tuple(cache[folder] for folder in folders))
        for label, folders in zip(LABELS, found, strict=False)
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
        found = _find(",".join(parts[:end])) if end else None
        if found is None:
            raise UsageError(
                f"{parts[0] or word!r} is neither a run nor a study: no {RUN} and no {STUDY} in it, nor in a folder of "
                f"that name in {paths.shown(paths.DASHBOARDS)}/"
            )
        folders.append(found)
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
    summary = _read_json(folder / "summary.json", folder)
    if summary.get("format") != 1 or not (folder / "frames.csv").is_file():
        raise FramestormError(
            f"{folder.name}: its report is missing or of another version; ./run.sh report {paths.shown(folder)}"
        )
    frames = read_frames(folder / "frames.csv").sort("start_ms", maintain_order=True)
    if not frames.height:
        raise FramestormError(f"{folder.name} measured nothing: there is no frame in frames.csv to compare")
    return replace(run_of(folder, record, summary, frames, _users(folder)), target=target_of_run(folder, record))


def run_of(
    folder: Path, record: dict[str, Any], summary: dict[str, Any], frames: pl.DataFrame, users: Times | None = None
) -> Run:
    """A run of its frames, in the order of their starts."""
    ok = frames.filter("ok")
    seen = frames.filter((pl.col("ok") & pl.col("rtt_ms").is_not_null()) | pl.col("timed_out"))
    times = {"": Times(_floats(seen["rtt_ms"]), seen["timed_out"].to_numpy())}
    times |= {name: _all_full(ok[f"{name}_ms"]) for name in ("handler", "model")}
    times |= {"user": users} if users is not None else {}
    ended = (ok["start_ms"] + ok["rtt_ms"]).drop_nulls().sort()
    known = {name: series for name, series in times.items() if series.n}
    serving = serving_ms(frames, at_rate=is_at_rate(record))
    return Run(folder, record, summary, known, frames["ok"].to_numpy(), _floats(ended), serving)


def _users(folder: Path) -> Times:
    """Users that ended well, and as lower bounds those that ran out of time; JMeter's own times."""
    with read_jtl(folder, "") as jtl:
        if jtl.rows is None or not jtl.count("user"):
            return Times(np.empty(0), np.empty(0, dtype=bool))
        users = read_users(jtl).sort("start_ms").filter(pl.col("ok") | pl.col("censored"))
    return Times(_floats(users["elapsed_ms"]), (~users["ok"]).to_numpy())


def _read_study(label: str, folder: Path) -> StudySide:
    study = _read_json(folder / STUDY, folder)
    if study.get("format") != 1 or study.get("kind") != "study":
        kit = (study.get("kit") or {}).get("version", "of unknown version")
        raise UsageError(
            f"{paths.shown(folder)} was written by framestorm {kit}, as {study.get('kind')} of format "
            f"{study.get('format')}; compare it with framestorm {kit}, or run the study again"
        )
    path = folder / "results.csv"
    if not path.is_file():
        raise FramestormError(f"{folder.name} has no results.csv yet; ./run.sh report {paths.shown(folder)}")
    results = pl.read_csv(path, infer_schema_length=None, schema_overrides={"point": pl.String, "state": pl.String})
    complete = results.filter(pl.col("state") == "complete")
    if not complete.height:
        raise FramestormError(f"{folder.name}: no point is complete, there is nothing to compare")
    points = {point_key(point["factors"]): point for point in study["points"]}
    schedule = json.dumps([study.get("seed"), (study.get("definition") or {}).get("order"), sorted(points)])
    left_out = results.height - complete.height
    return StudySide(label, folder.name, folder, study, complete, left_out, points, schedule)


def levels(side: StudySide, factor: str, wanted: Sequence[str]) -> list[StudySide]:
    """A study taken apart by the levels of one factor; what ran in one repetition pairs.

    Raises:
        UsageError: the study has no such factor or level, or fewer than two levels are wanted.
    """
    seen = _levels_of(side)
    if factor not in seen:
        raise UsageError(f"--factor {factor}: {side.name} has no such factor; there are {_said(seen)}")
    unknown = [level for level in wanted if level not in seen[factor]]
    if unknown:
        raise UsageError(f"--factor {factor}={unknown[0]}: no such level; there are {', '.join(seen[factor])}")
    if len(set(wanted)) < 2 or len(set(wanted)) < len(wanted):
        raise UsageError(f"--factor {factor}={','.join(wanted)}: two or more different levels are compared")
    made = []
    for label, level in zip(LABELS, wanted, strict=False):
        points = [point for point in side.points.values() if str(point["factors"].get(factor)) == level]
        of_level = side.results.filter(pl.col("point").is_in([point["id"] for point in points]))
        if not of_level.height:
            raise FramestormError(f"{side.name}: no point with {factor}={level} is complete")
        by_key = {point_key(point["factors"], factor): point for point in points}
        name = f"{factor}={level}"
        made.append(replace(side, label=label, name=name, results=of_level, points=by_key, schedule=str(side.folder)))
    return made


def factors_text(side: StudySide) -> str:
    """A study's factors and their levels, as they are given with --factor."""
    return _said(_levels_of(side))


def _levels_of(side: StudySide) -> dict[str, list[str]]:
    found: dict[str, dict[str, None]] = {}
    for point in side.points.values():
        for name, value in point["factors"].items():
            found.setdefault(name, {})[str(value)] = None
    return {name: list(values) for name, values in found.items()}


def _said(by_factor: dict[str, list[str]]) -> str:
    return "; ".join(f"{name}={','.join(values)}" for name, values in by_factor.items())


def _read_json(path: Path, folder: Path) -> dict[str, Any]:
    try:
        read = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FramestormError(
            f"{folder.name} has no {path.name}; make it by ./run.sh report {paths.shown(folder)}"
        ) from None
    except (OSError, ValueError) as error:
        raise FramestormError(f"{path} cannot be read ({error}); ./run.sh report makes it again") from error
    if not isinstance(read, dict):
        raise FramestormError(f"{path} is not a JSON object; ./run.sh report makes it again")
    return read


def _all_full(column: pl.Series) -> Times:
    values = _floats(column.drop_nulls())
    return Times(values, np.zeros(values.size, dtype=bool))


def _floats(column: pl.Series) -> Floats:
    values: Floats = column.drop_nulls().to_numpy().astype(np.float64, copy=False)
    return values
