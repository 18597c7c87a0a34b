"""Times of all samples by their index: what the chart of kind per-frame shows."""

import polars as pl

from framestorm.model.study import Chart, Value
from framestorm.model.study_summary import IndexBand, IndexCell
from framestorm.report.series import MAX_INDEX_BINS
from framestorm.study.answers.study_results import StudyResults

RESPONSE = "rtt_ms"
QUANTILES = {"low": 0.05, "mid": 0.5, "high": 0.95}


def times_by_index(study: StudyResults, chart: Chart) -> list[IndexCell]:
    """By level of `panels` and `rows`: median and 5 % to 95 % of all users and repetitions, by index and figure.

    A response that timed out counts with the time waited; further figures are of the samples without error.
    """
    parts: dict[tuple[Value | None, Value | None], list[pl.DataFrame]] = {}
    for point in study.matching(chart.where):
        place = (point.factors.get(chart.panels or ""), point.factors.get(str(chart.rows)))
        for row in study.runs(point, study.repetitions):
            samples = study.samples(row)
            columns = [RESPONSE, *(f"{name}_ms" for name in samples.figures())]
            parts.setdefault(place, []).append(samples.kept.select("index", "ok", "timed_out", *columns))
    cells = []
    for (panel, level), tables in parts.items():
        samples_of_cell = pl.concat(tables, how="diagonal").filter(pl.col("index").is_not_null())
        if samples_of_cell.height and (cell := _cell(samples_of_cell, panel, level, len(tables))):
            cells.append(cell)
    return cells


def _cell(samples: pl.DataFrame, panel: Value | None, level: Value | None, runs: int) -> IndexCell | None:
    step = int(samples.select(pl.col("index").max()).item()) // MAX_INDEX_BINS + 1
    binned = samples.with_columns((pl.col("index") // step * step).alias("x"))
    bands: dict[str, IndexBand] = {}
    for column in (name for name in binned.columns if name.endswith("_ms")):
        counted = pl.col("ok") | pl.col("timed_out") if column == RESPONSE else pl.col("ok")
        timed = binned.filter(counted & pl.col(column).is_not_null())
        quantiles = [pl.col(column).quantile(q, "equiprobable").alias(name) for name, q in QUANTILES.items()]
        by_index = timed.group_by("x").agg(*quantiles).sort("x")
        if by_index.height:
            low, mid, high = ([round(value, 2) for value in by_index[name]] for name in QUANTILES)
            bands[column] = IndexBand(by_index["x"].to_list(), low, mid, high)
    return IndexCell(panel, level, runs, step, int(samples["timed_out"].sum()), bands) if bands else None
