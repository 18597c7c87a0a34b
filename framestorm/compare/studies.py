"""Studies against studies, or levels of one: point by point, and over all points together."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import polars as pl

from framestorm.compare.runs import BOTH_BOUNDS, ONE_BOUND
from framestorm.compare.sides import StudySide
from framestorm.errors import FramestormError
from framestorm.inference.contrasts import Missing, Question
from framestorm.inference.evidence import (
    ByFormula,
    Evidence,
    Scale,
    geometric_ratio,
    of_shares,
    over_repetitions,
    wider,
    within,
)
from framestorm.model.comparison import SideFigure
from framestorm.model.metric import is_of_run, is_rounded, metric
from framestorm.model.units import plural
from framestorm.stats.rounding import rounding_ms

PAIRED_METHOD = "Student's interval of the pairs of each repetition; ratios of geometric means"
POINTS_METHOD = "one repetition a side: Student's interval of the pairs of each point; ratios of geometric means"
WELCH_METHOD = "Welch's interval over repetitions; ratios of geometric means"
SHARE_METHOD = "of success the wider of that and Newcombe's interval over samples"
ONE_ONLY = "insufficient data (n < 2 repetitions): the variation between repetitions is not known"


@dataclass(frozen=True)
class Compared:
    """Two studies compared: each metric over all points that both have, and at each; and the points of one only.

    points: empty where there is just one, which `overall` is of.
    missing: what the new side has no value of, and the old one has.
    pairs: what belongs together over all points; None: nothing, the sides ran them in other orders, or only once.
    """

    overall: list[Question]
    points: list[Question]
    shared: list[str]
    only_baseline: list[str]
    only_candidate: list[str]
    missing: list[Missing]
    pairs: Literal["repetition", "point"] | None


def compare(old: StudySide, new: StudySide, metrics: Sequence[str]) -> Compared:
    """Compare two sides in `metrics`, names of columns of results.csv.

    Raises:
        FramestormError: they have no point in common.
    """
    shared = [key for key in old.points if key in new.points]
    if not shared:
        examples = f"{old.name} has {next(iter(old.points))}, {new.name} has {next(iter(new.points))}"
        raise FramestormError(f"{old.name} and {new.name} have no point in common, nothing can be compared: {examples}")
    common = set(old.results["repetition"]) & set(new.results["repetition"])
    is_paired = old.schedule == new.schedule and len(common) > 1
    is_one = len(shared) == 1
    at = [(key, each) for name in metrics for key in shared if (each := _at(old, new, key, name, is_paired))]
    over = [each for _, each in at] if is_one else [_overall(old, new, name, shared, is_paired) for name in metrics]
    ran_once = not is_one and old.repetitions == new.repetitions == 1
    return Compared(
        [each for each in over if each],
        [] if is_one else [replace(each, point=key) for key, each in at],
        shared,
        [key for key in old.points if key not in new.points],
        [key for key in new.points if key not in old.points],
        [_missing(new, key, name) for name in metrics for key in shared if _lacks(old, new, key, name)],
        "point" if ran_once else "repetition" if is_paired else None,
    )


def _lacks(old: StudySide, new: StudySide, point: str, name: str) -> bool:
    return bool(old.values(point, name)) and not new.values(point, name)


def _missing(side: StudySide, point: str, name: str) -> Missing:
    runs = side.results.filter(pl.col("point") == side.points[point].id).height
    right, n = (int(sum(side.values(point, each).values())) for each in ("ok", "n"))
    why = f"{plural(runs, 'complete run')} with {right} samples without error of {plural(n, 'sample')}"
    return Missing(name, why if runs else "no run of it is complete", point)


def is_cut_off(side: StudySide, point: str, name: str) -> bool:
    """Whether timeouts made this figure of a point a lower bound, or took its meaning, in any repetition."""
    if "cut_off" not in side.results.columns:
        return False
    cells = side.results.filter(pl.col("point") == side.points[point].id)["cut_off"].cast(pl.String).drop_nulls()
    return any(name in cell.split() for cell in cells)


def _at(old: StudySide, new: StudySide, point: str, name: str, is_paired: bool) -> Question | None:
    """One metric at one point; None if a side has no value of it."""
    values = (old.values(point, name), new.values(point, name))
    if not values[0] or not values[1]:
        return None
    common = set(values[0]) & set(values[1])
    in_pairs = is_paired and len(common) > 1
    rows = [[each[k] for k in sorted(common if in_pairs else each)] for each in values]
    totals = [_total(side, [point], name) for side in (old, new)]
    sides = [
        SideFigure(float(np.mean(row)), is_cut_off(side, point, name), int(total), len(row))
        for side, row, total in zip((old, new), rows, totals, strict=True)
    ]
    method = PAIRED_METHOD if in_pairs else WELCH_METHOD
    return _question(name, sides, rows, method, _rounding(name, rows))


def _overall(old: StudySide, new: StudySide, name: str, shared: Sequence[str], is_paired: bool) -> Question | None:
    """One metric over all points of which something is known on both sides: of each repetition the mean over points.

    The geometric mean, so that each point counts by its ratio and not by its size; the arithmetic one of shares and of
    what may be 0. Only repetitions that have all these points count. With one repetition a side, how far the points
    differ stands in for how far repetitions do, as in `stats.means.without_repetition`.
    """
    pairs = {key: (old.values(key, name), new.values(key, name)) for key in shared}
    cut_off = {key for key in shared if is_cut_off(old, key, name) and is_cut_off(new, key, name)}
    keys = [key for key, (a, b) in pairs.items() if a and b and key not in cut_off]
    if not keys:
        return None
    whole = [set.intersection(*(set(pairs[key][side]) for key in keys)) for side in (0, 1)]
    in_pairs = is_paired and len(whole[0] & whole[1]) > 1
    repetitions = [sorted(whole[0] & whole[1] if in_pairs else each) for each in whole]
    if not repetitions[0] or not repetitions[1]:
        return None
    figures = [[value for key in keys for value in pairs[key][side].values()] for side in (0, 1)]
    is_geometric = min(map(min, figures)) > 0 and not metric(name).is_share
    rows = [
        [_centre([pairs[key][side][k] for key in keys], is_geometric) for k in repetitions[side]] for side in (0, 1)
    ]
    sides = [
        SideFigure(
            float(np.mean(row)), any(is_cut_off(side, k, name) for k in keys), int(_total(side, keys, name)), len(row)
        )
        for side, row in zip((old, new), rows, strict=True)
    ]
    off = _rounding(name, figures)
    if max(len(row) for row in rows) == 1 and len(keys) > 1:
        by_point = [[pairs[key][side][repetitions[side][0]] for key in keys] for side in (0, 1)]
        question = _question(name, sides, by_point, POINTS_METHOD, off)
        # Of the two scales the one on which points were averaged.
        scale: Scale = "ratio" if is_geometric else "difference"
        question = replace(question, evidence={scale: question.evidence[scale]} if question.evidence else {})
    else:
        question = _question(name, sides, rows, PAIRED_METHOD if in_pairs else WELCH_METHOD, off)
    of_all = f"of {len(shared)} points"
    notes = [
        question.why,
        f"{len(cut_off)} {of_all} left out: timeouts hide both sides" if cut_off else None,
        f"{len(shared) - len(keys) - len(cut_off)} {of_all} have no value on one side"
        if len(shared) > len(keys) + len(cut_off)
        else None,
    ]
    return replace(question, why="; ".join(note for note in notes if note) or None)


def _total(side: StudySide, points: Sequence[str], name: str) -> float:
    """The samples that a figure is of, over all repetitions."""
    return sum(sum(side.values(point, metric(name).counted_by or "n").values()) for point in points)


def _rounding(name: str, figures: Sequence[Sequence[float]]) -> tuple[float, float]:
    """By how much the figures of either side may be off in any case."""
    old, new = (rounding_ms(each) if is_rounded(name) else 0.0 for each in figures)
    return old, new


def _centre(values: Sequence[float], is_geometric: bool) -> float:
    return math.exp(float(np.log(values).mean())) if is_geometric else float(np.mean(values))


def _question(
    name: str, sides: Sequence[SideFigure], rows: Sequence[list[float]], method: str, rounding: tuple[float, float]
) -> Question:
    """`rows`: of each side a value a repetition or, by `POINTS_METHOD`, a point."""
    bound = (sides[0].is_lower_bound, sides[1].is_lower_bound)
    evidence: dict[Scale, Evidence] = {}
    if all(bound):
        why: str | None = BOTH_BOUNDS
    elif any(bound) and (name.endswith("sd_ms") or not is_of_run(name)):
        why = "timeouts leave the figure of one side without a meaning"
    else:
        evidence = over_repetitions(rows[0], rows[1], bound, paired=method != WELCH_METHOD, rounding=rounding)
        why = ONE_BOUND if any(bound) else None
        why = why if evidence else ONE_ONLY
    if metric(name).counted_by and evidence and sides[0].n and sides[1].n:
        # At least what single samples vary by, for a few repetitions are often all alike.
        of_samples = of_shares([(1.0, sides[1].value, sides[1].n), (-1.0, sides[0].value, sides[0].n)])
        evidence = {"difference": ByFormula(wider(of_samples, evidence["difference"].interval))}
        method = SHARE_METHOD
    if metric(name).is_share and evidence:
        evidence = {"difference": ByFormula(within(evidence["difference"].interval, -1, 1))}
    ratio = geometric_ratio(rows[0], rows[1])
    return Question(name, sides[0], sides[1], evidence, method, why=why, ratio_of_means=ratio)
