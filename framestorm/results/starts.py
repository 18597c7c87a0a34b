"""How replicas started and ended under load, from metrics.csv, and what the samples of that time show of it."""

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from framestorm.model import activation
from framestorm.model.activation import Activation
from framestorm.model.summary import EndedReplica, FunctionSummary

ENDED = "replica_ended"
READY = "replica_ready"


def with_starts_and_ends(
    functions: Sequence[FunctionSummary], metrics: pl.DataFrame, samples: pl.LazyFrame, origin_ms: float
) -> list[FunctionSummary]:
    """Return the functions with the starts and ends of their replicas, as far as the platform tells them."""
    return [
        replace(
            each,
            ended=_ended(metrics.filter(pl.col("function") == each.function), samples, origin_ms),
            activations=_activations(metrics.filter(pl.col("function") == each.function), samples),
        )
        for each in functions
    ]


def _ended(rows: pl.DataFrame, samples: pl.LazyFrame, origin_ms: float) -> list[EndedReplica]:
    ends = []
    for row in rows.filter(pl.col("metric") == ENDED).iter_rows(named=True):
        name, _, reason = row["detail"].partition(": ")
        under_way = (pl.col("start_ms") <= row["time_ms"]) & (pl.col("start_ms") + pl.col("rtt_ms") >= row["time_ms"])
        failed = int(samples.filter(under_way & ~pl.col("ok")).select(pl.len()).collect().item())
        at_s = round((row["time_ms"] - origin_ms) / 1000, 3)
        ends.append(EndedReplica(name, reason, int(row["value"]), at_s, failed))
    return ends


def _activations(rows: pl.DataFrame, samples: pl.LazyFrame) -> list[Activation]:
    """Return the starts; where no other replica was ready, each with the first answer after it was asked for."""
    found = activation.activations(rows.select("time_ms", "metric", "function", "detail", "value").iter_rows())
    ready = rows.filter(pl.col("metric") == READY)
    completed = []
    for each in found:
        before = ready.filter(pl.col("time_ms") <= each.asked_ms).group_by("detail").agg(pl.col("value").last())
        if before["value"].sum() > 0:
            completed.append(each)
            continue
        end_ms = pl.col("start_ms") + pl.col("rtt_ms")
        answers = samples.filter("ok").select(end_ms.filter(end_ms >= each.asked_ms).min())
        completed.append(replace(each, first_answer_ms=answers.collect().item()))
    return completed
