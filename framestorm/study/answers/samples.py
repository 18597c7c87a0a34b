"""The samples of one run that count: those after the warm-up, of the temperature asked for; the others are counted."""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from framestorm.model.metric import OPEN, OUTSIDE
from framestorm.results.table import read_table
from framestorm.stats.checks import Floats

# Times of a sample by series that are no figure of it as it stands; the first two are known as lower bounds where a
# timeout cut them off. Open: from the intended start on (Tene, How Not to Measure Latency, 2013), so that a late start
# is not counted as if it never was.
TIMES = {
    "rtt": pl.col("rtt_ms"),
    OPEN: (pl.col("start_ms") - pl.col("intended_ms")).clip(lower_bound=0.0) + pl.col("rtt_ms"),
    OUTSIDE: pl.col("rtt_ms") - pl.col("handler_ms"),
}
NO_FIGURES = {"start_ms", "intended_ms", "rtt_ms"}
WITH_CUT = ("rtt", OPEN)


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

    def figures(self) -> list[str]:
        """The further figures in ms that samples carry, such as handler for handler_ms."""
        columns = (name for name in self.kept.columns if name.endswith("_ms") and name not in NO_FIGURES)
        return [name.removesuffix("_ms") for name in columns]

    def times(self, series: str) -> tuple[Floats, Floats]:
        """Times in ms in order of start: of the samples without error, and those cut off by a timeout."""
        return self._times(series, pl.col("ok")), self._times(series, pl.col("timed_out"), empty=series not in WITH_CUT)

    def in_order(self, series: str) -> Floats:
        """Both kinds of times in ms, in order of start."""
        return self._times(series, _counted(series))

    def cut_off(self, series: str) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """For each time of `in_order` whether a timeout cut it off."""
        timed = self.kept.filter(_counted(series)).select(_time(series).alias("time"), "timed_out").drop_nulls("time")
        return timed["timed_out"].to_numpy()

    def _times(self, series: str, which: pl.Expr, *, empty: bool = False) -> Floats:
        if empty:
            return np.empty(0)
        times: Floats = self.kept.filter(which).select(_time(series))[:, 0].drop_nulls().to_numpy().astype(np.float64)
        return times


def _time(series: str) -> pl.Expr:
    return TIMES[series] if series in TIMES else pl.col(f"{series}_ms")


def _counted(series: str) -> pl.Expr:
    return pl.col("ok") | pl.col("timed_out") if series in WITH_CUT else pl.col("ok")


@lru_cache(maxsize=8)
def read_samples(run_dir: Path, warm_up_s: float, temperature: str) -> Samples:
    """Samples of `run_dir`'s samples.csv; `temperature` is warm, cold or any.

    Rejected are those that started within `warm_up_s` of the run's first, and then those of the other temperature.
    What does not say whether it was cold stays.
    """
    frames = read_table(run_dir / "samples.csv").sort("start_ms", maintain_order=True)
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
