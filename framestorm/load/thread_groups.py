"""What each thread group and timer of JMeter and jmeter-plugins asks for, by its fields: declared once."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from framestorm.load import timers
from framestorm.load.fields import MOST_STEPS, STEPS, Fields, UnknownValueError, area, calls, curve, stretches
from framestorm.load.schedule import read_schedule
from framestorm.model.load import Load, LoadModel

LOOPS = "its end: that of its loops"
Total = Literal["users", "rate", "users of the first step", "most users at the same time"]
_FEEDBACK = re.compile(r"\$\{__tstFeedback\((?P<words>[^()]*)\)\}")


@dataclass(frozen=True)
class LoadKind:
    """A class of thread groups or timers: what it asks for, and which of its fields have a total over all slaves.

    totals: fields with a total, by their names. table: a field with rows, and the columns in which they have a total.
    steps: pairs of fields, so many users in each such period.
    """

    model: LoadModel
    read: Callable[[Fields, Load], Load]
    totals: Mapping[str, Total] = field(default_factory=dict)
    table: tuple[str, tuple[int, ...]] | None = None
    steps: tuple[tuple[str, str], ...] = ()


def kind_of(element: ET.Element) -> LoadKind | None:
    """Return the kind of an element, None if it asks for no load."""
    return KINDS.get(element.tag.rpartition(".")[2])


def _of_threads(fields: Fields, load: Load) -> Load:
    users = fields.whole("ThreadGroup.num_threads")
    ramp_s = fields.number("ThreadGroup.ramp_time")
    load, has_end = replace(load, total=users, limit=users), fields.text("ThreadGroup.scheduler") == "true"
    points = [(0.0, 0.0), (ramp_s, float(users))]
    if not has_end:
        return replace(load, curve=curve(points), has_end=False, unknown=LOOPS)
    lasts_s, delay_s = fields.number("ThreadGroup.duration"), fields.number("ThreadGroup.delay")
    if lasts_s < ramp_s:
        points[1] = (lasts_s, users * lasts_s / ramp_s)
    start_s = None if load.start_s is None else load.start_s + delay_s
    return replace(load, curve=curve([*points, (lasts_s, points[1][1])]), start_s=start_s, delay_s=delay_s)


def _rising(target: float, ramp_s: float, hold_s: float, steps: int) -> list[tuple[float, float]]:
    """Return the points of jmeter-plugins' target, ramp, steps and hold."""
    points = [(0.0, 0.0)]
    if ramp_s and steps:
        if steps > MOST_STEPS:
            raise UnknownValueError(STEPS)
        for step in range(steps):
            points += [(ramp_s * step / steps, target * (step + 1) / steps)]
            points += [(ramp_s * (step + 1) / steps, target * (step + 1) / steps)]
    return [*points, (ramp_s, target), (ramp_s + hold_s, target)]


def _unit_s(fields: Fields) -> float:
    return 60.0 if fields.text("Unit") == "M" else 1.0


def _of_concurrency(fields: Fields, load: Load) -> Load:
    unit_s = _unit_s(fields)
    ramp_s, hold_s = (float(round(fields.number(name) * unit_s)) for name in ("RampUp", "Hold"))
    if feedback := _FEEDBACK.search(fields.raw("TargetLevel")):
        timer, _, limit = ([word.strip() for word in feedback["words"].split(",")] + ["", ""])[:3]
        most = fields.known.value(limit) or ""
        why = f"it follows the timer {timer!r}" + (f", with at most {most} users" if most else "")
        return replace(load, limit=int(most) if most.isdecimal() else None, unknown=why)
    users = fields.whole("TargetLevel", 1)
    points = curve(_rising(users, ramp_s, hold_s, fields.whole("Steps")))
    return replace(load, total=users, limit=users, curve=points)


def _limit(fields: Fields) -> int | None:
    text = fields.text("ConcurrencyLimit")
    return int(text) if text.isdecimal() else None


def _of_arrivals(fields: Fields, load: Load) -> Load:
    unit_s = _unit_s(fields)
    ramp_s, hold_s = (float(round(fields.number(name) * unit_s)) for name in ("RampUp", "Hold"))
    points = curve(_rising(fields.number("TargetLevel", 1) / unit_s, ramp_s, hold_s, fields.whole("Steps")))
    return replace(load, total=round(area(points)), curve=points, limit=_limit(fields))


def _of_free_form(fields: Fields, load: Load) -> Load:
    unit_s = _unit_s(fields)
    rows = [(row[0] / unit_s, row[1] / unit_s, row[2] * unit_s) for row in fields.rows("Schedule") if len(row) > 2]
    points = curve(stretches(rows))
    return replace(load, total=round(area(points)), curve=points, limit=_limit(fields))


