"""The data of a claim as a table: one row per cell (a pair of points, or a point), one column per repetition.

If there is only one repetition, the samples of its runs are resampled.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from framestorm.judge import wording
from framestorm.judge.differences import NO_RATIO
from framestorm.judge.point_figures import repeats_whole_ms, sample_statistic
from framestorm.model.metric import is_rounded, split_label
from framestorm.model.study import Claim, DerivedMetric, Value
from framestorm.points.derived import AGAINST, inputs, names_of, others, set_numbers
from framestorm.points.expressions import ExpressionError, parse
from framestorm.points.folder import Point
from framestorm.points.results_csv import ResultRow
from framestorm.points.study_results import StudyResults
from framestorm.stats.bootstrap import choose_block, draw
from framestorm.stats.checks import Floats
from framestorm.stats.evidence import log_ratio_ends, rounding_ms

# A repetition with this share of its cells or less is left out: most of its values would have to be estimated.
LEAST_SHARE = 0.5
SUCCESS = "success"
# Why a cell is left out.
EMPTY, HIDDEN = "no run has a value", "timeouts hide the variation"
# How timeouts affect a value: whether the true one may be smaller, and whether it may be larger.
OpenEnds = tuple[bool, bool]


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
    reach: by cell how far its true mean may lie below and above, because times were taken in whole ms or were cut off
        by timeouts (`is_cut`; then it is infinite).
    without: cells that are left out, and why.
    """

    as_ratio: bool
    cells: list[Cell] = field(default_factory=list)
    repetitions: list[int] = field(default_factory=list)
    values: Floats = field(default_factory=lambda: np.empty((0, 0)))
    reach: list[tuple[float, float]] = field(default_factory=list)
    is_cut: bool = False
    without: dict[Cell, str] = field(default_factory=dict)
    filled: int = 0
    left_out: list[int] = field(default_factory=list)

    def left_out_for(self, why: str) -> list[Cell]:
        return [cell for cell, reason in self.without.items() if reason == why]


def read_table(study: StudyResults, claim: Claim, *, without_cut: bool) -> Table:
    """Return the cells that `claim` is about, and their values in every repetition that has most of them.

    without_cut: leave out cells with timeouts, because the figure (a spread) then says nothing about the true one.
    """
    table = Table(as_ratio=claim.compare is not None and claim.as_ == "ratio")
    rows: dict[Cell, dict[int, float]] = {}
    cut: dict[Cell, OpenEnds] = {}
    for cell in _cells(study, claim):
        values, open_to, has_no_ratio = _row(study, cell, claim.metric, as_ratio=table.as_ratio)
        if not values or has_no_ratio or (any(open_to) and without_cut):
            table.without[cell] = HIDDEN if any(open_to) and without_cut else NO_RATIO if has_no_ratio else EMPTY
        else:
            rows[cell], cut[cell] = values, open_to
    every = sorted({repetition for row in rows.values() for repetition in row})
    table.repetitions = [r for r in every if sum(r in row for row in rows.values()) > LEAST_SHARE * len(rows)]
    table.left_out = [r for r in every if r not in table.repetitions]
    if table.repetitions:
        table.without |= {cell: EMPTY for cell, row in rows.items() if row.keys().isdisjoint(table.repetitions)}
    table.cells = [cell for cell in rows if cell not in table.without]
    for cell in table.cells:
        off = _rounding(study, cell, claim.metric, as_ratio=table.as_ratio)
        table.reach.append((math.inf if cut[cell][0] else off[0], math.inf if cut[cell][1] else off[1]))
    table.is_cut = any(any(cut[cell]) for cell in table.cells)
    _fill(table, [rows[cell] for cell in table.cells])
    return table


def _cells(study: StudyResults, claim: Claim) -> list[Cell]:
    if not claim.compare:
        return [Cell(point, None, point.factors) for point in study.matching(claim.where)]
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


def _row(study: StudyResults, cell: Cell, metric: str, *, as_ratio: bool) -> tuple[dict[int, float], OpenEnds, bool]:
    """Return the values by repetition, how timeouts affect them, and whether one of the figures has no ratio."""
    values: dict[int, float] = {}
    below = above = has_no_ratio = False
    for repetition in study.repetitions:
        rows = [study.by_cell.get((point.id, repetition)) for point in cell.points]
        figures = [number for row in rows if row is not None and (number := row.value(metric)) is not None]
        if len(figures) < len(rows):
            continue
        if as_ratio and min(figures) <= 0:
            has_no_ratio = True
            continue
        own, other = figures[0], figures[1] if cell.other else 0.0
        values[repetition] = float(np.log(own / other)) if as_ratio else own - other
        bounds = [row.bounds.get(metric) for row in rows if row is not None]
        # A lower bound of the second side is an upper one of the difference.
        above = above or "unsure" in bounds or bounds[0] == "lower"
        below = below or "unsure" in bounds or bounds[1:] == ["lower"]
    return values, (below, above), has_no_ratio


