"""The knobs of a plan: which it has, what they mean, and what a run sets them to.

A plan is the only place where a knob is declared: ``${__P(name,default)}`` gives its name and default, the comment of
the user-defined variable or of the element that holds it gives its meaning.
"""

import difflib
import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from framestorm import paths
from framestorm.errors import UsageError
from framestorm.report.unit import FRAME, UNITS

KNOB = re.compile(r"\$\{__P\(\s*([^,()\s]+)\s*(?:,([^)]*))?\)\}")

# Filled in by the kit for every run: where its own parts and the run's files are.
KIT_KNOBS = frozenset({"python", "client", "client_log", "cache", "frame_dir", "journal", "tree", "stop"})

WHOLE_NUMBERS = frozenset({"users", "frames", "min_faces", "concurrency_limit", "workers", "tasks"})
AT_LEAST_1 = frozenset({"users", "concurrency_limit", "workers", "tasks"})
CHOICES = {"encoding": ("png-base64", "png", "jpeg"), "mode": ("local", "push", "pull")}


@dataclass(frozen=True)
class Knob:
    """One property of a plan: its default as written there and its meaning, with the unit."""

    name: str
    default: str
    description: str


def read_plan(plan: Path) -> dict[str, Knob]:
    """The knobs of a plan by name, in the plan's order.

    Raises:
        UsageError: the plan is missing, or is no JMeter plan.
    """
    try:
        root = ET.parse(plan).getroot()  # noqa: S314 - a plan runs code anyway: who runs it trusts it
    except FileNotFoundError:
        raise UsageError(f"no plan at {plan}; the plans of the kit are {_listed(_own_plans())}") from None
    except (ET.ParseError, IsADirectoryError, UnicodeDecodeError) as error:
        raise UsageError(f"{plan} cannot be read as a JMeter plan: {error}") from None
    if root.tag != "jmeterTestPlan":
        raise UsageError(f"{plan} is no JMeter plan: its outermost element is <{root.tag}>, not <jmeterTestPlan>")
    knobs: dict[str, Knob] = {}
    for element, text in _texts(root):
        for name, default in KNOB.findall(text):
            known = knobs.get(name)
            if known is None or not known.description:
                knobs[name] = Knob(name, default if known is None else known.default, _description(element))
    return knobs


def has_users(plan: Path) -> bool:
    """Whether the plan's virtual users are processes, so that its run has samples labelled user."""
    return "SystemSampler" in plan.read_text()


def unit(plan: Path) -> str:
    """What the plan's samples are labelled, beside user: its HTTP sampler's name, or the parameter of user.groovy."""
    text = plan.read_text()
    marks = ('testname="{}"', '<stringProp name="parameters">{}</stringProp>')
    return next((unit for unit in UNITS if any(mark.format(unit) in text for mark in marks)), FRAME)


def effective(knobs: Mapping[str, Knob], given: Mapping[str, str]) -> dict[str, str]:
    """What each knob is set to: as given, else the plan's default.

    Raises:
        UsageError: a given property is none of the plan's, or its value is out of its range.
    """
    for name, value in given.items():
        if "." in name:
            continue
        if name not in knobs:
            close = difflib.get_close_matches(name, knobs, n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            allowed = _listed(sorted(set(knobs) - KIT_KNOBS))
            raise UsageError(f"-J{name}={value}: the plan has no property {name}{hint} It has {allowed}")
        _check(name, value)
    return {name: given.get(name, knob.default) for name, knob in knobs.items()}


def parse_assignments(words: Iterable[str], letter: str = "-J") -> dict[str, str]:
    """``name=value`` words of -J or -G as a dictionary; the last of a name counts, as in JMeter.

    Raises:
        UsageError: a word has no name or no equals sign.
    """
    given: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not name or not equals:
            raise UsageError(f"{letter}{word}: a property is given as name=value, for example {letter}users=5")
        given[name] = value
    return given


def unknown_to_jmeter(given: Mapping[str, str]) -> list[str]:
    """Those given names with a dot that JMeter's own property files do not mention."""
    return [name for name in given if "." in name and name not in _jmeter_names()]


def _check(name: str, value: str) -> None:
    if name in CHOICES and value not in CHOICES[name]:
        raise UsageError(f"-J{name}={value}: {name} is one of {_listed(CHOICES[name])}")
    is_number = name in WHOLE_NUMBERS or name.endswith(("_s", "_share"))
    if not is_number:
        return
    try:
        number = float(int(value)) if name in WHOLE_NUMBERS else float(value)
    except ValueError:
        kind = "a whole number" if name in WHOLE_NUMBERS else "a number"
        raise UsageError(f"-J{name}={value}: {name} is {kind}") from None
    smallest = 1.0 if name in AT_LEAST_1 else 0.0
    largest = 1.0 if name.endswith("_share") else math.inf
    if not smallest <= number <= largest or not math.isfinite(number):
        upper = f" and at most {largest:g}" if math.isfinite(largest) else ""
        raise UsageError(f"-J{name}={value}: {name} is at least {smallest:g}{upper}")


def _texts(root: ET.Element) -> Iterable[tuple[ET.Element, str]]:
    """Every text of the plan with the element that a person knows it by: the variable, or the element of the tree."""

    def walk(element: ET.Element, holder: ET.Element) -> Iterable[tuple[ET.Element, str]]:
        if element.get("testname") is not None or element.get("elementType") == "Argument":
            holder = element
        if element.text:
            yield holder, element.text
        for child in element:
            yield from walk(child, holder)

    return walk(root, root)


def _description(holder: ET.Element) -> str:
    for prop in holder.findall("stringProp"):
        if prop.get("name") in {"Argument.desc", "TestPlan.comments"}:
            return (prop.text or "").strip()
    return ""


@cache
def _jmeter_names() -> frozenset[str]:
    names: set[str] = set()
    for path in (*paths.JMETER_HOME.glob("bin/*.properties"), paths.JMX / "user.properties"):
        names.update(re.findall(r"^#?\s*([\w.-]+)\s*=", path.read_text(errors="replace"), flags=re.MULTILINE))
    return frozenset(names)


def _own_plans() -> list[str]:
    return sorted(paths.shown(plan) for plan in paths.JMX.glob("*.jmx"))


def _listed(words: Sequence[str]) -> str:
    return ", ".join(words)
