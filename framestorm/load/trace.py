"""Arrivals recorded elsewhere: a time a line, or counts per minute as in the public traces of Azure Functions."""

import csv
import io
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from framestorm.errors import UsageError
from framestorm.load.text import Points, too_much
from framestorm.model.cause import TRANSACTION_PATTERN
from framestorm.model.foreign import EPOCHS
from framestorm.model.sample import CUT_TRANSACTION, SAMPLE_KIND, SUB_RESULT, TRANSACTION

# Units of times by the end of their column's name, for those that are not since 1970; how many s each is.
_UNITS = {
    "_s": ("seconds", 1.0), "_ms": ("milliseconds", 1e-3), "_us": ("microseconds", 1e-6), "_ns": ("nanoseconds", 1e-9),
}  # fmt: skip
# Names of the column with the times, in the order in which they are looked for.
TIMES = tuple(f"{name}{unit}" for unit in ("", *_UNITS) for name in ("timestamp", "time", "start", "t"))
# The trace of 2021 has the end of each call and its length.
END, LENGTH = "end_timestamp", "duration"
# k6 writes a line for each figure of a request; one of them is the request itself.
METRIC, REQUEST = "metric_name", "http_reqs"
# Columns of records whose lines are in the order in which calls ended: of JMeter, of samples.csv, of k6.
_BY_END = {END, "elapsed", "rtt_ms", METRIC}
# What separates columns beside commas; no colon, which is part of times.
_DELIMITERS = ";\t|"
MINUTE_S = 60.0
_COUNT = re.compile(r"[0-9]{1,18}")
# As people write them: float() takes 1_0, nan and the digits of every script too.
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
FORMS = "seconds such as 0.25, or 2026-11-25T10:00:00.250Z"
_FIRST_LINE = re.compile(r"^[^\S\n]*[^\s#].*", re.MULTILINE)
# What arrives at the very same moment is sent one after the other.
APART_S = 1e-6
MOST, LONGEST_CELL = 10_000_000, 1 << 17


class ArrivalTrace(NamedTuple):
    """The corners of the rate of a trace, of which the area below reaches each whole number as that arrival is due.

    assumed: what the file does not say itself, in words; empty if there is nothing.
    """

    points: Points
    assumed: str = ""


class _Row(NamedTuple):
    line: int
    cells: list[str]

    def cell(self, column: int | None) -> str:
        return self.cells[column].strip() if column is not None and column < len(self.cells) else ""


@dataclass(frozen=True)
class _Table:
    """The lines of a trace, without its header; names: of its columns in lower case, none if it has no header."""

    path: Path
    rows: list[_Row]
    names: list[str]
    delimiter: str

    def column(self, name: str) -> int | None:
        return self.names.index(name) if name in self.names else None

    def times(self, rows: Sequence[_Row], column: int) -> Iterator[float]:
        for row in rows:
            value = _time(row.cell(column), self.delimiter)
            if math.isnan(value):
                raise UsageError(f"{self.path}, line {row.line}: {row.cell(column)[:40]!r} is no time: {FORMS}")
            yield value


def is_trace(text: str) -> bool:
    """Return whether a text is a trace and not a load in words, by its first line."""
    return _delimiter(text) is not None


