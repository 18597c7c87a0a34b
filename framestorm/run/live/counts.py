"""The figures of a run that goes on, counted from its raw files as they grow; each is read once.

The reader shares the cores with JMeter, which may write 10,000 rows a second, so a row has to cost microseconds.
"""

import csv
import io
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from operator import itemgetter
from pathlib import Path

from framestorm.model.cause import request_cause, transaction_cause
from framestorm.model.criteria import ALL, EACH, OF_TRANSACTION, USER, Criterion, own_label
from framestorm.model.judgement import Group
from framestorm.model.run import Host, Record
from framestorm.model.sample import CUT_TRANSACTION, ELAPSED_US, SAMPLE_KIND, SUB_RESULT, TRANSACTION, Line
from framestorm.run.live.tally import SoFar, Tally, kept

MAX_LABELS = 1000
OTHER_LABELS = "other labels"
CHUNK_BYTES = 4 << 20
# A quotation mark that nothing ends would hide all rows after it.
LONGEST_ROW_BYTES = 1 << 20
# Ends outside of the run, by so much, are of times that a script made up.
SLACK_S = 5.0
NO_PAUSE = frozenset({"0", ""})
OTHER_MEANINGS = frozenset({ALL, USER})
_cause = lru_cache(maxsize=4096)(request_cause)


