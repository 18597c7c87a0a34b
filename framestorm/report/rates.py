"""The rates of a load: what was asked for, what was sent, and what was answered, all over the same span."""

from itertools import pairwise

import polars as pl

from framestorm.model.overload import Rates
from framestorm.model.series import Curves, InFlight
from framestorm.stats.batches import rate_ends
from framestorm.stats.estimate import Ends

NOT_KNOWN: Ends = (None, None)


def rates(samples: pl.LazyFrame, in_flight: InFlight | None, asked: Curves) -> Rates:
    """Return the rates of the main samples, and the most of them in flight; `asked` are corners of the schedule's line.

    The span of the load is from the first start to the last, and a pause between two starts, as n starts have n - 1
    pauses between them. Answers have a span of the same length that begins and ends one median response time later: a
    function whose answers take 5 s, however few of them are there before the last start, is as fast as it is asked.
    """
    ok_ms = (pl.col("start_ms") + pl.col("rtt_ms")).filter(pl.col("ok"))
    n, first, last, typical = (
        samples.select(
            pl.col("start_ms").count(),
            pl.col("start_ms").min().alias("first"),
            pl.col("start_ms").max().alias("last"),
            pl.col("rtt_ms").filter(pl.col("ok")).median().alias("typical"),
        )
        .collect()
        .row(0)
    )
    most = in_flight.most if in_flight and in_flight.what != "users" else None
    asked_per_s, asked_most_per_s = asked_rates(asked)
    if n < 2 or last <= first:
        return Rates(asked_per_s, asked_most_per_s, in_flight=most)
    span_ms = (last - first) * n / (n - 1)
    per_s, ends = 0.0, NOT_KNOWN
    if typical is not None:
        is_within = (ok_ms > last + typical - span_ms) & (ok_ms <= last + typical)
        ended_ms = samples.select(ok_ms.filter(is_within)).drop_nulls().collect(engine="streaming").to_series()
        per_s = ended_ms.len() / span_ms * 1000
        ends = rate_ends(ended_ms.to_numpy(), per_s) if per_s else NOT_KNOWN
    return Rates(asked_per_s, asked_most_per_s, n / span_ms * 1000, per_s, most, *ends)


def asked_rates(asked: Curves) -> tuple[float | None, float | None]:
    """Return the mean and the highest rate of a schedule, given by the corners of its line; None without a schedule."""
    x, y = ([value or 0.0 for value in asked.get(name, [])] for name in ("x", "y"))
    length_s = x[-1] - x[0] if x else 0.0
    if length_s <= 0:
        return None, None
    if min(y) == max(y):
        return y[0], y[0]
    due = sum((b - a) * (low + high) / 2 for (a, low), (b, high) in pairwise(zip(x, y, strict=True)))
    return due / length_s, max(y)
