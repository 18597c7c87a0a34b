"""Streamed answers whose pieces all come at their end: something in between keeps the stream back."""

import polars as pl

from framestorm.model.units import count, percent

LEAST_N, LEAST_PIECES = 5, 10
SHARE = 0.5  # of the answers: a user who gets its turn late reads several pieces of one at once
# A first piece so late, as a share of the response time, is no time to first token; a long prompt alone may take most
# of it too, but then the tokens come one by one, and no model makes so many in a second.
LATE, SHORTEST_GAP_MS = 0.98, 1.0


def at_once(samples: pl.LazyFrame) -> list[str]:
    """Return a warning if most answers of several pieces came as a whole."""
    columns = ["rtt_ms", "ttft_ms", "itl_mean_ms", "pieces"]
    if not set(columns) <= set(samples.collect_schema()):
        return []
    is_late = (pl.col("ttft_ms") >= LATE * pl.col("rtt_ms")) & (pl.col("itl_mean_ms") < SHORTEST_GAP_MS)
    streamed = samples.filter("ok", pl.col("pieces") >= LEAST_PIECES)
    n, late = streamed.select(pl.len(), is_late.sum().alias("late")).collect(engine="streaming").row(0)
    if n < LEAST_N or late < SHARE * n:
        return []
    return [
        f"The answers came at once: in {percent(late / n)} of {count(n)} answers of {LEAST_PIECES} pieces or more, the "
        f"first piece came after {percent(LATE)} of the response time or later, and the others right after it. "
        "Something between the client and the function buffers the stream, such as a gateway or a proxy, or the "
        "function sends its answer as a whole. Time to first token and the gaps are then not the function's: send to "
        "the function itself, or switch the buffering off."
    ]
