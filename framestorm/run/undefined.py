"""Variables that a plan uses where nothing has defined them: JMeter then uses the text, such as ${user}, itself."""

import xml.etree.ElementTree as ET
from collections.abc import Collection, Iterator, Sequence

from framestorm.model import plan as plans
from framestorm.model.units import listed
from framestorm.model.variables import PREDEFINED, Definitions, Place, likely_names, names_in

# Their own code, in which ${x} may be a variable of the script; conditions may ask whether a variable is there.
_CODE = {"script", "BeanShellSampler.query", "BeanShellAssertion.query", "BSFSampler.query"}
_CONDITIONS = {"IfController": "IfController.condition", "WhileController": "WhileController.condition"}
# What runs a part of a plan not always, so that a variable may be there by then.
_SOMETIMES = ("IfController", "WhileController", "SwitchController", "RandomController", "OnceOnlyController")
_EXTRACTORS = ("Extractor", "PostProcessor")
# Groups whose fields are judged by their meaning (groups.py).
_COUNTING = ("ThreadGroup", "SetupThreadGroup", "PostThreadGroup")
_UNUSED = ("TestPlan.comments", "Argument.desc")
# Names that variables give without a reference: a list to go through, and what an extractor or assertion looks at.
_NAMES = {"ForeachController": "ForeachController.inputVal"}
MOST_PLACES = 3


def findings(
    plan_name: str, places: Sequence[Place], defined: Definitions, properties: Collection[str], order: Sequence[Place]
) -> Iterator[str]:
    """Yield a sentence on each variable that is used where it is not defined.

    places: the elements of the plan and of what it includes; order: those that define variables before the load.
    """
    if defined.is_open:
        return
    yield from _of_definitions(plan_name, order, defined)
    positions = {id(place.element): number for number, place in enumerate(places)}
    nowhere: dict[str, list[str]] = {}
    elsewhere: dict[tuple[str, str, str], list[str]] = {}
    later: dict[tuple[str, str], list[str]] = {}
    for place in places:
        for name, field in _uses(place):
            use = f"{plans.title(place.element)} ({field})"
            origins = defined.places(name)
            if name in PREDEFINED:
                continue
            if not origins:
                nowhere.setdefault(name, []).append(use)
            elif groups := _other_groups(place, origins):
                own = place.group.get("testname", "") if place.group is not None else ""
                elsewhere.setdefault((name, own, listed(groups)), []).append(use)
            elif (extractor := _later(place, origins, positions)) is not None:
                later.setdefault((name, plans.title(extractor)), []).append(use)
    for name, uses in nowhere.items():
        hint = likely_names(name, defined.names)
        if not hint and name in properties:
            hint = f" (-J{name} sets a property, which is ${{__P({name})}})"
        yield f"{plan_name}: nothing defines {_shown(name)}{hint}: JMeter uses the text itself in {_first(uses)}"
    for (name, own, others), uses in elsewhere.items():
        why = f"{_shown(name)} is defined only in {others}, and each user has variables of its own"
        yield f"{plan_name}: {why}: in {own!r}, JMeter uses the text itself in {_first(uses)}; pass it on by a property"
    for (name, origin), uses in later.items():
        why = f"{_shown(name)} is set only by {origin}, which comes later"
        yield f"{plan_name}: {why}: until then JMeter uses the text itself in {_first(uses)}"


def _of_definitions(plan_name: str, order: Sequence[Place], defined: Definitions) -> Iterator[str]:
    """User Defined Variables that use others: these count only if they stand in an element before."""
    before = {*PREDEFINED}
    for place in order:
        names = set()
        for argument in place.element.iterfind(".//elementProp[@elementType='Argument']"):
            own = plans.field_text(argument, "Argument.name")
            names.add(own)
            for name in names_in(plans.field_text(argument, "Argument.value")):
                if name not in before:
                    hint = "" if defined.places(name) else likely_names(name, defined.names)
                    why = "only variables of elements before it count there" if not hint else "nothing defines it"
                    where = f"{plans.title(place.element)} uses {_shown(name)} in {own}"
                    yield f"{plan_name}: {where}, but {why}{hint}: JMeter keeps the text itself as the value of {own}"
        before |= names


def _uses(place: Place) -> Iterator[tuple[str, str]]:
    """Yield each variable that an element refers to, and the field that does."""
    element = place.element
    if element.tag in ("Arguments", "TestPlan"):
        return
    if element.tag not in _COUNTING:
        for name in names_in(element.get("testname", "")):
            yield name, "name"
        if name := plans.field_text(element, _NAMES.get(element.tag, "")).strip():
            yield from () if "${" in name else [(f"{name}{_separator(element)}1", "Input variable prefix")]
    is_script = element.tag.startswith(("JSR223", "BeanShell", "BSF"))
    for child in element.iter():
        field = child.get("name", "")
        if not child.text or field in _UNUSED or field == _CONDITIONS.get(element.tag):
            continue
        if (is_script and field in _CODE) or (element.tag in _COUNTING and field.startswith(("ThreadGroup", "Loop"))):
            continue
        for name in names_in(child.text):
            yield name, field


def _separator(element: ET.Element) -> str:
    return "_" if plans.field_text(element, "ForeachController.useSeparator") != "false" else ""


def _other_groups(place: Place, origins: Sequence[Place]) -> list[str]:
    """Return the thread groups that alone have a variable, if the place is in another; empty if it may have it."""
    group = place.group
    if group is None or any(origin.group in (None, group) or _is_global(origin) for origin in origins):
        return []
    return list(dict.fromkeys(repr(origin.group.get("testname", "")) for origin in origins if origin.group is not None))


def _is_global(place: Place) -> bool:
    return place.element.tag in ("Arguments", "TestPlan") or place.is_of_plan


def _later(place: Place, origins: Sequence[Place], positions: dict[int, int]) -> ET.Element | None:
    """Return the extractor that alone sets a variable, if it belongs to a sampler after the place; None otherwise."""
    if place.group is None or any(each.tag.startswith(_SOMETIMES) for each in place.above):
        return None
    here = positions[id(place.element)]
    for origin in origins:
        is_extractor = origin.element.tag.endswith(_EXTRACTORS) and not origin.element.tag.startswith("JSR223")
        sampler = origin.above[-1] if origin.above else None
        is_of_sampler = sampler is not None and sampler.tag.endswith(plans.SAMPLERS)
        if not (is_extractor and is_of_sampler and sampler is not None and positions.get(id(sampler), -1) > here):
            return None
        if sampler in place.above:
            return None
    return origins[0].element


def _shown(name: str) -> str:
    return f"${{{name}}}"


def _first(uses: Sequence[str]) -> str:
    different = list(dict.fromkeys(uses))
    more = len(different) - MOST_PLACES
    return listed(different[:MOST_PLACES]) + (f" (and {more} more places)" if more > 0 else "")