def read(path: Path, text: str, speed: float) -> ArrivalTrace:
    """Read a trace.

    Args:
        path: the file, for errors.
        text: its content.
        speed: how many times as fast as it was recorded; its times count from the first of them.

    Raises:
        UsageError: a line is no time or no count, times fall, nothing arrives, or it is too much for a load.
    """
    delimiter = _delimiter(text) or ","
    try:
        first, *rows = _rows(text, delimiter)
    except csv.Error as error:
        raise UsageError(f"{path}: a line is not of a trace: {error}") from None
    end = (rows or [first])[-1].cells[-1]
    if "\n" in end and not text.rstrip().endswith('"'):
        raise UsageError(f"{path}: the quotation mark before {end[:40]!r} is not closed, so all after it is one line")
    if math.isnan(_time(first.cell(0), delimiter)) or len(_minutes(_names(first))) > 2:
        names = _names(first)
        # Files that were put together have a header each.
        rows = [row for row in rows if names[0] not in row.cells[0].lower() or _names(row) != names]
        table = _Table(path, rows, names, delimiter)
    else:
        table = _Table(path, [first, *rows], [], delimiter)
    if minutes := _minutes(table.names):
        arrivals = ArrivalTrace(_of_counts(path, [sum(_counts(table, column)) for column in minutes], speed))
        what = "counts are per minute"
    else:
        arrivals, unit = _of_arrivals(table, speed)
        what = f"its times are taken as {unit}; a header such as time_ms names another unit"
    most, end_s = max(rate for _, rate in arrivals.points), arrivals.points[-1][0]
    if why := too_much("arrivals", most, end_s):
        raise UsageError(
            f"{path}: {why}; the trace has up to {most:.4g} per second, and lasts {end_s:,.10g} s at "
            f"-Jspeed={speed:g}; {what}"
        )
    return arrivals


def _of_arrivals(table: _Table, speed: float) -> tuple[ArrivalTrace, str]:
    """Return a trace with a time a line, and the unit of its times."""
    rows = list(_arrivals(table))
    if not rows:
        others = "no line is of a request alone: all are of transactions, or of parts or other figures of requests"
        raise UsageError(f"{table.path}: {others if table.rows else 'no line with a time'}")
    if len(rows) > MOST:
        raise UsageError(f"{table.path}: {len(rows):,} arrivals, and at most {MOST:,} can be read")
    name = next((name for name in (END, *TIMES) if name in table.names), "")
    column = table.column(name) or 0
    times = list(table.times(rows, column))
    unit, unit_s = _unit(times[0], name)
    if unit_s == 1.0 and table.delimiter == ",":
        _check_commas(table, rows, column)
    if name == END:
        length = table.column(LENGTH)
        if length is None:
            raise UsageError(f"{table.path}: a column {END} needs a column {LENGTH}")
        times = [end - length for end, length in zip(times, table.times(rows, length), strict=True)]
    if not _BY_END.isdisjoint(table.names):
        times.sort()
    for before, row, (previous, time) in zip(rows, rows[1:], pairwise(times), strict=False):
        if time < previous:
            cells = f"{row.cell(column)!r} is before {before.cell(column)!r} in line {before.line}"
            raise UsageError(f"{table.path}, line {row.line}: {cells}: sort the lines by time")
    assumed = [] if unit_s == 1.0 else [f"times in {unit}"]
    if len({*times}) < len(times) and all(abs(time * unit_s - round(time * unit_s)) < 1e-6 for time in times):
        assumed.append("times are whole seconds, and what has the same one is sent at once")
    return ArrivalTrace(_of_times([(time - times[0]) * unit_s / speed for time in times]), ", ".join(assumed)), unit


def _arrivals(table: _Table) -> Iterator[_Row]:
    """Yield the lines that are arrivals of their own, and not another figure or a part of one."""
    columns = [*map(table.column, (SAMPLE_KIND, "source", "responsemessage", METRIC))]
    if {*columns} == {None}:
        yield from table.rows
        return
    kind, source, message, metric = columns
    for row in table.rows:
        is_other = not {SUB_RESULT, TRANSACTION, CUT_TRANSACTION}.isdisjoint((row.cell(kind), row.cell(source)))
        is_other |= TRANSACTION_PATTERN.search(row.cell(message)) is not None
        if not is_other and row.cell(metric) in ("", REQUEST):
            yield row


def _unit(first: float, name: str) -> tuple[str, float]:
    """Return the unit of the times, and how many s it is, by the first of them, or by the name of their column."""
    for unit, least, most, ms in EPOCHS:
        if least <= first <= most:
            return unit, ms / 1000
    return next((unit for end, unit in _UNITS.items() if name.endswith(end)), _UNITS["_s"])


