"""A YAML file with the line of everything in it, and what is wrong with it, each problem with its line."""

import difflib
import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.constructor import SafeConstructor
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, SequenceNode

from framestorm import paths
from framestorm.errors import UsageError
from framestorm.model.study import MEANING, Noun

M = TypeVar("M", bound=BaseModel)
# Where something stands in a YAML file, from the outermost mapping inwards: keys of mappings, indices of lists.
YamlPath = tuple[str | int, ...]
MAX_DEPTH = 40
MAX_PLACES = 50_000  # aliases can make a few lines into billions of places
MAX_SHOWN = 60
HINTS = {bool: " (an unquoted true or false is not a text)", type(None): " (nothing stands there)"}


class PointError(UsageError):
    """A problem of a study: where study.yml says it, what is wrong, what is allowed and what was read there."""

    def __init__(self, place: YamlPath, what: str, allowed: Iterable[object] = (), value: object = None) -> None:
        self.place = place
        super().__init__(f"{what}{choices(value, [str(each) for each in allowed])}")


def choices(value: object, allowed: Sequence[str]) -> str:
    """Return the end of a message that lists what is allowed and proposes what is nearest to a value."""
    nearest = difflib.get_close_matches(str(value), allowed, n=1) if value is not None else []
    hint = f"; did you mean {nearest[0]}?" if nearest else ""
    return f"{hint}; allowed: {', '.join(allowed)}" if allowed else ""


def shown_place(place: YamlPath) -> str:
    """Return a place as one would write it: hypotheses[0].claims[1].where."""
    words = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place)
    return words.removeprefix(".") or "the file"


class Problems:
    """What is wrong with a file, each problem with its line."""

    def __init__(self, path: Path) -> None:
        self.lines: dict[YamlPath, int] = {}
        self._path = path
        self._messages: dict[str, int] = {}

    def add(self, place: YamlPath, what: str, allowed: Iterable[object] = (), value: object = None) -> None:
        """Note a problem at a place; of what is `allowed`, the word nearest to `value` is proposed."""
        self.add_error(PointError(place, what, allowed, value))

    def add_error(self, error: PointError) -> None:
        """Note a problem that was raised, on the line of its place or of what that would stand in."""
        place = error.place
        while place and place not in self.lines:
            place = place[:-1]
        line = self.lines.get(place, 1)
        self._messages.setdefault(f"{paths.shown(self._path)}:{line}: {error}", line)

    def __bool__(self) -> bool:
        return bool(self._messages)

    def check(self) -> None:
        """Raise UsageError with all problems, in the order of their lines, if there is one."""
        if self._messages:
            raise UsageError("\n".join(sorted(self._messages, key=self._messages.__getitem__)))


class _Constructor(SafeConstructor):
    """Reads dates as texts."""


_Constructor.add_constructor("tag:yaml.org,2002:timestamp", SafeConstructor.construct_yaml_str)


def read(path: Path) -> tuple[Any, Problems]:
    """Return the contents of a YAML file, and where to note what is wrong with them.

    Raises:
        UsageError: the file cannot be read, is not YAML, repeats a name or has one that is not a text.
    """
    problems = Problems(path)
    content = None
    yaml = YAML(typ="safe", pure=True)
    yaml.Constructor = _Constructor
    try:
        text = path.read_text()
        _note_lines(yaml.compose(text), (), problems)
        problems.check()
        content = yaml.load(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problems.lines[()] = mark.line + 1 if mark else 1
        problems.add((), f"this is not YAML: {error.problem or error.context}")
    except (OSError, ValueError, YAMLError) as error:
        raise UsageError(f"{paths.shown(path)} cannot be read: {error}") from None
    problems.check()
    return content, problems


def _note_lines(node: Node | None, place: YamlPath, problems: Problems) -> None:
    """Note the line of each key and item, and every key that is not a text."""
    if node is None:
        return
    problems.lines.setdefault(place, node.start_mark.line + 1)
    if len(place) > MAX_DEPTH or len(problems.lines) > MAX_PLACES:
        problems.add(place, "this is nested too deeply, or contains itself")
    elif isinstance(node, SequenceNode):
        for index, item in enumerate(node.value):
            _note_lines(item, (*place, index), problems)
    elif isinstance(node, MappingNode):
        for key, value in node.value:
            inner = (*place, str(key.value))
            problems.lines[inner] = key.start_mark.line + 1
            if key.tag not in ("tag:yaml.org,2002:str", "tag:yaml.org,2002:merge"):
                problems.add(inner, "a name has to be a text; put this one in quotes")
            _note_lines(value, inner, problems)


def validated(model: type[M], content: object, problems: Problems) -> M:
    """Return what the content of the file is as a `model`.

    Raises:
        UsageError: it is none.
    """
    models: dict[int, type[Noun]] = {}
    try:
        return model.model_validate(content, context=models)
    except ValidationError as error:
        for each in error.errors(include_url=False):
            kind, last = each["type"], each["loc"][-1]
            place, around, value = _locate(each["loc"], content)
            what, inside = shown_place(place), f" in {shown_place(place[:-1])}" if place[1:] else ""
            hint = HINTS.get(type(value), "")
            if kind == "extra_forbidden":
                problems.add(place, f"unknown key {last!r}{inside}", models[id(around)].keys(), last)
            elif kind == "missing":
                problems.add(place, f"{last} is missing in {what}")
            elif last == "[key]":
                problems.add(place, f"the name {place[-1]!r}{inside} has to be {each['msg']}")
            elif kind == "literal_error":
                allowed = re.findall(r"'([^']*)'", each["ctx"]["expected"])
                problems.add(place, f"{what} cannot be {value!r}{hint}", allowed, value)
            elif kind != "too_short" or not value:  # else those that are wrong have problems of their own
                text = json.dumps(value, default=str)
                shown = text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 3]}…"
                wanted = f", but has to be {each['msg']}" if kind == MEANING else f": {each['msg']}"
                wanted = ", but has to have at least one" if kind == "too_short" else wanted
                problems.add(place, f"{what} is {shown}{hint}{wanted}")
        problems.check()
        raise


def _locate(loc: tuple[str | int, ...], content: object) -> tuple[YamlPath, object, object]:
    """Where an error is in the content, without pydantic's own steps; what is around it, and what stands there."""
    place: list[str | int] = []
    around = content
    for step in loc:
        children = dict(enumerate(content)) if isinstance(content, list) else content
        if isinstance(children, dict) and step in children:
            place.append(step)
            around, content = content, children[step]
    return tuple(place), around, content
