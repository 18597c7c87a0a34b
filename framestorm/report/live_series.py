"""What the charts draw of a run that goes on, made of its intervals, in a memory that does not grow with the run.

The cells of time are wider the longer the run is. In them, response times are counted to 1 %.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

import numpy as np

from framestorm.model import series as model
from framestorm.model.criteria import ALL, OF_TRANSACTION
from framestorm.model.run import Record
from framestorm.model.sample import TRANSACTION, noun
from framestorm.model.summary import Machine
from framestorm.report.asked import read_asked, read_users
from framestorm.report.series import histogram_of
from framestorm.results.growing import shown
from framestorm.results.interval import Interval, percentiles

MAX_CELLS = 120
MAX_LABELS = 8
# Rows of a second come some tenths of a second after it, over slaves too.
LATE_S = 0.5
# A rate over less than this would be that of a handful of answers.
SHORTEST_S = 0.5
EVERYTHING = ("", "")
PER_CENT = 0.01


class TimeCell:
    """The samples that ended in one cell of time: by slave how many without and with an error, and their times."""

    def __init__(self) -> None:
        self.by_host: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
        self.busy_ms = 0.0
        self.times = Counter[float]()
        self._quantiles: list[float | None] | None = None

    @property
    def ok(self) -> int:
        """How many have no error."""
        return sum(ok for ok, _ in self.by_host.values())

    @property
    def failed(self) -> int:
        """How many have an error."""
        return sum(failed for _, failed in self.by_host.values())

    def take(self, interval: Interval) -> None:
        """Add the samples of an interval."""
        ok_and_failed = self.by_host[interval.key.slave]
        ok_and_failed[0] += interval.n - interval.errors
        ok_and_failed[1] += interval.errors
        self.busy_ms += interval.busy_ms
        for ms, n in interval.times.items():
            self.times[_rounded(ms)] += n
        self._quantiles = None

    def merge(self, other: "TimeCell") -> None:
        """Add the samples of another cell."""
        for host, (ok, failed) in other.by_host.items():
            self.by_host[host][0] += ok
            self.by_host[host][1] += failed
        self.busy_ms += other.busy_ms
        self.times.update(other.times)
        self._quantiles = None

    def quantiles(self) -> list[float | None]:
        """Return the median and the 95th percentile of the times without error."""
        if self._quantiles is None:
            self._quantiles = percentiles([self.times], ("50", "95"))
        return self._quantiles


class LabelSeries:
    """The samples of one label by cell, and all of their times."""

    def __init__(self) -> None:
        self.cells: dict[int, TimeCell] = {}
        self.times = Counter[float]()
        self.timed_out = 0

    def take(self, interval: Interval, number: int) -> None:
        """Add the samples of an interval to a cell."""
        self.cells.setdefault(number, TimeCell()).take(interval)
        self.times.update(interval.times)
        self.timed_out += sum(interval.timeouts.values())

    def halve(self) -> None:
        """Make one cell of two."""
        cells, self.cells = self.cells, {}
        for number, cell in cells.items():
            self.cells.setdefault(number // 2, TimeCell()).merge(cell)


class LiveSeries:
    """The series of a run so far. Its fields are those that charts take (figure.Charted)."""

    def __init__(self, record: Record, label: str) -> None:
        self.unit = noun(label)
        self._record = record
        self._origin_s = (record.started_ms or 0) / 1000
        self._cell_s = 1
        self._first_s: float | None = None
        self._last_s = 0.0
        self._now_s = 0.0
        self._is_over = False
        self._marks: list[model.Mark] = []
        # The empty label: of all samplers together.
        self._of: dict[tuple[str, str], LabelSeries] = {EVERYTHING: LabelSeries()}
        self._users: dict[int, int] = {}
        self._cores: dict[str, dict[int, float]] = {}

    def take(
        self, now_s: float, intervals: Iterable[Interval], users_now: int, busy_cores: Mapping[str, float]
    ) -> None:
        """Add what became known since the last call."""
        self._now_s = now_s
        for interval in intervals:
            self._take(interval)
        if self._first_s is not None:
            number = self._number(now_s)
            self._users[number] = users_now
            for host, cores in busy_cores.items():
                self._cores.setdefault(host, {})[number] = cores
        while max([*self._users, *self._of[EVERYTHING].cells], default=0) > MAX_CELLS + self._begin:
            self._widen()

    def finish(self) -> None:
        """Let the charts end with the last sample: nothing more comes."""
        self._is_over = True

    def mark(self, marks: Iterable[model.Mark]) -> None:
        """Replace the marks in the charts over time."""
        self._marks = list(marks)

    @property
    def load_start_s(self) -> float:
        """When the load began, in seconds since the run's start."""
        return (self._first_s or self._origin_s) - self._origin_s

    @property
    def label(self) -> str:
        """The label that the main charts are of."""
        names = self._names()
        return next(iter(names)) if len(names) == 1 else ALL

    @property
    def labels(self) -> Mapping[str, object]:
        """The labels that have charts."""
        return self._names()

    @property
    def machines(self) -> Sequence[Machine]:
        """The hosts, with how many cores each has."""
        return [
            Machine(shown(host), "host", host.cores, float(np.mean(values)), max(values), 0.0, None, None)
            for host in self._record.hosts
            if (values := list(self._cores.get(shown(host), {}).values()))
        ]

    @property
    def series(self) -> model.Series:
        """All series so far."""
        names = self._names()
        of_labels = {name: self._of_label(each) for name, each in names.items()} if len(names) > 1 else {}
        main = self._of_label(self._of[EVERYTHING])
        first_s = self.load_start_s
        asked = read_asked(self._record, first_s) if self._first_s is not None else None
        return model.Series(
            **vars(main),
            labels=of_labels,
            threads=self._under_way(),
            # An arrival may make samples of several labels.
            asked_per_s=asked.per_s if asked and len(names) <= 1 else {},
            machines=[
                model.MachineLine(host, "host", [self._middle(each) for each in cores], list(cores.values()))
                for host, cores in self._cores.items()
            ],
            marks=self._marks,
        )

    def _take(self, interval: Interval) -> None:
        second, label, kind, _ = interval.key
        if kind == "user":
            return
        if math.isfinite(interval.first_start_s):
            self._first_s = min(interval.first_start_s, self._first_s or math.inf)
            self._last_s = max(self._last_s, interval.last_end_s)
        number = self._number(second)
        if kind != TRANSACTION:
            self._of[EVERYTHING].take(interval, number)
        if (label, kind) in self._of or len(self._of) <= MAX_LABELS:
            self._of.setdefault((label, kind), LabelSeries()).take(interval, number)

    def _widen(self) -> None:
        self._cell_s *= 2
        for each in self._of.values():
            each.halve()
        self._users = {number // 2: users for number, users in self._users.items()}
        self._cores = {
            host: {number // 2: cores for number, cores in of_host.items()} for host, of_host in self._cores.items()
        }

    def _names(self) -> dict[str, LabelSeries]:
        """Return the labels as the report names them."""
        return {
            label + OF_TRANSACTION if kind == TRANSACTION and (label, "sampler") in self._of else label: each
            for (label, kind), each in self._of.items()
            if kind
        }

    def _number(self, at_s: float) -> int:
        return int(at_s - self._origin_s) // self._cell_s

    @property
    def _begin(self) -> int:
        """The cell in which the load began."""
        return self._number(self._first_s or self._origin_s)

    def _middle(self, number: int) -> float:
        return round((number + 0.5) * self._cell_s, 3)

    def _span(self) -> dict[int, float]:
        """Return the cells of the load so far, each with how many seconds of the load it has."""
        if self._first_s is None:
            return {}
        # Whole seconds only, or the last one would look like a fall.
        until_s = self._last_s if self._is_over else math.floor(self._now_s - LATE_S)
        until_s = max(until_s, self._first_s + SHORTEST_S)
        widths = {}
        for number in range(self._begin, self._number(until_s) + 1):
            start_s = self._origin_s + number * self._cell_s
            width_s = min(start_s + self._cell_s, until_s) - max(start_s, self._first_s)
            if width_s >= SHORTEST_S or number == self._begin:
                widths[number] = max(width_s, SHORTEST_S)
        return widths

    def _of_label(self, label: LabelSeries) -> model.SampleSeries:
        widths = self._span()
        nothing = TimeCell()
        cells = [label.cells.get(number, nothing) for number in widths]
        x = [self._middle(number) for number in widths]
        quantiles = [cell.quantiles() for cell in cells]
        hosts = sorted({host for cell in cells for host in cell.by_host}) or [""]
        if not x:
            return model.SampleSeries(is_by_end=True)
        no_points: model.Curves = {"x": [], "y": []}

        def per_s(counts: Iterable[int]) -> model.Values:
            return [round(n / width_s, 3) for n, width_s in zip(counts, widths.values(), strict=True)]

        return model.SampleSeries(
            over_time=model.OverTime(
                float(self._cell_s), 0, 0, no_points, no_points, no_points,
                x, [mid for mid, _ in quantiles], [high for _, high in quantiles],
            ),
            success_over_time=model.SuccessOverTime(
                float(self._cell_s),
                not self._record.is_open_model,
                x,
                [100 * cell.ok / n if (n := cell.ok + cell.failed) else None for cell in cells],
                {
                    host: {
                        name: per_s(cell.by_host[host][at] if host in cell.by_host else 0 for cell in cells)
                        for at, name in enumerate(("ok", "failed"))
                    }
                    for host in hosts
                },
            ),
            rates=model.RatesOverTime(
                float(self._cell_s), x, [], per_s(cell.ok for cell in cells), per_s(cell.failed for cell in cells)
            ),
            histogram=_histogram(label),
            is_by_end=True,
        )  # fmt: skip

    def _under_way(self) -> model.InFlight | None:
        """Return the users, or of an open load the requests in flight, by Little's law of those that ended."""
        widths = self._span()
        if not widths:
            return None
        if self._record.is_open_model:
            cells = self._of[EVERYTHING].cells
            busy_ms = {number: cells[number].busy_ms if number in cells else 0.0 for number in widths}
            y = [round(busy_ms[number] / 1000 / width_s, 2) for number, width_s in widths.items()]
            what, asked = f"{self.unit}s", model.Curves()
        else:
            y, what, users = [], "users", next(iter(self._users.values()), 0)
            for number in widths:
                users = self._users.get(number, users)
                y.append(users)
            asked = read_users(self._record, self.load_start_s)
        x = [self._middle(number) for number in widths]
        return model.InFlight(what, x, y, math.ceil(max(y)), asked, is_estimated=self._record.is_open_model)


def _histogram(label: LabelSeries) -> model.Histogram | None:
    if not label.times:
        return None
    values, numbers = zip(*sorted(label.times.items()), strict=True)
    return histogram_of(np.array(values), np.array([]), timed_out=label.timed_out, numbers=np.array(numbers))


@lru_cache(maxsize=8192)
def _rounded(ms: float) -> float:
    """A time to 1 %, so that a cell has some hundred at most."""
    if ms <= 0:
        return 0.0
    return float(f"{math.exp(round(math.log(ms) / PER_CENT) * PER_CENT):.4g}")
