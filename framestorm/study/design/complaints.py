"""What pydantic finds wrong with a part of a study.yml, in words: where, what was read there, and what is allowed."""

import json
import re
from collections.abc import Iterator
from inspect import isclass
from types import UnionType
from typing import Annotated, Union, get_args, get_origin

from pydantic import BaseModel, RootModel, ValidationError
from pydantic_core import ErrorDetails

from framestorm.model.study import MEANING
from framestorm.study.design.yaml_lines import PointError, YamlPath

MAX_SHOWN = 60
STRUCTURES = {"dict_type": "a mapping", "model_type": "a mapping", "tuple_type": "a list"}
HINTS = {bool: " (an unquoted true or false is not a text)", type(None): " (nothing stands there)"}


def complaints(model: type[BaseModel], content: object, within: YamlPath = ()) -> Iterator[PointError]:
    """Everything that is wrong with `content` as a `model`; `within` is where it stands in study.yml."""
    try:
        model.model_validate(content)
    except ValidationError as error:
        for each in error.errors(include_url=False):
            complaint = _complaint(each, model, content, within)
            if complaint is not None:
                yield complaint


def keys(model: type[BaseModel]) -> list[str]:
    """The keys that a mapping may have which is read as a model."""
    names = {field.alias or name: field for name, field in model.model_fields.items()}
    return [name for name, field in names.items() if field.description]


def shown_place(place: YamlPath) -> str:
    """A place as one would write it: hypotheses[0].claims[1].where."""
    words = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place)
    return words.removeprefix(".") or "the file"


def _complaint(error: ErrorDetails, model: type[BaseModel], content: object, within: YamlPath) -> PointError | None:
    kind, last = error["type"], error["loc"][-1]
    inner, value = _locate(error["loc"], content)
    place = (*within, *inner)
    what = shown_place(place)
    hint = HINTS.get(type(value), "")
    if kind == "extra_forbidden":
        inside = f" in {shown_place(place[:-1])}" if place[1:] else ""
        return PointError(place, f"unknown key {last!r}{inside}", keys(_model_at(model, inner[:-1])), str(last))
    if kind == "missing":
        return PointError(place, f"{last} is missing{f' in {what}' if place else ''}")
    if last == "[key]":
        return PointError(place, f"the name {place[-1]!r} in {shown_place(place[:-1])} has to be {error['msg']}")
    if kind == "literal_error":
        allowed = re.findall(r"'([^']*)'", error["ctx"]["expected"])
        return PointError(place, f"{what} cannot be {value!r}{hint}", allowed, str(value))
    if kind == "too_short" and value:
        return None  # pydantic counts the items that are right; those that are wrong have errors of their own
    if kind == "too_short":
        wanted = f"a {'mapping' if isinstance(value, dict) else 'list'} with something in it"
    elif kind == "too_long":
        wanted = f"a {'mapping' if isinstance(value, dict) else 'list'} of at most {error['ctx']['max_length']}"
    elif kind == MEANING:
        wanted = error["msg"]
    else:
        # Of two forms neither: the tag of the second says both.
        wanted = str(last) if last not in inner and " " in str(last) else STRUCTURES[kind]
    return PointError(place, f"{what} is {_shown(value)}{hint}, but has to be {wanted}")


def _locate(loc: tuple[str | int, ...], content: object) -> tuple[YamlPath, object]:
    """Where an error is in the content, without pydantic's own steps; and what stands there."""
    place: list[str | int] = []
    for step in loc:
        children = dict(enumerate(content)) if isinstance(content, list) else content
        if isinstance(children, dict) and step in children:
            place.append(step)
            content = children[step]
    return tuple(place), content


def _shown(value: object) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 3]}…"


def _model_at(model: object, place: YamlPath) -> type[BaseModel]:
    """The model that a place within a model is read as."""
    kinds = list(_forms(model))
    for step in place:
        kinds = [form for kind in kinds for inner in _inside(kind, step) for form in _forms(inner)]
    return next(kind for kind in kinds if isclass(kind) and issubclass(kind, BaseModel))


def _forms(kind: object) -> Iterator[object]:
    """The types that a union, an annotated type or a root model stands for."""
    if get_origin(kind) is Annotated:
        yield from _forms(get_args(kind)[0])
    elif get_origin(kind) in (Union, UnionType):
        yield from (form for each in get_args(kind) for form in _forms(each))
    elif isclass(kind) and issubclass(kind, RootModel):
        yield from _forms(kind.model_fields["root"].annotation)
    else:
        yield kind


def _inside(kind: object, step: str | int) -> Iterator[object]:
    """The type of what stands at a key of a mapping or model, or at an index of a list."""
    if isclass(kind) and issubclass(kind, BaseModel):
        yield from (field.annotation for name, field in kind.model_fields.items() if step in (name, field.alias))
    elif get_origin(kind) is dict:
        yield get_args(kind)[1]
    elif get_origin(kind) is tuple:
        yield get_args(kind)[0]
