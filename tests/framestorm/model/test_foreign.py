"""Files of other programs."""

import gzip
from pathlib import Path

import pytest

from framestorm.errors import UsageError
from framestorm.model.foreign import as_utf_8, read_utf_8, unpacked
from framestorm.run.values import headers_of

PACKED = gzip.compress(b"one,two\n" * 1000, mtime=0)


@pytest.mark.parametrize(
    ("packed", "text", "is_whole"),
    [
        (PACKED, b"one,two\n" * 1000, True),
        (PACKED + gzip.compress(b"three\n", mtime=0) + b"\0" * 512, b"one,two\n" * 1000 + b"three\n", True),
        (PACKED[:-1], b"one,two\n" * 1000, False),
        (PACKED + b"more", b"one,two\n" * 1000, False),
        (b"\x1f\x8b", b"", False),
    ],
)
def test_what_is_whole_of_a_packed_file_is_read(packed: bytes, text: bytes, is_whole: bool, tmp_path: Path) -> None:
    assert unpacked(packed) == (text, is_whole)
    (tmp_path / "packed").write_bytes(packed)
    assert as_utf_8(tmp_path / "packed") == (text, False, is_whole)


@pytest.mark.parametrize(
    ("content", "is_assumed"),
    [("né\n".encode(), False), ("né\n".encode("utf-16"), False), ("né\n".encode("cp1252"), True)],
)
def test_any_encoding_becomes_utf_8(content: bytes, is_assumed: bool, tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(content)
    text = as_utf_8(tmp_path / "text")
    assert (text.read().decode(), text.read(1), text.is_assumed) == ("né\n", b"n", is_assumed)


def test_what_others_read_as_utf_8_has_to_be_so(tmp_path: Path) -> None:
    file = tmp_path / "headers"
    file.write_bytes("\ufeffX-Name: né\n".encode())
    assert read_utf_8(file, "-Jheaders") == "X-Name: né\n"
    file.write_bytes("X-Name: né\n".encode("latin-1"))
    with pytest.raises(UsageError, match=r"-Jheaders=@.*headers is not in UTF-8, as byte 10 tells: save it in UTF-8"):
        headers_of(f"@{file}")
    with pytest.raises(UsageError, match=r"-Jheaders=@.* cannot be read: Is a directory"):
        headers_of(f"@{tmp_path}")
