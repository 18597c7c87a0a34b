"""A user's output: one JSON object per line, on stdout and in the journal, each line written in one piece.

There is one line at its start (in the journal only), one for each sample as sample.json declares it, one at its end.
"""

import json
import os
import re
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from send import Reply

STDOUT = 1
Figure = float | str | bool | None
_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False)
MAX_TEXT_CHARACTERS = 200  # of a figure that is a text: the function may send any length
# Control characters, halves of characters, and other characters that XML does not allow.
_ILLEGIBLE = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


class LineError(Exception):
    """A line could not be written: the reader is gone or the disk is full."""


class Lines:
    """Write lines to stdout and to the journal, which is shared by all users of a run.

    A line is one write to a file opened for appending, so that lines of many processes never mix.
    The journal is written first: it shows what was sent even if the reader of stdout is gone.
    """

    def __init__(self, journal: Path | None) -> None:
        self._path = str(journal)
        self._journal: int | None = None
        if journal is not None:
            try:
                journal.parent.mkdir(parents=True, exist_ok=True)
                self._journal = os.open(journal, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
            except OSError as error:
                raise LineError(f"{journal} cannot be written: {error.strerror}") from error

    def write(self, fields: dict[str, Any], *, only_journal: bool = False) -> None:
        """Write these fields as one line to stdout and to the journal."""
        line = _ENCODER.encode(fields).encode() + b"\n"
        if self._journal is not None:
            _write(self._journal, line, self._path)
        if not only_journal:
            _write(STDOUT, line, "stdout")


def _write(descriptor: int, line: bytes, name: str) -> None:
    try:
        written = os.write(descriptor, line)
        while written < len(line):  # a pipe or a full disk took only a part: write the rest, or get the error
            written += os.write(descriptor, line[written:])
    except OSError as error:
        raise LineError(f"a line could not be written to {name}: {error.strerror}") from error


def complain(text: str) -> None:
    """Write a line to stderr, which the users of a run share, in a single write: lines never mix.

    print() writes the line and its end separately if PYTHONUNBUFFERED is set.
    """
    sys.stderr.write(f"{text}\n")


class Account:
    """Writes the lines of a user whose samples have one label, and counts samples with and without error."""

    def __init__(self, lines: Lines, label: str, process_start: tuple[float, float]) -> None:
        """`process_start` is when the process started, as epoch ms and as time.perf_counter."""
        self.start_ms, self._started = process_start
        self.name = f"{os.uname().nodename}-{os.getpid()}-{self.start_ms:.0f}"
        self._lines = lines
        self._label = label
        self._causes: dict[str, int] = {}
        self._samples = 0

    def since_start_ms(self) -> float:
        return rounded((time.perf_counter() - self._started) * 1000)

    def begin(self, count: int) -> None:
        """Write to the journal only: `count` samples will follow."""
        line = {"type": "start", "user": self.name, "start_ms": rounded(self.start_ms), "samples": count}
        self._lines.write(line, only_journal=True)

    def sample(
        self,
        index: int,
        *,
        intended_ms: float,
        start_ms: float,
        rtt_ms: float,
        status: int | None,
        cause: str | None,
        censored: bool,
        sent_bytes: int,
        received_bytes: int,
        **figures: Figure,
    ) -> None:
        """Write a sample's line; `figures` are its further measurements."""
        self._samples += 1
        cause = cause and _legible(cause)
        if cause is not None:
            self._causes[cause] = self._causes.get(cause, 0) + 1
        line = {
            "type": "sample",
            "label": self._label,
            "user": self.name,
            "index": index,
            "intended_ms": rounded(intended_ms),
            "start_ms": rounded(start_ms),
            "rtt_ms": rounded(rtt_ms),
            "status": status,
            "ok": cause is None,
            "cause": cause,
            "censored": censored,
            "sent_bytes": sent_bytes,
            "received_bytes": received_bytes,
        }
        further = {name: _kept(value) for name, value in figures.items()}
        self._lines.write(line | further)

    def reply(self, index: int, reply: "Reply", *, intended_ms: float, cause: str | None, **figures: Figure) -> None:
        """Write the sample of a request; `cause` is why it is an error, which its answer may have told."""
        self.sample(
            index, intended_ms=intended_ms, start_ms=reply.start_ms, rtt_ms=reply.rtt_ms, status=reply.status,
            cause=cause, censored=reply.censored, sent_bytes=reply.sent_bytes, received_bytes=reply.received_bytes,
            **figures,
        )  # fmt: skip

    def end(self, count: int, cause: str | None, **more: Any) -> bool:
        """Write the user's own line; returns whether all `count` samples were written, each without error.

        cause: why the user did not go on to its end, None if it did.

        Raises:
            LineError: the line could not be written.
        """
        without_error = self._samples - sum(self._causes.values())
        ok = cause is None and without_error == count
        line = {
            "type": "user",
            "user": self.name,
            "start_ms": rounded(self.start_ms),
            "duration_ms": self.since_start_ms(),
            "samples": self._samples,
            "samples_ok": without_error,
            "ok": ok,
            "cause": cause or max(self._causes, key=lambda each: self._causes[each], default=None),
            "causes": self._causes,
        }
        self._lines.write(line | more)
        return ok


def _kept(value: float | str | bool | None) -> float | str | bool | None:
    if isinstance(value, str):
        return _legible(value[:MAX_TEXT_CHARACTERS])
    return rounded(value) if isinstance(value, float) else value


def _legible(text: str) -> str:
    """Return a text with a question mark for each character that XML does not allow or a terminal would obey."""
    return _ILLEGIBLE.sub("?", text)


def rounded(value: float) -> float:
    return round(value, 3)
