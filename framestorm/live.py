"""The live view of a run: users, frames, rate, errors and recent percentiles, from the files as they grow."""

import csv
import json
import sys
import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table

from framestorm.background import Background

RECENT_S = 10.0
DRAW_EVERY_S = 0.5
LINE_EVERY_S = 5.0


class Tally:
    """What the view shows, fed with one sample after the other."""

    def __init__(self) -> None:
        self.users_now = 0
        self.users_done = 0
        self.users_failed = 0
        self.frames = 0
        self.causes: Counter[str] = Counter()
        self._recent: deque[tuple[float, float]] = deque()

    def user_started(self) -> None:
        self.users_now += 1

    def user_ended(self, ok: bool) -> None:
        self.users_now -= 1
        self.users_done += 1
        self.users_failed += not ok

    def frame(self, end_s: float, rtt_ms: float, cause: str | None) -> None:
        self.frames += 1
        if cause is None:
            self._recent.append((end_s, rtt_ms))
        else:
            self.causes[cause] += 1

    def recent(self, now_s: float) -> tuple[float, float | None, float | None]:
        """Frames answered per second and p50, p95 of their round trips in ms, over the last seconds."""
        while self._recent and self._recent[0][0] < now_s - RECENT_S:
            self._recent.popleft()
        times = sorted(rtt_ms for _, rtt_ms in self._recent)
        if not times:
            return 0.0, None, None
        return len(times) / RECENT_S, _rank(times, 0.50), _rank(times, 0.95)


def _rank(ordered: list[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


class LiveView(Background):
    """Follows a run's journals (plans with users) or samples.jtl (plans without) until it is closed."""

    def __init__(self, run_dir: Path, has_users: bool) -> None:
        self.tally = Tally()
        self.by_slave: dict[str, Tally] = {}
        self._run_dir = run_dir
        self._has_users = has_users
        self._files: dict[Path, _Growing] = {}
        self._header: list[str] | None = None
        self._started_s = time.time()
        super().__init__()

    def _run(self) -> None:
        console = Console(stderr=True)
        if console.is_terminal:
            with Live(console=console, auto_refresh=False, transient=True) as live:
                while not self._closed.wait(DRAW_EVERY_S):
                    self._read()
                    live.update(self._table(), refresh=True)
        else:
            while not self._closed.wait(LINE_EVERY_S):
                self._read()
                print(self._line(), file=sys.stderr, flush=True)
        self._read()

    def _read(self) -> None:
        for path in sorted(self._run_dir.glob("journal*.jsonl" if self._has_users else "samples.jtl")):
            slave = path.stem.removeprefix("journal").removeprefix("-") if self._has_users else ""
            tallies = [self.tally] + ([self.by_slave.setdefault(slave, Tally())] if slave else [])
            for line in self._files.setdefault(path, _Growing(path)).new():
                try:
                    if self._has_users:
                        self._journal_line(json.loads(line), tallies)
                    else:
                        self._sample_row(next(csv.reader([line])))
                except (ValueError, KeyError, IndexError):
                    continue  # the report reads the files again and counts what cannot be read

    def _journal_line(self, entry: dict[str, Any], tallies: Sequence[Tally]) -> None:
        for tally in tallies:
            if entry["type"] == "start":
                tally.user_started()
            elif entry["type"] == "user":
                tally.user_ended(entry["ok"])
            elif entry["type"] == "frame":
                tally.frame((entry["start_ms"] + entry["rtt_ms"]) / 1000, entry["rtt_ms"], entry["cause"])

    def _sample_row(self, row: list[str]) -> None:
        if self._header is None:
            self._header = row
            return
        sample = dict(zip(self._header, row, strict=False))
        elapsed_ms = float(sample["elapsed"])
        cause = None if sample["success"] == "true" else sample["responseMessage"] or sample["responseCode"]
        self.tally.users_now = int(sample["allThreads"])
        self.tally.frame((float(sample["timeStamp"]) + elapsed_ms) / 1000, elapsed_ms, cause)

    def _figures(self, tally: Tally) -> list[tuple[str, str]]:
        now_s = time.time()
        rate_per_s, p50_ms, p95_ms = tally.recent(now_s)
        failed = sum(tally.causes.values())
        causes = ", ".join(f"{cause} {count}" for cause, count in tally.causes.most_common(3))
        users = f"{tally.users_now} now"
        if self._has_users:
            users += f", {tally.users_done} done" + (f", {tally.users_failed} failed" if tally.users_failed else "")
        return [
            ("elapsed", f"{now_s - self._started_s:.0f} s"),
            ("users" if self._has_users else "threads", users),
            ("frames", f"{tally.frames}"),
            ("frames/s", f"{rate_per_s:.1f}"),
            ("errors", f"{failed}" + (f" ({causes})" if causes else "")),
            ("p50", _shown_ms(p50_ms)),
            ("p95", _shown_ms(p95_ms)),
        ]

    def _line(self) -> str:
        slaves = "".join(
            f"  | {slave}: {tally.users_now} users, {tally.frames} frames, {sum(tally.causes.values())} errors"
            for slave, tally in self.by_slave.items()
        )
        return "  ".join(f"{name} {value}" for name, value in self._figures(self.tally)) + slaves

    def _table(self) -> Table:
        table = Table(box=None, padding=(0, 2), header_style="bold")
        rows = {"all slaves" if self.by_slave else "": self.tally, **self.by_slave}
        table.add_column("")
        for name, _ in self._figures(self.tally):
            table.add_column(name, justify="right")
        for name, tally in rows.items():
            table.add_row(name, *(value for _, value in self._figures(tally)))
        return table


class _Growing:
    """The whole lines that were added to a file since they were last asked for; the file may not be there yet."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0

    def new(self) -> Iterator[str]:
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                data = file.read()
        except FileNotFoundError:
            return
        end = data.rfind(b"\n") + 1
        self._offset += end
        yield from data[:end].decode(errors="replace").splitlines()


def _shown_ms(value_ms: float | None) -> str:
    if value_ms is None:
        return "-"
    return f"{value_ms:.0f} ms" if value_ms < 10_000 else f"{value_ms / 1000:.1f} s"
