"""CPU and memory of a run's parts and of the whole machine, sampled once a second into resources.csv."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Event

import psutil

from framestorm import probe
from framestorm.machine import now_ms
from framestorm.run.row_log import RowLog

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
    log = RowLog(path, FIELDS, "how busy this machine is")
    before, rows = _usages(parts), list[tuple[object, ...]]()
    while True:
        log.append(rows)
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
    """Return a row of FIELDS; the memory of a whole machine is what the run could not have."""
    return time_ms, host, part, f"{cpu_percent:.1f}", memory_bytes, processes, None if load is None else f"{load:.2f}"
