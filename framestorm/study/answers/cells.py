"""What a claim is about as one table: a row a cell (a pair of points, or a point), a column a repetition."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from framestorm.report.stats import Floats
from framestorm.statistics.rounding import hidden_ms, ratio_ends
from framestorm.study.answers import wording
from framestorm.study.answers.analysis import Study, repeats_whole_ms
from framestorm.study.answers.results import UNSURE
from framestorm.study.design.metrics import TIMES_MS

Point = dict[str, Any]
# A repetition with this share of its cells or less is left out: filling up would invent most of it.
LEAST_SHARE = 0.5


@dataclass(frozen=True, eq=False)
class Cell:
    """One place in the matrix: a point, and the one that it is compared with; `factors` are those they share."""

    point: Point
    other: Point | None
    factors: Mapping[str, Any]

    def name(self) -> str:
        return wording.settings(self.factors) or str(self.point["id"])


@dataclass
class Table:
    """The values of a claim's cells.

    values: by cell and repetition, logarithms of ratios where `as_ratio`, complete (see `filled`).
    hidden: by cell how far its true mean may lie below and above at any rate, for times were taken in whole ms.
    bounds: by cell what time-outs made of its values: any of "lower", "upper" and "unsure".
    """

    cells: list[Cell]
    repetitions: list[int]
    values: Floats
    as_ratio: bool
    hidden: list[tuple[float, float]] = field(default_factory=list)
    bounds: list[set[str]] = field(default_factory=list)
    empty: list[Cell] = field(default_factory=list)
    not_positive: list[Cell] = field(default_factory=list)
    cut_off: list[Cell] = field(default_factory=list)
    filled: int = 0
    left_out: list[int] = field(default_factory=list)


def read_table(study: Study, claim: Mapping[str, Any], *, without_cut: bool) -> Table:
    """The cells that `claim` is about, and their values in every repetition that has most of them.

    without_cut: a figure with time-outs in it says nothing of the true one (a spread), and its cell is left out.
    """
    metric, compare = str(claim["metric"]), claim.get("compare")
    as_ratio = bool(compare) and (claim.get("as") or "ratio") == "ratio"
    cells = _pairs(study, claim) if compare else _singles(study, claim)
    table = Table(cells, [], np.empty((0, 0)), as_ratio)
    read = {}
    for cell in cells:
        found, bounds, negative = _values(study, cell, metric, as_ratio=as_ratio)
        if bounds and without_cut:
            table.cut_off.append(cell)
        elif found:
            read[cell] = found, bounds
        else:
            (table.not_positive if negative else table.empty).append(cell)
    _choose(table, [found for found, _ in read.values()])
    for cell, (found, _) in read.items():
        if table.repetitions and found.keys().isdisjoint(table.repetitions):
            table.empty.append(cell)
    table.cells = [cell for cell in read if cell not in table.empty]
    table.bounds = [read[cell][1] for cell in table.cells]
    table.hidden = [_hidden(study, cell, metric, as_ratio=as_ratio) for cell in table.cells]
    _fill(table, [read[cell][0] for cell in table.cells])
    return table


def _singles(study: Study, claim: Mapping[str, Any]) -> list[Cell]:
    where = claim.get("where") or {}
    return [Cell(point, None, point["factors"]) for point in study.matching(where)]


def _pairs(study: Study, claim: Mapping[str, Any]) -> list[Cell]:
    (factor, (first, second)), where = next(iter(claim["compare"].items())), claim.get("where") or {}
    others = {_rest(point, factor): point for point in study.matching({**where, factor: second})}
    return [
        Cell(point, others[rest], {name: value for name, value in point["factors"].items() if name != factor})
        for point in study.matching({**where, factor: first})
        if (rest := _rest(point, factor)) in others
    ]


def _rest(point: Point, factor: str) -> tuple[tuple[str, str], ...]:
    return tuple((name, str(value)) for name, value in point["factors"].items() if name != factor)


def _values(study: Study, cell: Cell, metric: str, *, as_ratio: bool) -> tuple[dict[int, float], set[str], bool]:
    """By repetition the cell's value; what time-outs made of them; whether a ratio met a value of 0 or less."""
    found: dict[int, float] = {}
    bounds: set[str] = set()
    negative = False
    for repetition in study.repetitions:
        own, own_bound = _value(study, cell.point, repetition, metric)
        if cell.other is None:
            if own is not None:
                found[repetition] = own
                bounds |= {own_bound} if own_bound else set()
            continue
        other, other_bound = _value(study, cell.other, repetition, metric)
        if own is None or other is None:
            continue
        if as_ratio and (own <= 0 or other <= 0):
            negative = True
            continue
        found[repetition] = float(np.log(own / other)) if as_ratio else own - other
        if own_bound or other_bound:
            bounds.add(_bound_of_two(own_bound, other_bound))
    return ({} if negative else found), bounds, negative


