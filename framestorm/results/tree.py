"""JMeter's XML result tree, read as a stream: users with their samples, in constant memory, even if cut off."""

import re
import xml.parsers.expat
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

CHUNK_BYTES = 1 << 18
# Characters that JMeter writes although XML 1.0 has no place for them (a client that prints garbage).
_CONTROL = bytes(63 if code < 32 and code not in (9, 10, 13) else code for code in range(256))
_REFERENCE = re.compile(rb"&#(?:x([0-9a-fA-F]{1,6})|([0-9]{1,7}));")
_REFERENCE_BYTES = 12


@dataclass
class TreeSample:
    """One sample of the tree: its attributes as JMeter names them, its response data, how many samples are in it."""

    attributes: dict[str, str]
    text: list[str] = field(default_factory=list)
    samples: int = 0

    @property
    def is_user(self) -> bool:
        return self.attributes.get("lb") == "user"


class TreeReader:
    """Calls on_sample(line, user's sample) for each sample of a user, and on_user(sample) as the user ends.

    Those of a user whose own sample was cut off are still given.
    """

    def __init__(self, on_sample: Callable[[str, TreeSample], None], on_user: Callable[[TreeSample], None]) -> None:
        self._on_sample = on_sample
        self._on_user = on_user
        self._open: list[TreeSample] = []
        self._in_data = False
        self._ended = False
        parser = xml.parsers.expat.ParserCreate()
        parser.buffer_text = True
        parser.buffer_size = 1 << 16
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        parser.StartDoctypeDeclHandler = self._refuse
        self._parser = parser

    def read(self, path: Path) -> str | None:
        """Read the file; returns a sentence if it was not whole."""
        rest = b""
        try:
            with path.open("rb") as file:
                while chunk := file.read(CHUNK_BYTES):
                    chunk = rest + chunk
                    # A reference may lie across two chunks: hold back what could be the start of one.
                    cut = chunk.rfind(b"&", -_REFERENCE_BYTES)
                    chunk, rest = (chunk[:cut], chunk[cut:]) if cut >= 0 else (chunk, b"")
                    self._parser.Parse(_clean(chunk), False)
            self._parser.Parse(_clean(rest), True)
        except FileNotFoundError:
            return "tree.xml is missing"
        except xml.parsers.expat.ExpatError:
            line, byte = self._parser.CurrentLineNumber, self._parser.CurrentByteIndex
            if self._ended:
                return f"tree.xml goes on after its end (line {line}); what follows was left out"
            return f"tree.xml is cut off or damaged at line {line}, byte {byte:,}; all before it was used"
        return None

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
            sample = self._open.pop()
            user = next((outer for outer in reversed(self._open) if outer.is_user), None)
            if sample.is_user:
                self._on_user(sample)
            elif user is not None:
                user.samples += 1
                self._on_sample("".join(sample.text), user)

    def _refuse(self, *_: object) -> None:
        raise xml.parsers.expat.ExpatError("a document type is not expected here")


def _clean(chunk: bytes) -> bytes:
    chunk = chunk.translate(_CONTROL)
    return _REFERENCE.sub(_reference, chunk) if b"&#" in chunk else chunk


def _reference(match: re.Match[bytes]) -> bytes:
    code = int(match[1], 16) if match[1] else int(match[2])
    legal = code in (9, 10, 13) or 32 <= code < 0xD800 or 0xE000 <= code < 0xFFFE or 0x10000 <= code < 0x110000
    return match[0] if legal else b"?"
