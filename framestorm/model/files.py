"""The only serialiser: writes and reads typed nouns as JSON files; each is written completely or not at all."""

import json
import math
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from framestorm.errors import FramestormError

T = TypeVar("T")
# In run.json, summary.json, study.json and comparison.json; increased if readers of the previous format would fail.
FORMAT = 2
_ADAPTERS: dict[type[Any], TypeAdapter[Any]] = {}


class FileError(FramestormError):
    """A file does not have the expected content; the message names it, what is wrong and what to do."""


class FormatError(FileError):
    """A file was written by a version of the kit with another format."""


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a temporary path in the same folder; it replaces `path` only if the block ends without an error.

    After the block the content is on disk: neither a crash nor a power cut leaves an incomplete file.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        sync(temporary)
        temporary.replace(path)
        sync(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def sync(path: Path) -> None:
    """Have a file, or the names in a folder, on disk when this returns."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_all(folder: Path) -> None:
    """Have a folder on disk with all that is in it, before something says that it is complete."""
    for path in (*folder.rglob("*"), folder, folder.parent):
        if path.is_file() or path.is_dir():
            sync(path)


def remove_folder(folder: Path) -> None:
    """Remove a folder as a whole: if the removal is cut off, nothing has the folder's name, and would pass for it."""
    gone = folder.with_name(f".{folder.name}.gone")
    shutil.rmtree(gone, ignore_errors=True)
    with suppress(FileNotFoundError):
        folder.rename(gone)
    shutil.rmtree(gone, ignore_errors=True)


def write_text(path: Path, text: str) -> None:
    """Write `text` (UTF-8) to `path`, completely or not at all."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def dump(noun: object, *, indent: int | None = None) -> str:
    """Return a typed noun as JSON text; NaN and infinity are refused, because JSON cannot represent them."""
    plain = _adapter(type(noun)).dump_python(noun, mode="python")
    return json.dumps(plain, allow_nan=False, ensure_ascii=False, indent=indent,
                      separators=(",", ": ") if indent else (",", ":"))  # fmt: skip


def write(path: Path, noun: object, *, indent: int | None = None) -> None:
    """Write a typed noun to `path` as JSON, completely or not at all."""
    write_text(path, dump(noun, indent=indent) + "\n")


def read(path: Path, kind: type[T]) -> T:
    """Return the noun of type `kind` that `path` holds.

    Raises:
        FileError: the file is missing, is not JSON, or has a field that is missing or wrong.
        FormatError: the file is of another format.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise FileError(f"{path} is missing") from None
    except (OSError, ValueError) as error:
        raise FileError(f"{path} cannot be read: {error}") from None
    return parse(text, kind, str(path))


def parse(text: str, kind: type[T], source: str = "it") -> T:
    """Return the noun of type `kind` that a JSON text holds, as `read`; `source` names it in messages."""
    try:
        content = json.loads(text, parse_float=_finite, parse_constant=_finite)
        if "\\u" in text:
            json.dumps(content, ensure_ascii=False).encode()  # half a character is not text
    except (ValueError, RecursionError) as error:
        raise FileError(f"{source} cannot be read: {error}") from None
    if not isinstance(content, dict):
        raise FileError(f"{source} is not a JSON object")
    form = content.get("format", FORMAT)
    if type(form) is not int or form < 1:
        raise FileError(f"{source} has no format: {form!r}")
    if form != FORMAT:
        raise FormatError(f"{source} has format {form}; this version reads format {FORMAT} only: run it again")
    try:
        noun: T = _adapter(kind).validate_python(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise FileError(f"{source}: {where}: {first['msg'].lower()}") from None
    return noun


def _finite(text: str) -> float:
    """Return a number of a JSON text; Python alone reads some that JSON cannot have."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is not a number of JSON")
    return number


def schema(kind: type[object]) -> dict[str, Any]:
    """Return the JSON Schema of a noun, as published in docs/."""
    return _adapter(kind).json_schema(mode="serialization")


def _adapter(kind: type[Any]) -> TypeAdapter[Any]:
    # Creating one takes milliseconds, and there are few kinds.
    if kind not in _ADAPTERS:
        _ADAPTERS[kind] = TypeAdapter(kind)
    return _ADAPTERS[kind]
