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
    received_bytes: int
    sent_bytes: int
    is_transaction: bool


def read(path: Path) -> list[Row]:
    with path.open(newline="") as file:
        return [
            Row(
                row["label"],
                row["success"] == "true",
                int(row["timeStamp"]),
                elapsed_ms(row),
                int(row["bytes"]),
                int(row["sentBytes"]),
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
    totals = {
        "rate_per_s": len(times),
        "completed_per_s": len(rows),
        "received_bytes_per_s": sum(row.received_bytes for row in rows),
        "sent_bytes_per_s": sum(row.sent_bytes for row in rows),
    }
    shown: dict[str, object] = {"n": len(rows), "failed": len(rows) - len(times)}
    shown |= {name: pytest.approx(total * 1000 / span_ms) if span_ms else None for name, total in totals.items()}
    if times:
        ranks = {f"p{p}": max(1, math.ceil(Fraction(p) / 100 * len(times))) for p in PERCENTILES}
        shown |= {name: times[rank - 1] for name, rank in ranks.items()}
        shown |= {"mean": pytest.approx(fmean(times)), "min": times[0], "max": times[-1]}
    return shown
