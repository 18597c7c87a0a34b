"""The plan: the content of a JMeter test plan (.jmx), read once from its elements; facets.py is what it declares."""

import difflib
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from framestorm import paths
from framestorm.errors import UsageError
from framestorm.model import aliases, units
from framestorm.model.classes import short_name
from framestorm.model.criteria import ALL, OF_TRANSACTION, USER, own_label
from framestorm.model.facets import CONSTANT, FILLED_IN, KIT_FACET, LOAD, TOTAL, URL, Property, described

# Of what a load is, where one value is not enough.
SEVERAL = {"rate_per_s": "5/s for 30 s, to 60/s in 1 min", "users": "5 users for 30 s, to 60 users in 1 min"}
_ASIDE = ("Setup", "Post")  # how the tags of thread groups begin that are not the load
SAMPLERS = ("Sampler", "SamplerProxy", "HTTPSampler_", "HTTPSampler2_")  # how tags end; the last are of old plans
HTTP_SAMPLERS = ("HTTPSamplerProxy", "HTTPSampler_", "HTTPSampler2_")  # whole tags
# What runs samplers that stand in other files, and what may give its samples names of its own.
_OF_OTHER_FILES = {"IncludeController", "ModuleController"}
_THAT_NAME_SAMPLES = {"JSR223Sampler", "BeanShellSampler", "JavaSampler"}
_SCRIPTS = ("JSR223", "BeanShell", "BSF")
KIT_CALL = "framestorm.plan."  # how the script of an element begins that calls a class of the kit
_OF_NAMES = re.compile(r"[sS]ampleLabel|SubResult|framestorm\.plan\.User")
# References to control characters, and the characters that stand for them here: XML allows these, and no text has them.
_ILLEGAL = re.compile(r"&#(?:x([0-9a-fA-F]{1,6})|([0-9]{1,7}));")
_FIRST_STAND_IN = 0xFDD0
_STAND_INS = re.compile("[\ufdd0-\ufdef]")
_CALL = re.compile(r"\$\{__(P|property)\(")
_TRIMMED = "".join(map(chr, range(33)))  # by Java's String.trim


@dataclass(frozen=True)
class Plan:
    """A JMeter plan; `label` is that of its main samples: `all` if it has several and does not declare a main one.

    labels: those of its samplers and transactions; empty if not all are known before the run. Sub-results of these
        are named after them, with a number.
    settable: the properties that a user may set, by name, in the plan's order; filled_in: the names of the others.
    has_users: virtual users are processes, and each of them is also a sample.
    root: its elements as they stand in the file.
    """

    path: Path
    name: str
    comment: str
    settable: Mapping[str, Property]
    filled_in: tuple[str, ...]
    label: str
    labels: frozenset[str]
    has_users: bool
    sample_variables: tuple[str, ...]
    root: ET.Element = field(repr=False, compare=False)

    @property
    def elements(self) -> list[ET.Element]:
        """Those that are enabled; not those of fragments that it includes."""
        return enabled_elements(self.root)

    @property
    def is_serial(self) -> bool:
        """Whether its thread groups run one after the other."""
        return any(
            field_text(each, "TestPlan.serialize_threadgroups") == "true"
            for each in self.elements
            if each.tag == "TestPlan"
        )

    @property
    def known_labels(self) -> frozenset[str]:
        """The labels that a criterion may name, those of users and of all samplers among them; empty if not known."""
        return frozenset({*self.labels, self.label, ALL, *([USER] if self.has_users else [])} if self.labels else ())

    @property
    def is_for_kit(self) -> bool:
        """Whether it declares anything for Framestorm; any other plan runs as in JMeter alone."""
        return bool(self.filled_in) or any(each.facets for each in self.settable.values())

    @property
    def has_journal(self) -> bool:
        """Whether its users write what they send to a journal."""
        return "journal" in self.filled_in

    @property
    def totals(self) -> tuple[Property, ...]:
        """The properties that are split over slaves."""
        return tuple(each for each in self.settable.values() if TOTAL in each.facets)

    @property
    def url(self) -> Property | None:
        """The property with the address of the function under test."""
        return self.having(URL)

    @property
    def load(self) -> Property | None:
        """The property with the load in words."""
        return self.having(LOAD)

    def having(self, facet: str) -> Property | None:
        """Return the first property that has a facet."""
        return next((each for each in self.settable.values() if facet in each.facets), None)

    @property
    def defaults(self) -> dict[str, str]:
        """The default of each property that a user may set; without those that only JMeter can work out."""
        return {name: each.default for name, each in self.settable.items() if each.default is not None}

    def without_value(self, values: Mapping[str, str]) -> list[str]:
        """Return the properties that have no default, and no value among these."""
        return [name for name, each in self.settable.items() if not each.has_default and not values.get(name)]

    def check(self, name: str, value: str) -> None:
        """Raise UsageError unless the plan has this property, a user may set it, and it may have this value."""
        if name in self.filled_in:
            raise UsageError(f"-J{name}={value}: {name} is filled in by Framestorm and cannot be set")
        if name not in self.settable:
            close = [aliases.ours(name, self.settable), *difflib.get_close_matches(name, self.settable, n=1)]
            likely, elsewhere = next(filter(None, close), None), aliases.other_plan(name)
            hint = f"; did you mean {likely}?" if likely else "."
            # A rate for users who wait, or users for a rate: another plan, and no word that only looks alike.
            if elsewhere and self.is_for_kit and close[0] is None:
                hint = f"; {elsewhere}."
            raise UsageError(
                f"-J{name}={value}: {self.path.name} has no property {name}{hint} "
                f"Its properties:{units.in_lines(sorted(self.settable))}"
            )
        try:
            self.settable[name].check(value)
        except UsageError as error:
            if self.load and name in SEVERAL:
                raise UsageError(f"{error}; several in turn are -Jload='{SEVERAL[name]}'") from None
            raise


