"""The seconds of a run in which the generator itself was held up: by JMeter's log, and by requests sent late."""

import numpy as np
import polars as pl

from framestorm.model.cause import is_answered
from framestorm.model.summary import Stall
from framestorm.results.jmeter_log import JMeterLog

NOTICED_MS = 10.0
# Of the median response time: what is shorter does not change the figures of the function.
NOTICED_SHARE = 0.1


def read_stalls(
    log: JMeterLog, samples: pl.LazyFrame, load: tuple[float, float] | None, origin_ms: float, *, is_open_model: bool
) -> list[Stall]:
    """The stalls under load that are long enough to count, a second each, in order of time; none if nobody watched."""
    if load is None or not log.is_watched:
        return []
    seconds: dict[int, Stall] = {}
    for start_ms, longest_ms, gc_ms in log.stalls:
        _add(seconds, Stall((start_ms - origin_ms) // 1000, longest_ms, gc_ms))
    if is_open_model:
        # Arrivals wait for nobody: a request that starts late was held up before it was sent.
        late = (
            samples.select((pl.col("start_ms") - origin_ms) // 1000, late=pl.col("start_ms") - pl.col("intended_ms"))
            .group_by("start_ms")
            .max()
            .collect(engine="streaming")
        )
        for second, late_ms in late.drop_nulls().iter_rows():
            _add(seconds, Stall(second, late_ms, 0))
    least_ms = max(NOTICED_MS, NOTICED_SHARE * _median_ms(samples))
    first_s, last_s = (load[0] - origin_ms) // 1000, (load[1] - origin_ms) // 1000
    long = [each for each in seconds.values() if each.longest_ms >= least_ms and first_s <= each.at_s <= last_s]
    return sorted(long, key=lambda stall: stall.at_s)


def samples_during(samples: pl.LazyFrame, stalls: list[Stall], origin_ms: float) -> int:
    """Return how many samples were in progress in one of these seconds, or were to start then."""
    first_s = (pl.min_horizontal("start_ms", "intended_ms") - origin_ms) // 1000
    last_s = (pl.col("start_ms") + pl.col("rtt_ms") - origin_ms) // 1000
    during = [(first_s <= stall.at_s) & (last_s >= stall.at_s) for stall in stalls]
    return int(samples.select(pl.any_horizontal(during).sum()).collect(engine="streaming").item()) if during else 0


def errors_in_bursts(samples: pl.LazyFrame) -> int:
    """Return how many errors the function may have answered only because requests of an open load were sent late.

    Requests that were held up go out together. What takes only so many at a time may then refuse one of them, or one
    that is sent while they are under way: within a median response time. No more are refused than were held up.
    """
    median_ms = _median_ms(samples)
    late_ms = pl.col("start_ms") - pl.col("intended_ms")
    late = samples.filter(late_ms >= max(NOTICED_MS, NOTICED_SHARE * median_ms))
    late_at_ms = late.select(pl.col("start_ms").sort()).collect(engine="streaming")["start_ms"].to_numpy()
    failed = samples.filter(~pl.col("ok")).select("start_ms", pl.col("cause").cast(pl.String)).drop_nulls()
    if not late_at_ms.size:
        return 0
    answered = [at_ms for at_ms, cause in failed.collect(engine="streaming").iter_rows() if is_answered(cause)]
    before = np.searchsorted(late_at_ms, answered, side="right") - 1
    is_after = (before >= 0) & (answered - late_at_ms[before] <= median_ms)
    return min(int(is_after.sum()), int(late_at_ms.size))


def _median_ms(samples: pl.LazyFrame) -> float:
    return float(samples.select(pl.col("rtt_ms").filter("ok").median()).collect().item() or 0.0)


def _add(seconds: dict[int, Stall], stall: Stall) -> None:
    """Keep the longest stall of each second, whichever host had it and however it was noticed."""
    before = seconds.get(int(stall.at_s), stall)
    seconds[int(stall.at_s)] = Stall(
        stall.at_s, max(before.longest_ms, stall.longest_ms), max(before.gc_ms, stall.gc_ms)
    )
