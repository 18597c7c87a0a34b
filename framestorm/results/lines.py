"""Lines of clients read in bulk: those of a usual form in columns, any other by itself, with the same outcome.

Lines of one client have the same names in the same order. A regular expression made of one of them says which others
are samples by the schema beyond doubt; only those are read by the library, and what it does not match is parsed alone.
"""

import io
import json
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from framestorm.model.sample import COMMON, INDEX_LIMIT, SCHEMA, Line, is_sample

MAX_FORMS = 16
PLACE = "_place"  # no figure begins like this
MAX_FIELDS = 100
_TEXT = r'"[^"\\\x00-\x1f]*"'
_INTEGER = "-?(?:0|[1-9][0-9]{0,17})"
_PATTERNS = {
    "string": _TEXT, "integer": _INTEGER, "number": rf"{_INTEGER}(?:\.[0-9]{{1,17}})?", "boolean": "true|false",
    "null": "null",
}  # fmt: skip
_DTYPES = {"string": pl.String, "integer": pl.Int64, "number": pl.Float64, "boolean": pl.Boolean}
_KINDS = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
_VALUES = {
    "type": '"sample"',
    "user": rf'"(?P<user>{_TEXT[1:-1]})"',
    "index": rf"(?P<index>0|[1-9][0-9]{{0,{len(str(INDEX_LIMIT)) - 1}}})",
}
_NEVER_NULL = {name for name, declared in SCHEMA["properties"].items() if "null" not in declared.get("type", ())}


@dataclass
class _Form:
    """The names of a line in their order, each with the kind of its value."""

    kinds: dict[str, str]

    @classmethod
    def of(cls, line: Line) -> "_Form":
        return cls({name: COMMON.get(name) or _KINDS[type(value)] for name, value in line.items()})

    def whole(self) -> str:
        """What only a sample of this form looks like."""
        return rf"^\{{{', ?'.join(map(self._field, self.kinds))}\}}$"

    def key(self) -> str:
        """What such a sample begins with, up to its user and index, which are the groups."""
        names = list(self.kinds)
        names = names[: max(names.index("user"), names.index("index")) + 1]
        return rf"^\{{{', ?'.join(map(self._field, names))}"

    def read(self, lines: pl.DataFrame, text: bytes) -> pl.DataFrame:
        """The fields of samples of this form in columns, with their places; `text` has the lines."""
        schema = {name: _DTYPES[kind] for name, kind in self.kinds.items() if kind != "null"}
        values = pl.read_ndjson(io.BytesIO(text), schema=schema)
        fields = (pl.col(name) if name in schema else pl.lit(None).alias(name) for name in self.kinds)
        return values.select(*fields, lines[PLACE])

    def _field(self, name: str) -> str:
        value = _VALUES.get(name) or rf"(?:{_PATTERNS[self.kinds[name]]}{'' if name in _NEVER_NULL else '|null'})"
        return f'"{name}": ?{value}'


@dataclass
class Batch:
    """Some thousand lines.

    keys: PLACE (the line's number from 0), user and index of each sample, in the order of the lines.
    others: the lines that are not samples, by place; empty ones are not JSON objects either.
    """

    keys: pl.DataFrame
    others: dict[int, Line]
    _regular: list[pl.DataFrame]
    _single: dict[int, Line]

    def samples(self, places: pl.Series) -> pl.DataFrame:
        """The samples at those places, in order: place, and a column for each field."""
        chosen = (samples.filter(pl.col(PLACE).is_in(places.implode())) for samples in self._regular)
        parts = [samples for samples in chosen if samples.height]
        for place in sorted(self._single.keys() & set(places)) if self._single else ():
            texts = {name: _cell(value) for name, value in self._single[place].items()}
            row = pl.DataFrame([texts], schema=dict.fromkeys(texts, pl.String))
            parts.append(row.with_columns(pl.lit(place, pl.UInt32).alias(PLACE)))
        return parts[0] if len(parts) == 1 else pl.concat(parts, how="diagonal_relaxed").sort(PLACE)


