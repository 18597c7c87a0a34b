"""The samples of a label that people look up in a tracing system: the slowest, and some that failed."""

import polars as pl

from framestorm.model.sample import TRACE_ID
from framestorm.model.traced import TracedSample, Traces

MAX_SLOWEST, MAX_FAILED, MAX_OF_CAUSE = 5, 10, 2
_FIELDS = (TRACE_ID, "start_ms", "rtt_ms", "cause")


def read_traces(samples: pl.LazyFrame) -> Traces | None:
    """Return the slowest and some failed samples of a label; None if none has a trace id."""
    if TRACE_ID not in samples.collect_schema().names():
        return None
    traced = samples.filter(pl.col(TRACE_ID).is_not_null())
    slowest = traced.filter("ok").select(*_FIELDS[:-1], pl.lit(None, pl.String)).top_k(MAX_SLOWEST, by="rtt_ms")
    cause = pl.col("cause").cast(pl.String).fill_null("unknown")
    failed = (
        traced.filter(~pl.col("ok"))
        .select(*_FIELDS[:-1], cause)
        .with_columns(pl.len().over("cause").alias("of_cause"), pl.int_range(pl.len()).over("cause").alias("number"))
        .filter(pl.col("number") < MAX_OF_CAUSE)
        .sort(["of_cause", "cause", "number"], descending=[True, False, False])
        .head(MAX_FAILED)
        .select(_FIELDS)
    )
    rows, rows_failed = (
        [TracedSample(*row) for row in each.collect(engine="streaming").iter_rows()]
        for each in (slowest.sort("rtt_ms", descending=True), failed)
    )
    return Traces(rows, rows_failed) if rows or rows_failed else None
