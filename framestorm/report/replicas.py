"""metrics.csv: what OpenFaaS's replicas did under load, by function, and where replicas were missing."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import polars as pl

from framestorm.report.replica_use import NETWORK, use_of_replicas, with_rates
from framestorm.report.units import count, duration, plural

SCHEMA = {
    "time_ms": pl.Float64, "metric": pl.String, "function": pl.String, "detail": pl.String, "value": pl.Float64,
}  # fmt: skip
# How values of one bin become one: no dip of the replicas and no peak of what they hold may be lost in a long run.
PER_REPLICA = {
    "in_flight": "max", "cpu_cores": "mean", "cpu_throttled_share": "mean", "memory_bytes": "max", NETWORK: "mean",
}  # fmt: skip
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
    own = metrics.filter(pl.col("function") == function_of(url))
    return own if own.height else metrics


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


def summarise_replicas(metrics: pl.DataFrame | None, span: Span | None, origin_ms: float) -> list[dict[str, Any]]:
    """A row a function, under load; cores and in flight are of all its replicas together."""
    if metrics is None:
        return []
    if span is not None:
        under_load = metrics.filter(pl.col("time_ms").is_between(*span))
        metrics = under_load if under_load.height else metrics
    step_ms = _step_ms(metrics)
    return [
        _row(str(function), rows, step_ms, origin_ms)
        for (function,), rows in sorted(metrics.partition_by("function", as_dict=True).items())
    ]


def _row(function: str, rows: pl.DataFrame, step_ms: float, origin_ms: float) -> dict[str, Any]:
    short = _short(rows)
    cores, in_flight = _whole(rows, "cpu_cores"), _whole(rows, "in_flight")
    counts = {name: rows.filter(pl.col("metric") == metric)["value"] for metric, name in COUNTS.items()}
    used = use_of_replicas(rows)
    worst = short.sort(pl.col("ready") - pl.col("wanted")).row(0, named=True) if short.height else None
    lost, short_s = _grown(rows, LOST), _grown(rows, SHORT)
    # Where the provider counted none, those that are gone went with a deployment before this one.
    vanished = [] if lost == 0 else _vanished(rows, origin_ms)
    return {
        "function": function,
        **{name: _ends(values) for name, values in counts.items()},
        "seen": len(used),
        # The provider counts them: of requests that go past it, by a balancer, it knows nothing.
        "in_flight_max": _number(in_flight["value"].max()) or None,
        "cores_mean": _sum(used, "cores_mean"),
        "cores_max": _number(cores["value"].max()),
        "throttled_mean": _mean(used, "throttled_mean"),
        "memory_max_bytes": max(_known(used, "memory_max_bytes"), default=None),
        "received_bytes_per_s": _sum(used, "received_bytes_per_s"),
        "sent_bytes_per_s": _sum(used, "sent_bytes_per_s"),
        "replicas": used,
        # By the provider's own clock; without it no finer than the scrapes.
        "short_s": short.height * step_ms / 1000 if short_s is None else short_s,
        "short_worst": {"ready": int(worst["ready"]), "wanted": int(worst["wanted"])} if worst else None,
        "lost": sum(gone["replicas"] for gone in vanished) if lost is None else int(lost),
        "vanished": vanished,
    }


COUNTS = {"replicas_wanted": "wanted", "replicas_ready": "ready"}
LOST, SHORT = "replicas_lost", "replicas_short_s"  # counters: they only grow


def _grown(rows: pl.DataFrame, counter: str) -> float | None:
    """By how much a counter grew; None where there is none. It begins anew with each deployment."""
    values = rows.filter(pl.col("metric") == counter)["value"]
    return float(values.diff().drop_nulls().clip(lower_bound=0).sum()) if values.len() else None


def _whole(rows: pl.DataFrame, metric: str) -> pl.DataFrame:
    """The sum over the replicas at each moment; of shares the mean, for a sum of them says nothing."""
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


def _vanished(rows: pl.DataFrame, origin_ms: float) -> list[dict[str, Any]]:
    """Replicas whose series end while the function's go on, unless more were there than wanted (scaled down)."""
    wanted = dict(rows.filter(pl.col("metric") == "replicas_wanted").select("time_ms", "value").iter_rows())
    # These two are told by the replica itself; the others are rates, which begin late and end late.
    alive = rows.filter(pl.col("metric").is_in(["in_flight", "memory_bytes"])).unique(["time_ms", "detail"])
    there = dict(alive.group_by("time_ms").len().iter_rows())
    ends = alive.group_by("detail").agg(pl.col("time_ms").max()).group_by("time_ms").agg("detail").sort("time_ms")
    found = []
    for last_ms, names in ends.iter_rows():
        next_ms = min((time_ms for time_ms in wanted if time_ms > last_ms), default=None)
        if next_ms is None:
            continue
        surplus = max(0, there[last_ms] - int(min(wanted.get(last_ms, wanted[next_ms]), wanted[next_ms])))
        if len(names) > surplus:
            gone = {"replicas": len(names) - surplus, "names": sorted(names)}
            found.append(gone | {"at_s": round((next_ms - origin_ms) / 1000, 3)})
    return found


