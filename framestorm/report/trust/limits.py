"""Failures that all took the same time: a time limit between the generator and the function ended them."""

import re

import numpy as np
import polars as pl

from framestorm.model.summary import Summary
from framestorm.model.units import NBSP, count
from framestorm.stats.checks import Floats

# What an answer of something in between looks like; that the function failed a check took its own time.
_CAUSES = re.compile(r"status-(408|499|5\d\d)|reset|not-http|exception|error")
LEAST_N = 5
SHARE = 0.8  # of the failures of a cause
SHORTEST_MS = 500.0
# How far apart they may be: a generator, a network and a proxy add to each, and a busy machine adds more.
SPREAD, SPREAD_SHORT, SPREAD_MS = 0.02, 0.1, 100.0
LET_THROUGH = 0.01  # of the successes that may be longer: a limit may not be the same on every way
NEAR = 0.9  # of the limit: where most successes take so long, it is the function's own time


def between(summary: Summary, samples: pl.LazyFrame) -> list[str]:
    """Return a warning for each cause whose failures end at one time, though no success takes so long."""
    causes = [cause for cause, n in summary.main.causes.items() if _is_of_others(cause) and n >= LEAST_N]
    if not causes:
        return []
    timed = samples.filter(pl.col("rtt_ms").is_not_null())
    ok_ms = timed.filter("ok").select("rtt_ms").collect(engine="streaming")["rtt_ms"].to_numpy()
    failed = timed.filter(~pl.col("ok")).select(pl.col("cause").cast(pl.String), "rtt_ms").collect(engine="streaming")
    sentences = []
    for cause in causes:
        of_cause = failed.filter(pl.col("cause") == cause)["rtt_ms"].to_numpy()
        limit = limit_of(of_cause, ok_ms)
        if limit is not None:
            n, low_ms, high_ms = limit
            took = f"{low_ms / 1000:.2f} to {high_ms / 1000:.2f}{NBSP}s"
            sentences.append(
                f"{count(n)} of {count(of_cause.size)} {cause} took {took}: a time-out of a gateway or proxy in "
                "between ends them there. Look for that time in its settings, and in those of the platform."
            )
    return sentences


def limit_of(failed_ms: Floats, ok_ms: Floats) -> tuple[int, float, float] | None:
    """How many failures ended at one time, and from when to when; None if that is not so, or if it proves nothing."""
    if failed_ms.size < LEAST_N:
        return None
    times = np.sort(failed_ms)
    # The densest part: the most times that lie as near to each other as a limit leaves them.
    spread_ms = np.maximum(SPREAD * times, np.minimum(SPREAD_SHORT * times, SPREAD_MS))
    ends = np.searchsorted(times, times + spread_ms, side="right")
    first = int(np.argmax(ends - np.arange(times.size)))
    n, low_ms, high_ms = int(ends[first]) - first, float(times[first]), float(times[ends[first] - 1])
    if n < max(LEAST_N, SHARE * times.size) or low_ms < SHORTEST_MS:
        return None
    # A limit lets no success through that is longer; and where the successes take that long too, so does the function.
    is_own_time = ok_ms.size and (np.mean(ok_ms > high_ms) > LET_THROUGH or np.median(ok_ms) >= NEAR * low_ms)
    return None if is_own_time else (n, low_ms, high_ms)


def _is_of_others(cause: str) -> bool:
    return _CAUSES.fullmatch(cause.partition(": ")[0]) is not None
