"""How replicas started and ended under load, and what was told of them, from metrics.csv, with the samples then."""

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from framestorm.model import activation
from framestorm.model.activation import Activation, ColdSplit
from framestorm.model.function_summary import EndedReplica, FunctionSummary, NodeOutage, PlatformWarning
from framestorm.results.replicas import READY

ENDED = "replica_ended"
NODE = "node_ready"
WARNING = "warning"


def with_starts_and_ends(
    functions: Sequence[FunctionSummary], metrics: pl.DataFrame, samples: pl.LazyFrame, origin_ms: float
) -> list[FunctionSummary]:
    """Return the functions with the starts and ends of their replicas, as far as the platform tells them."""
    rows = {each.function: metrics.filter(pl.col("function") == each.function) for each in functions}
    return [
        replace(
            each,
            ended=_ended(rows[each.function], samples, origin_ms),
            activations=_activations(rows[each.function], samples),
            node_outages=_node_outages(rows[each.function], origin_ms),
            warnings=_warnings(rows[each.function], origin_ms),
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


def _node_outages(rows: pl.DataFrame, origin_ms: float) -> list[NodeOutage]:
    outages = []
    for (node,), states in rows.filter(pl.col("metric") == NODE).partition_by("detail", as_dict=True).items():
        since_ms: float | None = None
        *times, (last_ms, _) = states.sort("time_ms").select("time_ms", "value").iter_rows()
        for time_ms, is_ready in (*times, (last_ms, True)):
            if not is_ready:
                since_ms = time_ms if since_ms is None else since_ms
            elif since_ms is not None:
                length_s = round((time_ms - since_ms) / 1000, 3)
                outages.append(NodeOutage(str(node), round((since_ms - origin_ms) / 1000, 3), length_s))
                since_ms = None
    return sorted(outages, key=lambda outage: outage.at_s)


def _warnings(rows: pl.DataFrame, origin_ms: float) -> list[PlatformWarning]:
    """Return what was warned of, most often first."""
    since_s = (pl.col("time_ms") - origin_ms) / 1000
    of_each = (
        rows.filter(pl.col("metric") == WARNING)
        .group_by("detail", maintain_order=True)
        .agg(pl.col("value").sum(), since_s.min().round(3).alias("first"), since_s.max().round(3).alias("last"))
        .sort("value", descending=True, maintain_order=True)
    )
    warnings = []
    for words, times, first_s, last_s in of_each.iter_rows():
        about, reason, message = (*words.split(": ", 2), "", "")[:3]
        warnings.append(PlatformWarning(about, reason, message, int(times), first_s, last_s))
    return warnings


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
        answers = samples.filter(pl.col("ok") & (end_ms >= each.asked_ms))
        handler = pl.col("handler_ms") if "handler_ms" in samples.collect_schema().names() else pl.lit(None, pl.Float64)
        first = answers.select(end_ms.alias("end_ms"), "start_ms", "rtt_ms", handler.alias("handler_ms"))
        rows_of_first = first.bottom_k(1, by="end_ms").collect().rows()
        end, *sample = rows_of_first[0] if rows_of_first else (None,)
        completed.append(replace(each, first_answer_ms=end, split=ColdSplit.of(each, *sample) if sample else None))
    return completed
