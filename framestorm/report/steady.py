"""Since when the response times of a run are steady; docs/report.md has the rule in words."""

import math

import numpy as np
import polars as pl

from framestorm.model.series import Curves
from framestorm.model.summary import SteadyState
from framestorm.report.stretch import Stretch, level
from framestorm.stats.steadiness import BINS, steadiness

# What is shorter, or has fewer samples, says nothing of a drift.
LEAST_S, LEAST_OF_BIN = 10.0, 10


def read_steady(samples: pl.LazyFrame, asked: Curves, origin_ms: float) -> SteadyState | None:
    """Return since when the times of a run's main samples are steady; None if there is too little to tell.

    Looked at is the part of the load that asks for most, in bins of equal length: the mean of the logarithms of the
    times of the samples without error that started there, so that a few long ones do not stand for all.

    Args:
        samples: the main samples.
        asked: the line of what the load asks for, arrivals or users; empty if that is not known.
        origin_ms: the run's start.
    """
    timed = samples.filter(pl.col("ok") & (pl.col("rtt_ms") > 0) & pl.col("start_ms").is_not_null())
    first_ms, last_ms = timed.select(pl.col("start_ms").min(), pl.col("start_ms").max().alias("last")).collect().row(0)
    if first_ms is None:
        return None
    stretch = level(asked, Stretch(first_ms, last_ms), origin_ms)
    if stretch.length_s < LEAST_S:
        return None
    number = ((pl.col("start_ms") - stretch.start) / (stretch.end - stretch.start) * BINS).floor()
    bins = (
        timed.filter(pl.col("start_ms").is_between(stretch.start, stretch.end, closed="left"))
        .group_by(number.cast(pl.Int32).alias("bin"))
        .agg(pl.len(), pl.col("rtt_ms").log().mean().alias("log_ms"))
        .collect(engine="streaming")
        .sort("bin")
    )
    n = int(bins["len"].sum())
    if bins.height < BINS or n < LEAST_OF_BIN * BINS:
        return None
    judged = steadiness(np.asarray(bins["log_ms"].to_numpy()))
    from_s, to_s = (stretch.start - origin_ms) / 1000, (stretch.end - origin_ms) / 1000
    since_s, before = None, 0
    if judged.since is not None:
        since_s = from_s + judged.since * (to_s - from_s) / BINS
        before = int(bins["len"][: judged.since].sum())
    return SteadyState(from_s, to_s, since_s, math.expm1(judged.change), n, before)
