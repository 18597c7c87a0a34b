"""CPU and memory of a run's parts and of the whole machine, sampled once a second into resources.csv."""

import csv
import os
import time
from collections.abc import Mapping
from pathlib import Path
from threading import Event

import psutil

from framestorm.guard import Guarded

INTERVAL_S = 1.0
# The whole machine is the part "host": its memory in use, its load average, and no count of processes.
FIELDS = ("time_ms", "host", "part", "cpu_percent", "rss_bytes", "processes", "load")


def log_resources(path: Path, host: str, parts: Mapping[str, Guarded], is_over: Event) -> None:
    """Write a row a part and second until the event is set; 100 percent is one core kept busy.

    A part's CPU time is that of its living processes and of the children each has already waited for, so that frame
    clients which come and go between two samples are counted too.
    """
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(FIELDS)
        before, before_s = _usage(parts), time.monotonic()
        while not is_over.wait(INTERVAL_S):
            now, now_s = _usage(parts), time.monotonic()
            time_ms = int(time.time() * 1000)
            for part, (cpu_s, memory_bytes, processes) in now.items():
                # A killed process takes its unreaped time with it: never show that as negative work.
                percent = max(0.0, cpu_s - before[part][0]) / (now_s - before_s) * 100
                load = os.getloadavg()[0] if part == "host" else None
                writer.writerow(row(time_ms, host, part, percent, memory_bytes, processes, load))
            before, before_s = now, now_s
            file.flush()


def row(
    time_ms: int,
    host: str,
    part: str,
    cpu_percent: float,
    memory_bytes: int,
    processes: int | None = None,
    load: float | None = None,
) -> tuple[object, ...]:
    """A row of FIELDS; the memory of a whole machine is what nobody else could have had."""
    return time_ms, host, part, f"{cpu_percent:.1f}", memory_bytes, processes, None if load is None else f"{load:.2f}"


def _usage(parts: Mapping[str, Guarded]) -> dict[str, tuple[float, int, int | None]]:
    """CPU seconds so far, memory in use and number of processes of each part and of the host."""
    times, memory = psutil.cpu_times(), psutil.virtual_memory()
    # User time already holds guest time.
    host_s = times.user + times.nice + times.system + times.irq + times.softirq + times.steal
    return {name: _usage_of(part) for name, part in parts.items()} | {
        "host": (float(host_s), memory.total - memory.available, None)
    }


def _usage_of(part: Guarded) -> tuple[float, int, int]:
    cpu_s, rss_bytes, count = 0.0, 0, 0
    for process in part.processes():
        try:
            with process.oneshot():
                times = process.cpu_times()
                cpu_s += times.user + times.system + times.children_user + times.children_system
                rss_bytes += process.memory_info().rss
                count += 1
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return cpu_s, rss_bytes, count
