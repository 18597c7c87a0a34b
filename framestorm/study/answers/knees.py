"""How throughput grows with load: where it stops following, and the scalability law that fits it."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from framestorm.inference import wording
from framestorm.model import study as design
from framestorm.model.expectation import CONFIRMED, INCONCLUSIVE, REJECTED, Verdict
from framestorm.model.metric import metric as metric_of
from framestorm.model.study import Claim, Value
from framestorm.model.study_summary import ClaimAnswer, LawCurve, ScalabilityLine
from framestorm.model.units import plural
from framestorm.stats.knee import Knee, knee
from framestorm.stats.scalability import FEWEST_LOADS, fit_usl
from framestorm.study.answers.study_results import StudyResults
from framestorm.study.answers.table import Cell, groups

WITHIN = 0.05
SERVED = "served_per_s"
# Factors that are load, and those of them over which a scalability law makes sense.
LOADS = ("users", "workers", "target.replicas", "rate_per_s")
CLOSED = LOADS[:3]
CURVE_POINTS = 33
METHOD = "above the largest load that certainly keeps up, by Student's or Welch's interval at each load"
Rates = dict[Cell, tuple[float, ...]]


def judge_knee(study: StudyResults, claim: Claim, asked: design.Knee) -> ClaimAnswer:
    """A claim on where a metric stops following a factor; where several lines are meant, each has to meet it."""
    over, within = asked.over, asked.within_percent / 100
    cells = [Cell(point, None, point.factors) for point in study.matching(claim.where)]
    fixed = {name for name, levels in claim.where.items() if not isinstance(levels, tuple)} | {over}
    parts, notes = [], []
    verdicts: list[Verdict] = []
    knees: list[Knee] = []
    n = 0
    for places in groups(cells, over):
        line = [cells[place] for place in places]
        name = wording.settings({k: v for k, v in line[0].factors.items() if k not in fixed})
        rates, empty = _rates(study, line, claim.metric)
        if empty:
            notes.append(f"No figure at {'; '.join(cell.name for cell in empty)}.")
        one = _knee(rates, over, within)
        n = max([n, *map(len, rates.values())])
        if one is None:
            parts.append(f"{name}: insufficient data" if name else "insufficient data")
            verdicts.append(INCONCLUSIVE)
            continue
        knees.append(one)
        verdicts.append(INCONCLUSIVE if empty else claim.expect.verdict(*_between(one)))
        is_last = one.follows_to == max(_load(cell, over) for cell in rates)
        parts.append(f"{f'{name}: ' if name else ''}{_in_words(one, over, is_last=is_last)}")
    where = f" at {wording.settings(claim.where)}" if claim.where else ""
    highs = [high for one in knees if math.isfinite(high := _between(one)[1])]
    ats = [one.at for one in knees if one.at is not None]
    is_whole = bool(knees) and len(ats) == len(knees)
    return ClaimAnswer(
        verdict=_whole(verdicts),
        sentence=(
            f"{metric_of(claim.metric).title}{where}, knee over {wording.factor(over)}: "
            f"{'; '.join(parts) or 'this study has no such point'} ({plural(n, 'repetition')}, within "
            f"{100 * within:g} %); expected {claim.expect.text}."
        ),
        kind="knee",
        metric=claim.metric,
        expect=claim.expect.text,
        value=max(ats) if is_whole else None,
        low=min((one.follows_to for one in knees), default=None),
        high=max(highs) if highs and len(highs) == len(knees) else None,
        n=n,
        cells=[cell.name for cell in cells],
        method=METHOD,
        notes=notes,
    )


def _whole(verdicts: Sequence[Verdict]) -> Verdict:
    if verdicts and all(verdict == CONFIRMED for verdict in verdicts):
        return CONFIRMED
    return REJECTED if REJECTED in verdicts else INCONCLUSIVE


def _rates(study: StudyResults, cells: Sequence[Cell], metric: str) -> tuple[Rates, list[Cell]]:
    """The values of each cell that has any, one a repetition, and the cells that have none."""
    rates = {
        cell: tuple(v for row in study.runs(cell.point, study.repetitions) if (v := row.value(metric)) is not None)
        for cell in cells
    }
    return {cell: values for cell, values in rates.items() if values}, [cell for cell in cells if not rates[cell]]


def _load(cell: Cell, over: str) -> float:
    return float(cell.factors[over])


def _knee(rates: Mapping[Cell, Sequence[float]], over: str, within: float) -> Knee | None:
    if len(rates) < 2:
        return None
    try:
        return knee([_load(cell, over) for cell in rates], list(rates.values()), within, closed=over in CLOSED)
    except ValueError:
        return None


def _between(one: Knee) -> tuple[float, float]:
    """The smallest and the largest load at which the knee may lie; beyond those that were tried nothing is known."""
    return math.nextafter(one.follows_to, math.inf), math.inf if one.at is None else one.at


def _in_words(one: Knee, over: str, *, is_last: bool) -> str:
    name = wording.factor(over)
    if is_last:
        return f"it keeps up to {one.follows_to:g}, the largest {name} tried"
    follows = f"it keeps up to {one.follows_to:g}" if one.follows_to else "no load certainly keeps up"
    if one.at is None:
        return f"{follows}; whether it falls short at the largest {name} is not certain"
    return f"{follows}, and falls short from {one.at:g} on"


def scalability(study: StudyResults) -> list[ScalabilityLine]:
    """For every line of throughput over users, workers, replicas or rate: the law's parameters, and the knee."""
    metric = "throughput_per_s" if "throughput_per_s" in study.derived else SERVED
    lines = []
    for over in (name for name in LOADS if len(_numbers(study, name)) > 1):
        cells = [Cell(point, None, point.factors) for point in study.points if _is_number(point.factors.get(over))]
        if over == "target.replicas" and (users := _numbers(study, "users")):
            # One load says how replicas scale: the largest.
            cells = [cell for cell in cells if cell.factors.get("users") == max(users)]
        for places in groups(cells, over):
            rates, _ = _rates(study, [cells[place] for place in places], metric)
            if line := _line(rates, over, metric):
                lines.append(line)
    return lines


def _line(rates: Rates, over: str, metric: str) -> ScalabilityLine | None:
    if len(rates) < FEWEST_LOADS:
        return None
    one = _knee(rates, over, WITHIN)
    pairs = [(_load(cell, over), value) for cell, values in rates.items() for value in values]
    fit = None
    if over in CLOSED and len({load for load, _ in pairs}) >= FEWEST_LOADS and all(value > 0 for _, value in pairs):
        fit = fit_usl([load for load, _ in pairs], [value for _, value in pairs])
    if one is None and fit is None:
        return None
    loads = sorted({load for load, _ in pairs})
    factors = {name: value for name, value in next(iter(rates)).factors.items() if name != over}
    drawn = None
    if fit:
        curve = np.geomspace(loads[0], loads[-1], CURVE_POINTS)
        drawn = LawCurve(curve.tolist(), fit.throughput(curve).tolist())
    return ScalabilityLine(over, metric, factors, loads, one, fit, drawn)


def _numbers(study: StudyResults, factor: str) -> list[float]:
    levels = {point.factors.get(factor) for point in study.points}
    return sorted(float(level) for level in levels if level is not None and _is_number(level))


def _is_number(value: Value | None) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
