"""Figures for Prometheus, and whatever else takes its remote write: version 1 of the protocol.

A message is a protobuf of four small types, packed by snappy. Both are written out here: snappy's format has blocks of
plain bytes, and what is sent once a second needs no compression.
"""

import os
import struct
from collections.abc import Iterator, Mapping, Set

from framestorm.model.run import Record
from framestorm.model.sink import SinkAddress
from framestorm.sinks.pushed import PushedSink
from framestorm.sinks.sink import Update
from framestorm.sinks.totals import BOUNDS_S, Of, Total, Totals

TOKEN = "PROMETHEUS_TOKEN"  # noqa: S105 - the name of a variable
SNAPPY_BLOCK = 1 << 16
OLD_SAMPLES = (400, 409)  # which Prometheus and Thanos answer, among others
SERIES = "framestorm_"
Labels = tuple[tuple[str, str], ...]


class Prometheus(PushedSink):
    """Writes totals once a second. A bearer token is read from PROMETHEUS_TOKEN."""

    IS_CUMULATIVE = True

    def __init__(self, address: SinkAddress, run: str, record: Record) -> None:
        self._totals = Totals()
        # Series that Prometheus has; its increase() counts from the first sample, which is 0.
        self._known: set[Labels] = set()
        self._new: set[Labels] = set()
        self._previous_ms = int(record.started_ms or 0)
        self._now_ms = 0
        super().__init__(address, run, record)

    def collect(self, update: Update) -> None:
        self._totals.take(update)

    def body(self, now_s: float) -> bytes:
        self._now_ms = max(int(now_s * 1000), self._previous_ms + 1)
        return self._message(self._known)

    def other_body(self, status: int) -> bytes:
        """Return the same without the first samples of new series.

        Where a body was stored and its answer lost, Prometheus has newer ones than these, and would refuse them ever
        after.
        """
        return self._message(self._new) if status in OLD_SAMPLES and self._new > self._known else b""

    def delivered(self) -> None:
        self._known |= self._new
        self._previous_ms = self._now_ms

    def headers(self) -> Mapping[str, str]:
        token = os.environ.get(TOKEN, "").strip()
        own = {
            "Content-Type": "application/x-protobuf",
            "Content-Encoding": "snappy",
            "X-Prometheus-Remote-Write-Version": "0.1.0",
        }
        return own | ({"Authorization": f"Bearer {token}"} if token else {})

    def end(self) -> None:
        self._totals.users = 0
        super().end()

    def _message(self, known: Set[Labels]) -> bytes:
        series = list(self._series())
        self._new = {labels for labels, _ in series}
        return snappy(b"".join(_field(1, self._time_series(labels, value, known)) for labels, value in series))

    def _series(self) -> Iterator[tuple[Labels, float]]:
        yield self._labels("users", {}), self._totals.users
        for host, cores in self._totals.busy_cores.items():
            yield self._labels("busy_cores", {"host": host}), cores
        for of, total in self._totals.of.items():
            yield from self._of_total(of, total)

    def _of_total(self, of: Of, total: Total) -> Iterator[tuple[Labels, float]]:
        tags = of._asdict()
        yield self._labels("samples_total", tags), total.n
        for cause, n in total.causes.items():
            yield self._labels("errors_total", tags | {"cause": cause}), n
        n_times = 0
        for bound_s, n in zip((*map(repr, BOUNDS_S), "+Inf"), total.buckets, strict=True):
            n_times += n
            yield self._labels("response_time_seconds_bucket", tags | {"le": bound_s.removesuffix(".0")}), n_times
        yield self._labels("response_time_seconds_count", tags), n_times
        yield self._labels("response_time_seconds_sum", tags), total.sum_s

    def _labels(self, name: str, tags: Mapping[str, str]) -> Labels:
        """Return the labels of a series, in the order of their names, as the protocol asks for."""
        labels = {"__name__": SERIES + name, "job": "framestorm", "plan": self.plan, "run": self.run, **tags}
        return tuple(sorted((label, value) for label, value in labels.items() if value))

    def _time_series(self, labels: Labels, value: float, known: Set[Labels]) -> bytes:
        message = b"".join(_field(1, _text(1, name) + _text(2, text)) for name, text in labels)
        if labels not in known and not labels[0][1].endswith(("users", "busy_cores")):
            message += _field(2, _sample(0.0, self._previous_ms))
        return message + _field(2, _sample(value, self._now_ms))


def _sample(value: float, at_ms: int) -> bytes:
    return b"\x09" + struct.pack("<d", value) + b"\x10" + varint(at_ms)


def _text(number: int, text: str) -> bytes:
    return _field(number, text.encode(errors="replace"))


def _field(number: int, content: bytes) -> bytes:
    """A field of protobuf whose length comes before its content."""
    return varint(number << 3 | 2) + varint(len(content)) + content


def varint(number: int) -> bytes:
    """Return a whole number in groups of 7 bits, the lowest first."""
    groups = bytearray()
    while number > 0x7F:
        groups.append(number & 0x7F | 0x80)
        number >>= 7
    groups.append(number)
    return bytes(groups)


def snappy(content: bytes) -> bytes:
    """Return the content in snappy's block format, in blocks of plain bytes."""
    parts = [varint(len(content))]
    for at in range(0, len(content), SNAPPY_BLOCK):
        block = content[at : at + SNAPPY_BLOCK]
        # A tag of 61 << 2: the length of the block, less 1, follows in two bytes.
        parts += [b"\xf4", struct.pack("<H", len(block) - 1), block]
    return b"".join(parts)
