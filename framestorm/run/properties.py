"""JMeter's properties as the command line sets them: words, and files in the format of Java."""

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from framestorm.errors import UsageError

_ESCAPED = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
# The name ends at the first separator that is not escaped.
_LINE = re.compile(r"(?P<name>(?:\\.|[^\\=:\s])*)\s*[=:]?\s*(?P<value>.*)", re.DOTALL)


def assigned(words: Iterable[str | Path], letter: str = "-J") -> dict[str, str]:
    """The `name=value` words of -J or -G, and the files among them, as a dictionary: the last of a name counts.

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
    """Java's format: ASCII, backslashes doubled, no line breaks within a value."""
    lines = []
    for name, value in properties.items():
        escaped = json.dumps(value)[1:-1].replace('\\"', '"')
        lines.append(f"{name}={(escaped[:1] == ' ' and chr(92)) or ''}{escaped}\n")
    return "".join(lines).encode("ascii")


def read(path: Path) -> dict[str, str]:
    """The properties in a file, as java.util.Properties reads them.

    Raises:
        UsageError: it cannot be read.
    """
    try:
        text = path.read_text(encoding="iso-8859-1")
    except OSError as error:
        raise UsageError(f"{path} cannot be read as a file of properties: {error.strerror}") from None
    values, line = {}, ""
    for part in text.splitlines():
        if not line and part.lstrip()[:1] in ("#", "!"):
            continue
        line += part.lstrip()
        if (len(line) - len(line.rstrip("\\"))) % 2:  # goes on in the next
            line = line[:-1]
            continue
        match = _LINE.fullmatch(line)
        if match and match["name"]:
            values[_plain(match["name"])] = _plain(match["value"])
        line = ""
    return values


def _plain(text: str) -> str:
    return _ESCAPED.sub(lambda each: chr(int(each[1], 16)) if each[1] else _CONTROLS.get(each[2], each[2]), text)
