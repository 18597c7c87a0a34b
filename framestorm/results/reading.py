"""A run's raw files, each read once, even if broken: its samples, its users, and what is missing.

Any missing data makes a run partial; missing data is never estimated.
"""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from framestorm.errors import FramestormError
from framestorm.model.criteria import ALL, USER
from framestorm.model.files import FileError, FormatError, read, replacing
from framestorm.model.run import Record
from framestorm.model.sample import SUB_RESULT
from framestorm.model.units import count, plural
from framestorm.results.clients import OUTPUT, ClientFiles, read_clients
from framestorm.results.jmeter_log import JMeterLog, read_log
from framestorm.results.jtl import JTL, Jtl, read_jtl
from framestorm.results.jtl_samples import read_users, write_samples
from framestorm.results.self_check import read_self_check
from framestorm.results.table import IS_OWN, Label, height, labels_of, of_label, read_table, users_table
from framestorm.results.users import IN_BOTH, IN_JOURNAL, IN_TREE

SAMPLES = "samples.csv"
RAW_FILES = ("tree.xml", "journal.jsonl", "samples.jtl", SAMPLES, "run.json")
STATES = {
    "running": "the run recorded no end: it crashed, or is still running",
    "stopped": "the run was stopped early",
    "failed": "the run failed",
}
MAX_IN_MEMORY = 1_000_000  # samples


class ReportError(FramestormError):
    """A report cannot be made; the message says which, and what to do."""


@dataclass(frozen=True)
class RunResults:
    """The raw results of a run. `problem` is a sentence if run.json is missing or broken.

    label: the label of the main samples; samples: those of that label; every: those of all labels, with transactions
        and sub-results; labels: what those of each label are; users: virtual users that are processes.
    started: every sample and those, `cut_off` of samplers, that the end of a schedule cut off.
    """

    record: Record
    problem: str | None
    label: str
    samples: pl.LazyFrame
    every: pl.LazyFrame
    labels: dict[str, Label]
    users: pl.DataFrame
    clients: ClientFiles
    jtl: Jtl
    log: JMeterLog
    started: pl.LazyFrame
    cut_off: int

    @property
    def is_at_rate(self) -> bool:
        """Whether samples started at the rate of a schedule, of which it is known that no arrival was dropped."""
        return self.record.is_open_model and self.log.arrivals is not None and not self.log.dropped

    @property
    def untimed(self) -> int:
        """How many samples have times that cannot be, and so none here."""
        if "timeStamp" in self.jtl.absent:
            return 0
        return height(self.every.filter(IS_OWN & pl.col("start_ms").is_null()))

    @property
    def ended_users(self) -> pl.DataFrame:
        """The users without those that a stop rule cut off, which have neither succeeded nor failed."""
        return self.users.filter(pl.col("cause").ne_missing("stopped")) if self.record.decision else self.users

    def since(self, begin_ms: float) -> "RunResults":
        """Return the results without what started before a time, in epoch ms."""
        is_later = pl.col("start_ms") >= begin_ms
        samples, every = self.samples.filter(is_later), self.every.filter(is_later)
        users = self.users.filter(is_later)
        return replace(self, samples=samples, every=every, labels=labels_of(every), users=users)

    def by_label(self, labels: Iterable[str]) -> Iterator[tuple[str, pl.LazyFrame]]:
        """Yield each of the labels with its samples, which are read for several labels at a time."""
        left = list(labels)
        while left:
            batch = [left.pop(0)]
            while left and sum(self.labels[each].n for each in (*batch, left[0])) <= MAX_IN_MEMORY:
                batch.append(left.pop(0))
            samples = self.every.filter(pl.col("label").is_in(batch)).collect(engine="streaming").lazy()
            for label in batch:
                # Taken out once: each figure would search all samples for those of the label otherwise.
                yield label, of_label(samples, label).collect().lazy()


def read_run(run_dir: Path) -> tuple[Record, str | None]:
    """Return the record of a run, and a sentence if run.json is missing or broken (then the record has defaults only).

    Raises:
        FormatError: run.json is of another format.
    """
    try:
        return read(run_dir / "run.json", Record), None
    except FormatError:
        raise
    except FileError as error:
        problem = str(error).removeprefix(f"{run_dir}{os.sep}")
        return Record(), f"{problem}: settings, hosts and target of the run are not known"


