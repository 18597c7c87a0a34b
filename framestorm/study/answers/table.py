"""What a claim is about as one table: a row a cell (a pair of points, or a point), a column a repetition."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from framestorm.inference import wording
from framestorm.model.metric import is_rounded
from framestorm.model.study import Claim, Value
from framestorm.stats.checks import Floats
from framestorm.stats.estimate import Bound
from framestorm.stats.evidence import log_ratio_ends, rounding_ms
from framestorm.study.answers.study_results import StudyResults, repeats_whole_ms
from framestorm.study.design.folder import Point

# A repetition with this share of its cells or less is left out: filling up would invent most of it.
LEAST_SHARE = 0.5
# What a timeout leaves open of a value: whether it may be smaller in truth, and whether larger.
Open = tuple[bool, bool]


@dataclass(frozen=True, eq=False)
class Cell:
    """One place in the matrix: a point, and the one that it is compared with; `factors` are those they share."""

    point: Point
    other: Point | None
    factors: Mapping[str, Value]

    @property
    def name(self) -> str:
        return wording.settings(self.factors) or self.point.id

    @property
    def points(self) -> tuple[Point, ...]:
        return (self.point,) if self.other is None else (self.point, self.other)


@dataclass
class Table:
    """The values of a claim's cells.

    values: by cell and repetition, logarithms of ratios where `as_ratio`, complete (see `_fill`).
    rounding: by cell how far its true mean may lie below and above in any case, for times were taken in whole ms.
    open_to: by cell what timeouts leave open of its values.
    empty, not_positive, cut_off: cells that have no value, no ratio, or a spread that timeouts cut off.
    """

    cells: list[Cell]
    repetitions: list[int]
    values: Floats
    as_ratio: bool
    rounding: list[tuple[float, float]] = field(default_factory=list)
    open_to: list[Open] = field(default_factory=list)
    empty: list[Cell] = field(default_factory=list)
    not_positive: list[Cell] = field(default_factory=list)
    cut_off: list[Cell] = field(default_factory=list)
    filled: int = 0
    left_out: list[int] = field(default_factory=list)


@dataclass
class _Row:
    """The values of one cell by repetition."""

    values: dict[int, float] = field(default_factory=dict)
    open_to: Open = (False, False)
    has_no_ratio: bool = False


def read_table(study: StudyResults, claim: Claim, *, without_cut: bool) -> Table:
    """The cells that `claim` is about, and their values in every repetition that has most of them.

    without_cut: a figure with timeouts in it says nothing of the true one (a spread), and its cell is left out.
    """
    as_ratio = claim.compare is not None and claim.as_ == "ratio"
    table = Table([], [], np.empty((0, 0)), as_ratio)
    rows: dict[Cell, _Row] = {}
    for cell in _pairs(study, claim) if claim.compare else _singles(study, claim):
        row = _row(study, cell, claim.metric, as_ratio=as_ratio)
        if any(row.open_to) and without_cut:
            table.cut_off.append(cell)
        elif row.has_no_ratio:
            table.not_positive.append(cell)
        elif row.values:
            rows[cell] = row
        else:
            table.empty.append(cell)
    every = sorted({repetition for row in rows.values() for repetition in row.values})
    table.repetitions = [r for r in every if sum(r in row.values for row in rows.values()) > LEAST_SHARE * len(rows)]
    table.left_out = [r for r in every if r not in table.repetitions]
    if table.repetitions:
        table.empty += [cell for cell, row in rows.items() if row.values.keys().isdisjoint(table.repetitions)]
    table.cells = [cell for cell in rows if cell not in table.empty]
    table.open_to = [rows[cell].open_to for cell in table.cells]
    table.rounding = [_rounding(study, cell, claim.metric, as_ratio=as_ratio) for cell in table.cells]
    _fill(table, [rows[cell].values for cell in table.cells])
    return table


def _singles(study: StudyResults, claim: Claim) -> list[Cell]:
    return [Cell(point, None, point.factors) for point in study.matching(claim.where)]


def _pairs(study: StudyResults, claim: Claim) -> list[Cell]:
    if claim.pair is None:
        return []
    factor, first, second = claim.pair
    others = {_rest(point.factors, factor): point for point in study.matching({**claim.where, factor: second})}
    return [
        Cell(point, others[rest], {name: value for name, value in point.factors.items() if name != factor})
        for point in study.matching({**claim.where, factor: first})
        if (rest := _rest(point.factors, factor)) in others
    ]


def _rest(factors: Mapping[str, Value], factor: str) -> tuple[tuple[str, str], ...]:
    return tuple((name, str(value)) for name, value in factors.items() if name != factor)


def _row(study: StudyResults, cell: Cell, metric: str, *, as_ratio: bool) -> _Row:
    row = _Row()
    for repetition in study.repetitions:
        sides = [_value(study, point, repetition, metric) for point in cell.points]
        numbers = [value for value, _ in sides if value is not None]
        if len(numbers) < len(sides):
            continue
        if as_ratio and min(numbers) <= 0:
            row.has_no_ratio = True
            continue
        if cell.other is None:
            row.values[repetition] = numbers[0]
        else:
            own, other = numbers
            row.values[repetition] = float(np.log(own / other)) if as_ratio else own - other
        for side, (_, bound) in enumerate(sides):
            below, above = row.open_to
            # A lower bound of the second side is an upper one of the difference.
            is_above = bound == "unsure" or (bound == "lower" and side == 0)
            is_below = bound == "unsure" or (bound == "lower" and side == 1)
            row.open_to = below or is_below, above or is_above
    return row


def _value(study: StudyResults, point: Point, repetition: int, metric: str) -> tuple[float | None, Bound | None]:
    row = study.by_cell.get((point.id, repetition))
    return (None, None) if row is None else (row.value(metric), row.bounds.get(metric))


def _rounding(study: StudyResults, cell: Cell, metric: str, *, as_ratio: bool) -> tuple[float, float]:
    """How far below and above; infinite where a time may be next to nothing."""
    if metric in study.derived or not is_rounded(metric):
        rows = [[row for row in study.complete if row.point.id == point.id] for point in cell.points]
        off = math.inf if any(repeats_whole_ms(study, metric, of_point) for of_point in rows) else 0.0
        return off, off
    sides = []
    for point in cell.points:
        values = [_value(study, point, repetition, metric)[0] for repetition in study.repetitions]
        sides.append([value for value in values if value is not None and (value > 0 or not as_ratio)])
    offs = [rounding_ms(side) for side in sides]
    if not as_ratio:
        return sum(offs), sum(offs)
    value = float(np.log(sides[0]).mean() - np.log(sides[1]).mean())
    low, high = log_ratio_ends(sides[0], sides[1], (offs[0], offs[1]))
    return math.inf if low is None else value - low, math.inf if high is None else high - value


def _fill(table: Table, rows: Sequence[Mapping[int, float]]) -> None:
    """The values with their gaps filled.

    A missing one is what its cell and its repetition make of it, fitted to all others by least squares (Yates, The
    Analysis of Replicated Experiments when the Field Results are Incomplete, 1933): so a repetition without its slowest
    cell looks no faster for that.
    """
    if not rows or not table.repetitions:
        return
    values = np.array([[row.get(r, np.nan) for r in table.repetitions] for row in rows])
    missing = np.isnan(values)
    table.filled = int(missing.sum())
    if table.filled:
        of_cell, of_repetition = np.indices(values.shape)
        model = np.concatenate([np.eye(len(rows))[of_cell], np.eye(len(table.repetitions))[of_repetition]], axis=2)
        fitted = np.linalg.lstsq(model[~missing], values[~missing])[0]
        values[missing] = model[missing] @ fitted
    table.values = values


def numbers(cells: Sequence[Cell], factor: str) -> list[float]:
    """The level of `factor` in each cell, as a number."""
    return [float(cell.factors[factor]) for cell in cells]


def groups(cells: Sequence[Cell], factor: str) -> list[list[int]]:
    """The cells that differ in `factor` only, by their places."""
    places: dict[tuple[tuple[str, str], ...], list[int]] = {}
    for place, cell in enumerate(cells):
        places.setdefault(_rest(cell.factors, factor), []).append(place)
    return list(places.values())
