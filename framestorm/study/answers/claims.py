"""Hypotheses answered: each claim a figure with an interval over the repetitions, and what that says of it."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from framestorm.report.stats import LEVEL, Floats
from framestorm.report.units import percent, plural
from framestorm.statistics.bootstrap import percentile_ends
from framestorm.statistics.effects import cliffs_delta, hedges_g, magnitude
from framestorm.statistics.means import student, without_repetition
from framestorm.statistics.shares import margins
from framestorm.study.answers import wording
from framestorm.study.answers.analysis import Row, Study, possible, share_of
from framestorm.study.answers.cells import Table, groups, numbers, read_table
from framestorm.study.answers.claim_text import kind, named, notes, sentence, subject
from framestorm.study.answers.derived import inputs
from framestorm.study.answers.knees import judge_knee
from framestorm.study.answers.results import UNSURE
from framestorm.study.answers.single import STATISTICS, draws
from framestorm.study.design.expectation import CONFIRMED, REFUTED, UNDECIDED, parse
from framestorm.study.design.metrics import COUNTED_BY

Answer = dict[str, Any]
# Where more fail, times are of what was left.
MOST_FAILED = 0.01
# Beyond this no ratio means anything: two repetitions may give an end without a number for it.
LARGEST_LOG = 25.0
# Of these an effect size over the samples speaks; of a spread or a rate only one over the runs.
OF_PLACE = tuple(name for name, (_, statistic) in STATISTICS.items() if statistic != "sd")


def answer(study: Study) -> list[Answer]:
    """Each hypothesis with its verdict, its sentence, and its claims."""
    return [_hypothesis(study, hypothesis) for hypothesis in study.definition.get("hypotheses") or []]


def _hypothesis(study: Study, hypothesis: Mapping[str, Any]) -> Answer:
    claims = [judge(study, claim) for claim in hypothesis["claims"]]
    verdicts = [claim["verdict"] for claim in claims]
    return {
        "name": hypothesis["name"],
        "text": hypothesis["text"],
        "published": hypothesis.get("published"),
        "verdict": whole_verdict(verdicts, one_is_enough=bool(hypothesis.get("any"))),
        "any": bool(hypothesis.get("any")),
        "claims": claims,
    }


def whole_verdict(verdicts: list[str], *, one_is_enough: bool) -> str:
    """Confirmed if all are (or one, where that is enough), not confirmed if one is not (or all), else undecided."""
    enough, all_ = (any, all) if one_is_enough else (all, any)
    if enough(verdict == CONFIRMED for verdict in verdicts):
        return CONFIRMED
    return REFUTED if all_(verdict == REFUTED for verdict in verdicts) else UNDECIDED


def judge(study: Study, claim: Mapping[str, Any]) -> Answer:
    """One claim: verdict, sentence, value, low, high, n (repetitions), cells, method, effect, notes."""
    if claim.get("knee"):
        return dict(judge_knee(study, claim))
    spread = "sd_ms" in inputs(study.derived, str(claim["metric"]))
    table = read_table(study, claim, without_cut=spread)
    expected = parse(str(claim["expect"]))
    problem = _problem(study, claim, table)
    if problem:
        return _undecided(claim, table, problem)
    statistic = _statistic(claim, table)
    if statistic is None:
        return _undecided(claim, table, f"there are not two levels of {claim['trend']} with figures to compare")
    value, ends, method = _estimate(study, claim, table, statistic)
    verdict = expected.verdict(*ends)
    if _is_plain_share(claim) and value in (0.0, 1.0) and expected.excludes(value):
        # Less than all: of failures that were never seen no number of samples gives an interval that excludes them.
        verdict = REFUTED
    if table.empty:
        verdict = UNDECIDED
    effect = _effect(study, claim, table)
    return {
        "verdict": verdict,
        "sentence": sentence(claim, table, expected, (value, *ends), effect),
        "value": value,
        "low": ends[0],
        "high": ends[1],
        "kind": kind(claim),
        "metric": claim["metric"],
        "expect": claim["expect"],
        "n": len(table.repetitions),
        "cells": [cell.name() for cell in table.cells],
        "method": method,
        "effect": effect,
        "notes": [*notes(claim, table, ends, method), *_failing(study, claim, table)],
    }


def _problem(study: Study, claim: Mapping[str, Any], table: Table) -> str | None:
    """Why there is nothing to judge by."""
    where = f" with {wording.settings(claim['where'])}" if claim.get("where") else ""
    if not table.cells and not (table.empty or table.cut_off or table.not_positive):
        if claim.get("compare"):
            factor = wording.factor(next(iter(claim["compare"])))
            return f"this study has no two points{where} that differ in just {factor}"
        return f"this study has no point{where}"
    if table.not_positive:
        return f"{named(table.not_positive)}: a figure of 0 has no ratio"
    if not table.cells:
        if table.cut_off:
            return f"time-outs cut the spread off in {named(table.cut_off)}"
        return f"no run gave {wording.label(claim['metric'])}: {named(table.empty)}"
    if not table.repetitions:
        return "no repetition has more than half of the points"
    return None


def _statistic(claim: Mapping[str, Any], table: Table) -> Floats | None:
    """What each cell counts in the claim's figure, which is a sum over the cells: a mean, or a mean slope."""
    if not claim.get("trend"):
        return np.full(len(table.cells), 1 / len(table.cells))
    x = np.array(numbers(table.cells, claim["trend"]))
    lines = [places for places in groups(table.cells, claim["trend"]) if np.unique(x[places]).size > 1]
    weights = np.zeros(x.size)
    for places in lines:
        centred = x[places] - x[places].mean()
        weights[places] = centred / float(centred @ centred) / len(lines)
    return weights if lines else None


