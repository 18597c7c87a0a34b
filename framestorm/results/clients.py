"""The output of a run's clients, from the journals and tree.xml, as samples.csv: one row per sample.

The line of a sample in a journal is its raw form, against which the tree is counted: the tree's lines are read only of
users of which both have not the same number of samples. A run without a journal has its samples from the tree.
"""

import ctypes
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np
import polars as pl

from framestorm.model.sample import Line, is_of_user, is_sample, parsed
from framestorm.results.lines import PLACE, Batch, LineReader
from framestorm.results.rows import RowBuffer, Waiting
from framestorm.results.tree import TreeReader, TreeSample
from framestorm.results.users import IN_BOTH, IN_JOURNAL, IN_TREE, ByteFlags, Indices, UserHistory, finite

BATCH_BYTES = 1 << 23
# Samples of the journal that wait until it and the tree are known to have the same of their user: more are written in
# another order than that of the tree; of still more, the tree's lines are read.
MAX_IN_ORDER, MAX_WAITING = 250_000, 500_000
T = TypeVar("T")
TREE, JOURNAL, OUTPUT = "tree.xml", "the journal", "the clients' output"


@dataclass
class ClientFiles:
    """What tree.xml and the journals contain in addition to samples.csv; counts are of samples unless stated otherwise.

    labels: samples by label; ok, rtt_ms: how many are without error, and the sum of their response times.
    twice, bad_lines: by the name of the file; bad_line: one of the clients' lines that cannot be used, and why.
    """

    users: dict[str, UserHistory] = field(default_factory=dict)
    labels: Counter[str] = field(default_factory=Counter)
    ok: int = 0
    rtt_ms: float = 0.0
    tree_problem: str | None = None
    journal_problem: str | None = None
    has_journal: bool = False
    twice: Counter[str] = field(default_factory=Counter)
    bad_lines: Counter[str] = field(default_factory=Counter)
    bad_line: str = ""

    @property
    def from_tree(self) -> int:
        """How many samples the tree has."""
        return sum(user.sources.count(IN_TREE) + user.sources.count(IN_BOTH) for user in self.users.values())

    @property
    def from_journal(self) -> int:
        """How many samples only the journal has."""
        return sum(user.sources.count(IN_JOURNAL) for user in self.users.values())

    @property
    def from_killed_users(self) -> int:
        """How many of these are of users that JMeter ended before they could hand them in: none was lost on its way."""
        users = (user for user in self.users.values() if user.in_tree and not user.has_last_line)
        return sum(user.sources.count(IN_JOURNAL) for user in users)

    @property
    def judged_twice(self) -> int:
        """How many users have the same samples in tree and journal, but not the same number without error."""
        return sum(user.is_equal and user.tree_ok != user.journal_ok for user in self.users.values())


def read_clients(run_dir: Path, table: Path) -> ClientFiles:
    """Stream the journals and tree.xml of `run_dir` into the CSV file `table`.

    Memory grows by a byte per sample and some hundred bytes per user.
    """
    body = table.with_name(f"{table.name}.body")
    journals = [path for path in (run_dir / "journal.jsonl", *sorted(run_dir.glob("journal-*.jsonl"))) if path.exists()]
    try:
        with body.open("wb") as file, ThreadPoolExecutor(3) as threads:
            rows = RowBuffer(file)
            reader = _Reader(run_dir / "tree.xml", rows, threads)
            reader.read(journals)
            rows.save(table)
            files = reader.files
    finally:
        body.unlink(missing_ok=True)
    # The C library keeps freed buffers, for each thread its own: here 100 MB, with what the readers hold.
    del reader
    ctypes.CDLL(None).malloc_trim(0)
    return files


class _Worker(Generic[T]):
    """Runs one task at a time on another thread; to submit the next one is to wait for the one before."""

    def __init__(self, threads: ThreadPoolExecutor) -> None:
        self._threads = threads
        self._task: Future[T] | None = None

    def submit(self, work: Callable[..., T], *arguments: object) -> T | None:
        """Start a task; returns the result of the one before, or None if there was none."""
        result = self.wait()
        self._task = self._threads.submit(work, *arguments)
        return result

    def wait(self) -> T | None:
        """Wait for the running task; returns its result, or None if there is no task."""
        task, self._task = self._task, None
        return task.result() if task else None


