"""What a plan has once in each JVM, and so once on each slave: a number is divided, anything else is told by name."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterable, Sequence

from framestorm.hosts.division import Division, holder, number_text, title
from framestorm.hosts.schedules import divide_seed
from framestorm.load.fields import Fields, UnknownValueError
from framestorm.model import plan as plans

# Elements that are shared by all users of a JVM, by the last word of their class.
_SHARED = {
    "CriticalSectionController": "one user at a time on each slave, so as many at a time as there are slaves",
    "FifoPutPostProcessor": "its queue is that of one slave",
    "FifoPopPreProcessor": "its queue is that of one slave",
}
_COLUMNS = "collectionProp[@name='UserParameters.thread_values']/collectionProp"
_ACROSS_THREADS = "InterleaveControl.accrossThreads"
# What texts and scripts refer to that is one for all users of a JVM.
_TEXTS = {
    r"\$\{__threadNum\}|\bctx\.(?:getThreadNum\(\)|threadNum\b)": ("numbers of threads", "repeat on each slave"),
    r"\$\{__fifo(?:Put|Get|Pop|Size)\(": ("queues of __fifoPut", "are those of one slave"),
    r"\$\{__setProperty\(|\bprops\.(?:put|setProperty)\(": (
        "properties that the plan sets",
        "are set on one slave only",
    ),
    r"\$\{__(?:StringFromFile|CSVRead)\(": (
        "rows of __StringFromFile and __CSVRead",
        "are read by each slave from the first",
    ),
    r"\$\{__samplesCount": ("counts of __samplesCount", "are those of one slave"),
}
_COUNTER = re.compile(r"\$\{__counter\(\s*(?P<each>\w*)\s*(?:,\s*(?P<name>[\w.-]*)\s*)?\)\}")


def divide_ones(elements: Sequence[ET.Element], fields_of: Callable[[ET.Element], Fields], division: Division) -> None:
    """Divide what is one for all users of a JVM: executions, groups of users, ids; note by name what cannot be."""
    if division.slaves == 1:
        return
    for element in elements:
        kind = element.tag.rpartition(".")[2]
        if kind == "ThroughputController":
            _divide_executions(fields_of(element), division)
        elif kind == "SyncTimer":
            _divide_group(fields_of(element), division)
        elif kind == "CounterConfig":
            _divide_ids(fields_of(element), division)
        elif kind == "JDBCDataSource":
            _divide_number(fields_of(element), "poolMax", "connections", division, least=1)
        elif kind == "UserParameters" and len(element.findall(_COLUMNS)) > 1:
            division.ones.append(f"{title(element)} ({kind}): by the number of the user, which repeats on each slave")
        elif kind == "RandomVariableConfig" and plans.field_text(element, "perThread") != "true":
            divide_seed(fields_of(element), "randomSeed", division)
        elif kind in _SHARED:
            division.ones.append(f"{title(element)} ({kind}): {_SHARED[kind]}")
        if plans.field_text(element, _ACROSS_THREADS) == "true":
            division.ones.append(f"{title(element)} ({kind}): across the threads of each slave, not of all")
        _divide_counters(element, division)
    for pattern, (what, how) in _TEXTS.items():
        names = [title(element) for element in elements if any(re.search(pattern, text) for text in _texts(element))]
        if names:
            division.ones.append(f"{what} {how} (in {', '.join(dict.fromkeys(names))})")


def _texts(element: ET.Element) -> Iterable[str]:
    return (element.get("testname", ""), *element.itertext())


def _divide_executions(fields: Fields, division: Division) -> None:
    """Of a Throughput Controller that counts the executions of all users: those in percent need no division."""
    if fields.raw("ThroughputController.style") != "0" or fields.raw("ThroughputController.perThread") == "true":
        return
    _divide_number(fields, "ThroughputController.maxThroughput", "executions", division)


def _divide_group(fields: Fields, division: Division) -> None:
    """The users that a Synchronizing Timer releases together; 0 are all those of a thread group."""
    if _divide_number(fields, "groupSize", "users released together", division, least=1):
        division.ones.append(f"{fields.name} (SyncTimer): users are released together on each slave by itself")


def _divide_number(fields: Fields, name: str, what: str, division: Division, least: int = 0) -> bool:
    try:
        number = number_text(fields.text(name), is_whole_number=True)
    except UnknownValueError as text:
        division.undivided.append(f"{what} of {fields.name}: {text} is known only during the run")
        return True
    field = holder(fields.element, name)
    if field is None or number is None or (least and number == "0"):
        return bool(least and number == "0")
    field.tag, field.text = (
        "stringProp",
        division.reference(division.divided(f"{what} of {fields.name}", number, is_whole_number=True, least=least)),
    )
    return True


def _divide_ids(fields: Fields, division: Division) -> None:
    """Have the slaves count in turn: with 2 of them, one has 1, 3, 5 ... and the other 2, 4, 6 ..."""
    if fields.raw("CounterConfig.per_user") == "true":
        return
    try:
        start, step = (fields.whole(f"CounterConfig.{name}", digits=19) for name in ("start", "incr"))
    except UnknownValueError as text:
        division.ones.append(f"{fields.name} (Counter): each slave counts by itself, as {text} is known only then")
        return
    first = holder(fields.element, "CounterConfig.start")
    if first is None:
        first = ET.SubElement(fields.element, "stringProp", name="CounterConfig.start")
    first.tag, first.text = "stringProp", division.reference([str(start + n * step) for n in range(division.slaves)])
    by = holder(fields.element, "CounterConfig.incr")
    if by is not None:
        by.tag, by.text = "stringProp", str(step * division.slaves)


def _divide_counters(element: ET.Element, division: Division) -> None:
    """Let slaves take turns in __counter, where it counts for all users together."""

    def in_turn(call: re.Match[str]) -> str:
        if call["each"].lower() == "true":
            return call[0]
        number = division.reference([str(n + 1) for n in range(division.slaves)])
        return f"${{__jexl3((${{__counter(FALSE,)}}-1)*{division.slaves}+{number},{call['name'] or ''})}}"

    for each in element.iter():
        if each.text:
            each.text = _COUNTER.sub(in_turn, each.text)
        if "__counter(" in each.get("testname", ""):
            each.set("testname", _COUNTER.sub(in_turn, each.get("testname", "")))