class Counts:
    """What was counted of a run so far: in all, by slave and by label, and for its criteria."""

    def __init__(self, run_dir: Path, record: Record, criteria: Sequence[Criterion], *, has_journal: bool) -> None:
        self.whole = Tally()
        self.by_label: dict[str, Tally] = {}
        self.transactions: set[str] = set()
        self.busy_cores: dict[str, float] = {}
        self.first_start_s: float | None = None
        self.first_end_s: float | None = None
        self._now_s = 0.0
        self._oldest_s = (record.started_ms / 1000 if record.started_ms else time.time()) - SLACK_S
        self._run_dir, self._record, self._has_journal = run_dir, record, has_journal
        self._hosts = {host.name: host for host in record.hosts}
        self.by_slave = {shown(host): Tally() for host in record.hosts if host.role == "slave"}
        self._is_judged = {criterion.label for criterion in criteria}
        self._so_far: dict[str, SoFar] = {}
        self._rows = _Rows()
        # How far each other file has been read, and the columns of CSV files.
        self._progress: dict[Path, tuple[int, list[str]]] = {}

    def read(self, now_s: float) -> None:
        """Count what was written since the last call."""
        self._now_s = now_s
        if self._has_journal:
            for path in sorted(self._run_dir.glob("journal*.jsonl")):
                self._follow(path, self._journal_line)
        else:
            for columns, rows in self._rows.new(self._run_dir / "samples.jtl"):
                self._sample_rows(columns, rows)
        self._follow(self._run_dir / "resources.csv", self._resources_row)

    def group(self, label: str, *, is_at_rate: bool) -> Group:
        """What a criterion about a label is judged by."""
        so_far = self._so_far.get(label)
        return so_far.group(is_at_rate=is_at_rate) if so_far else Group(label)

    def _follow(self, path: Path, take: Callable[[Path, Line], None]) -> None:
        """Read the complete lines that were added to a file, which may not exist yet."""
        offset, columns = self._progress.get(path, (0, []))
        data = _added(path, offset, None)
        end = data.rfind(b"\n") + 1
        for line in data[:end].decode(errors="replace").split("\n")[:-1]:
            # The report reads the files again and counts the lines that cannot be read.
            with suppress(ValueError, LookupError, TypeError, ArithmeticError, RecursionError, csv.Error):
                if path.suffix == ".jsonl":
                    take(path, json.loads(line))
                elif columns:
                    take(path, dict(zip(columns, next(csv.reader([line])), strict=False)))
                else:
                    columns = next(csv.reader([line]))
        self._progress[path] = (offset + end, columns)

    def _journal_line(self, path: Path, entry: Line) -> None:
        slave = path.stem.removeprefix("journal").removeprefix("-")
        tallies = [self.whole, *([self.by_slave.setdefault(slave, Tally())] if slave else [])]
        if entry["type"] == "start":
            for tally in tallies:
                tally.users_now += 1
            self._first(entry["start_ms"] / 1000 if "start_ms" in entry else self._now_s, None)
        elif entry["type"] == "user":
            for tally in tallies:
                tally.users_now -= 1
            self._user(tallies, is_ok=entry["ok"])
            if "duration_ms" in entry and "start_ms" in entry:
                cause = None if entry["ok"] else str(entry.get("cause"))
                self._judge_user(entry["start_ms"] / 1000, float(entry["duration_ms"]), cause)
        elif entry["type"] == "sample":
            label, cause = str(entry.get("label", "")), None if entry["cause"] is None else str(entry["cause"])
            end_s, ms = self._times(label, entry["start_ms"] / 1000, float(entry["rtt_ms"]))
            if "label" in entry:
                tallies.append(self._of_label(label))
            for tally in tallies:
                tally.add(end_s, ms, cause)
            for so_far in self._of_criteria(label):
                so_far.add(ms, cause)

    def _sample_rows(self, columns: Sequence[str], rows: Iterator[list[str]]) -> None:
        """Count rows of samples.jtl: first equal ones together, which is less work than each by itself."""
        at = {name: number for number, name in enumerate(columns)}
        if not {"timeStamp", "elapsed", "success"} <= at.keys():
            return
        nowhere = len(columns)  # each row gets an empty cell there
        names = ("timeStamp", "elapsed", "success", "label", "allThreads", "Hostname", SAMPLE_KIND, "responseMessage",
                 ELAPSED_US, "IdleTime")  # fmt: skip
        cells = itemgetter(*(at.get(name, nowhere) for name in names))
        details = itemgetter(*(at.get(name, nowhere) for name in ("responseCode", "failureMessage", "URL")))
        users_are_samples, whole = self._record.has_users, self.whole
        slaves = {name: host for name, host in self._hosts.items() if host.role == "slave"}
        equal: list[tuple[str, str, float, float | None, str | None, bool]] = []
        users_now: dict[str, str] = {}
        oldest_s, latest_s = self._oldest_s, self._now_s + SLACK_S
        starts_s: list[float] = []
        ends_s: list[float] = []
        for row in rows:
            row.append("")
            try:
                time_ms, elapsed, success, label, threads, host, kind, message, exact_us, idle = cells(row)
                start_s, rtt_ms = float(time_ms) / 1000, float(elapsed)
                if exact_us and idle in NO_PAUSE and -1 < (exact_ms := float(exact_us) / 1000) - rtt_ms < 1:
                    rtt_ms = exact_ms
                cause = None
                if success != "true":
                    code, failure, url = details(row)
                    of_sampler = _cause(code, message, failure, url != "null")
                    cause = transaction_cause(message, failure) if kind == TRANSACTION else of_sampler
            except (ValueError, IndexError):
                continue
            if label in OTHER_MEANINGS:
                # The samples of a user that is a process are its sub-results.
                if users_are_samples and label == USER:
                    self._user([whole], is_ok=cause is None)
                    self._judge_user(start_s, rtt_ms, cause)
                    continue
                label = own_label(label)
            if kind == CUT_TRANSACTION or (kind == SUB_RESULT and not users_are_samples):
                continue
            # JMeter counts the threads of a host.
            users_now[host] = threads
            if host in slaves:
                start_s -= slaves[host].clock_offset_ms / 1000
            end_s = start_s + rtt_ms / 1000
            if oldest_s <= start_s <= end_s <= latest_s:
                starts_s.append(start_s)
                ends_s.append(end_s)
                for so_far in self._of_criteria(label) if self._is_judged else ():
                    so_far.within(start_s, end_s)
                equal.append((label, host, int(end_s), kept(rtt_ms), cause, kind == TRANSACTION))
            else:
                equal.append((label, host, self._now_s, None, cause, kind == TRANSACTION))
        if ends_s:
            self._first(min(starts_s), min(ends_s))
        for host, threads in users_now.items():
            of_host = self.by_slave[shown(slaves[host])] if host in slaves else whole
            of_host.users_now = int(threads) if threads.isdecimal() else of_host.users_now
        for (name, host, end_s, ms, cause, is_transaction), n in Counter(equal).items():
            # A recorder names a transaction as its first request.
            if not is_transaction and name in self.transactions:
                self._rename(name, name + OF_TRANSACTION)
            is_of_both = is_transaction and name in self.by_label and name not in self.transactions
            label = name + OF_TRANSACTION if is_of_both else name
            tallies = [self._of_label(label)] if "label" in at else []
            # A transaction is made of samples that are counted.
            if is_transaction:
                self.transactions.add(label)
            else:
                tallies += [whole, self.by_slave[shown(slaves[host])]] if host in slaves else [whole]
            for tally in tallies:
                tally.add(end_s, ms, cause, n)
            for so_far in self._of_criteria(label):
                if not (is_transaction and so_far.label == ALL):
                    so_far.add(ms, cause, n)
        if self.by_slave:
            whole.users_now = sum(each.users_now for each in self.by_slave.values()) or whole.users_now

    def _rename(self, transaction: str, name: str) -> None:
        """Give a transaction the name it has on the page, now that a sampler of its old name has come."""
        self.transactions.remove(transaction)
        self.transactions.add(name)
        for table in (self.by_label, self._so_far):
            if transaction in table:
                table[name] = table.pop(transaction)  # type: ignore[assignment]
        if name in self._so_far:
            self._so_far[name].label = name

    def _times(self, label: str, start_s: float, rtt_ms: float) -> tuple[float, float | None]:
        """When a sample ended, and its time; of one outside of the run, when it was read, and None."""
        end_s = start_s + rtt_ms / 1000
        if not self._oldest_s <= start_s <= end_s <= self._now_s + SLACK_S:
            return self._now_s, None
        self._first(start_s, end_s)
        for so_far in self._of_criteria(label):
            so_far.within(start_s, end_s)
        return end_s, kept(rtt_ms)

    def _first(self, start_s: float, end_s: float | None) -> None:
        if self.first_start_s is None or start_s < self.first_start_s:
            self.first_start_s = start_s
        if end_s is not None and (self.first_end_s is None or end_s < self.first_end_s):
            self.first_end_s = end_s

    def _of_criteria(self, label: str) -> list[SoFar]:
        """What the criteria about a sample with that label are judged by."""
        is_one_of_each = EACH in self._is_judged and (label in self._so_far or len(self._so_far) < MAX_LABELS)
        names = [label] if label in self._is_judged or is_one_of_each else []
        names += [ALL] if ALL in self._is_judged else []
        return [self._so_far.get(name) or self._so_far.setdefault(name, SoFar(name)) for name in names]

    def _judge_user(self, start_s: float, duration_ms: float, cause: str | None) -> None:
        if USER in self._is_judged:
            so_far = self._so_far.setdefault(USER, SoFar(USER, "duration"))
            so_far.within(start_s, start_s + duration_ms / 1000)
            so_far.add(kept(duration_ms), cause)

    def _user(self, tallies: list[Tally], *, is_ok: bool) -> None:
        for tally in tallies:
            tally.users_done += 1
            tally.users_failed += not is_ok

    def _of_label(self, label: str) -> Tally:
        of = self.by_label.get(label)
        if of is None:
            if len(self.by_label) >= MAX_LABELS:
                label = OTHER_LABELS
            of = self.by_label.setdefault(label, Tally())
        return of

    def _resources_row(self, path: Path, row: Line) -> None:
        if row["part"] == "host":
            self.busy_cores[row["host"]] = float(row["cpu_percent"]) / 100


