"""A run's load: what was asked for, what of it was answered, and what criteria of the whole load are judged by."""

from collections.abc import Sequence
from typing import NamedTuple

import polars as pl

from framestorm.model.judgement import NO_SCHEDULE, LoadFigures
from framestorm.model.overload import Overload, Rates
from framestorm.model.sample import noun
from framestorm.model.series import InFlight
from framestorm.model.summary import LostHost, Machine, Stall
from framestorm.report import series
from framestorm.report.asked import Asked, read_asked
from framestorm.report.overload import Arrivals, blame, overload
from framestorm.report.queue import growing_queue, with_queue
from framestorm.report.rates import rates
from framestorm.report.trust.overload import why
from framestorm.results.reading import RunResults

TOO_SHORT = "there are too few samples"


class MeasuredLoad(NamedTuple):
    """`asked` is None if users just send again once they have their answer; `overload`, also if it cannot be told."""

    asked: Asked | None
    rates: Rates
    overload: Overload | None
    figures: LoadFigures

    @property
    def must_keep_up(self) -> bool:
        """Whether the run fails if the function did not keep up, also without a criterion that says so."""
        if self.overload is None or self.overload.queue:
            return self.overload is not None
        return self.asked is not None and not self.asked.is_limit


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
    due, log = results.samples, results.log
    asked = read_asked(results.record, (span_ms[0] - origin_ms) / 1000 if span_ms else 0.0)
    if asked is not None:
        due = asked.of(results.every)
        asked = asked.comparable(due)
        if asked.groups or asked.labels:
            in_flight = series.in_flight(due, results.users.clear().lazy(), losses, origin_ms, noun(results.label), {})
    per_s = rates(due, in_flight, asked.per_s if asked else {})
    judged = None
    if asked is not None:
        generator = blame(results.record, machines, stalls, span_ms)
        judged = overload(due, asked, per_s, Arrivals(log.arrivals, log.dropped), origin_ms, generator)
    if queue := growing_queue(results.every, metrics):
        judged = with_queue(judged, queue, per_s, span_ms, origin_ms)
    reason = TOO_SHORT if asked else NO_SCHEDULE
    figures = LoadFigures(
        asked_per_s=per_s.asked_per_s,
        answered_per_s=per_s.answered_per_s,
        in_flight=per_s.in_flight,
        due=log.arrivals,
        dropped=None if log.arrivals is None else log.dropped,
        is_overloaded=None if judged is None or (judged.signs and judged.generator) else bool(judged.signs),
        why=why(judged, noun(results.label)) if judged and judged.signs else reason,
        queue=judged.queue if judged else None,
    )
    return MeasuredLoad(asked, per_s, judged, figures)
