"""Whether the function kept up with an open load, by the samples of a run; docs/report.md has the rule in words."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from framestorm.model.overload import Overload, Rates, Sign
from framestorm.model.run import Record
from framestorm.model.series import Curves
from framestorm.model.summary import Machine, Stall
from framestorm.model.units import plural
from framestorm.report.asked import Asked
from framestorm.report.stretch import Stretch, level
from framestorm.report.trust.machines import BUSY_TIME, is_saturated
from framestorm.stats.backlog import ONE_SIDED, growth
from framestorm.stats.checks import Floats
from framestorm.stats.means import student

LEAST_SAMPLES = 12
MOST_BINS, BINS_BY = 30, 6
# Of the requests: what is below are single failures, not an overload.
LEAST_SHARE = 0.01
# Of the time-out: where the mean response time is so close to it, most requests would have waited longer.
MOSTLY_CUT = 0.5
# By which a function or its gateway says that it has too much to do.
REFUSALS = ("status-429", "status-503")
ALL_WAIT = 0.9  # of the threads
# Of the threads, on average: a backlog that grows until arrivals are dropped, and then stays, takes up at least so
# many. Fewer were taken up for a moment, as when JMeter pauses.
MOSTLY_WAIT = 0.5
REACHED = 0.95  # of what timers ask for
SHORTEST = 0.05  # of the response times
LONG_STALL_MS = 500.0
# A generator is late whose requests start late by such a share of the growth of response times, or so few are sent.
LATE, IN_TIME = 0.25, 0.98


class Arrivals(NamedTuple):
    """How many arrivals were due, None if that is not known, and how many of them found no free thread."""

    due: int | None = None
    dropped: int = 0


def overload(
    samples: pl.LazyFrame, asked: Asked, rates: Rates, arrivals: Arrivals, origin_ms: float, generator: str = ""
) -> Overload | None:
    """Judge whether the function kept up with a load that comes by a schedule; None if there is too little to tell.

    It is judged where the schedule asks for most, and there mainly by the last two thirds: in the first, a function may
    still warm up.

    Args:
        samples: those that are due by the schedule.
        asked: the schedule; its line has to be of these samples.
        rates: of the whole load.
        arrivals: what is known of those that were not sent.
        origin_ms: the run's start.
        generator: why the load generator may have been too slow, empty if it was not.
    """
    known = samples.filter(pl.col("start_ms").is_not_null() & pl.col("rtt_ms").is_not_null())
    first, last = known.select(pl.col("start_ms").min(), pl.col("start_ms").max().alias("last")).collect().row(0)
    if first is None or last <= first:
        return None
    stretch = level(asked.per_s, Stretch(first, last), origin_ms)
    within = known.filter(pl.col("start_ms").is_between(*stretch))
    times = {
        "mean_ms": pl.col("rtt_ms").filter(pl.col("ok") | pl.col("timed_out")).mean(),
        "cut_ms": pl.col("rtt_ms").filter("timed_out").median(),
        "least_ms": pl.col("rtt_ms").filter("ok").quantile(SHORTEST),
        "typical_ms": pl.col("rtt_ms").filter("ok").median(),
        "busy_s": pl.col("rtt_ms").sum() / 1000,
        "failed_s": pl.col("rtt_ms").filter(~pl.col("ok")).sum() / 1000,
        "failed_ms": pl.col("rtt_ms").filter(~pl.col("ok")).mean(),
        "late_ms": (pl.col("start_ms") - pl.col("intended_ms")).mean(),
    }
    n, mean_ms, cut_ms, least_ms, typical_ms, busy_s, failed_s, failed_ms, late_ms = (
        within.select(pl.len(), **times).collect().row(0)
    )
    if n < LEAST_SAMPLES:
        return None
    bins = _bins(known, stretch, min(MOST_BINS, n // BINS_BY * BINS_BY))
    grown = growth(bins["started"], bins["ended"], bins["mean_ms"], stretch.length_s)
    planned = _planned(asked.per_s, stretch, origin_ms)
    busy, mean_busy = rates.in_flight or 0, busy_s / stretch.length_s
    due, dropped, reached = arrivals.due, arrivals.dropped, 1 - LEAST_SHARE
    if asked.is_paced:
        due, dropped, reached = round(planned or n), max(0, round((planned or n) - n)), REACHED
        busy = round(mean_busy)
    has_dropped = due is not None and dropped >= LEAST_SHARE * due > 0 and (planned is None or n < reached * planned)
    asked_per_s, answered_per_s = (planned or n) / stretch.length_s, float(bins["answered"].sum()) / stretch.length_s
    if rates.asked_per_s is not None and rates.asked_per_s == rates.asked_most_per_s:
        # The same all the time: the figures of the whole load, which the page shows too.
        asked_per_s, answered_per_s = rates.asked_per_s, rates.answered_per_s or 0.0
    holds: dict[Sign, bool] = {
        "backlog": grown.is_backlog and not asked.is_paced,
        "timed_out": cut_ms is not None and mean_ms >= MOSTLY_CUT * cut_ms and _is_share(bins["timed_out"], bins),
        "refused": _is_share(bins["refused"], bins),
        "unsent": has_dropped and (busy >= ALL_WAIT * asked.limit if asked.limit else not asked.is_paced),
    }
    # One that sends in time is not to blame, on however busy a machine; nor for what the function says itself.
    is_moment = holds["unsent"] and asked.limit is not None and mean_busy < MOSTLY_WAIT * asked.limit
    is_shown = (holds["unsent"] and not is_moment) or holds["refused"]
    slower_ms = (grown.after_ms or 0.0) - (grown.before_ms or 0.0)
    is_late = late_ms > LATE * slower_ms if late_ms is not None else planned is None or n < IN_TIME * planned
    return Overload(
        signs=[sign for sign, is_true in holds.items() if is_true],
        from_s=round((stretch.start - origin_ms) / 1000, 3),
        to_s=round((stretch.end - origin_ms) / 1000, 3),
        asked_per_s=asked_per_s,
        answered_per_s=answered_per_s,
        in_flight=rates.in_flight or 0,
        limit=asked.limit,
        is_paced=asked.is_paced,
        grew=grown.in_flight,
        grew_at_least=grown.at_least,
        before_ms=grown.before_ms,
        after_ms=grown.after_ms,
        least_ms=least_ms,
        typical_ms=typical_ms,
        failed_share=round(failed_s / busy_s, 6) if busy_s else 0.0,
        failed_ms=failed_ms,
        timed_out=int(bins["timed_out"].sum()),
        refused=int(bins["refused"].sum()),
        unsent=dropped,
        generator=generator if (is_late or is_moment) and not is_shown else "",
    )


def blame(
    record: Record, machines: Sequence[Machine], stalls: Sequence[Stall], load: tuple[float, float] | None
) -> str:
    """Why the load generator may have been too slow for its figures to tell of the function; empty if it was not."""
    for machine in machines:
        host = record.host(machine.host)
        if machine.part != "host" or host is None or host.role == "target" or not is_saturated(machine):
            continue
        parts = {each.part: each.cores_mean for each in machines if each.host == machine.host}
        # On a machine of both, the function may be what takes it.
        if host.role == "generator and target" and parts.get("target", 0.0) >= parts.get("generator", 0.0):
            continue
        return f"{machine.host}, which makes load, was saturated"
    held_s = len({stall.at_s for stall in stalls if stall.longest_ms >= LONG_STALL_MS})
    if load is not None and held_s >= BUSY_TIME * (load[1] - load[0]) / 1000:
        return f"JMeter itself was held up in {plural(held_s, 'second')}"
    return ""


def _planned(asked: Curves, stretch: Stretch, origin_ms: float) -> float | None:
    """Return how many arrivals the schedule has in a span; None without one."""
    if not asked:
        return None
    x, y = (np.array([value or 0.0 for value in asked[name]]) for name in ("x", "y"))
    at = np.linspace((stretch.start - origin_ms) / 1000, (stretch.end - origin_ms) / 1000, 1001)
    return float(np.interp(at, x, y).mean() * stretch.length_s)


def _bins(samples: pl.LazyFrame, stretch: Stretch, n_bins: int) -> dict[str, Floats]:
    """Return counts by bin of time: of what started and ended in it, and how those that started there fared."""
    width_ms = (stretch.end - stretch.start) / n_bins

    def binned(at_ms: pl.Expr, **columns: pl.Expr) -> dict[str, Floats]:
        number = ((at_ms - stretch.start) / width_ms).floor().clip(upper_bound=n_bins - 1).cast(pl.Int32).alias("bin")
        rows = (
            samples.filter(at_ms.is_between(*stretch)).group_by(number).agg(**columns).collect(engine="streaming")
        ).sort("bin")
        found = {name: np.full(n_bins, math.nan if name == "mean_ms" else 0.0) for name in columns}
        for name, values in found.items():
            values[rows["bin"].to_numpy()] = rows[name].cast(pl.Float64).fill_null(math.nan).to_numpy()
        return found

    waited = pl.col("ok") | pl.col("timed_out")
    refused = pl.col("cause").cast(pl.String).is_in(REFUSALS).fill_null(value=False)
    return {
        **binned(
            pl.col("start_ms"),
            started=pl.len(),
            mean_ms=pl.col("rtt_ms").filter(waited).mean(),
            timed_out=pl.col("timed_out").sum(),
            refused=refused.sum(),
        ),
        **binned(pl.col("start_ms") + pl.col("rtt_ms"), ended=pl.len(), answered=pl.col("ok").sum()),
    }


def _is_share(n: Floats, bins: dict[str, Floats]) -> bool:
    """Whether so many of the requests are surely more than a few: by the bins' shares, as failures come in clusters."""
    has_some = bins["started"] > 0
    shares = n[has_some] / bins["started"][has_some]
    low = student(shares, ONE_SIDED).low
    return low is not None and low > LEAST_SHARE
