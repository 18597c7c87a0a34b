"""JMeter's XML result tree, read as a stream: users with their samples, in constant memory, even if cut off.

Nearly all of a tree are samples of users in the very form in which JMeter writes them. These are counted in the bytes,
or their lines taken from there; the XML parser reads only what is around them, and whatever has another form.
"""

import re
import xml.parsers.expat
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from framestorm.results.legal_xml import CONTROL, end_of_references, legal

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
# What each has once, but for the closing tags' two signs `<`: its text, its end, and its success.
_LINE_START = b'">\n    <responseData class="java.lang.String">{"type":"sample",'
_SAMPLE_END, _IS_OK = b"</responseData>\n  </sample>\n", b'" s="true" lb="'
# Around the output of a user's process, which comes after its samples.
_OUTPUT_START, _OUTPUT_END = b'  <responseData class="java.lang.String">', b"</responseData>\n"
_MARKUP = (b">", b"&", b"\r")


@dataclass
class TreeSample:
    """One sample of the tree: its attributes as JMeter names them, and its response data.

    Of a user: number: which of the tree's users it is, from 1; samples, ok: how many are in it, and how many of these
        without error; line: one of their lines; has_lines: all of them are asked for.
    """

    attributes: dict[str, str]
    depth: int
    number: int = 0
    text: list[str] = field(default_factory=list)
    samples: int = 0
    ok: int = 0
    line: str = ""
    has_lines: bool = False

    @property
    def is_user(self) -> bool:
        return self.attributes.get("lb") == "user"


class TreeReader:
    """Counts the samples of users, calls on_user(sample) as each user ends, and on_lines for those with `has_lines`.

    on_lines(lines, user's sample) gets lines in bulk, each with its line break. At the end of a tree that is cut off, a
    user that is still open has its samples too: `unfinished`.
    """

    def __init__(
        self,
        on_user: Callable[[TreeSample], object],
        on_lines: Callable[[bytes, TreeSample], None],
        has_lines: Callable[[int], bool],
    ) -> None:
        self._on_lines = on_lines
        self._on_user = on_user
        self._has_lines = has_lines
        self._users = 0
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

    @property
    def unfinished(self) -> list[TreeSample]:
        """The users whose own samples have no end."""
        return [sample for sample in self._open if sample.is_user]

    def _take(self, chunk: bytes) -> bytes:
        """Take samples from the chunk, and parse what is between them; returns what the next chunk may complete."""
        position = 0
        start = chunk.find(_SAMPLE_START)
        while start >= 0:
            end = _end_of_samples(chunk, start)
            if end > start:
                self._parse(chunk[position:start])
                position = end = self._take_samples(chunk, start, end)
            start = chunk.find(_SAMPLE_START, max(end, start + 1))
        cut = chunk.rfind(b"\n  <sample ", max(position - 1, len(chunk) - MAX_SAMPLE_BYTES)) + 1
        if not cut:
            cut = end_of_references(chunk, position)
        self._parse(chunk[position:cut])
        return chunk[cut:]

    def _take_samples(self, chunk: bytes, start: int, end: int) -> int:
        """Take the samples in that part of the chunk, and the output after them; returns where they end."""
        user = self._open[-1] if self._open else None
        # Also when the parser has an unfinished comment or the like, which swallows them.
        is_content = self._parser.CurrentByteIndex == self._parsed_bytes
        n = 0
        if user is not None and user.is_user and user.depth == self._depth and is_content:
            n = self._give(user, chunk[start:end]) if user.has_lines else _count(user, chunk, start, end)
        if user is None or not n:
            self._parse(chunk[start:end])
            return end
        output = _plain_output(chunk, end)
        if output:
            # Only its last line is asked for: all others are those of the samples.
            last = max(output.rfind(b"\n{"), len(_OUTPUT_START))
            user.text.append(output[last : -len(_OUTPUT_END)].translate(CONTROL).decode())
        self._taken_bytes += end - start + len(output)
        self._taken_lines += LINES_OF_SAMPLE * n + output.count(b"\n")
        return end + len(output)

    def _give(self, user: TreeSample, samples: bytes) -> int:
        """Give the lines of a user's samples; returns their number, 0 if they need the parser."""
        lines = _OF_USER.findall(samples)
        if not _is_plain(samples, len(lines)):
            return 0
        user.samples += len(lines)
        user.ok += samples.count(_IS_OK)
        user.line = lines[-1].decode()
        self._on_lines(b"\n".join([*lines, b""]), user)
        return len(lines)

    def _parse(self, data: bytes, *, is_last: bool = False) -> None:
        data = legal(data)
        self._parsed_bytes += len(data)
        self._parser.Parse(data, is_last)

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if name in ("sample", "httpSample"):
            sample = TreeSample(attributes, self._depth)
            self._users += sample.is_user
            if sample.is_user:
                sample.number, sample.has_lines = self._users, self._has_lines(self._users)
            self._open.append(sample)
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
                user.ok += sample.attributes.get("s") == "true"
                # No line has a line break within a text, nor a tab; between its fields they mean the same.
                line = "".join(sample.text).replace("\n", "\t")
                user.line = line
                if user.has_lines:
                    self._on_lines(line.encode() + b"\n", user)

    def _step(self, depth: int) -> None:
        self._depth += depth

    def _refuse(self, *_: object) -> None:
        raise xml.parsers.expat.ExpatError("a document type is not expected here")


def _end_of_samples(chunk: bytes, start: int) -> int:
    """Find where the samples from there end: at the output of their user, or as far as the chunk has them whole."""
    output = chunk.find(b"\n" + _OUTPUT_START, start)
    if output >= 0:
        return output + 1
    last = chunk.rfind(_SAMPLE_END, start)
    return start if last < 0 else last + len(_SAMPLE_END)


def _count(user: TreeSample, chunk: bytes, start: int, end: int) -> int:
    """Count the samples in that part of the chunk, all of which are the user's; 0 if some are of another form."""
    n = chunk.count(_LINE_START, start, end)
    tags = chunk.count(b"<", start, end)
    is_usual = chunk.count(_SAMPLE_END, start, end) == n and tags == TAGS_OF_SAMPLE * n
    if not n or not is_usual or chunk.find(b"&", start, end) >= 0:
        return 0
    line = chunk.rfind(_LINE_START, start, end)
    user.line = chunk[chunk.find(b"{", line) : chunk.find(b"<", line + len(_LINE_START))].decode(errors="replace")
    user.samples += n
    user.ok += chunk.count(_IS_OK, start, end)
    return n


def _is_plain(samples: bytes, n: int) -> bool:
    """Return whether the texts of n samples are printable ASCII, with nothing that XML would have to escape."""
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