def _check_commas(table: _Table, rows: Sequence[_Row], column: int) -> None:
    """Refuse times that were cut in two at a comma: `0,5` is half a second, or a time with another column."""
    width = len(table.names) or 1
    wide = [row for row in rows if len(row.cells) > width]
    if wide and all(_is_cut(row, column, width) for row in wide):
        what = ",".join(wide[0].cells[column : column + 2])[:40]
        raise UsageError(
            f"{table.path}, line {wide[0].line}: {what!r} is a time with a comma for its point, or a time and another "
            "column: write a point, or begin with a header such as time,status"
        )


def _is_cut(row: _Row, column: int, width: int) -> bool:
    after = row.cell(column + 1)
    is_rest = re.match(r"[0-9]{3}\s", after) or (re.fullmatch("[0-9]+", after) and len(row.cells) == width + 1)
    return bool(is_rest) and "." not in row.cell(column)


def _of_times(times_s: Sequence[float]) -> Points:
    points, at_s = [(0.0, 0.0)], 0.0
    for time_s in times_s[1:]:
        end_s = max(time_s, at_s + APART_S)
        # Where no float is so little later, the trace is too long, and refused for that.
        per_s = 1 / (end_s - at_s or APART_S)
        points += [(at_s, per_s), (end_s, per_s)]
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


def _rows(text: str, delimiter: str) -> Iterator[_Row]:
    """Yield the lines that are neither blank nor comments."""
    csv.field_size_limit(LONGEST_CELL)  # it is that of the whole process
    reader = csv.reader(io.StringIO(text), delimiter=delimiter)
    for cells in reader:
        if any(map(str.strip, cells)) and not cells[0].lstrip().startswith("#"):
            yield _Row(reader.line_num, cells)


def _delimiter(text: str) -> str | None:
    """Return what separates the columns of a trace, by its first line; None if that is no line of a trace."""
    match = _FIRST_LINE.search(text)
    line = match[0] if match else ""
    for delimiter in (*(each for each in _DELIMITERS if each in line), ","):
        try:
            first = next(_rows(line, delimiter), _Row(0, []))
        except csv.Error:
            continue
        names = _names(first)
        if not math.isnan(_time(first.cell(0), delimiter)) or _minutes(names) or {END, *TIMES} & {*names}:
            return delimiter
    return None


def _names(row: _Row) -> list[str]:
    return [cell.strip("\ufeff \t").lower() for cell in row.cells]


def _minutes(names: Sequence[str]) -> list[int]:
    """Return the columns with counts per minute: 1, 2, 3 and so on, after those that name the function."""
    columns = [number for number, name in enumerate(names) if name.isdecimal()]
    numbers = [names[column] for column in columns]
    return columns if len(numbers) > 1 and numbers == [str(number) for number in range(1, len(numbers) + 1)] else []


def _time(cell: str, delimiter: str) -> float:
    """Return a number, or a date in ISO 8601 in s since 1970; not a number if the cell is neither.

    A comma may be the decimal point where it separates no columns.
    """
    text = cell.strip() if delimiter == "," else cell.strip().replace(",", ".")
    if _NUMBER.fullmatch(text):
        number = float(text)
        return number if math.isfinite(number) else math.nan
    try:
        date = datetime.fromisoformat(text.upper())
    except ValueError:
        return math.nan
    # The time zone of this machine would put summer time into the trace.
    return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()


def _counts(table: _Table, column: int) -> Iterator[int]:
    for row in table.rows:
        if not _COUNT.fullmatch(cell := row.cell(column)):
            what = f"{cell[:40]!r} is no count of minute {table.names[column]}"
            raise UsageError(f"{table.path}, line {row.line}: {what}")
        yield int(cell)