def parse(path: Path) -> ET.Element:
    """Return the outermost element of a plan or fragment, read as JMeter does: in UTF-8, whatever the file says.

    JMeter writes and reads references to control characters, which XML does not allow; `write` restores them.

    Raises:
        UsageError: the file is missing, or is not a JMeter plan.
    """
    try:
        text = path.read_text(encoding="utf-8-sig", errors="replace")
        if "\0" in text:
            raise UsageError(f"{path} cannot be read as a JMeter plan: it is not in UTF-8, which JMeter reads")
        # JMeter takes blanks before the beginning, too.
        root = ET.fromstring(_ILLEGAL.sub(_stand_in, text.lstrip()))  # noqa: S314 - it runs code: whoever runs it trusts it
    except FileNotFoundError:
        plans = ", ".join(sorted(paths.shown(plan) for plan in paths.JMX.glob("*.jmx")))
        raise UsageError(f"no plan at {path}; the plans of the kit are {plans}") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read as a JMeter plan: {error.strerror}") from None
    except ET.ParseError as error:
        raise UsageError(f"{path} cannot be read as a JMeter plan: {error}") from None
    if root.tag != "jmeterTestPlan":
        raise UsageError(f"{path} is not a JMeter plan: its outermost element is <{root.tag}>, not <jmeterTestPlan>")
    for tree in root.iter("hashTree"):
        for element in tree:
            # As JMeter takes it: the class of an element is its attribute `class`, else its tag.
            element.tag = short_name(element.attrib.pop("class", element.tag))
            if (is_enabled := element.get("enabled")) is not None:
                element.set("enabled", _boolean(is_enabled))
    for each in root.iter("boolProp"):
        each.text = _boolean(each.text or "")
    return root


def _boolean(text: str) -> str:
    """Return a boolean as JMeter writes it: all but `true`, in any letters, is false for it, a reference too."""
    return "true" if text.lower() == "true" else "false"


def included(root: ET.Element) -> ET.Element:
    """Return the part of a file that an Include Controller runs, as a plan: what is in its first Test Fragment.

    JMeter looks for that at the top of the file, or directly in its Test Plan, and does not ask whether it is enabled.
    All else in the file, such as a thread group to try the fragment, it leaves out.
    """
    part = ET.Element("jmeterTestPlan", root.attrib)
    content = ET.SubElement(part, "hashTree")
    tree: Iterable[ET.Element] = next(iter(root), ())
    while children := list(tree):
        tree = ()
        for element, below in zip(children[::2], children[1::2], strict=False):
            if element.tag == "TestFragmentController":
                content.extend((ET.Element(element.tag, {**element.attrib, "enabled": "true"}), below))
                break
            if element.tag == "TestPlan":
                tree = below
                break
    return part


