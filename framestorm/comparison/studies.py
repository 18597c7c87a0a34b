"""Studies against studies, or levels of one: point by point, and over all points together."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import polars as pl

from framestorm.comparison.contrast import Contrast, Missing, Scale, Side
from framestorm.comparison.evidence import ByFormula, Ends, Evidence, wider, within
from framestorm.comparison.metrics import metric
from framestorm.comparison.repetitions import geometric_ratio, over_repetitions
from framestorm.comparison.sides import StudySide
from framestorm.errors import FramestormError
from framestorm.report.units import plural
from framestorm.statistics.rounding import hidden_ms
from framestorm.statistics.shares import newcombe
from framestorm.study.design.metrics import BY_NAME, COUNTED_BY, TIMES_MS

PAIRED_METHOD = "Student's interval of the pairs of each repetition; ratios of geometric means"
POINTS_METHOD = "one repetition a side: Student's interval of the pairs of each point; ratios of geometric means"
WELCH_METHOD = "Welch's interval over repetitions; ratios of geometric means"
SHARE_METHOD = "of success the wider of that and Newcombe's interval over samples"
ONE_ONLY = "with one repetition a side nothing is known of how far repetitions vary"


@dataclass(frozen=True)
class Compared:
    """Two studies compared: each metric over all points that both have, and at each; and the points of one only.

    points: empty where there is just one, which `overall` is of.
    missing: what the new side has no value of, and the old one has.
    pairs: what belongs together over all points; None: nothing, the sides ran them in other orders, or only once.
    """

    overall: list[Contrast]
    points: list[Contrast]
    shared: list[str]
    only_old: list[str]
    only_new: list[str]
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
    runs = side.results.filter(pl.col("point") == side.points[point]["id"]).height
    right, n = (int(sum(side.values(point, each).values())) for each in ("ok", "n"))
    why = f"{plural(runs, 'complete run')} with {right} right answers to {plural(n, 'sample')}"
    return Missing(name, why if runs else "no run of it is complete", point)


def is_cut_off(side: StudySide, point: str, name: str) -> bool:
    """Whether time-outs made this figure of a point a lower bound, or took its meaning, in any repetition."""
    if "cut_off" not in side.results.columns:
        return False
    cells = side.results.filter(pl.col("point") == side.points[point]["id"])["cut_off"].cast(pl.String).drop_nulls()
    return any(name in cell.split() for cell in cells)


def _at(old: StudySide, new: StudySide, point: str, name: str, is_paired: bool) -> Contrast | None:
    """One metric at one point; None if a side has no value of it."""
    values = (old.values(point, name), new.values(point, name))
    if not values[0] or not values[1]:
        return None
    known = [set(each) for each in values]
    in_pairs = is_paired and len(known[0] & known[1]) > 1
    rows = [[each[k] for k in sorted(known[0] & known[1] if in_pairs else each)] for each in values]
    totals = [_total(side, [point], name) for side in (old, new)]
    sides = [
        Side(float(np.mean(row)), is_cut_off(side, point, name), int(total), len(row))
        for side, row, total in zip((old, new), rows, totals, strict=True)
    ]
    method = PAIRED_METHOD if in_pairs else WELCH_METHOD
    return _contrast(name, sides, rows, method, _hidden(name, rows))


def _overall(old: StudySide, new: StudySide, name: str, shared: Sequence[str], is_paired: bool) -> Contrast | None:
    """One metric over all points of which something is known on both sides: of each repetition the mean over points.

    The geometric mean, so that each point counts by its ratio and not by its size; the arithmetic one of shares and of
    what may be 0. Only repetitions that have all these points count. With one repetition a side, how far the points
    differ stands in for how far repetitions do, as in `statistics.means.without_repetition`.
    """
    pairs = {key: (old.values(key, name), new.values(key, name)) for key in shared}
    hidden = {key for key in shared if is_cut_off(old, key, name) and is_cut_off(new, key, name)}
    keys = [key for key, (a, b) in pairs.items() if a and b and key not in hidden]
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
        Side(float(np.mean(row)), any(is_cut_off(side, k, name) for k in keys), int(_total(side, keys, name)), len(row))
        for side, row in zip((old, new), rows, strict=True)
    ]
    off = _hidden(name, figures)
    if max(len(row) for row in rows) == 1 and len(keys) > 1:
        by_point = [[pairs[key][side][repetitions[side][0]] for key in keys] for side in (0, 1)]
        made = _contrast(name, sides, by_point, POINTS_METHOD, off)
        # Of the two scales the one on which points were averaged.
        scale: Scale = "ratio" if is_geometric else "difference"
        made = replace(made, evidence={scale: made.evidence[scale]} if made.evidence else {})
    else:
        made = _contrast(name, sides, rows, PAIRED_METHOD if in_pairs else WELCH_METHOD, off)
    of_all = f"of {len(shared)} points"
    notes = [
        made.why,
        f"{len(hidden)} {of_all} left out: time-outs hide both sides" if hidden else None,
        f"{len(shared) - len(keys) - len(hidden)} {of_all} have no value on one side"
        if len(shared) > len(keys) + len(hidden)
        else None,
    ]
    return replace(made, why="; ".join(note for note in notes if note) or None)


def _total(side: StudySide, points: Sequence[str], name: str) -> float:
    """The samples that a figure is of, over all repetitions."""
    return sum(sum(side.values(point, COUNTED_BY.get(name, "n")).values()) for point in points)


def _hidden(name: str, figures: Sequence[Sequence[float]]) -> tuple[float, float]:
    """By how much the figures of either side may be off at any rate."""
    old, new = (hidden_ms(each) if name in TIMES_MS else 0.0 for each in figures)
    return old, new


def _centre(values: Sequence[float], is_geometric: bool) -> float:
    return math.exp(float(np.log(values).mean())) if is_geometric else float(np.mean(values))


def _contrast(
    name: str, sides: Sequence[Side], rows: Sequence[list[float]], method: str, hidden: tuple[float, float]
) -> Contrast:
    """`rows`: of each side a value a repetition or, by `POINTS_METHOD`, a point."""
    bound = (sides[0].is_bound, sides[1].is_bound)
    evidence: dict[Scale, Evidence] = {}
    if all(bound):
        why: str | None = "time-outs hide the figure of both sides"
    elif any(bound) and (name.endswith("sd_ms") or name not in BY_NAME):
        why = "time-outs leave the figure of one side without a meaning"
    else:
        evidence = over_repetitions(rows[0], rows[1], bound, paired=method != WELCH_METHOD, hidden=hidden)
        why = "time-outs hide the figure of one side, which is a lower bound" if any(bound) else None
        why = why if evidence else ONE_ONLY
    if name in COUNTED_BY and evidence and sides[0].n and sides[1].n:
        evidence = {"difference": ByFormula(wider(_newcombe(sides), evidence["difference"].interval))}
        method = SHARE_METHOD
    if metric(name).is_share and evidence:
        evidence = {"difference": ByFormula(within(evidence["difference"].interval, -1, 1))}
    ratio = geometric_ratio(rows[0], rows[1])
    return Contrast(name, sides[0], sides[1], evidence, method, why=why, own_ratio=ratio)


def _newcombe(sides: Sequence[Side]) -> Callable[[float], Ends]:
    """What single samples vary by, for a few repetitions are often all alike."""
    return lambda level: newcombe((sides[1].value, sides[1].n), (sides[0].value, sides[0].n), level)
