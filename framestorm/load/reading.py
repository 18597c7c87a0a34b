"""What a plan asks for: read from each of its thread groups and timers, before the run."""

import math
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from framestorm.load import kit_load
from framestorm.load.fields import Fields, UnknownValueError, curve
from framestorm.load.kit_load import KitLoad
from framestorm.load.thread_groups import KINDS, kind_of
from framestorm.load.timers import AMONG_ALL_THREADS, OF_ALL_THREADS, OF_EACH_THREAD, mode_of
from framestorm.model import plan as plans
from framestorm.model.load import Load
from framestorm.model.plan import Plan
from framestorm.model.plan_files import Known

# How the classes of thread groups end that set up or tear down.
_ASIDE = ("SetupThreadGroup", "PostThreadGroup")
# Controllers that run what is in them once, each time that they are run.
_RUN_ONCE = ("GenericController", "TransactionController", "CriticalSectionController")


def read_loads(plan: Plan, fragments: Iterable[ET.Element], values: Mapping[str, str]) -> tuple[Load, ...]:
    """What each thread group of a plan asks for, and each timer that paces one; `values` are those of properties."""
    places = [place for root in (plan.root, *fragments) for place in places_of(root)]
    known = Known([place.element for place in places], values, plan.path.absolute().parent)
    groups = [place for place in places if place.element.tag.endswith("ThreadGroup")]
    names = {id(group.element): _name(group.element, known) for group in groups}
    of_mains = [name for group, name in zip(groups, names.values(), strict=True) if _kind(group) not in _ASIDE]
    loads: dict[int, Load] = {}
    mains = 0
    for group in groups:
        name, tag = names[id(group.element)], _kind(group)
        is_aside = tag in _ASIDE
        waits = (plan.is_serial and mains > 0) or any(of.element.tag == "SetupThreadGroup" for of in groups)
        mains += not is_aside
        numbers = (mains,) if len({*of_mains}) < len(of_mains) and not is_aside else ()
        start_s = None if waits else 0.0
        first = Load(name, tag, "users", groups=(name,), numbers=numbers, is_aside=is_aside, start_s=start_s)
        load = _read(group.element, first, known, values)
        loads[id(group.element)] = replace(load, labels=_of_each_arrival(group)) if load.is_open else load
    if plan.is_for_kit and (of_kit := kit_load.read(plan, values)) is not None:
        limit = values.get("concurrency_limit", "")
        loads = {
            key: _of_kit(load, of_kit, limit) if load.kind == of_kit.of_kind else load for key, load in loads.items()
        }
    timers = []
    for place in places:
        if (kind := kind_of(place.element)) is None or place.element.tag.endswith("ThreadGroup"):
            continue
        own = [group for group in place.within if id(group) in loads]
        paced = [loads[id(group)] for group in own] or [load for load in loads.values() if not load.is_aside]
        labels = () if any("${" in label for label in place.labels) else place.labels
        name, tag = _name(place.element, known), place.element.tag.rpartition(".")[2]
        first = Load(name, tag, kind.model, labels=labels, has_end=False)
        every = [load for load in loads.values() if not load.is_aside]
        timers += list(_of_timer(Fields(place.element, known, values), first, paced, every))
    return (*loads.values(), *timers)


@dataclass(frozen=True)
class PacedPlace:
    """An enabled element, those that it is in, and the labels of the samplers that it acts on as a timer."""

    element: ET.Element
    within: tuple[ET.Element, ...]
    labels: tuple[str, ...]
    below: ET.Element | None = None


def places_of(tree: ET.Element, within: tuple[ET.Element, ...] = ()) -> Iterator[PacedPlace]:
    """Yield each enabled element of a plan or fragment in its place."""
    labels: tuple[str, ...] | None = None
    for child, below in _children(tree):
        if labels is None:
            owner = within[-1] if within else None
            is_of_one = owner is not None and owner.tag.endswith(plans.SAMPLERS)
            labels = (owner.get("testname", ""),) if owner is not None and is_of_one else tuple(_labels(tree))
        yield PacedPlace(child, within, labels, below)
        if below is not None:
            yield from places_of(below, (*within, child))


def _children(tree: ET.Element) -> Iterator[tuple[ET.Element, ET.Element | None]]:
    """Yield each enabled element of a hashTree with the hashTree of its own."""
    elements = list(tree)
    for child, after in zip(elements, [*elements[1:], None], strict=False):
        if child.tag == "hashTree":
            if tree.tag == "jmeterTestPlan":
                yield from _children(child)
        elif child.get("enabled") != "false":
            yield child, after if after is not None and after.tag == "hashTree" else None


def _labels(tree: ET.Element) -> Iterator[str]:
    for child, below in _children(tree):
        if child.tag.endswith(plans.SAMPLERS):
            yield child.get("testname", "")
        if below is not None:
            yield from _labels(below)


def _name(element: ET.Element, known: Known) -> str:
    name = element.get("testname", "")
    return known.value(name) or name