def write(root: ET.Element, path: Path) -> None:
    """Write a plan that `parse` has read."""
    # The parser has turned every other carriage return into a line break.
    text = ET.tostring(root, encoding="unicode").replace("\r", "&#13;")
    text = _STAND_INS.sub(lambda each: f"&#{ord(each[0]) - _FIRST_STAND_IN};", text)
    path.write_text(f'<?xml version="1.0" encoding="UTF-8"?>\n{text}', encoding="utf-8")


def _stand_in(reference: re.Match[str]) -> str:
    code = int(reference[1], 16) if reference[1] else int(reference[2])
    if code in (9, 10, 13) or code >= 32:
        return reference[0]
    return chr(_FIRST_STAND_IN + code)


def read(path: Path) -> Plan:
    """Read the plan in the file `path`.

    Raises:
        UsageError: the file is missing, is not a JMeter plan, or a description has unknown facets.
    """
    root = parse(path)
    elements = list(enabled(root, ""))
    own = [element for element, _ in elements]
    has_facets = any(map(KIT_FACET.search, root.itertext()))
    try:
        properties = _properties(own, has_facets=has_facets)
        constants = _constants(own) if has_facets else {}
    except ValueError as error:
        raise UsageError(f"{path}: {error}") from None
    # Not those of fragments, nor those that set up or tear down.
    samplers = [
        element
        for element, group in elements
        if element.tag.endswith(SAMPLERS) and group and not group.startswith(_ASIDE)
    ]
    labels = [sampler.get("testname", "") for sampler in samplers]
    others = [
        element.get("testname", "")
        for element, group in elements
        if element.tag == "TransactionController"
        or (group.startswith(_ASIDE) and element.tag.endswith(SAMPLERS) and not is_call_of_kit(element))
    ]
    are_fixed = not any("${" in label for label in (*labels, *others))
    are_here = not any(element.tag in _OF_OTHER_FILES for element, group in elements if group)
    are_theirs = not any(sampler.tag in _THAT_NAME_SAMPLES for sampler in samplers) and constants.get("label") != ALL
    # In other plans than the kit's an OS Process Sampler is a sampler like others.
    is_described = any(each.facets for each in properties)
    are_theirs &= is_described or not any(map(_may_name_samples, own))
    has_users = is_described and any(sampler.tag == "SystemSampler" for sampler in samplers)
    names = {label if has_users and label == USER else own_label(label) for label in (*labels, *others)}
    transactions = {element.get("testname", "") for element, _ in elements if element.tag == "TransactionController"}
    names |= {f"{label}{OF_TRANSACTION}" for label in transactions & {*labels}}
    label = own_label(labels[0]) if len(set(labels)) == 1 and are_here else ALL if labels else ""
    columns = constants.get("sample_variables", "")
    test_plan = next((element for element, _ in elements if element.tag == "TestPlan"), root)
    return Plan(
        path=path,
        name=test_plan.get("testname", ""),
        comment=field_text(test_plan, "TestPlan.comments"),
        settable={each.name: each for each in properties if FILLED_IN not in each.facets},
        filled_in=tuple(each.name for each in properties if FILLED_IN in each.facets),
        label=constants.get("label") or label,
        labels=frozenset(names if are_fixed and are_here and are_theirs else ()),
        has_users=has_users,
        sample_variables=tuple(columns.split(",")) if columns else (),
        root=root,
    )


def is_call_of_kit(sampler: ET.Element) -> bool:
    """Return whether a sampler only calls a class of the kit (jmx/java/plan), which leaves no sample."""
    return sampler.tag == "JSR223Sampler" and field_text(sampler, "script").startswith(KIT_CALL)


def _may_name_samples(element: ET.Element) -> bool:
    """Whether an element is a script that may give samples names of its own; those in files are not looked at."""
    texts = {each.get("name", ""): each.text or "" for each in element}
    has_file = any(text for name, text in texts.items() if name.endswith("filename"))
    return element.tag.startswith(_SCRIPTS) and (has_file or any(map(_OF_NAMES.search, texts.values())))


