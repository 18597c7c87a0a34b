"""The plan: what a JMeter test plan (.jmx) holds, read once from its elements.

A plan declares everything that Framestorm has to know about it: a new plan needs no change of the program. A property
is `${__P(name,default)}` or `${__property(name,,default)}` in an enabled element. Its description is that of the user
defined variable which holds it, or the line `name: description` in the comment of the element which holds it. A
description may end with facets, in square brackets and separated by semicolons:

    virtual users at the same time [whole number >= 1; total over all slaves]

    text, whole number, number     its kind (text if there is none); a number may have a range, `>= 1` or `0 to 1`, and
                                   a unit: `number >= 0, in s`
    one of a, b, c                 the values that it may have
    URL                            the address of the function under test
    video file                     a video, which Framestorm cuts into frames before the run
    total over all slaves          each slave gets its part
    required                       it has to be set; `required unless mode is local`: where mode has another value
    embedded target if not set     Framestorm starts its own face-blur function, and fills in the address of that
    filled in by Framestorm        a program, folder or file of the run, by its name: python, client_dir, client_log,
                                   cache, frame_dir, journal, tree or stop
    read by Framestorm             not a property but a constant: `label` is the label of the main samples (without it
                                   that of the first sampler), `sample_variables` are further columns of samples.jtl
"""

import difflib
import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Literal

from framestorm import paths
from framestorm.errors import UsageError

Kind = Literal["text", "whole number", "number", "choice", "URL", "video file"]
_NUMBER = r"-?\d+(?:\.\d+)?"
_KIND = re.compile(
    rf"(?P<kind>text|URL|video file|whole number|number)"
    rf"(?: >= (?P<least>{_NUMBER})| (?P<low>{_NUMBER}) to (?P<high>{_NUMBER}))?(?:, in (?P<unit>\S+))?"
)
_CHOICE = re.compile(r"one of (?P<words>\S+(?:, \S+)*)")
_REQUIRED = re.compile(r"required(?: unless (?P<name>\S+) is (?P<word>\S+))?")
_FLAGS = {
    "total over all slaves": "is_total",
    "embedded target if not set": "is_embedded_by_default",
    "filled in by Framestorm": "is_filled_in",
    "read by Framestorm": "is_constant",
}
_CALL = re.compile(r"\$\{__(P|property)\(")
_PROCESS_SAMPLER = "SystemSampler"


@dataclass(frozen=True)
class Facets:
    """What the facets of a description say; `text` is their text, `kind_text` that of the kind alone.

    is_total: each slave gets its part; is_filled_in: Framestorm sets it for each run, and nobody else;
    is_embedded_by_default: it is the address of the embedded target where it is not set;
    is_constant: it is no property; unless: the other property, and its value with which this one is not needed.
    """

    text: str = ""
    kind: Kind = "text"
    kind_text: str = "text"
    unit: str | None = None
    minimum: float = -math.inf
    maximum: float = math.inf
    words: tuple[str, ...] = ()
    is_total: bool = False
    is_filled_in: bool = False
    is_embedded_by_default: bool = False
    is_constant: bool = False
    is_required: bool = False
    unless: tuple[str, str] | None = None

    def allow(self, value: str) -> bool:
        """Whether a property of this kind may have this value."""
        if self.kind == "choice":
            return value in self.words
        if self.kind not in ("number", "whole number"):
            return True
        try:
            number = float(int(value)) if self.kind == "whole number" else float(value)
        except ValueError:
            return False
        return self.minimum <= number <= self.maximum and math.isfinite(number)


