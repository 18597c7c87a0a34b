"""metrics.csv: what the function's replicas did under load, by function, and where replicas were missing."""

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import polars as pl

from framestorm.model.series import ReplicaCounts, ReplicaLine, ReplicasOverTime, ReplicaUse, Values
from framestorm.model.summary import FunctionSummary, Range, Replica, ShortOfReplicas, VanishedReplicas
from framestorm.results.replica_use import NETWORK, use_of_replicas, with_rates

SCHEMA = {
    "time_ms": pl.Float64, "metric": pl.String, "function": pl.String, "detail": pl.String, "value": pl.Float64,
}  # fmt: skip
# How values of one bin become one: no dip of the replicas and no peak of what they hold may be lost in a long run.
PER_REPLICA = {
    "in_flight": "max", "cpu_cores": "mean", "cpu_throttled_share": "mean", "memory_bytes": "max", NETWORK: "mean",
}  # fmt: skip
COUNTS = {"replicas_wanted": "wanted", "replicas_ready": "ready"}
LOST, SHORT = "replicas_lost", "replicas_short_s"  # counters: they only grow
MARGIN_MS = 10_000.0
MAX_FUNCTIONS = 4  # with lines of their own
MAX_REPLICAS = 8
MAX_BINS = 600
DEFAULT_STEP_MS = 2000.0
Span = tuple[float, float]


def read_metrics(path: Path, url: str | None, span: Span | None) -> pl.DataFrame | None:
    """Rows about the load's time with the rates of counters, of the function that `url` names, or of all if of none.

    None without the file; broken rows are left out.
    """
    if not path.exists():
        return None
    empty = pl.DataFrame(schema=SCHEMA)
    if not path.stat().st_size:
        return empty
    raw = pl.scan_csv(path, infer_schema=False, truncate_ragged_lines=True, ignore_errors=True)
    if not SCHEMA.keys() <= set(raw.collect_schema().names()):
        return empty
    rows = raw.select(
        pl.col("time_ms", "value").cast(pl.Float64, strict=False),
        "metric",
        "function",
        pl.col("detail").fill_null(""),
    ).drop_nulls()
    if span is not None:
        rows = rows.filter(pl.col("time_ms").is_between(span[0] - MARGIN_MS, span[1] + MARGIN_MS))
    metrics = with_rates(rows.collect(engine="streaming"))
    of_function = metrics.filter(pl.col("function") == function_of(url))
    return of_function if of_function.height else metrics


def function_of(url: str | None) -> str:
    """The function's name in a gateway's address, without its namespace; empty if there is none."""
    try:
        words = [word for word in urlsplit(url or "").path.split("/") if word]
    except ValueError:
        return ""
    for place, word in enumerate(words[:-1]):
        if word in ("function", "async-function"):
            return words[place + 1].partition(".")[0]
    return words[-1].partition(".")[0] if words else ""


def summarise_replicas(metrics: pl.DataFrame | None, span: Span | None, origin_ms: float) -> list[FunctionSummary]:
    """What each function did under load, by name."""
    if metrics is None:
        return []
    if span is not None:
        under_load = metrics.filter(pl.col("time_ms").is_between(*span))
        metrics = under_load if under_load.height else metrics
    step_ms = _step_ms(metrics)
    return [
        _function(str(function), rows, step_ms, origin_ms)
        for (function,), rows in sorted(metrics.partition_by("function", as_dict=True).items())
    ]


