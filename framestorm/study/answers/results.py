"""results.csv: a row a point and repetition, with every metric of its run; made of the run folders alone."""

import csv
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import polars as pl

from framestorm.report.files import read_run, replacing
from framestorm.report.stats import Sample
from framestorm.report.table import is_at_rate, serving_ms, span_ms
from framestorm.study.answers.derived import derive, inputs
from framestorm.study.answers.samples import Samples, read_samples
from framestorm.study.design.folder import COMPLETE, FAILED, StudyFolder
from framestorm.study.design.metrics import METRICS

Value = float | int | bool | None
FILE = "results.csv"
LOWER, UNSURE = "lower", "unsure"
PERCENTILES = {"median": "50", "p95": "95", "p99": "99"}
USER_FIGURES = {"user_mean_ms": "mean", "user_median_ms": "p50", "user_p95_ms": "p95"}


@dataclass(frozen=True)
class RunFigures:
    """What one run gave.

    metrics: every metric by name, None where the run has none.
    bounds: those that time-outs cut off: "lower" for a lower bound, "unsure" for a figure that may lie on either side.
    doubts: kinds of grave warnings of the run's own report.
    """

    metrics: dict[str, Value]
    bounds: dict[str, str]
    doubts: tuple[str, ...]


NO_FIGURES = RunFigures({}, {}, ())


