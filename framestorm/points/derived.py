"""Derived metrics: arithmetic over a run's own figures, or figures against those of another point."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from framestorm.model.study import Derived, Study, Value
from framestorm.model.units import as_number
from framestorm.points.expressions import ExpressionError, parse
from framestorm.points.folder import Point
from framestorm.points.results_csv import ResultRow

# How a run's own figure is compared with that of the other run.
AGAINST: dict[str, Callable[[Any, Any], Any]] = {
    "ratio": lambda own, other: own / other,
    "inverse_ratio": lambda own, other: other / own,
    "difference": lambda own, other: own - other,
    "percent": lambda own, other: 100 * own / other,
    "inverse_ratio_percent": lambda own, other: 100 * other / own,
}


def derive(definitions: Mapping[str, Derived], rows: Sequence[ResultRow]) -> None:
    """Add the derived metrics to the metrics of each row of a study, in order: later ones may use earlier ones.

    None if a metric that is needed has no value, or the divisor is 0.
    """
    measured = [row for row in rows if row.metrics]
    for name, definition in definitions.items():
        for row in measured:
            try:
                row.metrics[name] = _value(definition, row, measured)
            except (ExpressionError, ZeroDivisionError):
                row.metrics[name] = None


def asked_metrics(study: Study) -> list[str]:
    """Every metric that study.yml names or calculates with, derived ones and the names of expressions among them."""
    names = [*study.metrics, *([study.stop.metric] if study.stop else [])]
    names += [claim.metric for hypothesis in study.hypotheses for claim in hypothesis.claims]
    names += [name for chart in study.charts for name in (chart.metric, *(chart.metrics or ())) if name]
    for definition in study.derived.values():
        names += parse(definition).names if isinstance(definition, str) else [definition.metric]
    return list(dict.fromkeys(names))


def inputs(definitions: Mapping[str, Derived], metric: str, factors: Mapping[str, Value] | None = None) -> set[str]:
    """Return the measured metrics that `metric` is calculated from; only itself if it is not derived.

    factors: of a point. If a figure is compared with itself there, it uses no metric: it is 1 or 0 whatever was
    measured.
    """
    definition = definitions.get(metric)
    if definition is None:
        return {metric}
    needed: Iterable[str]
    if isinstance(definition, str):
        needed = parse(definition).names
    elif factors is not None and {**factors, **definition.against} == factors:
        needed = ()
    else:
        needed = (definition.metric,)
    return {name for need in needed for name in (inputs(definitions, need, factors) if need != metric else ())}


def points_behind(
    definitions: Mapping[str, Derived], metric: str, point: Point, points: Sequence[Point]
) -> list[Point]:
    """Return the points whose runs `metric` at `point` is made of: itself, and those that it is compared with."""
    definition = definitions.get(metric)
    if definition is None:
        return [point]
    if isinstance(definition, str):
        names, behind = {*parse(definition).names} - {metric}, [point]
    else:
        factors = {**point.factors, **definition.against}
        names, behind = {definition.metric}, [point, *(other for other in points if other.factors == factors)]
    return [each for of in behind for name in names for each in points_behind(definitions, name, of, points)] or behind


def may_be_negative(definitions: Mapping[str, Derived], metric: str) -> bool:
    """Return whether a metric is a difference or uses one: no other arithmetic makes measured values negative."""
    definition = definitions.get(metric)
    if definition is None:
        return False
    if isinstance(definition, str):
        needed = parse(definition).names - {metric}
        return "-" in definition or any(may_be_negative(definitions, name) for name in needed)
    return definition.as_ == "difference" or may_be_negative(definitions, definition.metric)


def names_of(row: ResultRow) -> dict[str, float]:
    """The numbers of a run that an expression may use: metrics, properties and factors; later ones take precedence."""
    return _numbers(row.metrics) | set_numbers(row)


def set_numbers(row: ResultRow) -> dict[str, float]:
    """Return those of the properties and factors of a run that are numbers."""
    return _numbers(row.point.properties) | _numbers(row.point.factors)


def _numbers(values: Mapping[str, Any]) -> dict[str, float]:
    return {name: float(number) for name, value in values.items() if (number := as_number(value)) is not None}


def rows_behind(
    definition: Derived, row: ResultRow, rows: Sequence[ResultRow]
) -> list[tuple[ResultRow, frozenset[str]]]:
    """Return the runs whose figures a derived metric of `row` is calculated from, each with the names of these."""
    if isinstance(definition, str):
        return [(row, parse(definition).names)]
    compared = others(row, rows, definition.against)
    # Compared with itself it is 1 or 0, whatever was measured.
    return [] if row in compared else [(each, frozenset({definition.metric})) for each in (row, *compared)]


def others(row: ResultRow, rows: Sequence[ResultRow], fixed: Mapping[str, Value]) -> list[ResultRow]:
    """The runs that `row` is compared with: same repetition, and same point except for the factors in `fixed`."""
    return [
        other
        for other in rows
        if other.line.repetition == row.line.repetition and other.point.factors == {**row.point.factors, **fixed}
    ]


def _value(definition: Derived, row: ResultRow, rows: Sequence[ResultRow]) -> float | None:
    if isinstance(definition, str):
        return float(parse(definition).value(names_of(row)))
    own = row.value(definition.metric)
    of_others = [other.value(definition.metric) for other in others(row, rows, definition.against)]
    values = [value for value in of_others if value is not None]
    return AGAINST[definition.as_](own, sum(values) / len(values)) if own is not None and values else None
