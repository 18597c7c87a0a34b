"""The figures of each run of a study, calculated from the run folders alone."""

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import polars as pl

from framestorm.errors import FramestormError
from framestorm.model.files import read
from framestorm.model.metric import (
    COLD,
    METRICS,
    OPEN,
    OUTSIDE,
    PERCENTILES,
    RESPONSE,
    USER,
    WARM,
    column,
    metric,
    of_label,
    percentile,
    split_label,
)
from framestorm.model.study import Study
from framestorm.model.summary import Summary
from framestorm.model.units import as_number
from framestorm.points.derived import asked_metrics, derive, rows_behind
from framestorm.points.folder import FAILED, StudyFolder
from framestorm.points.results_csv import FigureValue, ResultRow, RunFigures
from framestorm.results.goodput import read_goodput
from framestorm.results.samples import Samples, read_samples
from framestorm.results.table import known, rate_per_s, span_ms, sum_known
from framestorm.stats.estimate import Estimate, EstimateBound

LOWER: EstimateBound = "lower"
UNSURE: EstimateBound = "unsure"
OF_USERS = ("mean", "median", "p50", "p90", "p95", "p99", "min", "max")  # statistics that a run's summary has of them
USER_FIGURES = {column(USER, statistic): statistic for statistic in ("mean", "median", "p95")}


def result_rows(folder: StudyFolder) -> list[ResultRow]:
    """Return the runs of a study with their figures, in order of points and repetitions.

    If a point and repetition was run more than once, its last line counts.
    """
    definition, lines = folder.record.definition, folder.lines()
    rows = []
    for point in folder.record.points:
        for line in sorted((line for line in lines.values() if line.point == point.id), key=lambda a: a.repetition):
            row = ResultRow(point=point, line=line)
            if row.is_complete:
                figures, why = figures_or_why_not(folder.path / line.run, definition)
                ended = replace(line, state=FAILED, reason=why) if why else line
                row = ResultRow(point=point, line=ended, **vars(figures))
            rows.append(row)
    derive(definition.derived, rows)
    for name, of in definition.derived.items():
        for row in rows:
            if any(not names.isdisjoint(each.bounds) for each, names in rows_behind(of, row, rows)):
                row.bounds[name] = UNSURE
    return rows


def figures_or_why_not(
    run_dir: Path, study: Study, asked: Collection[str] | None = None
) -> tuple[RunFigures, str | None]:
    """Return the figures that a study has of a run; if its files are lost or incomplete, no figures and the reason."""
    wanted = asked_metrics(study) if asked is None else asked
    try:
        return figures_of_run(run_dir, study.warm_up_s, study.temperature, wanted), None
    except (OSError, ValueError, FramestormError, pl.exceptions.PolarsError) as error:
        return RunFigures(), f"the run's files cannot be read: {error}"


def figures_of_run(run_dir: Path, warm_up_s: float, temperature: str, asked: Collection[str] = ()) -> RunFigures:
    """Return the figures of one run's folder after rejection, and the warnings of its own report.

    asked: metrics; of each label among them, every figure of its samples is there as of the main samples, and of the
        less common percentiles those that are asked for. A label without a sample has none.

    Times are in ms and exact, calculated as in the run's own report.

    Rates, `total_s` and the workers' shares are of the whole load after the warm-up, whatever its temperature: a cold
    sample was sent and served like any other. Users are all users of the run.

    Raises:
        OSError, ValueError, FileError: samples.csv or summary.json is missing or broken.
    """
    samples = read_samples(run_dir, warm_up_s, temperature)
    summary = read(run_dir / "summary.json", Summary)
    if why := samples.why_not_of(summary):
        raise ValueError(why)
    by_label: dict[str | None, list[str]] = {None: []}
    for name in asked:
        label, rest = split_label(name)
        by_label.setdefault(label, []).append(rest)
    found, bounds = _of_samples(samples, by_label[None], summary)
    users, user_bounds = _users(summary, by_label.pop(None))
    found |= {**users, **_of_run(summary), **_workers(samples, summary), **_machines(summary)}
    metrics = {name: found.get(name) for name in dict.fromkeys((*METRICS, *found))}
    bounds |= user_bounds
    for label, names in by_label.items():
        of_one = read_samples(run_dir, warm_up_s, temperature, label)
        if label is not None and of_one.sent:
            values, cut = _of_samples(of_one, names, summary)
            metrics |= {of_label(label, name): value for name, value in values.items() if value is not None}
            bounds |= {of_label(label, name): bound for name, bound in cut.items()}
    return RunFigures(metrics, bounds, tuple(summary.doubts))


def _of_samples(
    samples: Samples, asked: Collection[str], summary: Summary
) -> tuple[dict[str, FigureValue], dict[str, EstimateBound]]:
    """Return what the samples of one label give alone."""
    times, bounds = _times(samples, asked)
    goodput = _goodput(samples, summary)
    return {**_counts(samples), **times, **_rates(samples, at_rate=summary.is_at_rate), **goodput}, bounds


def _counts(samples: Samples) -> dict[str, FigureValue]:
    kept = samples.kept
    n, ok = kept.height, int(kept["ok"].sum())
    return {
        "n_sent": samples.sent, "n": n, "ok": ok, "failed": n - ok, "timed_out": int(kept["timed_out"].sum()),
        "success": ok / n if n else None,
        "rejected_warm_up": samples.rejected_warm_up, "rejected_cold": samples.rejected_cold,
        "rejected_warm": samples.rejected_warm,
    }  # fmt: skip


