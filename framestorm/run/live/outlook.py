"""What a run's plan asks for over time, beside which the live view shows what was reached."""

import re
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from framestorm.model.load import Load
from framestorm.run.live.tally import RECENT_S

_MESSAGE = rb"^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}) INFO [^:\n]*: "
# JMeter's message as it starts a thread group that is neither set-up nor tear-down.
_STARTED = re.compile(rb"%bStarting ThreadGroup: \d+ : (.*)" % _MESSAGE, re.MULTILINE)
# What jmx/java/plan/Pacer.java says once a second, the first time as its schedule begins.
_ARRIVALS = re.compile(
    rb'%b\{"type":"arrivals so far","sent":(\d{1,15}),"dropped":(\d{1,15}),"in_flight":(\d{1,15})\}' % _MESSAGE,
    re.MULTILINE,
)
LOG_BYTES = 1 << 20


class ArrivalsSoFar(NamedTuple):
    """How many arrivals of a schedule were sent and dropped so far, and how many wait for an answer."""

    sent: int
    dropped: int
    in_flight: int


class Log:
    """What jmeter.log says of the load while it goes on: when each group started, and what became of the arrivals."""

    def __init__(self, path: Path) -> None:
        self.starts: dict[str, float] = {}
        self.arrivals: ArrivalsSoFar | None = None
        self.most_in_flight = 0
        self._path, self._offset = path, 0
        self._sent: deque[tuple[float, int]] = deque()

    def read(self, began_s: float, now_s: float) -> None:
        """Read what was added since the last call, now, of a run that began then; of more than LOG_BYTES the end."""
        try:
            with self._path.open("rb") as file:
                size = file.seek(0, 2)
                if self.starts and size - self._offset > LOG_BYTES:
                    self._offset = size - LOG_BYTES
                file.seek(self._offset)
                data = file.read(LOG_BYTES)
        except FileNotFoundError:
            return
        whole = data.rfind(b"\n") + 1
        self._offset += whole or len(data) * (len(data) == LOG_BYTES)
        data = data[:whole]
        for match in _STARTED.finditer(data) if b"Starting ThreadGroup" in data else ():
            self.starts.setdefault(match[2].decode(errors="replace").strip(), _time_s(match[1], began_s, now_s))
        for match in _ARRIVALS.finditer(data) if b"arrivals so far" in data else ():
            at_s = _time_s(match[1], began_s, now_s)
            if self.arrivals is None:
                self.starts = dict.fromkeys(self.starts, at_s)
            self.arrivals = ArrivalsSoFar(*map(int, match.groups()[1:]))
            self.most_in_flight = max(self.most_in_flight, self.arrivals.in_flight)
            self._sent.append((at_s, self.arrivals.sent))
            while self._sent[0][0] < at_s - RECENT_S:
                self._sent.popleft()

    def started_per_s(self) -> float | None:
        """Return the rate of the arrivals that were sent in the last seconds; None if it is not known."""
        if len(self._sent) < 2:
            return None
        (since_s, before), (until_s, now) = self._sent[0], self._sent[-1]
        return (now - before) / (until_s - since_s) if until_s > since_s else None


class Outlook:
    """The planned load. Its moments are epoch seconds; `starts` are those of the thread groups that JMeter has begun.

    A start is that of the group's load, which may be later; it is known by the group's name.
    """

    def __init__(self, loads: Sequence[Load]) -> None:
        self._groups = [load for load in loads if not load.is_aside and not load.is_timer]
        self._timers = [load for load in loads if load.is_timer and load.curve]
        # What starts requests by a schedule, and what slows users down to one.
        self.is_open = bool(self._groups) and all(load.is_open for load in self._groups)
        of_open = [load for load in self._groups if load.is_open]
        self._rates = self._timers or of_open
        paced = {name for load in self._rates for name in load.groups}
        names = {load.name for load in self._groups}
        self._are_told_apart = len(names) == len(self._groups)
        if not (self._are_told_apart and names <= paced and all(load.curve for load in self._rates)):
            self._rates = []

    def starts(self, log: Log, first_start_s: float | None) -> dict[str, float]:
        """Return the start of the load of each thread group that JMeter has begun, as far as it is known.

        first_start_s: that of the first sample. Over slaves, whose logs come last, the first group starts with it.
        """
        if log.arrivals is not None:
            return log.starts
        if log.starts or first_start_s is None:
            # Of groups with the same name, the log has the first.
            delays = {load.name: load.delay_s for load in reversed(self._groups)}
            return {name: at_s + delays.get(name, 0.0) for name, at_s in log.starts.items()}
        if len(self._groups) == 1:
            return {self._groups[0].name: first_start_s}
        known = {load.name: load.start_s for load in self._groups if load.start_s is not None}
        return {name: first_start_s + start_s - min(known.values()) for name, start_s in known.items()}

    def users(self, now_s: float, starts: Mapping[str, float]) -> int | None:
        """Count the users that are planned at once; None if unknown, as of groups that may run one after the other.

        Of a load in words those of now.
        """
        of_groups = [
            round(load.at(now_s - starts[load.name]) or 0) if load.words and load.name in starts else load.total
            for load in self._groups
            if load.model == "users"
        ]
        totals = [total for total in of_groups if total is not None]
        are_together = len(self._groups) == 1 or all(load.start_s is not None for load in self._groups)
        return sum(totals) if totals and are_together and len(totals) == len(self._groups) else None

    def end_s(self, starts: Mapping[str, float]) -> float | None:
        """When the load ends by the plan; None if it ends by itself, has not begun, or two groups have one name."""
        lengths = {load.name: self._length_s(load) for load in self._groups}
        ends = [at_s + length for name, at_s in starts.items() if (length := lengths.get(name)) is not None]
        waiting = [load.delay_s + (lengths[load.name] or 0.0) for load in self._groups if load.name not in starts]
        if not ends or None in lengths.values() or not self._are_told_apart:
            return None
        # Groups start together, or each after the one before.
        return max(ends) + sum(waiting)

    def asked_per_s(self, since_s: float, until_s: float, starts: Mapping[str, float]) -> float | None:
        """Return the mean planned rate between two moments; None without one."""
        due = 0.0
        for load in self._rates:
            start_s = min((starts[name] for name in load.groups if name in starts), default=None)
            due += 0 if start_s is None else load.between(since_s - start_s, until_s - start_s)
        return due / (until_s - since_s) if self._rates and starts and until_s > since_s else None

    def is_of(self, labels: Collection[str]) -> bool:
        """Whether the planned rate is one of samples with these labels, not of arrivals that have several samples."""
        if self._timers:
            paced = {label for load in self._timers for label in load.labels}
            return not paced or set(labels) <= paced
        return len(labels) <= 1

    def _length_s(self, group: Load) -> float | None:
        """Return how long a group lasts: no longer than the timer that ends its threads."""
        ending = [load for load in self._timers if load.kind == "VariableThroughputTimer" and group.name in load.groups]
        lengths = [length for load in (group, *ending) if (length := load.length_s) is not None]
        return min(lengths, default=None)


def _time_s(text: bytes, began_s: float, now_s: float) -> float:
    """Return the time of a message; that of now if it cannot be, as where Java was told another time zone."""
    at_s = datetime.strptime(text.decode(), "%Y-%m-%d %H:%M:%S,%f").timestamp()
    return at_s if began_s - 1 <= at_s <= now_s else now_s
