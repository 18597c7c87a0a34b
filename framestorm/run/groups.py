"""What JMeter will make of each thread group's fields: who starts, how often they loop, and when they end.

JMeter takes a field that it cannot read for 0, and so one that is missing, without a word. Sources, of JMeter 5.5:
ThreadGroup, AbstractThreadGroup, LoopController; of jmeter-plugins 2.10: UltimateThreadGroup.
"""

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence

from framestorm.model import facets
from framestorm.model import plan as plans
from framestorm.model.plan_files import Known
from framestorm.model.units import plural
from framestorm.model.variables import names_in
from framestorm.run.finding import Finding

_SET_UP = "SetupThreadGroup"
# Groups whose users and loops are in these fields; further ones have a schedule of their own.
_COUNTING = ("ThreadGroup", _SET_UP, "PostThreadGroup")
_USERS, _LOOPS = "ThreadGroup.num_threads", "LoopController.loops"
_FOREVER = "LoopController.continue_forever"
_LIFETIME, _DURATION, _DELAY = "ThreadGroup.scheduler", "ThreadGroup.duration", "ThreadGroup.delay"
_RAMP_UP = "ThreadGroup.ramp_time"
_ULTIMATE, _ULTIMATE_ROWS, _ULTIMATE_COLUMNS = ".UltimateThreadGroup", "ultimatethreadgroupdata", 5
# Those that make their main controller themselves.
_WITH_OWN_CONTROLLER = ("ConcurrencyThreadGroup", "ArrivalsThreadGroup")
_ON_ERROR = ("continue", "startnextloop", "stopthread", "stoptest", "stoptestnow")
_SAVE = "open the plan in JMeter 5.5 and save it there"


def findings(plan_name: str, elements: Sequence[ET.Element], known: Known) -> Iterator[Finding]:
    """Yield what JMeter would do with the thread groups among these elements, where that is not what they say."""
    groups = [element for element in elements if element.tag.endswith("ThreadGroup")]
    idle = [group for group in groups if _is_without_users(group, known)]
    of_load = [group for group in groups if group.tag not in (_SET_UP, "PostThreadGroup")]
    is_nobody = bool(of_load) and all(group in idle for group in of_load)
    are_told = False
    for group in groups:
        place = f"{plan_name}: {group.tag.rpartition('.')[2]} {group.get('testname', '')!r}"
        of_group = list(_of_group(group, place, known))
        yield from of_group
        are_told |= any(each.is_fatal for each in of_group)
        if group in idle and not (is_nobody or any(each.is_fatal for each in of_group)):
            yield Finding(f"{place} asks for 0 users: nobody starts, and nothing of it is sent")
    for element in elements:
        if element.tag == "LoopController":
            yield from _of_loop(element, plan_name, known)
    if is_nobody and not are_told:
        yield Finding(f"{plan_name}: no thread group has a user, so nothing would be sent: ask for at least one", True)


def _of_group(group: ET.Element, place: str, known: Known) -> Iterator[Finding]:
    if group.tag.endswith(_ULTIMATE):
        yield from _of_table(group, place)
    controller = next((each for each in group if each.get("name") == "ThreadGroup.main_controller"), None)
    if controller is None and not group.tag.endswith(_WITH_OWN_CONTROLLER):
        why = "has no main controller (ThreadGroup.main_controller), without which none of its users can run"
        yield Finding(f"{place} {why}: {_SAVE}", True)
    if group.tag not in _COUNTING:
        return
    yield from _number(group, place, _USERS, "users", known)
    if controller is not None and controller.get("elementType", "LoopController") == "LoopController":
        yield from _number(controller, place, _LOOPS, "loops", known)
        yield from _end(group, controller, place, known)
    yield from _lifetime(group, place, known)
    ramp = _Value(group, _RAMP_UP, known)
    if zero := ramp.why_zero():
        yield Finding(f"{place} has {zero} as its ramp-up: JMeter takes it for 0 s, and starts all users at once")
    on_error = known.value(plans.field_text(group, "ThreadGroup.on_sample_error"))
    if on_error and on_error.lower() not in _ON_ERROR:
        words = ", ".join(_ON_ERROR)
        yield Finding(
            f"{place} has {on_error!r} as its action after an error, and JMeter continues: use one of {words}"
        )


