"""The live view of a run: users, samples, rate, errors, recent percentiles, busy cores, from the files as they grow."""

import contextlib
import csv
import json
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from pathlib import Path

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from framestorm.model import files
from framestorm.model.run import Host, Record
from framestorm.model.sample import Line
from framestorm.run.background import Background
from framestorm.stats.estimate import nearest_rank

RECENT_S = 10.0
DRAW_EVERY_S = 0.5
LINE_EVERY_S = 5.0
LONGEST_CAUSE = 60


class Tally:
    """What the view shows, fed with one sample after the other."""

    def __init__(self) -> None:
        self.users_now = 0
        self.users_done = 0
        self.users_failed = 0
        self.samples = 0
        self.causes: Counter[str] = Counter()
        self._recent: deque[tuple[float, float]] = deque()

    @property
    def errors(self) -> int:
        return self.causes.total()

    def user_started(self) -> None:
        self.users_now += 1

    def user_ended(self, ok: bool) -> None:
        self.users_now -= 1
        self.users_done += 1
        self.users_failed += not ok

    def sample(self, end_s: float, rtt_ms: float, cause: str | None) -> None:
        self.samples += 1
        if cause is None:
            self._recent.append((end_s, rtt_ms))
        else:
            self.causes[cause] += 1

    def recent(self, now_s: float) -> tuple[float, float | None, float | None]:
        """Samples without error per second and p50, p95 of their response times in ms, over the last seconds."""
        while self._recent and self._recent[0][0] < now_s - RECENT_S:
            self._recent.popleft()
        times = sorted(rtt_ms for _, rtt_ms in self._recent)
        if not times:
            return 0.0, None, None
        p50_ms, p95_ms = (times[nearest_rank(len(times), percent) - 1] for percent in ("50", "95"))
        return len(times) / RECENT_S, p50_ms, p95_ms


