"""What each replica used: its counters in metrics.csv, as rates over time and as means under load."""

import polars as pl

from framestorm.model.summary import Replica

# The counters of a replica, which begin with it, and the rates that they become.
RATES = {
    "cpu_s": "cpu_cores",
    "cpu_throttled_s": "cpu_throttled_share",
    "received_bytes": "received_bytes_per_s",
    "sent_bytes": "sent_bytes_per_s",
}
NETWORK = "network_bytes_per_s"  # received and sent together
SERIES = ("metric", "function", "detail")
# Several scrapes: the rate from one to the next would be a comb.
WINDOW_MS = 10_000


def with_rates(metrics: pl.DataFrame) -> pl.DataFrame:
    """The rows sorted by time, and for each row of a counter one of its rate over the last 10 s."""
    counters = metrics.filter(pl.col("metric").is_in(list(RATES))).with_columns(at=pl.col("time_ms").cast(pl.Int64))
    value, time = pl.col("value"), pl.col("time_ms")
    growth = (value.last() - value.first()).clip(lower_bound=0) / (time.last() - time.first()) * 1000
    rates = (
        counters.sort("at")
        .rolling("at", period=f"{WINDOW_MS}i", closed="both", group_by=list(SERIES))
        .agg(growth.alias("value"), time.last())
        .filter(pl.col("value").is_finite())  # the first row of a series has no rate yet
        .with_columns(pl.col("metric").replace_strict(RATES, return_dtype=pl.String))
    )
    directions = rates.filter(pl.col("metric").is_in([RATES["received_bytes"], RATES["sent_bytes"]]))
    network = directions.group_by("time_ms", "function", "detail").agg(pl.col("value").sum(), metric=pl.lit(NETWORK))
    return pl.concat([part.select(metrics.columns) for part in (metrics, rates, network)]).sort("time_ms")


def use_of_replicas(rows: pl.DataFrame) -> list[Replica]:
    """What each replica of one function used, in the order of their first scrapes.

    cores_mean, received_bytes_per_s, sent_bytes_per_s: over the whole time of `rows`, so that those of all replicas
    add up. throttled_mean: share of the replica's own time.
    """
    counters = rows.filter(pl.col("metric").is_in(list(RATES)))
    whole_s = _length_s(counters)
    named = rows.filter(pl.col("detail") != "", pl.col("metric").is_in([*RATES, "in_flight", "memory_bytes"]))
    first_seen = named.group_by("detail").agg(pl.col("time_ms").min()).sort("time_ms", "detail")
    return [_replica(name, rows.filter(pl.col("detail") == name), whole_s) for name in first_seen["detail"]]


def _replica(name: str, rows: pl.DataFrame, whole_s: float) -> Replica:
    growth = {metric: _growth(rows.filter(pl.col("metric") == metric), whole_s) for metric in RATES}
    throttled = rows.filter(pl.col("metric") == "cpu_throttled_s")
    return Replica(
        name=name,
        cores_mean=growth["cpu_s"],
        throttled_mean=_growth(throttled, _length_s(throttled)),
        memory_max_bytes=rows.filter(pl.col("metric") == "memory_bytes").select(pl.col("value").max()).item(),
        received_bytes_per_s=growth["received_bytes"],
        sent_bytes_per_s=growth["sent_bytes"],
    )


def _length_s(rows: pl.DataFrame) -> float:
    return float((rows["time_ms"][-1] - rows["time_ms"][0]) / 1000) if rows.height else 0.0


def _growth(rows: pl.DataFrame, over_s: float) -> float | None:
    """By how much a counter grew per second; None where it was read once or not at all."""
    if rows.height < 2 or not over_s:
        return None
    return max(0.0, float(rows["value"][-1] - rows["value"][0])) / over_s
