"""CSV data sets read before the load as JMeter 5.5 will (CSVDataSet, FileServer, CSVSaveService.csvReadFile).

JMeter says nothing of a row that it cannot use: a blank one is the end of the file for it, and what a short one lacks
keeps its value of the row before.
"""

import codecs
import re
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from framestorm.model import plan as plans
from framestorm.model.plan_files import Known, NamedFile, header
from framestorm.model.units import count, listed, plural
from framestorm.model.variables import Place
from framestorm.run.groups import iterations

_DELIMITERS = {",": "','", ";": "';'", "\t": "a tab (\\t)", "|": "'|'", ":": "':'"}
_MANY_CODES = ("utf", "gb", "big5", "euc", "shift", "iso2022", "hz", "johab", "cp9")
# Further rows are counted only.
MOST_ROWS = 1_000_000
_BOOLEANS = ("quotedData", "ignoreFirstLine", "recycle", "stopThread")
_OF_THREAD, _OF_GROUP = "shareMode.thread", "shareMode.group"
_REPLACEMENT = "\ufffd"


@dataclass(frozen=True)
class DataSet:
    """How a data set is read.

    names: of its variables, whether these are in its first line. recycles: it begins again after its last row; ends:
    without that, each user ends there. share: JMeter's word for who reads a row, all users if it is empty; None if that
    is not known before the run. is_of_jmeter: it is JMeter's own, not a plug-in's.
    """

    path: Path
    encoding: str
    delimiter: str
    is_quoted: bool
    skips_first: bool
    names: list[str]
    has_header: bool
    end: str
    recycles: bool = True
    ends: bool = False
    share: str | None = ""
    is_of_jmeter: bool = True

    @property
    def separator(self) -> str:
        """With quotes JMeter takes the first character only."""
        return self.delimiter[:1] if self.is_quoted else self.delimiter


@dataclass
class Rows:
    """The rows of a data set: how many, and the numbers of those that JMeter does not take as they stand."""

    n: int = 0
    blank: list[int] = field(default_factory=list)
    misquoted: list[int] = field(default_factory=list)
    in_quotes: list[int] = field(default_factory=list)
    lossy: list[int] = field(default_factory=list)
    by_length: Counter[int] = field(default_factory=Counter)
    first_of_length: dict[int, int] = field(default_factory=dict)
    first: str = ""


def describe(named: NamedFile, known: Known, values: Mapping[str, str]) -> DataSet | None:
    """Return how JMeter will read a data set; None if that is known only during the run."""
    element, path = named.element, named.path
    texts = {name: known.value(_text(element, name)) for name in ("fileEncoding", "delimiter", "variableNames")}
    booleans = {name: known.value(_text(element, name)) for name in _BOOLEANS}
    if path is None or not path.is_file() or None in (*texts.values(), *booleans.values()):
        return None
    names_text = texts["variableNames"] or ""
    is_true = {name: (text or "").lower() == "true" for name, text in booleans.items()}
    is_of_jmeter = element.tag == "CSVDataSet"
    is_quoted = not is_of_jmeter or is_true["quotedData"]
    delimiter = (texts["delimiter"] or ",").replace("\\t", "\t")
    encoding = texts["fileEncoding"] or "UTF-8"
    try:
        codecs.lookup(encoding)
    except LookupError:
        return None
    has_header = not names_text
    names = names_text.split(",")
    if has_header:
        names = header(path, delimiter, encoding)
    return DataSet(
        path,
        encoding,
        delimiter,
        is_quoted,
        has_header or is_true["ignoreFirstLine"],
        [name.strip() for name in names],
        has_header,
        values.get("csvdataset.eofstring", "<EOF>"),
        is_true["recycle"],
        is_true["stopThread"],
        known.value(_text(element, "shareMode")),
        is_of_jmeter,
    )


@dataclass(frozen=True)
class Readers:
    """Who reads data sets: the thread groups of a plan, on one host or on several.

    sets: all data sets, each with its place. divides_users: each host has a part of the users; divides_rows: and of
    the rows.
    """

    known: Known
    groups: Sequence[ET.Element]
    sets: Sequence[tuple[Place, DataSet]]
    divides_users: bool = False
    divides_rows: bool = False


