"""What JMeter writes although XML 1.0 has no place for it: control characters, such as those of a client's colours."""

import re

# By byte: a question mark in place of what no XML has.
CONTROL = bytes(63 if code < 32 and code not in (9, 10, 13) else code for code in range(256))
_REFERENCE = re.compile(rb"&#(?:x([0-9a-fA-F]{1,6})|([0-9]{1,7}));")
_REFERENCE_BYTES = 12
_SHORT = b"????"  # for references that are shorter than that of one question mark


def legal(chunk: bytes) -> bytes:
    """Return a chunk without what XML does not allow; its length, and so all byte offsets, stay the same."""
    chunk = chunk.translate(CONTROL)
    return _REFERENCE.sub(_reference, chunk) if b"&#" in chunk else chunk


def end_of_references(chunk: bytes, start: int = 0) -> int:
    """Return where a chunk ends whose last reference may go on in the next one: before that, but not before `start`."""
    cut = chunk.rfind(b"&", max(start, len(chunk) - _REFERENCE_BYTES))
    return len(chunk) if cut < 0 else cut


def _reference(match: re.Match[bytes]) -> bytes:
    code = int(match[1], 16) if match[1] else int(match[2])
    is_legal = code in (9, 10, 13) or 32 <= code < 0xD800 or 0xE000 <= code < 0xFFFE or 0x10000 <= code < 0x110000
    if is_legal:
        return match[0]
    return _SHORT if len(match[0]) == len(_SHORT) else b"&#" + b"63;".rjust(len(match[0]) - 2, b"0")
