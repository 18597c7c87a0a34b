"""Which times a sample can have: a script or a plug-in can set any, and a sampler that failed early may have none."""

from dataclasses import dataclass

import polars as pl

from framestorm.model.run import Record

# A run on one machine has one clock. That of a slave may be wrong by hours; beyond a day, something made the time up.
FAR_MS = 24 * 3_600_000.0
# No test lasts longer; of rows without a run, what is further from their middle is made up.
YEAR_MS = 366 * FAR_MS
SLACK_MS = 1000.0
LAST_MS = 253_402_300_799_999  # the end of the year 9999, after which Python has no dates


@dataclass(frozen=True)
class PossibleTimes:
    """When samples can have started, and the last of them ended, in epoch ms; and how long one can have taken."""

    first_ms: float
    last_ms: float
    end_ms: float
    longest_ms: float

    @classmethod
    def of(cls, record: Record, start_ms: pl.LazyFrame) -> "PossibleTimes":
        """Return those of a run; if that does not say when it was, of rows with these starts."""
        if record.started_ms is not None and record.ended_ms is not None:
            # The end is the last thing that a run writes, and durations do not depend on how clocks were set.
            slack_ms = abs(record.clock_step_ms) + SLACK_MS
            longest_ms = record.ended_ms - record.started_ms + slack_ms
            has_one_clock = bool(record.hosts) and not record.slaves
            far_ms = slack_ms if has_one_clock else FAR_MS
            last_ms = record.ended_ms + far_ms
            return cls(record.started_ms - far_ms, last_ms, last_ms, longest_ms)
        starts = start_ms.filter(pl.nth(0).is_between(1, LAST_MS))
        middle_ms = starts.select(pl.nth(0).median()).collect(engine="streaming").item()
        if middle_ms is None:
            return cls(1, LAST_MS, 2 * LAST_MS, YEAR_MS)
        return cls(middle_ms - YEAR_MS, middle_ms + YEAR_MS, middle_ms + 2 * YEAR_MS, YEAR_MS)

    def holds(self, *, with_start: bool = True) -> pl.Expr:
        """Return whether a row has such a time, by its start_ms and rtt_ms; with_start: its start was saved."""
        start_ms, rtt_ms = pl.col("start_ms"), pl.col("rtt_ms")
        is_start = start_ms.is_between(max(1.0, self.first_ms), min(self.last_ms, LAST_MS))
        is_within = (is_start & (start_ms + rtt_ms <= self.end_ms)) | (not with_start)
        return (is_within & rtt_ms.is_between(0, self.longest_ms)).fill_null(value=False)
