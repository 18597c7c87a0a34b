"""Rules that end the load before its time, judged on the intervals of a run that goes on."""

import math
from collections.abc import Iterable, Sequence

from framestorm.model import units
from framestorm.model.criteria import ALL, EACH, OF_TRANSACTION, USER, Criterion
from framestorm.model.judgement import Group, Judgement, judge
from framestorm.model.run import Decision
from framestorm.model.sample import TRANSACTION
from framestorm.model.stop_rule import STOP_IF, StopRule
from framestorm.results.interval import Interval, Key
from framestorm.run.live.tally import Counted

# The rows of a second are all read by then: those of slaves come some tenths of a second late.
LATE_S = 0.5
MAX_LABELS = 1000
# A long run is kept in cells of 1 s, then of 2 s, and so on.
MAX_CELLS = 2400
# Looking often finds an interval that is narrow by chance: the next look is when the run is a tenth longer, and two in
# a row have to agree.
LONGER, LOOKS = 1.1, 2
OF_TAIL = 10  # samples of each batch above its percentile
# JMeter on one slave may start seconds after the others; one whose answers all hang must not hold the rules up.
SLOWEST_BEGIN_S = 10
NOBODY = Key(0, "", "sampler", "")


class StopRules:
    """Finds out when a stop rule holds. Give it each interval once, then ask.

    slaves: those that share the load, by the names of intervals' keys. Before the last of them has begun, a second
        shows a part of the load only, and is not judged by itself.
    """

    def __init__(self, rules: Sequence[StopRule], slaves: Iterable[str] = ()) -> None:
        self._rules = [_StopIf(rule) if rule.option == STOP_IF else _StopWhen(rule) for rule in rules]
        self._samplers: set[str] = set()
        self._silent = set(slaves)
        self._first_s = math.inf
        self._whole_since_s = 0

    @property
    def are_any(self) -> bool:
        """Whether there is a rule."""
        return bool(self._rules)

    def take(self, interval: Interval) -> None:
        """Count the samples of an interval."""
        second, label, kind, slave = interval.key
        self._first_s = min(self._first_s, second)
        if slave in self._silent:
            self._silent.remove(slave)
            self._whole_since_s = max(self._whole_since_s, second)
        if kind == "sampler" and len(self._samplers) < MAX_LABELS:
            self._samplers.add(label)
        for rule in self._rules:
            if (name := self._name(rule.criterion.label, label, kind)) is not None:
                rule.take(interval, name)

    def decision(self, now_s: float, lost: Iterable[str] = ()) -> Decision | None:
        """Return which rule ends the load now; None if none does. lost: the slaves that were lost."""
        until_s = math.floor(now_s - LATE_S)
        if self._silent.difference(lost) and until_s < self._first_s + SLOWEST_BEGIN_S:
            return None
        for rule in self._rules:
            if decision := rule.decision(until_s, now_s, self._whole_since_s):
                return decision
        return None

    def _name(self, asked: str, label: str, kind: str) -> str | None:
        """Return under which label an interval counts for a rule that asks for one; None if it does not."""
        if kind == "user" or asked == USER:
            return USER if kind == "user" and asked == USER else None
        if kind == TRANSACTION:
            name = label + OF_TRANSACTION if label in self._samplers else label
            return name if asked in (name, label + OF_TRANSACTION) else None
        return label if asked in (label, EACH) else ALL if asked == ALL else None


