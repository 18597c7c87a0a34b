"""YAML with the line of everything in it, so that whatever is wrong with a study.yml is said with its line."""

import difflib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import yaml

from framestorm import paths
from framestorm.errors import UsageError

# From the outermost mapping inwards: keys of mappings, indices of lists.
Place = tuple[str | int, ...]
# PyYAML reads YAML 1.1 (https://yaml.org/type/bool.html).
YAML_TRAP = "YAML reads an unquoted on, off, yes or no as true or false, and ~ as nothing"
MERGE_TAG = "tag:yaml.org,2002:merge"
MAX_DEPTH = 40
MAX_SHOWN = 40


class PointError(ValueError):
    """A point that cannot be: why, where in study.yml it says so, and what would be allowed."""

    def __init__(self, place: Place, what: str, allowed: Sequence[str] = (), seen: str | None = None) -> None:
        self.place, self.what, self.allowed, self.seen = place, what, tuple(allowed), seen
        super().__init__(what)


class Problems:
    """What is wrong with a file, each with the line that it stands on."""

    def __init__(self, path: Path) -> None:
        self.lines: dict[Place, int] = {}
        self._path = path
        self._found: dict[str, int] = {}

    def add(self, place: Place, what: str, allowed: Iterable[object] = (), seen: object = None) -> None:
        """Note a problem at a place; of what is `allowed` the nearest to what was `seen` is proposed."""
        words = [str(word) for word in allowed]
        close = difflib.get_close_matches(str(seen), words, n=1)
        hint = f"; did you mean {close[0]}?" if close and seen is not None else ""
        self.add_line(self.line(place), f"{what}{hint}" + (f"; allowed: {', '.join(words)}" if words else ""))

    def add_line(self, line: int, what: str) -> None:
        """Note a problem on a line."""
        self._found.setdefault(f"{paths.shown(self._path)}:{line}: {what}", line)

    def line(self, place: Place) -> int:
        """The line of a place, or of what it would stand in."""
        while place and place not in self.lines:
            place = place[:-1]
        return self.lines.get(place, 1)

    def __bool__(self) -> bool:
        return bool(self._found)

    def check(self) -> None:
        """Raise UsageError with all problems, in the order of their lines, if there is one."""
        if self._found:
            raise UsageError("\n".join(sorted(self._found, key=lambda said: self._found[said])))


def read(path: Path) -> tuple[Any, Problems]:
    """The contents of a YAML file, and where to note what is wrong with them.

    Raises:
        UsageError: the file cannot be read, is no YAML, repeats a name or has one that is no text.
    """
    problems = Problems(path)
    content = None
    try:
        text = path.read_text()
        loader = yaml.SafeLoader(text)
        root = loader.get_single_node()
        if root is not None:
            _note(root, (), loader, problems)
            problems.check()
            content = loader.construct_document(root)
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{paths.shown(path)} cannot be read: {error}") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problems.add_line(mark.line + 1 if mark else 1, f"this is no YAML: {error.problem or error.context}")
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        problems.add_line(line, f"this is no YAML: it holds the character #x{error.character:02x}; take that out")
    problems.check()
    return content, problems


def _note(node: yaml.Node, place: Place, loader: yaml.SafeLoader, problems: Problems) -> None:
    """Keep the line of each key and item, and see that every key is a text and there once."""
    problems.lines.setdefault(place, node.start_mark.line + 1)
    if len(place) > MAX_DEPTH:
        raise yaml.MarkedYAMLError(problem="it holds itself, or is nested too deep", problem_mark=node.start_mark)
    if isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            _note(item, (*place, index), loader, problems)
    if isinstance(node, yaml.ScalarNode):
        _construct(node, loader, problems)
    if not isinstance(node, yaml.MappingNode):
        return
    own: dict[str, int] = {}
    for key_node, value_node in node.value:
        line = key_node.start_mark.line + 1
        if key_node.tag == MERGE_TAG:
            merged = value_node.value if isinstance(value_node, yaml.SequenceNode) else [value_node]
            for each in merged:
                _note(each, place, loader, problems)
            continue
        key = _construct(key_node, loader, problems)
        if not isinstance(key, str):
            if not isinstance(key_node, yaml.ScalarNode):
                problems.add_line(line, "a name is a text, and here it is a list or a mapping")
                continue
            trap = "" if isinstance(key, int | float) and not isinstance(key, bool) else f" ({YAML_TRAP})"
            problems.add_line(line, f'the name {key_node.value} is no text; quote it: "{key_node.value}"{trap}')
            continue
        if key in own:
            problems.add_line(line, f"{key} is there twice, first on line {own[key]}")
        own[key] = line
        problems.lines[(*place, key)] = line
        _note(value_node, (*place, key), loader, problems)


def _construct(node: yaml.Node, loader: yaml.SafeLoader, problems: Problems) -> object:
    try:
        return loader.construct_object(node)
    except ValueError as error:  # a day that no month has, a number of thousands of digits
        shown = node.value if len(str(node.value)) <= MAX_SHOWN else f"{node.value[:MAX_SHOWN]}…"
        problems.add_line(node.start_mark.line + 1, f'{shown} cannot be read ({error}); quote it: "{shown}"')
        return str(node.value)