class _Rows:
    """Read the new rows of a CSV file that JMeter still writes; a line break within quotes ends no row."""

    def __init__(self) -> None:
        self._offset = 0
        self._columns: list[str] = []

    def new(self, path: Path) -> Iterator[tuple[list[str], Iterator[list[str]]]]:
        """The complete rows since the last call, in pieces, each with the names of the columns."""
        while data := _added(path, self._offset, CHUNK_BYTES):
            end = _end_of_rows(data)
            if not end:
                return
            self._offset += end
            rows = _parsed(data[:end].decode(errors="replace"))
            if not self._columns:
                self._columns = next(rows, [])
            yield self._columns, rows


def _added(path: Path, offset: int, most: int | None) -> bytes:
    with suppress(FileNotFoundError), path.open("rb") as file:
        file.seek(offset)
        return file.read() if most is None else file.read(most)
    return b""


def _end_of_rows(data: bytes) -> int:
    """Where the last complete row ends."""
    end = data.rfind(b"\n") + 1
    quotes = data.count(b'"', 0, end)
    while end and quotes % 2:
        before = data.rfind(b"\n", 0, end - 1) + 1
        quotes -= data.count(b'"', before, end)
        end = before
    return end or (data.rfind(b"\n") + 1 or len(data) if len(data) > LONGEST_ROW_BYTES else 0)


def _parsed(text: str) -> Iterator[list[str]]:
    """The rows of a text; one that is longer than Python reads is left out."""
    reader = csv.reader(io.StringIO(text, newline=""))
    while True:
        try:
            yield from reader
        except csv.Error:
            continue
        return


def shown(host: Host) -> str:
    """A host as people call it."""
    return host.inventory_name or host.name