class _Value:
    """A field of a group, as JMeter reads it; `number` is None if that is known only during the run."""

    def __init__(self, element: ET.Element, name: str, known: Known) -> None:
        self.text = next((child.text or "" for child in element if child.get("name") == name), None)
        value = known.value(self.text or "")
        self.value = value
        # Fields of a group are read before any of its elements has run: only User Defined Variables are there.
        self.undefined = [each for each in names_in(self.text or "") if not known.defines(each)]
        self.hint = known.hint(self.undefined[0]) if self.undefined else ""
        self.number: int | None = None
        if self.undefined or not self.text or (value is not None and not _is_number(value)):
            self.number = 0
        elif value is not None:
            self.number = int(value)

    def why_zero(self) -> str | None:
        """Return what is there instead of a number; None if it is one, or if nothing is there."""
        if self.undefined:
            return f"{self.text}, but nothing defines {self.undefined[0]}{self.hint},"
        if self.text and self.value is not None and not _is_number(self.value):
            return repr(self.value)
        return None


def _is_number(text: str) -> bool:
    # Times are longs in JMeter, but nobody waits for so long.
    return bool(re.fullmatch("[-+]?0*[0-9]{1,10}", text)) and abs(int(text)) <= facets.LARGEST


def _number(element: ET.Element, place: str, name: str, what: str, known: Known) -> Iterator[Finding]:
    """Yield a number of users or loops that JMeter takes for 0 though it is something else."""
    field = _Value(element, name, known)
    if field.undefined:
        why = f"asks for {field.text} {what}, but {field.undefined[0]} is not defined{field.hint}"
        starts = "starts none" if what == "users" else "sends nothing"
        yield Finding(f"{place} {why}: JMeter takes it for 0 and {starts}", True)
    elif zero := field.why_zero():
        yield Finding(f"{place} asks for {zero} {what}, which JMeter takes for 0: give a whole number", True)
    elif not field.text:
        yield Finding(f"{place} has no number of {what} ({name}), which JMeter takes for 0: give a whole number", True)


def _of_loop(element: ET.Element, plan_name: str, known: Known) -> Iterator[Finding]:
    """Yield the loops of a controller within a group, which may be a variable that only the run has."""
    text, place = plans.field_text(element, _LOOPS), f"{plan_name}: {plans.title(element)}"
    value = known.value_in_run(text)
    if not text:
        yield Finding(f"{place} has no number of loops ({_LOOPS}), so JMeter runs nothing in it: give a whole number")
    elif value is not None and not _is_number(value):
        # A script in a file may set a variable.
        is_fatal = not names_in(text)
        yield Finding(f"{place} asks for {value!r} loops, which JMeter takes for 0: give a whole number", is_fatal)


def _end(group: ET.Element, controller: ET.Element, place: str, known: Known) -> Iterator[Finding]:
    """Loops that never end: of a main controller that starts again after its last, as one does without its field."""
    field = _Value(controller, _LOOPS, known)
    loops = field.number
    has_lifetime = _is_true(plans.field_text(group, _LIFETIME), known)
    if loops is not None and loops >= 0 and _is_again(controller):
        what = "sets" if any(child.get("name") == _FOREVER for child in controller) else "has no"
        why = f"{what} {_FOREVER} in its main controller, so JMeter 5.5 begins again after {plural(loops, 'loop')}"
        remedy = f'write <boolProp name="{_FOREVER}">false</boolProp> there, or {_SAVE}'
        until = "until the end of its lifetime" if has_lifetime else "and never ends"
        yield Finding(f"{place} {why}, {until}: {remedy}", is_fatal=not has_lifetime)
    elif loops == 0 and field.text and field.why_zero() is None:
        yield Finding(f"{place} asks for 0 loops: its users start, and send nothing")
    elif loops is not None and loops < -1:
        yield Finding(f"{place} asks for {loops} loops, which JMeter takes for loops without end, as -1")
    if group.tag == _SET_UP and loops is not None and loops < 0 and not has_lifetime:
        yield Finding(f"{place} loops without end and sets up: unless something stops it, no other group starts")


