"""The sides of a comparison of runs."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from framestorm import paths
from framestorm.errors import FramestormError, UsageError
from framestorm.model.comparison import SideFigure
from framestorm.model.files import FileError, FormatError, read
from framestorm.model.metric import PERCENTILES, RESPONSE, USER, column, metric, percentile, split_label
from framestorm.model.run import Record, Target
from framestorm.model.summary import Doubt, Summary
from framestorm.model.units import plural
from framestorm.points.folder import StudyFolder
from framestorm.results.jtl import read_jtl
from framestorm.results.jtl_samples import read_users
from framestorm.results.reading import read_run
from framestorm.results.samples import OrderedTimes, Samples, read_samples
from framestorm.results.table import rate_per_s

STATISTICS = ("mean", *PERCENTILES)
# The key of a point without a factor.
ONE_POINT = "the one point"
SUCCESS, RATE = "success", "served_per_s"


@dataclass(frozen=True)
class Run:
    """One run as read: `target` has its settings, None where no more than its URL is known.

    users: the times of users whose samples are not the main ones, measured by JMeter.
    """

    folder: Path
    record: Record
    summary: Summary
    target: dict[str, Any] | None = None
    by_label: dict[str | None, Samples] = field(default_factory=dict)
    users: OrderedTimes | None = None

    @property
    def name(self) -> str:
        return self.folder.name

    def of(self, label: str | None = None) -> Samples:
        """Return the samples of a label, or the main ones."""
        if label not in self.by_label:
            self.by_label[label] = read_samples(self.folder, label=label)
        return self.by_label[label]

    def times(self, label: str | None = None) -> dict[str, OrderedTimes]:
        """Return the times of a label by series, or those of the main samples and of users."""
        times = self.of(label).times_by_series
        return times | {USER: self.users} if label is None and self.users and self.users.n else times

    @property
    def timed_out(self) -> int:
        return int(self.times()[RESPONSE].cut.sum()) if RESPONSE in self.times() else 0

    def serving_ms(self, label: str | None) -> tuple[float, float] | None:
        """When samples of a label could end."""
        return self.of(label).serving_ms(at_rate=self.summary.is_at_rate)

    def figure(self, name: str) -> SideFigure | None:
        """Return a metric of the run, if it is known; a percentile that is simply the largest sample is not."""
        label, rest = split_label(name)
        if rest == SUCCESS:
            right = self.of(label).right
            return SideFigure(float(right.mean()), n=right.size)
        if rest == RATE:
            n = self.of(label).ended_ms.size
            rate = rate_per_s(n, self.serving_ms(label))
            return None if rate is None else SideFigure(rate, n=n)
        about = metric(rest)
        times, percent = self.times(label)[str(about.series)], percentile(str(about.statistic))
        figure = times.sample.percentile(percent) if percent else times.sample.mean()
        return SideFigure(figure.value, figure.bound == "lower", times.n) if figure and not figure.few else None


@dataclass(frozen=True)
class RunSide:
    """One side of a comparison of runs; several runs are repetitions of the same thing."""

    label: str
    runs: tuple[Run, ...]

    @property
    def name(self) -> str:
        first = self.runs[0].name
        return first if len(self.runs) == 1 else f"{first} and {len(self.runs) - 1} more"

    @property
    def folders(self) -> list[Path]:
        return [run.folder for run in self.runs]

    @property
    def points(self) -> dict[str, tuple[Run, ...]]:
        """Its only point, with the runs as repetitions."""
        return {ONE_POINT: self.runs}

    def points_with(self, doubt: Doubt) -> set[str]:
        """Return its point, if a run has that kind of doubt."""
        return {ONE_POINT} if any(doubt in run.summary.doubts for run in self.runs) else set()

    @property
    def extent(self) -> str:
        """How much data it has."""
        samples = plural(sum(run.of().right.size for run in self.runs), "sample")
        return samples + (f" in {plural(len(self.runs), 'repetition')}" if len(self.runs) > 1 else "")

    @property
    def main_label(self) -> str:
        """The label of the main samples."""
        return self.runs[0].summary.label

    def labels(self) -> set[str]:
        """Return the labels that have samples."""
        return {of.label for run in self.runs for of in run.summary.labels.values() if of.of_labels == 1}

    def series(self, label: str | None = None) -> list[str]:
        """Return the series of times that all runs have."""
        first, *others = (run.times(label) for run in self.runs)
        return [series for series in first if all(series in times for times in others)]

    def metrics_of(self, label: str | None) -> set[str]:
        """The metrics that all runs may have, without further percentiles: of a label, or of the main samples."""
        times = {column(series, statistic) for series in self.series(label) for statistic in STATISTICS}
        return {SUCCESS, RATE, *times} if all(run.of(label).right.size for run in self.runs) else set()

    def has(self, name: str) -> bool:
        """Return whether all runs may have a metric."""
        label, name = split_label(name)
        about = metric(name)
        usual = column(str(about.series), "mean") if percentile(str(about.statistic)) else name
        return usual in self.metrics_of(label)

    def figures(self, name: str) -> dict[int, SideFigure]:
        """A metric's figures by repetition; none if one is not known, because the others would be a selection."""
        figures = {n: run.figure(name) for n, run in enumerate(self.runs)} if self.has(name) else {}
        known = {number: figure for number, figure in figures.items() if figure}
        return known if len(known) == len(self.runs) else {}

    def times(self, label: str | None, series: str) -> OrderedTimes:
        """Return the times of all runs together."""
        return OrderedTimes.together([run.times(label)[series] for run in self.runs])


