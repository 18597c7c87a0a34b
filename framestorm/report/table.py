"""frames.csv and the users as columns, with what every later step asks of a frame worked out once."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from framestorm.report.criteria import Group
from framestorm.report.frames import User
from framestorm.report.stats import Floats, Sample
from framestorm.report.unit import FRAME

COLUMNS: dict[str, pl.DataType | type[pl.DataType]] = {
    "user": pl.Categorical,
    "index": pl.Int32,
    "start_ms": pl.Float64,
    "rtt_ms": pl.Float64,
    "handler_ms": pl.Float64,
    "model_ms": pl.Float64,
    "ok": pl.Boolean,
    "cause": pl.Categorical,
    "censored": pl.Boolean,
    "cold": pl.Boolean,
    "verified": pl.Boolean,
    "host": pl.Categorical,
    "source": pl.Categorical,
}
# Null where the file has no such column: not every plan knows when a frame was due, or who answered it.
OPTIONAL_COLUMNS: dict[str, pl.DataType | type[pl.DataType]] = {"intended_ms": pl.Float64, "worker": pl.Categorical}
USER_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "user": pl.String,
    "host": pl.String,
    "start_ms": pl.Float64,
    "elapsed_ms": pl.Float64,
    "ok": pl.Boolean,
    "cause": pl.String,
    "censored": pl.Boolean,
    "ended": pl.Boolean,
}
SERIES_NAMES = {
    "duration": "whole process",
    "rtt": "round trip",
    "warm": "round trip, warm",
    "cold": "round trip, cold",
    "outside": "outside the handler",
    "handler": "handler",
    "model": "model",
}


def read_frames(path: Path) -> pl.DataFrame:
    """The columns of frames.csv that the report needs; `timed_out`: the round trip is only a lower bound.

    A frame cut off by the run's stop did not fail by its own slowness: it is a failure, but no time of it is used.
    A 504 is the platform's time-out and as much a lower bound as the client's.
    """
    raw = pl.scan_csv(path, schema_overrides=COLUMNS | OPTIONAL_COLUMNS, ignore_errors=True)
    there = raw.collect_schema().names()
    optional = [
        pl.col(name) if name in there else pl.lit(None, dtype).alias(name) for name, dtype in OPTIONAL_COLUMNS.items()
    ]
    frames = (
        raw.select(*COLUMNS, *optional)
        .with_columns(pl.col("ok", "censored").fill_null(value=False))
        .collect(engine="streaming")
    )
    cause = pl.col("cause").cast(pl.String)
    own_time = (pl.col("censored") & (cause != "stopped").fill_null(value=True)) | (cause == "status-504")
    return frames.with_columns(
        (own_time.fill_null(value=False) & ~pl.col("ok") & pl.col("rtt_ms").is_not_null()).alias("timed_out")
    )


def users_table(users: Iterable[User]) -> pl.DataFrame:
    """The users found in tree and journal as columns."""
    rows = [
        (
            u.user,
            u.host,
            u.start_ms,
            u.elapsed_ms,
            bool(u.ok),
            u.cause if u.ended else "never-ended",
            u.censored,
            u.ended,
        )
        for u in users
    ]
    return pl.DataFrame(rows, schema=USER_SCHEMA, orient="row")


def frame_group(frames: pl.DataFrame, unit: str = FRAME, *, at_rate: bool = False) -> Group:
    """Samples of the frames: times of those answered rightly, and of those that timed out as lower bounds.

    at_rate: see `serving_ms`.
    """
    times = frames.select("ok", "timed_out", "cold", "rtt_ms", "handler_ms", "model_ms")
    ok, cut = times.filter("ok"), times.filter("timed_out")
    samples = {"rtt": Sample(_floats(ok["rtt_ms"]), _floats(cut["rtt_ms"]))}
    if ok["cold"].sum():
        # What timed out never said whether it was cold: it belongs to neither.
        samples["warm"] = Sample(_floats(ok.filter(~pl.col("cold"))["rtt_ms"]))
        samples["cold"] = Sample(_floats(ok.filter("cold")["rtt_ms"]))
    outside = ok["rtt_ms"] - ok["handler_ms"]
    for name, column in (("outside", outside), ("handler", ok["handler_ms"]), ("model", ok["model_ms"])):
        values = _floats(column)
        if values.size:
            samples[name] = Sample(values)
    return Group(unit, frames.height, ok.height, _rate(ok.height, serving_ms(frames, at_rate=at_rate)), samples)


def user_group(users: pl.DataFrame) -> Group:
    """Samples of the users: durations of those that ended well, and as lower bounds of those that ran out of time."""
    ok = users.filter("ok")
    sample = Sample(_floats(ok["elapsed_ms"]), _floats(users.filter("censored")["elapsed_ms"]))
    return Group("user", users.height, ok.height, _rate(ok.height, span_ms(users, "elapsed_ms")), {"duration": sample})


def span_ms(table: pl.DataFrame, length: str) -> tuple[float, float] | None:
    """First start and last end, in epoch ms."""
    if not table.height:
        return None
    first = table.select(pl.col("start_ms").min()).item()
    last = table.select((pl.col("start_ms") + pl.col(length).fill_null(0)).max()).item()
    return None if first is None or last is None else (float(first), float(last))


def is_at_rate(run: Mapping[str, Any]) -> bool:
    """Whether a run's record says that its requests arrived at a fixed rate."""
    return bool((run.get("properties") or {}).get("rate_per_s"))


def serving_ms(frames: pl.DataFrame, *, at_rate: bool) -> tuple[float, float] | None:
    """When answers could come, in epoch ms: from the first start to the last end.

    `at_rate`, they arrive at a fixed rate: from one pause before the first answer could be there. n answers of a steady
    rate span n - 1 pauses, and none comes before a round trip; a rate that is kept would else look missed by that.
    """
    span = span_ms(frames, "rtt_ms")
    soonest_ms = frames.filter("ok")["rtt_ms"].min()
    if span is None or not at_rate or frames.height < 2 or soonest_ms is None:
        return span
    starts = frames["start_ms"]
    pause_ms = (float(starts.max()) - float(starts.min())) / (frames.height - 1)  # type: ignore[arg-type]
    return span[0] + float(soonest_ms) - pause_ms, span[1]  # type: ignore[arg-type]


def causes(table: pl.DataFrame) -> dict[str, int]:
    """Failures by cause, most frequent first."""
    counted = (
        table.filter(~pl.col("ok"))
        .select(pl.col("cause").cast(pl.String).fill_null("unknown"))
        .group_by("cause")
        .len()
        .sort(["len", "cause"], descending=[True, False])
    )
    return dict(counted.iter_rows())


def _rate(n_ok: int, span: tuple[float, float] | None) -> float | None:
    if span is None or span[1] <= span[0]:
        return None
    return n_ok / (span[1] - span[0]) * 1000


def _floats(column: pl.Series) -> Floats:
    values: Floats = column.drop_nulls().to_numpy().astype(np.float64, copy=False)
    return values
