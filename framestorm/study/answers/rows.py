"""A study's runs with their figures, and results.csv: a row a point and repetition, made of the run folders alone."""

import csv
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from framestorm.model.files import replacing
from framestorm.model.metric import METRICS
from framestorm.model.summary import Doubt
from framestorm.stats.estimate import Bound
from framestorm.study.design.folder import COMPLETE, Point, StudyRecord

Number = float | int | bool | None
FILE = "results.csv"


@dataclass
class ResultRow:
    """A run of a study: how it ended, and its figures if it is complete.

    metrics: by name, None where the run has none; bounds: of those that timeouts cut off, see `Estimate`.
    doubts: kinds of grave warnings of the run's own report.
    """

    point: Point
    repetition: int
    run: str
    state: Literal["complete", "failed"]
    reason: str | None
    order: int
    started_ms: float
    ended_ms: float
    engine_ms: float
    metrics: dict[str, Number] = field(default_factory=dict)
    bounds: dict[str, Bound] = field(default_factory=dict)
    doubts: tuple[Doubt, ...] = ()

    @property
    def is_complete(self) -> bool:
        return self.state == COMPLETE

    def value(self, metric: str) -> float | None:
        """A metric as a number; None where the run has none."""
        value = self.metrics.get(metric)
        return None if value is None else float(value)

    def count(self, metric: str) -> int:
        """A metric that counts; 0 where the run has none."""
        return int(self.metrics.get(metric) or 0)


def write_rows(study_dir: Path, study: StudyRecord, rows: Iterable[ResultRow]) -> Path:
    """Make results.csv: whole or not at all.

    Numbers are written so that reading them gives the same number again. A metric that is named as a factor has no
    column of its own. After the metrics of the catalogue come those of further figures, the derived ones, and
    `cut_off`: the metrics, by a space between them, that timeouts made lower bounds, or left without a meaning.
    """
    rows = list(rows)
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
                "study": study.name, "point": row.point.id, "repetition": row.repetition, "run": row.run,
                "state": row.state, "reason": row.reason,
                "cut_off": " ".join(name for name in columns if name in row.bounds),
            }  # fmt: skip
            cells = {**row.metrics, **of_row, **row.point.factors}
            writer.writerow([_cell(cells.get(name)) for name in columns])
    return path


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if isinstance(value, float) else str(value)
