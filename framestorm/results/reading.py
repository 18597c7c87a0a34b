"""A run's raw files, read once and made into samples.csv: all that its figures are made of."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from framestorm.model.files import replacing
from framestorm.model.run import Record
from framestorm.results.clients import ClientFiles, read_clients
from framestorm.results.files import read_run
from framestorm.results.jtl import USER, Jtl, read_jtl, read_users, write_samples
from framestorm.results.table import count_labels, read_table, users_table

SAMPLES = "samples.csv"
RAW_FILES = ("tree.xml", "journal.jsonl", "samples.jtl", SAMPLES, "run.json")


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
        others = {name: n for name, n in self.jtl.labels().items() if name != self.label}
        if self.users.height:
            others.pop(USER, None)
        return dict(sorted(others.items()))


def read_results(run_dir: Path) -> RunResults:
    """Read all raw files of a run, and write samples.csv: from tree and journals, or else from samples.jtl.

    Raises:
        FormatError: the run is of another format.
        OSError: samples.csv cannot be written.
    """
    record, problem = read_run(run_dir)
    host = record.hosts[0].name if record.hosts else "this host"
    path = run_dir / SAMPLES
    with read_jtl(run_dir, host) as jtl, replacing(path) as table:
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
        label = main_label(record, count_labels(table))
        samples = read_table(table, label)
    return RunResults(record, problem, label, samples, users, clients, jtl)


def main_label(record: Record, counts: Mapping[str, int]) -> str:
    """The label of the main samples: what the plan says, or the most frequent one if no sample has that."""
    if counts and record.label not in counts:
        return max(sorted(counts), key=lambda label: counts[label])
    return record.label or "sample"
