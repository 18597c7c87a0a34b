"""A second count of JMeter's CSV, by another way than the kit's: plain csv and sorting."""

import csv
import math
from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from statistics import fmean

import pytest

PERCENTILES = ("50", "90", "95", "99")


@dataclass(frozen=True)
class Row:
    """One row of a JTL file."""

    label: str
    is_ok: bool
    start_ms: int
    elapsed_ms: float
    is_transaction: bool


def read(path: Path) -> list[Row]:
    with path.open(newline="") as file:
        return [
            Row(
                row["label"],
                row["success"] == "true",
                int(row["timeStamp"]),
                elapsed_ms(row),
                row["responseMessage"].startswith("Number of samples in transaction"),
            )
            for row in csv.DictReader(file)
        ]


def elapsed_ms(row: dict[str, str]) -> float:
    """By the kit's column if it is of this row and not made of whole milliseconds of pauses."""
    whole, us = int(row["elapsed"]), row.get("elapsed_us") or "null"
    is_exact = us.isdigit() and row["IdleTime"] == "0"
    return int(us) / 1000 if is_exact and abs(int(us) - 1000 * whole) < 1000 else whole


def by_label(rows: list[Row]) -> dict[str, list[Row]]:
    """The rows of each label."""
    labels = defaultdict(list)
    for row in rows:
        labels[row.label].append(row)
    return dict(labels)


def counts(rows: list[Row]) -> dict[str, tuple[int, int]]:
    """Samples and errors of each label."""
    return {label: (len(of), sum(not row.is_ok for row in of)) for label, of in by_label(rows).items()}


def figures(rows: list[Row]) -> dict[str, object]:
    """What summary.json has of one label: times are those of samples without error."""
    times = sorted(row.elapsed_ms for row in rows if row.is_ok)
    span_ms = max(row.start_ms + row.elapsed_ms for row in rows) - min(row.start_ms for row in rows)
    if not times:
        return {"n": len(rows), "failed": len(rows), "rate_per_s": 0 if span_ms else None}
    ranks = {f"p{p}": max(1, math.ceil(Fraction(p) / 100 * len(times))) for p in PERCENTILES}
    return {
        "n": len(rows),
        "failed": len(rows) - len(times),
        "rate_per_s": pytest.approx(1000 * len(times) / span_ms) if span_ms else None,
        "mean": pytest.approx(fmean(times)),
        "min": times[0],
        "max": times[-1],
        **{name: times[rank - 1] for name, rank in ranks.items()},
    }
