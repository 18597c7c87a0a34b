"""YAML with the line of everything in it, so that each problem of a study.yml is reported with its line."""

import difflib
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.constructor import ConstructorError, DuplicateKeyError, RoundTripConstructor
from ruamel.yaml.error import MarkedYAMLError
from ruamel.yaml.nodes import Node
from ruamel.yaml.reader import ReaderError

from framestorm import paths
from framestorm.errors import UsageError

# Where something stands in a YAML file, from the outermost mapping inwards: keys of mappings, indices of lists.
YamlPath = tuple[str | int, ...]
MAX_DEPTH = 40
MAX_SHOWN = 40


class PointError(ValueError):
    """A problem of a study: what is wrong, where study.yml says it, what was read there and what is allowed."""

    def __init__(self, place: YamlPath, what: str, allowed: Sequence[str] = (), seen: str | None = None) -> None:
        self.place, self.what, self.allowed, self.seen = place, what, tuple(allowed), seen
        super().__init__(what)


class Problems:
    """What is wrong with a file, each problem with its line."""

    def __init__(self, path: Path) -> None:
        self.lines: dict[YamlPath, int] = {}
        self._path = path
        self._messages: dict[str, int] = {}

    def add(self, place: YamlPath, what: str, allowed: Iterable[object] = (), value: object = None) -> None:
        """Note a problem at a place; of what is `allowed`, the word nearest to `value` is proposed."""
        words = [str(word) for word in allowed]
        self.add_line(self.line(place), f"{what}{did_you_mean(value, words)}{allowed_words(words)}")

    def add_error(self, error: PointError) -> None:
        """Note a problem that was raised."""
        self.add(error.place, error.what, error.allowed, error.seen)

    def add_line(self, line: int, what: str) -> None:
        """Note a problem on a line."""
        self._messages.setdefault(f"{paths.shown(self._path)}:{line}: {what}", line)

    def line(self, place: YamlPath) -> int:
        """The line of a place, or of what it would stand in."""
        while place and place not in self.lines:
            place = place[:-1]
        return self.lines.get(place, 1)

    def __bool__(self) -> bool:
        return bool(self._messages)

    def check(self) -> None:
        """Raise UsageError with all problems, in the order of their lines, if there is one."""
        if self._messages:
            raise UsageError("\n".join(sorted(self._messages, key=self._messages.__getitem__)))


def did_you_mean(value: object, words: Sequence[str]) -> str:
    """The end of a message that proposes the word nearest to a value; empty where none is near."""
    nearest = difflib.get_close_matches(str(value), words, n=1) if value is not None else []
    return f"; did you mean {nearest[0]}?" if nearest else ""


def allowed_words(words: Sequence[str]) -> str:
    """The end of a message that lists what is allowed; empty without words."""
    return f"; allowed: {', '.join(words)}" if words else ""


def read(path: Path) -> tuple[Any, Problems]:
    """The contents of a YAML file, and where to note what is wrong with them.

    Raises:
        UsageError: the file cannot be read, is not YAML, repeats a name or has one that is not a text.
    """
    problems = Problems(path)
    content = None
    try:
        text = path.read_text()
        yaml = YAML(typ="rt")
        yaml.Constructor = _Constructor
        content = _plain(yaml.load(text), (), problems)
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{paths.shown(path)} cannot be read: {error}") from None
    except DuplicateKeyError as error:
        key = str(error.problem).split('"')[1]
        problems.add_line(_line(error), f"{key} is in this mapping twice; leave one out")
    except MarkedYAMLError as error:
        problems.add_line(_line(error), f"this is not YAML: {error.problem or error.context}")
    except ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        problems.add_line(line, f"this is not YAML: it holds the character #x{error.character:02x}; remove it")
    problems.check()
    return content, problems


class _Constructor(RoundTripConstructor):
    """Reads dates as texts, and gives the line of a number that cannot be read."""

    def construct_object(self, node: Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except ValueError as error:  # a number of thousands of digits
            what = f"{str(node.value)[:MAX_SHOWN]}… cannot be read ({error})"
            raise ConstructorError(None, None, what, node.start_mark) from None


_Constructor.add_constructor("tag:yaml.org,2002:timestamp", RoundTripConstructor.construct_scalar)


def _line(error: MarkedYAMLError) -> int:
    mark = error.problem_mark or error.context_mark
    return int(mark.line) + 1 if mark else 1


def _plain(node: Any, place: YamlPath, problems: Problems) -> Any:
    """A value as plain Python; notes the line of each key and item, and every key that is not a text."""
    if len(place) > MAX_DEPTH:
        problems.add(place, "this is nested too deeply, or contains itself")
        return None
    if isinstance(node, CommentedSeq):
        problems.lines.setdefault(place, node.lc.line + 1)
        for index in range(len(node)):
            problems.lines[(*place, index)] = node.lc.item(index)[0] + 1
        return [_plain(item, (*place, index), problems) for index, item in enumerate(node)]
    if isinstance(node, CommentedMap):
        problems.lines.setdefault(place, node.lc.line + 1)
        plain = {}
        for key, value in node.items():
            # What comes by a merge key (<<) has the line on which it was written, where that is known.
            is_merged = key not in (node.lc.data or {})
            line = problems.line(place) if is_merged else node.lc.key(key)[0] + 1
            if not isinstance(key, str):
                shown = (
                    "a list or a mapping"
                    if isinstance(key, tuple | dict)
                    else f'{_text(key)}; quote it: "{_text(key)}"'
                )
                problems.add_line(line, f"a name has to be a text, and this is {shown}")
                continue
            if not is_merged:
                problems.lines[(*place, key)] = line
            plain[key] = _plain(value, (*place, key), problems)
        return plain
    for kind in (bool, int, float, str):
        if isinstance(node, kind):
            return kind(node)
    return node


def _text(key: object) -> str:
    return json.dumps(key, default=str)
