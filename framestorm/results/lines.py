"""Lines of clients read in bulk: those of a usual form in columns, any other by itself, with the same outcome.

Lines of one client have the same names in the same order. A regular expression made of one of them says which others
are samples by the schema beyond doubt; only those are read by the library, and what it does not match is parsed alone.
"""

import io
from dataclasses import dataclass

import polars as pl

from framestorm.model.sample import COMMON, INDEX_LIMIT, SCHEMA, Line, is_sample, parsed

MAX_FORMS = 16
PLACE = "_place"  # no figure begins like this
MAX_FIELDS = 100
_TEXT = r'"[^"\\\x00-\x1f]*"'
_INTEGER = "-?(?:0|[1-9][0-9]{0,17})"
_PATTERNS = {
    "string": _TEXT, "integer": _INTEGER, "number": rf"{_INTEGER}(?:\.[0-9]{{1,17}})?", "boolean": "true|false",
    "null": "null",
}  # fmt: skip
_Dtypes = dict[str, type[pl.DataType]]
_DTYPES: _Dtypes = {
    "string": pl.String,
    "integer": pl.Int64,
    "number": pl.Float64,
    "boolean": pl.Boolean,
}
_KINDS = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
_VALUES = {
    "type": '"sample"',
    "index": f"(?:0|[1-9][0-9]{{0,{len(str(INDEX_LIMIT)) - 1}}})",
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
        """Return what only a sample of this form looks like."""
        return rf"^\{{{', ?'.join(map(self._field, self.kinds))}\}}$"

    def read(self, lines: pl.DataFrame, n: int, text: bytes) -> pl.DataFrame:
        """The fields of samples of this form in columns, with their places; `text` has n lines, these among them."""
        schema = {name: _DTYPES[kind] for name, kind in self.kinds.items() if kind != "null"}
        values = _read_among(lines, n, text, schema) if 2 * lines.height > n else None
        if values is None:
            joined = lines["line"].str.join("\n").item()
            values = pl.read_ndjson(io.BytesIO(joined.encode()), schema=schema)
        fields = (pl.col(name) if name in schema else pl.lit(None).alias(name) for name in self.kinds)
        return values.select(*fields, lines[PLACE])

    def _field(self, name: str) -> str:
        value = _VALUES.get(name) or rf"(?:{_PATTERNS[self.kinds[name]]}{'' if name in _NEVER_NULL else '|null'})"
        return f'"{name}": ?{value}'


@dataclass
class Batch:
    """Some thousand lines.

    keys: PLACE (the line's number from 0), user, index and ok of each sample, in the order of the lines.
    others: the lines that are not samples, by place; empty ones are not JSON objects either.
    """

    keys: pl.DataFrame
    others: dict[int, Line]
    _regular: list[pl.DataFrame]
    _single: dict[int, Line]

    def samples(self, places: pl.Series) -> pl.DataFrame:
        """Return the samples at those places, in order: place, and a column for each field."""
        is_all = places.len() == self.keys.height
        chosen = (of if is_all else of.filter(pl.col(PLACE).is_in(places.implode())) for of in self._regular)
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

    def read(self, text: bytes) -> Batch:
        """Read whole lines."""
        every = pl.DataFrame({"line": _lines(text)}).with_row_index(PLACE)
        rest = every
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
        regular = [form.read(lines, every.height, text) for form, lines in of_forms if lines.height]
        keys = [samples.select(PLACE, "user", pl.col("index").cast(pl.Int32), "ok") for samples in regular]
        rows = [(place, line["user"], line["index"], line["ok"]) for place, line in single.items()]
        schema = {PLACE: pl.UInt32, "user": pl.String, "index": pl.Int32, "ok": pl.Boolean}
        keys.append(pl.DataFrame(rows, schema=schema, orient="row"))
        return Batch(pl.concat(keys).sort(PLACE), others, regular, single)

    def _learned(self, line: Line) -> _Form | None:
        """Return the form of a line if it is new."""
        self.names |= dict.fromkeys(name for name in line if name != "type")
        form = _Form.of(line)
        key = tuple(form.kinds.items())
        if key in self._forms or len(self._forms) == MAX_FORMS or len(key) > MAX_FIELDS:
            return None
        self._forms[key] = form
        return form


def _read_among(lines: pl.DataFrame, n: int, text: bytes, schema: _Dtypes) -> pl.DataFrame | None:
    """Read these lines of a text of n lines, which is faster than a text of them alone; None if others prevent it."""
    try:
        values = pl.read_ndjson(io.BytesIO(text), schema=schema)
    except pl.exceptions.PolarsError:
        return None
    # An empty line is none.
    return values[lines[PLACE]] if values.height == n else None


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
    """Return the lines of that form, and the others."""
    is_of_form = lines["line"].str.contains(form.whole())
    return (lines, lines.clear()) if is_of_form.all() else (lines.filter(is_of_form), lines.filter(~is_of_form))


def _cell(value: object) -> str | None:
    return None if value is None else str(value).lower() if isinstance(value, bool) else str(value)
