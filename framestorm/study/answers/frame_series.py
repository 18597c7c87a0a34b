"""Times of all frames by their index: what the chart of frames shows."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from framestorm.report.series import MAX_INDEX_BINS
from framestorm.study.answers.analysis import Study

COLUMNS = {"rtt_ms": "round trip", "handler_ms": "handler", "model_ms": "model"}
QUANTILES = {"low": 0.05, "mid": 0.5, "high": 0.95}


def frame_series(study: Study, asked: Mapping[str, Any]) -> dict[str, Any] | None:
    """By level of `panels` and `rows`: median and 5 % to 95 % of all users and repetitions, by index and column.

    A round trip that timed out counts as long as was waited; handler and model are of the frames answered rightly.
    """
    rows, panels = str(asked["rows"]), asked.get("panels")
    parts: dict[tuple[Any, Any], list[pl.DataFrame]] = {}
    for point in study.matching(asked.get("where") or {}):
        place = (point["factors"].get(panels) if panels else None, point["factors"].get(rows))
        for repetition in study.repetitions:
            row = study.by_cell.get((point["id"], repetition))
            if row is not None:
                kept = study.samples(row).kept
                parts.setdefault(place, []).append(kept.select("index", "ok", "timed_out", *COLUMNS))
    cells = []
    for (panel, level), frames in parts.items():
        by_index = _by_index(pl.concat(frames))
        if by_index is not None:
            cells.append({"panel": panel, "row": level, "runs": len(frames), **by_index})
    return {"cells": cells} if cells else None


def _by_index(frames: pl.DataFrame) -> dict[str, Any] | None:
    frames = frames.filter(pl.col("index").is_not_null())
    if not frames.height:
        return None
    step = int(frames.select(pl.col("index").max()).item()) // MAX_INDEX_BINS + 1
    frames = frames.with_columns((pl.col("index") // step * step).alias("x"))
    columns: dict[str, Any] = {}
    for column in COLUMNS:
        counted = pl.col("ok") | pl.col("timed_out") if column == "rtt_ms" else pl.col("ok")
        known = frames.filter(counted & pl.col(column).is_not_null())
        quantiles = [pl.col(column).quantile(q, "equiprobable").alias(name) for name, q in QUANTILES.items()]
        binned = known.group_by("x").agg(*quantiles).sort("x")
        if binned.height:
            columns[column] = {
                "x": binned["x"].to_list(),
                **{name: [round(value, 2) for value in binned[name]] for name in QUANTILES},
            }
    return {"step": step, "timed_out": int(frames["timed_out"].sum()), "columns": columns} if columns else None
