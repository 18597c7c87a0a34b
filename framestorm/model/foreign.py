"""Files that other programs wrote: how they are packed and encoded, and in which unit their times are."""

import codecs
import gzip
import io
import zlib
from contextlib import suppress
from pathlib import Path
from typing import IO, NamedTuple

from framestorm.errors import UsageError

# Times since 1970: the unit, the first and the last that are taken for such (1990 to 2090), and how many ms it is.
EPOCHS = (
    ("seconds", 0.63e9, 3.8e9, 1e3),
    ("milliseconds", 0.63e12, 3.8e12, 1.0),
    ("microseconds", 0.63e15, 3.8e15, 1e-3),
    ("nanoseconds", 0.63e18, 3.8e18, 1e-6),
)
GZIP = b"\x1f\x8b"
_MARKS = ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
CHUNK_BYTES = 1 << 22


class ForeignText(NamedTuple):
    """A text in UTF-8.

    source: the file, or its content if the file is packed or in another encoding.
    is_assumed: nothing says the encoding, and Windows-1252 was taken. is_whole: a packed file is not cut off.
    """

    source: Path | bytes
    is_assumed: bool = False
    is_whole: bool = True

    def read(self, n_bytes: int | None = None) -> bytes:
        """Return its first bytes, or all of it."""
        if isinstance(self.source, bytes):
            return self.source[:n_bytes]
        with self.source.open("rb") as file:
            return file.read(n_bytes)


def as_utf_8(path: Path) -> ForeignText:
    """Return the text of a file, whatever its encoding; unpacked if it is a gzip file."""
    content, is_whole = None, True
    if (text := ForeignText(path)).read(2) == GZIP:
        content, is_whole = unpacked(path.read_bytes())
        text = ForeignText(content, is_whole=is_whole)
    for mark, encoding in _MARKS:
        if text.read(2) == mark:
            content = (content or path.read_bytes())[2:].decode(encoding, "replace").encode()
            text = text._replace(source=content)
            break
    if _is_utf_8(text.source):
        return text
    content = (content or path.read_bytes()).decode("cp1252", "replace").encode()
    return text._replace(source=content, is_assumed=True)


def read_utf_8(path: Path, name: str) -> str:
    """Return the text of a file that others than this program read as UTF-8; `name` is how the command line has it.

    Raises:
        UsageError: it cannot be read, or is in another encoding.
    """
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{name} is not in UTF-8, as byte {error.start + 1} tells: save it in UTF-8") from None
    except OSError as error:
        raise UsageError(f"{name} cannot be read: {error.strerror}") from None


def _is_utf_8(source: Path | bytes) -> bool:
    decoder = codecs.getincrementaldecoder("utf-8")()
    with source.open("rb") if isinstance(source, Path) else io.BytesIO(source) as file:
        try:
            while chunk := file.read(CHUNK_BYTES):
                decoder.decode(chunk)
        except UnicodeDecodeError:
            return False
    return True


def unpacked(packed: bytes) -> tuple[bytes, bool]:
    """Return as much of a gzip file as can be read, and whether that is all of it; it may have several parts."""
    text = io.BytesIO()
    is_whole = unpack(io.BytesIO(packed), text)
    return text.getvalue(), is_whole


def unpack(packed: IO[bytes], target: IO[bytes]) -> bool:
    """Write as much of a gzip file as can be read, and return whether that is all of it."""
    with gzip.open(packed) as file, suppress(EOFError, gzip.BadGzipFile, zlib.error):
        while chunk := file.read1(CHUNK_BYTES):
            target.write(chunk)
        return True
    return False