def findings(place: Place, data: DataSet, readers: Readers, text: str) -> Iterator[str]:
    """Yield sentences on what JMeter will send that is not in the file, or not as it stands there.

    text: of all elements and scripts of the plan.
    """
    element, rows = place.element, read(data)
    name = f"{plans.title(element)}: {data.path.name}"
    names = data.names
    if "\0" in rows.first:
        what = f"is not in {data.encoding}, but in UTF-16 or another encoding of two bytes"
        yield f"{name} {what}: name that, or save it so"
        return
    other = _other_delimiter(data, rows)
    if other is not None:
        yield f"{name} seems to be separated by {_DELIMITERS[other]}, but the delimiter is {_quoted(data.delimiter)}"
    if rows.lossy:
        where = f"row {rows.lossy[0]}" if rows.lossy[0] else "the header"
        many = f" ({plural(len(rows.lossy), 'row')})" if len(rows.lossy) > 1 else ""
        yield f"{name} is not in {data.encoding}: letters are lost in {where}{many}; save it so, or name its encoding"
    elif not data.encoding.lower().startswith(_MANY_CODES) and _is_utf8(data.path):
        yield f"{name} is read as {data.encoding}, but is in UTF-8: each letter beyond ASCII becomes two or more"
    if not data.skips_first and [each.strip() for each in rows.first.split(data.separator)] == names and rows.n > 1:
        yield f"{name} begins with the names of the variables, which JMeter sends as a row: ignore the first line"
    if not rows.n:
        what = "each user ends before its first sample" if data.ends else f"JMeter sends {data.end} as each value"
        yield f"{name} has no rows: {what}"
    if rows.blank:
        what = (
            "is the end of the file for JMeter: the user ends" if data.ends else f"becomes {data.end} in each variable"
        )
        yield f"{name}: {_rows(rows.blank)} blank, which {what}; leave blank rows out"
    if rows.misquoted:
        what = "takes for the end of the file"
        yield f'{name}: {_rows(rows.misquoted)} wrongly quoted, which JMeter {what}; write "" for a quote in quotes'
    if rows.in_quotes:
        what = 'which JMeter sends with the quotes, and splits within them: switch on "Allow quoted data"'
        yield f"{name}: {_rows(rows.in_quotes)} in quotes, {what}"
    if other is None and len(names) > 1:
        yield from _of_lengths(name, data, rows)
    is_used = any(re.search(rf"(?<!\w){re.escape(each)}(?!\w)", text) for each in names)
    if data.has_header and other is None and not is_used:
        yield f"{name}: the plan uses none of its columns, which are {listed(names)}"
    if data.is_of_jmeter and rows.n and not data.recycles:
        yield from _of_number(name, data, rows, readers)


def _of_lengths(name: str, data: DataSet, rows: Rows) -> Iterator[str]:
    """Yield rows with fewer values than there are variables, and with more where others have fewer."""
    variables = f"its header {len(data.names)}" if data.has_header else f"for {plural(len(data.names), 'variable')}"
    comma = ", " if data.has_header else " "
    for length, n in sorted(rows.by_length.items()):
        if length == len(data.names) or (length > len(data.names) and not data.has_header):
            continue
        more = f" ({n} such rows)" if n > 1 else ""
        row = f"row {rows.first_of_length[length]} has {plural(length, 'value')}{comma}{variables}{more}"
        if length < len(data.names):
            absent = listed(data.names[length:])
            yield f"{name}: {row}: JMeter leaves {absent} as in the row before"
        else:
            yield f"{name}: {row}: JMeter leaves out what is too much"


def _of_number(name: str, data: DataSet, rows: Rows, readers: Readers) -> Iterator[str]:
    """Yield rows that will run out, as the data set does not begin again."""
    is_of_thread = data.share == _OF_THREAD
    is_alike = not readers.divides_rows if is_of_thread else readers.divides_users == readers.divides_rows
    if data.share is None or not is_alike:
        return  # What each host has of both is not known here.
    # In JMeter, all data sets of one file are one, where the same users share them.
    places = [place for place, other in readers.sets if (other.path, other.share) == (data.path, data.share)]
    needed: dict[int, int | None] = {}
    for place in places:
        if place.above and not all(
            each.tag.endswith(("TestPlan", "ThreadGroup", *plans.SAMPLERS)) for each in place.above
        ):
            return  # A controller reads a row at each of its own loops.
        for group in [place.group] if place.group is not None else readers.groups:
            users, loops = iterations(group, readers.known)
            if users is None:
                return
            more = None if loops is None else loops * (1 if is_of_thread else users)
            before = needed.get(id(group), 0)
            needed[id(group)] = None if more is None or before is None else before + more
    asked = [each for each in needed.values() if each is not None]
    is_endless = len(asked) < len(needed)
    n = max(asked, default=0) if is_of_thread or data.share == _OF_GROUP else sum(asked)
    if data.ends if is_endless else n <= rows.n:
        return  # Without end, that is how one says: until the rows are used up.
    asks = "loops without end" if is_endless else plural(n, "iteration")
    then = "each user then ends" if data.ends else f"JMeter then sends {data.end} as each value"
    remedy = "" if data.ends else "; recycle the rows, stop the thread at their end, or give more rows"
    yield f"{name} has {plural(rows.n, 'row')} for {asks}, and does not begin again: {then}{remedy}"


