"""The warning that JTLs were recorded at different times, such as on different days: rates over all mean little."""

import polars as pl

from framestorm.model.summary import Summary
from framestorm.model.units import duration, plural
from framestorm.report.document import utc

# How long nothing was in progress, at least: in one pause, and of the whole time.
PAUSE_MS, SHARE = 10 * 60_000.0, 0.5


def between_parts(summary: Summary, samples: pl.LazyFrame) -> list[str]:
    """Return the warning that nothing was in progress for most of the time; a run of the kit is one load."""
    if not summary.run.source or summary.load is None:
        return []
    # Samples that start within the length of a pause have none between them: only spans of these are in memory.
    place = (pl.col("start_ms") / PAUSE_MS).floor().alias("place")
    end_ms = (pl.col("start_ms") + pl.col("rtt_ms")).max().alias("end_ms")
    spans = samples.group_by(place).agg(pl.col("start_ms").min(), end_ms).drop_nulls().collect(engine="streaming")
    since_ms = pl.col("end_ms").cum_max().shift(1)
    length_ms = (pl.col("start_ms") - since_ms).alias("length_ms")
    pauses = spans.sort("start_ms").select(since_ms.alias("since_ms"), "start_ms", length_ms)
    long = pauses.filter(pl.col("length_ms") >= PAUSE_MS).sort("length_ms", descending=True)
    if long["length_ms"].sum() < max(1.0, SHARE * summary.load.duration_ms):
        return []
    since, until, length = long.row(0)
    more = f", and in {plural(long.height - 1, 'shorter pause')}" if long.height > 1 else ""
    return [
        f"Nothing was sent for {duration(length)}, from {utc(since)} to {utc(until)}{more}, so throughput and other "
        "rates, which are over the whole time, mean little. This is not one load, but several at different times: make "
        "a report of each, and compare them by ./run.sh compare."
    ]
