"""Claims in words: what was compared, the figure with its interval, and what a reader has to know of it."""

import math
from collections.abc import Mapping
from typing import Any

from framestorm.report.units import plural, significant
from framestorm.study.answers import wording
from framestorm.study.answers.cells import Cell, Table
from framestorm.study.design.expectation import Expectation

MAX_NAMED = 4
# By whether the lower and the upper end are not known.
CUT_NOTES = {
    (False, False): "Some times were cut off by time-outs; of the middle of a trend that changes nothing.",
    (False, True): "Some times were cut off by time-outs: the true figure is larger, by how much is not known.",
    (True, False): "Some times were cut off by time-outs: the true figure is smaller, by how much is not known.",
    (True, True): "Some times were cut off by time-outs: the true figure may be larger or smaller.",
}


def kind(claim: Mapping[str, Any]) -> str:
    what = str(claim.get("as") or "ratio") if claim.get("compare") else "value"
    return f"trend of the {what}" if claim.get("trend") else what


def sentence(
    claim: Mapping[str, Any],
    table: Table,
    expected: Expectation,
    figure: tuple[float, float | None, float | None],
    effect: Mapping[str, Any] | None,
) -> str:
    metric = str(claim["metric"])
    shown = [figure_text(claim, value) if value is not None else "…" for value in figure]
    interval = f" [{shown[1]}, {shown[2]}]" if figure[1:] != (None, None) else ""
    rests = ["95 %"] if interval else ["no interval"]
    rests.append(plural(len(table.repetitions), "repetition"))
    if len(table.cells) > 1:
        rests.append(plural(len(table.cells), "pair of points" if claim.get("compare") else "point", _many(claim)))
    figure_and_interval = f"{shown[0]}{suffix(claim)}{interval}"
    text = f"{subject(claim)}: {figure_and_interval} ({', '.join(rests)}); expected {_expected(claim, metric)}."
    if effect:
        size = f" ({effect['size']})" if effect["size"] else ""
        sign = "\N{MINUS SIGN}" if effect["value"] < 0 else ""
        text += f" {effect['name']} {sign}{significant(abs(effect['value']))}{size}, of the {effect['of']}."
    return f"{claim['say']} {text}" if claim.get("say") else text


def _many(claim: Mapping[str, Any]) -> str:
    return "pairs of points" if claim.get("compare") else "points"


def subject(claim: Mapping[str, Any]) -> str:
    """What the figure is of: `fork against kept-alive at users=1, mean round trip`."""
    where = f" at {wording.settings(claim['where'])}" if claim.get("where") else ""
    what = wording.label(claim["metric"])
    if claim.get("compare"):
        factor, (first, second) = next(iter(claim["compare"].items()))
        sides = [wording.level(level) for level in (first, second)]
        if not all(map(wording.speaks, sides)):
            sides[0] = f"{wording.factor(factor)}={sides[0]}"
        what = f"{sides[0]} against {sides[1]}{where}, {what}"
    else:
        what = f"{what}{where}"
    if claim.get("trend"):
        what += f", trend over {wording.factor(claim['trend'])}"
    return what[0].upper() + what[1:] if what[0].islower() and not claim.get("compare") else what


def figure_text(claim: Mapping[str, Any], value: float) -> str:
    """The figure as a number with the unit that all three of value, low and high carry."""
    if claim.get("compare") and (claim.get("as") or "ratio") == "ratio":
        sign = "\N{MINUS SIGN}" if value < 0 else "+" if claim.get("trend") else ""
        return f"{sign}{significant(abs(value))}" + ("\N{NO-BREAK SPACE}%" if claim.get("trend") else "")
    return wording.show(claim["metric"], value)


def suffix(claim: Mapping[str, Any]) -> str:
    if claim.get("trend"):
        return f" for each unit of {wording.factor(claim['trend'])}"
    return " times" if claim.get("compare") and (claim.get("as") or "ratio") == "ratio" else ""


def _expected(claim: Mapping[str, Any], metric: str) -> str:
    text = str(claim["expect"]).strip()
    is_plain = not claim.get("trend") and kind(claim) != "ratio"
    unit = {"ms": "ms", "s": "s", "%": "%", "1/s": "a second"}.get(wording.unit(metric), "")
    return f"{text} {unit}" if is_plain and unit and "within" not in text else text


def notes(claim: Mapping[str, Any], table: Table, ends: tuple[float | None, float | None], method: str) -> list[str]:
    """What a reader has to know of the figure, in sentences."""
    found = []
    if table.empty:
        found.append(f"No figure of {named(table.empty)}: the claim stays undecided.")
    if table.cut_off:
        found.append(f"Without {named(table.cut_off)}, where time-outs cut the spread off.")
    if any(table.bounds):
        found.append(CUT_NOTES[ends[0] is None, ends[1] is None])
    if any(math.inf in hidden for hidden in table.hidden):
        found.append("Times in whole milliseconds leave it open.")
    if table.filled:
        found.append(
            f"{plural(table.filled, 'missing value')} of {table.values.size} filled in by the means of point and "
            "repetition (Yates)."
        )
    if table.left_out:
        which = ", ".join(map(str, table.left_out))
        found.append(f"Left out, for they have half of the points or fewer: repetition {which}.")
    if ends == (None, None) and len(table.repetitions) == 1 and not any(table.bounds):
        found.append("One repetition gives no interval of this figure: repeat the study.")
    elif len(table.repetitions) == 1:
        found.append(
            "One repetition: how far the points differ stands in for how far repeated runs would."
            if method.startswith("Student")
            else "One repetition: the interval is of the samples within each run, not of repeated runs."
        )
    return found


def named(cells: list[Cell]) -> str:
    names = "; ".join(cell.name() for cell in cells[:MAX_NAMED])
    return names + (f" and {len(cells) - MAX_NAMED} more" if len(cells) > MAX_NAMED else "")
