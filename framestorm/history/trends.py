"""Runs of the same plan, target and load over time, and where the level of a figure changed."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from framestorm.model import units
from framestorm.model.headline import FIGURES, Headline, LoadKey
from framestorm.model.metric import Metric, metric
from framestorm.stats.change_points import change_points


@dataclass(frozen=True)
class LevelChange:
    """A figure whose level changed: before and after are the medians of the runs up to the next change.

    first: the number of the first run after it, among those of the trend; last: of the last run before the next change.
    """

    metric: str
    first: int
    last: int
    before: float
    after: float
    p_value: float

    @property
    def about(self) -> Metric:
        return metric(self.metric)

    @property
    def is_worse(self) -> bool:
        """Whether it changed for the worse."""
        return (self.after > self.before) == (self.about.worse == "higher")

    @property
    def text(self) -> str:
        """Return by how much it changed: +5.1 %, or for shares in percentage points."""
        if self.about.is_share or not self.before:
            return self.about.change_text(self.after - self.before)
        change = 100 * (self.after / self.before - 1)
        sign = "+" if change > 0 else "\N{MINUS SIGN}"
        return f"{sign}{units.significant(abs(change))}{units.NBSP}%"


@dataclass(frozen=True)
class Trend:
    """The runs of one plan, target and load, in the order of their starts; changes in the order of time."""

    key: LoadKey
    runs: list[Headline]
    changes: list[LevelChange]

    def last_changes(self) -> dict[str, LevelChange]:
        """Return the last change of each figure."""
        return {change.metric: change for change in self.changes}

    def changes_at(self, number: int) -> list[LevelChange]:
        """Return the changes that a run is the first after."""
        return [change for change in self.changes if change.first == number]


def trends(headlines: Iterable[Headline], ignored: Collection[str] = ()) -> list[Trend]:
    """Return the trends of headlines in the order of their starts; the one with the latest run comes first.

    ignored: the names of settings that keep no runs apart.
    """
    by_key: dict[LoadKey, list[Headline]] = {}
    for each in headlines:
        by_key.setdefault(each.key.without(ignored), []).append(each)
    made = [Trend(key, runs, sorted(_changes(runs), key=lambda each: each.first)) for key, runs in by_key.items()]
    return sorted(made, key=lambda trend: -(trend.runs[-1].started_ms or 0.0))


def _changes(runs: list[Headline]) -> list[LevelChange]:
    """Return the changes of all figures; a run of which only a part was measured does not count."""
    changes = []
    for name in FIGURES:
        known = [(number, run.figures[name]) for number, run in enumerate(runs) if run.is_whole and name in run.figures]
        values = [figure.value for _, figure in known]
        points = change_points(values)
        bounds = [0, *(point.at for point in points), len(values)]
        levels = [float(np.median(values[low:high])) for low, high in pairwise(bounds) if points]
        changes += [
            LevelChange(name, known[point.at][0], known[bounds[place + 1] - 1][0], levels[place - 1], levels[place],
                        point.p_value)
            for place, point in enumerate(points, 1)
        ]  # fmt: skip
    return changes
