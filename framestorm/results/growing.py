"""The raw files of a run that goes on, read as they grow: each line once, as Intervals.

The reader shares the cores with JMeter, which may write 10,000 rows a second, so a row has to cost microseconds. The
library that reads the files of a run that is over is not loaded, but what a line says is decided by the same rules.
"""

import csv
import io
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from operator import itemgetter
from pathlib import Path

from framestorm.model.cause import TRANSACTION_PATTERN, request_cause, transaction_cause, user_cause
from framestorm.model.criteria import ALL, USER, own_label
from framestorm.model.run import Host, Record
from framestorm.model.sample import (
    CUT_TRANSACTION,
    ELAPSED_US,
    SAMPLE_KIND,
    SUB_RESULT,
    TRANSACTION,
    Line,
    is_of_user,
    is_sample,
    parsed,
)
from framestorm.results.interval import Interval, Key

CHUNK_BYTES = 4 << 20
# A quotation mark that nothing ends would hide all rows after it.
LONGEST_ROW_BYTES = 1 << 20
# Ends outside of the run, by so much, are of times that a script made up.
SLACK_S = 5.0
NO_PAUSE = frozenset({"0", ""})
NO_URL = frozenset({"null", ""})
OTHER_MEANINGS = frozenset({ALL, USER})
COLUMNS = (
    "timeStamp", "elapsed", "success", "label", "allThreads", "Hostname", SAMPLE_KIND, "responseMessage", ELAPSED_US,
    "IdleTime",
)  # fmt: skip
DETAILS = ("responseCode", "failureMessage", "URL")
_cause = lru_cache(maxsize=4096)(request_cause)


class GrowingRun:
    """Reads the raw files of a run that goes on.

    users_now: how many users each slave has (this machine: the empty name), of users that are processes or of JMeter's
    threads; first_start_s: when the first user or sample started; busy_cores: of each host.
    """

    def __init__(self, run_dir: Path, record: Record, *, has_journal: bool) -> None:
        self.users_now: dict[str, int] = {}
        self.busy_cores: dict[str, float] = {}
        self.first_start_s: float | None = None
        self._oldest_s = (record.started_ms / 1000 if record.started_ms else time.time()) - SLACK_S
        self._now_s = 0.0
        self._run_dir, self._has_users, self._has_journal = run_dir, record.has_users, has_journal
        self._slaves = {host.name: host for host in record.slaves}
        self._files: dict[Path, _GrowingFile] = {}
        self._intervals: dict[tuple[int, str, str, str], Interval] = {}

    def read(self, now_s: float) -> list[Interval]:
        """Read what was written since the last call."""
        self._now_s, self._intervals = now_s, {}
        if self._has_journal:
            for path in sorted(self._run_dir.glob("journal*.jsonl")):
                slave = path.stem.removeprefix("journal").removeprefix("-")
                for line in self._file(path).lines():
                    self._journal_line(parsed(line), slave)
        else:
            for columns, rows in self._file(self._run_dir / "samples.jtl").rows():
                self._sample_rows(columns, rows)
        for columns, rows in self._file(self._run_dir / "resources.csv").rows():
            for row in rows:
                with suppress(KeyError, ValueError):
                    self._resources(dict(zip(columns, row, strict=False)))
        return list(self._intervals.values())

    def _file(self, path: Path) -> "_GrowingFile":
        return self._files.setdefault(path, _GrowingFile(path))

    def _journal_line(self, line: Line, slave: str) -> None:
        """Count a line of a client; the report counts those that cannot be read."""
        if is_sample(line):
            cause = None if line["ok"] else line.get("cause") or "unknown"
            start_s = _number(line["start_ms"]) / 1000
            self._add(line["label"], "sampler", slave, start_s, _number(line.get("rtt_ms")), cause)
        elif is_of_user(line, "start", "user"):
            is_start = line["type"] == "start"
            self.users_now[slave] = self.users_now.get(slave, 0) + (1 if is_start else -1)
            start_s = _number(line.get("start_ms")) / 1000
            if is_start:
                self._first(start_s if self._oldest_s <= start_s <= self._now_s + SLACK_S else self._now_s)
            else:
                cause = None if line.get("ok") is True else str(line.get("cause"))
                self._add(USER, "user", slave, start_s, _number(line.get("duration_ms")), cause)

    def _sample_rows(self, columns: Sequence[str], rows: Iterator[list[str]]) -> None:
        at = {name: number for number, name in enumerate(columns)}
        if not {"timeStamp", "elapsed", "success"} <= at.keys():
            return
        nowhere = len(columns)  # each row gets an empty cell there
        cells, details = (itemgetter(*(at.get(name, nowhere) for name in names)) for names in (COLUMNS, DETAILS))
        threads_now: dict[str, str] = {}
        for row in rows:
            row.append("")
            try:
                time_ms, elapsed, success, label, threads, host, kind, message, exact_us, idle = cells(row)
                start_s, rtt_ms = float(time_ms) / 1000, float(elapsed)
                if exact_us and idle in NO_PAUSE and -1 < (exact_ms := float(exact_us) / 1000) - rtt_ms < 1:
                    rtt_ms = exact_ms
                code, failure, url = details(row) if success != "true" or not kind else ("", "", "")
            except (ValueError, IndexError):
                continue
            # Rows by JMeter alone (--unpatched) do not say their kind.
            if not kind and url in NO_URL and TRANSACTION_PATTERN.search(message):
                kind = TRANSACTION
            is_user = self._has_users and label == USER
            # The samples of a user that is a process are its sub-results.
            if kind == CUT_TRANSACTION or (kind == SUB_RESULT and not self._has_users):
                continue
            cause = None
            if success != "true" and is_user:
                cause = user_cause(code, message)
            elif success != "true" and kind == TRANSACTION:
                cause = transaction_cause(message, failure)
            elif success != "true":
                cause = _cause(code, message, failure, url != "null")
            # JMeter counts the threads of a host.
            slave = self._slaves.get(host)
            name = shown(slave) if slave else ""
            threads_now[name] = threads
            if slave:
                start_s -= slave.clock_offset_ms / 1000
            if is_user:
                self._add(USER, "user", name, start_s, rtt_ms, cause)
            else:
                of_kind = TRANSACTION if kind == TRANSACTION else "sampler"
                self._add(own_label(label) if label in OTHER_MEANINGS else label, of_kind, name, start_s, rtt_ms, cause)
        self.users_now |= {name: int(threads) for name, threads in threads_now.items() if threads.isdecimal()}

    def _add(self, label: str, kind: str, slave: str, start_s: float, ms: float, cause: str | None) -> None:
        """Count a sample in the second in which it ended; one without possible times in that of now."""
        end_s = start_s + ms / 1000
        is_possible = self._oldest_s <= start_s <= end_s <= self._now_s + SLACK_S
        of = (int(end_s if is_possible else self._now_s), label, kind, slave)
        interval = self._intervals.get(of)
        if interval is None:
            interval = self._intervals[of] = Interval(Key._make(of))
        interval.add(start_s, ms if is_possible else None, cause)
        if is_possible and (self.first_start_s is None or start_s < self.first_start_s):
            self.first_start_s = start_s

    def _first(self, start_s: float) -> None:
        if self.first_start_s is None or start_s < self.first_start_s:
            self.first_start_s = start_s

    def _resources(self, row: Mapping[str, str]) -> None:
        if row["part"] == "host":
            self.busy_cores[row["host"]] = float(row["cpu_percent"]) / 100