def _hidden(study: Study, cell: Cell, metric: str, *, as_ratio: bool) -> tuple[float, float]:
    """How far below and above; infinite where a time may be next to nothing."""
    points = (cell.point, *([cell.other] if cell.other else []))
    if metric not in TIMES_MS:
        rows = [[row for row in study.complete if row["point"] == point["id"]] for point in points]
        off = math.inf if any(repeats_whole_ms(study, metric, of_point) for of_point in rows) else 0.0
        return off, off
    sides = []
    for point in points:
        known = [_value(study, point, repetition, metric)[0] for repetition in study.repetitions]
        sides.append([value for value in known if value is not None and (value > 0 or not as_ratio)])
    hidden = [hidden_ms(side) for side in sides]
    if not as_ratio:
        return sum(hidden), sum(hidden)
    value = float(np.log(sides[0]).mean() - np.log(sides[1]).mean())
    low, high = ratio_ends(sides[0], sides[1], (hidden[0], hidden[1]))
    return math.inf if low is None else value - math.log(low), math.inf if high is None else math.log(high) - value


def _value(study: Study, point: Point, repetition: int, metric: str) -> tuple[float | None, str | None]:
    row = study.by_cell.get((point["id"], repetition))
    if row is None:
        return None, None
    value = row["metrics"].get(metric)
    return (None if value is None else float(value)), row["bounds"].get(metric)


def _bound_of_two(own: str | None, other: str | None) -> str:
    """What own / other (or own - other) is, if these are lower bounds."""
    if UNSURE in (own, other) or (own and other):
        return UNSURE
    return "lower" if own else "upper"


def _choose(table: Table, raw: Sequence[Mapping[int, float]]) -> None:
    """The repetitions that have most of the cells."""
    every = sorted({repetition for found in raw for repetition in found})
    table.repetitions = [r for r in every if sum(r in found for found in raw) > LEAST_SHARE * len(raw)]
    table.left_out = [r for r in every if r not in table.repetitions]


def _fill(table: Table, raw: Sequence[Mapping[int, float]]) -> None:
    """The values with their gaps filled.

    A missing one is what its cell and its repetition make of it, fitted to all others by least squares (Yates, The
    Analysis of Replicated Experiments when the Field Results are Incomplete, 1933): so a repetition without its slowest
    cell looks no faster for that.
    """
    if not raw or not table.repetitions:
        return
    values = np.array([[found.get(r, np.nan) for r in table.repetitions] for found in raw])
    missing = np.isnan(values)
    table.filled = int(missing.sum())
    if table.filled:
        of_cell, of_repetition = np.indices(values.shape)
        model = np.concatenate([np.eye(len(raw))[of_cell], np.eye(len(table.repetitions))[of_repetition]], axis=2)
        fitted = np.linalg.lstsq(model[~missing], values[~missing])[0]
        values[missing] = model[missing] @ fitted
    table.values = values


def numbers(cells: Sequence[Cell], factor: str) -> list[float]:
    """The level of `factor` in each cell, as a number."""
    return [float(cell.factors[factor]) for cell in cells]


def groups(cells: Sequence[Cell], factor: str) -> list[list[int]]:
    """The cells that differ in `factor` only, by their places."""
    found: dict[tuple[tuple[str, str], ...], list[int]] = {}
    for place, cell in enumerate(cells):
        rest = tuple((name, str(value)) for name, value in cell.factors.items() if name != factor)
        found.setdefault(rest, []).append(place)
    return list(found.values())
