"""metrics.csv: the metrics of replicas under load, by function, and when replicas were missing."""

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import polars as pl

from framestorm.model.function_summary import FunctionSummary, Range, ReplicaUsage, ShortOfReplicas, VanishedReplicas
from framestorm.model.series import Curves, ReplicaLine, ReplicasOverTime, ReplicaUse, Values
from framestorm.results.table import known, scan_rows, spread, sum_known

SCHEMA = {
    "time_ms": pl.Float64, "metric": pl.String, "function": pl.String, "detail": pl.String, "value": pl.Float64,
}  # fmt: skip
# The counters of a replica, which start at 0 with it, and the rates calculated from them.
RATES = {
    "cpu_s": "cpu_cores",
    "cpu_throttled_s": "cpu_throttled_share",
    "received_bytes": "received_bytes_per_s",
    "sent_bytes": "sent_bytes_per_s",
}
THROTTLED = "cpu_throttled_share"
MEMORY = "memory_bytes"
READY = "replica_ready"
NETWORK = "network_bytes_per_s"  # received and sent together
# How the values in one bin are combined: a long run must show every dip in replicas and every peak of their usage.
PER_REPLICA = {
    "in_flight": "max", "cpu_cores": "mean", THROTTLED: "mean", MEMORY: "max", NETWORK: "mean",
}  # fmt: skip
COUNTS = {"replicas_wanted": "wanted", "replicas_ready": "ready"}
AUTOSCALER, ACTIVATOR = "autoscaler_wanted", "activator_in_path"
OF_AUTOSCALER = {AUTOSCALER: "autoscaler", ACTIVATOR: "activator"}
LOST, SHORT = "replicas_lost", "replicas_short_s"  # counters: they only grow
WINDOW_MS = 10_000  # of a rate: several scrapes, because rates from one scrape to the next would jump up and down
SELDOM_MS = 4000.0
# Around the load: a kubelet has measured each container within it.
MARGIN_MS = 20_000.0
MAX_FUNCTIONS = 4  # with lines of their own
MAX_REPLICAS = 8
MAX_BINS = 600
DEFAULT_STEP_MS = 2000.0
SpanMs = tuple[float, float]


def read_metrics(path: Path, url: str | None, span: SpanMs | None, problems: list[str] | None = None) -> pl.DataFrame:
    """Rows around the time of the load, with rates of counters, of the function in `url` (of all if it names none).

    problems: gets a sentence if the file is not whole.
    """
    rows = scan_rows(path, SCHEMA, ("detail",), problems)
    if span is not None:
        rows = rows.filter(pl.col("time_ms").is_between(span[0] - MARGIN_MS, span[1] + MARGIN_MS))
    metrics = _with_rates(_evenly(rows.collect(engine="streaming")))
    of_function = metrics.filter(pl.col("function") == function_of(url))
    return of_function if of_function.height else metrics


def _evenly(metrics: pl.DataFrame) -> pl.DataFrame:
    """Return the rows, with what was read seldom at the times of the other metrics: on a line between two readings.

    A kubelet measures each container at times of its own, 10 to 15 s apart: too seldom for a rate over 10 s, and never
    together with the other containers. The lines end where the first of the replicas has its last reading, but for
    replicas that had ended by then.
    """
    series = metrics.sort("time_ms").partition_by("metric", "function", "detail", as_dict=True)
    seldom = {
        key: rows
        for key, rows in series.items()
        if key[0] in (*RATES, MEMORY) and rows.height > 1 and _median_step_ms(rows["time_ms"]) >= SELDOM_MS
    }
    ends: dict[tuple[object, object], list[float]] = defaultdict(list)
    for (metric, function, _), rows in seldom.items():
        ends[metric, function].append(rows["time_ms"][-1])
    parts = [rows for key, rows in series.items() if key not in seldom]
    for (metric, function, detail), rows in seldom.items():
        of_others = ends[metric, function]
        end_ms = min(at_ms for at_ms in of_others if at_ms > max(of_others) - MARGIN_MS)
        steps = _of(metrics, *COUNTS).filter(pl.col("function") == function)["time_ms"].unique().sort()
        steps = steps.filter(steps.is_between(rows["time_ms"][0], min(end_ms, rows["time_ms"][-1])))
        values = np.interp(steps.to_numpy(), rows["time_ms"].to_numpy(), rows["value"].to_numpy())
        key = {"metric": pl.lit(metric), "function": pl.lit(function), "detail": pl.lit(detail)}
        parts.append(pl.DataFrame({"time_ms": steps, "value": values}).with_columns(**key).select(metrics.columns))
    return pl.concat(parts) if parts else metrics