def _function(function: str, rows: pl.DataFrame, step_ms: float, origin_ms: float) -> FunctionSummary:
    short = _short(rows)
    worst = short.sort(pl.col("ready") - pl.col("wanted")).row(0, named=True) if short.height else None
    counts = {name: rows.filter(pl.col("metric") == metric)["value"] for metric, name in COUNTS.items()}
    replicas = use_of_replicas(rows)
    lost, short_s = _growth(rows, LOST), _growth(rows, SHORT)
    # Where the provider counted none, those that are gone went with a deployment before this one.
    vanished = [] if lost == 0 else _vanished(rows, origin_ms)
    throttled = _values(replicas, "throttled_mean")
    return FunctionSummary(
        function=function,
        wanted=_range(counts["wanted"]),
        ready=_range(counts["ready"]),
        seen=len(replicas),
        # The provider counts them: of requests that go past it, by a balancer, it knows nothing.
        in_flight_max=_maximum(_whole(rows, "in_flight")) or None,
        cores_mean=_sum(replicas, "cores_mean"),
        cores_max=_maximum(_whole(rows, "cpu_cores")),
        throttled_mean=sum(throttled) / len(throttled) if throttled else None,
        memory_max_bytes=max(_values(replicas, "memory_max_bytes"), default=None),
        received_bytes_per_s=_sum(replicas, "received_bytes_per_s"),
        sent_bytes_per_s=_sum(replicas, "sent_bytes_per_s"),
        replicas=replicas,
        # By the provider's own clock; without it no finer than the scrapes.
        short_s=short.height * step_ms / 1000 if short_s is None else short_s,
        short_worst=ShortOfReplicas(int(worst["ready"]), int(worst["wanted"])) if worst else None,
        lost=sum(group.replicas for group in vanished) if lost is None else int(lost),
        vanished=vanished,
    )


def _growth(rows: pl.DataFrame, counter: str) -> float | None:
    """By how much a counter grew; None where there is none. It begins anew with each deployment."""
    values = rows.filter(pl.col("metric") == counter)["value"]
    return float(values.diff().drop_nulls().clip(lower_bound=0).sum()) if values.len() else None


def _whole(rows: pl.DataFrame, metric: str) -> pl.DataFrame:
    """The sum over the replicas at each moment; of shares the mean, for a sum of them means nothing."""
    value = pl.col("value").mean() if metric.endswith("_share") else pl.col("value").sum()
    return rows.filter(pl.col("metric") == metric).group_by("time_ms").agg(value).sort("time_ms")


def _short(rows: pl.DataFrame) -> pl.DataFrame:
    """time_ms, wanted, ready of the moments in which fewer replicas were ready than wanted."""
    wanted, ready = (
        rows.filter(pl.col("metric") == metric).select("time_ms", pl.col("value").alias(name))
        for metric, name in COUNTS.items()
    )
    both = wanted.join(ready, on="time_ms", how="left").with_columns(pl.col("ready").fill_null(0))
    return both.filter(pl.col("ready") < pl.col("wanted")).sort("time_ms") if ready.height else both.clear()


def _vanished(rows: pl.DataFrame, origin_ms: float) -> list[VanishedReplicas]:
    """Replicas whose series end while the function's go on, unless more were there than wanted (scaled down)."""
    wanted = dict(rows.filter(pl.col("metric") == "replicas_wanted").select("time_ms", "value").iter_rows())
    # These two come from the replica itself; the others are rates, which begin late and end late.
    alive = rows.filter(pl.col("metric").is_in(["in_flight", "memory_bytes"])).unique(["time_ms", "detail"])
    n_alive = dict(alive.group_by("time_ms").len().iter_rows())
    ends = alive.group_by("detail").agg(pl.col("time_ms").max()).group_by("time_ms").agg("detail").sort("time_ms")
    vanished = []
    for last_ms, names in ends.iter_rows():
        next_ms = min((time_ms for time_ms in wanted if time_ms > last_ms), default=None)
        if next_ms is None:
            continue
        surplus = max(0, n_alive[last_ms] - int(min(wanted.get(last_ms, wanted[next_ms]), wanted[next_ms])))
        if len(names) > surplus:
            at_s = round((next_ms - origin_ms) / 1000, 3)
            vanished.append(VanishedReplicas(len(names) - surplus, sorted(names), at_s))
    return vanished


def replicas_over_time(
    metrics: pl.DataFrame | None, functions: list[FunctionSummary], origin_ms: float
) -> ReplicasOverTime | None:
    """Replicas by function, and what each replica held, on one grid of times (seconds since `origin_ms`)."""
    if metrics is None:
        return None
    busiest = sorted(functions, key=lambda each: (each.cores_mean or 0, each.in_flight_max or 0), reverse=True)
    drawn = [each.function for each in busiest[:MAX_FUNCTIONS]]
    metrics = metrics.filter(pl.col("function").is_in(drawn), pl.col("metric").is_in([*COUNTS, *PER_REPLICA]))
    if not metrics.height:  # a run shorter than the time from one scrape to the next
        return None
    grid = Grid.of(metrics)
    vanished = {name for each in functions for group in each.vanished for name in group.names}
    names = _shown(metrics, vanished)
    prefix = f"{drawn[0]}-" if len(drawn) == 1 else ""
    use = {metric: _use(metrics, metric, names, prefix, grid) for metric in PER_REPLICA}
    return ReplicasOverTime(
        x=[round((grid.first_ms + bin_ * grid.width_ms - origin_ms) / 1000, 3) for bin_ in range(grid.n)],
        of_functions=len(functions),
        counts={name: _counts(metrics.filter(pl.col("function") == name), grid) for name in drawn},
        use={metric: lines for metric, lines in use.items() if lines},
    )


