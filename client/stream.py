"""The pieces of a streamed answer: server-sent events, or lines of JSON (NDJSON), as their bytes arrive.

A parser gets the bytes of each read with the time at which they had arrived, and returns the pieces that are whole with
them. Bytes may be split anywhere: within a line's end, a field's name or a character.

Source: WHATWG HTML, 9.2.6 "Interpreting an event stream" (https://html.spec.whatwg.org/multipage/server-sent-events.html).
"""

from collections.abc import Iterator
from typing import NamedTuple, Protocol

# A piece has a token or a few; one that never ends must not fill the memory of all users.
MAX_PIECE_BYTES = 4 * 1024 * 1024
_BOM = b"\xef\xbb\xbf"
_CR, _LF = 13, 10


class PieceTooLargeError(Exception):
    """A piece has more than MAX_PIECE_BYTES."""


class StreamPiece(NamedTuple):
    """One event, or one line of JSON. `event` is the type of a server-sent event that has one, else empty."""

    at_ns: int  # when its last byte arrived, by the clock of who calls
    event: str
    data: str


class StreamParser(Protocol):
    """Finds the pieces in the bytes of an answer."""

    def feed(self, data: bytes, at_ns: int) -> list[StreamPiece]:
        """Return the pieces that are whole with these bytes, which arrived at that time.

        Raises:
            PieceTooLargeError: a piece is too large; nothing more can be read.
        """

    def end(self) -> list[StreamPiece]:
        """Return what the end of the answer makes whole."""


class EventParser:
    """Finds server-sent events. What follows the last blank line is no event, as the standard has it."""

    def __init__(self) -> None:
        self._lines = _Lines(ends_with_cr=True)
        self._event = ""
        self._data: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes, at_ns: int) -> list[StreamPiece]:
        pieces = []
        for line in self._lines.split(data):
            if line:
                self._take(line)
                continue
            if self._data:
                # By the standard, bytes that are no UTF-8 are replaced.
                pieces.append(StreamPiece(at_ns, self._event, b"\n".join(self._data).decode(errors="replace")))
            self._event, self._data, self._size = "", [], 0
        return pieces

    def end(self) -> list[StreamPiece]:
        return []

    def _take(self, line: bytes) -> None:
        name, _, value = line.partition(b":")  # a comment has no name
        value = value.removeprefix(b" ")
        if name == b"data":
            self._size += len(value) + 1
            if self._size > MAX_PIECE_BYTES:
                raise PieceTooLargeError
            self._data.append(value)
        elif name == b"event":
            self._event = value.decode(errors="replace")


class JsonLineParser:
    """Finds lines with anything in them; the last one needs no end."""

    def __init__(self) -> None:
        self._lines = _Lines(ends_with_cr=False)
        self._at_ns = 0

    def feed(self, data: bytes, at_ns: int) -> list[StreamPiece]:
        self._at_ns = at_ns
        return [self._piece(line) for line in self._lines.split(data) if line.strip()]

    def end(self) -> list[StreamPiece]:
        rest = self._lines.rest
        return [self._piece(rest)] if rest.strip() else []

    def _piece(self, line: bytes) -> StreamPiece:
        return StreamPiece(self._at_ns, "", line.decode(errors="replace"))


class _Lines:
    """Splits bytes into lines that end with LF, CR LF or, if so asked, CR alone; a byte order mark is left out."""

    def __init__(self, *, ends_with_cr: bool) -> None:
        self._ends_with_cr = ends_with_cr
        self._rest = bytearray()
        self._is_first = True
        self._is_after_cr = False

    @property
    def rest(self) -> bytes:
        """The bytes after the last line's end."""
        return bytes(self._rest).removeprefix(_BOM if self._is_first else b"")

    def split(self, data: bytes) -> Iterator[bytes]:
        start = 0
        if self._is_after_cr and data:  # its line has ended: an LF belongs to the same end
            start = int(data[0] == _LF)
            self._is_after_cr = False
        while (end := self._end_of_line(data, start)) >= 0:
            line = bytes(self._rest) + data[start:end] if self._rest else data[start:end]
            self._rest.clear()
            if self._is_first:
                line, self._is_first = line.removeprefix(_BOM), False
            start = end + 1
            if data[end] == _CR:
                self._is_after_cr = start == len(data)
                start += int(data[start : start + 1] == b"\n")
            yield line
        self._rest += data[start:]
        if len(self._rest) > MAX_PIECE_BYTES:
            raise PieceTooLargeError

    def _end_of_line(self, data: bytes, start: int) -> int:
        lf = data.find(b"\n", start)
        if not self._ends_with_cr:
            return lf
        cr = data.find(b"\r", start, lf if lf >= 0 else len(data))
        return cr if cr >= 0 else lf
