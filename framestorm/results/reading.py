"""A run's raw files, read once although they may be broken, and made into samples.csv: all its figures rest on it."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from framestorm.errors import FramestormError
from framestorm.model.files import FileError, FormatError, read, replacing
from framestorm.model.run import Record
from framestorm.results.clients import ClientFiles, read_clients
from framestorm.results.jtl import USER, Jtl, read_jtl, read_users, write_samples
from framestorm.results.table import read_table, users_table

SAMPLES = "samples.csv"
RAW_FILES = ("tree.xml", "journal.jsonl", "samples.jtl", SAMPLES, "run.json")


class ReportError(FramestormError):
    """A report cannot be made; the message says of what, and what to do."""


@dataclass(frozen=True)
class RunResults:
    """What a run left. `problem` is a sentence if run.json is missing or broken.

    label: the label of the main samples; samples: those of that label; users: virtual users that are processes.
    """

    record: Record
    problem: str | None
    label: str
    samples: pl.DataFrame
    users: pl.DataFrame
    clients: ClientFiles
    jtl: Jtl

    @property
    def other_labels(self) -> dict[str, int]:
        """How many rows of samples.jtl have another label than users and the main samples."""
        ours = {self.label, USER} if self.users.height else {self.label}
        return {name: n for name, n in self.jtl.labels().items() if name not in ours}


def read_run(run_dir: Path) -> tuple[Record, str | None]:
    """The record of a run, and a sentence if run.json is missing or broken (then the record has defaults only).

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
    jtl = read_jtl(run_dir, record.hosts[0].name if record.hosts else "this host")
    with replacing(path) as table:
        # Without a record nobody says whether those labelled user are processes.
        has_users = bool(jtl.count(USER)) and (record.has_users or record.plan is None)
        clients = read_clients(run_dir, table)
        users = users_table(clients.users.values())
        if not clients.users and jtl.rows is not None:
            users = read_users(jtl) if has_users else users
            write_samples(jtl, table, without=USER if has_users else None)
        elif not clients.users and path.exists():
            # An archive that kept the table only: better than nothing, and the report says that it is incomplete.
            table.unlink()
            table.hardlink_to(path)
        samples = read_table(table)
    counts = dict(samples["label"].cast(pl.String).drop_nulls().value_counts().iter_rows())
    label = main_label(record, counts)
    if counts.get(label, 0) < samples.height:
        samples = samples.filter(pl.col("label") == label)
    return RunResults(record, problem, label, samples, users, clients, jtl)


def main_label(record: Record, counts: Mapping[str, int]) -> str:
    """The label of the main samples: what the plan says, or the most frequent one if no sample has that."""
    if counts and record.label not in counts:
        return max(sorted(counts), key=lambda label: counts[label])
    return record.label or "sample"