class _Reader:
    """Reads lines and writes their rows in parallel: the library releases the interpreter's lock."""

    def __init__(self, tree: Path, rows: RowBuffer, threads: ThreadPoolExecutor) -> None:
        self.files = ClientFiles()
        self._tree, self._rows = tree, rows
        self._journal_lines, self._tree_lines = LineReader(), LineReader()
        self._reading, self._writing = _Worker[Batch](threads), _Worker[None](threads)
        self._tree_reading = _Worker[tuple[Batch, list[TreeSample], Indices]](threads)
        self._users: list[UserHistory] = []
        # Lines of the tree, until there are enough to read them in bulk.
        self._text: list[bytes] = []
        self._text_bytes = 0
        self._of: list[TreeSample] = []
        self._writes_rows = True
        # All samples of the users before `_next` are written.
        self._waiting, self._next = Waiting(), 0

    def read(self, journals: Sequence[Path]) -> None:
        """Read every sample from the journals, and those that only the tree has from there."""
        has_journal = self.files.has_journal = bool(journals)
        tree = TreeReader(self._end_of_user, self._take_lines, lambda _: not has_journal)
        self.files.tree_problem = tree.read(self._tree)
        for sample in tree.unfinished:
            if sample.samples:
                self._of_tree(sample, {})
        self._finish_tree()
        for path in journals:
            self._journal(path)
        if has_journal:
            self._look_up(lambda user: not user.is_equal, writes_rows=True)
            self._write_waiting(is_over=True)
        self._writing.wait()

    def _end_of_user(self, sample: TreeSample) -> None:
        last_line = parsed(self._last_line(sample))
        if not is_of_user(last_line, "user"):
            last_line = {}
        self._of_tree(sample, last_line).end_by_tree(sample.attributes, last_line)
        if last_line:
            self.files.bad_lines[OUTPUT] += int(finite(last_line.get("bad_lines")) or 0)
            self.files.bad_line = self.files.bad_line or str(last_line.get("problem", ""))

    def _last_line(self, sample: TreeSample) -> str:
        """The last line of a user's output; the others are samples even if the plan made no sub-results of them."""
        text = "".join(sample.text)
        if not sample.samples:
            rows = [(row, line) for row in text.split("\n") if is_sample(line := parsed(row))]
            sample.samples, sample.ok = len(rows), sum(line["ok"] for _, line in rows)
            sample.line = rows[-1][0] if rows else ""
            if rows and sample.has_lines:
                self._take_lines("".join(f"{row}\n" for row, _ in rows).encode(), sample)
        return text[text.rfind("\n{", 0, len(text.rstrip())) + 1 :].partition("\n")[0]

    def _of_tree(self, sample: TreeSample, last_line: Line) -> UserHistory:
        """Count the samples of a user of the tree; its last line, or else that of its samples, give it its name."""
        attributes, line = sample.attributes, last_line or parsed(sample.line)
        name = line["user"] if is_of_user(line, "user", "sample") else f"unnamed-{len(self._users) + 1}"
        user = self._user(name, attributes.get("hn"))
        user.thread = attributes.get("tn", "")
        user.places.append(sample.number)
        user.tree_samples += sample.samples
        user.tree_ok += sample.ok
        return user

    def _take_lines(self, lines: bytes, user: TreeSample) -> None:
        self._text.append(lines)
        self._text_bytes += len(lines)
        self._of.append(user)
        if self._text_bytes > BATCH_BYTES:
            self._read_lines()

    def _look_up(self, is_meant: Callable[[UserHistory], bool], *, writes_rows: bool) -> None:
        """Find in the tree, line by line, which samples it has of some users."""
        users = [user for user in self._users if user.tree_samples and is_meant(user)]
        places = {place for user in users for place in user.places}
        for user in users:
            user.forget_tree()
            user.is_known = True
        if places:
            self._writes_rows = writes_rows
            TreeReader(self._last_line, self._take_lines, places.__contains__).read(self._tree)
            self._finish_tree()

    def _read_lines(self) -> None:
        text, of = self._text, self._of
        self._text, self._of, self._text_bytes = [], [], 0
        ends = np.cumsum([lines.count(b"\n") for lines in text])
        if batch := self._tree_reading.submit(lambda: (self._tree_lines.read(b"".join(text)), of, ends)):
            self._tree_batch(*batch)

    def _finish_tree(self) -> None:
        if self._text:
            self._read_lines()
        if batch := self._tree_reading.wait():
            self._tree_batch(*batch)

    def _tree_batch(self, batch: Batch, of: list[TreeSample], ends: Indices) -> None:
        keys = batch.keys
        # Of each sample, which of the users' samples it is in.
        outer = np.searchsorted(ends, keys[PLACE].to_numpy(), side="right")
        before, users = self._mark(keys, IN_TREE, lambda row: of[outer[row]].attributes.get("hn"))
        if not self._writes_rows:
            return
        self.files.bad_lines += Counter({TREE: len(batch.others)})
        self.files.twice += Counter({TREE: int(np.count_nonzero(before & IN_TREE))})  # which adds no zeros
        is_new = before == 0
        if is_new.any():
            threads = pl.Series([user.attributes.get("tn", "") for user in of], dtype=pl.String)
            samples = batch.samples(keys.filter(is_new)[PLACE]).with_columns(
                pl.Series("host", [self._users[number].host for number in users[is_new]]),
                threads.gather(outer[is_new]).alias("thread"),
                pl.lit("tree").alias("source"),
            )
            self._writing.submit(self._write, samples, list(self._tree_lines.names))

    def _journal(self, path: Path) -> None:
        with path.open("rb") as file:
            while text := file.read(BATCH_BYTES) + file.readline():
                end = text.rfind(b"\n") + 1
                if end < len(text):
                    text = text[:end]
                    self.files.journal_problem = f"{path.name} ends in the middle of a line; the line was left out"
                if text and (batch := self._reading.submit(self._journal_lines.read, text)):
                    self._journal_batch(batch)
        if batch := self._reading.wait():
            self._journal_batch(batch)

    def _journal_batch(self, batch: Batch) -> None:
        for line in batch.others.values():
            if is_of_user(line, "start", "user"):
                self._user(line["user"]).take_journal_line(line)
            else:
                self.files.bad_lines[JOURNAL] += 1
        before, users = self._mark(batch.keys, IN_JOURNAL)
        is_new = before & IN_JOURNAL == 0
        self.files.twice += Counter({JOURNAL: int(np.count_nonzero(~is_new))})
        if is_new.any():
            new = batch.keys.filter(is_new)
            self._waiting.add(users[is_new], new["index"].to_numpy(), batch.samples(new[PLACE]))
            self._write_waiting()

    def _write_waiting(self, *, is_over: bool = False) -> None:
        """Write samples of the users of which the tree is known to have the same, in its order."""
        waiting = self._waiting
        if len(waiting) > MAX_WAITING:
            self._look_up(lambda user: not user.is_complete, writes_rows=False)
        while self._next < len(self._users) and self._users[self._next].is_complete:
            self._next += 1
        end = len(self._users) if len(waiting) > MAX_IN_ORDER else self._next
        numbers, of_row = np.unique(waiting.users, return_inverse=True)
        users = [self._users[number] for number in numbers]
        is_ready = [is_over or (user.is_complete and (user.number < end or not user.tree_samples)) for user in users]
        if not any(is_ready):
            return
        taken, indices, samples = waiting.take(np.array(is_ready)[of_row])
        starts = np.flatnonzero(np.diff(taken, prepend=-1))
        users = [self._users[number] for number in taken[starts]]
        for user in users:
            if user.is_equal and not user.is_known:
                user.take_tree_as_journal()
        parts = zip(users, np.split(indices, starts[1:]), strict=True)
        is_in_tree = pl.Series(np.concatenate([user.are_in_tree(some) for user, some in parts]))
        of = np.repeat(np.arange(len(users)), np.diff(starts, append=taken.size))
        host, thread = (pl.Series([getattr(user, name) for user in users]).gather(of) for name in ("host", "thread"))
        samples = samples.with_columns(
            host.alias("host"),
            pl.when(is_in_tree).then(thread).otherwise(pl.lit("")).alias("thread"),
            pl.when(is_in_tree).then(pl.lit("tree")).otherwise(pl.lit("journal")).alias("source"),
        )
        self._writing.submit(self._write, samples, list(self._journal_lines.names))

    def _mark(
        self, keys: pl.DataFrame, source: int, host: Callable[[int], str | None] = lambda _: None
    ) -> tuple[ByteFlags, Indices]:
        """Record where the samples are; returns the sources recorded before each, and the number of its user.

        host: that of a new user by its row.
        """
        index, is_next = pl.col("index"), (pl.col("index").diff() == 1).all().alias("is_next")
        of_users = keys.with_row_index("row").group_by("user", maintain_order=True)
        grouped = of_users.agg("row", index.first().alias("first"), is_next, pl.col("ok").sum(), "index")
        rows, indices = (grouped[name].explode().to_numpy() for name in ("row", "index"))
        ends = grouped["row"].list.len().cum_sum()
        before, numbers = np.zeros(keys.height, np.uint8), np.empty(keys.height, np.int32)
        of, start = [], 0
        columns = grouped.select("user", "first", "is_next", "ok")
        for name, first, is_in_order, ok, end in zip(*columns, ends, strict=True):
            user = self._user(name, host(rows[start]))
            of.append(user.number)
            if not (is_in_order and user.append(first, end - start, source)):
                before[rows[start:end]] = user.add(indices[start:end], source)
            if source == IN_JOURNAL:
                user.journal_ok += ok
            start = end
        numbers[rows] = np.repeat(np.array(of, np.int32), np.diff(ends.to_numpy(), prepend=0))
        return before, numbers

    def _write(self, samples: pl.DataFrame, names: Sequence[str]) -> None:
        self.files.labels.update(dict(samples.group_by("label", maintain_order=True).len().iter_rows()))
        # Of lines that are read one by one, all fields are texts.
        n_ok, rtt_ms = (pl.col("ok").cast(pl.String) == "true").sum(), pl.col("rtt_ms").cast(pl.Float64, strict=False)
        ok, sum_ms = samples.select(n_ok, rtt_ms.sum()).row(0)
        self.files.ok += ok
        self.files.rtt_ms += sum_ms
        self._rows.add(samples, names)

    def _user(self, name: str, host: str | None = None) -> UserHistory:
        user = self.files.users.get(name)
        if user is None:
            # The client names a user <host>-<pid>-<start in ms>.
            user = self.files.users[name] = UserHistory(name, host or name.rsplit("-", 2)[0], len(self._users))
            self._users.append(user)
        return user