def read_results(run_dir: Path) -> RunResults:
    """Read all raw files of a run, and write samples.csv: from tree and journals, or else from samples.jtl.

    Raises:
        FormatError: the run is of another format.
        OSError: samples.csv cannot be written.
    """
    record, problem = read_run(run_dir)
    path = run_dir / SAMPLES
    with replacing(path) as table, ThreadPoolExecutor(1) as thread:
        reading = thread.submit(read_jtl, run_dir, record)
        log = read_log(run_dir)
        clients = read_clients(run_dir, table)
        jtl = reading.result()
        has_users = record.may_have_users and bool(jtl.labels[USER])
        users = users_table(clients.users.values())
        if not clients.users and jtl.rows is not None:
            users = read_users(jtl) if has_users else users
            # Where something else ended the run, such as a target that died, errors are what they say.
            stopping_ms = record.stopping_ms if record.state == "stopped" or record.decision else None
            without = USER if has_users else None
            write_samples(
                jtl,
                table,
                without=without,
                stopping_ms=stopping_ms,
                ends=log.ends,
                slaves=record.slaves,
                http2_only=record.http2_only,
            )
        elif not clients.users and path.exists():
            # An archive with only the table: better than nothing, and the report says that it is incomplete.
            table.unlink()
            table.hardlink_to(path)
        started = read_table(table)
    every, cut_off = started, 0
    is_by_schedule = log.ends and record.stopping_ms is None and log.stopped_ms is None
    if is_by_schedule or record.decision:
        # The plan's own schedule ended these, or a stop rule: they are neither successes nor failures.
        is_cut_off = pl.col("cause").eq_missing("stopped")
        cut_off = height(started.filter(is_cut_off & IS_OWN))
        every = started.filter(~is_cut_off) if cut_off else started
    labels = labels_of(every)
    label = main_label(record, [name for name, of in labels.items() if of.kind == "sampler"])
    samples = of_label(every, label)
    return RunResults(record, problem, label, samples, every, labels, users, clients, jtl, log, started, cut_off)


def main_label(record: Record, names: Sequence[str]) -> str:
    """Return the label of the main samples: the one set in the plan; if no sample has that, the only one, or all."""
    if record.label is not None and record.label in names:
        return record.label
    if not names:
        return record.label or "sample"
    return names[0] if len(names) == 1 else ALL


def missing(results: RunResults) -> list[str]:
    """Return sentences on missing or contradictory data; empty if the run is complete."""
    record, clients, jtl = results.record, results.clients, results.jtl
    sentences = [results.problem] if results.problem else []
    if record.state in STATES:
        sentences.append(STATES[record.state] + (f": {record.reason}" if record.reason else ""))
    exit_code = record.jmeter.exit_code
    # After a loss JMeter would wait forever, so it is ended; of a run that failed, the record says so.
    if exit_code not in (None, 0) and not record.losses and record.state != "failed":
        sentences.append(f"JMeter ended with exit code {exit_code}; see jmeter.log")
    sentences += [problem for problem in (*(part.problem for part in record.parts), jtl.problem) if problem]
    self_check = read_self_check(results.log.counted, jtl.of_hosts)
    # Those that a stop rule cut off may come after the end of the test: they count neither way.
    late = results.log.late if record.decision else 0
    if self_check and (lost := self_check.counted - self_check.rows - jtl.bad_rows) and not 0 < lost <= late:
        they = "it was" if abs(lost) == 1 else "they were"
        more = f"{plural(-lost, 'row')} more: {they} written twice"
        what = f"{plural(lost, 'row')} less: {they} lost on the way" if lost > 0 else more
        sentences.append(f"JMeter counted {plural(self_check.counted, 'sample')}, and samples.jtl has {what}")
    sentences += [
        f"{plural(n, 'sample')} could not be written to samples.jtl: {error}"
        for error, n in results.log.unwritten.items()
    ]
    if jtl.bad_rows:
        sentences.append(f"{plural(jtl.bad_rows, 'row')} of samples.jtl cannot be read: {jtl.why_bad}")
    if clients.users or results.users.height:
        sentences += _client_files(results)
    elif clients.tree_problem and clients.tree_problem != "tree.xml is missing":
        sentences.append(clients.tree_problem)
    arrivals, sent = results.log.arrivals, height(results.samples)
    if record.is_open_model and record.state == "complete" and arrivals is not None and results.label != ALL:
        # What was cut off counts neither way, and was sent nevertheless.
        lost = arrivals - results.log.dropped - height(of_label(results.started, results.label)) - late
        if lost > 0:
            sentences.append(f"{plural(lost, results.label)} of {count(arrivals)} that were due have no row")
    if not sent and not results.users.height:
        sentences.append(f"no sample{' and no user' if record.has_users else ''} was measured")
    sentences += [
        f"{plural(n, 'thread')} of JMeter ended by {error}: what they had begun has no row; see jmeter.log"
        for error, n in results.log.ended_threads.items()
    ]
    if engine_error := results.log.ended_engine:
        why = f"JMeter's engine ended by {engine_error}: no further thread group was started"
        sentences.append(f"{why}, and none that tears down; see jmeter.log")
    sentences += [f"JMeter did not start thread group {name!r}: {why}" for name, why in results.log.unstarted]
    return sentences


