"""A run's load: what was asked for, what of it was answered, and what criteria of the whole load are judged by."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import polars as pl

from framestorm.model.judgement import NO_SCHEDULE, LoadFigures
from framestorm.model.overload import Overload, Rates
from framestorm.model.sample import noun
from framestorm.model.series import InFlight
from framestorm.model.summary import LostHost, Machine, Stall
from framestorm.report import series
from framestorm.report.asked import Asked, alone, read_asked, read_separate
from framestorm.report.overload import Arrivals, blame, overload
from framestorm.report.queue import growing_queue, with_queue
from framestorm.report.rates import rates
from framestorm.report.trust.overload import why
from framestorm.results.reading import RunResults

TOO_SHORT = "there are too few samples"


class MeasuredLoad(NamedTuple):
    """`asked` is None if users just send again once they have their answer; `overload`, also if it cannot be told.

    must_keep_up: whether the run fails if the function did not keep up, also without a criterion that says so.
    """

    asked: Asked | None
    rates: Rates
    overload: Overload | None
    figures: LoadFigures
    must_keep_up: bool


def measure_load(
    results: RunResults,
    in_flight: InFlight | None,
    machines: Sequence[Machine],
    stalls: Sequence[Stall],
    metrics: pl.DataFrame,
    losses: list[LostHost],
    span_ms: tuple[float, float] | None,
    origin_ms: float,
) -> MeasuredLoad:
    """Compare what was asked for with what was answered; `in_flight` is of the main samples, `span_ms` theirs."""
    due, log, slaves = results.samples, results.log, results.record.slaves
    asked = read_asked(results.record, (span_ms[0] - origin_ms) / 1000 if span_ms else 0.0)
    if asked is not None:
        due = asked.of(results.every, slaves)
        asked = asked.comparable(due)
        if asked.groups or asked.labels or results.record.has_users:
            in_flight = series.in_flight(due, results.users.clear().lazy(), losses, origin_ms, noun(results.label), {})
    per_s = rates(due, in_flight, asked.per_s if asked else {})
    generator = blame(results.record, machines, stalls, span_ms)
    judged, by = None, asked
    if asked is not None:
        judged = overload(due, asked, per_s, Arrivals(log.arrivals, log.dropped), origin_ms, generator)
    separate = _of_separate(results, losses, origin_ms, generator)
    if len(separate) == 1 or (separate and (judged is None or not judged.signs)):
        judged, by = separate[0]
    must_keep_up = judged is not None and by is not None and not by.is_limit
    if queue := growing_queue(results.every, metrics):
        judged, must_keep_up = with_queue(judged, queue, per_s, span_ms, origin_ms), True
    reason = TOO_SHORT if asked else NO_SCHEDULE
    figures = LoadFigures(
        asked_per_s=per_s.asked_per_s,
        answered_per_s=per_s.answered_per_s,
        in_flight=per_s.in_flight,
        due=log.arrivals,
        dropped=None if log.arrivals is None else log.dropped,
        is_overloaded=None if judged is None or (judged.signs and judged.generator) else bool(judged.signs),
        why=why(judged, noun(results.label)) if judged and judged.signs else reason,
        of_one=(judged.asked_per_s, judged.answered_per_s) if judged and judged.name else None,
        queue=judged.queue if judged else None,
    )
    return MeasuredLoad(asked, per_s, judged, figures, must_keep_up)


def _of_separate(
    results: RunResults, losses: list[LostHost], origin_ms: float, generator: str
) -> list[tuple[Overload, Asked]]:
    """Return those of a plan's schedules that were not answered: among others, one may be a small part."""
    judgements = []
    for load in read_separate(results.record):
        due = alone(load, results.record).of(results.every, results.record.slaves)
        first_ms = due.select(pl.col("start_ms").min()).collect().item()
        if first_ms is None:
            continue
        asked = alone(load, results.record, (first_ms - origin_ms) / 1000).comparable(due)
        in_flight = series.in_flight(due, results.users.clear().lazy(), losses, origin_ms, noun(results.label), {})
        dropped = results.log.dropped_of.get(load.name, 0)
        arrivals = Arrivals(None if load.is_timer else load.total, dropped)
        judged = overload(due, asked, rates(due, in_flight, asked.per_s), arrivals, origin_ms, generator)
        if judged is not None and judged.signs:
            judgements.append((replace(judged, name=load.name), asked))
    return judgements
