"""The format of study.yml: its JSON Schema, the defaults in it, and its complaints in words."""

import json
import math
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from framestorm.study.design.lines import YAML_TRAP, Place, Problems

FILE = Path(__file__).with_name("schema.json")


@cache
def schema() -> dict[str, Any]:
    """The schema; its descriptions are the documentation of the format."""
    loaded: dict[str, Any] = json.loads(FILE.read_text())
    return loaded


def defaults(of: str = "") -> dict[str, Any]:
    """What is not written: of the study itself, or of one of the schema's definitions (target)."""
    part = schema()["$defs"][of] if of else schema()
    return {name: each["default"] for name, each in part["properties"].items() if "default" in each}


def check(content: Any, problems: Problems) -> None:
    """Note what of a study.yml is against the schema."""
    for error in _validator().iter_errors(content):
        place: Place = tuple(error.absolute_path)
        seen = error.instance
        if error.validator == "additionalProperties":
            known = list(error.schema["properties"])
            for name in [name for name in seen if name not in known]:
                problems.add((*place, name), f"unknown key {name!r}{_inside(place)}", known, name)
        elif error.validator == "required":
            missing = [name for name in error.validator_value if name not in seen]
            problems.add(place, f"{', '.join(missing)} is missing{_inside(place)}")
        elif error.validator == "enum":
            problems.add(place, f"{said(place)} cannot be {seen!r}{_trap(seen)}", error.validator_value, seen)
        elif "propertyNames" in error.absolute_schema_path:
            problems.add((*place, seen), f"the name {seen!r}{_inside(place)} has to be {_meaning(error.schema)}")
        else:
            problems.add(place, f"{said(place)} is {_shown(seen)}{_trap(seen)}, but has to be {_wanted(error)}")


def problem_with(of: str, name: str, value: object) -> tuple[str, list[str], str] | None:
    """What is wrong with one value of a definition (target): in words, what is allowed, and what was seen."""
    known = schema()["$defs"][of]["properties"]
    if name not in known:
        return f"{of} has no part {name!r}", list(known), name
    error = next(_validator(of, name).iter_errors(value), None)
    if error is None:
        return None
    if error.validator == "enum":
        return f"{of}.{name} cannot be {value!r}{_trap(value)}", list(error.validator_value), str(value)
    return f"{of}.{name} is {_shown(value)}{_trap(value)}, but has to be {_wanted(error)}", [], ""


@cache
def _validator(of: str = "", name: str = "") -> Any:
    """What checks a study.yml, or one value of a definition (target)."""
    from jsonschema import Draft202012Validator, validators

    # JSON Schema takes 2.0 for whole, and YAML has numbers without an end.
    types = Draft202012Validator.TYPE_CHECKER.redefine_many(
        {"integer": lambda _, value: type(value) is int, "number": lambda _, value: _is_finite(value)}
    )
    part = {**schema()["$defs"][of]["properties"][name], "$defs": schema()["$defs"]} if of else schema()
    return validators.extend(Draft202012Validator, type_checker=types)(part)  # type: ignore[no-untyped-call]


def _is_finite(value: object) -> bool:
    try:
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:  # a whole number that no float holds
        return False


def said(place: Place) -> str:
    """A place as one would write it: hypotheses[0].claims[1].where."""
    words = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place)
    return words.removeprefix(".") or "the file"


def _inside(place: Place) -> str:
    return f" in {said(place)}" if place else ""


def _trap(value: object) -> str:
    return f" ({YAML_TRAP})" if value is None or isinstance(value, bool) else ""


def _shown(value: object) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= 60 else f"{text[:57]}…"


def _wanted(error: Any) -> str:
    """What the schema asks for where an error is: the numbers of a limit, else the words of its description."""
    limits = {"minimum": "at least", "maximum": "at most", "exclusiveMinimum": "above"}
    if error.validator in limits:
        return f"{limits[error.validator]} {error.validator_value}"
    if error.validator == "uniqueItems":
        return "a list without the same value twice"
    meaning = _meaning(error.schema)
    types = error.validator_value if error.validator == "type" else None
    if error.validator in _NOT_EMPTY and error.validator_value == 1:
        return _NOT_EMPTY[error.validator]
    if types and (types == "boolean" or not meaning or meaning[0].isupper()):
        return " or ".join(_TYPES[name] for name in ([types] if isinstance(types, str) else types))
    return meaning or str(error.message)


_TYPES = {
    "object": "a mapping", "array": "a list", "string": "a text", "number": "a number", "integer": "a whole number",
    "boolean": "true or false", "null": "nothing",
}  # fmt: skip


_NOT_EMPTY = {"minItems": "a list with something in it", "minProperties": "a mapping with something in it"}


def _meaning(part: Mapping[str, Any]) -> str:
    """The description of a definition that is meant to be read in a sentence; those of keys begin with a capital."""
    return str(part.get("description", ""))