def _estimate(
    study: Study, claim: Mapping[str, Any], table: Table, weights: Floats
) -> tuple[float, tuple[float | None, float | None], str]:
    """The figure, its interval, and how that was made."""
    # Sums of equal figures differ in the last digit, which is neither more nor less than expected.
    scale = float(np.abs(table.values).max()) or 1.0
    by_repetition = np.round(weights @ table.values / scale, 12) * scale
    mean = student(by_repetition)
    low, high, method = mean.low, mean.high, mean.method
    if by_repetition.size == 1:
        low, high, method = _of_single_runs(study, claim, table, weights)
    if claim["metric"] in COUNTED_BY:
        # A few repetitions are often all alike; how single samples vary is in the interval at least.
        below, above = margins(_terms(study, claim, table, weights), LEVEL, of_logs=table.as_ratio)
        low = min(mean.value - below, mean.value if low is None else low)
        high = max(mean.value + above, mean.value if high is None else high)
        method = f"{method}, or wider, by Wilson's of the samples"
    below, above = _hidden(table, weights)
    low = None if low is None or math.isinf(below) or _is_open(table, -weights) else min(low, mean.value - below)
    high = None if high is None or math.isinf(above) or _is_open(table, weights) else max(high, mean.value + above)
    back = _back(claim, table)
    ends = back(low), back(high)
    return back(mean.value), possible(study, str(claim["metric"]), *ends) if kind(claim) == "value" else ends, method


def _is_plain_share(claim: Mapping[str, Any]) -> bool:
    return claim["metric"] in COUNTED_BY and kind(claim) == "value"


def _terms(
    study: Study, claim: Mapping[str, Any], table: Table, weights: Floats
) -> Iterator[tuple[float, float, float]]:
    """What a figure of shares is a sum of: weight, share, and how many samples that is of."""
    for cell, weight in zip(table.cells, weights, strict=True):
        for point, sign in ((cell.point, 1), (cell.other, -1)):
            if point is not None:
                rows = _runs(study, table, point)
                known = [row for row in rows if row["metrics"].get(claim["metric"]) is not None]
                yield sign * float(weight), *share_of(study, claim["metric"], known)


def _runs(study: Study, table: Table, point: Mapping[str, Any]) -> list[Row]:
    """A point's runs of the repetitions that count."""
    return [row for r in table.repetitions if (row := study.by_cell.get((point["id"], r))) is not None]


def _is_open(table: Table, weights: Floats) -> bool:
    """Whether time-outs leave open how much larger the figure is in truth."""
    opens = {"lower": (True, False), "upper": (False, True), UNSURE: (True, True)}
    return any(
        opens[bound][0 if weight > 0 else 1]
        for bounds, weight in zip(table.bounds, weights, strict=True)
        for bound in bounds
        if weight
    )


def _hidden(table: Table, weights: Floats) -> tuple[float, float]:
    """How far the true figure may lie below and above at any rate, with every cell off to its worse side."""
    used = weights != 0  # nothing times what may be infinite is no number
    below, above = np.array(table.hidden)[used].T
    rises, size = weights[used] > 0, np.abs(weights[used])
    return float(size @ np.where(rises, below, above)), float(size @ np.where(rises, above, below))