def _client_files(results: RunResults) -> list[str]:
    """Return sentences on where tree, journal and rows disagree about the clients."""
    clients, jtl, label = results.clients, results.jtl, "sample" if results.label == ALL else results.label
    sentences = [problem for problem in (clients.tree_problem, clients.journal_problem) if problem]
    if not clients.has_journal and results.record.has_journal:
        sentences.append("journal.jsonl is missing: what was sent cannot be compared with what came back")
    unfinished = [user for user in clients.users.values() if not user.ended]
    killed = [user for user in clients.users.values() if user.was_killed]
    for users, what in ((unfinished, "started and never ended"), (killed, "killed; a request in progress has no row")):
        unsent = sum(max(0, user.planned_samples - len(user.sources) + user.sources.count(0)) for user in users)
        left = f"; {plural(unsent, label)} that they should have sent never arrived" if unsent else ""
        sentences += [f"{plural(len(users), 'user')} {what}{left}"] if users else []
    lost = clients.from_journal - clients.from_killed_users
    if lost:
        sentences.append(f"{plural(lost, label)} in the journal did not reach tree.xml (taken from the journal)")
    unknown = sum(user.sources.count(IN_TREE) for user in clients.users.values())
    if clients.has_journal and unknown:
        sentences.append(f"{plural(unknown, label)} of tree.xml {'is' if unknown == 1 else 'are'} not in the journal")
    if clients.judged_twice:
        differ = plural(clients.judged_twice, "user")
        sentences.append(f"tree.xml and the journal count different errors of {differ} (the journal's are used)")
    for where, n in clients.bad_lines.items():
        example = f", such as {clients.bad_line}" if where == OUTPUT and clients.bad_line else ""
        sentences += [f"{plural(n, 'line')} of {where} cannot be read{example}"] if n else []
    sentences += [f"{plural(n, label)} of {where} arrived twice (counted once)" for where, n in clients.twice.items()]
    labels = list(clients.labels or [label])
    rows = sum(jtl.labels[name] for name in labels)
    if jtl.rows is None or clients.tree_problem:
        return sentences
    if rows != clients.from_tree:
        in_tree = plural(clients.from_tree, label)
        sentences.append(f"samples.jtl has {plural(rows, 'row')} labelled {label}, but tree.xml has {in_tree}")
    elif not clients.from_journal:
        ok, elapsed_ms = (sum(jtl.ok[name] for name in labels), sum(jtl.elapsed_ms.get(name, 0) for name in labels))
        # JMeter rounds each time to a millisecond.
        if ok != clients.ok or abs(elapsed_ms - clients.rtt_ms) > rows:
            sentences.append(
                f"samples.jtl has {plural(ok, 'row')} labelled {label} without error and {elapsed_ms / 1000:,.1f} s of "
                f"response time, but the clients' lines {count(clients.ok)} and {clients.rtt_ms / 1000:,.1f} s"
            )
    return sentences


def reconciliation(results: RunResults) -> dict[str, Counter[str]]:
    """By host: its users, and its samples sent (journal), in_tree (received) and in_samples (samples.jtl)."""
    hosts: dict[str, Counter[str]] = {}
    for user in results.clients.users.values():
        in_both = user.sources.count(IN_BOTH)
        hosts.setdefault(user.host, Counter()).update(
            users=1,
            sent=in_both + user.sources.count(IN_JOURNAL),
            in_tree=in_both + user.sources.count(IN_TREE),
        )
    has_users = results.users.height > 0
    labels = set(results.clients.labels or [results.label])
    if ALL in labels:
        labels = results.jtl.labels.keys() - ({USER} if has_users else set())
    # Samples of users that are processes are sub-results of these.
    sources = (JTL, SUB_RESULT) if has_users else (JTL,)
    for (label, host, source), n in results.jtl.counts.items():
        if label in labels and source in sources:
            hosts.setdefault(host, Counter()).update(in_samples=n)
    return hosts