def _with_rates(metrics: pl.DataFrame) -> pl.DataFrame:
    """Return the rows sorted by time; for each row of a counter, a row with its rate over the last 10 s is added."""
    counters = metrics.filter(pl.col("metric").is_in(list(RATES))).with_columns(at=pl.col("time_ms").cast(pl.Int64))
    value, time = pl.col("value"), pl.col("time_ms")
    growth = (value.last() - value.first()).clip(lower_bound=0) / (time.last() - time.first()) * 1000
    rates = (
        counters.sort("at")
        .rolling("at", period=f"{WINDOW_MS}i", closed="both", group_by=["metric", "function", "detail"])
        .agg(growth.alias("value"), time.last())
        .filter(pl.col("value").is_finite())  # the first row of a series has no rate yet
        .with_columns(pl.col("metric").replace_strict(RATES, return_dtype=pl.String))
    )
    directions = rates.filter(pl.col("metric").is_in([RATES["received_bytes"], RATES["sent_bytes"]]))
    network = directions.group_by("time_ms", "function", "detail").agg(pl.col("value").sum(), metric=pl.lit(NETWORK))
    return pl.concat([part.select(metrics.columns) for part in (metrics, rates, network)]).sort("time_ms")


def function_of(url: str | None) -> str:
    """Return the function's name in a gateway's address, without its namespace; empty if there is none."""
    try:
        words = [word for word in urlsplit(url or "").path.split("/") if word]
    except ValueError:
        return ""
    for place, word in enumerate(words[:-1]):
        if word in ("function", "async-function"):
            return words[place + 1].partition(".")[0]
    return words[-1].partition(".")[0] if words else ""


def summarise_replicas(metrics: pl.DataFrame, span: SpanMs | None, origin_ms: float) -> list[FunctionSummary]:
    """Return a summary of each function's replicas under load, by name."""
    if span is not None:
        under_load = metrics.filter(pl.col("time_ms").is_between(*span))
        metrics = under_load if under_load.height else metrics
    step_ms = _step_ms(metrics)
    return [
        _function(str(function), rows, step_ms, origin_ms)
        for (function,), rows in sorted(metrics.partition_by("function", as_dict=True).items())
    ]


def _function(function: str, rows: pl.DataFrame, step_ms: float, origin_ms: float) -> FunctionSummary:
    scaling = _scaling_up(rows)
    short = _short(rows, scaling)
    worst = short.sort(pl.col("ready") - pl.col("wanted")).row(0, named=True) if short.height else None
    replicas = _replicas(rows)
    lost, short_s = _grown(rows, LOST), _grown(rows, SHORT, scaling)
    # If the provider counted no losses, the missing replicas belonged to an earlier deployment. A cluster tells the end
    # of each replica, with the reason.
    vanished = [] if lost == 0 or _of(rows, READY).height else _vanished(rows, origin_ms)
    throttled = known(each.throttled_mean for each in replicas)
    # Rates over the last 10 s are below the mean in a load that is as short: they count the idle time before it.
    cores_mean, cores_most = sum_known(each.cores_mean for each in replicas), _maximum(_whole(rows, "cpu_cores"))
    return FunctionSummary(
        function=function,
        wanted=_range(rows, "replicas_wanted"),
        ready=_range(rows, "replicas_ready"),
        seen=len(replicas),
        # The provider counts them; it does not see requests that a balancer sends past it.
        in_flight_max=_maximum(_whole(rows, "in_flight")) or None,
        cores_mean=cores_mean,
        cores_max=max(known((cores_mean, cores_most)), default=None),
        throttled_mean=sum(throttled) / len(throttled) if throttled else None,
        memory_max_bytes=max((each.memory_max_bytes for each in replicas if each.memory_max_bytes), default=None),
        received_bytes_per_s=sum_known(each.received_bytes_per_s for each in replicas),
        sent_bytes_per_s=sum_known(each.sent_bytes_per_s for each in replicas),
        replicas=replicas,
        # Measured by the provider; without its counter, only as fine as the scrapes.
        short_s=short.height * step_ms / 1000 if short_s is None else short_s,
        short_worst=ShortOfReplicas(int(worst["ready"]), int(worst["wanted"])) if worst else None,
        lost=sum(group.replicas for group in vanished) if lost is None else int(lost),
        vanished=vanished,
        activator_share=_of(rows, ACTIVATOR).select(pl.col("value").mean()).item(),
    )


