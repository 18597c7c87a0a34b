"""Whether the arrivals that a plan asks for were sent: each schedule against the samples of its thread group."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import polars as pl

from framestorm.model.load import Load
from framestorm.model.run import Record
from framestorm.model.summary import Reached
from framestorm.results.groups import is_of_groups
from framestorm.results.table import IS_OWN

# A schedule is kept if no more of its arrivals are missing or too many: a timer lets users run late, and rounds.
OPEN_SHARE, TIMER_SHARE, FEW = 0.01, 0.05, 2
BURST = 2  # times the arrivals of a second
SHORT_SHARE = 0.9  # of the arrivals of a second


def read_reached(
    record: Record, every: pl.LazyFrame, cut_ms: float | None, dropped_of: Mapping[str, int]
) -> list[Reached]:
    """Return what was sent of each schedule that is known and was begun.

    cut_ms: when the run was stopped, if it was. dropped_of: arrivals without a free thread, by thread group.
    """
    loads = [load for load in record.loads if load.model == "arrivals" and not load.is_aside and load.points]
    of_rows = [_of_load(load, record, every, cut_ms) for load in loads]
    of_one = dropped_of.get("", 0) if len(loads) == 1 else 0
    return [
        replace(reached, dropped=dropped_of.get(reached.name, of_one)) for reached in of_rows if reached is not None
    ]


def _of_load(load: Load, record: Record, every: pl.LazyFrame, cut_ms: float | None) -> Reached | None:
    # The samples of processes do not name their thread: a plan with these has one group.
    of_groups = (
        every if record.has_users else every.filter(is_of_groups("user", load.groups, record.slaves, load.numbers))
    )
    is_ok = pl.col("ok").fill_null(value=False)
    first_ms, user_ms, failed_ms, failed, threads = (
        of_groups.select(
            pl.col("start_ms").min(),
            pl.col("rtt_ms").filter(IS_OWN).sum(),
            pl.col("rtt_ms").filter(~is_ok & IS_OWN).sum().alias("failed_ms"),
            (~is_ok & IS_OWN).sum().alias("failed"),
            pl.struct("host", "user").n_unique().alias("threads"),
        )
        .collect()
        .row(0)
    )
    if first_ms is None:
        # A fragment with a timer need not be used, and threads may have no names.
        has_threads = every.select((pl.col("user").cast(pl.String) != "").any()).collect().item()
        return _compared(load, [], None, None) if load.is_open and has_threads else None
    # Slaves start their thread groups when they are ready, each for itself.
    since_first = (pl.col("start_ms") - pl.col("start_ms").min().over("host")) / 1000
    is_paced = _is_paced(load, of_groups)
    starts = of_groups.with_columns(since_first.alias("since_first")).filter(is_paced).select("since_first")
    starts_s = [float(start_s) for start_s in starts.drop_nulls().collect().to_series().sort()]
    if not starts_s and load.is_timer:
        return None
    limits = [other.limit for other in record.loads if not other.is_timer and other.name in load.groups]
    # A pool need not have all the threads that it may have.
    most = sum(each for each in limits if each)
    limit = (most if record.has_users else min(threads, most)) if all(limits) else None
    cut_s = None if cut_ms is None else (cut_ms - first_ms) / 1000
    each_s, failed_s = (ms / 1000 / max(1, len(starts_s)) for ms in (user_ms, failed_ms))
    reached = _compared(load, starts_s, cut_s, limit, each_s)
    return replace(reached, failed_s=round(failed_s, 6), failed=int(failed))


def _is_paced(load: Load, of_groups: pl.LazyFrame) -> pl.Expr:
    """Which samples the arrivals are: those of the labels; where the plan joins samples to one, the parts of it."""
    if not load.labels:
        return IS_OWN
    is_of_labels = pl.col("label").cast(pl.String).is_in(list(load.labels))
    has_own = of_groups.select((IS_OWN & is_of_labels).any()).collect().item()
    return (IS_OWN & is_of_labels) if has_own else is_of_labels


def _compared(
    load: Load, starts_s: Sequence[float], cut_s: float | None, limit: int | None, each_s: float = 0.0
) -> Reached:
    """Return what was sent of one schedule; starts are in order and count from the first of the thread group."""
    n, last_s = len(starts_s), starts_s[-1] if starts_s else 0.0
    end_s = last_s if load.length_s is None else load.length_s
    is_whole = load.length_s is not None and load.total is not None and not (cut_s is not None and cut_s < end_s)
    if cut_s is not None:
        end_s = min(end_s, cut_s)
    asked = float(load.total or 0) if is_whole else load.between(0, end_s)
    slack = max(FEW, (TIMER_SHARE if load.is_timer else OPEN_SHARE) * asked)
    if load.kind == "ConstantThroughputTimer":
        slack += limit or 0  # each user sends its first sample at once, and may end before its next
    elif not is_whole:
        slack += 3 * math.sqrt(asked)
    # A Throughput Shaping Timer catches up on the part of a second that has passed when it begins.
    surplus = slack + load.most * (load.kind == "VariableThroughputTimer")
    of_second = [0] * (math.ceil(max(end_s, last_s)) + 1)
    for start_s in starts_s:
        of_second[int(start_s)] += 1
    due = [load.between(second, second + 1) for second in range(len(of_second))]
    short = [second for second, n in enumerate(of_second) if n < SHORT_SHARE * due[second] - 1 and second + 1 <= end_s]
    # An arrival at the end of a second may start in the next one.
    near = [max(due[max(second - 1, 0) : second + 2]) for second in range(len(due))]
    largest = max(range(len(due)), key=lambda second: of_second[second] - near[second])
    most = BURST * near[largest] + 3 * math.sqrt(near[largest]) + FEW + (limit or 0) * load.is_timer
    is_burst = of_second[largest] > most
    return Reached(
        name=load.name,
        kind=load.kind,
        groups=load.groups,
        asked=round(asked, 3),
        sent=n,
        span_s=round(end_s, 3),
        is_kept=asked - slack <= n <= asked + surplus and not is_burst,
        most_per_s=load.most,
        limit=limit,
        each_s=round(each_s, 6),
        last_s=round(last_s, 3),
        short_s=len(short),
        short_until_s=short[-1] + 1 if short else 0,
        burst=of_second[largest] if is_burst else 0,
        burst_due=round(due[largest], 3) if is_burst else 0.0,
    )
