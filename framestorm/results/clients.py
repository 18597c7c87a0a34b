"""The output of a run's clients, from tree.xml and the journals, as samples.csv: one row per sample.

Samples are taken from the tree, and those that the tree does not have from the journal.
"""

import ctypes
import math
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Generic, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from framestorm.model.cause import TIMEOUTS, user_cause
from framestorm.model.sample import COMMON, INDEX_LIMIT, ORIGIN, Line, is_sample
from framestorm.results.cells import inert
from framestorm.results.lines import PLACE, Batch, LineReader, parsed
from framestorm.results.tree import TreeReader, TreeSample

Indices = NDArray[np.signedinteger]
ByteFlags = NDArray[np.uint8]
BATCH_BYTES = 1 << 23
INPUT, INPUT_CHARACTERS = "video", 12  # in a user's last line, the beginning of its SHA-256 (client/user.py)
LONGEST_CAUSE = 200  # as of samples in jmx/java/plan/ClientSample.java
T = TypeVar("T")
IN_TREE, IN_JOURNAL = 1, 2
TREE, JOURNAL, OUTPUT = "tree.xml", "the journal", "the clients' output"


@dataclass(slots=True)
class UserHistory:
    """What is known about one user; elapsed_ms is JMeter's (the whole process) or, without it, the client's own.

    input: how the SHA-256 of what it sent begins.
    """

    user: str
    host: str
    start_ms: float | None = None
    elapsed_ms: float | None = None
    ok: bool | None = None
    cause: str | None = None
    causes: tuple[str, ...] = ()
    input: str | None = None
    planned_samples: int = 0
    in_tree: bool = False
    has_last_line: bool = False
    # For each of its samples, by index: IN_TREE, IN_JOURNAL, both flags, or 0.
    sources: bytearray = field(default_factory=bytearray)

    def add(self, indices: Indices, source: int) -> ByteFlags:
        """Record that the samples with those indices are in that source; returns the sources recorded before each."""
        self.sources.extend(bytes(max(0, int(indices.max()) + 1 - len(self.sources))))
        sources = np.frombuffer(self.sources, np.uint8)
        before: ByteFlags = sources[indices]
        if (indices[1:] <= indices[:-1]).any():
            is_repeated = np.ones(indices.size, bool)
            is_repeated[np.unique(indices, return_index=True)[1]] = False
            before[is_repeated] |= source
        sources[indices] |= np.uint8(source)
        return before

    @property
    def ended(self) -> bool:
        return self.in_tree or self.has_last_line

    @property
    def was_killed(self) -> bool:
        """Whether a client ended without a word of its own, and not by its timeout."""
        cut_off = self.in_tree and not self.has_last_line and self.planned_samples > 0
        return cut_off and (self.cause or "").startswith("exit-")

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

    Memory grows by nine bytes per sample and some hundred bytes per user.
    """
    body = table.with_name(f"{table.name}.body")
    try:
        with body.open("wb") as file, ThreadPoolExecutor(2) as threads:
            reader = _Reader(_RowBuffer(file), _Worker(threads), _Worker(threads))
            tree = TreeReader(reader.tree_lines, reader.tree_user)
            reader.files.tree_problem = tree.read(run_dir / "tree.xml")
            reader.read_pending()
            reader.wait()
            for path in [run_dir / "journal.jsonl", *sorted(run_dir.glob("journal-*.jsonl"))]:
                if path.exists():
                    reader.journal(path)
            reader.wait()
            reader.rows.save(table)
            files = reader.files
    finally:
        body.unlink(missing_ok=True)
    # The C library keeps freed buffers, for each thread its own: here 100 MB, with what the readers hold.
    del reader, tree
    ctypes.CDLL(None).malloc_trim(0)
    return files


class _RowBuffer:
    """Rows of samples.csv. A further figure that comes later than the first row is a further column of all rows."""

    def __init__(self, body: IO[bytes]) -> None:
        self._body = body
        self._columns = dict.fromkeys([*COMMON, *ORIGIN])
        self._header: list[str] = []

    def add(self, samples: pl.DataFrame, names: Iterable[str]) -> None:
        """Add samples with host, thread and source; `names` are their fields as they first came."""
        self._columns |= dict.fromkeys(name for name in names if name in samples.columns)
        self._header = self._header or self._begin()
        cells = [pl.col(name) if name in samples.columns else pl.lit(None).alias(name) for name in self._columns]
        texts = samples.select(cells).with_columns(pl.col(pl.String).replace("", None))
        texts.with_columns(inert()).write_csv(self._body, include_header=False)

    def save(self, table: Path) -> None:
        header = self._header or self._begin()
        self._body.flush()
        if len(header) == len(self._columns):
            Path(self._body.name).replace(table)
        else:
            # The rows before the further columns are shorter.
            schema = dict.fromkeys(self._columns, pl.String)
            rows = pl.scan_csv(self._body.name, has_header=False, skip_rows=1, schema=schema, missing_columns="insert")
            rows.sink_csv(table)

    def _begin(self) -> list[str]:
        self._body.write(",".join(self._columns).encode() + b"\n")
        return list(self._columns)


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
    """Finds lines, reads them and writes their rows in parallel: the library releases the interpreter's lock."""

    def __init__(self, rows: _RowBuffer, reading: _Worker[Any], writing: _Worker[None]) -> None:
        self.files = ClientFiles()
        self.rows = rows
        self._reader = LineReader()
        self._reading, self._writing = reading, writing
        # Of the tree, until there are enough lines to read them in bulk.
        self._lines: list[bytes] = []
        self._lines_bytes = 0
        self._of: list[TreeSample] = []
        self._ended: list[TreeSample] = []

    def tree_lines(self, lines: bytes, user: TreeSample) -> None:
        self._lines.append(lines)
        self._lines_bytes += len(lines)
        self._of.append(user)

    def tree_user(self, sample: TreeSample) -> None:
        text = "".join(sample.text)
        # Only its last line is needed later; the whole output would take as much memory as the samples.
        sample.text = [text[text.rfind("\n{", 0, len(text.rstrip())) + 1 :].partition("\n")[0]]
        # Output lines of the process are samples even if the plan made no sub-results of them.
        rows = [] if sample.samples else [row for row in text.split("\n") if is_sample(parsed(row))]
        if rows:
            self.tree_lines("".join(f"{row}\n" for row in rows).encode(), sample)
        self._ended.append(sample)
        if not sample.samples or self._lines_bytes > BATCH_BYTES:
            self.read_pending()

    def read_pending(self) -> None:
        """Begin to read the lines of the tree up to here, and then the users that ended."""
        self._reading.submit(self._read, self._lines, self._of, self._ended)
        self._lines, self._of, self._ended, self._lines_bytes = [], [], [], 0

    def wait(self) -> None:
        """Wait until all lines found so far have been read and their rows written."""
        self._reading.wait()
        self._writing.wait()

    def _read(self, lines: list[bytes], of: list[TreeSample], ended: list[TreeSample]) -> None:
        if lines:
            batch = self._reader.read(b"".join(lines))
            self.files.bad_lines += Counter({TREE: len(batch.others)})
            self._tree_batch(batch, of, np.cumsum([some.count(b"\n") for some in lines]))
        for sample in ended:
            self._end_of_user(sample)

    def _tree_batch(self, batch: Batch, of: list[TreeSample], ends: Indices) -> None:
        keys = batch.keys
        place = keys[PLACE].to_numpy()
        # Of each sample, which of the users' samples it is in; their last lines give users their names.
        outer = np.searchsorted(ends, place, side="right")
        before = self._mark(keys, IN_TREE, lambda row: of[outer[row]].attributes.get("hn"))
        last = np.flatnonzero(np.diff(outer, append=-1))
        for number, user in zip(outer[last], keys["user"].gather(last), strict=True):
            # The user's own sample is read later and is matched by this.
            of[number].attributes["user"] = user
        is_new = before & IN_TREE == 0
        self.files.twice += Counter({TREE: int(np.count_nonzero(~is_new))})  # which adds no zeros
        self.files.from_tree += int(np.count_nonzero(is_new))
        threads = pl.Series("thread", [user.attributes.get("tn", "") for user in of], dtype=pl.String)
        new = keys.with_columns(threads.gather(outer)).filter(is_new)
        self._writing.submit(self._add_rows, batch, new, "tree")

    def _end_of_user(self, sample: TreeSample) -> None:
        attributes = sample.attributes
        last_line = parsed("".join(sample.text))
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
        self._reader.next_file()
        with path.open("rb") as file:
            while text := file.read(BATCH_BYTES) + file.readline():
                end = text.rfind(b"\n") + 1
                if end < len(text):
                    text = text[:end]
                    self.files.journal_problem = f"{path.name} ends in the middle of a line; the line was left out"
                if text and (batch := self._reading.submit(self._reader.read, text)):
                    self._journal_batch(batch)
        if batch := self._reading.wait():
            self._journal_batch(batch)

    def _journal_batch(self, batch: Batch) -> None:
        for line in batch.others.values():
            self._line_of_user(line)
        keys = batch.keys
        before = self._mark(keys, IN_JOURNAL, lambda _: None)
        self.files.twice += Counter({JOURNAL: int(np.count_nonzero(before & IN_JOURNAL))})
        new = keys.filter(before == 0)
        if new.height:
            self.files.from_journal += new.height
            # JMeter ended them before they could report: their samples in the journal were not lost in transfer.
            killed = [name for name, user in self.files.users.items() if user.in_tree and not user.has_last_line]
            self.files.from_killed_users += int(new["user"].is_in(killed).sum())
            self._writing.submit(self._add_rows, batch, new.with_columns(pl.lit("").alias("thread")), "journal")

    def _line_of_user(self, line: Line) -> None:
        if not _is_of_user(line, "start", "user"):
            self.files.bad_lines[JOURNAL] += 1
            return
        user = self._user(line["user"], None)
        if user.start_ms is None:
            user.start_ms = _number(line.get("start_ms"))
        if line["type"] == "start":
            user.planned_samples = int(min(_number(line.get("samples")) or 0, INDEX_LIMIT + 1))
        elif not user.in_tree:
            user.elapsed_ms = _number(line.get("duration_ms"))
            user.ok = line.get("ok") is True
            _end(user, line)

    def _mark(self, keys: pl.DataFrame, source: int, host: Callable[[int], str | None]) -> ByteFlags:
        """Record where the samples are; returns the sources recorded before each. `host`: of a new user by its row."""
        of_users = keys.with_row_index("row").group_by("user", maintain_order=True).agg("row", "index")
        rows, indices = (of_users[name].explode().to_numpy() for name in ("row", "index"))
        before = np.zeros(keys.height, np.uint8)
        end = 0
        for name, n in zip(of_users["user"], of_users["row"].list.len(), strict=True):
            start, end = end, end + n
            user = self._user(name, host(rows[start]))
            before[rows[start:end]] = user.add(indices[start:end], source)
        return before

    def _add_rows(self, batch: Batch, new: pl.DataFrame, source: str) -> None:
        """Add the samples at those places; `new` has their thread, too."""
        if not new.height:
            return
        samples = batch.samples(new[PLACE])
        hosts = {name: self.files.users[name].host for name in new["user"].unique()}
        host = new["user"].replace_strict(hosts, return_dtype=pl.String).alias("host")
        samples = samples.with_columns(host, new["thread"], pl.lit(source).alias("source"))
        self.files.labels.update(dict(samples.group_by("label", maintain_order=True).len().iter_rows()))
        self.rows.add(samples, list(self._reader.names))  # the worker may just learn another one

    def _user(self, name: str, host: str | None) -> UserHistory:
        user = self.files.users.get(name)
        if user is None:
            # The client names a user <host>-<pid>-<start in ms>.
            user = self.files.users[name] = UserHistory(name, host or name.rsplit("-", 2)[0])
        return user


def _is_of_user(line: Line, *types: str) -> bool:
    return line.get("type") in types and isinstance(line.get("user"), str)


def _end(user: UserHistory, last_line: Line) -> None:
    user.has_last_line = True
    causes, cause, digest = (last_line.get(name) for name in ("causes", "cause", INPUT))
    user.input = digest[:INPUT_CHARACTERS] if isinstance(digest, str) else None
    user.cause = " ".join(cause.split())[:LONGEST_CAUSE] if isinstance(cause, str) else None
    user.causes = tuple(causes) if isinstance(causes, dict) and causes else (user.cause,) if user.cause else ()


def _number(value: object) -> float | None:
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None
