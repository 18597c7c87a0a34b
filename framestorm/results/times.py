"""Which times a sample can have: a script or a plug-in can set any, and a sampler that failed early may have none."""

from dataclasses import dataclass

import polars as pl

from framestorm.model.run import Record

# The clock of a slave may be wrong by hours. Beyond a day, something made the time up, such as 1970.
FAR_MS = 24 * 3_600_000.0
# No test lasts longer; of rows without a run, what is further from their middle is made up.
YEAR_MS = 366 * FAR_MS
SLACK_MS = 1000.0
LAST_MS = 253_402_300_799_999  # the end of the year 9999, after which Python has no dates


@dataclass(frozen=True)
class PossibleTimes:
    """From when to when, in epoch ms, a sample can have started, and how long it can have taken."""

    first_ms: float
    last_ms: float
    longest_ms: float

    @classmethod
    def of(cls, record: Record, start_ms: pl.LazyFrame) -> "PossibleTimes":
        """Those of a run; if that does not say when it was, of rows with these starts."""
        if record.started_ms is not None and record.ended_ms is not None:
            # The end is the last thing that a run writes, and durations do not depend on how clocks were set.
            longest_ms = record.ended_ms - record.started_ms + abs(record.clock_step_ms) + SLACK_MS
            return cls(record.started_ms - FAR_MS, record.ended_ms + FAR_MS, longest_ms)
        starts = start_ms.filter(pl.nth(0).is_between(1, LAST_MS))
        middle_ms = starts.select(pl.nth(0).median()).collect(engine="streaming").item()
        if middle_ms is None:
            return cls(1, LAST_MS, YEAR_MS)
        return cls(middle_ms - YEAR_MS, middle_ms + YEAR_MS, YEAR_MS)

    def holds(self, *, with_start: bool = True) -> pl.Expr:
        """Whether a row has such a time, by its start_ms and rtt_ms; with_start: its start was saved."""
        is_start = pl.col("start_ms").is_between(max(1.0, self.first_ms), min(self.last_ms, LAST_MS)) | (not with_start)
        return (is_start & pl.col("rtt_ms").is_between(0, self.longest_ms)).fill_null(value=False)