def write_rows(study_dir: Path, study: Mapping[str, Any], rows: Iterable[Mapping[str, Any]]) -> Path:
    """Make results.csv of the rows of `result_rows`: whole or not at all.

    Numbers are written so that reading them gives the same number again. A metric that is named as a factor has no
    column of its own. After the metrics come the derived ones, and `cut_off`: the metrics, by a space between them,
    that time-outs made lower bounds, or left without a meaning (`sd_ms`).
    """
    derived = list(study["definition"].get("derived") or {})
    factors = factor_names(study)
    columns = ["study", "point", *factors, "repetition", "run", "state", "reason"]
    columns += [name for name in (*METRICS, *derived) if name not in columns] + ["cut_off"]
    path = study_dir / FILE
    with replacing(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        for row in rows:
            cut_off = " ".join(name for name in columns if name in row["bounds"])
            cells = {"study": study["name"], **row, **row["metrics"], **row["factors"], "cut_off": cut_off}
            writer.writerow([_cell(cells.get(name)) for name in columns])
    return path


def result_rows(folder: StudyFolder) -> list[dict[str, Any]]:
    """The runs in order of points and repetitions: point, factors, repetition, run, state, reason, metrics and more.

    Of a point and repetition that was tried again the last line counts.
    """
    definition = folder.settings["definition"]
    warm_up_s, temperature = float(definition["warm_up_s"]), str(definition["temperature"])
    points = {point["id"]: point for point in folder.settings["points"]}
    order = {name: place for place, name in enumerate(points)}
    rows: list[dict[str, Any]] = []
    lines = [line for line in folder.lines().values() if line.point in points]
    for line in sorted(lines, key=lambda line: (order[line.point], line.repetition)):
        figures, state, reason = NO_FIGURES, line.state, line.reason
        if state == COMPLETE:
            figures, reason = figures_or_why_not(folder.path / line.run, warm_up_s, temperature)
            state = FAILED if reason else COMPLETE
        point = points[line.point]
        rows.append(
            asdict(line)
            | {"state": state, "reason": reason}
            | {"metrics": figures.metrics, "bounds": figures.bounds, "doubts": figures.doubts}
            | {"factors": point["factors"], "properties": point["properties"]}
        )
    derived = definition.get("derived") or {}
    derive(derived, rows)
    for row in rows:
        cut = {name for name in derived if not inputs(derived, name, row["factors"]).isdisjoint(row["bounds"])}
        row["bounds"] |= dict.fromkeys(cut, UNSURE)
    return rows


def figures_or_why_not(run_dir: Path, warm_up_s: float, temperature: str) -> tuple[RunFigures, str | None]:
    """The figures of one run's folder; or none, and why its files, lost or cut, give none."""
    try:
        return figures_of_run(run_dir, warm_up_s, temperature), None
    except (OSError, ValueError, LookupError, TypeError, AttributeError, pl.exceptions.PolarsError) as error:
        return NO_FIGURES, f"the run's files cannot be read: {error}"


def figures_of_run(run_dir: Path, warm_up_s: float, temperature: str) -> RunFigures:
    """The figures of one run's folder after rejection, and what its own report warns of.

    Times are in ms and exact, by the rules of the run's own report.

    Rates, `total_s` and the workers' shares are of the whole load after the warm-up, whatever its temperature: a cold
    sample was sent and served like any other. Users are all of the run's.

    Raises:
        OSError, ValueError: frames.csv or summary.json is missing or broken.
    """
    samples = read_samples(run_dir, warm_up_s, temperature)
    summary = json.loads((run_dir / "summary.json").read_text(encoding="utf-8"))
    reported = (summary.get("frames") or {}).get("n", samples.sent)
    if samples.sent != reported:
        raise ValueError(f"frames.csv has {samples.sent} samples, and its report was made of {reported}")
    run, _ = read_run(run_dir)
    times, bounds = _times(samples)
    users, user_bounds = _users(summary)
    found = {
        **_counts(samples),
        **times,
        **users,
        **_rates(samples, summary, run),
        **_workers(samples, summary),
        **_machines(summary),
        "warnings": len(summary["warnings"]),
    }
    metrics = {name: found.get(name) for name in METRICS}
    return RunFigures(metrics, bounds | user_bounds, tuple(summary.get("doubts") or ()))


def _counts(samples: Samples) -> dict[str, Value]:
    kept = samples.kept
    n, ok = kept.height, int(kept["ok"].sum())
    return {
        "n_sent": samples.sent, "n": n, "ok": ok, "failed": n - ok, "timed_out": int(kept["timed_out"].sum()),
        "success": ok / n if n else None,
        "rejected_warm_up": samples.rejected_warm_up, "rejected_cold": samples.rejected_cold,
        "rejected_warm": samples.rejected_warm,
    }  # fmt: skip


def _times(samples: Samples) -> tuple[dict[str, Value], dict[str, str]]:
    found: dict[str, Value] = {}
    bounds: dict[str, str] = {}
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
        # Values that all end at the time-out spread less than the true ones, or more.
        bounds["sd_ms"] = UNSURE
    for series in ("handler", "model", "outside"):
        times = samples.times(series)[0]
        # By the very sum of the report, to the last digit.
        mean = Sample(times).mean()
        found[f"{series}_mean_ms"] = mean.value if mean else None
        found[f"{series}_sd_ms"] = _deviation(times)
    return found, bounds


def _users(summary: Mapping[str, Any]) -> tuple[dict[str, Value], dict[str, str]]:
    users = summary.get("users")
    if not users:
        return {}, {}
    times = (users.get("times") or {}).get("duration") or {}
    figures = {name: times[of] for name, of in USER_FIGURES.items() if times.get(of)}
    return (
        {"users": users["n"], "user_success": users["success"]}
        | {name: figure["value"] for name, figure in figures.items()},
        {name: LOWER for name, figure in figures.items() if figure["bound"] == "lower"},
    )


def _rates(samples: Samples, summary: Mapping[str, Any], run: Mapping[str, Any]) -> dict[str, Value]:
    loaded = samples.loaded
    found: dict[str, Value] = {"asked_per_s": _number((run.get("properties") or {}).get("rate_per_s"))}
    due = (summary.get("facts") or {}).get("arrivals")
    if due is not None:
        # One arrival too many is what a rate that does not divide evenly may count.
        found["dropped_arrivals"] = due - samples.sent if due - samples.sent > 1 else 0
    span = span_ms(loaded, "rtt_ms")
    if span is None:
        return found
    found["total_s"] = (span[1] - span[0]) / 1000
    serving = serving_ms(loaded, at_rate=is_at_rate(run))
    if serving is not None and serving[1] > serving[0]:
        found["served_per_s"] = int(loaded["ok"].sum()) / (serving[1] - serving[0]) * 1000
    starts_s = float(loaded.select(pl.col("start_ms").max() - pl.col("start_ms").min()).item()) / 1000
    if starts_s > 0:
        # n starts span n - 1 pauses: this way a steady rate comes out as itself.
        found["offered_per_s"] = (loaded.height - 1) / starts_s
    return found


def _workers(samples: Samples, summary: Mapping[str, Any]) -> dict[str, Value]:
    named = samples.loaded["worker"].drop_nulls()
    functions = summary.get("openfaas") or []
    ready = max((row["ready"]["max"] for row in functions if row.get("ready")), default=None)
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


def _machines(summary: Mapping[str, Any]) -> dict[str, Value]:
    rows, functions = summary.get("machines") or [], summary.get("openfaas") or []
    targets = [row for row in rows if row["part"] == "target"]
    replicas = [replica for function in functions for replica in function.get("replicas") or []]
    cores = [replica["cores_mean"] for replica in replicas]
    ways = [(replica["received_bytes_per_s"], replica["sent_bytes_per_s"]) for replica in replicas]
    network = [None if None in both else sum(both) for both in ways]
    return {
        "target_cores_mean": _sum(functions, "cores_mean") if functions else _sum(targets, "cores_mean"),
        "target_memory_max_bytes": _largest(functions, "memory_max_bytes")
        if functions
        else _largest(targets, "rss_max_bytes"),
        "throttled_mean": _largest(functions, "throttled_mean"),
        **_ends_of(cores, "worker_cores_{}"),
        **_ends_of(network, "worker_network_{}_bytes_per_s"),
        "generator_cores_mean": _sum([row for row in rows if row["part"] == "generator"], "cores_mean"),
        "host_busy_time": _largest([row for row in rows if row["part"] == "host"], "busy_time"),
    }


def _ends_of(of_replicas: Sequence[float | None], name: str) -> dict[str, Value]:
    known = [value for value in of_replicas if value is not None]
    return {name.format("max"): max(known), name.format("min"): min(known)} if known else {}


def factor_names(settings: Mapping[str, Any]) -> list[str]:
    """The factors in the order of the study."""
    return list(settings["definition"]["factors"])


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if isinstance(value, float) else str(value)


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


def _sum(rows: Iterable[Mapping[str, Any]], name: str) -> float | None:
    known = [row[name] for row in rows if row.get(name) is not None]
    return float(sum(known)) if known else None


def _largest(rows: Iterable[Mapping[str, Any]], name: str) -> float | None:
    known = [row[name] for row in rows if row.get(name) is not None]
    return float(max(known)) if known else None