def read(data: DataSet) -> Rows:
    """Read the rows of a data set; the first has the number 1, a header 0."""
    rows = Rows()
    separator, quoted = re.escape(data.separator), r'"[^"]*(?:""[^"]*)*'
    field_ = rf'(?:{quoted}"|[^"{separator}]*)'
    whole = re.compile(rf"{field_}(?:{separator}{field_})*")
    beginning = re.compile(rf"\ufeff?(?:{field_}{separator})*{quoted}")
    number = -1 if data.skips_first else 0
    with data.path.open(encoding=data.encoding, errors="replace") as file:
        for whole_row in _texts(file, beginning if data.is_quoted else None):
            text = whole_row.removeprefix("\ufeff")
            number += 1
            if _REPLACEMENT in text and rows.n < MOST_ROWS:
                rows.lossy.append(number)
            if not number:
                continue
            rows.n += 1
            if rows.n > MOST_ROWS:
                continue
            rows.first = text if rows.n == 1 else rows.first
            if not text and not data.is_quoted:
                rows.blank.append(number)
                continue
            if '"' in text and data.is_quoted and not whole.fullmatch(text):
                rows.misquoted.append(number)
                continue
            if '"' in text and not data.is_quoted and any(map(_is_in_quotes, text.split(data.separator))):
                rows.in_quotes.append(number)
            plain = re.sub('"[^"]*"', "", text) if data.is_quoted else text
            length = plain.count(data.separator) + 1
            rows.by_length[length] += 1
            rows.first_of_length.setdefault(length, number)
    return rows


def _texts(lines: Iterable[str], beginning: re.Pattern[str] | None) -> Iterator[str]:
    """Yield the rows of a file without their ends; a line break within quotes belongs to its row.

    beginning: of such a row, its first line; None where quotes mean nothing.
    """
    row: list[str] = []
    is_open = False
    for line in lines:
        if beginning is not None and line.count('"') % 2:
            # A quote within a value opens nothing.
            is_open = not is_open if row else beginning.fullmatch(line) is not None
        row.append(line)
        if not is_open:
            yield "".join(row).removesuffix("\n")
            row = []
    if row:
        yield "".join(row).removesuffix("\n")


def _is_in_quotes(value: str) -> bool:
    return value.lstrip().startswith('"')


def _other_delimiter(data: DataSet, rows: Rows) -> str | None:
    """Return the delimiter that a file has instead of the one that its data set says; None if that is in its rows."""
    first = data.names[0] if data.has_header else rows.first
    if (data.has_header and len(data.names) > 1) or any(length > 1 for length in rows.by_length):
        return None
    if not data.has_header and len(data.names) == 1:
        return None
    return next((each for each in _DELIMITERS if each not in data.delimiter and each in first), None)


def _is_utf8(path: Path) -> bool:
    """Return whether a file has letters beyond ASCII, all of them in UTF-8."""
    is_plain = True
    try:
        with path.open(encoding="utf-8") as file:
            for line in file:
                is_plain &= line.isascii()
    except UnicodeDecodeError:
        return False
    return not is_plain


def _rows(numbers: list[int]) -> str:
    if len(numbers) == 1:
        return f"row {numbers[0]} is"
    return f"row {numbers[0]} and {count(len(numbers) - 1)} more are"


def _quoted(delimiter: str) -> str:
    return _DELIMITERS.get(delimiter, repr(delimiter))


def _text(element: ET.Element, name: str) -> str:
    return plans.field_text(element, name)
