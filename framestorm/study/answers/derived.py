"""Derived metrics: arithmetic over a run's own figures, and figures against those of another point."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from framestorm.study.design.expressions import ExpressionError, is_expression, parse

Row = dict[str, Any]
# How a figure is set against another: of the run's own, and of the other.
AGAINST: dict[str, Callable[[Any, Any], Any]] = {
    "ratio": lambda own, other: own / other,
    "inverse_ratio": lambda own, other: other / own,
    "difference": lambda own, other: own - other,
    "percent": lambda own, other: 100 * own / other,
    "inverse_ratio_percent": lambda own, other: 100 * other / own,
}


def derive(definitions: Mapping[str, Any], rows: Sequence[Row]) -> None:
    """Add the derived metrics to the `metrics` of each row of a study, in order: later ones may use earlier ones.

    None where a metric that is needed has no value, or there is nothing to divide by.
    """
    measured = [row for row in rows if row["metrics"]]
    for name, definition in definitions.items():
        if is_expression(definition):
            expression = parse(definition)
            for row in measured:
                row["metrics"][name] = _calculated(expression, names_of(row))
        else:
            _against(name, definition, measured)


def inputs(definitions: Mapping[str, Any], metric: str, factors: Mapping[str, Any] | None = None) -> set[str]:
    """The metrics that `metric` is made of in the end; itself if it is not derived.

    factors: of a point; there a figure that is set against itself is made of nothing, it is 1 or 0 whatever was
    measured.
    """
    definition = definitions.get(metric)
    if definition is None:
        return {metric}
    needed: Iterable[str]
    if is_expression(definition):
        needed = parse(definition).names
    elif factors is not None and {**factors, **definition["against"]} == factors:
        needed = ()
    else:
        needed = (definition["metric"],)
    return {name for need in needed for name in (inputs(definitions, need, factors) if need != metric else ())}


def may_be_negative(definitions: Mapping[str, Any], metric: str) -> bool:
    """Whether a metric is a difference, or made of one: no other arithmetic takes what is measured below 0."""
    definition = definitions.get(metric)
    if definition is None:
        return False
    if is_expression(definition):
        needed = parse(definition).names - {metric}
        return "-" in definition or any(may_be_negative(definitions, name) for name in needed)
    return definition.get("as") == "difference" or may_be_negative(definitions, definition["metric"])


def names_of(row: Mapping[str, Any]) -> dict[str, float]:
    """What an expression may use of a run: its numbers among metrics, properties and factors; the last win."""
    named = {**row["metrics"], **row["properties"], **row["factors"]}
    return {name: number for name, value in named.items() if (number := _number(value)) is not None}


def _calculated(expression: Any, names: Mapping[str, float]) -> float | None:
    try:
        return float(expression.value(names))
    except ExpressionError:
        return None


def others(row: Row, rows: Sequence[Row], fixed: Mapping[str, Any]) -> list[Row]:
    """The runs that `row` is set against: same repetition, same point but for the factors of `fixed`."""
    return [
        other
        for other in rows
        if other["repetition"] == row["repetition"] and other["factors"] == {**row["factors"], **fixed}
    ]


def _against(name: str, definition: Mapping[str, Any], rows: Sequence[Row]) -> None:
    metric, how = definition["metric"], AGAINST[definition.get("as") or "ratio"]
    for row in rows:
        own = row["metrics"].get(metric)
        found = [other["metrics"].get(metric) for other in others(row, rows, definition["against"])]
        known = [value for value in found if value is not None]
        try:
            row["metrics"][name] = how(own, sum(known) / len(known)) if own is not None and known else None
        except ZeroDivisionError:
            row["metrics"][name] = None


def _number(value: Any) -> float | None:
    if value is None or isinstance(value, bool):
        return None
    try:
        return float(value)
    except (TypeError, ValueError):
        return None
