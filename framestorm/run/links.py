"""What an element of a plan names of another one: a controller, a pool of connections, a part of another file."""

import itertools
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from framestorm.model import plan as plans
from framestorm.model.plan_files import Known
from framestorm.model.units import listed
from framestorm.model.variables import Place
from framestorm.run.finding import Finding

_PATH = "ModuleController.node_path"
_JDBC = ("JDBCSampler", "JDBCPreProcessor", "JDBCPostProcessor")
_SAMPLER_OR_CONTROLLER = (*plans.SAMPLERS, "Controller", "TestAction", "ParallelSampler")


def findings(
    plan_name: str, root: ET.Element, fragments: Mapping[Path, ET.Element], places: Sequence[Place], known: Known
) -> Iterator[str]:
    """Yield sentences on references that lead nowhere, and on listeners of which JMeter serves one only.

    root: the plan's outermost element; fragments: what it includes of files, by their paths.
    """
    for path, fragment in fragments.items():
        if fragment.find("hashTree/TestFragmentController") is None:
            why = "has no Test Fragment, so JMeter includes nothing of it"
            yield f"{plan_name}: {path.name} {why}: put its parts into one"
    pools = {_value(place.element, "dataSource", known) for place in places if place.element.tag == "JDBCDataSource"}
    listeners = [place.element for place in places if place.element.tag == "BackendListener"]
    for place in places:
        element = place.element
        if element.tag == "SwitchController":
            yield from _of_switch(plan_name, root, element, known)
        pool = _value(element, "dataSource", known) if element.tag in _JDBC else None
        if pool and None not in pools and pool not in pools:
            there = f"only {listed(sorted(filter(None, pools)))}" if pools else "and it has none"
            yield f"{plan_name}: {plans.title(element)} uses the pool {pool!r}, which no JDBC Connection has, {there}"
    names = Counter(element.get("testname", "") for element in listeners)
    for name, n in names.items():
        if n > 1:
            why = f"{n} Backend Listeners have the name {name!r}, and JMeter serves only the first of a name"
            yield f"{plan_name}: {why}: give each its own"


def broken_modules(plan_name: str, root: ET.Element) -> Iterator[Finding]:
    """Module Controllers whose part is not where they look for it, at which JMeter ends the test."""
    for tree in root.iter("hashTree"):
        for element in tree:
            if element.tag != "ModuleController":  # of a disabled one, too, JMeter looks for the part
                continue
            names = [each.text or "" for each in element.iterfind(f"collectionProp[@name='{_PATH}']/stringProp")]
            if len(names) < 2:
                yield Finding(f"{plan_name}: {plans.title(element)} names no part to run: choose one in JMeter", True)
                continue
            if _is_there(root, names[1:]):
                continue
            path = " > ".join(names[1:])
            others = [" > ".join(each) for each in _paths_of(root, names[-1])]
            hint = f"; {names[-1]!r} is at {listed(others)}" if others else ""
            why = f"names {path}, which is not there{hint}"
            yield Finding(f"{plan_name}: {plans.title(element)} {why}: choose its part again in JMeter", True)


def _is_there(root: ET.Element, names: Sequence[str]) -> bool:
    """Return whether elements of these names stand in each other, disabled ones too."""
    trees = list(root.iterfind("hashTree"))
    for number, name in enumerate(names):
        found = [(e, t) for tree in trees for e, t in _children(tree) if e.get("testname", "") == name]
        found = [(element, tree) for element, tree in found if element.tag != "ModuleController"]
        if not found:
            return False
        if number == len(names) - 1:
            return True
        trees = [tree for _, tree in found if tree is not None]
    return False


def _children(tree: ET.Element) -> Iterator[tuple[ET.Element, ET.Element | None]]:
    """Yield the elements of a hashTree, each with the hashTree of what is in it."""
    elements = list(tree)
    for element, below in itertools.zip_longest(elements, elements[1:]):
        if element.tag != "hashTree":
            yield element, below if below is not None and below.tag == "hashTree" else None


def _paths_of(root: ET.Element, name: str) -> list[tuple[str, ...]]:
    """Return where elements of this name stand, each as the names on the way to it."""
    found = []

    def search(tree: ET.Element, above: tuple[str, ...]) -> None:
        for element, below in _children(tree):
            here = (*above, element.get("testname", ""))
            if here[-1] == name and element.tag != "ModuleController" and "Controller" in element.tag:
                found.append(here)
            if below is not None:
                search(below, here)

    for tree in root.iterfind("hashTree"):
        search(tree, ())
    return found


def _of_switch(plan_name: str, root: ET.Element, element: ET.Element, known: Known) -> Iterator[str]:
    value = _value(element, "SwitchController.value", known)
    below = next((b for tree in root.iter("hashTree") for e, b in _children(tree) if e is element), None)
    if value is None or not value.strip() or below is None:
        return
    parts = [e for e, _ in _children(below) if e.tag.endswith(_SAMPLER_OR_CONTROLLER) and e.get("enabled") != "false"]
    names = [part.get("testname", "") for part in parts]
    place = f"{plan_name}: {plans.title(element)} switches to {value.strip()!r}"
    if value.strip().isdecimal():
        if int(value) >= len(parts):
            yield f"{place}, but has only {len(parts)} parts, counted from 0: JMeter runs the first"
    elif value.strip() not in names and "default" not in map(str.lower, names) and not any("${" in n for n in names):
        yield f"{place}, but none of its parts has that name, nor the name default: JMeter runs none of them"


def _value(element: ET.Element, name: str, known: Known) -> str | None:
    return known.value_in_run(plans.field_text(element, name))
