"""Summarises each label of a run: its counts, rates and times, what criteria are judged by, and its charts' data."""

from collections.abc import Collection
from dataclasses import replace

import polars as pl

from framestorm.model import summary as model
from framestorm.model.criteria import ALL, USER
from framestorm.model.judgement import Group
from framestorm.model.sample import SampleKind
from framestorm.model.series import SampleSeries
from framestorm.model.units import plural
from framestorm.report import series
from framestorm.results import reading, stalls
from framestorm.results.table import causes, height, of_label, of_labels, sample_group, serving_ms, user_group
from framestorm.results.traces import read_traces
from framestorm.stats.percentiles import Sample
from framestorm.stats.shares import wilson

MAX_LABELS = 200  # with a row of their own
MAX_CHARTED = 20  # with charts of their own
OTHERS: dict[SampleKind, str] = {"sampler": "label", "transaction": "transaction", "sub-result": "sub-result"}


def summarise_labels(
    results: reading.RunResults, named: Collection[str], origin_ms: float
) -> tuple[dict[str, model.LabelSummary], dict[str, Group], dict[str, SampleSeries]]:
    """Return users, the main samples, and each further label: its figures, what criteria are judged by, and chart data.

    Of more labels than can be shown, those with the most samples have a row, and those named in a criterion. `all` has
    none where the main samples are of one label.
    """
    labels, groups, at_rate = {}, {}, results.is_at_rate

    def add(group: Group, table: pl.LazyFrame, kind: SampleKind = "sampler", of_labels: int = 1) -> None:
        groups[group.label] = group
        summary = _label_summary(group, table, kind, of_labels, at_rate=at_rate)
        if summary.failed and results.record.is_open_model and kind == "sampler" and group.label != USER:
            summary = replace(summary, errors_in_bursts=stalls.errors_in_bursts(table))
        labels[group.label] = summary

    if results.users.height:
        add(user_group(results.users), results.users.lazy())
    add(sample_group(results.samples, results.label, at_rate=at_rate), results.samples)
    often = sorted(results.labels, key=lambda name: -results.labels[name].n)
    shown = {*often[:MAX_LABELS], *(results.labels.keys() & set(named))}
    further = [name for name in often if name != results.label][:MAX_CHARTED]
    charted: dict[str, SampleSeries] = {}
    for name, table in results.by_label(name for name in results.labels if name in shown and name != results.label):
        add(sample_group(table, name, at_rate=at_rate), table, results.labels[name].kind)
        if name in further:
            charted[name] = series.sample_series(table, origin_ms, series.COARSE)
    for of_kind, what in OTHERS.items():
        left = [name for name, label in results.labels.items() if label.kind == of_kind and name not in shown]
        left = [name for name in left if name != results.label]
        if left:
            table = of_labels(results.every, left, of_kind)
            name = plural(len(left), f"other {what}")
            add(sample_group(table, name, at_rate=at_rate), table, of_kind, len(left))
    if ALL in named and ALL not in groups:
        groups[ALL] = sample_group(of_label(results.every, ALL), ALL, at_rate=at_rate)
    return labels, groups, charted


def _label_summary(
    group: Group, table: pl.LazyFrame, kind: SampleKind, of_labels: int, *, at_rate: bool
) -> model.LabelSummary:
    """Summarise one label; `table` has its samples. All of its rates are over the same time."""
    low, high = wilson(group.ok, group.n) or (None, None)
    by_cause, further_causes = causes(table)
    # A table of users has neither times of samples nor bytes.
    columns = table.collect_schema().names()
    span = serving_ms(table, at_rate=at_rate) if "rtt_ms" in columns else None
    length_s = (span[1] - span[0]) / 1000 if span and span[1] > span[0] else None

    def per_s(total: float | None) -> float | None:
        return total / length_s if length_s and total is not None else None

    def total(name: str) -> int | None:
        if name not in columns:
            return None
        n, total = table.select(pl.col(name).count(), pl.col(name).sum().alias("total")).collect().row(0)
        return total if n else None

    series = {
        name: _times(sample)
        for name, sample in group.samples.items()
        # Where none was cold, the warm ones are all.
        if isinstance(sample, Sample) and (name != "warm" or "cold" in group.samples)
    }
    return model.LabelSummary(
        label=group.label,
        kind=kind,
        of_labels=of_labels,
        completed_per_s=per_s(group.n),
        received_bytes_per_s=per_s(total("received_bytes")),
        sent_bytes_per_s=per_s(total("sent_bytes")),
        further_causes=further_causes,
        n=group.n,
        ok=group.ok,
        failed=group.n - group.ok,
        timed_out=height(table.filter("timed_out" if "timed_out" in columns else "censored")),
        causes=by_cause,
        success=group.ok / group.n if group.n else None,
        success_low=low,
        success_high=high,
        rate_per_s=group.rate_per_s,
        rate_low_per_s=group.rate_ends[0],
        rate_high_per_s=group.rate_ends[1],
        traces=read_traces(table),
        times={name: times for name, times in series.items() if group.unit(name) == "ms"},
        figures={name: times for name, times in series.items() if group.unit(name) != "ms"},
    )


def _times(sample: Sample) -> model.Times:
    return model.Times(
        n=sample.n,
        censored=sample.censored,
        mean=sample.mean(),
        min=sample.extreme(largest=False),
        p50=sample.percentile("50"),
        p90=sample.percentile("90"),
        p95=sample.percentile("95"),
        p99=sample.percentile("99"),
        max=sample.extreme(largest=True),
    )
