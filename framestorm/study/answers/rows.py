"""A study's runs with their figures, and results.csv: a row a point and repetition, made of the run folders alone."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from framestorm.model.files import replacing
from framestorm.model.metric import METRICS
from framestorm.model.summary import Doubt
from framestorm.stats.estimate import Bound
from framestorm.study.design.folder import COMPLETE, Point, RunLine, StudyRecord

Number = float | int | bool | None
FILE = "results.csv"


@dataclass(frozen=True)
class RunFigures:
    """What one run gave.

    metrics: every metric by name, None where the run has none.
    bounds: those that timeouts cut off: "lower" for a lower bound, "unsure" for a figure that may lie on either side.
    doubts: kinds of grave warnings of the run's own report.
    """

    metrics: dict[str, Number] = field(default_factory=dict)
    bounds: dict[str, Bound] = field(default_factory=dict)
    doubts: tuple[Doubt, ...] = ()


@dataclass(frozen=True)
class ResultRow:
    """A run of a study: its point, how it ended, and its figures if it is complete."""

    point: Point
    line: RunLine
    figures: RunFigures = RunFigures()

    @property
    def is_complete(self) -> bool:
        return self.line.state == COMPLETE

    @property
    def metrics(self) -> dict[str, Number]:
        return self.figures.metrics

    @property
    def bounds(self) -> dict[str, Bound]:
        return self.figures.bounds

    def value(self, metric: str) -> float | None:
        """A metric as a number; None where the run has none."""
        value = self.metrics.get(metric)
        return None if value is None else float(value)

    def count(self, metric: str) -> int:
        """A metric that counts; 0 where the run has none."""
        return int(self.metrics.get(metric) or 0)


def write_rows(study_dir: Path, study: StudyRecord, rows: Sequence[ResultRow]) -> Path:
    """Make results.csv: whole or not at all.

    Numbers are written so that reading them gives the same number again. A metric that is named as a factor has no
    column of its own. After the metrics of the catalogue come those of further figures, the derived ones, and
    `cut_off`: the metrics, by a space between them, that timeouts made lower bounds, or left without a meaning.
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
