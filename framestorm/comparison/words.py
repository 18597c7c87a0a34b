"""Contrasts as people read them, from their JSON: ratios, intervals, sentences, and the table of the terminal."""

from collections.abc import Mapping, Sequence
from typing import Any

from framestorm.comparison.contrast import NEUTRAL, NONE_SHOWN, NOT_COMPARED
from framestorm.comparison.metrics import metric
from framestorm.report import units

BOUND_SIGNS = {
    "exact": "",
    "at least": "\N{GREATER-THAN OR EQUAL TO}\u00a0",
    "at most": "\N{LESS-THAN OR EQUAL TO}\u00a0",
}
COLUMN_GAP = "  "
VERDICT_WORDS = {
    "regression": "Regression",
    "missing": "Cannot be compared",
    "none": "No regression shown",
    "undecided": "Undecided",
}


def ratio_text(ratio: float) -> str:
    """A ratio with three digits after the point where it is about 1, else three significant ones."""
    return f"{ratio:.3f}" if 0.5 < ratio < 2 else units.significant(ratio)


def change_text(row: Mapping[str, Any]) -> str:
    """The ratio or difference, with a sign where it is a bound only."""
    if row["bound"] == "unknown":
        return units.NONE
    value = row[row["scale"]]["value"]
    text = ratio_text(value) if row["scale"] == "ratio" else metric(row["metric"]).change_text(value)
    return BOUND_SIGNS[row["bound"]] + text


def ends_text(row: Mapping[str, Any]) -> str:
    """The 95 % interval; empty without one, … for an end that is not known."""
    low, high = (row[row["scale"]][end] for end in ("low", "high"))
    text = ratio_text if row["scale"] == "ratio" else metric(row["metric"]).change_text
    return units.ends(*(None if end is None else text(end) for end in (low, high)))


def interval_text(row: Mapping[str, Any]) -> str:
    """`1.83 times (1.70 to 1.95)`, with a dash for the "to"."""
    times = " times" if row["scale"] == "ratio" and row["bound"] != "unknown" else ""
    ends = ends_text(row)
    return f"{change_text(row)}{times}" + (f" ({ends})" if ends else "")


def figure_text(row: Mapping[str, Any], side: str) -> str:
    """One side's figure."""
    sign = "> " if row[side]["is_lower_bound"] else ""
    return sign + metric(row["metric"]).text(row[side]["value"])


def claim_text(row: Mapping[str, Any]) -> str:
    """The claim; where the interval alone would bear one, that it does not stand among so many."""
    low, high = (row[row["scale"]][end] for end in ("low", "high"))
    neutral = NEUTRAL[row["scale"]]
    alone = (low is not None and low > neutral) or (high is not None and high < neutral)
    return f"{NONE_SHOWN} among so many" if row["claim"] == NONE_SHOWN and alone else str(row["claim"])


def sentence(row: Mapping[str, Any], old: str, new: str) -> str:
    """One contrast as a sentence, such as "Round trip, median: B has 1.83 times A's (1.70 to 1.95): slower"."""
    words = row["words"]
    if row["claim"] == NOT_COMPARED:
        return f"{words}: not compared, {row['why'] or 'nothing is known of its spread'}."
    if row["scale"] == "ratio":
        head = f"{words}: {new} has {change_text(row)} times {old}'s ({ends_text(row)})"
    else:
        head = f"{words}: {new} has {change_text(row)} against {old} ({ends_text(row)})"
    return f"{head}: {claim_text(row)}."


def table(rows: Sequence[Mapping[str, Any]], old: str, new: str) -> str:
    """The contrasts as aligned columns."""
    lines = [["", old, new, f"{new} against {old}", "95 % interval", ""]]
    lines += [
        [
            row["words"],
            figure_text(row, "old"),
            figure_text(row, "new"),
            change_text(row),
            ends_text(row),
            claim_text(row),
        ]
        for row in rows
    ]
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    return "\n".join(
        COLUMN_GAP.join(
            cell.ljust(width) if column in (0, 5) else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ).replace(units.NBSP, " ")


def terminal(summary: Mapping[str, Any]) -> str:
    """What the terminal says: the sides, a table for each comparison, what was set otherwise, and the verdict."""
    parts = ["\n".join(f"{side['label']}  {side['name']}: {side['says']}" for side in summary["sides"])]
    for each in summary["comparisons"]:
        parts.append(table(each["overall"], each["against"], each["label"]))
        changed = [change["what"] for change in each["changes"]]
        parts.append(f"Set otherwise in {each['label']}: {', '.join(changed) or 'nothing that is recorded'}.")
        parts.append("\n".join(f"Note: {sentence}" for sentence in each["warnings"]))
    parts.append(f"{VERDICT_WORDS[summary['verdict']['verdict']]}: {summary['verdict']['text']}.")
    return "\n\n".join(part for part in parts if part).replace(units.NBSP, " ")
