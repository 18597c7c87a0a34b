"""The samples of one run that are used: after the warm-up, of the wanted temperature; rejected ones are counted."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Self

import numpy as np
import polars as pl

from framestorm.model.files import read
from framestorm.model.metric import COLD, OPEN, OUTSIDE, RESPONSE, WARM
from framestorm.model.summary import Summary
from framestorm.model.units import count, plural
from framestorm.results.table import figures, of_label, read_table, serving_ms
from framestorm.stats.bootstrap import choose_block
from framestorm.stats.checks import Flags, Floats
from framestorm.stats.effects import cliffs_delta
from framestorm.stats.percentiles import Sample

# Times of a sample, by series, that are not stored as one of its figures. After a timeout, the first two are lower
# bounds. Open: measured from the intended start (Tene, How Not to Measure Latency, 2013), so that the delay of a late
# start counts.
TIMES = {
    RESPONSE: pl.col("rtt_ms"),
    OPEN: (pl.col("start_ms") - pl.col("intended_ms")).clip(lower_bound=0.0) + pl.col("rtt_ms"),
    OUTSIDE: pl.col("rtt_ms") - pl.col("handler_ms"),
    WARM: pl.when(~pl.col("cold")).then(pl.col("rtt_ms")),
    COLD: pl.when("cold").then(pl.col("rtt_ms")),
}
WITH_CUT = (RESPONSE, OPEN)


@dataclass(frozen=True)
class OrderedTimes:
    """Times in ms in the order of their starts; `cut` marks those that are only lower bounds (timeouts)."""

    values_ms: Floats
    cut: Flags

    @classmethod
    def of(cls, table: pl.DataFrame, time: pl.Expr, cut: pl.Expr) -> Self:
        timed = table.select(time.cast(pl.Float64).alias("time"), cut.alias("cut")).drop_nulls("time")
        return cls(timed["time"].to_numpy(), timed["cut"].to_numpy())

    @classmethod
    def together(cls, parts: Sequence["OrderedTimes"]) -> Self:
        """Return the times of several runs together."""
        return cls(np.concatenate([part.values_ms for part in parts]), np.concatenate([part.cut for part in parts]))

    @property
    def n(self) -> int:
        return int(self.values_ms.size)

    @property
    def full_ms(self) -> Floats:
        """The times without the lower bounds."""
        return self.values_ms[~self.cut]

    @property
    def cut_ms(self) -> Floats:
        return self.values_ms[self.cut]

    @cached_property
    def sample(self) -> Sample:
        return Sample(self.full_ms, self.cut_ms)

    @cached_property
    def block(self) -> int:
        """How many successive times are resampled together."""
        return choose_block(self.values_ms)

    def cliffs_delta(self, other: "OrderedTimes") -> float:
        """Return Cliff's delta: how much more often a time of these is longer than one of `other` than shorter."""
        return cliffs_delta(self.full_ms, self.cut_ms, other.full_ms, other.cut_ms)


@dataclass(frozen=True)
class Samples:
    """A run's samples.

    loaded: all samples after the warm-up, warm and cold (the whole load), in order of start.
    kept: those of `loaded` that figures are calculated from.
    sent: the number of all samples.
    """

    loaded: pl.DataFrame
    kept: pl.DataFrame
    sent: int
    rejected_warm_up: int = 0
    rejected_cold: int = 0
    rejected_warm: int = 0

    def figures(self) -> list[str]:
        """Return the further figures that samples carry and that are numbers."""
        return figures(self.kept.lazy())

    def why_not_of(self, summary: Summary) -> str | None:
        """Return why the main samples are not those that a report was made of; None if they are."""
        # A report of the steady part leaves samples out, which samples.csv has all the same.
        reported = summary.main.n + summary.facts.left_out
        if self.sent == reported:
            return None
        return f"samples.csv has {plural(self.sent, 'sample')}, and its report was made of {count(reported)}"

    @property
    def right(self) -> Flags:
        """Whether each sample that figures are calculated from is without error."""
        return self.kept["ok"].to_numpy()

    @cached_property
    def ended_ms(self) -> Floats:
        """When each sample of the load ended that is without error, in order."""
        ok = self.loaded.filter("ok")
        return (ok["start_ms"] + ok["rtt_ms"]).drop_nulls().sort().to_numpy()

    def serving_ms(self, *, at_rate: bool) -> tuple[float, float] | None:
        """When samples of the load could end; see `results.table.serving_ms`."""
        return serving_ms(self.loaded.lazy(), at_rate=at_rate)

    @cached_property
    def times_by_series(self) -> dict[str, OrderedTimes]:
        """The response times and every further figure, if there are any."""
        times = {series: self.times(series) for series in (RESPONSE, *self.figures())}
        return {series: of_series for series, of_series in times.items() if of_series.n}

    def times(self, series: str) -> OrderedTimes:
        """Times of the samples without error; for response times also, as lower bounds, of those that timed out."""
        is_counted = pl.col("ok") | pl.col("timed_out") if series in WITH_CUT else pl.col("ok")
        time = TIMES.get(series, pl.col(series) if series in self.kept.columns else pl.lit(None))
        return OrderedTimes.of(self.kept.filter(is_counted), time, pl.col("timed_out"))


@lru_cache(maxsize=8)
def read_samples(run_dir: Path, warm_up_s: float = 0, temperature: str = "any", label: str | None = None) -> Samples:
    """Return the samples of a label of a run with a report, or its main ones; `temperature` is warm, cold or any.

    Samples that started within `warm_up_s` of the run's first are rejected, or before the steady part of a run of which
    only that is judged, and then those of the other temperature.
    Samples that do not report whether they were cold are kept.
    """
    table = read_table(run_dir / "samples.csv")
    summary = read(run_dir / "summary.json", Summary)
    if summary.facts.cut_off:
        # As on its page: what ended the run cut these off, so that they are neither successes nor failures.
        table = table.filter(pl.col("cause").ne_missing("stopped"))
    first = table.select(pl.col("start_ms").min()).collect().item()
    first_ms = -math.inf if first is None else float(first)
    table = of_label(table, summary.label if label is None else label)
    frames = table.sort("start_ms", maintain_order=True).collect()
    begin_ms = max(first_ms + 1000 * warm_up_s, summary.judged_from_ms)
    loaded = frames.filter(pl.col("start_ms") >= begin_ms) if begin_ms > first_ms else frames
    wrong = {"warm": pl.col("cold"), "cold": ~pl.col("cold")}.get(temperature)
    kept = loaded if wrong is None else loaded.filter(~wrong.fill_null(value=False))
    rejected = loaded.height - kept.height
    return Samples(
        loaded=loaded,
        kept=kept,
        sent=frames.height,
        rejected_warm_up=frames.height - loaded.height,
        rejected_cold=rejected if temperature == "warm" else 0,
        rejected_warm=rejected if temperature == "cold" else 0,
    )
