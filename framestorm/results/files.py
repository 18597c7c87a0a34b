"""Files of a run's folder, read although they may be broken."""

import os
from dataclasses import dataclass
from pathlib import Path

from framestorm.errors import FramestormError
from framestorm.model.files import FileError, FormatError, read
from framestorm.model.run import Record

CHUNK_BYTES = 1 << 18


class ReportError(FramestormError):
    """A report cannot be made; the message says of what, and what to do."""


def read_run(run_dir: Path) -> tuple[Record, str | None]:
    """The record of a run, and a sentence if run.json is missing or broken (then the record has defaults only).

    Raises:
        FormatError: run.json is of another format.
    """
    try:
        return read(run_dir / "run.json", Record), None
    except FormatError:
        raise
    except FileError as error:
        problem = str(error).removeprefix(f"{run_dir}{os.sep}")
        return Record(), f"{problem}: settings, hosts and target of the run are not known"


@dataclass(frozen=True)
class WholeLines:
    """How many bytes of a line-wise file are whole lines, and how many after them are not."""

    kept_bytes: int
    cut_bytes: int


def whole_lines(path: Path, quote: bytes | None = None) -> WholeLines:
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
    return WholeLines(kept, position - kept)


def _last_line_end(chunk: bytes, quote: bytes | None, quotes_before: int) -> int | None:
    end = chunk.rfind(b"\n")
    while end >= 0:
        if not quote or (quotes_before + chunk.count(quote, 0, end)) % 2 == 0:
            return end + 1
        # Inside an open quotation: go on before the quote that opening it.
        opening = chunk.rfind(quote, 0, end)
        if opening < 0:
            return None
        end = chunk.rfind(b"\n", 0, opening)
    return None
