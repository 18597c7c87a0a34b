"""JMeter's properties as the command line sets them: words, and files in the format of Java."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from framestorm.errors import UsageError

# Java's own blanks and line ends; Python knows more of both, such as the second byte of an Å in UTF-8.
_BLANKS = " \t\f"
_LINE_END = re.compile("\r\n|\r|\n")
_ESCAPED = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.)|$)", re.DOTALL)
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
# The name ends at the first separator that is not escaped.
_LINE = re.compile(r"((?:\\.|[^\\=: \t\f])*)[ \t\f]*[=:]?[ \t\f]*(.*)", re.DOTALL)


def assigned(words: Iterable[str | Path], letter: str = "-J") -> dict[str, str]:
    """Return the `name=value` words of -J or -G, and the files among them, as a dictionary: the last of a name counts.

    A name without a value has "": JMeter then removes the property, so that its default counts.

    Raises:
        UsageError: a word has no name, or a file cannot be read.
    """
    values: dict[str, str] = {}
    for word in words:
        if isinstance(word, Path):
            values |= read(word)
            continue
        name, _, value = word.partition("=")
        if not name:
            raise UsageError(f"{letter}{word}: expected name=value, for example {letter}users=5")
        values[name] = value
    return values


def written(properties: Mapping[str, str]) -> bytes:
    """Return Java's format: ASCII, backslashes doubled, no line breaks within a value, no separators within a name."""
    lines = []
    for name, value in properties.items():
        key = re.sub("[ =:#!]", r"\\\g<0>", _escaped(name))
        lines.append(f"{key}={(value[:1] == ' ' and chr(92)) or ''}{_escaped(value)}\n")
    return "".join(lines).encode("ascii")


def _escaped(text: str) -> str:
    return json.dumps(text)[1:-1].replace('\\"', '"')


def read(path: Path) -> dict[str, str]:
    """The properties in a file, as java.util.Properties reads them; one with an empty name is of no use and left out.

    Raises:
        UsageError: it cannot be read, or is no text.
    """
    try:
        text = path.read_bytes().decode("iso-8859-1")
    except OSError as error:
        raise UsageError(f"{path} cannot be read as a file of properties: {error.strerror}") from None
    if "\0" in text:
        raise UsageError(
            f"{path} is no file of properties: it is binary, or in UTF-16; give lines of name=value, in ASCII"
        )
    values = {}
    for line in _logical_lines(text):
        if (match := _LINE.fullmatch(line)) and match[1]:
            try:
                values[_plain(match[1])] = _plain(match[2])
            except ValueError:
                what = "\\u is not followed by four digits; in a file of properties a \\ is written twice"
                raise UsageError(f"{path}: JMeter cannot read the line {line!r}: {what}") from None
    return values


def _logical_lines(text: str) -> Iterator[str]:
    """The lines that are neither empty nor comments, each joined with those on which it goes on after a backslash."""
    line = ""
    for part in (each.lstrip(_BLANKS) for each in _LINE_END.split(text)):
        if not line and part[:1] in ("", "#", "!"):
            continue
        line += part
        if (len(part) - len(part.rstrip("\\"))) % 2:  # goes on in the next
            line = line[:-1]
        else:
            yield line
            line = ""
    if line:
        yield line


def _plain(text: str) -> str:
    """Return the text without escapes; raises ValueError, as Java, if the four digits of a character are missing."""

    def character(escaped: re.Match[str]) -> str:
        if escaped[1]:
            return chr(int(escaped[1], 16))
        if escaped[2] == "u":
            raise ValueError(text)
        return _CONTROLS.get(escaped[2] or "", escaped[2] or "")

    # Java has characters beyond the first 65,536 as two halves.
    return _ESCAPED.sub(character, text).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