def _rounding(study: StudyResults, cell: Cell, metric: str, *, as_ratio: bool) -> tuple[float, float]:
    """Return how far the true value may lie below and above; infinite if a time may be close to 0."""
    if metric in study.derived or not is_rounded(metric):
        rows = [[row for row in study.complete if row.point.id == point.id] for point in cell.points]
        off = math.inf if any(repeats_whole_ms(study, metric, of_point) for of_point in rows) else 0.0
        return off, off
    sides = []
    for point in cell.points:
        values = [row.value(metric) for row in study.runs(point, study.repetitions)]
        sides.append([value for value in values if value is not None and (value > 0 or not as_ratio)])
    offs = [rounding_ms(side) for side in sides]
    if not as_ratio:
        return sum(offs), sum(offs)
    value = float(np.log(sides[0]).mean() - np.log(sides[1]).mean())
    low, high = log_ratio_ends(sides[0], sides[1], (offs[0], offs[1]))
    return math.inf if low is None else value - low, math.inf if high is None else high - value


def _fill(table: Table, rows: Sequence[Mapping[int, float]]) -> None:
    """The values, with missing ones filled in.

    A missing value is estimated from the effects of its cell and of its repetition, fitted to all other values by
    least squares (Yates, The Analysis of Replicated Experiments when the Field Results are Incomplete, 1933). So a
    repetition does not look faster because its slowest cell is missing.
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


def groups(cells: Sequence[Cell], factor: str) -> list[list[int]]:
    """Return the cells that differ in `factor` only, by their places."""
    places: dict[tuple[tuple[str, str], ...], list[int]] = {}
    for place, cell in enumerate(cells):
        places.setdefault(_rest(cell.factors, factor), []).append(place)
    return list(places.values())


def resamples_of(study: StudyResults, table: Table, metric: str) -> Floats | None:
    """Return resamples of each cell's value, with one run of each point; None if samples alone do not determine it.

    Figures of the same run use the same draws, so that their ratio is that of the run; different runs are independent.
    """
    rows = []
    for cell in table.cells:
        parts = []
        for point in cell.points:
            resamples = _resampled(study, study.by_cell[point.id, table.repetitions[0]], metric)
            if resamples is None:
                return None
            with np.errstate(divide="ignore"):  # below the smallest sample: unknown, but above 0
                parts.append(np.log(np.maximum(resamples, 0)) if table.as_ratio else resamples)
        with np.errstate(invalid="ignore"):  # both are unknown
            rows.append(parts[0] - parts[1] if cell.other else parts[0])
    return np.array(rows)


def _resampled(study: StudyResults, row: ResultRow, metric: str, block: int | None = None) -> Floats | None:
    """`metric` of resamples of one run's samples; None if samples do not determine it (a rate, a user's time).

    -inf, inf or NaN if it is not known, see `stats.bootstrap.Resamples`.
    """
    if block is None:  # the longest that one of the metrics needs that it is calculated from
        needed = [values for name in inputs(study.derived, metric) if (values := _values(study, row, name)) is not None]
        block = max(map(choose_block, needed), default=1)
    definition = study.derived.get(metric)
    if isinstance(definition, str):
        return _calculated(study, row, definition, block)
    if definition is not None:
        return _against(study, row, definition)
    values, statistic = _values(study, row, metric), sample_statistic(study, metric)
    if values is None:
        return None
    resamples = draw(values, statistic or "mean", block=min(block, values.size), seed=[*row.line.run.encode()]).least
    return np.clip(resamples, 0, 1) if split_label(metric)[1] == SUCCESS else resamples


def _values(study: StudyResults, row: ResultRow, metric: str) -> Floats | None:
    """Return the values of which the metric is a statistic, in order of start."""
    if split_label(metric)[1] == SUCCESS:
        right = study.samples(row, metric).right.astype(np.float64)
        # Add one success and one error: if all samples succeeded or all failed, as is common, resamples of them alone
        # would show no variation (Agresti and Caffo, Simple and Effective Confidence Intervals for Proportions, The
        # American Statistician 54, 2000).
        return np.append(right, [1.0, 0.0]) if right.size else None
    is_known = sample_statistic(study, metric) is not None
    values = study.times([row], metric).values_ms if is_known else np.empty(0)
    return values if values.size else None


def _calculated(study: StudyResults, row: ResultRow, text: str, block: int) -> Floats | None:
    expression, names = parse(text), names_of(row)
    measured = sorted(set(expression.names) - set_numbers(row).keys())
    of_names = [_resampled(study, row, name, block) for name in measured]
    # One that does not vary in resamples, such as a rate, would make the result look surer than it is.
    resampled = {name: of for name, of in zip(measured, of_names, strict=True) if of is not None}
    if not resampled or len(resampled) < len(measured):
        return None

    def value(of: tuple[float, ...]) -> float:
        # The result may fall where an input rises, so the bound of an unknown input gives no bound of the result.
        if not all(map(math.isfinite, of)):
            return math.nan
        try:
            return expression.value(names | dict(zip(resampled, of, strict=True)))
        except ExpressionError:
            return math.nan

    return np.array([value(of) for of in zip(*(part.tolist() for part in resampled.values()), strict=True)])


def _against(study: StudyResults, row: ResultRow, definition: DerivedMetric) -> Floats | None:
    own = _resampled(study, row, definition.metric)
    of_others = [
        _resampled(study, other, definition.metric) for other in others(row, study.complete, definition.against)
    ]
    resampled = [resamples for resamples in of_others if resamples is not None]
    if own is None or not resampled:
        return None
    with np.errstate(invalid="ignore", divide="ignore"):
        other = np.mean(resampled, axis=0)
        is_known = np.isfinite(own) & np.isfinite(other) & (other != 0)
        return np.where(is_known, AGAINST[definition.as_](own, other), np.nan)