class _GrowingFile:
    """A text file that something still writes, which may not exist yet; one that became shorter is another one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._columns: list[str] = []

    def lines(self) -> Iterator[str]:
        """Yield the complete lines since the last call."""
        while data := self._added():
            end = data.rfind(b"\n") + 1
            if not end and len(data) < CHUNK_BYTES:
                return
            self._offset += end or len(data)
            yield from data[:end].decode(errors="replace").split("\n")[:-1]

    def rows(self) -> Iterator[tuple[list[str], Iterator[list[str]]]]:
        """Yield the complete rows of a CSV file since the last call, in pieces, each with the names of the columns."""
        while data := self._added():
            end = end_of_rows(data)
            if not end and len(data) > LONGEST_ROW_BYTES:
                end = data.rfind(b"\n") + 1 or len(data)
            if not end:
                return
            self._offset += end
            rows = _rows(data[:end].decode(errors="replace"))
            if not self._columns:
                self._columns = next(rows, [])
            yield self._columns, rows

    def _added(self) -> bytes:
        with suppress(FileNotFoundError), self._path.open("rb") as file:
            if file.seek(0, io.SEEK_END) < self._offset:
                self._offset, self._columns = 0, []
            file.seek(self._offset)
            return file.read(CHUNK_BYTES)
        return b""


def end_of_rows(data: bytes, quotes: int = 0) -> int:
    """Where the last complete row of CSV ends, after that many quotation marks; a line break inside them ends none."""
    end = data.rfind(b"\n") + 1
    quotes += data.count(b'"', 0, end)
    while end and quotes % 2:
        before = data.rfind(b"\n", 0, end - 1) + 1
        quotes -= data.count(b'"', before, end)
        end = before
    return end


def _rows(text: str) -> Iterator[list[str]]:
    """Yield the rows of a text; one with a field that is too long is left out."""
    csv.field_size_limit(LONGEST_ROW_BYTES)  # Python's own limit is an eighth of it, and that of the whole process
    reader = csv.reader(io.StringIO(text, newline=""))
    while True:
        try:
            yield from reader
        except csv.Error:
            continue
        return


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) and abs(value) < 1e300 else math.nan


def shown(host: Host) -> str:
    """Return a host as people call it."""
    return host.inventory_name or host.name
