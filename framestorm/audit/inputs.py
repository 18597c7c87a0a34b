"""The inputs of an audit: the different rows or files of a plan's data set, in an order of the audit's own."""

import csv
import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from framestorm.errors import UsageError
from framestorm.model import facets, form
from framestorm.model.files import write_text
from framestorm.model.foreign import read_utf_8
from framestorm.model.plan import Plan
from framestorm.run.values import with_file

LEAST, MOST = 30, 2000
LONGEST_VALUE = 1 << 30  # characters: a picture in base64 is longer than the 128 KiB that Python's reader takes
ROWS = (".csv", ".jsonl")


@dataclass(frozen=True)
class Inputs:
    """The different inputs of a data set, in its order.

    name: the property with the data set, at `path`. numbers: of each input its row or file there, from 1; equal: how
    many were left out because they are the same as an earlier one.
    rows: lines of a JSON Lines file, or rows of a CSV file after its header; files: of a folder.
    """

    name: str
    path: Path
    numbers: list[int]
    equal: int
    header: list[str] | None = None
    rows: Sequence[Any] = ()
    files: Sequence[Path] = ()

    @classmethod
    def of(cls, plan: Plan, given: Mapping[str, str]) -> "Inputs":
        """Return the inputs of the properties `rows` or `body` of a plan.

        Raises:
            UsageError: there is no data set, or there are two, or it cannot be read, or has too few different inputs.
        """
        values = {**plan.defaults, **given}
        named = {name: values.get(name, "") for name in ("rows", "body") if name in plan.settable}
        sets = [name for name, value in named.items() if _is_data_set(plan, name, value, given)]
        in_form = values.get("form", "") if any(facets.FORM in each.facets for each in plan.settable.values()) else ""
        if any(each.sign == "@" and Path(each.value).is_dir() for each in _fields(in_form)):
            raise UsageError("an audit does not repeat the files of a form's folder: name them in -Jrows=@rows.csv")
        if len(sets) != 1:
            what = "both -Jrows and -Jbody are data sets" if sets else "the plan has no data set"
            raise UsageError(
                f"{what}: an audit needs one, of at least {LEAST} different inputs: -Jrows=@rows.csv, or -Jbody=@ a "
                "folder, rows.csv or rows.jsonl"
            )
        name = sets[0]
        path = Path(with_file(plan, name, named[name], given).removeprefix("@"))
        inputs = _of_folder(name, path) if path.is_dir() else _of_file(name, path)
        if len(inputs.numbers) < LEAST:
            again = f" ({inputs.equal} more are the same as an earlier one)" if inputs.equal else ""
            raise UsageError(
                f"-J{name}=@{path}: it has {len(inputs.numbers)} different inputs{again}, and an audit needs at least "
                f"{LEAST}, better 200: add rows or files"
            )
        return inputs

    def write(self, order: Sequence[int], folder: Path, name: str) -> str:
        """Write a data set in an order, each given by its number from 0, and return the property's value for it."""
        path = folder / f"{name}{'' if self.files else self.path.suffix}"
        if self.files:
            path.mkdir()
            for place, number in enumerate(order):
                (path / f"{place:05}-{self.files[number].name}").symlink_to(self.files[number])
        elif self.header is None:
            write_text(path, "".join(f"{self.rows[number]}\n" for number in order))
        else:
            text = io.StringIO()
            csv.writer(text, lineterminator="\n").writerows([self.header, *(self.rows[number] for number in order)])
            write_text(path, text.getvalue())
        return f"@{path}"


def _is_data_set(plan: Plan, name: str, value: str, given: Mapping[str, str]) -> bool:
    if not value.startswith("@"):
        return False
    return name == "rows" or value.endswith(ROWS) or Path(with_file(plan, name, value, given)[1:]).is_dir()


def _fields(text: str) -> list[form.Field]:
    try:
        return form.parse(text)
    except ValueError:  # the run refuses it
        return []


def _of_folder(name: str, path: Path) -> Inputs:
    # As jmx/java/plan/Bodies.java takes them.
    files = sorted(each for each in path.iterdir() if not each.name.startswith(".") and each.is_file())
    first = _first([hashlib.sha256(each.read_bytes()).digest() for each in files])
    return Inputs(name, path, [at + 1 for at in first], len(files) - len(first), files=[files[at] for at in first])


def _of_file(name: str, path: Path) -> Inputs:
    text = read_utf_8(path, f"-J{name}=@{path}")
    if path.suffix == ".jsonl":
        lines = [line for line in text.split("\n") if line.strip()]
        first = _first([_canonical(line) for line in lines])
        rows: list[Any] = [lines[at].strip() for at in first]
        return Inputs(name, path, [at + 1 for at in first], len(lines) - len(first), rows=rows)
    csv.field_size_limit(LONGEST_VALUE)
    try:
        header, *rows = [row or [""] for row in csv.reader(io.StringIO(text, newline=""))] or [[]]
    except csv.Error as error:
        raise UsageError(f"-J{name}=@{path} cannot be read as CSV: {error}") from None
    rows = [row for row in rows if row != [""] or len(header) == 1]
    first = _first([tuple(row) for row in rows])
    rows_of = [rows[at] for at in first]
    return Inputs(name, path, [at + 1 for at in first], len(rows) - len(first), header=header, rows=rows_of)


def _canonical(line: str) -> str:
    try:
        return json.dumps(json.loads(line), sort_keys=True)
    except (ValueError, RecursionError):  # the run refuses it
        return line


def _first(contents: Sequence[Any]) -> list[int]:
    """Return the places of the contents that differ from all before, at most MOST."""
    places: dict[Any, int] = {}
    for at, content in enumerate(contents):
        places.setdefault(content, at)
    return [*places.values()][:MOST]
