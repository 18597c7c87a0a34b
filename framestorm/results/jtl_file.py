"""Opening a JTL: JMeter's CSV in any encoding, with any delimiter, with or without a header, whole or cut off."""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from framestorm.model.foreign import CHUNK_BYTES, EPOCHS, as_utf_8
from framestorm.model.units import count, plural
from framestorm.results.growing import end_of_rows

NEEDED = ("elapsed", "label", "success")
# In JMeter's order, with all that it writes by default; older versions have fewer.
DEFAULT = (
    "timeStamp", "elapsed", "label", "responseCode", "responseMessage", "threadName", "dataType", "success",
    "failureMessage", "bytes", "sentBytes", "grpThreads", "allThreads", "URL", "Latency", "IdleTime", "Connect",
)  # fmt: skip
_BEFORE_URL = tuple(name for name in DEFAULT if name != "URL")
_BEFORE_SENT = tuple(name for name in _BEFORE_URL if name != "sentBytes")
WITHOUT_HEADER = {len(names): names for names in (DEFAULT, _BEFORE_URL, _BEFORE_SENT)}
OTHERS_OF_JMETER = ("Filename", "Encoding", "SampleCount", "ErrorCount", "Hostname")
# JMeter reads its own columns in this order only.
ORDER = (*DEFAULT[:-3], "Filename", "Latency", "Encoding", "SampleCount", "ErrorCount", "Hostname", *DEFAULT[-2:])
_KNOWN = {name.lower(): name for name in ORDER}
DELIMITERS = ",;\t|^~:"
# As polars reads them, by how people write them.
TIME_FORMATS = {
    "%Y-%m-%dT%H:%M:%S%.f%#z": "", "%Y-%m-%d %H:%M:%S%.f%#z": "",
    "%Y/%m/%d %H:%M:%S%.f": "", "%Y-%m-%d %H:%M:%S%.f": "", "%Y-%m-%dT%H:%M:%S%.f": "", "%Y%m%d%H%M%S%.f": "",
    "%d.%m.%Y %H:%M:%S%.f": "", "%d/%m/%Y %H:%M:%S%.f": "day/month/year", "%m/%d/%Y %H:%M:%S%.f": "month/day/year",
    "%d/%m/%y %H:%M:%S%.f": "day/month/year", "%m/%d/%y %H:%M:%S%.f": "month/day/year",
    "%d/%m/%Y %I:%M:%S%.f %p": "day/month/year", "%m/%d/%Y %I:%M:%S%.f %p": "month/day/year",
}  # fmt: skip
# The years of both ends of EPOCHS (model/foreign.py): `%Y` reads 25 as a year, too.
YEARS = range(1990, 2091)
NO_TIME = pl.lit(None, pl.String)
_HEAD_BYTES = 1 << 16
# In the column `success`; JMeter itself writes and reads the first ones only.
TRUE, FALSE = ("true", "1", "yes"), ("false", "0", "no")
_LIKE_A_ROW = re.compile(rb"\n\d{12,13}[,;\t]\d+[,;\t]")
# A line break inside quotes does not end it.
_FIRST_ROW = re.compile(rb'(?:[^"\n]+|"[^"]*"|")*')
XML_ROOT = "testResults"


@dataclass(frozen=True)
class JtlFile:
    """A JTL that can be read; every column of `rows` is text.

    problem: a sentence if it is not whole; assumed: sentences on what it does not say itself.
    is_usual: JMeter itself can read it with its usual settings.
    """

    rows: pl.LazyFrame
    columns: tuple[str, ...]
    problem: str | None
    assumed: tuple[str, ...]
    is_usual: bool

    def write(self, path: Path) -> None:
        """Write it as JMeter does by default."""
        columns = in_order(self.columns)
        with path.open("wb") as file:
            file.write(header(columns).encode())
            self.rows.select(columns).sink_csv(file, include_header=False)


def in_order(columns: Iterable[str]) -> list[str]:
    """Return columns in JMeter's order, and those of variables after these."""
    names = list(columns)
    return [*(name for name in ORDER if name in names), *(name for name in names if name not in ORDER)]


def header(columns: Iterable[str]) -> str:
    """Return the first line of a JTL; JMeter knows a variable of the plan by its quotation marks."""
    return ",".join(name if name in ORDER else f'"{name}"' for name in columns) + "\n"


def root_of(head: bytes) -> str:
    """Return the name of the outermost element, given the beginning of an XML file; empty if it is not in it."""
    match = re.search(rb"<([^\W\d][\w.:-]*)", re.sub(rb"<!--.*?-->", b"", head, flags=re.DOTALL))
    return match[1].decode() if match else ""


