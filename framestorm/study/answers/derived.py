"""Derived metrics: arithmetic over a run's own figures, and figures against those of another point."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from framestorm.model.study import Derived, Value
from framestorm.study.answers.rows import ResultRow
from framestorm.study.design.expressions import ExpressionError, parse
from framestorm.study.design.matrix import as_number

# How a figure is set against another: of the run's own, and of the other.
AGAINST: dict[str, Callable[[Any, Any], Any]] = {
    "ratio": lambda own, other: own / other,
    "inverse_ratio": lambda own, other: other / own,
    "difference": lambda own, other: own - other,
    "percent": lambda own, other: 100 * own / other,
    "inverse_ratio_percent": lambda own, other: 100 * other / own,
}


def derive(definitions: Mapping[str, Derived], rows: Sequence[ResultRow]) -> None:
    """Add the derived metrics to the metrics of each row of a study, in order: later ones may use earlier ones.

    None where a metric that is needed has no value, or there is nothing to divide by.
    """
    measured = [row for row in rows if row.metrics]
    for name, definition in definitions.items():
        for row in measured:
            try:
                row.metrics[name] = _value(definition, row, measured)
            except (ExpressionError, ZeroDivisionError):
                row.metrics[name] = None


def inputs(definitions: Mapping[str, Derived], metric: str, factors: Mapping[str, Value] | None = None) -> set[str]:
    """The metrics that `metric` is made of in the end; itself if it is not derived.

    factors: of a point; there a figure that is set against itself is made of nothing, it is 1 or 0 whatever was
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


def may_be_negative(definitions: Mapping[str, Derived], metric: str) -> bool:
    """Whether a metric is a difference, or made of one: no other arithmetic takes what is measured below 0."""
    definition = definitions.get(metric)
    if definition is None:
        return False
    if isinstance(definition, str):
        needed = parse(definition).names - {metric}
        return "-" in definition or any(may_be_negative(definitions, name) for name in needed)
    return definition.as_ == "difference" or may_be_negative(definitions, definition.metric)


def names_of(row: ResultRow) -> dict[str, float]:
    """What an expression may use of a run: its numbers among metrics, properties and factors; the last win."""
    named = {**row.metrics, **row.point.properties, **row.point.factors}
    return {name: float(number) for name, value in named.items() if (number := as_number(value)) is not None}


def others(row: ResultRow, rows: Sequence[ResultRow], fixed: Mapping[str, Value]) -> list[ResultRow]:
    """The runs that `row` is set against: same repetition, same point but for the factors of `fixed`."""
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
