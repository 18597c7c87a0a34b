"""The output of a run's clients, from tree.xml and the journals, as samples.csv: one row per sample.

Samples are taken from the tree, and those that the tree does not have from the journal.
"""

import csv
import json
import math
import shutil
from collections import Counter
from dataclasses import dataclass, field
from itertools import repeat
from pathlib import Path
from typing import IO

from framestorm.model.cause import TIMEOUTS, user_cause
from framestorm.model.sample import COMMON, ORIGIN, Line, is_sample
from framestorm.results.tree import TreeReader, TreeSample

IN_TREE, IN_JOURNAL = 1, 2
TREE, JOURNAL, OUTPUT = "tree.xml", "the journal", "the clients' output"


@dataclass(slots=True)
class UserHistory:
    """What is known about one user; elapsed_ms is JMeter's (the whole process) or, without it, the client's own."""

    user: str
    host: str
    start_ms: float | None = None
    elapsed_ms: float | None = None
    ok: bool | None = None
    cause: str | None = None
    causes: tuple[str, ...] = ()
    planned_samples: int = 0
    in_tree: bool = False
    has_last_line: bool = False
    # For each of its samples, by index: IN_TREE, IN_JOURNAL, both flags, or 0.
    sources: bytearray = field(default_factory=bytearray)

    def add(self, index: int, source: int) -> int:
        """Record that the sample with that index is in that source; returns the sources recorded before."""
        if index >= len(self.sources):
            self.sources.extend(bytes(index + 1 - len(self.sources)))
        before = self.sources[index]
        self.sources[index] = before | source
        return before

    @property
    def ended(self) -> bool:
        return self.in_tree or self.has_last_line

    @property
    def censored(self) -> bool:
        """Whether the elapsed time is only a lower bound: the user, or each of its failed samples, timed out."""
        if not self.ended or self.ok:
            return False
        return self.cause == "user-timeout" or (bool(self.causes) and TIMEOUTS.issuperset(self.causes))


@dataclass
class ClientFiles:
    """What tree.xml and the journals contain in addition to samples.csv; counts are of samples unless stated otherwise.

    labels: samples by label.
    from_killed_users: samples from the journal of users that JMeter ended before they could hand them in.
    twice, bad_lines: by the name of the file; bad_line: one of the clients' lines that cannot be used, and why.
    """

    users: dict[str, UserHistory] = field(default_factory=dict)
    labels: Counter[str] = field(default_factory=Counter)
    tree_problem: str | None = None
    journal_problem: str | None = None
    has_journal: bool = False
    from_tree: int = 0
    from_journal: int = 0
    from_killed_users: int = 0
    twice: Counter[str] = field(default_factory=Counter)
    bad_lines: Counter[str] = field(default_factory=Counter)
    bad_line: str = ""


def read_clients(run_dir: Path, table: Path) -> ClientFiles:
    """Stream tree.xml and the journals of `run_dir` into the CSV file `table`.

    Memory grows by one byte per sample and some hundred bytes per user.
    """
    body = table.with_name(f"{table.name}.body")
    try:
        with body.open("w+", encoding="utf-8", newline="") as file:
            reader = _Reader(_Rows(file))
            reader.files.tree_problem = TreeReader(reader.tree_sample, reader.tree_user).read(run_dir / "tree.xml")
            for path in [run_dir / "journal.jsonl", *sorted(run_dir.glob("journal-*.jsonl"))]:
                if path.exists():
                    reader.journal(path)
            reader.rows.save(table)
    finally:
        body.unlink(missing_ok=True)
    return reader.files


class _Rows:
    """Rows of samples.csv. The header waits for the last line: only then are all further figures known."""

    def __init__(self, body: IO[str]) -> None:
        self._body = body
        self._writer = csv.writer(body, lineterminator="\n")
        self._columns = dict.fromkeys([*COMMON, *ORIGIN])
        self._narrowest = 0

    def add(self, line: Line, host: str, thread: str, source: str) -> None:
        values = line | {"host": host, "thread": thread, "source": source}
        if not self._columns.keys() >= values.keys() - {"type"}:
            self._columns |= dict.fromkeys(name for name in line if name != "type")
        self._narrowest = self._narrowest or len(self._columns)
        cells = [values.get(name) for name in self._columns]
        self._writer.writerow([str(cell).lower() if isinstance(cell, bool) else cell for cell in cells])

    def save(self, table: Path) -> None:
        self._body.seek(0)
        width = len(self._columns)
        with table.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(self._columns)
            if self._narrowest == width:
                shutil.copyfileobj(self._body, file)
            else:
                writer.writerows([*row, *repeat("", width - len(row))] for row in csv.reader(self._body))


