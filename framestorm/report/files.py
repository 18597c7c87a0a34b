"""Files of a run's folder: read what may be broken, write so that nothing is ever half-written."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from framestorm.errors import FramestormError

CHUNK_BYTES = 1 << 18


class ReportError(FramestormError):
    """A report cannot be made; the message says of what, and what to do."""


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a temporary name beside `path`; it takes the place of `path` only if the block ends without an error."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write `text` (UTF-8) to `path`, all of it or nothing."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def read_run(run_dir: Path) -> tuple[dict[str, Any], str | None]:
    """Read run.json: its object, and a sentence if it is not whole (then the object is empty)."""
    path = run_dir / "run.json"
    try:
        run = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}, "run.json is missing: what was run against what is not known"
    except (OSError, ValueError) as error:
        return {}, f"run.json cannot be read ({error}): what was run against what is not known"
    if not isinstance(run, dict):
        return {}, "run.json is not a JSON object: what was run against what is not known"
    return run, None


@dataclass(frozen=True)
class Whole:
    """How many bytes of a line-wise file are whole lines, and how many after them are not."""

    kept_bytes: int
    cut_bytes: int


def whole_lines(path: Path, quote: bytes | None = None) -> Whole:
    """Find where the last whole line of `path` ends.

    With `quote`, line ends inside an open quotation do not count (CSV): the end is the last one with an even number of
    quotes before it. One pass, constant memory.
    """
    position = kept = quotes = 0
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            end = _last_line_end(chunk, quote, quotes)
            if end is not None:
                kept = position + end
            if quote:
                quotes += chunk.count(quote)
            position += len(chunk)
    return Whole(kept, position - kept)


def _last_line_end(chunk: bytes, quote: bytes | None, quotes_before: int) -> int | None:
    end = chunk.rfind(b"\n")
    while end >= 0:
        if not quote or (quotes_before + chunk.count(quote, 0, end)) % 2 == 0:
            return end + 1
        # Inside an open quotation: go on before the quote that opened it.
        opened = chunk.rfind(quote, 0, end)
        if opened < 0:
            return None
        end = chunk.rfind(b"\n", 0, opened)
    return None