def _of_each_arrival(group: PacedPlace) -> tuple[str, ...]:
    """The label of a sampler that each arrival of a group runs once, and nothing else does; empty if none is known."""
    labels = list(_labels(group.below)) if group.below is not None else []
    first = next(_once(group.below), "") if group.below is not None else ""
    return (first,) if first and labels.count(first) == 1 and "${" not in first else ()


def _once(tree: ET.Element) -> Iterator[str]:
    """Yield the labels of the samplers that are run once each time that what is in this hashTree is run."""
    for child, below in _children(tree):
        if child.tag.endswith(plans.SAMPLERS) and not plans.is_call_of_kit(child):
            yield child.get("testname", "")
        elif child.tag in _RUN_ONCE and below is not None:
            yield from _once(below)


def _read(element: ET.Element, load: Load, known: Known, values: Mapping[str, str]) -> Load:
    kind = kind_of(element)
    if kind is None:
        return replace(load, unknown=f"{load.kind} is not known here")
    load = replace(load, model=kind.model)
    try:
        return kind.read(Fields(element, known, values), load)
    except UnknownValueError as text:
        return replace(load, unknown=f"{text} is known only during the run")


def _of_kit(load: Load, of_kit: KitLoad, limit: str) -> Load:
    """Return the load of a thread group that the properties of one of the kit's plans have."""
    is_arrivals = of_kit.model == "arrivals"
    return replace(
        load,
        model=of_kit.model,
        total=of_kit.total,
        curve=curve(of_kit.curve),
        has_end=True,
        limit=(int(limit) if limit.isdecimal() else None) if is_arrivals else of_kit.total,
        unknown="",
        seed=of_kit.seed,
        words=of_kit.words,
    )


def _of_timer(fields: Fields, load: Load, paced: list[Load], every: list[Load]) -> Iterator[Load]:
    """What a timer asks of the groups that it paces, of each by itself or of all together; `every` are all groups."""
    try:
        mode = mode_of(fields) if load.kind == "ConstantThroughputTimer" else 0
    except UnknownValueError as text:
        yield replace(load, **_of_groups(paced), unknown=f"its mode {text} is known only during the run")
        return
    together = load.kind == "VariableThroughputTimer" or (
        load.kind == "ConstantThroughputTimer" and mode in OF_ALL_THREADS
    )
    for groups in [paced] if together else [[group] for group in paced]:
        own = replace(load, **_of_groups(groups), start_s=groups[0].start_s if len(groups) == 1 else None)
        kind = KINDS[load.kind]
        try:
            own = kind.read(fields, own)
        except UnknownValueError as text:
            own = replace(own, unknown=f"{text} is known only during the run")
        if load.kind == "ConstantThroughputTimer" and mode == AMONG_ALL_THREADS and len(paced) < len(every):
            # JMeter divides the rate among all threads of the test, also those that the timer does not pace.
            part = sum(group.total or 0 for group in groups) / max(sum(group.total or 0 for group in every), 1)
            own = replace(own, curve=curve((x, y * part) for x, y in own.points))
        if load.kind == "ConstantThroughputTimer" and mode in OF_EACH_THREAD and not own.unknown:
            (group,) = groups
            rate = own.most
            points = [(x, y * rate) for x, y in group.points]
            own = replace(own, curve=curve(points), has_end=group.has_end)
            if group.model != "users" or not points:
                own = replace(own, curve={}, unknown=f"{rate:.6g}/s of each of its threads, whose number is not known")
        yield own


def _kind(group: "PacedPlace") -> str:
    return group.element.tag.rpartition(".")[2]


def _of_groups(groups: Sequence[Load]) -> dict[str, Any]:
    """Return the fields that say which thread groups a load is of."""
    numbers = tuple(number for group in groups for number in group.numbers)
    return {"groups": tuple(group.name for group in groups), "numbers": numbers}


def users_at_once(loads: Iterable[Load], *, is_serial: bool) -> int:
    """The most threads that JMeter has at the same time for these loads; those known only during the run not counted.

    Groups that set up run before the others, and those that tear down after them; each of these three adds up, unless
    the plan runs its groups one after the other. An arrival takes a thread until it has its answer: those of the
    second with the highest rate are counted, or as many as the group's limit allows.
    """
    parts: dict[str, list[int]] = {}
    for load in loads:
        if not load.is_timer:
            part = load.kind if load.is_aside else ""
            parts.setdefault(part, []).append(_threads(load))
    return max((max(of) if is_serial else sum(of) for of in parts.values()), default=0)


def _threads(load: Load) -> int:
    if load.model == "users" or load.kind == "ThreadGroup":
        return load.total if load.model == "users" and load.total else load.limit or 0
    of_a_second = max((math.ceil(load.between(x, x + 1)) for (x, _), _ in pairwise(load.points)), default=0)
    of_a_second = max(of_a_second, math.ceil(load.most))
    return min(of_a_second, load.limit) if load.limit else of_a_second