def _of_single_runs(
    study: Study, claim: Mapping[str, Any], table: Table, weights: Floats
) -> tuple[float | None, float | None, str]:
    """The interval of one run a point: how far the points differ, and at least how far the samples of each run do."""
    between = without_repetition(table.values[:, 0], weights, _design(claim, table))
    found = _drawn(study, table, str(claim["metric"]))
    if found is None:
        return between.low, between.high, between.method
    with np.errstate(invalid="ignore"):  # what is not known to either side
        low, high = percentile_ends(weights @ found)
    if between.low is None or between.high is None:
        return low, high, "block bootstrap within one run a point; what another run would give is not in it"
    low = None if low is None else min(low, between.low)
    high = None if high is None else max(high, between.high)
    return low, high, f"{between.method}, or wider, by a block bootstrap within the runs"


def _design(claim: Mapping[str, Any], table: Table) -> Floats:
    """The model that a claim's statistic is of: one mean, or a straight line for each row of cells over the factor."""
    if not claim.get("trend"):
        return np.ones((len(table.cells), 1))
    x, lines = np.array(numbers(table.cells, claim["trend"])), groups(table.cells, claim["trend"])
    design = np.zeros((x.size, 2 * len(lines)))
    for line, places in enumerate(lines):
        design[places, 2 * line], design[places, 2 * line + 1] = 1, x[places]
    return design


def _back(claim: Mapping[str, Any], table: Table) -> Any:
    """From the scale of the sums to that of the figure; None stays."""

    def back(end: float | None) -> float | None:
        if end is None or not table.as_ratio:
            return end
        if end > LARGEST_LOG:
            return None
        return 100 * math.expm1(end) if claim.get("trend") else math.exp(end)

    return back


def _drawn(study: Study, table: Table, metric: str) -> Floats | None:
    rows = []
    for cell in table.cells:
        parts = []
        for point in (cell.point, *([cell.other] if cell.other else [])):
            found = draws(study, study.by_cell[(point["id"], table.repetitions[0])], metric)
            if found is None:
                return None
            with np.errstate(divide="ignore"):  # below the smallest sample is above 0 at least
                parts.append(np.log(np.maximum(found, 0)) if table.as_ratio else found)
        with np.errstate(invalid="ignore"):  # both beyond what is known
            rows.append(parts[0] - parts[1] if cell.other else parts[0])
    return np.array(rows)


def _effect(study: Study, claim: Mapping[str, Any], table: Table) -> dict[str, Any] | None:
    """How far the two settings lie apart, mean over the pairs: by samples where the metric is of them, else by runs."""
    if not claim.get("compare") or claim.get("trend"):
        return None
    series = STATISTICS[claim["metric"]][0] if claim["metric"] in OF_PLACE else None
    found: list[float | None] = []
    for cell in table.cells:
        sides = [_runs(study, table, point) for point in (cell.point, cell.other or cell.point)]
        if series:
            a, b = (study.times(side, series) for side in sides)
            found.append(cliffs_delta(*a, *b) if all(sum(part.size for part in of) for of in (a, b)) else None)
        else:
            values = [[row["metrics"][claim["metric"]] for row in side] for side in sides]
            found.append(hedges_g(*([value for value in side if value is not None] for side in values)))
    known = [value for value in found if value is not None]
    if not known or len(known) < len(found):
        return None
    value = float(np.mean(known))
    if series:
        return {"name": "Cliff's delta", "of": "samples", "value": value, "size": magnitude(value)}
    return {"name": "Hedges' g", "of": "runs", "value": value, "size": None}


def _failing(study: Study, claim: Mapping[str, Any], table: Table) -> list[str]:
    """What of a claim on times has to be known of the samples that have none: all that failed but by a time-out."""
    if wording.unit(str(claim["metric"])) not in ("ms", "s"):
        return []
    found = {}
    for point in (point for cell in table.cells for point in (cell.point, cell.other) if point is not None):
        runs = [row["metrics"] for row in _runs(study, table, point)]
        n, ok, timed_out = (sum(run[name] for run in runs) for name in ("n", "ok", "timed_out"))
        if n - ok - timed_out > MOST_FAILED * n:
            found[wording.settings(point["factors"])] = ok / n
    if not found:
        return []
    worst = min(found, key=found.__getitem__)
    more = f", and too few at {plural(len(found) - 1, 'more point')}" if len(found) > 1 else ""
    return [f"At {worst} only {percent(found[worst])} were answered rightly{more}: failing can be faster than working."]


def _undecided(claim: Mapping[str, Any], table: Table, why: str) -> Answer:
    return {
        "verdict": UNDECIDED, "sentence": f"{subject(claim)}: {why}.", "value": None, "low": None, "high": None,
        "kind": kind(claim), "metric": claim["metric"], "expect": claim["expect"], "n": 0,
        "cells": [cell.name() for cell in table.cells], "method": "", "effect": None, "notes": [],
    }  # fmt: skip
