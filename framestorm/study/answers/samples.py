"""The samples of one run that count: those after the warm-up, of the temperature asked for; the others are counted."""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from framestorm.report.stats import Floats
from framestorm.report.table import read_frames

# Times of a sample by series; the first two are known as lower bounds where a time-out cut them off. Open: from the
# intended start on (Tene, How Not to Measure Latency, 2013), so that a late start is not counted as if it never was.
SERIES = ("rtt", "open", "outside", "handler", "model")
TIMES = {
    "rtt": pl.col("rtt_ms"),
    "open": (pl.col("start_ms") - pl.col("intended_ms")).clip(lower_bound=0.0) + pl.col("rtt_ms"),
    "outside": pl.col("rtt_ms") - pl.col("handler_ms"),
    "handler": pl.col("handler_ms"),
    "model": pl.col("model_ms"),
}
WITH_CUT = ("rtt", "open")


@dataclass(frozen=True)
class Samples:
    """A run's samples.

    loaded: all after the warm-up, of either temperature: the load as it was, in order of start.
    kept: those of them that figures are made of.
    sent: how many there were at all.
    """

    loaded: pl.DataFrame
    kept: pl.DataFrame
    sent: int
    rejected_warm_up: int
    rejected_cold: int
    rejected_warm: int

    def times(self, series: str) -> tuple[Floats, Floats]:
        """Times in ms in order of start: of the samples answered rightly, and those cut off by a time-out."""
        return self._times(series, pl.col("ok")), self._times(series, pl.col("timed_out"), empty=series not in WITH_CUT)

    def in_order(self, series: str) -> Floats:
        """Both kinds of times in ms, in order of start."""
        return self._times(series, _counted(series))

    def cut_off(self, series: str) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """For each time of `in_order` whether a time-out cut it off."""
        known = self.kept.filter(_counted(series)).select(TIMES[series].alias("time"), "timed_out").drop_nulls("time")
        return known["timed_out"].to_numpy()

    def _times(self, series: str, which: pl.Expr, *, empty: bool = False) -> Floats:
        if empty:
            return np.empty(0)
        found: Floats = self.kept.filter(which).select(TIMES[series])[:, 0].drop_nulls().to_numpy().astype(np.float64)
        return found


def _counted(series: str) -> pl.Expr:
    return pl.col("ok") | pl.col("timed_out") if series in WITH_CUT else pl.col("ok")


@lru_cache(maxsize=8)
def read_samples(run_dir: Path, warm_up_s: float, temperature: str) -> Samples:
    """Samples of `run_dir`'s frames.csv; `temperature` is warm, cold or any.

    Rejected are those that started within `warm_up_s` of the run's first, and then those of the other temperature.
    What does not say whether it was cold stays.
    """
    frames = read_frames(run_dir / "frames.csv").sort("start_ms", maintain_order=True)
    loaded = frames.filter(pl.col("start_ms") >= pl.col("start_ms").min() + 1000 * warm_up_s) if warm_up_s else frames
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