def _replicas(rows: pl.DataFrame) -> list[ReplicaUsage]:
    """Resource usage of each replica of one function, in the order of their first scrapes.

    cores_mean, received_bytes_per_s, sent_bytes_per_s: over the whole time of `rows`, so that the figures of all
    replicas add up. throttled_mean: share of the replica's own time.
    """
    whole_s = _length_s(_of(rows, *RATES))
    replicas = []
    of_replicas = _of(rows, *RATES, "in_flight", MEMORY, READY)
    for name in _first_seen(of_replicas.filter(pl.col("detail") != "")):
        own = rows.filter(pl.col("detail") == name)
        replicas.append(
            ReplicaUsage(
                name=name,
                cores_mean=_growth(_of(own, "cpu_s"), whole_s),
                throttled_mean=_growth(_of(own, "cpu_throttled_s"), _length_s(_of(own, "cpu_throttled_s"))),
                memory_max_bytes=_maximum(_of(own, MEMORY)),
                received_bytes_per_s=_growth(_of(own, "received_bytes"), whole_s),
                sent_bytes_per_s=_growth(_of(own, "sent_bytes"), whole_s),
            )
        )
    return replicas


def _length_s(rows: pl.DataFrame) -> float:
    return float((rows["time_ms"][-1] - rows["time_ms"][0]) / 1000) if rows.height else 0.0


def _growth(rows: pl.DataFrame, over_s: float) -> float | None:
    """Return the growth of a counter per second; None if it was read once or not at all."""
    if rows.height < 2 or not over_s:
        return None
    return max(0.0, float(rows["value"][-1] - rows["value"][0])) / over_s


def _grown(rows: pl.DataFrame, counter: str, without: Sequence[SpanMs] = ()) -> float | None:
    """Return the growth of a provider's counter, which restarts at 0 with each deployment; None if there is no counter.

    without: times whose growth does not count.
    """
    read = _of(rows, counter).select("time_ms", "value").rows()
    steps = [
        max(0.0, value - before)
        for (since_ms, before), (until_ms, value) in pairwise(read)
        if not any(since_ms < end and until_ms > start for start, end in without)
    ]
    return float(sum(steps)) if read else None


def _whole(rows: pl.DataFrame, metric: str) -> pl.DataFrame:
    """Return the sum over the replicas at each moment; for shares the mean, because their sum has no meaning."""
    value = pl.col("value").mean() if metric == THROTTLED else pl.col("value").sum()
    return _of(rows, metric).group_by("time_ms").agg(value).sort("time_ms")


def _counts(rows: pl.DataFrame) -> pl.DataFrame:
    """time_ms, wanted and ready at each scrape; empty if no scrape knew how many were ready."""
    wanted, ready = (
        _of(rows, metric).select("time_ms", pl.col("value").alias(name)) for metric, name in COUNTS.items()
    )
    both = wanted.join(ready, on="time_ms", how="left").with_columns(pl.col("ready").fill_null(0))
    return both.sort("time_ms") if ready.height else both.clear()


def _short(rows: pl.DataFrame, scaling: Sequence[SpanMs]) -> pl.DataFrame:
    """Of `_counts` the moments when fewer replicas were ready than wanted, but for those when it was scaled up."""
    short = _counts(rows).filter(pl.col("ready") < pl.col("wanted"))
    return short.filter(~pl.any_horizontal(pl.lit(value=False), *(pl.col("time_ms").is_between(*s) for s in scaling)))


def _scaling_up(rows: pl.DataFrame) -> list[SpanMs]:
    """From each rise of the replicas wanted until all were ready, if none of those before was missing meanwhile."""
    spans = []
    began: tuple[float, float] | None = None
    counts = _counts(rows).rows()
    for (before_ms, wanted_before, _), (time_ms, wanted, ready) in pairwise(counts):
        if began is None and wanted > wanted_before:
            began = before_ms, wanted_before
        if began is not None and (ready < began[1] or ready >= wanted):
            spans += [(began[0], time_ms)] if ready >= wanted else []
            began = None
    return spans


