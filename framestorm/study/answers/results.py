"""The figures of each run of a study, made of the run folders alone."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from framestorm.errors import FramestormError
from framestorm.model.files import read
from framestorm.model.metric import METRICS, OUTSIDE, PERCENTILES, column
from framestorm.model.summary import Doubt, Summary
from framestorm.results.table import serving_ms, span_ms
from framestorm.stats.estimate import Bound
from framestorm.stats.percentiles import Sample
from framestorm.study.answers.derived import derive, inputs
from framestorm.study.answers.rows import Number, ResultRow
from framestorm.study.answers.samples import Samples, read_samples
from framestorm.study.design.folder import COMPLETE, FAILED, StudyFolder

Value = Number
LOWER: Bound = "lower"
UNSURE: Bound = "unsure"
USER_FIGURES = {"user_mean_ms": "mean", "user_median_ms": "p50", "user_p95_ms": "p95"}


@dataclass(frozen=True)
class RunFigures:
    """What one run gave.

    metrics: every metric by name, None where the run has none.
    bounds: those that timeouts cut off: "lower" for a lower bound, "unsure" for a figure that may lie on either side.
    doubts: kinds of grave warnings of the run's own report.
    """

    metrics: dict[str, Value]
    bounds: dict[str, Bound]
    doubts: tuple[Doubt, ...]


NO_FIGURES = RunFigures({}, {}, ())


def result_rows(folder: StudyFolder) -> list[ResultRow]:
    """The runs of a study with their figures, in order of points and repetitions.

    Of a point and repetition that was tried again the last line counts.
    """
    definition = folder.record.definition
    points = {point.id: point for point in folder.record.points}
    order = {name: place for place, name in enumerate(points)}
    rows = []
    lines = [line for line in folder.lines().values() if line.point in points]
    for line in sorted(lines, key=lambda line: (order[line.point], line.repetition)):
        row = ResultRow(
            points[line.point], line.repetition, line.run, line.state, line.reason, line.order, line.started_ms,
            line.ended_ms, line.engine_ms,
        )  # fmt: skip
        if row.is_complete:
            figures, why = figures_or_why_not(folder.path / line.run, definition.warm_up_s, definition.temperature)
            row.state, row.reason = (FAILED, why) if why else (COMPLETE, None)
            row.metrics, row.bounds, row.doubts = dict(figures.metrics), dict(figures.bounds), figures.doubts
        rows.append(row)
    derive(definition.derived, rows)
    for row in rows:
        for name in definition.derived:
            if not inputs(definition.derived, name, row.point.factors).isdisjoint(row.bounds):
                row.bounds[name] = UNSURE
    return rows


def figures_or_why_not(run_dir: Path, warm_up_s: float, temperature: str) -> tuple[RunFigures, str | None]:
    """The figures of one run's folder; or none, and why its files, lost or cut, give none."""
    try:
        return figures_of_run(run_dir, warm_up_s, temperature), None
    except (OSError, ValueError, FramestormError, pl.exceptions.PolarsError) as error:
        return NO_FIGURES, f"the run's files cannot be read: {error}"


def figures_of_run(run_dir: Path, warm_up_s: float, temperature: str) -> RunFigures:
    """The figures of one run's folder after rejection, and what its own report warns of.

    Times are in ms and exact, by the rules of the run's own report.

    Rates, `total_s` and the workers' shares are of the whole load after the warm-up, whatever its temperature: a cold
    sample was sent and served like any other. Users are all of the run's.

    Raises:
        OSError, ValueError, FileError: samples.csv or summary.json is missing or broken.
    """
    samples = read_samples(run_dir, warm_up_s, temperature)
    summary = read(run_dir / "summary.json", Summary)
    if samples.sent != summary.main.n:
        raise ValueError(f"samples.csv has {samples.sent} samples, and its report was made of {summary.main.n}")
    times, bounds = _times(samples)
    users, user_bounds = _users(summary)
    found = {
        **_counts(samples),
        **times,
        **users,
        **_rates(samples, summary),
        **_workers(samples, summary),
        **_machines(summary),
        "warnings": len(summary.warnings),
    }
    metrics = {name: found.get(name) for name in dict.fromkeys((*METRICS, *found))}
    return RunFigures(metrics, bounds | user_bounds, tuple(summary.doubts))


def _counts(samples: Samples) -> dict[str, Value]:
    kept = samples.kept
    n, ok = kept.height, int(kept["ok"].sum())
    return {
        "n_sent": samples.sent, "n": n, "ok": ok, "failed": n - ok, "timed_out": int(kept["timed_out"].sum()),
        "success": ok / n if n else None,
        "rejected_warm_up": samples.rejected_warm_up, "rejected_cold": samples.rejected_cold,
        "rejected_warm": samples.rejected_warm,
    }  # fmt: skip