def open_jtl(path: Path) -> JtlFile | str:
    """Open a JTL; a sentence if nothing of it can be read."""
    if not path.exists():
        return "samples.jtl is missing"
    text = as_utf_8(path)
    source, head = text.source, text.read(_HEAD_BYTES)
    assumed = ["the encoding of samples.jtl is not UTF-8; Windows-1252 is assumed"] if text.is_assumed else []
    if head.lstrip()[:1] == b"<":
        if (root := root_of(head)) not in ("", XML_ROOT):
            return f"samples.jtl is XML whose outermost element is <{root}>, not <{XML_ROOT}>"
        return "samples.jtl is XML: ./run.sh report FILE.jtl -o DIR reads such a file"
    whole = source if isinstance(source, Path) else io.BytesIO(source)
    n_bytes = whole_rows(whole)
    n_all = path.stat().st_size if isinstance(source, Path) else len(source)
    if not n_bytes:
        return "samples.jtl has no whole line" if n_all else "samples.jtl is empty"
    problem = None
    is_itself = isinstance(source, Path)
    if n_bytes < n_all:
        content = source.read_bytes() if isinstance(source, Path) else source
        problem = "samples.jtl ends in the middle of a row; the row was left out"
        if rows := sum(1 for _ in _LIKE_A_ROW.finditer(content, n_bytes)):
            problem = f"a quotation mark of samples.jtl is not closed; {plural(rows, 'row')} after it were left out"
        source = content[:n_bytes]
    first = next(_FIRST_ROW.finditer(head))[0]
    delimiter, names = _names(first)
    default = WITHOUT_HEADER.get(len(names), ())
    # A label may be called as a column is.
    is_row = bool(default) and re.fullmatch(r"\d+", names[1]) is not None
    has_header = not is_row and bool({*NEEDED} & {name.lower() for name in names})
    if is_row:
        assumed.append(
            f"there is no header line in samples.jtl; {len(names)} columns are taken as those of JMeter's default"
        )
    elif not has_header:
        return f"samples.jtl has no header line with {', '.join(NEEDED)}; it cannot be read"
    is_joined = False
    first = first.strip(b"\xef\xbb\xbf\r ")
    for number, line in _headers_below(source):
        is_same = _names(line) == (delimiter, names if has_header else [*default])
        # Below a row without a line end, a header stands in its line.
        if not (is_same or line.rstrip().endswith(first)):
            return (
                f"line {count(number)} of samples.jtl is a header line of other columns or with another delimiter, so "
                "it is several files in one; take them apart there, and name them all: ./run.sh report FILE FILE -o DIR"
            )
        is_joined = True
    raw = pl.scan_csv(
        source if isinstance(source, Path) else io.BytesIO(source),
        separator=delimiter,
        has_header=has_header,
        new_columns=None if has_header else list(default),
        infer_schema=False,
        truncate_ragged_lines=True,
        ignore_errors=True,
        encoding="utf8-lossy",
    )
    renamed = _renamed(raw.collect_schema().names())
    raw = raw.rename(renamed)
    columns = raw.collect_schema().names()
    missing = [name for name in NEEDED if name not in columns]
    if missing:
        return f"samples.jtl has no header line with {', '.join(missing)}; it cannot be read"
    if is_joined:
        is_header = pl.all_horizontal(_word(name).eq_missing(name) for name in NEEDED)
        raw = raw.filter(~is_header)
    has_other_words = (_first(raw, "success") or TRUE[0]).strip().lower() not in (TRUE[0], FALSE[0])
    if has_other_words:
        is_true, is_false = (_word("success").is_in(words) for words in (TRUE, FALSE))
        word = pl.when(is_true).then(pl.lit(TRUE[0])).when(is_false).then(pl.lit(FALSE[0])).otherwise("success")
        raw = raw.with_columns(word.alias("success"))
    if "timeStamp" not in columns:
        raw = raw.with_columns(NO_TIME.alias("timeStamp"))
    elif first_time := _first(raw, "timeStamp"):
        times, words = _epoch_ms(raw, first_time)
        raw = raw.with_columns(times.alias("timeStamp"))
        assumed += words
        if times.meta.eq(NO_TIME):
            columns.remove("timeStamp")
    is_usual = is_itself and delimiter == "," and not (renamed or assumed or is_joined or has_other_words)
    is_usual = is_usual and columns == in_order(columns)
    return JtlFile(raw, tuple(columns), problem, tuple(assumed), is_usual)


def _names(line: bytes) -> tuple[str, list[str]]:
    """Return the delimiter of a header line, and the names in it; or those of a row, and its cells."""
    text = re.sub(r"[\r\n]", " ", line[:_HEAD_BYTES].decode(errors="replace").strip("\r\n\ufeff"))
    delimiter = _delimiter(text)
    return delimiter, [name.strip() for name in next(csv.reader([text], delimiter=delimiter, skipinitialspace=True))]


