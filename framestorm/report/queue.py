"""What was accepted and is still to be done: answers with status 202, and the queue behind them."""

from dataclasses import replace

import numpy as np
import polars as pl

from framestorm.model.overload import Overload, Queue, Rates
from framestorm.results.table import IS_OWN
from framestorm.stats.backlog import LEAST_GROWTH, ONE_SIDED
from framestorm.stats.means import student

ACCEPTED = 202
DONE_PER_S = "requests_per_s"  # of metrics.csv: what the gateway had done by the function, by status
WINDOW_MS = 10_000.0  # over which the platform calculates that rate
LEAST_WINDOWS = 3
# Of what was accepted: scrapes are too coarse for less.
LEAST_SHARE = 0.05


def accepted_by_label(samples: pl.LazyFrame) -> dict[str, int]:
    """Return how many samples of each label were accepted only, the most first."""
    counts = _accepted(samples).group_by(pl.col("label").cast(pl.String)).len().collect(engine="streaming")
    return dict(counts.sort("len", "label", descending=[True, False]).iter_rows())


def growing_queue(samples: pl.LazyFrame, metrics: pl.DataFrame) -> Queue | None:
    """Return the queue of the function whose metrics these are, if it surely grew; None also where it cannot be seen.

    In each whole window of the load, the accepted requests are compared with those that were done, failed ones too: a
    queue grows by the difference. That it grew is said if the mean difference is above 0 by its one-sided 95 %
    interval, and matters.
    """
    # A function that answers 202 itself has begun something that the gateway knows nothing of.
    done = metrics.filter((pl.col("metric") == DONE_PER_S) & (pl.col("detail") != str(ACCEPTED)))
    if done["function"].n_unique() != 1:
        return None
    at_ms = _accepted(samples).select(pl.col("start_ms") + pl.col("rtt_ms")).drop_nulls().collect()
    accepted_ms = np.sort(at_ms.to_series().to_numpy())
    if not accepted_ms.size:
        return None
    rates = done.group_by("time_ms").agg(pl.col("value").sum()).sort("time_ms")
    time_ms, per_s = rates["time_ms"].to_numpy(), rates["value"].to_numpy()
    ends = np.arange(accepted_ms[0] + WINDOW_MS, accepted_ms[-1], WINDOW_MS)
    latest = np.searchsorted(time_ms, ends, side="right") - 1
    is_known = (latest >= 0) & (ends - time_ms[latest] < WINDOW_MS / 2)
    ends, latest = ends[is_known], latest[is_known]
    if ends.size < LEAST_WINDOWS:
        return None
    accepted = np.searchsorted(accepted_ms, ends) - np.searchsorted(accepted_ms, ends - WINDOW_MS)
    waiting = accepted - per_s[latest] * WINDOW_MS / 1000
    each, grew = student(waiting, ONE_SIDED), float(waiting.sum())
    if each.low is None or each.low <= 0 or grew < max(LEAST_GROWTH, LEAST_SHARE * accepted.sum()):
        return None
    length_s = ends.size * WINDOW_MS / 1000
    return Queue(float(accepted.sum()) / length_s, float(per_s[latest].mean()), grew)


def with_queue(
    judged: Overload | None, queue: Queue, rates: Rates, span_ms: tuple[float, float] | None, origin_ms: float
) -> Overload:
    """The judgement of a load whose accepted requests pile up; `judged` is that of its schedule, if it has one."""
    if judged is not None:
        return replace(judged, signs=[*judged.signs, "queued"], queue=queue)
    from_s, to_s = ((each - origin_ms) / 1000 for each in span_ms or (origin_ms, origin_ms))
    return Overload(
        ["queued"],
        round(from_s, 3),
        round(to_s, 3),
        queue.accepted_per_s,
        queue.done_per_s,
        rates.in_flight or 0,
        queue=queue,
    )


def _accepted(samples: pl.LazyFrame) -> pl.LazyFrame:
    return samples.filter(IS_OWN & pl.col("ok") & (pl.col("status") == ACCEPTED))
