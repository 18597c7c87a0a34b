"""JMeter's XML result tree, read as a stream: users with their frames, in constant memory, also when it was cut off."""

import json
import re
import xml.parsers.expat
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from framestorm.report.files import CHUNK_BYTES
from framestorm.report.unit import UNITS

# Characters that JMeter writes although XML 1.0 has no place for them (a client that prints garbage).
_CONTROL = bytes(63 if code < 32 and code not in (9, 10, 13) else code for code in range(256))
_REFERENCE = re.compile(rb"&#(?:x([0-9a-fA-F]{1,6})|([0-9]{1,7}));")
_REFERENCE_BYTES = 12


@dataclass
class TreeSample:
    """One sample of the tree: its attributes as JMeter names them, its response data, and what its children were."""

    attributes: dict[str, str]
    text: list[str] = field(default_factory=list)
    frames: int = 0

    @property
    def label(self) -> str:
        return self.attributes.get("lb", "")


@dataclass(frozen=True)
class TreeEnd:
    """How the reading ended; `problem` is a sentence if the file was not whole."""

    problem: str | None
    frame_samples: int


FrameHandler = Callable[[str, TreeSample], None]
UserHandler = Callable[[TreeSample], None]


def read_tree(path: Path, on_frame: FrameHandler, on_user: UserHandler) -> TreeEnd:
    """Read `path`; call on_frame(line, user's sample) for each frame and on_user(sample) as each user ends.

    A frame is any sample labelled as a unit. Those of a user whose own sample was cut off are still given.
    `frame_samples` counts those that stand alone (JMeter's HTTP sampler).
    """
    return _Reader(on_frame, on_user).read(path)


class _Reader:
    def __init__(self, on_frame: FrameHandler, on_user: UserHandler) -> None:
        self._on_frame = on_frame
        self._on_user = on_user
        self._open: list[TreeSample] = []
        self._in_data = False
        self._ended = False
        self._frame_samples = 0
        parser = xml.parsers.expat.ParserCreate()
        parser.buffer_text = True
        parser.buffer_size = 1 << 16
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        parser.StartDoctypeDeclHandler = self._refuse
        self._parser = parser

    def read(self, path: Path) -> TreeEnd:
        try:
            with path.open("rb") as file:
                self._feed(file)
        except FileNotFoundError:
            return TreeEnd("tree.xml is missing", 0)
        except xml.parsers.expat.ExpatError:
            if self._ended:
                problem = (
                    f"tree.xml goes on after its end (line {self._parser.CurrentLineNumber}); what follows was left out"
                )
            else:
                where = f"line {self._parser.CurrentLineNumber}, byte {self._parser.CurrentByteIndex:,}"
                problem = f"tree.xml is cut off or damaged at {where}; all before it was used"
            return TreeEnd(problem, self._frame_samples)
        return TreeEnd(None, self._frame_samples)

    def _feed(self, file: BinaryIO) -> None:
        rest = b""
        while chunk := file.read(CHUNK_BYTES):
            chunk = rest + chunk
            # A reference may lie across two chunks: hold back what could be the start of one.
            cut = chunk.rfind(b"&", -_REFERENCE_BYTES)
            chunk, rest = (chunk[:cut], chunk[cut:]) if cut >= 0 else (chunk, b"")
            self._parser.Parse(_clean(chunk), False)
        self._parser.Parse(_clean(rest), True)

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if name in ("sample", "httpSample"):
            self._open.append(TreeSample(attributes))
        elif name == "responseData" and self._open:
            self._in_data = True

    def _characters(self, text: str) -> None:
        if self._in_data:
            self._open[-1].text.append(text)

    def _end(self, name: str) -> None:
        if name == "responseData":
            self._in_data = False
        elif name == "testResults":
            self._ended = True
        elif name in ("sample", "httpSample"):
            self._end_sample(self._open.pop())

    def _end_sample(self, sample: TreeSample) -> None:
        if sample.label == "user":
            self._on_user(sample)
            return
        user = next((outer for outer in reversed(self._open) if outer.label == "user"), None)
        if user is not None and sample.label in UNITS:
            user.frames += 1
            self._on_frame("".join(sample.text), user)
        elif sample.label in UNITS:
            self._frame_samples += 1

    def _refuse(self, *_: object) -> None:
        raise xml.parsers.expat.ExpatError("a document type is not expected here")


def _clean(chunk: bytes) -> bytes:
    chunk = chunk.translate(_CONTROL)
    return _REFERENCE.sub(_reference, chunk) if b"&#" in chunk else chunk


def _reference(match: re.Match[bytes]) -> bytes:
    code = int(match[1], 16) if match[1] else int(match[2])
    legal = code in (9, 10, 13) or 32 <= code < 0xD800 or 0xE000 <= code < 0xFFFE or 0x10000 <= code < 0x110000
    return match[0] if legal else b"?"


def json_lines(text: str) -> list[dict[str, Any]]:
    """The JSON objects among the lines of a client's stdout; anything else on it is passed over."""
    found = []
    for line in text.splitlines():
        if line.startswith("{"):
            try:
                value = json.loads(line)
            except ValueError:
                continue
            if isinstance(value, dict):
                found.append(value)
    return found
