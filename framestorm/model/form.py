"""The fields of a multipart form as curl's -F writes them, a line each: name=value, name=@file or name=<file."""

import re
from collections.abc import Callable
from dataclasses import dataclass

# As jmx/java/plan/Form.java reads them; a test compares the two. JMeter 5.5 cannot write names beyond ASCII.
_FIELD = re.compile(r"(?as)([!-<>-~][ -<>-~]*)=([@<]?)(.*?)((?:;type=[\w.+-]+/[^;=]+(?:; *charset=[\w-]+)?)?)")
_LINE_END = re.compile(r"[\r\n]")  # splitlines() also splits at characters that a value may have


@dataclass(frozen=True)
class Field:
    """One field.

    sign: `@` where `value` is the path of a file to send, or of a folder whose files are sent in turn; `<` where it is
    that of a file with the value. content_type: as written, with `;type=` before it, or empty.
    """

    name: str
    sign: str
    value: str
    content_type: str

    def __str__(self) -> str:
        return f"{self.name}={self.sign}{self.value}{self.content_type}"


def parse(text: str) -> list[Field]:
    r"""Return the fields of a form; in one of a single line without an end, as in a property, \n is that of a line.

    Raises:
        ValueError: a line is not a field.
    """
    fields = []
    text = text if _LINE_END.search(text) else text.replace("\\n", "\n")
    for line in filter(None, map(str.strip, _LINE_END.split(text))):
        match = _FIELD.fullmatch(line)
        if match is None:
            raise ValueError(f"{line!r} is not of the form name=value, name=@file or name=<file, with a name in ASCII")
        fields.append(Field(*match.groups()))
    return fields


def with_paths(text: str, place: Callable[[str], str]) -> str:
    """Return the form with each of its paths as `place` gives it."""
    lines = "\n".join(
        str(Field(each.name, each.sign, place(each.value), each.content_type) if each.sign else each)
        for each in parse(text)
    )
    return f"{lines}\n" if "\\n" in lines else lines  # of a file, where it is no end of a line
