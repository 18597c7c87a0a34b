"""scrapes.csv: the target's own series during the load, and what criteria and the page need of them."""

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import polars as pl

from framestorm.model.scraped import GONE, UP, split_series
from framestorm.results.table import scan_rows

SCHEMA = {
    "time_ms": pl.Float64, "url": pl.String, "kind": pl.String, "series": pl.String, "value": pl.Float64,
}  # fmt: skip


@dataclass(frozen=True)
class ScrapedSeries:
    """One series of a target at the times at which the target answered, in epoch ms."""

    url: str
    kind: str
    name: str
    times_ms: list[float]
    values: list[float]

    @property
    def family(self) -> str:
        """The name of the metric."""
        return split_series(self.name)[0]

    @property
    def rates_per_s(self) -> list[float]:
        """How fast it grew up to each time, from the second on; a counter that fell has started again at 0."""
        steps = zip(self._growths, pairwise(self.times_ms), strict=True)
        return [growth / (end - begin) * 1000 for growth, (begin, end) in steps]

    @property
    def _growths(self) -> list[float]:
        is_counter = self.kind == "counter"
        return [new if is_counter and new < old else new - old for old, new in pairwise(self.values)]

    def figure(self, statistic: str) -> float | None:
        """Return a statistic of a criterion; None where too little was scraped."""
        if statistic == "rate":
            if len(self.times_ms) < 2:
                return None
            return sum(self._growths) / (self.times_ms[-1] - self.times_ms[0]) * 1000
        if statistic == "mean":
            return sum(self.values) / len(self.values)
        if statistic == "last":
            return self.values[-1]
        return max(self.values) if statistic == "max" else min(self.values)


@dataclass(frozen=True)
class Scrapes:
    """All series of a run's targets; by target, how many scrapes there were and how many got no answer."""

    series: list[ScrapedSeries]
    asked: dict[str, int]
    failed: dict[str, int]

    @property
    def families(self) -> set[str]:
        """The names of all metrics."""
        return {each.family for each in self.series}


def read_scrapes(path: Path, span_ms: tuple[float, float] | None, problems: list[str] | None = None) -> Scrapes:
    """Read the scrapes during the load; a value holds until the next one, or until its series is gone.

    problems: gets a sentence if the file is not whole.
    """
    rows = scan_rows(path, SCHEMA, ("kind",), problems).collect(engine="streaming").drop_nulls().sort("time_ms")
    series, asked, failed = [], {}, {}
    for (url,), of_target in rows.partition_by("url", as_dict=True).items():
        ups = of_target.filter(pl.col("kind") == UP)
        if span_ms is not None:
            ups = ups.filter(pl.col("time_ms").is_between(span_ms[0] - 1000, span_ms[1] + 1000))
        asked[str(url)], failed[str(url)] = ups.height, ups.filter(pl.col("value") == 0).height
        grid = ups.filter(pl.col("value") > 0).select("time_ms")
        values = of_target.filter(~pl.col("kind").is_in([UP, GONE]))
        ends = of_target.filter(pl.col("kind") == GONE).with_columns(pl.lit(None, pl.Float64).alias("value"))
        of_series = values.partition_by("series", "kind", as_dict=True)
        for (name, kind), of_one in of_series.items():
            changes = pl.concat([of_one, ends.filter(pl.col("series") == name)]) if ends.height else of_one
            filled = grid.join_asof(changes.select("time_ms", "value").sort("time_ms"), on="time_ms").drop_nulls()
            if filled.height:
                times, numbers = filled["time_ms"].to_list(), filled["value"].to_list()
                series.append(ScrapedSeries(str(url), str(kind), str(name), times, numbers))
    return Scrapes(series, asked, failed)
