"""JMeter's XML result tree, read as a stream: users with their samples, in constant memory, even if cut off.

Nearly all of a tree are samples of users in the very form in which JMeter writes them. Their lines are taken from the
bytes; the XML parser reads only what is around them, and whatever has another form.
"""

import re
import xml.parsers.expat
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

CHUNK_BYTES = 1 << 22
MAX_SAMPLE_BYTES = 1 << 18  # that are kept back until the rest of the sample is read
# A sample of a user. What XML does not allow in its texts, or has escaped there, `_is_plain` finds in many at once.
_SAMPLE_START = b"  <sample "
_OF_USER = re.compile(
    rb'  <sample t="[0-9]++" it="[0-9]++" lt="[0-9]++" ct="[0-9]++" ts="[0-9]++" s="(?:true|false)" '
    rb'lb="(?!user")[^"]*+"(?: [a-z]++="[^"]*+")*+>\n'
    rb'    <responseData class="java.lang.String">([^<]++)</responseData>\n  </sample>\n'
)
LINES_OF_SAMPLE, TAGS_OF_SAMPLE = 3, 4
# Around the output of a user's process, which comes after its samples.
_OUTPUT_START, _OUTPUT_END = b'  <responseData class="java.lang.String">', b"</responseData>\n"
_MARKUP = (b">", b"&", b"\r")
# Characters that JMeter writes although XML 1.0 has no place for them (a client that prints garbage).
_CONTROL = bytes(63 if code < 32 and code not in (9, 10, 13) else code for code in range(256))
_REFERENCE = re.compile(rb"&#(?:x([0-9a-fA-F]{1,6})|([0-9]{1,7}));")
_REFERENCE_BYTES = 12


@dataclass
class TreeSample:
    """One sample of the tree: its attributes as JMeter names them, its response data, how many samples are in it."""

    attributes: dict[str, str]
    depth: int
    text: list[str] = field(default_factory=list)
    samples: int = 0

    @property
    def is_user(self) -> bool:
        return self.attributes.get("lb") == "user"


