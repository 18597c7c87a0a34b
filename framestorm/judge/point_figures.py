"""Calculates each metric of each point of a study: the mean over its repetitions, with its interval."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from framestorm.model.metric import METRICS, USER, is_of_run, is_rounded, percentile, split_label
from framestorm.model.metric import metric as metric_of
from framestorm.model.study_summary import PointRun, PointState, PointSummary, RestrictedMean
from framestorm.points.derived import inputs, may_be_negative
from framestorm.points.folder import Point
from framestorm.points.results_csv import ResultRow
from framestorm.points.study_results import StudyResults, count_doubts
from framestorm.results.samples import OrderedTimes
from framestorm.stats.bootstrap import draw
from framestorm.stats.estimate import Ends, Estimate, EstimateBound
from framestorm.stats.evidence import rounding_ms
from framestorm.stats.means import student
from framestorm.stats.shares import design_effect, wilson

# Summed over a point's runs, not averaged.
COUNTS = (
    "n_sent", "n", "ok", "failed", "timed_out", "rejected_warm_up", "rejected_cold", "rejected_warm",
    "dropped_arrivals", "warnings",
)  # fmt: skip


def summarise_points(study: StudyResults) -> list[PointSummary]:
    """Return every point of the study, those without any run included."""
    rows: dict[str, list[ResultRow]] = {point.id: [] for point in study.points}
    for row in study.rows:
        rows[row.point.id].append(row)
    return [_point(study, point, rows[point.id]) for point in study.points]


def _point(study: StudyResults, point: Point, rows: Sequence[ResultRow]) -> PointSummary:
    done = [row for row in rows if row.is_complete]
    planned = study.record.definition.repetitions
    state: PointState = (
        "complete" if len(done) >= planned else "missing" if not rows else "partial" if done else "failed"
    )
    names = dict.fromkeys((*METRICS, *(name for row in done for name in row.metrics), *study.derived))
    return PointSummary(
        id=point.id,
        factors=point.factors,
        state=state,
        planned=planned,
        complete=len(done),
        failed=len(rows) - len(done),
        causes=list(dict.fromkeys(str(row.line.reason) for row in rows if not row.is_complete)),
        counts={name: sum(row.count(name) for row in done) for name in COUNTS},
        figures={name: figure for name in names if (figure := estimate(study, name, done)) is not None},
        restricted_mean=_restricted_mean(study, done),
        doubts=count_doubts(done),
        runs=[_point_run(row) for row in rows],
    )


def _point_run(row: ResultRow) -> PointRun:
    line, warnings = row.line, row.count("warnings") if row.metrics else None
    return PointRun(line.repetition, line.run, line.state, line.reason, line.order, warnings, row.doubts)


def estimate(study: StudyResults, metric: str, rows: Sequence[ResultRow]) -> Estimate | None:
    """Return the metric over the complete runs of one point, with its interval; None without values."""
    valued = [row for row in rows if row.metrics.get(metric) is not None]
    if not valued or isinstance(valued[0].metrics[metric], bool):
        return None
    values = [float(row.metrics[metric] or 0) for row in valued]
    kinds = {row.bounds.get(metric) for row in valued}
    bound: EstimateBound = "unsure" if "unsure" in kinds else "lower" if "lower" in kinds else "exact"
    if metric_of(metric).counted_by and metric_of(metric).is_share:
        figure = _share(study, metric, valued, values)
    else:
        figure = student(values) if len(values) > 1 else _within(study, metric, valued[0])
    if metric not in study.derived and is_rounded(metric):
        off = rounding_ms(values)
        figure = figure.or_wider((figure.value - off, figure.value + off))
    elif repeats_whole_ms(study, metric, valued):
        figure = figure.opened(low=True, high=True)
    figure = figure.within(limits(study, metric)).opened(bound == "unsure", bound != "exact")
    return replace(figure, n=len(values), bound=bound)


def _share(study: StudyResults, metric: str, rows: Sequence[ResultRow], shares: Sequence[float]) -> Estimate:
    """Of all samples together; its interval is of these, or of how far runs differ where that is wider."""
    value, worth = share_of(study, metric, rows)
    counted = "users" if metric_of(metric).counted_by == "users" else "samples"
    figure = Estimate(value, *(wilson(value * worth, worth) or (0.0, 1.0)), method=f"Wilson, of {worth:.0f} {counted}")
    of_runs = student(shares)
    if of_runs.low is None:
        return figure
    return figure.or_wider(of_runs.ends, f"the wider of {figure.method}, and {of_runs.method}")


def share_of(study: StudyResults, metric: str, rows: Sequence[ResultRow]) -> tuple[float, float]:
    """A share (or of a count, its share) over complete runs together, and of how many independent samples or users.

    Failures of one run may come in clusters; among several runs, the variation between them shows that.
    """
    counted = [row.count(str(metric_of(metric).counted_by)) for row in rows]
    sizes = counted if metric_of(metric).is_share else [1] * len(rows)
    share = sum((row.metrics[metric] or 0) * size for row, size in zip(rows, sizes, strict=True)) / sum(counted)
    is_alone = len(rows) == 1 and split_label(metric)[1] == "success"
    right = study.samples(rows[0], metric).right if is_alone else None
    return share, sum(counted) / (1 if right is None else design_effect(right))


def repeats_whole_ms(study: StudyResults, metric: str, rows: Sequence[ResultRow]) -> bool:
    """Return whether a derived metric is the same in all of several runs, which of times in whole ms says nothing."""
    if len(rows) < 2 or metric not in study.derived or len({row.metrics.get(metric) for row in rows}) > 1:
        return False
    return any(map(is_rounded, inputs(study.derived, metric, rows[0].point.factors)))


def limits(study: StudyResults, metric: str) -> Ends:
    """The least and the most that a metric can be: the part of an interval between them holds the truth as often."""
    is_share = metric not in study.derived and is_of_run(metric) and metric_of(metric).is_share
    return None if may_be_negative(study.derived, metric) else 0.0, 1.0 if is_share else None


def sample_statistic(study: StudyResults, metric: str) -> str | None:
    """Return the statistic of times, as `stats.bootstrap` has it; None where samples do not give the metric."""
    about = metric_of(metric)
    if metric in study.derived or about.series in {None, USER} or about.statistic in {None, "min", "max"}:
        return None
    return percentile(str(about.statistic)) or about.statistic


def _within(study: StudyResults, metric: str, row: ResultRow) -> Estimate:
    """Return what a single run says about its own figure; nothing about what another run would have given."""
    value, statistic = float(row.metrics[metric] or 0), sample_statistic(study, metric)
    if statistic in {None, "sd"}:
        return Estimate(value, method="one run")
    times = study.times([row], metric)
    return replace(draw(times.values_ms, str(statistic), cut=times.cut).estimate(), value=value)


def _restricted_mean(study: StudyResults, rows: Sequence[ResultRow]) -> RestrictedMean | None:
    if not any(row.bounds.get("mean_ms") for row in rows):
        return None
    times = [study.times([row], "mean_ms") for row in rows]
    limit_ms = float(OrderedTimes.together(times).cut_ms.min())
    means = [np.minimum(run.values_ms, limit_ms).mean() for run in times if run.n]
    return RestrictedMean(student(means), limit_ms)
