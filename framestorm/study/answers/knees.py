"""How throughput grows with load: where it stops following, and the scalability law that fits it."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from framestorm.report.units import plural
from framestorm.statistics.knee import Knee, knee
from framestorm.statistics.scalability import FEWEST_LOADS, fit_usl
from framestorm.study.answers import wording
from framestorm.study.answers.analysis import Study
from framestorm.study.answers.cells import Cell, groups
from framestorm.study.design.expectation import CONFIRMED, REFUTED, UNDECIDED, parse

WITHIN = 0.05
SERVED = "served_per_s"
# Factors that are load, and those of them over which a scalability law makes sense.
LOADS = ("users", "workers", "target.replicas", "rate_per_s")
CLOSED = LOADS[:3]
CURVE_POINTS = 33
Answer = dict[str, Any]


def judge_knee(study: Study, claim: Mapping[str, Any]) -> Answer:
    """A claim on where `metric` stops following a factor; where several lines are meant, each has to meet it."""
    asked, metric, expected = claim["knee"], str(claim["metric"]), parse(str(claim["expect"]))
    over, within = str(asked["over"]), float(asked.get("within_percent") or 100 * WITHIN) / 100
    cells = [Cell(point, None, point["factors"]) for point in study.matching(claim.get("where") or {})]
    lines = [[cells[place] for place in places] for places in groups(cells, over)]
    given = set(claim.get("where") or {}) | {over}
    parts, verdicts, notes = [], [], []
    found: list[Knee] = []
    n = 0
    for line in lines:
        name = wording.settings({k: v for k, v in line[0].factors.items() if k not in given or _is_list(claim, k)})
        rates = {cell: _values(study, cell, metric) for cell in line}
        empty = [cell for cell, values in rates.items() if not values]
        known = {cell: values for cell, values in rates.items() if values}
        if empty:
            notes.append(f"No figure at {'; '.join(cell.name() for cell in empty)}.")
        one = _knee(known, over, within)
        n = max([n, *map(len, known.values())])
        if one is None:
            parts.append(f"{name}: too few figures" if name else "too few figures")
            verdicts.append(UNDECIDED)
            continue
        found.append(one)
        low, high = _between(one)
        verdicts.append(UNDECIDED if empty else expected.verdict(low, high))
        is_last = one.follows_to == max(float(cell.factors[over]) for cell in known)
        parts.append(f"{f'{name}: ' if name else ''}{_in_words(one, over, is_last=is_last)}")
    where = f" at {wording.settings(claim['where'])}" if claim.get("where") else ""
    text = f"{wording.label(metric)}{where}, knee over {wording.factor(over)}"
    ends = [_between(one) for one in found]
    highs = [high for _, high in ends if math.isfinite(high)]
    ats = [one.at for one in found if one.at is not None]
    return {
        "verdict": _whole(verdicts),
        "sentence": f"{text[0].upper()}{text[1:]}: {'; '.join(parts) or 'this study has no such point'} "
        f"({plural(n, 'repetition')}, within {100 * within:g} %); expected {claim['expect']}.",
        "value": max(ats) if ats and len(ats) == len(found) else None,
        "low": min(one.follows_to for one in found) if found else None,
        "high": max(highs) if highs and len(highs) == len(found) else None,
        "kind": "knee", "metric": metric, "expect": claim["expect"], "n": n,
        "cells": [cell.name() for cell in cells],
        "method": "above the largest load that surely follows, by Student's or Welch's interval at each load",
        "effect": None, "notes": notes,
    }  # fmt: skip


def _is_list(claim: Mapping[str, Any], name: str) -> bool:
    return isinstance((claim.get("where") or {}).get(name), list)


def _whole(verdicts: Sequence[str]) -> str:
    if verdicts and all(verdict == CONFIRMED for verdict in verdicts):
        return CONFIRMED
    return REFUTED if REFUTED in verdicts else UNDECIDED


def _values(study: Study, cell: Cell, metric: str) -> tuple[float, ...]:
    rows = (study.by_cell.get((cell.point["id"], repetition)) for repetition in study.repetitions)
    return tuple(float(row["metrics"][metric]) for row in rows if row and row["metrics"].get(metric) is not None)


def _knee(rates: Mapping[Cell, Sequence[float]], over: str, within: float) -> Knee | None:
    loads = [float(cell.factors[over]) for cell in rates]
    if len(loads) < 2:
        return None
    try:
        return knee(loads, list(rates.values()), within, closed=over in CLOSED)
    except ValueError:
        return None


def _between(one: Knee) -> tuple[float, float]:
    """The smallest and the largest load at which the knee may lie; beyond those that were tried nothing is known."""
    return math.nextafter(one.follows_to, math.inf), math.inf if one.at is None else one.at


def _in_words(one: Knee, over: str, *, is_last: bool) -> str:
    name = wording.factor(over)
    if is_last:
        return f"it follows up to {one.follows_to:g}, the largest {name} tried"
    follows = f"it follows up to {one.follows_to:g}" if one.follows_to else "that it follows is sure nowhere"
    if one.at is None:
        return f"{follows}; whether it falls short at the largest {name} is not sure"
    return f"{follows}, and falls short from {one.at:g} on"


def scalability(study: Study) -> list[dict[str, Any]]:
    """For every line of throughput over users, workers, replicas or rate: the law's parameters, and the knee."""
    metric = "throughput_per_s" if "throughput_per_s" in study.derived else SERVED
    found = []
    for over in (name for name in LOADS if len(_numbers(study, name)) > 1):
        cells = [
            Cell(point, None, point["factors"]) for point in study.points if _is_number(point["factors"].get(over))
        ]
        if over == "target.replicas" and (users := _numbers(study, "users")):
            # One load says how replicas scale: the largest.
            cells = [cell for cell in cells if cell.factors.get("users") == max(users)]
        for places in groups(cells, over):
            rates = {cells[place]: _values(study, cells[place], metric) for place in places}
            rates = {cell: values for cell, values in rates.items() if values}
            line = _line(rates, over)
            if line:
                rest = {name: value for name, value in next(iter(rates)).factors.items() if name != over}
                found.append({"over": over, "metric": metric, "factors": rest} | line)
    return found


def _line(rates: Mapping[Cell, Sequence[float]], over: str) -> dict[str, Any] | None:
    if len(rates) < FEWEST_LOADS:
        return None
    one = _knee(rates, over, WITHIN)
    pairs = [(float(cell.factors[over]), value) for cell, values in rates.items() for value in values]
    fit = None
    if over in CLOSED and len({load for load, _ in pairs}) >= FEWEST_LOADS and all(value > 0 for _, value in pairs):
        fit = fit_usl([load for load, _ in pairs], [value for _, value in pairs])
    if one is None and fit is None:
        return None
    loads = sorted({load for load, _ in pairs})
    curve = np.geomspace(loads[0], loads[-1], CURVE_POINTS) if fit else np.empty(0)
    return {
        "loads": loads,
        "knee": one.as_json() if one else None,
        "usl": fit.as_json() if fit else None,
        "curve": {"loads": curve.tolist(), "throughput": fit.throughput(curve).tolist()} if fit else None,
    }


def _numbers(study: Study, factor: str) -> list[float]:
    levels = {point["factors"].get(factor) for point in study.points}
    return sorted(float(level) for level in levels if level is not None and _is_number(level))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
