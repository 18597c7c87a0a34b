"""CPU and memory of a run's parts and of the whole machine, sampled once a second into resources.csv."""

import csv
import errno
import io
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from threading import Event

import psutil

from framestorm import probe
from framestorm.machine import now_ms
from framestorm.plain import note

INTERVAL_S = 1.0
# The part that is the whole machine: its memory in use, its load average, and no count of processes.
HOST = "host"
Processes = Callable[[], list[psutil.Process]]
"""Looks up the processes of a part at this moment."""
FIELDS = ("time_ms", "host", "part", "cpu_percent", "rss_bytes", "processes", "load")


def log_resources(path: Path, host: str, parts: Mapping[str, Processes], is_over: Event) -> None:
    """Write one row per part and second until the event is set; 100 percent is one core kept busy.

    Rows that cannot be written, as on a full disk, are left out, which is said once.
    """
    before, rows, is_said = _usages(parts), list[tuple[object, ...]](), False
    while True:
        try:
            _append(path, rows)
        except OSError as error:
            if not is_said:
                note(f"{path.name}: {error.strerror}; how busy this machine is will not be known for that time")
            is_said = True
        if is_over.wait(INTERVAL_S):
            return
        now, time_ms, rows = _usages(parts), now_ms(), []
        for part, usage in now.items():
            percent, host_percent = usage.percents_since(before[part])
            if part == HOST:
                rows.append(row(time_ms, host, part, host_percent, usage.host_memory_bytes, load=os.getloadavg()[0]))
            else:
                rows.append(row(time_ms, host, part, percent, usage.rss_bytes, usage.processes))
        before = now


def _append(path: Path, rows: Sequence[tuple[object, ...]]) -> None:
    """Append rows to the file, all or none: a part of one would make the next one wrong.

    Raises:
        OSError: the file cannot be written.
    """
    with path.open("ab", buffering=0) as file:
        size, text = file.tell(), io.StringIO(newline="")
        csv.writer(text).writerows(rows if size else [FIELDS, *rows])
        content = text.getvalue().encode()
        if (written := file.write(content)) != len(content):
            file.truncate(size)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), f"{path}: {written} of {len(content)} bytes")


def _usages(parts: Mapping[str, Processes]) -> dict[str, probe.Usage]:
    pids = {name: [process.pid for process in processes()] for name, processes in parts.items()}
    return {name: probe.usage(each) for name, each in {**pids, HOST: []}.items()}


def row(
    time_ms: int,
    host: str,
    part: str,
    cpu_percent: float,
    memory_bytes: int,
    processes: int | None = None,
    load: float | None = None,
) -> tuple[object, ...]:
    """Return a row of FIELDS; the memory of a whole machine is what nobody else could have had."""
    return time_ms, host, part, f"{cpu_percent:.1f}", memory_bytes, processes, None if load is None else f"{load:.2f}"