class LineReader:
    """Reads lines of samples and learns their forms; `names` are those of all fields so far, as they first came."""

    def __init__(self) -> None:
        self.names: dict[str, None] = dict.fromkeys(COMMON)
        self._forms: dict[tuple[tuple[str, str], ...], _Form] = {}
        # Hashes of lines of a form, and those of all files but the current one in order.
        self._hashes: list[NDArray[np.uint64]] = []
        self._known = np.empty(0, np.uint64)

    def next_file(self) -> None:
        """Of lines that come again in the files after this, only user and index are read: what they are is known.

        They are known by a hash of 64 bits: of a thousand million broken lines, less than one is taken for whole.
        """
        self._known = np.concatenate([self._known, *self._hashes])
        self._known.sort()
        self._hashes = []

    def read(self, text: bytes) -> Batch:
        """Read whole lines."""
        every = pl.DataFrame({"line": _lines(text)}).with_row_index(PLACE)
        is_known = self._is_known(every["line"])
        known, rest = every.filter(is_known), every.filter(~is_known)
        of_forms = []
        for form in self._forms.values():
            lines, rest = _split(form, rest)
            of_forms.append((form, lines))
        others: dict[int, Line] = {}
        single: dict[int, Line] = {}
        while rest.height:
            unread = rest
            for number, (place, raw) in enumerate(unread.iter_rows()):
                line = parsed(raw)
                if not is_sample(line):
                    others[place] = line
                elif learned := self._learned(line):
                    lines, rest = _split(learned, unread[number:])
                    of_forms.append((learned, lines))
                    break
                else:
                    single[place] = line
            else:
                break
        regular = []
        for form, lines in of_forms:
            self._hashes.append(_hashes(lines["line"]))
            if lines.height:
                of_form = text if lines.height == every.height else "\n".join(lines["line"]).encode()
                regular.append(form.read(lines, of_form))
        keys = [samples.select(PLACE, "user", pl.col("index").cast(pl.Int32)) for samples in regular]
        for form in self._forms.values() if known.height else ():
            keys.append(_keys(form, known).drop_nulls())
            known = known.filter(~pl.col(PLACE).is_in(keys[-1][PLACE].implode()))
        rows = [(place, line["user"], line["index"]) for place, line in single.items()]
        keys.append(pl.DataFrame(rows, schema={PLACE: pl.UInt32, "user": pl.String, "index": pl.Int32}, orient="row"))
        return Batch(pl.concat(keys).sort(PLACE), others, regular, single)

    def _is_known(self, lines: pl.Series) -> pl.Series:
        """Whether the lines have been read in the files before."""
        hashes = _hashes(lines)
        if not self._known.size:
            return pl.repeat(False, hashes.size, dtype=pl.Boolean, eager=True)
        # By their order, because it is faster to look up neighbours in memory.
        order = np.argsort(hashes)
        place = np.searchsorted(self._known, hashes[order])
        is_known = np.empty(hashes.size, bool)
        is_known[order] = self._known.take(place, mode="clip") == hashes[order]
        return pl.Series(is_known)

    def _learned(self, line: Line) -> _Form | None:
        """The form of a line if it is new."""
        self.names |= dict.fromkeys(name for name in line if name != "type")
        form = _Form.of(line)
        key = tuple(form.kinds.items())
        if key in self._forms or len(self._forms) == MAX_FORMS or len(key) > MAX_FIELDS:
            return None
        self._forms[key] = form
        return form


def parsed(text: str) -> Line:
    """The JSON object that a line holds; empty if it holds none."""
    try:
        line = json.loads(text)
        if "\\u" in text:
            json.dumps(line, ensure_ascii=False).encode()  # half a character is not text
    except (ValueError, RecursionError):
        return {}
    return line if isinstance(line, dict) else {}


def _keys(form: _Form, lines: pl.DataFrame) -> pl.DataFrame:
    """Read place, user and index of each line; null where a line does not begin like a sample of that form."""
    keys = lines.select(PLACE, pl.col("line").str.extract_groups(form.key()).alias("key")).unnest("key")
    return keys.select(PLACE, "user", pl.col("index").cast(pl.Int32))


def _hashes(lines: pl.Series) -> NDArray[np.uint64]:
    hashes: NDArray[np.uint64] = lines.hash().to_numpy()
    return hashes


def _lines(text: bytes) -> pl.Series:
    try:
        return pl.read_lines(io.BytesIO(text))["line"]
    except pl.exceptions.ComputeError:  # some are not UTF-8: they hold nothing
        return pl.Series([_decoded(line) for line in text.removesuffix(b"\n").split(b"\n")], dtype=pl.String)


def _decoded(line: bytes) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError:
        return ""


def _split(form: _Form, lines: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The lines of that form, and the others."""
    is_of_form = lines["line"].str.contains(form.whole())
    return (lines, lines.clear()) if is_of_form.all() else (lines.filter(is_of_form), lines.filter(~is_of_form))


def _cell(value: object) -> str | None:
    return None if value is None else str(value).lower() if isinstance(value, bool) else str(value)
