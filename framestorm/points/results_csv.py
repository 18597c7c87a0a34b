"""A study's runs with their figures, and results.csv: a row a point and repetition."""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, unquote

from framestorm.model.files import replacing
from framestorm.model.metric import METRICS
from framestorm.model.summary import Doubt
from framestorm.model.units import as_text
from framestorm.points.folder import COMPLETE, Point, RunLine, StudyRecord
from framestorm.stats.estimate import EstimateBound

FigureValue = float | int | bool | None
FILE = "results.csv"


@dataclass(frozen=True)
class RunFigures:
    """The figures of one run.

    metrics: every metric by name, None where the run has none.
    bounds: metrics affected by timeouts: "lower" for a lower bound, "unsure" if the true figure may lie on either side.
    doubts: kinds of serious warnings in the run's own report.
    """

    metrics: dict[str, FigureValue] = field(default_factory=dict)
    bounds: dict[str, EstimateBound] = field(default_factory=dict)
    doubts: tuple[Doubt, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ResultRow(RunFigures):
    """A run of a study: its point, how it ended, and its figures if it is complete."""

    point: Point
    line: RunLine

    @property
    def is_complete(self) -> bool:
        return self.line.state == COMPLETE

    def value(self, metric: str) -> float | None:
        """Return a metric as a number; None where the run has none."""
        value = self.metrics.get(metric)
        return None if value is None else float(value)

    def count(self, metric: str) -> int:
        """Return a metric that counts; 0 where the run has none."""
        return int(self.metrics.get(metric) or 0)


def write_rows(study_dir: Path, study: StudyRecord, rows: Sequence[ResultRow]) -> Path:
    """Write results.csv, completely or not at all.

    Numbers are written so that reading them gives the same number again. A metric that is named as a factor has no
    column of its own. After the metrics of the catalogue come those of further figures, the derived ones, and
    `cut_off`: the metrics that timeouts made lower bounds, or left without a meaning (see `names_cut_off`).
    """
    factors = list(study.definition.factors)
    columns = ["study", "point", *factors, "repetition", "run", "state", "reason"]
    further = sorted({name for row in rows for name in row.metrics} - {*METRICS, *study.definition.derived})
    columns += [name for name in (*METRICS, *further, *study.definition.derived) if name not in columns] + ["cut_off"]
    path = study_dir / FILE
    with replacing(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        for row in rows:
            of_row = {
                "study": study.name, "point": row.point.id, "repetition": row.line.repetition, "run": row.line.run,
                "state": row.line.state, "reason": row.line.reason,
                "cut_off": " ".join(quote(name) for name in columns if name in row.bounds),
            }  # fmt: skip
            cells = {**row.metrics, **of_row, **row.point.factors}
            writer.writerow([as_text(cell) if isinstance(cell, bool) else cell for cell in map(cells.get, columns)])
    return path


def names_cut_off(row: Mapping[str, str]) -> frozenset[str]:
    """Return the metrics in a row's column `cut_off`: a space between them, and %20 for one within a name."""
    return frozenset(map(unquote, row.get("cut_off", "").split()))
