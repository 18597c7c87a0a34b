"""Runs to figures: of every point and metric the mean over its repetitions with an interval, and what was lost."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from framestorm.report.stats import Floats, wilson
from framestorm.statistics.bootstrap import bootstrap
from framestorm.statistics.means import student
from framestorm.statistics.rounding import hidden_too
from framestorm.statistics.shares import design_effect
from framestorm.study.answers.derived import inputs, may_be_negative
from framestorm.study.answers.results import LOWER, PERCENTILES, UNSURE
from framestorm.study.answers.samples import Samples, read_samples
from framestorm.study.design.folder import COMPLETE
from framestorm.study.design.metrics import BY_NAME, COUNTED_BY, METRICS, TIMES_MS

Row = dict[str, Any]
Figure = dict[str, Any]
Ends = tuple[float | None, float | None]
EXACT = "exact"
# Summed over a point's runs, not averaged.
COUNTS = (
    "n_sent", "n", "ok", "failed", "timed_out", "rejected_warm_up", "rejected_cold", "rejected_warm",
    "dropped_arrivals", "warnings",
)  # fmt: skip
# Of such a series and statistic: a single run gives an interval of it too.
OF_SAMPLES = {
    f"{prefix}{name}_ms": (series, statistic)
    for prefix, series in (("", "rtt"), ("open_", "open"))
    for name, statistic in ({"mean": "mean"} | PERCENTILES).items()
} | {f"{series}_mean_ms": (series, "mean") for series in ("handler", "model", "outside")}
# What a run's own report says against its figures, by its kinds, as sentences.
DOUBTS = {
    "saturated": "the machine was saturated: times include waiting for a core",
    "not_offered": "the asked rate was not offered",
    "slave_lost": "a slave was lost",
    "replica_lost": "a replica was lost",
    "replicas_short": "fewer replicas were ready than wanted",
    "clock": "a clock was wrong",
}


class Study:
    """A study's folder as it is analysed: its settings, points and rows, and the samples of its runs."""

    def __init__(self, folder: Path, settings: Mapping[str, Any], rows: Sequence[Row]) -> None:
        self.folder = folder
        self.settings = settings
        self.definition: Mapping[str, Any] = settings["definition"]
        self.points: list[dict[str, Any]] = list(settings["points"])
        self.rows = list(rows)
        self.derived: Mapping[str, Any] = self.definition.get("derived") or {}
        self.complete = [row for row in self.rows if row["state"] == COMPLETE]
        self.by_cell = {(row["point"], row["repetition"]): row for row in self.complete}
        self.repetitions = sorted({row["repetition"] for row in self.complete})

    def samples(self, row: Row) -> Samples:
        """The samples of a complete run."""
        warm_up_s, temperature = float(self.definition.get("warm_up_s") or 0), self.definition.get("temperature")
        return read_samples(self.folder / row["run"], warm_up_s, temperature or "any")

    def times(self, rows: Sequence[Row], series: str) -> tuple[Floats, Floats]:
        """Times in ms of complete runs together: in full, and cut off by a time-out."""
        full, cut = zip(*(self.samples(row).times(series) for row in rows), strict=True)
        return np.concatenate(full), np.concatenate(cut)

    def matching(self, where: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The points with the wanted levels; of a factor one level is wanted, or one of a list."""
        return [point for point in self.points if all(_has(point["factors"], *wanted) for wanted in where.items())]


def _has(factors: Mapping[str, Any], name: str, wanted: Any) -> bool:
    return factors.get(name) in (wanted if isinstance(wanted, list) else [wanted])


def analyse(study: Study) -> list[dict[str, Any]]:
    """A row a point of the study, those without any run included."""
    rows: dict[str, list[Row]] = {point["id"]: [] for point in study.points}
    for row in study.rows:
        rows[row["point"]].append(row)
    return [_point(study, point, rows[point["id"]]) for point in study.points]


def _point(study: Study, point: dict[str, Any], rows: Sequence[Row]) -> dict[str, Any]:
    done = [row for row in rows if row["state"] == COMPLETE]
    planned = int(study.definition.get("repetitions") or 1)
    state = "complete" if len(done) >= planned else "missing" if not rows else "partial" if done else "failed"
    counts = {name: sum(int(row["metrics"].get(name) or 0) for row in done) for name in COUNTS}
    figures = {name: figure_of(study, name, done) for name in (*METRICS, *study.derived)}
    return {
        "id": point["id"],
        "factors": point["factors"],
        "state": state,
        "planned": planned,
        "complete": len(done),
        "failed": len(rows) - len(done),
        "causes": list(dict.fromkeys(str(row["reason"]) for row in rows if row["state"] != COMPLETE)),
        "counts": counts,
        "figures": {name: figure for name, figure in figures.items() if figure is not None},
        "restricted_mean_ms": _restricted(study, done),
        "doubts": {kind: n for kind in DOUBTS if (n := sum(kind in row["doubts"] for row in done))},
        "runs": [
            {name: row[name] for name in ("repetition", "run", "state", "reason", "order")}
            | {"warnings": row["metrics"].get("warnings"), "doubts": list(row["doubts"])}
            for row in rows
        ],
    }


def figure_of(study: Study, metric: str, rows: Sequence[Row]) -> Figure | None:
    """The metric over the complete runs of one point, with its interval and how that was made; None without values."""
    valued = [row for row in rows if row["metrics"].get(metric) is not None]
    if not valued or isinstance(valued[0]["metrics"][metric], bool):
        return None
    values = [float(row["metrics"][metric]) for row in valued]
    kinds = {row["bounds"].get(metric) for row in valued}
    bound = UNSURE if UNSURE in kinds else LOWER if LOWER in kinds else EXACT
    if metric in COUNTED_BY:
        value, ends, method = _share(study, metric, valued, values)
    elif len(values) > 1:
        mean = student(values)
        value, ends, method = mean.value, (mean.low, mean.high), mean.method
    else:
        value, (ends, method) = values[0], _within(study, metric, valued[0])
    if metric in TIMES_MS:
        ends = hidden_too(ends, value, values)
    elif repeats_whole_ms(study, metric, valued):
        ends = None, None
    low, high = possible(study, metric, *ends)
    ends = None if bound == UNSURE else low, None if bound != EXACT else high
    return _figure(value, ends, len(values), method, bound)


def _share(study: Study, metric: str, rows: Sequence[Row], shares: Sequence[float]) -> tuple[float, Ends, str]:
    """Of all samples together; its interval is of these, or of how far runs differ where that is wider."""
    value, worth = share_of(study, metric, rows)
    low, high = wilson(value * worth, worth) or (0.0, 1.0)
    method = f"Wilson, of {worth:.0f} {'users' if metric == 'user_success' else 'samples'}"
    of_runs = student(shares)
    if of_runs.low is None or of_runs.high is None:
        return value, (low, high), method
    return value, (min(low, of_runs.low), max(high, of_runs.high)), f"the wider of {method}, and {of_runs.method}"


def share_of(study: Study, metric: str, rows: Sequence[Row]) -> tuple[float, float]:
    """A share over complete runs together, and how many independent samples (or users) it is of.

    Failures of a run may come in clusters. Where there are more runs, how far these differ tells of that.
    """
    counted = [int(row["metrics"][COUNTED_BY[metric]]) for row in rows]
    share = sum(row["metrics"][metric] * n for row, n in zip(rows, counted, strict=True)) / sum(counted)
    alone = len(rows) == 1 and metric == "success"
    return share, sum(counted) / (design_effect(study.samples(rows[0]).kept["ok"].to_numpy()) if alone else 1)


def repeats_whole_ms(study: Study, metric: str, rows: Sequence[Row]) -> bool:
    """Whether a derived metric is the same in all of several runs, which of times in whole ms says nothing."""
    if len(rows) < 2 or metric not in study.derived or len({row["metrics"].get(metric) for row in rows}) > 1:
        return False
    return not TIMES_MS.isdisjoint(inputs(study.derived, metric, rows[0]["factors"]))


def possible(study: Study, metric: str, low: float | None, high: float | None) -> Ends:
    """The part of an interval that the metric can be in, which holds the true value as often as the whole."""
    if low is not None and not may_be_negative(study.derived, metric):
        low = max(low, 0.0)
    if high is not None and metric in BY_NAME and BY_NAME[metric].unit == "share":
        high = min(high, 1.0)
    return low, high


def _within(study: Study, metric: str, row: Row) -> tuple[Ends, str]:
    """What a single run says about its own figure; nothing about what another run would have given."""
    if metric in OF_SAMPLES:
        series, statistic = OF_SAMPLES[metric]
        samples = study.samples(row)
        found = bootstrap(samples.in_order(series), statistic, cut=samples.cut_off(series))
        return (found.low, found.high), found.method
    return (None, None), "one run"


def _figure(value: float, ends: Ends, n: int, method: str, bound: str) -> Figure:
    return {"value": value, "low": ends[0], "high": ends[1], "n": n, "method": method, "bound": bound}


def _restricted(study: Study, rows: Sequence[Row]) -> dict[str, Any] | None:
    """The mean of the times up to the shortest time-out seen, which is known whatever the true times are."""
    if not any(row["bounds"].get("mean_ms") for row in rows):
        return None
    times = [study.samples(row).times("rtt") for row in rows]
    limit_ms = float(np.concatenate([cut for _, cut in times]).min())
    means = [np.minimum(both, limit_ms).mean() for run in times if (both := np.concatenate(run)).size]
    return student(means).as_json() | {"up_to_ms": limit_ms}
