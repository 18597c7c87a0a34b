"""Runs of the same plan, target and load over time, and where the level of a figure changed."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import pairwise
from math import isclose
from statistics import fmean, median

from framestorm.model import units
from framestorm.model.headline import FIGURES, Headline, LoadKey
from framestorm.model.metric import Metric, metric
from framestorm.stats.change_points import LONGEST, change_points


@dataclass(frozen=True)
class LevelChange:
    """A figure whose level changed: before and after are the medians of the runs between changes, or their means.

    begin: the number of the first run of the level before, among those of the trend; first: of the first run after the
    change; last: of the last run before the next one.
    """

    metric: str
    begin: int
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
        points, begin = change_points(values), max(0, len(values) - LONGEST)
        bounds = [begin, *(point.at for point in points), len(values)]
        levels = _levels([values[low:high] for low, high in pairwise(bounds)]) if points else []
        steps = [
            (point, before, after)
            for point, (before, after) in zip(points, pairwise(levels), strict=True)
            if not isclose(before, after)
        ]
        bounds = [begin, *(point.at for point, _, _ in steps), len(values)]
        changes += [
            LevelChange(
                name, known[low][0], known[point.at][0], known[high - 1][0], before, after, p_value=point.p_value
            )
            for (point, before, after), low, high in zip(steps, bounds, bounds[2:], strict=False)
        ]
    return changes


def _levels(parts: list[list[float]]) -> list[float]:
    """Return the medians of parts of a series; their means where two neighbours have the same median.

    Success rates of 100 % have a median of 100 % even if every third run has errors.
    """
    medians = [median(part) for part in parts]
    if any(isclose(before, after) for before, after in pairwise(medians)):
        return [fmean(part) for part in parts]
    return medians