def _of_open_model(fields: Fields, load: Load) -> Load:
    steps = read_schedule(fields.text("OpenModelThreadGroup.schedule"))
    points = curve(stretches((step.start, step.end, step.length_s) for step in steps))
    return replace(load, total=sum(step.arrivals for step in steps), curve=points)


def _of_stepping(fields: Fields, load: Load) -> Load:
    users = fields.whole("ThreadGroup.num_threads")
    step, stop = (fields.whole(f"{way} users count") or users for way in ("Start", "Stop"))
    burst = min(fields.whole("Start users count burst"), users)
    at_first = burst if burst > 0 else min(step, users)
    ramp_s = fields.number("rampUp")
    at_s, up = fields.number("Threads initial delay"), float(at_first)
    points = [(0.0, 0.0), (at_s, 0.0), (at_s + ramp_s, up)]
    while up < users:
        at_s += fields.number("Start users period") + ramp_s
        points += [(at_s, up), (at_s + ramp_s, min(users, up + step))]
        up = min(float(users), up + step)
        if len(points) > MOST_STEPS:
            raise UnknownValueError(STEPS)
    at_s += ramp_s + fields.number("flighttime")
    while up > 0 and stop > 0:
        points += [(at_s, up), (at_s, max(0.0, up - stop))]
        up = max(0.0, up - stop)
        at_s += fields.number("Stop users period")
        if len(points) > 2 * MOST_STEPS:
            raise UnknownValueError(STEPS)
    unknown = LOOPS if fields.ends_by_loops else ""
    return replace(load, total=users, limit=users, curve=curve(points), unknown=unknown)


def _of_ultimate(fields: Fields, load: Load) -> Load:
    rows = fields.rows("ultimatethreadgroupdata") or fields.rows("threads_schedule")
    if text := next(filter(None, map(fields.properties.get, timers.property_names(fields))), None):
        rows = [row for name, row in calls(text) if name == "spawn" and len(row) == 5]
    rows = [row for row in rows if len(row) > 4]
    at_s = sorted({0.0, *(x for row in rows for x in (row[1], row[1] + row[2], sum(row[1:4]), sum(row[1:5])))})

    def users(of: list[float], x: float) -> float:
        begin, up, down, end = of[1], of[1] + of[2], sum(of[1:4]), sum(of[1:5])
        if x < begin or x > end:
            return 0.0
        if x < up:
            return of[0] * (x - begin) / of[2]
        return of[0] if x <= down else of[0] * (end - x) / of[4]

    points = []
    for x in at_s:
        before = sum(users(row, x) if row[1] != x or row[2] else 0 for row in rows)
        after = sum(users(row, x) if sum(row[1:5]) != x or row[4] else 0 for row in rows)
        points += [(x, before), (x, after)]
    total, unknown = sum(int(row[0]) for row in rows), LOOPS if fields.ends_by_loops else ""
    return replace(load, total=total, limit=total, curve=curve(points), unknown=unknown)


_LIMIT: dict[str, Total] = {"ConcurrencyLimit": "most users at the same time"}
_OF_THREADS = LoadKind("users", _of_threads, {"ThreadGroup.num_threads": "users"})
KINDS: dict[str, LoadKind] = {
    "ThreadGroup": _OF_THREADS,
    # Each slave sets up and tears down for itself, so their users are no total.
    "SetupThreadGroup": replace(_OF_THREADS, totals={}),
    "PostThreadGroup": replace(_OF_THREADS, totals={}),
    "ConcurrencyThreadGroup": LoadKind("users", _of_concurrency, {"TargetLevel": "users"}),
    "ArrivalsThreadGroup": LoadKind("arrivals", _of_arrivals, {"TargetLevel": "rate", **_LIMIT}),
    "FreeFormArrivalsThreadGroup": LoadKind("arrivals", _of_free_form, _LIMIT, table=("Schedule", (0, 1))),
    "OpenModelThreadGroup": LoadKind("arrivals", _of_open_model),
    "SteppingThreadGroup": LoadKind(
        "users",
        _of_stepping,
        {"ThreadGroup.num_threads": "users", "Start users count burst": "users of the first step"},
        steps=(("Start users count", "Start users period"), ("Stop users count", "Stop users period")),
    ),
    "UltimateThreadGroup": LoadKind("users", _of_ultimate, table=("ultimatethreadgroupdata", (0,))),
    "ConstantThroughputTimer": LoadKind("arrivals", timers.of_constant_timer, {"throughput": "rate"}),
    "PreciseThroughputTimer": LoadKind("arrivals", timers.of_precise_timer, {"throughput": "rate"}),
    "VariableThroughputTimer": LoadKind("arrivals", timers.of_shaping_timer, table=("load_profile", (0, 1))),
}