def _vanished(rows: pl.DataFrame, origin_ms: float) -> list[VanishedReplicas]:
    """Replicas whose series end before those of the function, except if there were more than wanted (scaled down)."""
    wanted = dict(_of(rows, "replicas_wanted").select("time_ms", "value").iter_rows())
    # These two come from the replica itself; the others are rates, which start and end later.
    alive = _of(rows, "in_flight", MEMORY).unique(["time_ms", "detail"])
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
    metrics: pl.DataFrame, functions: list[FunctionSummary], origin_ms: float
) -> ReplicasOverTime | None:
    """Return replicas by function, and the usage of each replica, on one time grid (seconds since `origin_ms`)."""
    busiest = sorted(functions, key=lambda each: (each.cores_mean or 0, each.in_flight_max or 0), reverse=True)
    drawn = [each.function for each in busiest[:MAX_FUNCTIONS]]
    metrics = _of(metrics, *COUNTS, *OF_AUTOSCALER, *PER_REPLICA).filter(pl.col("function").is_in(drawn))
    if not metrics.height:  # a run shorter than the time from one scrape to the next
        return None
    first_ms, last_ms = (float(end) for end in metrics["time_ms"].sort()[[0, -1]])
    # Time bins of equal width: one per scrape, or wider ones if there would be too many.
    width_ms = max(_step_ms(metrics), (last_ms - first_ms) / MAX_BINS)
    n_bins = int((last_ms - first_ms) / width_ms + 0.5) + 1
    bin_ = ((pl.col("time_ms") - first_ms) / width_ms + 0.01).floor().cast(pl.Int64).alias("bin")

    def by_bin(rows: pl.DataFrame, how: str) -> Values:
        value = getattr(pl.col("value"), how)()
        return spread(rows.group_by(bin_).agg(value), "value", n_bins, digits=4)

    vanished = {name for each in functions for group in each.vanished for name in group.names}
    # Vanished replicas always have a line.
    names = sorted(_first_seen(_of(metrics, *PER_REPLICA)), key=lambda name: name not in vanished)[:MAX_REPLICAS]
    prefix = f"{drawn[0]}-" if len(drawn) == 1 else ""
    use = {}
    for metric, how in PER_REPLICA.items():
        rows = _of(metrics, metric)
        if not rows.height or (metric == "in_flight" and not rows["value"].max()):
            continue
        of_replica = rows.partition_by("detail", as_dict=True)
        lines = [
            ReplicaLine(number, name.removeprefix(prefix), by_bin(of_replica[(name,)], how))
            for number, name in enumerate(names)
            if (name,) in of_replica
        ]
        use[metric] = ReplicaUse(len(of_replica), by_bin(_whole(rows, metric), how), lines)
    counts: dict[str, Curves] = {}
    for name in drawn:
        rows = metrics.filter(pl.col("function") == name)
        counts[name] = {name: by_bin(_of(rows, metric), "min") for metric, name in COUNTS.items()}
        # Of platforms with an autoscaler only: how many replicas that asks for, and when its activator is on the path.
        for metric, key in OF_AUTOSCALER.items():
            if (of_metric := _of(rows, metric)).height:
                counts[name][key] = by_bin(of_metric, "max")
        counts[name]["short"] = by_bin(_short(rows, _scaling_up(rows)).rename({"ready": "value"}), "min")
    x = [round((first_ms + number * width_ms - origin_ms) / 1000, 3) for number in range(n_bins)]
    return ReplicasOverTime(x, len(functions), counts, use)


def _of(rows: pl.DataFrame, *metrics: str) -> pl.DataFrame:
    return rows.filter(pl.col("metric").is_in(metrics))


def _first_seen(rows: pl.DataFrame) -> list[str]:
    """Return the replicas in the order of their first rows."""
    return rows.group_by("detail").agg(pl.col("time_ms").min()).sort("time_ms", "detail")["detail"].to_list()


def _step_ms(metrics: pl.DataFrame) -> float:
    """Return the time from one scrape to the next; some of the other metrics are calculated at times of their own."""
    times = _of(metrics, *COUNTS, *PER_REPLICA)["time_ms"].unique().sort()
    return _median_step_ms(times) if times.len() > 1 else DEFAULT_STEP_MS


def _median_step_ms(times: pl.Series) -> float:
    return float(str(times.diff().drop_nulls().median()))


def _range(rows: pl.DataFrame, metric: str) -> Range | None:
    values = _of(rows, metric)["value"].to_list()
    return Range(int(min(values)), int(max(values))) if values else None


def _maximum(rows: pl.DataFrame) -> float | None:
    highest: float | None = rows.select(pl.col("value").max()).item()
    return highest
