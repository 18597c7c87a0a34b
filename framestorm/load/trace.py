"""Arrivals recorded elsewhere: a time a line, or counts per minute as in the public traces of Azure Functions."""

import csv
import math
import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import pairwise
from pathlib import Path

from framestorm.errors import UsageError
from framestorm.load.text import Points, too_much

# Names of the column with the times, in the order in which they are looked for.
TIMES = ("timestamp", "time", "start", "time_s", "start_s", "t")
# The trace of 2021 has the end of each call and its length, both in s.
END, LENGTH = "end_timestamp", "duration"
MINUTE_S = 60.0
_COUNT = re.compile(r"[0-9]{1,18}")
# What arrives at the very same moment is sent one after the other.
APART_S = 1e-6
MOST, LONGEST_CELL = 10_000_000, 1 << 17


def is_trace(text: str) -> bool:
    """Return whether a text is a trace and not a load in words, by its first line."""
    first = _cells(text.partition("\n")[0])
    return _is_time(first[0]) or bool(_minutes(first)) or END in first or any(name in first for name in TIMES)


def read(path: Path, text: str, speed: float) -> Points:
    """Read a trace.

    Args:
        path: the file, for errors.
        text: its content.
        speed: how many times as fast as it was recorded; its times count from the first of them.

    Returns:
        The corners of its rate, of which the area below reaches each whole number as that arrival is due.

    Raises:
        UsageError: a line is no time or no count, times fall, nothing arrives, or it is too much for a load.
    """
    points = _points(path, text, speed)
    most, end_s = max(rate for _, rate in points), points[-1][0]
    if why := too_much("arrivals", most, end_s):
        raise UsageError(
            f"{path}: {why}; the trace has up to {most:.4g} per second, and lasts {end_s:,.0f} s at -Jspeed={speed:g}; "
            "its times are in seconds"
        )
    return points


def _points(path: Path, text: str, speed: float) -> Points:
    try:
        rows = _rows(text)
    except csv.Error as error:
        raise UsageError(f"{path}: a line is not of a trace: {error}") from None
    header = [] if _is_time(_cells(text)[0]) else _cells(text)
    if minutes := _minutes(header):
        return _of_counts(path, [sum(_counts(path, rows, column)) for column in minutes], speed)
    times_s = sorted(_starts(path, rows, header)) if END in header else list(_times(path, rows, header))
    for number, (before_s, time_s) in enumerate(pairwise(times_s), 2):
        if time_s < before_s:
            raise UsageError(
                f"{path}: arrival {number} is at {time_s:g} s, before the one at {before_s:g} s: sort them"
            )
    if not times_s:
        raise UsageError(f"{path}: no line with a time")
    if len(times_s) > MOST:
        raise UsageError(f"{path}: {len(times_s):,} arrivals, and at most {MOST:,} can be read")
    return _of_times([(each - times_s[0]) / speed for each in times_s])


def _of_times(times_s: Sequence[float]) -> Points:
    points, at_s = [(0.0, 0.0)], 0.0
    for time_s in times_s[1:]:
        end_s = max(time_s, at_s + APART_S)
        points += [(at_s, 1 / (end_s - at_s)), (end_s, 1 / (end_s - at_s))]
        at_s = end_s
    # The last one is due before its area is whole.
    return [*points, (at_s, 0.5 / APART_S), (at_s + APART_S, 0.5 / APART_S)]


def _of_counts(path: Path, counts: Sequence[int], speed: float) -> Points:
    if not any(counts):
        raise UsageError(f"{path}: nothing arrives in any minute")
    points = []
    for number, count in enumerate(counts):
        start_s, end_s = number * MINUTE_S / speed, (number + 1) * MINUTE_S / speed
        points += [(start_s, count / (end_s - start_s)), (end_s, count / (end_s - start_s))]
    return points


def _rows(text: str) -> list[list[str]]:
    csv.field_size_limit(LONGEST_CELL)  # it is that of the whole process
    return list(csv.reader(text.splitlines()))


def _cells(text: str) -> list[str]:
    """Return the cells of the first line."""
    try:
        rows = _rows(text.partition("\n")[0])
    except csv.Error:
        rows = []
    return [cell.strip().lower() for row in rows[:1] for cell in row] or [""]


def _minutes(header: Sequence[str]) -> list[int]:
    """Return the columns with counts per minute: 1, 2, 3 and so on, after those that name the function."""
    columns = [number for number, name in enumerate(header) if name.isdecimal()]
    names = [header[number] for number in columns]
    return columns if len(names) > 1 and names == [str(number) for number in range(1, len(names) + 1)] else []


def _is_time(cell: str) -> bool:
    return not math.isnan(_seconds(cell))


def _seconds(cell: str) -> float:
    """Return a number of seconds, or a date with a time as in ISO 8601; not a number if it is neither."""
    try:
        number = float(cell)
        return number if math.isfinite(number) else math.nan
    except ValueError:
        pass
    try:
        return datetime.fromisoformat(cell.strip()).timestamp()
    except ValueError:
        return math.nan


def _column(path: Path, rows: Sequence[Sequence[str]], column: int, has_header: bool) -> Iterator[float]:
    for number, row in enumerate(rows, 1):
        if not any(row) or (number == 1 and has_header):
            continue
        value = _seconds(row[column]) if column < len(row) else math.nan
        if math.isnan(value):
            what = row[column] if column < len(row) else ""
            raise UsageError(f"{path}, line {number}: {what!r} is no time: seconds, or 2026-11-25T10:00:00.250")
        yield value


def _times(path: Path, rows: Sequence[Sequence[str]], header: list[str]) -> Iterator[float]:
    column = next((header.index(name) for name in TIMES if name in header), 0)
    return _column(path, rows, column, bool(header))


def _starts(path: Path, rows: Sequence[Sequence[str]], header: list[str]) -> Iterator[float]:
    if LENGTH not in header:
        raise UsageError(f"{path}: a column {END} needs a column {LENGTH}")
    ends, lengths = (_column(path, rows, header.index(name), True) for name in (END, LENGTH))
    return (end_s - length_s for end_s, length_s in zip(ends, lengths, strict=True))


def _counts(path: Path, rows: Sequence[Sequence[str]], column: int) -> Iterator[int]:
    for number, row in enumerate(rows[1:], 2):
        if not any(row):
            continue
        cell = row[column].strip() if column < len(row) else ""
        if not _COUNT.fullmatch(cell):
            raise UsageError(f"{path}, line {number}: {cell[:40]!r} is no count of minute {column}")
        yield int(cell)
