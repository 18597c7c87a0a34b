"""Gives access to a study by its points: the figures of its runs, and their samples."""

from collections import Counter
from collections.abc import Mapping, Sequence

from framestorm.model.metric import RESPONSE, split_label
from framestorm.model.metric import metric as metric_of
from framestorm.model.study import Derived, PointsWhere, matches
from framestorm.model.study_summary import Basis
from framestorm.model.summary import Doubt
from framestorm.points.derived import points_behind
from framestorm.points.folder import Point, StudyFolder
from framestorm.points.results_csv import ResultRow
from framestorm.points.run_figures import result_rows
from framestorm.results.samples import OrderedTimes, Samples, read_samples


class StudyResults:
    """A study's record, its runs with their figures, and their samples."""

    def __init__(self, folder: StudyFolder) -> None:
        self.folder = folder.path
        self.repeated = folder.repeated()
        self.record = folder.record
        self.points = self.record.points
        self.rows = result_rows(folder)
        self.derived: Mapping[str, Derived] = self.record.definition.derived
        self.complete = [row for row in self.rows if row.is_complete]
        self.by_cell = {(row.point.id, row.line.repetition): row for row in self.complete}
        self.repetitions = sorted({row.line.repetition for row in self.complete})

    def samples(self, row: ResultRow, metric: str = "n") -> Samples:
        """Return the samples of a complete run that a metric is of: those of its label, or the main ones."""
        definition, label = self.record.definition, split_label(metric)[0]
        return read_samples(self.folder / row.line.run, definition.warm_up_s, definition.temperature, label)

    def times(self, rows: Sequence[ResultRow], metric: str) -> OrderedTimes:
        """Return the times of complete runs together that a metric is a statistic of."""
        series = metric_of(metric).series or RESPONSE
        return OrderedTimes.together([self.samples(row, metric).times(series) for row in rows])

    def matching(self, where: PointsWhere) -> list[Point]:
        """Return the points with these levels; a list of levels stands for any of them."""
        return [point for point in self.points if matches(point.factors, where)]

    def runs(self, point: Point, repetitions: Sequence[int]) -> list[ResultRow]:
        """Return the complete runs of a point in these repetitions."""
        return [row for r in repetitions if (row := self.by_cell.get((point.id, r))) is not None]

    def basis(self, points: Sequence[Point], metric: str, repetitions: Sequence[int]) -> Basis:
        """Return the runs that a metric at these points is made of, with those that it is compared with."""
        behind = {each.id for point in points for each in points_behind(self.derived, metric, point, self.points)}
        of_points = [row for row in self.rows if row.point.id in behind]
        complete = [row for row in of_points if row.is_complete and row.line.repetition in repetitions]
        return Basis(len(complete), sum(not row.is_complete for row in of_points), count_doubts(complete))


def count_doubts(rows: Sequence[ResultRow]) -> dict[Doubt, int]:
    """Return how many of these runs have each kind of doubt."""
    return dict(Counter(doubt for row in rows for doubt in dict.fromkeys(row.doubts)))