class LiveView(Background):
    """Follows resources.csv and a run's journals (plans with users) or samples.jtl (without) until it is closed."""

    def __init__(self, run_dir: Path, has_users: bool, label: str) -> None:
        self.tally = Tally()
        self.busy_cores: dict[str, float] = {}
        self._run_dir = run_dir
        self._has_users = has_users
        self._samples = f"{label}s"
        record = _record(run_dir / "run.json")
        # JMeter's threads are users too, but not those of a thread pool that waits for arrivals.
        self._users = "users" if has_users or "users" in record.properties else "threads"
        self._hosts = {host.name: host for host in record.hosts}
        self.by_slave = {_shown(host): Tally() for host in self._hosts.values() if host.role == "slave"}
        self._files: dict[Path, _GrowingFile] = {}
        self._headers: dict[Path, list[str]] = {}
        self._started_s = time.time()
        super().__init__()

    def _run(self) -> None:
        console = Console(stderr=True)
        if console.is_terminal:
            with Live(console=console, auto_refresh=False, transient=True) as live:
                while not self._closed.wait(DRAW_EVERY_S):
                    self._read()
                    live.update(self.table(), refresh=True)
        else:
            while not self._closed.wait(LINE_EVERY_S):
                self._read()
                print(self.line(), file=sys.stderr, flush=True)
        self._read()

    def _read(self) -> None:
        take = self._journal_line if self._has_users else self._sample_row
        for path in sorted(self._run_dir.glob("journal*.jsonl" if self._has_users else "samples.jtl")):
            self._follow(path, take)
        self._follow(self._run_dir / "resources.csv", self._resources_row)

    def _follow(self, path: Path, take: Callable[[Path, str], None]) -> None:
        for line in self._files.setdefault(path, _GrowingFile(path)).new_lines():
            # The report reads the files again and counts what cannot be read.
            with contextlib.suppress(ValueError, KeyError, IndexError, TypeError):
                take(path, line)

    def _row(self, path: Path, line: str) -> dict[str, str] | None:
        """A row of a CSV file by its columns, None for the line that names them."""
        row = next(csv.reader([line]))
        if path not in self._headers:
            self._headers[path] = row
            return None
        return dict(zip(self._headers[path], row, strict=False))

    def _tallies(self, slave: str) -> list[Tally]:
        return [self.tally, *([self.by_slave.setdefault(slave, Tally())] if slave else [])]

    def _journal_line(self, path: Path, line: str) -> None:
        entry: Line = json.loads(line)
        for tally in self._tallies(path.stem.removeprefix("journal").removeprefix("-")):
            if entry["type"] == "start":
                tally.user_started()
            elif entry["type"] == "user":
                tally.user_ended(entry["ok"])
            elif entry["type"] == "sample":
                tally.sample((entry["start_ms"] + entry["rtt_ms"]) / 1000, entry["rtt_ms"], entry["cause"])

    def _sample_row(self, path: Path, line: str) -> None:
        sample = self._row(path, line)
        if sample is None:
            return
        elapsed_ms = float(sample["elapsed"])
        cause = None if sample["success"] == "true" else sample["responseMessage"] or sample["responseCode"]
        host = self._hosts.get(sample.get("Hostname", ""))
        tallies = self._tallies(_shown(host) if host is not None and host.role == "slave" else "")
        # JMeter counts the threads of a host.
        tallies[-1].users_now = int(sample["allThreads"])
        self.tally.users_now = sum(each.users_now for each in self.by_slave.values()) or tallies[-1].users_now
        for tally in tallies:
            tally.sample((float(sample["timeStamp"]) + elapsed_ms) / 1000, elapsed_ms, cause)

    def _resources_row(self, path: Path, line: str) -> None:
        row = self._row(path, line)
        if row is not None and row["part"] == "host":
            self.busy_cores[row["host"]] = float(row["cpu_percent"]) / 100

    def _busy(self) -> dict[str, str]:
        """How many cores of each host are busy."""
        return {
            _shown(host): f"{self.busy_cores[name]:.1f} of {host.cores or '?'}"
            for name, host in self._hosts.items()
            if name in self.busy_cores
        }

    def _figures(self, tally: Tally) -> list[tuple[str, str]]:
        now_s = time.time()
        rate_per_s, p50_ms, p95_ms = tally.recent(now_s)
        causes = ", ".join(f"{printable(cause)} {count}" for cause, count in tally.causes.most_common(3))
        users = f"{tally.users_now} now"
        if self._has_users:
            users += f", {tally.users_done} done" + (f", {tally.users_failed} failed" if tally.users_failed else "")
        return [
            ("elapsed", f"{now_s - self._started_s:.0f} s"),
            (self._users, users),
            (self._samples, f"{tally.samples}"),
            (f"{self._samples}/s", f"{rate_per_s:.1f}"),
            ("errors", f"{tally.errors}" + (f" ({causes})" if causes else "")),
            ("p50", _shown_ms(p50_ms)),
            ("p95", _shown_ms(p95_ms)),
        ]

    def line(self) -> str:
        """All figures as one line of text."""
        text = "  ".join(f"{name} {value}" for name, value in self._figures(self.tally))
        busy = self._busy()
        for slave, tally in self.by_slave.items():
            text += (
                f"  | {slave}: {tally.users_now} {self._users}, {tally.samples} {self._samples}, {tally.errors} errors"
            )
            text += f", {busy.pop(slave)} cores" if slave in busy else ""
        return text + "".join(f"  | {name}: {cores} cores" for name, cores in busy.items())

    def table(self) -> Table:
        """All figures as a table with a row for each slave. Cells are Text: rich reads markup in a str."""
        table = Table(box=None, padding=(0, 2), header_style="bold")
        figures, busy = self._figures(self.tally), self._busy()
        table.add_column("")
        for name in [*(name for name, _ in figures), "busy cores"]:
            table.add_column(Text(name), justify="right")

        def add(host: str, values: list[str], cores: str) -> None:
            table.add_row(*(Text(cell) for cell in (host, *values, cores)))

        is_alone = len(self._hosts) == 1
        alone = next(iter(busy.values()), "") if is_alone else ""
        add("all slaves" if self.by_slave else "", [value for _, value in figures], alone)
        for name, tally in self.by_slave.items():
            add(name, [value for _, value in self._figures(tally)], busy.pop(name, ""))
        for name, cores in busy.items() if not is_alone else ():
            add(name, [""] * len(figures), cores)
        return table


def _record(run_json: Path) -> Record:
    try:
        return files.read(run_json, Record)
    except files.FileError:
        return Record()


def _shown(host: Host) -> str:
    return host.inventory_name or host.name


class _GrowingFile:
    """A file that is written meanwhile, and may not be there yet."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0

    def new_lines(self) -> Iterator[str]:
        """The whole lines that were added since the last call."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                data = file.read()
        except FileNotFoundError:
            return
        end = data.rfind(b"\n") + 1
        self._offset += end
        yield from data[:end].decode(errors="replace").split("\n")[:-1]


def printable(text: str) -> str:
    """`text` short and without what a terminal would obey: control characters, of which ESC starts a command."""
    text = "".join(character if character.isprintable() else "?" for character in text)
    return text if len(text) <= LONGEST_CAUSE else f"{text[:LONGEST_CAUSE]}..."


def _shown_ms(value_ms: float | None) -> str:
    if value_ms is None:
        return "-"
    return f"{value_ms:.0f} ms" if value_ms < 10_000 else f"{value_ms / 1000:.1f} s"
