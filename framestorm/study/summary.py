"""A study's summary.json: every figure of its page, which is made from this file alone."""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import polars as pl

from framestorm.judge.claims import answer
from framestorm.judge.knees import scalability
from framestorm.judge.point_figures import summarise_points
from framestorm.model import study as design
from framestorm.model.expectation import CONFIRMED, INCONCLUSIVE, REJECTED, HypothesisVerdict
from framestorm.model.files import FORMAT, read
from framestorm.model.metric import BY_NAME, PERCENTILES, is_of_run, metric, quoted, split_label
from framestorm.model.run import Host, Record
from framestorm.model.sample import is_length
from framestorm.model.study import ChartDefinition, Value
from framestorm.model.study_summary import (
    HypothesisAnswer,
    IndexBand,
    IndexCell,
    PointSummary,
    Progress,
    PublishedPoint,
    ScalabilityLine,
)
from framestorm.model.summary import RunFile, Summary
from framestorm.model.units import as_number, as_text, is_number
from framestorm.points.derived import asked_metrics
from framestorm.points.folder import FILES, StudyRecord
from framestorm.points.study_results import StudyResults
from framestorm.report.series import BAND_ENDS, MAX_INDEX_BINS, band_of
from framestorm.results.reading import read_run
from framestorm.stats.estimate import Estimate, EstimateBound

RESPONSE_TIME = "rtt_ms"
MADE_HERE = frozenset({"results.csv", "summary.json", "junit.xml"})


@dataclass(frozen=True)
class StudySummary:
    """The content of a study's summary.json.

    levels: all levels of each factor in order, including those that only the published study has; levels_run: the
    levels that points have. by_index: the data of charts by index, by the chart's number. unmeasured: what
    study.yml asks about and no run has. mixed: which of hosts and versions are not the same in all runs.
    """

    study: StudyRecord
    levels: dict[str, list[Value]]
    levels_run: dict[str, list[Value]]
    progress: Progress
    verdicts: dict[HypothesisVerdict, int]
    hypotheses: list[HypothesisAnswer]
    points: list[PointSummary]
    published: list[PublishedPoint] | None
    scalability: list[ScalabilityLine]
    by_index: dict[int, list[IndexCell]]
    hosts: tuple[Host, ...]
    versions: dict[str, str | None]
    files: list[RunFile]
    unmeasured: list[str] = field(default_factory=list)
    mixed: list[str] = field(default_factory=list)
    format: int = field(default=FORMAT, kw_only=True)
    kind: Literal["study"] = field(default="study", kw_only=True)


def summarise(study: StudyResults) -> StudySummary:
    """Return the whole of summary.json."""
    definition = study.record.definition
    points, hypotheses = summarise_points(study), answer(study)
    published = read_published(study.folder, definition)
    records = [read_run(study.folder / row.line.run)[0] for row in study.complete] or [Record()]
    return StudySummary(
        study=study.record,
        levels=_levels(definition, published),
        levels_run={
            name: [level for level in factor.values if any(point.factors.get(name) == level for point in study.points)]
            for name, factor in definition.factors.items()
        },
        progress=_progress(study, points),
        verdicts={word: sum(h.verdict == word for h in hypotheses) for word in (CONFIRMED, REJECTED, INCONCLUSIVE)},
        hypotheses=hypotheses,
        points=points,
        published=published,
        scalability=scalability(study),
        by_index={
            number: times_by_index(study, chart) for number, chart in enumerate(definition.charts) if chart.is_by_index
        },
        hosts=records[0].hosts,
        versions=records[0].versions,
        files=[
            RunFile(name, what) for name, what in FILES.items() if name in MADE_HERE or (study.folder / name).exists()
        ],
        unmeasured=_unmeasured(study),
        mixed=_mixed(records),
    )


def _mixed(records: Sequence[Record]) -> list[str]:
    """What is not the same in all runs, as after a resumption elsewhere or later: figures then mix it with factors."""
    kinds: dict[str, list[Any]] = {
        "hosts": [sorted((host.name, host.cores or 0) for host in record.hosts) for record in records],
        "versions": [record.versions for record in records],
        "commit of Framestorm": [record.kit.commit if record.kit else None for record in records],
    }
    return [kind for kind, of_runs in kinds.items() if any(each != of_runs[0] for each in of_runs)]


def _unmeasured(study: StudyResults) -> list[str]:
    """Sentences on labels, and on figures of samples, that study.yml asks about and no run has, with what there is."""
    sentences = []
    for name in asked_metrics(study.record.definition) if study.complete else ():
        is_known = name in BY_NAME or name in study.derived or not is_of_run(name)
        if is_known or any(row.metrics.get(name) is not None for row in study.complete):
            continue
        label, there = split_label(name)[0], set[str]()
        lacking = f"the label {quoted(label)}" if label is not None else ""
        if label is None or any(study.samples(row, name).sent for row in study.complete):
            lacking = f"a {metric(name).label}"
            kept = [study.samples(row, name) for row in study.complete]
            there |= {figure for each in kept for figure in each.figures() if each.kept[figure].count()}
        else:
            there |= {
                quoted(of.label)
                for row in study.complete
                for of in read(study.folder / row.line.run / "summary.json", Summary).labels.values()
                if of.of_labels == 1
            }
        sentences.append(f"No sample has {lacking}; there are {', '.join(sorted(there)) or 'none'}.")
    return list(dict.fromkeys(sentences))


