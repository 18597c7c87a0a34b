"""Beyond one controller, simulated: `.local/venv/bin/python -m benchmarks.scale [--slaves 1000] [--samples 10000]`.

Each slave has one second of one label, as a table: each response time in whole microseconds, with how many samples had
it. The tables of all slaves are merged, and the percentiles of the merged table compared with those of all samples:
they have to be equal, to the last digit. Prints for functions of three speeds what a table takes, packed and as rows of
samples.jtl would), and the CPU time to merge that second. Exit status 1 if a percentile differs, or if merging a second
takes a core longer than a second.
"""

import argparse
import math
import sys
import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

PERCENTILES = (50, 90, 95, 99, 99.9, 99.99, 100)
# A row of samples.jtl of the plan requests.jmx.
ROW_BYTES = 133
# Median in ms and sigma of the logarithm; one sample in a thousand is cut off by a time-out.
SPEEDS = {"0.5 ms": (0.5, 0.35), "10 ms": (10.0, 0.3), "300 ms": (300.0, 0.3)}
TIMEOUT_US = 25_000_000
TIMED_OUT = 0.001
# Up to there, a counter for each microsecond: 34 MB; what is slower is rare, and is kept by its time.
DENSE_US = 1 << 23

Table = tuple[np.ndarray, np.ndarray]
"""Response times in microseconds, rising, and how many samples had each."""


def samples_of(random: np.random.Generator, median_ms: float, sigma: float, count: int) -> np.ndarray:
    """Return the response times of a slave's second, in microseconds."""
    times_us = random.lognormal(math.log(1000 * median_ms), sigma, count).astype(np.int64)
    return np.where(random.random(count) < TIMED_OUT, TIMEOUT_US, times_us)


def table_of(times_us: np.ndarray) -> Table:
    """Return the table of response times."""
    values, counts = np.unique(times_us, return_counts=True)
    return values, counts


def packed(table: Table) -> bytes:
    """Return a table as it would be sent: steps between times, and counts, compressed."""
    values, counts = table
    return zlib.compress(np.stack([np.diff(values, prepend=0), counts]).astype("<u4").tobytes())


class Merged:
    """The sum of tables."""

    def __init__(self) -> None:
        self._dense = np.zeros(DENSE_US, dtype=np.int64)
        self._slow: list[Table] = []

    def add(self, table: Table) -> None:
        """Add a table."""
        values, counts = table
        dense = int(np.searchsorted(values, DENSE_US))
        self._dense[values[:dense]] += counts[:dense]
        self._slow.append((values[dense:], counts[dense:]))

    def table(self) -> Table:
        """Return the table of all."""
        fast = np.flatnonzero(self._dense)
        slow = np.repeat(*(np.concatenate(each) for each in zip(*self._slow, strict=True)))
        values, counts = table_of(slow)
        return np.concatenate([fast, values]), np.concatenate([self._dense[fast], counts])


def percentile_us(table: Table, percent: float) -> int:
    """Return a percentile by nearest rank."""
    values, counts = table
    total = np.cumsum(counts)
    return int(values[np.searchsorted(total, _rank(percent, int(total[-1])))])


def _rank(percent: float, count: int) -> int:
    return max(1, math.ceil(round(percent * 1000) * count / 100_000))


@dataclass(frozen=True)
class Second:
    """What one second of all slaves takes."""

    entries: float
    bytes: float
    merge_s: float
    differing: tuple[float, ...]


def second(slaves: int, samples: int, median_ms: float, sigma: float) -> Second:
    """Simulate a second of so many slaves with so many samples each."""
    random = np.random.default_rng(2)
    drawn = [samples_of(random, median_ms, sigma, samples) for _ in range(slaves)]
    tables = [table_of(times_us) for times_us in drawn]
    sizes = [len(packed(table)) for table in tables[:50]]
    began_s = time.process_time()
    merged = Merged()
    for table in tables:
        merged.add(table)
    whole = merged.table()
    merge_s = time.process_time() - began_s
    rows = np.sort(np.concatenate(drawn))
    exact = {each: int(rows[_rank(each, rows.size) - 1]) for each in PERCENTILES}
    differing = tuple(each for each in PERCENTILES if percentile_us(whole, each) != exact[each])
    return Second(float(np.mean([len(values) for values, _ in tables])), float(np.mean(sizes)), merge_s, differing)


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table; returns 1 if a percentile differs or merging is too slow."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--slaves", type=int, default=1000)
    parser.add_argument("--samples", type=int, default=10_000, help="of each slave in a second")
    asked = parser.parse_args(argv)
    is_reached = True
    rows_mb = asked.slaves * asked.samples * ROW_BYTES / 1e6
    print(f"{asked.slaves} slaves x {asked.samples} samples/s; as rows {rows_mb:,.0f} MB in each second")
    for name, (median_ms, sigma) in SPEEDS.items():
        found = second(asked.slaves, asked.samples, median_ms, sigma)
        is_reached &= not found.differing and found.merge_s <= 1
        times_less = rows_mb * 1e6 / asked.slaves / found.bytes
        equal = f"percentiles differ: {found.differing}" if found.differing else "all percentiles equal"
        print(
            f"{name:>7}: {found.entries:,.0f} times in a table, {found.bytes:,.0f} bytes; "
            f"{asked.slaves * found.bytes / 1e6:,.1f} MB in each second, "
            f"{times_less:,.0f} times less than rows; merged in {found.merge_s:.2f} s of CPU; {equal}",
            flush=True,
        )
    return 0 if is_reached else 1


if __name__ == "__main__":
    sys.exit(main())