@dataclass(frozen=True)
class Property:
    """One property of a plan; `default` is None where JMeter has to work it out (a function, or several defaults)."""

    name: str
    default: str | None
    meaning: str
    facets: Facets = Facets()

    def is_needed(self, values: Mapping[str, str]) -> bool:
        """Whether the plan needs it when its other properties have these values."""
        return self.facets.unless is None or values.get(self.facets.unless[0]) != self.facets.unless[1]

    def check(self, value: str) -> None:
        """Raise UsageError unless the property may have this value."""
        if not self.facets.allow(value):
            article = "" if self.facets.kind == "choice" else "a "
            raise UsageError(f"-J{self.name}={value}: {self.name} must be {article}{self.facets.kind_text}")


@dataclass(frozen=True)
class Sampler:
    """An enabled sampler: the name of its class, and the label of its samples."""

    kind: str
    label: str


@dataclass(frozen=True)
class ThreadGroup:
    """An enabled thread group with its enabled samplers."""

    kind: str
    name: str
    samplers: tuple[Sampler, ...]

    @property
    def is_main(self) -> bool:
        """Whether it makes load: not a set-up or tear-down group."""
        return not self.kind.startswith(("Setup", "Post"))


@dataclass(frozen=True)
class Plan:
    """A JMeter plan; `properties` are in the plan's order, `label` is empty where no sampler is enabled."""

    path: Path
    name: str
    comment: str
    thread_groups: tuple[ThreadGroup, ...]
    properties: tuple[Property, ...]
    label: str
    sample_variables: tuple[str, ...] = ()

    @property
    def samplers(self) -> tuple[Sampler, ...]:
        """The enabled samplers of all groups that make load."""
        return tuple(sampler for group in self.thread_groups if group.is_main for sampler in group.samplers)

    @property
    def has_users(self) -> bool:
        """Whether virtual users are processes, each of which is a sample of its own."""
        return any(sampler.kind == _PROCESS_SAMPLER for sampler in self.samplers)

    @cached_property
    def settable(self) -> dict[str, Property]:
        """The properties that a user may set, by name."""
        return {each.name: each for each in self.properties if not each.facets.is_filled_in}

    @property
    def filled_in(self) -> tuple[str, ...]:
        """The names of the properties that Framestorm fills in."""
        return tuple(each.name for each in self.properties if each.facets.is_filled_in)

    @property
    def totals(self) -> tuple[Property, ...]:
        """The properties that are split over slaves."""
        return tuple(each for each in self.properties if each.facets.is_total)

    @property
    def url(self) -> Property | None:
        """The property with the address of the function under test."""
        return next((each for each in self.properties if each.facets.kind == "URL"), None)

    @property
    def video(self) -> Property | None:
        """The property with the video whose frames are sent."""
        return next((each for each in self.properties if each.facets.kind == "video file"), None)

    @property
    def defaults(self) -> dict[str, str]:
        """The default of each property that a user may set; without those that only JMeter can work out."""
        return {name: each.default for name, each in self.settable.items() if each.default is not None}

    def check(self, name: str, value: str) -> None:
        """Raise UsageError unless the plan has this property, a user may set it, and it may have this value."""
        if name in self.filled_in:
            raise UsageError(f"-J{name}={value}: {name} is filled in by Framestorm and cannot be set")
        if name not in self.settable:
            close = difflib.get_close_matches(name, self.settable, n=1)
            hint = f"; did you mean {close[0]}?" if close else "."
            raise UsageError(
                f"-J{name}={value}: {self.path.name} has no property {name}{hint} "
                f"Its properties: {', '.join(sorted(self.settable))}"
            )
        self.settable[name].check(value)


