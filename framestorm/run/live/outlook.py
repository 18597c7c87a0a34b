"""What a run's plan asks for over time, beside which the live view shows what was reached."""

import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from framestorm.model.run import Record
from framestorm.run.live.tally import RECENT_S

_MESSAGE = rb"^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}) INFO [^:\n]*: "
# JMeter's message as it starts a thread group that is neither set-up nor tear-down.
_STARTED = re.compile(rb"%bStarting ThreadGroup: " % _MESSAGE, re.MULTILINE)
# What jmx/groovy/arrival.groovy says once a second, the first time as its schedule begins.
_ARRIVALS = re.compile(
    rb'%b\{"type":"arrivals so far","sent":(\d{1,15}),"dropped":(\d{1,15}),"in_flight":(\d{1,15})\}' % _MESSAGE,
    re.MULTILINE,
)
LOG_BYTES = 1 << 20


@dataclass(frozen=True)
class Outlook:
    """The planned load: its length (None: it ends by itself), and arrivals per second over time where it has a rate."""

    total_s: float | None = None
    rate: Sequence[tuple[float, float]] = ()

    @property
    def is_open(self) -> bool:
        """Whether requests arrive by a schedule."""
        return bool(self.rate)

    def asked_per_s(self, since_s: float, until_s: float) -> float | None:
        """The mean planned rate between two moments of the load; None without one."""
        if not self.rate or until_s <= since_s:
            return None
        return (self._due(until_s) - self._due(since_s)) / (until_s - since_s)

    def _due(self, at_s: float) -> float:
        """How many arrivals are due until then."""
        due = 0.0
        for (x0, y0), (x1, y1) in zip(self.rate, self.rate[1:], strict=False):
            if at_s > x0 and x1 > x0:
                end = min(at_s, x1)
                y = y0 + (y1 - y0) * (end - x0) / (x1 - x0)
                due += (y0 + y) / 2 * (end - x0)
        return due


def outlook(record: Record) -> Outlook:
    """What the properties of the kit's own plans ask for; nothing is known of others."""
    try:
        ramp_s, hold_s = float(record.properties["ramp_s"]), float(record.properties["hold_s"])
        rate = float(record.properties["rate_per_s"]) if record.is_open_model else 0.0
    except (KeyError, ValueError):
        return Outlook()
    curve = ((0.0, 0.0), (ramp_s, rate), (ramp_s, rate), (ramp_s + hold_s, rate))
    return Outlook(ramp_s + hold_s, curve if rate else ())


class Arrivals(NamedTuple):
    """How many arrivals of a schedule were sent and dropped so far, and how many wait for an answer."""

    sent: int
    dropped: int
    in_flight: int


class Log:
    """What jmeter.log says of the load while it goes on: when it started, and what became of its arrivals."""

    def __init__(self, path: Path) -> None:
        self.load_started_s: float | None = None
        self.arrivals: Arrivals | None = None
        self._path, self._offset = path, 0
        self._sent: deque[tuple[float, int]] = deque()

    def read(self, began_s: float, now_s: float) -> None:
        """Read what was added since the last call, now, of a run that began then; of more than LOG_BYTES the end."""
        try:
            with self._path.open("rb") as file:
                size = file.seek(0, 2)
                if self.load_started_s is not None and size - self._offset > LOG_BYTES:
                    self._offset = size - LOG_BYTES
                file.seek(self._offset)
                data = file.read(LOG_BYTES)
        except FileNotFoundError:
            return
        whole = data.rfind(b"\n") + 1
        self._offset += whole or len(data) * (len(data) == LOG_BYTES)
        data = data[:whole]
        if self.load_started_s is None and (match := _STARTED.search(data)):
            self.load_started_s = _time_s(match[1], began_s, now_s)
        for match in _ARRIVALS.finditer(data) if b"arrivals so far" in data else ():
            at_s = _time_s(match[1], began_s, now_s)
            if self.arrivals is None:
                self.load_started_s = at_s
            self.arrivals = Arrivals(*map(int, match.groups()[1:]))
            self._sent.append((at_s, self.arrivals.sent))
            while self._sent[0][0] < at_s - RECENT_S:
                self._sent.popleft()

    def started_per_s(self) -> float | None:
        """The rate of the arrivals that were sent in the last seconds; None if it is not known."""
        if len(self._sent) < 2:
            return None
        (since_s, before), (until_s, now) = self._sent[0], self._sent[-1]
        return (now - before) / (until_s - since_s) if until_s > since_s else None


def _time_s(text: bytes, began_s: float, now_s: float) -> float:
    """The time of a message; that of now if it cannot be, as where Java was told another time zone."""
    at_s = datetime.strptime(text.decode(), "%Y-%m-%d %H:%M:%S,%f").timestamp()
    return at_s if began_s - 1 <= at_s <= now_s else now_s