class TreeReader:
    """Calls on_lines(lines, user's sample) for samples of a user, and on_user(sample) as the user ends.

    Lines are given in bulk, each with its line break. Those of a user whose own sample was cut off are still given.
    """

    def __init__(self, on_lines: Callable[[bytes, TreeSample], None], on_user: Callable[[TreeSample], None]) -> None:
        self._on_lines = on_lines
        self._on_user = on_user
        self._open: list[TreeSample] = []
        self._depth = 0
        self._in_data = False
        self._ended = False
        # What the parser was given, and what it was not because its lines were taken.
        self._parsed_bytes = self._taken_bytes = self._taken_lines = 0
        parser = xml.parsers.expat.ParserCreate()
        parser.buffer_text = True
        parser.buffer_size = 1 << 16
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        parser.StartCdataSectionHandler = partial(self._step, 1)
        parser.EndCdataSectionHandler = partial(self._step, -1)
        parser.StartDoctypeDeclHandler = self._refuse
        self._parser = parser

    def read(self, path: Path) -> str | None:
        """Read the file; returns a sentence if it was not whole."""
        rest = b""
        try:
            with path.open("rb") as file:
                while chunk := file.read(CHUNK_BYTES):
                    rest = self._take(rest + chunk)
            self._parse(rest, is_last=True)
        except FileNotFoundError:
            return "tree.xml is missing"
        except xml.parsers.expat.ExpatError:
            line = self._parser.CurrentLineNumber + self._taken_lines
            byte = self._parser.CurrentByteIndex + self._taken_bytes
            if self._ended:
                return f"tree.xml goes on after its end (line {line}); what follows was left out"
            return f"tree.xml is cut off or damaged at line {line}, byte {byte:,}; all before it was used"
        return None

    def _take(self, chunk: bytes) -> bytes:
        """Take lines from the chunk, and parse what is between them; returns what the next chunk may complete."""
        position = 0
        start = chunk.find(_SAMPLE_START)
        while start >= 0:
            end, lines = start, []
            while match := _OF_USER.match(chunk, end):
                lines.append(match[1])
                end = match.end()
            if lines:
                self._parse(chunk[position:start])
                position = end = end + self._give(lines, chunk, start, end)
            start = chunk.find(_SAMPLE_START, end + (not lines))
        cut = chunk.rfind(b"\n  <sample ", max(position - 1, len(chunk) - MAX_SAMPLE_BYTES)) + 1
        if not cut:
            # A reference may lie across two chunks: hold back what could be the start of one.
            cut = chunk.rfind(b"&", max(position, len(chunk) - _REFERENCE_BYTES))
            cut = len(chunk) if cut < 0 else cut
        self._parse(chunk[position:cut])
        return chunk[cut:]

    def _give(self, lines: list[bytes], chunk: bytes, start: int, end: int) -> int:
        """Give the lines, from that part of the chunk, and take the output after them; returns its length."""
        user = self._open[-1] if self._open else None
        samples = chunk[start:end]
        # Also when the parser has an unfinished comment or the like, which swallows them.
        is_content = self._parser.CurrentByteIndex == self._parsed_bytes
        can_take = is_content and _is_plain(samples, len(lines))
        if user is None or not user.is_user or user.depth != self._depth or not can_take:
            self._parse(samples)
            return 0
        user.samples += len(lines)
        self._on_lines(b"\n".join([*lines, b""]), user)
        output = _plain_output(chunk, end)
        if output:
            # Only its last line is asked for: all others are those of the samples.
            last = max(output.rfind(b"\n{"), len(_OUTPUT_START))
            user.text.append(output[last : -len(_OUTPUT_END)].translate(_CONTROL).decode())
        self._taken_bytes += end - start + len(output)
        self._taken_lines += LINES_OF_SAMPLE * len(lines) + output.count(b"\n")
        return len(output)

    def _parse(self, data: bytes, *, is_last: bool = False) -> None:
        data = _clean(data)
        self._parsed_bytes += len(data)
        self._parser.Parse(data, is_last)

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if name in ("sample", "httpSample"):
            self._open.append(TreeSample(attributes, self._depth))
        elif name == "responseData" and self._open:
            self._in_data = True

    def _characters(self, text: str) -> None:
        if self._in_data:
            self._open[-1].text.append(text)

    def _end(self, name: str) -> None:
        self._depth -= 1
        if name == "responseData":
            self._in_data = False
        elif name == "testResults":
            self._ended = True
        elif name in ("sample", "httpSample"):
            sample = self._open.pop()
            user = next((outer for outer in reversed(self._open) if outer.is_user), None)
            if sample.is_user:
                self._on_user(sample)
            elif user is not None:
                user.samples += 1
                # No line has a line break within a text, nor a tab; between its fields they mean the same.
                self._on_lines("".join(sample.text).replace("\n", "\t").encode() + b"\n", user)

    def _step(self, depth: int) -> None:
        self._depth += depth

    def _refuse(self, *_: object) -> None:
        raise xml.parsers.expat.ExpatError("a document type is not expected here")


def _is_plain(samples: bytes, n: int) -> bool:
    """Whether the texts of n samples are printable ASCII, with nothing that XML would have to escape."""
    # Bytes beyond ASCII are negative.
    signs = np.frombuffer(samples, np.int8)
    is_printable = np.count_nonzero(signs < ord(" ")) == LINES_OF_SAMPLE * n
    return is_printable and b"&" not in samples and samples.count(b"<") == samples.count(b">") == TAGS_OF_SAMPLE * n


def _plain_output(chunk: bytes, start: int) -> bytes:
    """Return the element with a user's output; nothing if it is missing, incomplete, or needs the XML parser."""
    if not chunk.startswith(_OUTPUT_START, start):
        return b""
    end = chunk.find(b"<", start + len(_OUTPUT_START))
    if end < 0 or not chunk.startswith(_OUTPUT_END, end):
        return b""
    text = chunk[start + len(_OUTPUT_START) : end]
    is_plain = text.isascii() and not any(sign in text for sign in _MARKUP)
    return chunk[start : end + len(_OUTPUT_END)] if is_plain else b""


def _clean(chunk: bytes) -> bytes:
    chunk = chunk.translate(_CONTROL)
    return _REFERENCE.sub(_reference, chunk) if b"&#" in chunk else chunk


def _reference(match: re.Match[bytes]) -> bytes:
    code = int(match[1], 16) if match[1] else int(match[2])
    legal = code in (9, 10, 13) or 32 <= code < 0xD800 or 0xE000 <= code < 0xFFFE or 0x10000 <= code < 0x110000
    return match[0] if legal else b"?"