def read(path: Path) -> Plan:
    """The plan in the file `path`.

    Raises:
        UsageError: the file is missing, is no JMeter plan, or a description has facets that are not understood.
    """
    try:
        root = ET.parse(path).getroot()  # noqa: S314 - a plan runs code anyway: whoever runs it trusts it
    except FileNotFoundError:
        plans = ", ".join(sorted(paths.shown(plan) for plan in paths.JMX.glob("*.jmx")))
        raise UsageError(f"no plan at {path}; the plans of the kit are {plans}") from None
    except (ET.ParseError, OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read as a JMeter plan: {error}") from None
    if root.tag != "jmeterTestPlan":
        raise UsageError(f"{path} is no JMeter plan: its outermost element is <{root.tag}>, not <jmeterTestPlan>")
    elements = list(_enabled(root, None))
    try:
        properties = _properties(element for element, _ in elements)
        constants = _constants(element for element, _ in elements)
    except ValueError as error:
        raise UsageError(f"{path}: {error}") from None
    groups = tuple(
        ThreadGroup(_kind(group), group.get("testname", ""), tuple(_samplers(elements, group)))
        for group, _ in elements
        if group.tag.endswith("ThreadGroup")
    )
    labels = [sampler.label for group in groups if group.is_main for sampler in group.samplers]
    columns = constants.get("sample_variables", "")
    test_plan = next((element for element, _ in elements if element.tag == "TestPlan"), root)
    return Plan(
        path=path,
        name=test_plan.get("testname", ""),
        comment=_field(test_plan, "TestPlan.comments"),
        thread_groups=groups,
        properties=tuple(properties),
        label=constants.get("label") or next(iter(labels), ""),
        sample_variables=tuple(columns.split(",")) if columns else (),
    )


def parse_assignments(words: Iterable[str], letter: str = "-J") -> dict[str, str]:
    """The `name=value` words of -J or -G as a dictionary; the last of a name counts, as in JMeter.

    Raises:
        UsageError: a word has no name or no equals sign.
    """
    values: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not name or not equals:
            raise UsageError(f"{letter}{word}: expected name=value, for example {letter}users=5")
        values[name] = value
    return values


def parse_description(description: str) -> tuple[str, Facets]:
    """The meaning and the facets of a description; brackets in which nothing is a facet belong to the meaning.

    Raises:
        ValueError: some of the facets are understood and others are not.
    """
    description = description.strip()
    match = re.fullmatch(r"(?P<meaning>.*\S)\s*\[(?P<facets>[^\[\]]*)\]", description, flags=re.DOTALL)
    if match is None:
        return description, Facets()
    texts = [text.strip() for text in match["facets"].split(";")]
    facets, unknown = Facets(text="; ".join(texts)), []
    for text in texts:
        extended = _with_facet(facets, text)
        unknown += [text] if extended is None else []
        facets = extended or facets
    if len(unknown) == len(texts):
        return description, Facets()
    if unknown:
        raise ValueError(f"'{unknown[0]}' in '{description}' is not understood; framestorm/model/plan.py lists what is")
    if facets.is_total and "number" not in facets.kind:
        raise ValueError(f"'{description}': a total over all slaves is a number or a whole number")
    return match["meaning"], facets


def _with_facet(facets: Facets, text: str) -> Facets | None:
    """`facets` and what one more says; None if it is none."""
    if text in _FLAGS:
        return replace(facets, **{_FLAGS[text]: True})  # type: ignore[arg-type]
    if match := _REQUIRED.fullmatch(text):
        return replace(facets, is_required=True, unless=(match["name"], match["word"]) if match["name"] else None)
    if match := _CHOICE.fullmatch(text):
        return replace(facets, kind="choice", kind_text=text, words=tuple(match["words"].split(", ")))
    if match := _KIND.fullmatch(text):
        least, most = match["least"] or match["low"] or "-inf", match["high"] or "inf"
        bounds = {"minimum": float(least), "maximum": float(most)}
        return replace(facets, kind=match["kind"], kind_text=text, unit=match["unit"], **bounds)  # type: ignore[arg-type]
    return None


def _enabled(tree: ET.Element, group: ET.Element | None) -> Iterator[tuple[ET.Element, ET.Element | None]]:
    """Every enabled element of a hashTree with its thread group; its children are in the next hashTree."""
    element = None
    for child in tree:
        if child.tag != "hashTree":
            element = child if child.get("enabled") != "false" else None
            if element is not None:
                yield element, group
        elif tree.tag == "jmeterTestPlan" or element is not None:
            is_group = element is not None and element.tag.endswith("ThreadGroup")
            yield from _enabled(child, element if is_group else group)


def _samplers(elements: Iterable[tuple[ET.Element, ET.Element | None]], group: ET.Element) -> Iterator[Sampler]:
    for element, its_group in elements:
        if its_group is group and element.tag.endswith(("Sampler", "SamplerProxy")):
            yield Sampler(_kind(element), element.get("testname", ""))


def _kind(element: ET.Element) -> str:
    return element.tag.rpartition(".")[2]


def _properties(elements: Iterable[ET.Element]) -> Iterator[Property]:
    """Each property once, at its first place; its description is the first that is not empty."""
    defaults: dict[str, str | None] = {}
    descriptions: dict[str, str] = {}
    for element in elements:
        for text, description in _texts(element):
            for name, default in _references(text):
                is_plain = default is not None and "${" not in default
                is_same = defaults.get(name, default) == default
                defaults[name] = default if is_plain and is_same else None
                descriptions[name] = descriptions.get(name) or description or _comment_line(element, name)
    for name, default in defaults.items():
        meaning, facets = parse_description(descriptions[name])
        yield Property(name, default, meaning, facets)


def _constants(elements: Iterable[ET.Element]) -> dict[str, str]:
    """The user defined variables that are read by Framestorm, by name."""
    constants = {}
    for element in elements:
        for argument in element.iterfind(".//elementProp[@elementType='Argument']"):
            if parse_description(_field(argument, "Argument.desc"))[1].is_constant:
                constants[_field(argument, "Argument.name")] = _field(argument, "Argument.value")
    if unknown := constants.keys() - {"label", "sample_variables"}:
        raise ValueError(f"{min(unknown)} is read by Framestorm: only label and sample_variables are")
    return constants


def _texts(element: ET.Element, description: str = "") -> Iterator[tuple[str, str]]:
    """Every text of an element, without comments, and the description of the variable that it is the value of."""
    for child in element:
        if child.get("name") in ("TestPlan.comments", "Argument.desc"):
            continue
        if child.text:
            yield child.text, description
        yield from _texts(child, _field(child, "Argument.desc"))


def _field(element: ET.Element, name: str) -> str:
    return next((child.text or "" for child in element if child.get("name") == name), "")


def _comment_line(element: ET.Element, name: str) -> str:
    lines = (line.partition(": ") for line in _field(element, "TestPlan.comments").splitlines())
    return next((description for word, _, description in lines if word == name), "")


def _references(text: str) -> Iterator[tuple[str, str | None]]:
    """The name and default of each property that a text refers to, also within other functions.

    Without a default JMeter's __P gives 1 and __property the name. A name that is itself a function is left out.
    """
    for call in _CALL.finditer(text):
        parameters = _parameters(text[call.end() :])
        name = parameters[0].strip()
        if not name or "${" in name:
            continue
        if call[1] == "P":
            yield name, parameters[1] if len(parameters) > 1 else "1"
        else:
            yield name, parameters[2] if len(parameters) > 2 else name


def _parameters(text: str) -> list[str]:
    """The parameters at the beginning of `text`, up to their closing bracket, as JMeter's FunctionParser takes them."""
    parameters, braces, brackets, is_escaped = [""], 0, 0, False
    for index, char in enumerate(text):
        if is_escaped or char == "\\":
            parameters[-1] += char if is_escaped else ""
            is_escaped = not is_escaped
            continue
        if char == "," and not braces and not brackets:
            parameters.append("")
            continue
        if char == ")" and not braces:
            if not brackets:
                return parameters
            brackets -= 1
        elif char == "(" and not braces:
            brackets += 1
        elif char == "{" and text[index - 1 : index] == "$":
            braces += 1
        elif char == "}" and braces:
            braces -= 1
        parameters[-1] += char
    return [""]
