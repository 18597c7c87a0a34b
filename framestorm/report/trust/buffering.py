"""Streamed answers whose pieces all come at their end: something in between keeps the stream back."""

import polars as pl

from framestorm.model.units import count, percent

LEAST_N, LEAST_PIECES = 5, 10
SHARE = 0.5  # of the answers: a user who gets its turn late reads several pieces of one at once
# Answers came at once whose pieces all arrived within such a share of the time to the first one, less than a
# millisecond apart, which no model is, and near their end: a busy user ends its response time late.
TOGETHER, SHORTEST_GAP_MS, LATE = 0.02, 1.0, 0.9


def at_once(samples: pl.LazyFrame) -> list[str]:
    """Return a warning if most answers of several pieces arrived all at once."""
    columns = ["rtt_ms", "ttft_ms", "itl_mean_ms", "pieces"]
    if not set(columns) <= set(samples.collect_schema()):
        return []
    span_ms = pl.col("itl_mean_ms") * (pl.col("pieces") - 1)
    is_late = pl.col("ttft_ms") >= LATE * pl.col("rtt_ms")
    is_at_once = is_late & (span_ms <= TOGETHER * pl.col("ttft_ms")) & (pl.col("itl_mean_ms") < SHORTEST_GAP_MS)
    streamed = samples.filter("ok", pl.col("pieces") >= LEAST_PIECES)
    n, n_at_once = streamed.select(pl.len(), is_at_once.sum().alias("n")).collect(engine="streaming").row(0)
    if n < LEAST_N or n_at_once < SHARE * n:
        return []
    return [
        f"The answers came at once: in {percent(n_at_once / n)} of {count(n)} answers of {LEAST_PIECES} pieces or "
        "more, all pieces arrived together at the end. Something between the client and the function buffers the "
        "stream, such as a gateway or a proxy, or the function sends its answer as a whole. Time to first token and "
        "the gaps are then not the function's: send to the function itself, or switch the buffering off."
    ]