def _use(metrics: pl.DataFrame, metric: str, names: list[str], prefix: str, grid: "Grid") -> ReplicaUse | None:
    rows = metrics.filter(pl.col("metric") == metric)
    if not rows.height or (metric == "in_flight" and not rows["value"].max()):
        return None
    how = PER_REPLICA[metric]
    of_replica = rows.filter(pl.col("detail").is_in(names)).partition_by("detail", as_dict=True)
    lines = [
        ReplicaLine(number, name.removeprefix(prefix), grid.spread(of_replica[(name,)], how))
        for number, name in enumerate(names)
        if (name,) in of_replica
    ]
    return ReplicaUse(rows["detail"].n_unique(), grid.spread(_whole(rows, metric), how), lines)


def _counts(rows: pl.DataFrame, grid: "Grid") -> ReplicaCounts:
    counts = {name: grid.spread(rows.filter(pl.col("metric") == metric), "min") for metric, name in COUNTS.items()}
    short = _short(rows).select("time_ms", pl.col("ready").alias("value"))
    return ReplicaCounts(**counts, short=grid.spread(short, "min"))


def _shown(metrics: pl.DataFrame, vanished: set[str]) -> list[str]:
    """The replicas with a line: those that vanished, then by when they were first seen."""
    of_replicas = metrics.filter(pl.col("metric").is_in(list(PER_REPLICA)))
    first = of_replicas.group_by("detail").agg(pl.col("time_ms").min()).sort("time_ms", "detail")
    return sorted(first["detail"], key=lambda name: name not in vanished)[:MAX_REPLICAS]


@dataclass(frozen=True)
class Grid:
    """Equal bins of time, of one scrape each as long as there are not too many."""

    first_ms: float
    width_ms: float
    n: int

    @classmethod
    def of(cls, metrics: pl.DataFrame) -> "Grid":
        first_ms, last_ms = (
            float(end) for end in metrics.select(pl.col("time_ms").min(), pl.col("time_ms").max().alias("last")).row(0)
        )
        width_ms = max(_step_ms(metrics), (last_ms - first_ms) / MAX_BINS)
        return cls(first_ms, width_ms, int((last_ms - first_ms) / width_ms + 0.5) + 1)

    def spread(self, rows: pl.DataFrame, how: str) -> Values:
        """The column `value` by bin; None where a bin has none."""
        bin_ = ((pl.col("time_ms") - self.first_ms) / self.width_ms + 0.01).floor().cast(pl.Int64).alias("bin")
        value = {"min": pl.col("value").min(), "max": pl.col("value").max(), "mean": pl.col("value").mean()}[how]
        spread: Values = [None] * self.n
        for number, of_bin in rows.group_by(bin_).agg(value).iter_rows():
            if number < self.n:
                spread[number] = round(of_bin, 4)
        return spread


def _step_ms(metrics: pl.DataFrame) -> float:
    """The time from one scrape to the next; some of the other metrics are calculated at times of their own."""
    scrapes = metrics.filter(pl.col("metric").is_in([*COUNTS, *PER_REPLICA]))
    steps = scrapes["time_ms"].unique().sort().diff().drop_nulls()
    return float(str(steps.median())) if steps.len() else DEFAULT_STEP_MS


def _range(values: pl.Series) -> Range | None:
    known = values.drop_nulls().to_list()
    return Range(int(min(known)), int(max(known))) if known else None


def _maximum(rows: pl.DataFrame) -> float | None:
    highest: float | None = rows.select(pl.col("value").max()).item()
    return highest


def _values(replicas: list[Replica], name: str) -> list[float]:
    return [value for replica in replicas if (value := getattr(replica, name)) is not None]


def _sum(replicas: list[Replica], name: str) -> float | None:
    values = _values(replicas, name)
    return sum(values) if values else None
