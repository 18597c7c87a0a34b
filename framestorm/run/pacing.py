"""What timers and pools would do otherwise than a plan says, found before the load: JMeter runs it without a word."""

import re
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from framestorm.load.fields import Fields, UnknownValueError
from framestorm.load.reading import PacedPlace, places_of
from framestorm.model import plan as plans
from framestorm.model.load import Load
from framestorm.model.plan_files import Known
from framestorm.run.finding import Finding

_FEEDBACK = re.compile(r"\$\{__tstFeedback\(\s*([^,()]*)")
_SHAPING = "VariableThroughputTimer"


def findings(
    plan_name: str, roots: Iterable[ET.Element], known: Known, values: Mapping[str, str], loads: Sequence[Load]
) -> Iterator[Finding]:
    """What the timers of a plan and its fragments, and the pools that follow one, would do otherwise than they say."""
    places = [place for root in roots for place in places_of(root)]
    timers = {known.value(each.element.get("testname", "")) for each in places if each.element.tag.endswith(_SHAPING)}
    for place in places:
        kind = place.element.tag.rpartition(".")[2]
        where, fields = (
            f"{plan_name}: {kind} {place.element.get('testname', '')!r}",
            Fields(place.element, known, values),
        )
        try:
            yield from _of_pool(where, place, known, timers)
            if kind == "ConcurrencyThreadGroup":
                yield from _of_users(where, fields)
            if kind == "SyncTimer":
                yield from _of_group(where, place, fields, loads)
        except UnknownValueError:
            continue  # JMeter alone knows what it will do
    for load in loads:
        if load.is_timer and not load.unknown and load.most <= 0:
            yield Finding(f"{plan_name}: {load.kind} {load.name!r} has no rate: the users that it paces send nothing")
    precise = Counter(load.groups for load in loads if load.kind == "PreciseThroughputTimer")
    for groups, n in precise.items():
        if n > 1:
            yield Finding(
                f"{plan_name}: the {n} Precise Throughput Timers of thread group {groups[0]!r} share one schedule in "
                "JMeter 5.5, that of the timer which is asked first: put them into thread groups of their own"
            )


def _of_pool(where: str, place: PacedPlace, known: Known, timers: set[str | None]) -> Iterator[Finding]:
    for field in place.element:
        for name in _FEEDBACK.findall(field.text or ""):
            timer = known.value(name.strip())
            if timer is not None and timer not in timers and None not in timers:
                others = ", ".join(sorted(repr(each) for each in timers if each))
                but = f", but {others}" if others else ""
                yield Finding(
                    f"{where} follows the timer {timer!r} by __tstFeedback, and the plan has no enabled Throughput "
                    f"Shaping Timer of this name{but}: its users would stay as few as they begin",
                    is_fatal=True,
                )


def _of_users(where: str, fields: Fields) -> Iterator[Finding]:
    text = fields.text("TargetLevel")
    if text and not re.fullmatch(r"[+-]?\d+", text):
        yield Finding(f"{where} asks for {text!r} users, which JMeter takes for 0: give a whole number", is_fatal=True)


def _of_group(where: str, place: PacedPlace, fields: Fields, loads: Sequence[Load]) -> Iterator[Finding]:
    size, timeout_ms = fields.whole("groupSize"), fields.whole("timeoutInMs")
    own = [each.get("testname", "") for each in place.within if each.tag.endswith("ThreadGroup")]
    paced = [load for load in loads if not load.is_timer and not load.is_aside and (not own or load.name in own)]
    if not paced or any(load.total is None or load.model != "users" for load in paced):
        return
    users = sum(load.total or 0 for load in paced)
    if size > users:
        until = f"until its time-out of {timeout_ms} ms" if timeout_ms else "for ever"
        yield Finding(
            f"{where} waits for {size} users, and its thread group has {users}: they would wait {until}",
            is_fatal=not timeout_ms,
        )
        return
    loops = _loops(place, fields.known)
    if size > 1 and not timeout_ms and loops and users * loops % size:
        yield Finding(
            f"{where} releases {size} users together, but {users} users with {loops} loops each do not fill its "
            f"groups: the last {users * loops % size} would wait for ever; give it a time-out"
        )


def _loops(place: PacedPlace, known: Known) -> int:
    """How often each user runs what a timer acts on, 0 if that is not known: it stands in a thread group itself."""
    group = place.within[-1] if place.within else None
    if group is None or group.tag != "ThreadGroup":
        return 0
    if known.value(plans.field_text(group, "ThreadGroup.scheduler")) not in ("", "false"):
        return 0
    controller = group.find("elementProp[@name='ThreadGroup.main_controller']")
    text = known.value(plans.field_text(controller, "LoopController.loops")) if controller is not None else None
    return int(text) if text and text.isdecimal() else 0