def enabled(tree: ET.Element, group: str) -> Iterator[tuple[ET.Element, str]]:
    """Each enabled element of a hashTree, with the tag of its thread group; its children are in the next hashTree."""
    element = None
    for child in tree:
        if child.tag != "hashTree":
            element = child if child.get("enabled") != "false" else None
            if element is not None:
                yield element, group
        elif tree.tag == "jmeterTestPlan" or element is not None:
            tag = element.tag if element is not None else ""
            yield from enabled(child, tag if tag.endswith("ThreadGroup") else group)


def enabled_elements(root: ET.Element) -> list[ET.Element]:
    """Return the enabled elements of a plan or fragment."""
    return [element for element, _ in enabled(root, "")]


def _properties(elements: Iterable[ET.Element], *, has_facets: bool) -> list[Property]:
    """Return each property once, at its first position; its description is the first that is not empty."""
    defaults: dict[str, str | None] = {}
    descriptions: dict[str, str] = {}
    without: set[str] = set()
    for element in elements:
        for text, description in ((element.get("testname", ""), ""), *_texts(element)):
            for name, default in references(text):
                without |= {name} if default is None else set()
                is_plain = default is not None and "${" not in default.replace("${env:", "")
                is_same = defaults.get(name, default) == default
                defaults[name] = default if is_plain and is_same else None
                descriptions[name] = descriptions.get(name) or description or _comment_line(element, name)
    meanings = {
        name: described(text) if has_facets else (text, ()) for name, text in descriptions.items() if name in defaults
    }
    return [
        Property(name, default, *meanings[name], has_default=name not in without) for name, default in defaults.items()
    ]


def _constants(elements: Iterable[ET.Element]) -> dict[str, str]:
    """Return the user defined variables that Framestorm reads, by name."""
    arguments = (each for element in elements for each in element.iterfind(".//elementProp[@elementType='Argument']"))
    constants = {
        field_text(each, "Argument.name"): field_text(each, "Argument.value")
        for each in arguments
        if CONSTANT in described(field_text(each, "Argument.desc"))[1]
    }
    if unknown := constants.keys() - {"label", "sample_variables"}:
        raise ValueError(f"{min(unknown)} is read by Framestorm: only label and sample_variables are")
    return constants


def _texts(element: ET.Element, description: str = "") -> Iterator[tuple[str, str]]:
    """Every text of an element, without comments; for the value of a variable, with the variable's description."""
    for child in element:
        if child.get("name") in ("TestPlan.comments", "Argument.desc"):
            continue
        if child.text:
            yield child.text, description
        yield from _texts(child, field_text(child, "Argument.desc"))


def field_text(element: ET.Element, name: str) -> str:
    return next((child.text or "" for child in element if child.get("name") == name), "")


def title(element: ET.Element) -> str:
    """Return how a message names an element: by its kind and its name."""
    return f"{element.tag.rpartition('.')[2]} {element.get('testname', '')!r}"


def _comment_line(element: ET.Element, name: str) -> str:
    lines = (line.partition(": ") for line in field_text(element, "TestPlan.comments").splitlines())
    return next((description for word, _, description in lines if word == name), "")


def trim(value: str) -> str:
    """Return a property's value as JMeter's functions return it, without blanks at its ends."""
    return value.strip(_TRIMMED)


def references(text: str) -> Iterator[tuple[str, str | None]]:
    """Yield the name and default of each property that a text refers to, also within other functions.

    The default is None without one: JMeter's __P then gives 1, and __property the name. A name that is itself a
    function is left out.
    """
    for call in _CALL.finditer(text):
        words = parameters(text[call.end() :])
        name = words[0].strip()
        if not name or "${" in name:
            continue
        if call[1] == "P":
            yield name, words[1] if len(words) > 1 else None
        else:
            yield name, words[2] if len(words) > 2 else None


def parameters(text: str) -> list[str]:
    """The parameters at the beginning of `text`, up to their closing bracket, as JMeter's FunctionParser takes them."""
    words, braces, brackets = [""], 0, 0
    for part in re.findall(r"\\.|\$\{|.", text, flags=re.DOTALL):
        if part == ")" and not braces and not brackets:
            return words
        if part == "," and not braces and not brackets:
            words.append("")
            continue
        if part in ("${", "}"):
            braces = max(0, braces + (1 if part == "${" else -1))
        elif part in ("(", ")") and not braces:
            brackets += 1 if part == "(" else -1
        words[-1] += part.removeprefix("\\")
    return [""]
