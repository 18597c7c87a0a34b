"""The live view of a run: users, samples, rate, errors, recent percentiles, busy cores, from the files as they grow."""

import csv
import json
import sys
import time
from collections import Counter, deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from framestorm.model import files
from framestorm.model.cause import TRANSACTION_MESSAGE, request_cause
from framestorm.model.criteria import USER
from framestorm.model.run import Host, Record
from framestorm.model.sample import IS_SUB_RESULT, Line, noun
from framestorm.stats.estimate import nearest_rank

RECENT_S = 10.0
DRAW_EVERY_S = 0.5
LINE_EVERY_S = 5.0
LONGEST_CAUSE = 60
MAX_LABELS = 1000
SHOWN_CAUSES = 3


@dataclass
class Tally:
    """The figures shown for a slave, for a label or for the whole run, updated with each sample."""

    users_now: int = 0
    users_done: int = 0
    users_failed: int = 0
    samples: int = 0
    causes: Counter[str] = field(default_factory=Counter)
    _recent: deque[tuple[float, float]] = field(default_factory=deque)

    def sample(self, end_s: float, rtt_ms: float, cause: str | None) -> None:
        self.samples += 1
        if cause is None:
            self._forget(end_s)
            self._recent.append((end_s, rtt_ms))
        else:
            self.causes[str(cause)] += 1

    def recent(self, now_s: float) -> tuple[float, float | None, float | None]:
        """Samples without error per second and p50, p95 of their response times in ms, over the last seconds."""
        self._forget(now_s)
        times = sorted(rtt_ms for _, rtt_ms in self._recent)
        if not times:
            return 0.0, None, None
        p50_ms, p95_ms = (times[nearest_rank(len(times), percent) - 1] for percent in ("50", "95"))
        return len(times) / RECENT_S, p50_ms, p95_ms

    def _forget(self, now_s: float) -> None:
        while self._recent and self._recent[0][0] < now_s - RECENT_S:
            self._recent.popleft()