def _headers_below(source: Path | bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the header lines below the first line, with their numbers: those of files that were joined, as by `cat`."""
    number = 2
    with source.open("rb") if isinstance(source, Path) else io.BytesIO(source) as file:
        file.readline()
        while chunk := file.read(CHUNK_BYTES) + file.readline():
            if b"elapsed" in chunk.lower():
                yield from (each for each in enumerate(chunk.split(b"\n"), number) if _is_header(each[1]))
            number += chunk.count(b"\n")


def _is_header(line: bytes) -> bool:
    return b"elapsed" in line.lower() and {*NEEDED} <= {name.lower() for name in _names(line)[1]}


def _delimiter(header: str) -> str:
    """Return what stands between the columns: the sign that is most often between words, outside of quotes."""
    words = re.sub(r'"[^"]*"', "", header)
    counts = {sign: words.count(sign) for sign in DELIMITERS}
    return max(DELIMITERS, key=lambda sign: counts[sign]) if any(counts.values()) else ","


def _renamed(columns: Sequence[str]) -> dict[str, str]:
    """Return JMeter's columns by the names that it gives them: some tools write them in other cases, or with blanks."""
    names: dict[str, str] = {}
    for column in columns:
        plain = column.strip("\ufeff\r \t")
        name = _KNOWN.get(plain.lower(), plain)
        if name != column and name not in columns and name not in names.values():
            names[column] = name
    return names


def _first(raw: pl.LazyFrame, column: str) -> str | None:
    # Not by `first`, for which the whole file would be read.
    cells = raw.select(column).drop_nulls().head(1).collect(engine="streaming")[column]
    return str(cells[0]) if cells.len() else None


def _word(column: str) -> pl.Expr:
    """Return a column in small letters, without blanks around them."""
    return pl.col(column).str.strip_chars().str.to_lowercase()


def _epoch_ms(raw: pl.LazyFrame, first_time: str) -> tuple[pl.Expr, list[str]]:
    """Return the times of the rows in epoch ms, and the assumptions about their form, which the first time decides.

    What is of another form stays as it is, so that the report can show it.
    """
    text = pl.col("timeStamp")
    if re.fullmatch(r"-?\d+(\.\d+)?", first_time):
        for unit, first, last, ms in EPOCHS:
            if not first <= float(first_time) <= last:
                continue
            if unit == "milliseconds":
                return text, []
            time_ms = (text.cast(pl.Float64, strict=False) * ms).round().cast(pl.Int64, strict=False)
            assumption = f"the times of samples.jtl are taken as {unit} since 1970"
            return pl.coalesce(time_ms.cast(pl.String), text), [assumption]
    # As spreadsheets show large numbers, and save what they show.
    rounded = re.fullmatch(r"\d(?:[.,](\d+))?E\+?(\d{1,2})", first_time, re.IGNORECASE)
    step_s = 10 ** (int(rounded[2]) - len(rounded[1] or "") - 3) if rounded else 0
    if step_s > 1:
        why = f"the times of samples.jtl, such as {first_time}, are rounded to {step_s:,g} s"
        return NO_TIME, [f"{why}, as by a spreadsheet, and say nothing; use the file that JMeter wrote"]
    formats = _time_formats(first_time)
    if not formats:
        if raw.select(text.cast(pl.Float64, strict=False).count()).collect(engine="streaming").item():
            return text, []  # the first is of a row that is broken, or cannot be
        advice = "let JMeter write them by jmeter.save.saveservice.timestamp_format=ms"
        return NO_TIME, [f"the times of samples.jtl, such as {first_time[:40]}, are in no form that is known; {advice}"]
    # Day/month and month/day may both fit the first row.
    time_format = formats[0] if len(formats) == 1 else _best_format(raw, formats)
    order = TIME_FORMATS[time_format]
    assumption = f"the times of samples.jtl have no time zone; they are taken as {f'{order} in ' if order else ''}UTC"
    times = _times(time_format).dt.epoch("ms").cast(pl.String)
    return pl.coalesce(times, text), [] if time_format.endswith("z") else [assumption]


def _times(time_format: str) -> pl.Expr:
    kind = pl.Datetime("ms", "UTC" if time_format.endswith("z") else None)
    times = pl.col("timeStamp").str.strptime(kind, time_format, strict=False)
    return pl.when(times.dt.year().is_between(YEARS[0], YEARS[-1])).then(times)


def _best_format(raw: pl.LazyFrame, formats: Sequence[str]) -> str:
    """Return the format of the most rows, the first of several."""
    counts = raw.select(_times(each).count().alias(each) for each in formats).collect(engine="streaming").row(0)
    return formats[counts.index(max(counts))]


def _time_formats(first: str) -> list[str]:
    """Return the formats that match a date with its time of day; an empty list if there is none."""
    frame, formats = pl.LazyFrame({"timeStamp": [first]}), []
    for each in TIME_FORMATS:
        with suppress(pl.exceptions.PolarsError):
            if frame.select(_times(each)).collect().item() is not None:
                formats.append(each)
    return formats


def has_rows(path: Path) -> bool:
    """Return whether the file has a row below its header."""
    if not path.exists():
        return False
    with path.open("rb") as file:
        return bool(file.readline() and file.readline())


def whole_rows(source: Path | io.BytesIO) -> int:
    """Return how many bytes of a CSV file are complete rows; a line break inside quotes does not end a row."""
    n_bytes = position = quotes = 0
    with source.open("rb") if isinstance(source, Path) else source as file:
        while chunk := file.read(CHUNK_BYTES):
            if end := end_of_rows(chunk, quotes):
                n_bytes = position + end
            quotes += chunk.count(b'"')
            position += len(chunk)
    return n_bytes