def _levels(definition: design.Study, published: Sequence[PublishedPoint] | None) -> dict[str, list[Value]]:
    """Return the levels of each factor in order, including those that only the published study has."""
    levels: dict[str, list[Value]] = {}
    for name, factor in definition.factors.items():
        of_published = (row.factors[name] for row in published or () if name in row.factors)
        every: list[Value] = list(dict.fromkeys([*factor.values, *of_published]))
        levels[name] = sorted(every, key=float) if all(map(is_number, every)) else every
    return levels


def _progress(study: StudyResults, points: list[PointSummary]) -> Progress:
    costs_ms = [row.line.engine_ms for row in study.rows]
    return Progress(
        points=len(points),
        planned_runs=sum(max(point.planned, point.complete) for point in points),
        complete_runs=len(study.complete),
        failed_runs=len(study.rows) - len(study.complete),
        states={
            state: sum(point.state == state for point in points)
            for state in ("complete", "partial", "failed", "missing")
        },
        started_ms=min((row.line.started_ms for row in study.rows), default=None),
        ended_ms=max((row.line.ended_ms for row in study.rows), default=None),
        engine_mean_ms=sum(costs_ms) / len(costs_ms) if costs_ms else None,
        engine_max_ms=max(costs_ms, default=None),
        doubts={
            doubt: sum(point.doubts.get(doubt, 0) for point in points)
            for doubt in dict.fromkeys(doubt for point in points for doubt in point.doubts)
        },
        counts={name: sum(point.counts[name] for point in points) for name in points[0].counts} if points else {},
        repeated_runs=len(study.repeated),
        repeated_causes=list(dict.fromkeys(line.reason for line in study.repeated if line.reason)),
    )


def read_published(folder: Path, definition: design.Study) -> list[PublishedPoint] | None:
    """The published results as points: factors by our levels, figures without intervals; None if there are none."""
    path = folder / definition.published if definition.published else None
    if path is None or not path.exists():
        return None
    # A table saved by Excel begins with a byte order mark.
    with path.open(encoding="utf-8-sig", newline="") as file:
        return [_published(row, definition) for row in csv.DictReader(file)]


def _published(row: Mapping[str, str | None], definition: design.Study) -> PublishedPoint:
    factors: dict[str, Value] = {}
    figures: dict[str, Estimate] = {}
    is_cut = row.get("mean_is_lower_bound") == "true"
    for name, text in row.items():
        number = as_number(text) if text else None
        if name in definition.factors and text:
            factors[name] = _level(text, definition.factors[name].values)
        elif (name in BY_NAME or name in definition.derived) and number is not None:
            # A percentile among the samples that timed out is only the time waited: a lower bound.
            success, percentile = as_number(row.get("success") or ""), PERCENTILES.get(name.removesuffix("_ms"))
            is_beyond = percentile is not None and success is not None and float(percentile) > 100 * success
            bound: EstimateBound = "lower" if is_cut and (name == "mean_ms" or is_beyond) else "exact"
            figures[name] = Estimate(float(number), n=1, bound=bound)
    return PublishedPoint(factors, figures)


def _level(text: str, levels: Sequence[Value]) -> Value:
    """The level that `text` stands for; a number that is not one of `levels` stays a number if `levels` are numbers."""
    number = as_number(text)
    for level in levels:
        if as_text(level) == text or (is_number(level) and number == level):
            return level
    return number if number is not None and not any(isinstance(level, str) for level in levels) else text


def times_by_index(study: StudyResults, chart: ChartDefinition) -> list[IndexCell]:
    """By level of `panels` and `rows`: median and 5 % to 95 % of all users and repetitions, by index and figure.

    A response that timed out counts with the time waited; further figures are of the samples without error.
    """
    parts: dict[tuple[Value | None, Value | None], list[pl.DataFrame]] = {}
    for point in study.matching(chart.where):
        place = (point.factors.get(chart.panels or ""), point.factors.get(str(chart.rows)))
        for row in study.runs(point, study.repetitions):
            samples = study.samples(row)
            columns = [RESPONSE_TIME, *filter(is_length, samples.figures())]
            parts.setdefault(place, []).append(samples.kept.select("index", "ok", "timed_out", *columns))
    cells = []
    for (panel, level), tables in parts.items():
        samples_of_cell = pl.concat(tables, how="diagonal").filter(pl.col("index").is_not_null())
        if samples_of_cell.height and (cell := _cell(samples_of_cell, panel, level, len(tables))):
            cells.append(cell)
    return cells


def _cell(samples: pl.DataFrame, panel: Value | None, level: Value | None, runs: int) -> IndexCell | None:
    step = int(samples.select(pl.col("index").max()).item()) // MAX_INDEX_BINS + 1
    binned = samples.with_columns((pl.col("index") // step * step).alias("x"))
    bands: dict[str, IndexBand] = {}
    for column in (name for name in binned.columns if name.endswith("_ms")):
        counted = pl.col("ok") | pl.col("timed_out") if column == RESPONSE_TIME else pl.col("ok")
        timed = binned.filter(counted & pl.col(column).is_not_null())
        by_index = timed.group_by("x").agg(band_of(column)).sort("x")
        if by_index.height:
            ends = {name: [round(value, 2) for value in by_index[name]] for name in BAND_ENDS}
            bands[column] = IndexBand(by_index["x"].to_list(), **ends)
    return IndexCell(panel, level, runs, step, int(samples["timed_out"].sum()), bands) if bands else None