class LiveView:
    """Follows resources.csv and a run's journals, or samples.jtl where its plan has none."""

    def __init__(self, run_dir: Path, has_journal: bool, label: str) -> None:
        self.tally = Tally()
        self.busy_cores: dict[str, float] = {}
        self._run_dir = run_dir
        self._has_journal = has_journal
        self._samples = f"{noun(label)}s"
        record = Record()
        with suppress(files.FileError):
            record = files.read(run_dir / "run.json", Record)
        self._users_are_samples = record.has_users
        # JMeter's threads are users too, but not those of a thread pool that waits for arrivals.
        self._users = "users" if has_journal or "users" in record.properties else "threads"
        self._hosts = {host.name: host for host in record.hosts}
        self.by_slave = {_shown(host): Tally() for host in record.hosts if host.role == "slave"}
        self.by_label: dict[str, Tally] = {}
        # How far each file has been read, and the columns of CSV files.
        self._progress: dict[Path, tuple[int, list[str]]] = {}
        self._started_s = time.time()

    def watch(self, is_over: Event) -> None:
        """Show the figures until the run is over: a table on a terminal, else a line every few seconds."""
        console = Console(stderr=True)
        if console.is_terminal:
            with Live(console=console, auto_refresh=False, transient=True) as live:
                while not is_over.wait(DRAW_EVERY_S):
                    self.read()
                    live.update(self.screen(console.height), refresh=True)
        else:
            while not is_over.wait(LINE_EVERY_S):
                self.read()
                print(self.line(), file=sys.stderr, flush=True)

    def read(self) -> None:
        """Read what was written since the last call."""
        take = self._journal_line if self._has_journal else self._sample_row
        for path in sorted(self._run_dir.glob("journal*.jsonl" if self._has_journal else "samples.jtl")):
            self._follow(path, take)
        self._follow(self._run_dir / "resources.csv", self._resources_row)

    def _follow(self, path: Path, take: Callable[[Path, Line], None]) -> None:
        """Read the complete lines that were added to a file, which may not exist yet."""
        offset, columns = self._progress.get(path, (0, []))
        data = b""
        with suppress(FileNotFoundError), path.open("rb") as file:
            file.seek(offset)
            data = file.read()
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

    def _tallies(self, slave: str) -> list[Tally]:
        return [self.tally, *([self.by_slave.setdefault(slave, Tally())] if slave else [])]

    def _journal_line(self, path: Path, entry: Line) -> None:
        for tally in self._tallies(path.stem.removeprefix("journal").removeprefix("-")):
            if entry["type"] == "start":
                tally.users_now += 1
            elif entry["type"] == "user":
                tally.users_now -= 1
                tally.users_done += 1
                tally.users_failed += not entry["ok"]
            elif entry["type"] == "sample":
                tally.sample((entry["start_ms"] + entry["rtt_ms"]) / 1000, entry["rtt_ms"], entry["cause"])
        if entry["type"] == "sample" and "label" in entry:
            end_s = (entry["start_ms"] + entry["rtt_ms"]) / 1000
            self._of_label(entry["label"]).sample(end_s, entry["rtt_ms"], entry["cause"])

    def _sample_row(self, path: Path, row: Line) -> None:
        # The samples of a user that is a process are its sub-results.
        if row["label"] == USER if self._users_are_samples else row.get(IS_SUB_RESULT) == "true":
            return
        start_ms, elapsed_ms = float(row["timeStamp"]), float(row["elapsed"])
        message, failure = row["responseMessage"], row.get("failureMessage", "")
        is_http = row.get("URL") != "null"
        cause = None if row["success"] == "true" else request_cause(row["responseCode"], message, failure, is_http)
        is_transaction = message.startswith(TRANSACTION_MESSAGE)
        host = self._hosts.get(row.get("Hostname", ""))
        tallies = self._tallies(_shown(host) if host is not None and host.role == "slave" else "")
        # JMeter counts the threads of a host.
        tallies[-1].users_now = int(row["allThreads"])
        self.tally.users_now = sum(each.users_now for each in self.by_slave.values()) or tallies[-1].users_now
        of_label = self._of_label(row["label"]) if "label" in row else Tally()
        # A transaction is made of samples that are counted.
        for tally in [of_label] if is_transaction else [*tallies, of_label]:
            tally.sample((start_ms + elapsed_ms) / 1000, elapsed_ms, cause)

    def _of_label(self, name: object) -> Tally:
        label = str(name)
        if label not in self.by_label and len(self.by_label) >= MAX_LABELS:
            label = "other labels"
        return self.by_label.setdefault(label, Tally())

    def _resources_row(self, path: Path, row: Line) -> None:
        if row["part"] == "host":
            self.busy_cores[row["host"]] = float(row["cpu_percent"]) / 100

    def _busy(self) -> dict[str, str]:
        """How many cores of each host are busy."""
        return {
            _shown(host): f"{self.busy_cores[name]:.1f} of {host.cores or '?'}"
            for name, host in self._hosts.items()
            if name in self.busy_cores
        }

    def _figures(self, tally: Tally) -> dict[str, str]:
        now_s = time.time()
        rate_per_s, p50_ms, p95_ms = tally.recent(now_s)
        users = f"{tally.users_now} now"
        if self._has_journal:
            users += f", {tally.users_done} done" + (f", {tally.users_failed} failed" if tally.users_failed else "")
        return {
            "elapsed": f"{now_s - self._started_s:.0f} s",
            self._users: users,
            self._samples: f"{tally.samples}",
            f"{self._samples}/s": f"{rate_per_s:.1f}",
            "errors": f"{tally.causes.total()}",
            "p50": _shown_ms(p50_ms),
            "p95": _shown_ms(p95_ms),
        }

    def _causes(self) -> str:
        """The most common causes of errors, each with its count; empty if there are none."""
        most_common = self.tally.causes.most_common(SHOWN_CAUSES)
        return ", ".join(f"{printable(cause)} {count}" for cause, count in most_common)

    def line(self) -> str:
        """All figures as one line of text."""
        text = "  ".join(f"{name} {value}" for name, value in self._figures(self.tally).items())
        text += f"  | {self._causes()}" if self.tally.causes else ""
        for slave, tally in self.by_slave.items():
            text += f"  | {slave}: {tally.users_now} {self._users}, {tally.samples} {self._samples}"
            text += f", {tally.causes.total()} errors"
        return text + "".join(f"  | {name}: {cores} cores" for name, cores in self._busy().items())

    def screen(self, height: int = 24) -> Group:
        """The table, and below it the causes of errors, for which its columns have no room."""
        causes = [Text(f" causes of errors: {self._causes()}")] if self.tally.causes else []
        return Group(self.table(height - len(causes)), *causes)

    def table(self, height: int = 24) -> Table:
        """All figures as a table with a row for each slave, and for each label as far as the terminal has room.

        Cells are Text: rich reads markup in a str.
        """
        table = Table(box=None, padding=(0, 1), header_style="bold")
        table.add_column("")
        for heading in (*self._figures(self.tally), "busy cores"):
            table.add_column(Text(heading), justify="right")
        busy = self._busy()
        rows = {"all slaves" if self.by_slave else "": self.tally, **self.by_slave}
        if len(self._hosts) == 1:
            busy = {"": next(iter(busy.values()), "")}
        for name in dict.fromkeys((*rows, *busy)):
            figures = self._figures(rows[name]).values() if name in rows else [""] * (len(table.columns) - 2)
            table.add_row(*map(Text, (name, *figures, busy.get(name, ""))))
        if len(self.by_label) > 1:
            room = max(0, height - table.row_count - 3)
            often = sorted(self.by_label, key=lambda label: -self.by_label[label].samples)
            for label in often[:room]:
                figures = list(self._figures(self.by_label[label]).values())
                table.add_row(*map(Text, (printable(label), "", "", *figures[2:], "")))
            if len(often) > room:
                table.add_row(Text(f"and {len(often) - room} more labels"))
        return table


def _shown(host: Host) -> str:
    return host.inventory_name or host.name


def printable(text: str) -> str:
    """`text` shortened and without control characters, which a terminal would execute (ESC starts a command)."""
    text = "".join(character if character.isprintable() else "?" for character in text)
    return text if len(text) <= LONGEST_CAUSE else f"{text[:LONGEST_CAUSE]}..."


def _shown_ms(value_ms: float | None) -> str:
    if value_ms is None:
        return "-"
    return f"{value_ms:.0f} ms" if value_ms < 10_000 else f"{value_ms / 1000:.1f} s"