def read_compared(folder: Path) -> Run:
    """Read a run.

    Raises:
        FramestormError: its record cannot be read, its report has not been made, or it has no sample.
    """
    record, problem = read_run(folder)
    if problem:
        raise FramestormError(f"{folder}: {problem}")
    try:
        summary = read(folder / "summary.json", Summary)
    except FormatError:
        raise
    except FileError as error:
        raise FramestormError(f"{error}; make it by ./run.sh report {paths.shown(folder)}") from None
    if not (folder / "samples.csv").is_file():
        raise FramestormError(f"{folder.name} has no samples.csv; make it by ./run.sh report {paths.shown(folder)}")
    samples = read_samples(folder)
    if not samples.sent:
        raise FramestormError(f"{folder.name} measured nothing: samples.csv has no sample to compare")
    if why := samples.why_not_of(summary):
        raise FramestormError(f"{folder.name}: {why}; make it again by ./run.sh report {paths.shown(folder)}")
    return Run(folder, record, summary, _target(folder, record), {None: samples}, _users(folder, record))


def _users(folder: Path, record: Record) -> OrderedTimes:
    """Return times of successful users and, as lower bounds, of users that timed out; measured by JMeter."""
    jtl = read_jtl(folder, record)
    if jtl.rows is None or not jtl.labels[USER]:
        return OrderedTimes(np.empty(0), np.empty(0, dtype=bool))
    users = read_users(jtl).sort("start_ms").filter(pl.col("ok") | pl.col("censored"))
    return OrderedTimes.of(users, pl.col("elapsed_ms"), ~pl.col("ok"))


def settings_of(target: Target) -> dict[str, Any]:
    """Kind, URL and settings of a run's target, in the form of a study's point."""
    return {"kind": target.kind, "url": target.url, **target.settings}


def _target(folder: Path, record: Record) -> dict[str, Any] | None:
    """Return the target's settings; None if only its URL is known.

    A function is set up outside the run, so run.json has only its URL; the settings are in the study's record.
    """
    if record.target and record.target.kind == "embedded":
        return settings_of(record.target)
    try:
        study = StudyFolder(folder.parent.parent)
    except UsageError:
        return None
    # On a gateway elsewhere the functions are used as they are.
    if study.record.gateway is not None:
        return None
    ids = {line.point for line in study.lines().values() if line.run == f"runs/{folder.name}"}
    targets = [point.target for point in study.record.points if point.id in ids and point.target.kind != "url"]
    return targets[0].model_dump() if targets else None
