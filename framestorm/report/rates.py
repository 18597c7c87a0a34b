"""The rates of a load: what was asked for, what was sent, and what was answered."""

import math
from itertools import pairwise

import polars as pl

from framestorm.model.overload import Rates
from framestorm.model.series import Curves, InFlight
from framestorm.stats.batches import rate_ends
from framestorm.stats.estimate import Ends

NOT_KNOWN: Ends = (None, None)
WHOLE = 0.99  # of the schedule's length: a load that is so long is all of it


def rates(samples: pl.LazyFrame, in_flight: InFlight | None, asked: Curves) -> Rates:
    """Return the rates of the main samples, and the most of them in flight; `asked` are corners of the schedule's line.

    The span of the load is from the first start to the last, and a pause between two starts, as n starts have n - 1
    pauses between them. Answers have a span of the same length that begins and ends one median response time later: a
    function whose answers take 5 s, however few of them are there before the last start, is as fast as it is asked.
    """
    ok_ms = (pl.col("start_ms") + pl.col("rtt_ms")).filter(pl.col("ok"))
    n, first, last, end, typical = (
        samples.select(
            pl.col("start_ms").count(),
            pl.col("start_ms").min().alias("first"),
            pl.col("start_ms").max().alias("last"),
            pl.max_horizontal("start_ms", pl.col("start_ms") + pl.col("rtt_ms")).max().alias("end"),
            pl.col("rtt_ms").filter(pl.col("ok")).median().alias("typical"),
        )
        .collect()
        .row(0)
    )
    most = in_flight.most if in_flight and in_flight.what != "users" else None
    if n < 2 or last <= first:
        return Rates(*asked_rates(asked), in_flight=most)
    span_ms = (last - first) * n / (n - 1)
    # Not up to the last start: where a function hangs, arrivals are due that find no free thread.
    asked_per_s, asked_most_per_s = asked_rates(asked, (end - first) / 1000)
    per_s, ends = 0.0, NOT_KNOWN
    if typical is not None:
        is_within = (ok_ms > last + typical - span_ms) & (ok_ms <= last + typical)
        ended_ms = samples.select(ok_ms.filter(is_within)).drop_nulls().collect(engine="streaming").to_series()
        per_s = ended_ms.len() / span_ms * 1000
        ends = rate_ends(ended_ms.to_numpy(), per_s) if per_s else NOT_KNOWN
    return Rates(asked_per_s, asked_most_per_s, n / span_ms * 1000, per_s, most, *ends)


def asked_rates(asked: Curves, within_s: float = math.inf) -> tuple[float | None, float | None]:
    """Return the mean and the highest rate of a schedule, given by the corners of its line; None without a schedule.

    within_s: how long the load was; what is due later does not count, nor do pauses at the ends of the schedule.
    """
    corners = [(x or 0.0, y or 0.0) for x, y in zip(asked.get("x", []), asked.get("y", []), strict=True)]
    while len(corners) > 2 and corners[0][1] == corners[1][1] == 0:
        corners.pop(0)
    while len(corners) > 2 and corners[-1][1] == corners[-2][1] == 0:
        corners.pop()
    whole_s = corners[-1][0] - corners[0][0] if corners else 0.0
    end_s = corners[0][0] + within_s if within_s < WHOLE * whole_s else math.inf
    due, length_s, levels = 0.0, 0.0, []
    for (a, low), (b, high) in pairwise(corners):
        if b > a and end_s > a:
            until_s = min(b, end_s)
            level = low + (high - low) * (until_s - a) / (b - a)
            due += (until_s - a) * (low + level) / 2
            length_s += until_s - a
            levels += [low, level]
    if not levels:
        return None, None
    # The mean of a constant rate is that rate, without an error of rounding.
    return (due / length_s if min(levels) < max(levels) else levels[0]), max(levels)