def sentences(metrics: pl.DataFrame | None, rows: list[dict[str, Any]]) -> list[str]:
    """Warnings: replicas that vanished, times with fewer ready than wanted, and metrics that say nothing."""
    if metrics is not None and not metrics.height:
        return ["metrics.csv holds nothing of the load's time: what the replicas did is not known."]
    found = []
    for row in rows:
        name = row["function"]
        for gone in row["vanished"]:
            who = "" if gone["replicas"] < len(gone["names"]) else f" ({', '.join(gone['names'])})"
            found.append(
                f"{plural(gone['replicas'], 'replica')} of {name}{who} vanished in mid-run, "
                f"{duration(gone['at_s'] * 1000)} after the start, without being scaled down. What it was working on "
                "was lost, and until another was ready the rest had its work."
            )
        if (unseen := row["lost"] - sum(gone["replicas"] for gone in row["vanished"])) > 0:
            found.append(
                f"{plural(unseen, 'replica')} of {name} ended in mid-run without being scaled down, and "
                f"{'was' if unseen == 1 else 'were'} replaced between two looks. What it was working on was lost."
            )
        if row["short_s"]:
            worst = row["short_worst"]
            seen = f", at worst {count(worst['ready'])} of {count(worst['wanted'])}" if worst else ""
            found.append(
                f"{name} had fewer replicas ready than wanted for {duration(row['short_s'] * 1000)} of the load{seen}: "
                "times and rates of then are of a smaller function than the one asked for."
            )
    return found


def replicas_over_time(
    metrics: pl.DataFrame | None, rows: list[dict[str, Any]], origin_ms: float
) -> dict[str, Any] | None:
    """Replicas by function, and what each replica held, on one grid of times (seconds since `origin_ms`)."""
    if metrics is None:
        return None
    busiest = sorted(rows, key=lambda row: (row["cores_mean"] or 0, row["in_flight_max"] or 0), reverse=True)
    drawn = [row["function"] for row in busiest[:MAX_FUNCTIONS]]
    metrics = metrics.filter(pl.col("function").is_in(drawn), pl.col("metric").is_in([*COUNTS, *PER_REPLICA]))
    if not metrics.height:  # a run shorter than the time from one scrape to the next
        return None
    grid = Grid.of(metrics)
    series: dict[str, Any] = {
        "x": [round((grid.first_ms + bin_ * grid.width_ms - origin_ms) / 1000, 3) for bin_ in range(grid.n)],
        "of_functions": len(rows),
        "counts": {name: _counts_over_time(metrics, name, grid) for name in drawn},
    }
    names = _shown(metrics, {name for row in rows for gone in row["vanished"] for name in gone["names"]})
    for metric, how in PER_REPLICA.items():
        part = metrics.filter(pl.col("metric") == metric)
        if not part.height or (metric == "in_flight" and not part["value"].max()):
            continue
        lines = part.filter(pl.col("detail").is_in(names)).partition_by("detail", as_dict=True)
        series[metric] = {
            "replicas": part["detail"].n_unique(),
            "whole": grid.spread(_whole(part, metric), how),
            # The number is the replica's colour, the same in every chart.
            "lines": [
                {
                    "number": number,
                    "name": name.removeprefix(f"{drawn[0]}-") if len(drawn) == 1 else name,
                    "y": grid.spread(lines[(name,)], how),
                }
                for number, name in enumerate(names)
                if (name,) in lines
            ],
        }
    return series


def _counts_over_time(metrics: pl.DataFrame, function: str, grid: "Grid") -> dict[str, list[float | None]]:
    own = metrics.filter(pl.col("function") == function)
    counts = {name: grid.spread(own.filter(pl.col("metric") == metric), "min") for metric, name in COUNTS.items()}
    short = _short(own).select("time_ms", pl.col("ready").alias("value"))
    return counts | {"short": grid.spread(short, "min")}


def _shown(metrics: pl.DataFrame, vanished: set[str]) -> list[str]:
    """The replicas with a line: those that vanished, then by when they were first seen."""
    own = metrics.filter(pl.col("metric").is_in(list(PER_REPLICA)))
    first = own.group_by("detail").agg(pl.col("time_ms").min()).sort("time_ms", "detail")
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

    def spread(self, rows: pl.DataFrame, how: str) -> list[float | None]:
        """The column `value` by bin; None where a bin has none."""
        bin_ = ((pl.col("time_ms") - self.first_ms) / self.width_ms + 0.01).floor().cast(pl.Int64).alias("bin")
        value = {"min": pl.col("value").min(), "max": pl.col("value").max(), "mean": pl.col("value").mean()}[how]
        spread: list[float | None] = [None] * self.n
        for number, found in rows.group_by(bin_).agg(value).iter_rows():
            if number < self.n:
                spread[number] = round(found, 4)
        return spread


def _step_ms(metrics: pl.DataFrame) -> float:
    """The time from one scrape to the next; some of the other metrics are calculated at times of their own."""
    scrapes = metrics.filter(pl.col("metric").is_in([*COUNTS, *PER_REPLICA]))
    steps = scrapes["time_ms"].unique().sort().diff().drop_nulls()
    return float(str(steps.median())) if steps.len() else DEFAULT_STEP_MS


def _ends(values: pl.Series) -> dict[str, int] | None:
    low, high = _number(values.min()), _number(values.max())
    return None if low is None or high is None else {"min": int(low), "max": int(high)}


def _known(rows: list[dict[str, Any]], name: str) -> list[float]:
    return [row[name] for row in rows if row[name] is not None]


def _sum(rows: list[dict[str, Any]], name: str) -> float | None:
    known = _known(rows, name)
    return sum(known) if known else None


def _mean(rows: list[dict[str, Any]], name: str) -> float | None:
    known = _known(rows, name)
    return sum(known) / len(known) if known else None


def _number(value: Any) -> float | None:
    return None if value is None else float(value)
