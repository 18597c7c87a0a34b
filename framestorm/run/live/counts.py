"""The figures of a run that goes on, added up from intervals: in all, by slave and label, and for its criteria."""

import math
from collections.abc import Iterable, Sequence
from pathlib import Path

from framestorm.model.criteria import ALL, EACH, OF_TRANSACTION, USER, Criterion
from framestorm.model.judgement import Group
from framestorm.model.run import Record
from framestorm.model.sample import TRANSACTION
from framestorm.results.growing import GrowingRun, shown
from framestorm.results.interval import Interval
from framestorm.run.live.tally import SoFar, Tally

MAX_LABELS = 1000
OTHER_LABELS = "other labels"
LabelAndKind = tuple[str, str]


class Counts:
    """What was counted of a run so far.

    by_label, transactions: by the names on the page, where a transaction named as one of its samples has another.
    """

    def __init__(self, run_dir: Path, record: Record, criteria: Sequence[Criterion], *, has_journal: bool) -> None:
        self.whole = Tally()
        self.by_label: dict[str, Tally] = {}
        self.transactions: set[str] = set()
        self.by_slave = {shown(host): Tally() for host in record.slaves}
        self.first_end_s: float | None = None
        self._files = GrowingRun(run_dir, record, has_journal=has_journal)
        self._is_judged = {criterion.label for criterion in criteria}
        self._tallies: dict[LabelAndKind, Tally] = {}
        self._so_far: dict[LabelAndKind, SoFar] = {}

    @property
    def busy_cores(self) -> dict[str, float]:
        """How many cores of each host are busy."""
        return self._files.busy_cores

    @property
    def first_start_s(self) -> float | None:
        """When the first user or sample started."""
        return self._files.first_start_s

    def read(self, now_s: float) -> list[Interval]:
        """Count what was written since the last call, and return it."""
        intervals = self._files.read(now_s)
        for interval in intervals:
            self._take(interval)
        users_now = self._files.users_now
        for slave in users_now.keys() - {""}:
            self._of_slave(slave).users_now = users_now[slave]
        self.whole.users_now = sum(of.users_now for of in self.by_slave.values()) or users_now.get("", 0)
        self.by_label = {self._name(*of): tally for of, tally in self._tallies.items()}
        self.transactions = {self._name(*of) for of in self._tallies if of[1] == TRANSACTION}
        return intervals

    def group(self, label: str, *, is_at_rate: bool) -> Group:
        """Return what a criterion about a label is judged by."""
        so_far = next((so_far for of, so_far in self._so_far.items() if self._name(*of) == label), None)
        return so_far.group(label, is_at_rate=is_at_rate) if so_far else Group(label)

    def _take(self, interval: Interval) -> None:
        _, label, kind, slave = interval.key
        tallies = [self.whole] if kind != TRANSACTION else []
        tallies += [self._of_slave(slave)] if slave and tallies else []
        if kind == "user":
            for tally in tallies:
                tally.users_done += interval.n
                tally.users_failed += interval.errors
        else:
            for tally in (*tallies, self._of_label((label, kind))):
                tally.take(interval)
            if math.isfinite(interval.first_end_s):
                self.first_end_s = min(interval.first_end_s, self.first_end_s or math.inf)
        for so_far in self._of_criteria(label, kind):
            so_far.merge(interval)

    def _of_slave(self, slave: str) -> Tally:
        return self.by_slave.setdefault(slave, Tally())

    def _of_label(self, of: LabelAndKind) -> Tally:
        if of not in self._tallies and len(self._tallies) >= MAX_LABELS:
            of = (OTHER_LABELS, of[1])
        return self._tallies.setdefault(of, Tally())

    def _name(self, label: str, kind: str) -> str:
        return label + OF_TRANSACTION if kind == TRANSACTION and (label, "sampler") in self._tallies else label

    def _of_criteria(self, label: str, kind: str) -> Iterable[SoFar]:
        """Return what the criteria about an interval are judged by."""
        of, judged = (label, kind), self._is_judged
        if kind == "user":
            yield from [self._so_far.setdefault(of, SoFar("duration"))] if USER in judged else []
            return
        is_one_of_each = EACH in judged and (of in self._so_far or len(self._so_far) < MAX_LABELS)
        if is_one_of_each or not judged.isdisjoint({label, label + OF_TRANSACTION}):
            yield self._so_far.setdefault(of, SoFar())
        if ALL in judged and kind != TRANSACTION:
            yield self._so_far.setdefault((ALL, kind), SoFar())