def _is_true(text: str, known: Known) -> bool:
    return (known.value(text) or "").strip().lower() == "true"


def _is_again(controller: ET.Element) -> bool:
    """Return whether a main controller starts again after its last loop."""
    forever = next((child.text or "" for child in controller if child.get("name") == _FOREVER), "true")
    return forever.strip().lower() == "true"


def _lifetime(group: ET.Element, place: str, known: Known) -> Iterator[Finding]:
    duration, delay = _Value(group, _DURATION, known), _Value(group, _DELAY, known)
    lifetime = next((child.text or "" for child in group if child.get("name") == _LIFETIME), None)
    if lifetime is None and duration.number:
        why = f"asks for a duration of {duration.value} s, but has no {_LIFETIME}: JMeter does not use it"
        yield Finding(f'{place} {why}; write <boolProp name="{_LIFETIME}">true</boolProp>, or leave the duration out')
    if lifetime is None or not _is_true(lifetime, known):
        return
    remedy = "give a whole number of seconds, or switch the lifetime off"
    if duration.undefined:
        why = f"has a thread lifetime with the duration {duration.text}, but {duration.undefined[0]} is not defined"
        yield Finding(f"{place} {why}{duration.hint}: JMeter starts no user; {remedy}", True)
    elif duration.number is not None and duration.number <= 0:
        why = f"has a thread lifetime with the duration {duration.value!r}, for which JMeter starts no user"
        yield Finding(f"{place} {why}: {remedy}", True)
    if zero := delay.why_zero():
        yield Finding(f"{place} has {zero} as its delay: JMeter takes it for 0 s, and starts at once")
    elif delay.number is not None and delay.number < 0:
        yield Finding(f"{place} has the delay {delay.value} s, for which JMeter starts no user: give 0 or more", True)


def _of_table(group: ET.Element, place: str) -> Iterator[Finding]:
    """The rows of an Ultimate Thread Group: one that lacks a column ends JMeter's engine in the middle of the run."""
    rows = group.findall(f"collectionProp[@name='{_ULTIMATE_ROWS}']/collectionProp")
    for number, row in enumerate(rows, 1):
        if len(row) < _ULTIMATE_COLUMNS:
            why = f"has {len(row)} of {_ULTIMATE_COLUMNS} columns in row {number} of its schedule"
            columns = "users, initial delay, startup time, hold time, shutdown time"
            yield Finding(f"{place} {why}, at which JMeter's engine would end: give all of {columns}", True)
            return
    if not rows and group.find(f"stringProp[@name='{_ULTIMATE_ROWS}']") is None:
        yield Finding(f"{place} has no row in its schedule, so nobody starts: add one", True)


def _is_without_users(group: ET.Element, known: Known) -> bool:
    return group.tag in _COUNTING and (number := _Value(group, _USERS, known).number) is not None and number <= 0


def iterations(group: ET.Element, known: Known) -> tuple[int | None, int | None]:
    """Return the users of a thread group, and the loops of each: None without end; no users if they are not known."""
    controller = next((each for each in group if each.get("name") == "ThreadGroup.main_controller"), None)
    users = _Value(group, _USERS, known).number if group.tag in _COUNTING else None
    if controller is None:
        return None, None
    loops = _Value(controller, _LOOPS, known)
    if loops.number is None:
        return None, None
    return users, None if loops.number < 0 or _is_again(controller) else loops.number
