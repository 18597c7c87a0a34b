"""What a user says: one JSON object a line, on stdout and in the journal, each written at once and whole."""

import json
import os
from pathlib import Path
from typing import Any


class LineError(Exception):
    """A line could not be written: the reader is gone or the disk is full."""


class Lines:
    """Write lines to stdout and to the journal, which is shared by all users of a run.

    A line is one write to a file opened for appending, so that lines of many processes never mix.
    The journal is first: it also says what was sent when the reader of stdout is gone.
    """

    def __init__(self, journal: Path | None, stdout: int = 1) -> None:
        self._stdout = stdout
        self._journal: int | None = None
        if journal is not None:
            try:
                journal.parent.mkdir(parents=True, exist_ok=True)
                self._journal = os.open(journal, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
            except OSError as error:
                raise LineError(f"journal {journal} cannot be written: {error.strerror}") from error

    def journal_only(self, line: dict[str, Any]) -> None:
        """Write a line that stdout does not carry: the start of a user."""
        if self._journal is not None:
            _write(self._journal, _encoded(line), "journal")

    def say(self, line: dict[str, Any]) -> None:
        """Write a line to both."""
        encoded = _encoded(line)
        if self._journal is not None:
            _write(self._journal, encoded, "journal")
        _write(self._stdout, encoded, "stdout")


def _encoded(line: dict[str, Any]) -> bytes:
    return json.dumps(line, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def _write(descriptor: int, line: bytes, name: str) -> None:
    try:
        written = os.write(descriptor, line)
        while written < len(line):  # a pipe or a full disk took a part; the rest follows, or the next write says why
            written += os.write(descriptor, line[written:])
    except OSError as error:
        raise LineError(f"a line could not be written to {name}: {error.strerror}") from error
