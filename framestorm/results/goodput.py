"""The goodput of a run's main samples."""

from collections.abc import Mapping

import polars as pl

from framestorm.model.goodput import PROPERTY, RESPONSE_MS, Goodput, SampleObjective, parse_objectives
from framestorm.results.table import figures, rate_per_s, serving_ms
from framestorm.stats.shares import wilson


def read_goodput(samples: pl.LazyFrame, properties: Mapping[str, str], *, at_rate: bool) -> Goodput | None:
    """Count the samples that meet the objectives of the plan's property; None if it has none.

    A sample without error that lacks a figure which others have meets its objective: an answer of one piece has no gap.
    """
    text = properties.get(PROPERTY, "")
    objectives = parse_objectives(text)
    if not objectives:
        return None
    known = {RESPONSE_MS, *figures(samples)}
    n = int(samples.select(pl.len()).collect().item())
    absent = sorted({each.figure for each in objectives} - known)
    if absent or not n:
        return Goodput(text, n, absent=absent)
    are_met = [_is_met(each).alias(str(number)) for number, each in enumerate(objectives)]
    counts = samples.filter("ok").select(*(met.sum() for met in are_met), pl.all_horizontal(are_met).sum().alias("all"))
    *met, good = map(int, counts.collect().row(0))
    low, high = wilson(good, n) or (None, None)
    return Goodput(
        text, n, good, good / n, low, high, rate_per_s(good, serving_ms(samples, at_rate=at_rate)),
        met={each.text: count for each, count in zip(objectives, met, strict=True)},
    )  # fmt: skip


def _is_met(objective: SampleObjective) -> pl.Expr:
    column = pl.col(objective.figure)
    compared = {"<": column.lt, "<=": column.le, ">": column.gt, ">=": column.ge}[objective.op](objective.limit)
    return compared.fill_null(value=True)
