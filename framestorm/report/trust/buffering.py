"""Streamed answers whose pieces come in large parts, or all at their end: something in between keeps them back."""

import polars as pl

from framestorm.model.summary import Summary
from framestorm.model.units import count, percent
from framestorm.report.trust.machines import is_saturated

LEAST_N, LEAST_PIECES = 5, 10
SHARE = 0.5  # of the answers: a user who gets its turn late reads several pieces of one at once
# Answers came at once whose pieces all arrived within such a share of the time to the first one, less than a
# millisecond apart, which no model is, and near their end: a busy user ends its response time late.
TOGETHER, SHORTEST_GAP_MS, LATE = 0.02, 1.0, 0.9
_ADVICE = (
    "Time to first token and the gaps are then not the function's: send to the function itself, or switch the "
    "buffering off."
)


def kept_back(summary: Summary, samples: pl.LazyFrame) -> list[str]:
    """Return a warning if the pieces of most answers arrived all at once, or many of them together with the first."""
    columns = ["rtt_ms", "ttft_ms", "itl_mean_ms", "pieces"]
    names = samples.collect_schema().names()
    if not set(columns) <= set(names):
        return []
    # On a saturated machine, functions and users get their turn late: several pieces may then come together.
    if "first_pieces" not in names or any(is_saturated(machine) for machine in summary.machines):
        samples = samples.with_columns(first_pieces=pl.lit(None, pl.Float64))
    pieces, first = pl.col("pieces"), pl.col("first_pieces")
    span_ms = pl.col("itl_mean_ms") * (pieces - 1)
    is_late = pl.col("ttft_ms") >= LATE * pl.col("rtt_ms")
    is_at_once = is_late & (span_ms <= TOGETHER * pl.col("ttft_ms")) & (pl.col("itl_mean_ms") < SHORTEST_GAP_MS)
    # A model makes the first token alone, however many it makes or sends at a time from then on. What came after the
    # first part took as long as a model takes for it.
    is_slow = span_ms >= SHORTEST_GAP_MS * (pieces - first)
    is_in_parts = (first >= LEAST_PIECES) & (first < pieces) & is_slow
    is_kept = is_at_once | is_in_parts.fill_null(value=False)
    answers = samples.filter("ok", pieces >= LEAST_PIECES).select(
        pl.len(), is_at_once.sum().alias("at_once"), is_kept.sum().alias("kept"), first.filter(is_kept).median()
    )
    n, n_at_once, n_kept, first_pieces = answers.collect(engine="streaming").row(0)
    if n < LEAST_N or n_kept < SHARE * n:
        return []
    if n_at_once >= SHARE * n:
        return [
            f"The answers came at once: in {percent(n_at_once / n)} of {count(n)} answers of {LEAST_PIECES} pieces or "
            "more, all pieces arrived together at the end. Something between the client and the function buffers the "
            f"stream, such as a gateway or a proxy, or the function sends its answer as a whole. {_ADVICE}"
        ]
    return [
        f"The answers came in large parts: in {percent(n_kept / n)} of {count(n)} answers of {LEAST_PIECES} pieces or "
        f"more, the first piece came together with others, {count(round(first_pieces))} at a time (median), where a "
        "model sends it alone. Something between the client and the model collects the stream, such as a gateway, a "
        f"proxy or a content filter, or the function itself sends its answer in parts. {_ADVICE}"
    ]