def _times(samples: Samples, asked: Collection[str]) -> tuple[dict[str, FigureValue], dict[str, EstimateBound]]:
    values: dict[str, FigureValue] = {}
    bounds: dict[str, EstimateBound] = {}
    series = [RESPONSE, OPEN, OUTSIDE, *samples.figures()]
    further = [metric(name) for name in asked]
    series += [name for name in (WARM, COLD) if name in {about.series for about in further}]
    if samples.kept["intended_ms"].null_count() == samples.kept.height:
        series.remove(OPEN)
    for name in series:
        times = samples.times(name)
        sample = times.sample
        # Calculated as in the report, equal to the last digit.
        figures: dict[str, Estimate | None] = {"mean": sample.mean()}
        statistics = [str(about.statistic) for about in further if about.series == name]
        for statistic in dict.fromkeys((*PERCENTILES, *statistics)):
            if percent := percentile(statistic):
                figures[statistic] = sample.percentile(percent)
        if name == RESPONSE or {"min", "max"} & {*statistics}:
            figures |= {"min": sample.extreme(largest=False), "max": sample.extreme(largest=True)}
        if name == RESPONSE:
            values["mean_is_lower_bound"] = bool(sample.censored) if sample.n else None
        if name != OPEN:
            values[column(name, "sd")] = float(times.values_ms.std(ddof=1)) if times.n > 1 else None
        for statistic, figure in figures.items():
            values[column(name, statistic)] = figure.value if figure else None
            if figure and figure.bound == "lower":
                bounds[column(name, statistic)] = LOWER
    if values["mean_is_lower_bound"]:
        # The spread of values cut off at the timeout may be smaller or larger than the true spread.
        bounds["sd_ms"] = UNSURE
    return values, bounds


def _users(summary: Summary, asked: Collection[str]) -> tuple[dict[str, FigureValue], dict[str, EstimateBound]]:
    users = summary.users
    if not users:
        return {}, {}
    times = users.times.get("duration")
    wanted = USER_FIGURES | {name: str(about.statistic) for name in asked if (about := metric(name)).series == USER}
    figures = {
        name: figure
        for name, of in wanted.items()
        if times and (figure := getattr(times, "p50" if of == "median" else of, None))
    }
    return (
        {"users": users.n, "user_success": users.success} | {name: figure.value for name, figure in figures.items()},
        {name: LOWER for name, figure in figures.items() if figure.bound == "lower"},
    )


def _of_run(summary: Summary) -> dict[str, FigureValue]:
    asked = as_number(summary.run.properties.get("rate_per_s"))
    return {
        "asked_per_s": summary.facts.rates.asked_per_s if asked is None else float(asked),
        "answered_per_s": summary.facts.rates.answered_per_s,
        "in_flight_max": summary.facts.rates.in_flight,
        "warnings": len(summary.warnings),
        "dropped_arrivals": None if summary.facts.arrivals is None else summary.facts.dropped,
    }


def _rates(samples: Samples, *, at_rate: bool) -> dict[str, FigureValue]:
    loaded = samples.loaded
    span = span_ms(loaded.lazy(), "rtt_ms")
    if span is None:
        return {}
    rates: dict[str, FigureValue] = {"total_s": (span[1] - span[0]) / 1000}
    rates["served_per_s"] = rate_per_s(int(loaded["ok"].sum()), samples.serving_ms(at_rate=at_rate))
    starts_s = float(loaded.select(pl.col("start_ms").max() - pl.col("start_ms").min()).item()) / 1000
    if starts_s > 0:
        # n starts have n - 1 intervals between them: dividing by these gives a steady rate exactly.
        rates["offered_per_s"] = (loaded.height - 1) / starts_s
    return rates


def _goodput(samples: Samples, summary: Summary) -> dict[str, FigureValue]:
    of_run = read_goodput(samples.kept.lazy(), summary.run.properties, at_rate=summary.is_at_rate)
    return {"goodput": of_run.share, "good_per_s": of_run.per_s} if of_run else {}


def _workers(samples: Samples, summary: Summary) -> dict[str, FigureValue]:
    named = samples.loaded["worker"].drop_nulls()
    ready = max((each.ready.max for each in summary.functions if each.ready), default=None)
    if not named.len():
        return {"replicas_max": ready}
    shares = [count / named.len() for count in named.value_counts()["count"]]
    # A worker that never got a task is not named in any answer.
    is_one_idle = ready is not None and ready > len(shares)
    return {
        "replicas_max": ready,
        "workers_seen": len(shares),
        "worker_share_max": max(shares),
        "worker_share_min": 0.0 if is_one_idle else min(shares),
    }


def _machines(summary: Summary) -> dict[str, FigureValue]:
    functions = summary.functions
    targets, generators, hosts = (
        [machine for machine in summary.machines if machine.part == part] for part in ("target", "generator", "host")
    )
    replicas = [replica for function in functions for replica in function.replicas]
    ways = [(replica.received_bytes_per_s, replica.sent_bytes_per_s) for replica in replicas]
    cores = known(replica.cores_mean for replica in replicas)
    network = known(None if received is None or sent is None else received + sent for received, sent in ways)
    target_cores = [each.cores_mean for each in functions] or [each.cores_mean for each in targets]
    memory = [each.memory_max_bytes for each in functions] or [each.rss_max_bytes for each in targets]
    return {
        "target_cores_mean": sum_known(target_cores),
        "target_memory_max_bytes": max(known(memory), default=None),
        "throttled_mean": max(known(each.throttled_mean for each in functions), default=None),
        "worker_cores_max": max(cores, default=None),
        "worker_cores_min": min(cores, default=None),
        "worker_network_max_bytes_per_s": max(network, default=None),
        "worker_network_min_bytes_per_s": min(network, default=None),
        "generator_cores_mean": sum_known(each.cores_mean for each in generators),
        "host_busy_time": max(known(each.busy_time for each in hosts), default=None),
    }
