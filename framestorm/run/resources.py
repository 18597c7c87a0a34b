"""CPU and memory of a run's parts and of the whole machine, sampled once a second into resources.csv."""

import csv
import os
import time
from collections.abc import Mapping
from pathlib import Path

import psutil

from framestorm.guard import Guarded
from framestorm.run.background import Background

INTERVAL_S = 1.0
# The whole machine is the part "host": its memory in use, its load average, and no count of processes.
FIELDS = ("time_ms", "host", "part", "cpu_percent", "rss_bytes", "processes", "load")


Row = tuple[int, str, str, str, int, int | str, str]


class ResourceLog(Background):
    """A thread that writes a row a part and second; 100 percent is one core kept busy.

    A part's CPU time is that of its living processes and of the children each has already waited for, so that frame
    clients which come and go between two samples are counted too.
    """

    def __init__(self, path: Path, host: str, parts: Mapping[str, Guarded]) -> None:
        self._path = path
        self._host = host
        self._parts = dict(parts)
        super().__init__()

    def _run(self) -> None:
        with self._path.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(FIELDS)
            before_s = {part: _cpu_s(guarded)[0] for part, guarded in self._parts.items()}
            host_before_s = _host_cpu_s()
            last_s = time.monotonic()
            while not self._closed.wait(INTERVAL_S):
                now_s = time.monotonic()
                elapsed_s, last_s = now_s - last_s, now_s
                now_ms = int(time.time() * 1000)
                for part, guarded in self._parts.items():
                    cpu_s, rss_bytes, processes = _cpu_s(guarded)
                    # A killed process takes its unreaped time with it: never show that as negative work.
                    percent = max(0.0, cpu_s - before_s[part]) / elapsed_s * 100
                    before_s[part] = cpu_s
                    writer.writerow(part_row(now_ms, self._host, part, percent, rss_bytes, processes))
                host_s = _host_cpu_s()
                percent = (host_s - host_before_s) / elapsed_s * 100
                host_before_s = host_s
                memory = psutil.virtual_memory()
                writer.writerow(
                    host_row(now_ms, self._host, percent, memory.total - memory.available, os.getloadavg()[0])
                )
                file.flush()


def part_row(time_ms: int, host: str, part: str, cpu_percent: float, rss_bytes: int, processes: int) -> Row:
    """What one part of a run took of its host."""
    return time_ms, host, part, f"{cpu_percent:.1f}", rss_bytes, processes, ""


def host_row(time_ms: int, host: str, cpu_percent: float, memory_bytes: int, load: float) -> Row:
    """How busy the whole machine was; memory is what nobody else could have had."""
    return time_ms, host, "host", f"{cpu_percent:.1f}", memory_bytes, "", f"{load:.2f}"


def _cpu_s(guarded: Guarded) -> tuple[float, int, int]:
    """CPU seconds so far, resident bytes and number of the processes of a part."""
    cpu_s, rss_bytes, count = 0.0, 0, 0
    for process in guarded.processes():
        try:
            with process.oneshot():
                times = process.cpu_times()
                cpu_s += times.user + times.system + times.children_user + times.children_system
                rss_bytes += process.memory_info().rss
                count += 1
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return cpu_s, rss_bytes, count


def _host_cpu_s() -> float:
    """Busy CPU seconds of the whole machine; user already holds guest time."""
    times = psutil.cpu_times()
    return float(times.user + times.nice + times.system + times.irq + times.softirq + times.steal)
