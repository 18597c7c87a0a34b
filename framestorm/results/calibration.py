"""calibration.csv: each request of a calibration, by round and route; and what the parts of the path add by it."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from framestorm.model.summary import Calibration, PathPart
from framestorm.results.table import scan_rows
from framestorm.stats.means import student

FILE = "calibration.csv"


class Row(NamedTuple):
    """One request: the round, from 1 on, the route, the route it is compared with, its time, and what went wrong."""

    round: int
    route: str
    without: str
    time_us: float
    error: str


COLUMNS = Row._fields
SCHEMA = {
    "part": pl.String, "round": pl.Int64, "route": pl.String, "without": pl.String, "time_us": pl.Float64,
    "error": pl.String,
}  # fmt: skip


def read_calibration(run_dir: Path, problems: list[str] | None = None) -> Calibration | None:
    """Return what each part of the path adds; None if the run has no calibration.

    problems: gets a sentence if its file is not whole.

    Of each round, the median times of two routes are subtracted; the mean of these differences has Student's interval.
    """
    rows = scan_rows(run_dir / FILE, SCHEMA, ("without", "error"), problems).collect()
    if not rows.height:
        return None
    is_ok = pl.col("error") == ""
    medians = rows.filter(is_ok).group_by("route", "round").agg(pl.col("time_us").median() / 1000)
    by_route = {
        str(route): dict(zip(part["round"], part["time_us"], strict=True))
        for (route,), part in medians.group_by("route")
    }
    whole = rows.group_by("part", "route", "without", maintain_order=True).agg(
        pl.len().alias("n"),
        (~is_ok).sum().alias("failed"),
        (pl.col("time_us").filter(is_ok).median() / 1000).alias("median_ms"),
        pl.col("error").filter(~is_ok).first().alias("why"),
    )
    parts = []
    for part, route, without, n, failed, median_ms, why in whole.iter_rows():
        own, other = by_route.get(route, {}), by_route.get(without, {})
        differences = [own[number] - other[number] for number in own.keys() & other.keys()]
        adds = student(np.asarray(differences)) if differences else None
        parts.append(PathPart(part, route, without, n, failed, median_ms, adds, why or ""))
    before = {part.route: part.without for part in parts}

    def place(part: PathPart) -> int:
        """Return how many parts lie behind it on the path."""
        return 0 if not part.without else 1 + sum(1 for _ in _chain(part.without, before))

    parts.sort(key=lambda part: (place(part), part.name))
    return Calibration(len(set(rows["round"]) - {0}), parts)


def _chain(route: str, before: Mapping[str, str]) -> Iterator[str]:
    """Yield the routes of which each has a part less, down to the first."""
    for _ in before:
        route = before.get(route, "")
        if not route:
            return
        yield route