class _StopIf:
    """A criterion of the last seconds, and for how long it has held."""

    def __init__(self, rule: StopRule) -> None:
        self._rule = rule
        self.criterion: Criterion = rule.criterion
        self._seconds: dict[str, dict[int, Interval]] = {}
        self._first_s: dict[str, int] = {}
        # The first second in which it has held since then, and the last one.
        self._holds: dict[str, tuple[int, int]] = {}
        self._judged_s: dict[str, int] = {}

    def take(self, interval: Interval, label: str) -> None:
        if label not in self._seconds and len(self._seconds) >= MAX_LABELS:
            return
        at = 0 if self._rule.is_of_all else interval.key.second
        self._first_s[label] = min(interval.key.second, self._first_s.get(label, interval.key.second))
        self._seconds.setdefault(label, {}).setdefault(at, Interval(NOBODY)).merge(interval)

    def decision(self, until_s: int, now_s: float, since_s: int) -> Decision | None:
        for label, seconds in self._seconds.items():
            first_s = max(self._first_s[label], since_s)
            for second in range(self._judged_s.get(label, first_s), until_s):
                judged = self._judged(label, seconds, second, first_s)
                if judged is None or judged.state == "unjudged":
                    continue  # no evidence: it neither holds nor has ended
                if judged.state == "passed":
                    self._holds.pop(label, None)
                    continue
                since, _ = self._holds.get(label, (second, second))
                self._holds[label] = since, second
                if second + 1 - since >= self._rule.for_s and judged.value is not None:
                    return Decision(STOP_IF, self._rule.text, now_s * 1000, judged.measured, label, judged.value)
            self._judged_s[label] = until_s
            for second in [each for each in seconds if 0 < each <= until_s - max(self._rule.over_s, 1)]:
                del seconds[second]
        return None

    def _judged(self, label: str, seconds: dict[int, Interval], second: int, first_s: int) -> Judgement | None:
        """Judge the seconds up to one; None if there is no sample in it, or it is too early."""
        over_s = self._rule.over_s
        if self._rule.is_of_all:
            window = [seconds[0]]
        elif over_s:
            if second + 1 - first_s < over_s:
                return None
            window = [each for at in range(second - over_s + 1, second + 1) if (each := seconds.get(at))]
        else:
            window = [each] if (each := seconds.get(second)) else []
        # A rate is one of samples, and of none too: the function may have stopped answering.
        if not window and self.criterion.metric != "rate":
            return None
        together = _together(window)
        ok = together.n - together.errors
        length_s = over_s or (second + 1 - self._first_s[label] if self._rule.is_of_all else 1)
        times = Counted(together.times, together.timeouts)
        # A window without any sample still has its rate, 0.
        n = together.n or 1
        group = Group(self.criterion.label, n, ok, ok / length_s, {self.criterion.series: times})
        return judge(self.criterion, {self.criterion.label: group})


class _StopWhen:
    """A figure of the whole run so far, whose interval becomes narrower."""

    def __init__(self, rule: StopRule) -> None:
        self._rule = rule
        self.criterion = rule.criterion
        self._cells: dict[int, Interval] = {}
        self._cell_s = 1
        self._next_look_s = 0.0
        self._narrow = 0

    def take(self, interval: Interval, label: str) -> None:
        self._cells.setdefault(interval.key.second // self._cell_s, Interval(NOBODY)).merge(interval)
        if len(self._cells) > MAX_CELLS:
            self._cell_s *= 2
            halves, self._cells = self._cells, {}
            for at, cell in halves.items():
                self._cells.setdefault(at // 2, Interval(NOBODY)).merge(cell)

    def decision(self, until_s: int, now_s: float, since_s: int) -> Decision | None:
        if not self._cells:
            return None
        from framestorm.stats.batches import BATCHES, batch_interval  # these load scipy, which takes long
        from framestorm.stats.means import relative_half_width

        first = max(min(self._cells), since_s // self._cell_s)
        each = (until_s // self._cell_s - first) // BATCHES  # cells of a batch
        length_s = each * BATCHES * self._cell_s
        if not each or length_s < self._next_look_s:
            return None
        # What does not fill the batches is left out at the beginning, the least steady part.
        begin = until_s // self._cell_s - each * BATCHES
        cells = [self._cells.get(at) for at in range(begin, begin + each * BATCHES)]
        batches = [_together(filter(None, cells[n * each : (n + 1) * each])) for n in range(BATCHES)]
        if min(sum(batch.times.values()) for batch in batches) < self._least:
            return None
        self._next_look_s = length_s * LONGER
        figures = [self._figure(batch) for batch in batches]
        whole = self._figure(_together(batches))
        known = [figure for figure in figures if figure is not None]
        interval = batch_interval(known, whole) if whole and len(known) == BATCHES else None
        width = relative_half_width(interval) if interval else None
        self._narrow = self._narrow + 1 if width is not None and width <= self._rule.within else 0
        if self._narrow < LOOKS or interval is None or width is None:
            return None
        low, high = (units.duration(end) for end in interval.ends if end is not None)
        measured = f"{units.duration(interval.value)} [{low}, {high}], which is within {units.percent(width)}"
        label = self.criterion.label
        return Decision(self._rule.option, self._rule.text, now_s * 1000, measured, label, interval.value)

    @property
    def _least(self) -> int:
        """How many samples a batch needs for its figure."""
        percent = {"mean": 0.0, "median": 50.0}.get(self.criterion.metric)
        share = (float(self.criterion.metric[1:]) if percent is None else percent) / 100
        return math.ceil(OF_TAIL / min(1 - share, share or 1))

    def _figure(self, batch: Interval) -> float | None:
        """Return the figure; None where timeouts hide it."""
        times, name = Counted(batch.times, batch.timeouts), self.criterion.metric
        figure = times.mean() if name == "mean" else times.percentile("50" if name == "median" else name[1:])
        return figure.value if figure and figure.bound == "exact" else None


def _together(intervals: Iterable[Interval]) -> Interval:
    whole = Interval(NOBODY)
    for each in intervals:
        whole.merge(each)
    return whole
