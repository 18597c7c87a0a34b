"""Figures for InfluxDB, in the words of JMeter's own Backend Listener, so that dashboards made for it show them.

A point is of one second of one label, where the listener sends one every 5 s. Samples of a second that come late have
a point of their own, some nanoseconds later: the counts of a second add up.
"""

import os
from collections import Counter, deque
from collections.abc import Mapping
from typing import Any

from framestorm.model.criteria import ALL
from framestorm.model.run import Record
from framestorm.model.sample import TRANSACTION
from framestorm.model.sink import SinkAddress
from framestorm.results.interval import Interval, Key, percentiles
from framestorm.sinks.pushed import PushedSink
from framestorm.sinks.sink import Update

TOKEN = "INFLUXDB_TOKEN"  # noqa: S105 - the name of a variable
PERCENTS = {"pct50.0": "50", "pct90.0": "90", "pct95.0": "95", "pct99.0": "99"}
# Kept for a service that is gone: an hour of a run with one label.
MAX_BYTES = 4 << 20
NS_PER_S = 1_000_000_000


class InfluxDb(PushedSink):
    """Writes points in line protocol. A token is read from INFLUXDB_TOKEN."""

    def __init__(self, address: SinkAddress, run: str, record: Record) -> None:
        self._lines: list[str] = []
        # What is not delivered: the lines of an update, and how many intervals they are of.
        self._batches = deque[tuple[bytes, int]]()
        self._size = 0
        # How many points a second of a label has; of the last ones.
        self._pieces: Counter[tuple[int, str]] = Counter()
        self._title = f"{run} started"
        super().__init__(address, run, record)

    def collect(self, update: Update) -> None:
        if self._title:
            self._event(self._title, update.now_s)
            self._title = ""
        together: dict[int, Interval] = {}
        for interval in update.intervals:
            second, label, kind, slave = interval.key
            self._points(interval, label, slave)
            if kind not in {TRANSACTION, "user"}:
                together.setdefault(second, Interval(Key(second, ALL, "sampler", ""))).merge(interval)
        for interval in together.values():
            self._points(interval, ALL, "")
        self._users(update.users_now, update.now_s)
        now_ns = int(update.now_s * NS_PER_S)
        for host, cores in update.busy_cores.items():
            self._line({"transaction": "internal", "host": host}, {"busy_cores": cores}, now_ns)
        self._batch(len(update.intervals))
        oldest = int(update.now_s) - 60
        self._pieces = Counter({of: n for of, n in self._pieces.items() if of[0] >= oldest})

    def end(self) -> None:
        if self._last is not None:
            self._users(0, self._last.now_s + 0.001)
            self._event(f"{self.run} ended", self._last.now_s)
            self._batch(0)
        super().end()

    def body(self, now_s: float) -> bytes:
        return b"\n".join(lines for lines, _ in self._batches)

    def delivered(self) -> None:
        self._batches.clear()
        self._size = 0

    def headers(self) -> Mapping[str, str]:
        token = os.environ.get(TOKEN, "").strip()
        return {"Content-Type": "text/plain; charset=utf-8"} | ({"Authorization": f"Token {token}"} if token else {})

    def _users(self, users: int, at_s: float) -> None:
        # JMeter's listener has the least, the most and the mean number of threads between two points.
        self._line(
            {"transaction": "internal"}, dict.fromkeys(("minAT", "maxAT", "meanAT"), users), int(at_s * NS_PER_S) + 1
        )

    def _batch(self, n_intervals: int) -> None:
        """Keep the lines of an update, and leave out the oldest ones that there is no room for."""
        # A function may answer with halves of characters.
        lines = "\n".join(self._lines).encode(errors="replace")
        self._lines = []
        self._batches.append((lines, n_intervals))
        self._size += len(lines)
        while self._size > MAX_BYTES:
            lines, n_intervals = self._batches.popleft()
            self._size -= len(lines)
            self.n_missed += n_intervals
            self.n_unsent -= n_intervals

    def _points(self, interval: Interval, label: str, slave: str) -> None:
        second = interval.key.second
        tags = {"transaction": label} | ({"slave": slave} if slave else {})
        of = (second, repr(sorted(tags.items())))
        at_ns = second * NS_PER_S + self._pieces[of]
        self._pieces[of] += 1
        ok = interval.n - interval.errors
        values = dict(zip(PERCENTS, percentiles([interval.times], PERCENTS.values()), strict=True))
        times = {"min": min(interval.times, default=None), "max": max(interval.times, default=None)} | values
        n_times = sum(interval.times.values())
        mean = sum(ms * n for ms, n in interval.times.items()) / n_times if n_times else None
        self._line({**tags, "statut": "ok"}, {"count": ok, "avg": mean, **times}, at_ns)
        if interval.errors:
            self._line({**tags, "statut": "ko"}, {"count": interval.errors}, at_ns)
        whole: dict[str, Any] = {"count": interval.n, "avg": interval.busy_ms / interval.n if interval.n else None}
        self._line({**tags, "statut": "all"}, whole | {"countError": interval.errors}, at_ns)
        for cause, n in interval.causes.items():
            self._line({**tags, "responseMessage": cause}, {"count": n}, at_ns)

    def _line(self, tags: Mapping[str, str], fields: Mapping[str, float | None], at_ns: int) -> None:
        known = {name: value for name, value in fields.items() if value is not None}
        if known:
            named = {"application": self.plan, "run": self.run, **tags}
            values = ",".join(f"{name}={float(value)!r}" for name, value in known.items())
            self._lines.append(f"jmeter{_tags(named)} {values} {at_ns}")

    def _event(self, text: str, at_s: float) -> None:
        tags = _tags({"application": self.plan, "run": self.run, "title": "ApacheJMeter"})
        escaped = text.replace("\\", "\\\\").replace('"', '\\"')
        self._lines.append(f'events{tags} text="{escaped}" {int(at_s * NS_PER_S)}')


def _tags(tags: Mapping[str, str]) -> str:
    return "".join(f",{name}={_escaped(value)}" for name, value in tags.items() if value)


def _escaped(text: str) -> str:
    """A tag's value; a line break would end the point."""
    text = " ".join(text.split("\n")).replace("\r", " ").rstrip("\\") or "(empty)"
    for character in (",", "=", " "):
        text = text.replace(character, f"\\{character}")
    return text