class _Reader:
    def __init__(self, rows: _Rows) -> None:
        self.files = ClientFiles()
        self.rows = rows

    def tree_sample(self, text: str, outer: TreeSample) -> None:
        line = _parsed(text)
        if not is_sample(line):
            self.files.bad_lines[TREE] += 1
            return
        attributes = outer.attributes
        user = self._user(line["user"], attributes.get("hn"))
        # The user's own sample is read later and is matched by this.
        attributes["user"] = user.user
        if user.add(line["index"], IN_TREE) & IN_TREE:
            self.files.twice[TREE] += 1
            return
        self.files.from_tree += 1
        self._row(line, user, attributes.get("tn", ""), "tree")

    def tree_user(self, sample: TreeSample) -> None:
        text, attributes = "".join(sample.text), sample.attributes
        # Output lines of the process are samples even if the plan made no sub-results of them.
        if text.count('"sample"') > sample.samples:
            for row in text.splitlines():
                line = _parsed(row)
                if is_sample(line) and not self._in_tree(line):
                    self.tree_sample(row, sample)
        last_line = _parsed(text[text.rfind("\n{", 0, len(text.rstrip())) + 1 :].partition("\n")[0])
        if not _is_of_user(last_line, "user"):
            last_line = {}
        name = last_line.get("user") or attributes.get("user") or f"unnamed-{len(self.files.users) + 1}"
        user = self._user(name, attributes.get("hn"))
        user.in_tree = True
        user.start_ms = _number(attributes.get("ts"))
        user.elapsed_ms = _number(attributes.get("t"))
        user.ok = attributes.get("s") == "true"
        if last_line:
            _end(user, last_line)
            self.files.bad_lines[OUTPUT] += int(_number(last_line.get("bad_lines")) or 0)
            self.files.bad_line = self.files.bad_line or str(last_line.get("problem", ""))
        if not user.ok:
            # The cause set by the plan has priority over the client's last one, and that over an exit status alone.
            cause = user_cause(attributes.get("rc", ""), attributes.get("rm", ""))
            user.cause = user.cause if last_line and user.cause and cause.startswith("exit-") else cause
            user.causes = user.causes or (user.cause,)

    def journal(self, path: Path) -> None:
        self.files.has_journal = True
        with path.open("rb") as file:
            for raw in file:
                if not raw.endswith(b"\n"):
                    self.files.journal_problem = f"{path.name} ends in the middle of a line; the line was left out"
                    break
                self._journal_line(_parsed(raw))

    def _journal_line(self, line: Line) -> None:
        if is_sample(line):
            user = self._user(line["user"], None)
            before = user.add(line["index"], IN_JOURNAL)
            if before & IN_JOURNAL:
                self.files.twice[JOURNAL] += 1
            elif not before:
                self.files.from_journal += 1
                # JMeter ended it before it could report: its samples in the journal were not lost in transfer.
                self.files.from_killed_users += user.in_tree and not user.has_last_line
                self._row(line, user, "", "journal")
        elif _is_of_user(line, "start", "user"):
            user = self._user(line["user"], None)
            if user.start_ms is None:
                user.start_ms = _number(line.get("start_ms"))
            if line["type"] == "start":
                user.planned_samples = int(_number(line.get("samples")) or 0)
            elif not user.in_tree:
                user.elapsed_ms = _number(line.get("duration_ms"))
                user.ok = line.get("ok") is True
                _end(user, line)
        else:
            self.files.bad_lines[JOURNAL] += 1

    def _in_tree(self, line: Line) -> bool:
        user = self.files.users.get(line["user"])
        return user is not None and line["index"] < len(user.sources) and bool(user.sources[line["index"]] & IN_TREE)

    def _user(self, name: str, host: str | None) -> UserHistory:
        user = self.files.users.get(name)
        if user is None:
            # The client names a user <host>-<pid>-<start in ms>.
            user = self.files.users[name] = UserHistory(name, host or name.rsplit("-", 2)[0])
        return user

    def _row(self, line: Line, user: UserHistory, thread: str, source: str) -> None:
        self.files.labels[line["label"]] += 1
        self.rows.add(line, user.host, thread, source)


def _parsed(text: str | bytes) -> Line:
    """The JSON object that a line holds; empty if it holds none."""
    try:
        line = json.loads(text)
    except ValueError:
        return {}
    return line if isinstance(line, dict) else {}


def _is_of_user(line: Line, *types: str) -> bool:
    return line.get("type") in types and isinstance(line.get("user"), str)


def _end(user: UserHistory, last_line: Line) -> None:
    user.has_last_line = True
    causes, cause = last_line.get("causes"), last_line.get("cause")
    user.cause = cause if isinstance(cause, str) else None
    user.causes = tuple(causes) if isinstance(causes, dict) and causes else (user.cause,) if user.cause else ()


def _number(value: object) -> float | None:
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None