def _times(samples: Samples) -> tuple[dict[str, Value], dict[str, Bound]]:
    found: dict[str, Value] = {}
    bounds: dict[str, Bound] = {}
    known_start = samples.kept["intended_ms"].null_count() < samples.kept.height
    for series, prefix in (("rtt", ""), ("open", "open_")):
        if series == "rtt" or known_start:
            sample = Sample(*samples.times(series))
            figures = {"mean": sample.mean()} | {name: sample.percentile(p) for name, p in PERCENTILES.items()}
            if series == "rtt":
                figures |= {"min": sample.extreme(largest=False), "max": sample.extreme(largest=True)}
                found["mean_is_lower_bound"] = bool(sample.censored) if sample.n else None
            values = {f"{prefix}{name}_ms": figure for name, figure in figures.items()}
            found |= {name: figure.value if figure else None for name, figure in values.items()}
            bounds |= {name: LOWER for name, figure in values.items() if figure and figure.bound == "lower"}
    seen = samples.in_order("rtt")
    found["sd_ms"] = _deviation(seen)
    if found.get("mean_is_lower_bound"):
        # Values that all end at the timeout spread less than the true ones, or more.
        bounds["sd_ms"] = UNSURE
    for series in (OUTSIDE, *samples.figures()):
        times = samples.times(series)[0]
        sample = Sample(times)
        # By the very sum of the report, to the last digit.
        figures = {"mean": sample.mean()} | {name: sample.percentile(p) for name, p in PERCENTILES.items()}
        found |= {column(series, name): figure.value if figure else None for name, figure in figures.items()}
        found[column(series, "sd")] = _deviation(times)
    return found, bounds


def _users(summary: Summary) -> tuple[dict[str, Value], dict[str, Bound]]:
    users = summary.users
    if not users:
        return {}, {}
    times = users.times.get("duration")
    figures = {name: figure for name, of in USER_FIGURES.items() if times and (figure := getattr(times, of))}
    return (
        {"users": users.n, "user_success": users.success} | {name: figure.value for name, figure in figures.items()},
        {name: LOWER for name, figure in figures.items() if figure.bound == "lower"},
    )


def _rates(samples: Samples, summary: Summary) -> dict[str, Value]:
    loaded = samples.loaded
    found: dict[str, Value] = {"asked_per_s": _number(summary.run.properties.get("rate_per_s"))}
    due = summary.facts.arrivals
    if due is not None:
        # One arrival too many is what a rate that does not divide evenly may count.
        found["dropped_arrivals"] = due - samples.sent if due - samples.sent > 1 else 0
    span = span_ms(loaded, "rtt_ms")
    if span is None:
        return found
    found["total_s"] = (span[1] - span[0]) / 1000
    serving = serving_ms(loaded, at_rate=summary.run.is_open_model)
    if serving is not None and serving[1] > serving[0]:
        found["served_per_s"] = int(loaded["ok"].sum()) / (serving[1] - serving[0]) * 1000
    starts_s = float(loaded.select(pl.col("start_ms").max() - pl.col("start_ms").min()).item()) / 1000
    if starts_s > 0:
        # n starts span n - 1 pauses: this way a steady rate comes out as itself.
        found["offered_per_s"] = (loaded.height - 1) / starts_s
    return found


def _workers(samples: Samples, summary: Summary) -> dict[str, Value]:
    named = samples.loaded["worker"].drop_nulls()
    ready = max((each.ready.max for each in summary.functions if each.ready), default=None)
    found: dict[str, Value] = {"replicas_max": ready}
    if named.len():
        shares = named.value_counts()["count"].to_numpy() / named.len()
        # A worker that never had anything to do is in no answer.
        idle = ready is not None and ready > shares.size
        found |= {
            "workers_seen": int(shares.size),
            "worker_share_max": _float(shares.max()),
            "worker_share_min": 0.0 if idle else _float(shares.min()),
        }
    return found


def _machines(summary: Summary) -> dict[str, Value]:
    machines, functions = summary.machines, summary.functions
    targets = [machine for machine in machines if machine.part == "target"]
    replicas = [replica for function in functions for replica in function.replicas]
    cores = [replica.cores_mean for replica in replicas]
    ways = [(replica.received_bytes_per_s, replica.sent_bytes_per_s) for replica in replicas]
    network = [None if received is None or sent is None else received + sent for received, sent in ways]
    return {
        "target_cores_mean": _sum(functions, "cores_mean") if functions else _sum(targets, "cores_mean"),
        "target_memory_max_bytes": _largest(functions, "memory_max_bytes")
        if functions
        else _largest(targets, "rss_max_bytes"),
        "throttled_mean": _largest(functions, "throttled_mean"),
        **_ends_of(cores, "worker_cores_{}"),
        **_ends_of(network, "worker_network_{}_bytes_per_s"),
        "generator_cores_mean": _sum([each for each in machines if each.part == "generator"], "cores_mean"),
        "host_busy_time": _largest([each for each in machines if each.part == "host"], "busy_time"),
    }


def _ends_of(of_replicas: Sequence[float | None], name: str) -> dict[str, Value]:
    known = [value for value in of_replicas if value is not None]
    return {name.format("max"): max(known), name.format("min"): min(known)} if known else {}


def _deviation(values: Any) -> float | None:
    return _float(values.std(ddof=1)) if values.size > 1 else None


def _float(value: Any) -> float:
    return float(value)


def _number(text: Any) -> float | None:
    try:
        number = float(text)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


def _sum(nouns: Iterable[object], name: str) -> float | None:
    known = [value for noun in nouns if (value := getattr(noun, name)) is not None]
    return float(sum(known)) if known else None


def _largest(nouns: Iterable[object], name: str) -> float | None:
    known = [value for noun in nouns if (value := getattr(noun, name)) is not None]
    return float(max(known)) if known else None
