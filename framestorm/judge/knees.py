"""How throughput grows with load: where it stops growing with it, and the scalability law that fits it."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from framestorm.judge import wording
from framestorm.judge.cells import Cell, groups
from framestorm.model import study as design
from framestorm.model.aliases import ours
from framestorm.model.expectation import INCONCLUSIVE, HypothesisVerdict, whole_verdict
from framestorm.model.metric import metric as metric_of
from framestorm.model.study import Claim, Value
from framestorm.model.study_summary import ClaimAnswer, LawCurve, ScalabilityLine
from framestorm.model.units import as_number, is_number, plural
from framestorm.points.folder import Point
from framestorm.points.study_results import StudyResults
from framestorm.stats.scalability import FEWEST_LOADS, Knee, fit_usl, knee

WITHIN = 0.05
SERVED = "served_per_s"
ASKED = "asked_per_s"
# Factors that are load; people have other words for two of them.
LOADS = ("users", "workers", "target.replicas", "rate_per_s")
WITH_ALIASES = ("users", "rate_per_s")
CURVE_POINTS = 33
METHOD = "above the largest load that certainly keeps up, by Student's or Welch's interval at each load"


@dataclass(frozen=True)
class _Line:
    """The rates at points that differ only in their load: by load, one per repetition.

    empty: cells without a rate. is_closed: the load is no rate of requests per second, but users, replicas or the like.
    """

    factors: dict[str, Value]
    rates: dict[float, list[float]]
    empty: list[Cell]
    is_closed: bool


def _lines(study: StudyResults, points: Sequence[Point], over: str, metric: str) -> Iterator[_Line]:
    cells = [Cell(point, None, point.factors) for point in points]
    for places in groups(cells, over):
        rates, empty, is_rate = dict[float, list[float]](), list[Cell](), True
        for cell in (cells[place] for place in places):
            runs, load = study.runs(cell.point, study.repetitions), float(cell.factors[over])
            is_rate = is_rate and all(math.isclose(row.value(ASKED) or 0.0, load, rel_tol=0.01) for row in runs)
            if of_cell := [value for row in runs if (value := row.value(metric)) is not None]:
                rates[load] = of_cell
            else:
                empty.append(cell)
        factors = {name: value for name, value in cells[places[0]].factors.items() if name != over}
        yield _Line(factors, rates, empty, is_closed=not (is_rate or over.endswith("_per_s")))


def judge_knee(study: StudyResults, claim: Claim, asked: design.KneeClaim) -> ClaimAnswer:
    """Judge a claim on where a metric stops following a factor; if it is about several lines, each has to meet it."""
    over, within, points = asked.over, asked.within_percent / 100, study.matching(claim.where)
    fixed = [name for name, levels in claim.where.items() if not isinstance(levels, tuple)]
    parts, notes, n = [], [], 0
    verdicts: list[HypothesisVerdict] = []
    knees: list[Knee] = []
    for line in _lines(study, points, over, claim.metric):
        name = wording.settings({name: value for name, value in line.factors.items() if name not in fixed})
        if line.empty:
            notes.append(f"No figure at {'; '.join(cell.name for cell in line.empty)}.")
        n = max([n, *map(len, line.rates.values())])
        one, words = knee(line.rates, within, closed=line.is_closed), "insufficient data"
        verdict = INCONCLUSIVE
        if one is not None:
            knees.append(one)
            words = _in_words(one, over, is_last=one.follows_to == max(line.rates))
            # The knee is above the largest load that follows; nothing is known beyond the largest load tried.
            verdict = verdict if line.empty else claim.expect.verdict(math.nextafter(one.follows_to, math.inf), one.at)
        verdicts.append(verdict)
        parts.append(f"{name}: {words}" if name else words)
    where = f" at {wording.settings(claim.where)}" if claim.where else ""
    ats = [one.at for one in knees if one.at is not None]
    at = max(ats) if ats and len(ats) == len(knees) else None
    return ClaimAnswer(
        verdict=whole_verdict(verdicts) if verdicts else INCONCLUSIVE,
        sentence=(
            f"{metric_of(claim.metric).title}{where}, knee over {wording.factor(over)}: "
            f"{'; '.join(parts) or 'this study has no such point'} ({plural(n, 'repetition')}, within "
            f"{100 * within:g} %); expected {claim.expect.text}."
        ),
        kind="knee",
        metric=claim.metric,
        expect=claim.expect.text,
        value=at,
        low=min((one.follows_to for one in knees), default=None),
        high=at,
        n=n,
        cells=[Cell(point, None, point.factors).name for point in points],
        method=METHOD,
        notes=notes,
        basis=study.basis(points, claim.metric, study.repetitions),
    )


def _in_words(one: Knee, over: str, *, is_last: bool) -> str:
    name = wording.factor(over)
    if is_last:
        return f"it keeps up to {one.follows_to:g}, the largest {name} tried"
    follows = f"it keeps up to {one.follows_to:g}" if one.follows_to else "no load certainly keeps up"
    if one.at is None:
        return f"{follows}; it is not certain whether it falls short at the largest {name}"
    return f"{follows}, and falls short from {one.at:g} on"


def scalability(study: StudyResults) -> list[ScalabilityLine]:
    """For every line of throughput over users, workers, replicas or a rate: the law's parameters, and the knee."""
    metric = "throughput_per_s" if "throughput_per_s" in study.derived else SERVED
    lines = []
    names = [name for name in study.record.definition.factors if name in LOADS or ours(name, WITH_ALIASES)]
    for over in names:
        points = [point for point in study.points if is_number(point.factors.get(over))]
        users = [as_number(point.factors.get("users")) or 0 for point in study.points]
        if over == "target.replicas" and max(users) > 0:
            # How replicas scale is judged at one load: the largest.
            points = [point for point in points if point.factors.get("users") == max(users)]
        for line in _lines(study, points, over, metric):
            if len(line.rates) >= FEWEST_LOADS and (drawn := _scalability(line, over, metric)):
                lines.append(drawn)
    return lines


def _scalability(line: _Line, over: str, metric: str) -> ScalabilityLine | None:
    one, fit, drawn = knee(line.rates, WITHIN, closed=line.is_closed), None, None
    pairs = [(load, rate) for load, rates in line.rates.items() for rate in rates]
    loads = sorted(line.rates)
    if line.is_closed and min(min(pair) for pair in pairs) > 0:
        fit = fit_usl([load for load, _ in pairs], [rate for _, rate in pairs])
        curve = np.geomspace(loads[0], loads[-1], CURVE_POINTS)
        drawn = LawCurve(curve.tolist(), fit.throughput(curve).tolist())
    if one is None and fit is None:
        return None
    return ScalabilityLine(over, metric, line.factors, loads, one, fit, drawn)
