"""The load that a run was asked for, in words: `80/s for 10 s`, `20 users for 30 s, ramp-up 2 s`."""

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

from framestorm.model.criteria import ALL
from framestorm.model.load import Load
from framestorm.model.run import Record
from framestorm.model.sample import noun
from framestorm.model.series import Curves, Series
from framestorm.model.summary import Summary
from framestorm.model.units import count, plural
from framestorm.plain import as_label

MAX_GROUPS = 3
MAX_STEPS = 3
MAX_CHARACTERS = 120
AT_RANDOM = "arriving at random"
LONG_S = (("h", 3600.0), ("min", 60.0))


class _Step(NamedTuple):
    """A part of a schedule: for so many seconds, from one level to another."""

    length_s: float
    start: float
    end: float


def load_in_words(summary: Summary) -> str:
    """Return what the thread groups of the run were asked for; empty if the run does not say it."""
    return _in_words(summary.run, summary.unit, summary.series, words_of)


def load_key(run: Summary | Record) -> str:
    """Return what runs of one load have in common, by a report or by the record of a run without one."""
    if isinstance(run, Summary):
        return _in_words(run.run, run.unit, run.series, key_of)
    return _in_words(run, noun(run.label or ALL), Series(), key_of)


def _in_words(record: Record, unit: str, series: Series, tell: Callable[[Load], str]) -> str:
    properties = record.properties
    # Those of jmx/tasks.jmx; other plans have properties of some of these names.
    if {"tasks", "task_s", "workers"} <= properties.keys():
        return f"{properties['tasks']} tasks of {properties['task_s']} s on {properties['workers']} workers"
    loads = [load for load in record.loads if not (load.is_aside or load.is_timer)] or _of_series(series)
    timers = [load for load in record.loads if load.is_timer and load.points]
    of_groups = []
    for load in loads[:MAX_GROUPS]:
        words = tell(load)
        # A timer of several groups is told with the first.
        paced = [tell(timer) for timer in timers if timer.groups[:1] == (load.name,)]
        words += f", paced to {' and '.join(paced)}" if paced else ""
        of_groups.append(f"{as_label(load.name)}: {words}" if len(loads) > 1 else words)
    if len(loads) > MAX_GROUPS:
        of_groups.append(f"{plural(len(loads) - MAX_GROUPS, 'more thread group')}")
    if not loads and series.threads:
        return f"up to {plural(series.threads.most, 'user')}"
    sleep = properties.get("sleep_s", "0")
    pause = f", a pause of {sleep} s before each {unit}" if loads and sleep not in ("", "0") else ""
    return "; ".join(of_groups) + pause


def _of_series(series: Series) -> list[Load]:
    """Of a run that was recorded without its loads: by the lines that its charts have for the kit's own plans."""
    under_way = series.threads or series.in_flight
    curves: tuple[tuple[Curves, Load], ...] = (
        (series.asked_per_s, Load("", "", "arrivals")),
        (under_way.asked if under_way else {}, Load("", "", "users")),
    )
    return [Load("", "", load.model, curve=_from_zero(curve)) for curve, load in curves if curve]


def _from_zero(curve: Curves) -> Curves:
    first = curve["x"][0] or 0.0
    return curve | {"x": [None if x is None else round(x - first, 3) for x in curve["x"]]}


def words_of(load: Load) -> str:
    """Tell what a thread group, or a timer, asks for."""
    return _line_of(load) + ("" if load.seed is None else f", {AT_RANDOM} (Poisson, seed {load.seed})")


def key_of(load: Load) -> str:
    """Tell the same without the seed: another draw of random arrivals is the same load."""
    return _line_of(load) + ("" if load.seed is None else f", {AT_RANDOM} (Poisson)")


def _line_of(load: Load) -> str:
    if load.words and len(load.words) <= MAX_CHARACTERS:
        return load.words
    if not load.points:
        return _level(load, load.total) if load.total else load.unknown or "as the plan says"
    steps = [_Step(x - at, start, end) for (at, start), (x, end) in pairwise(load.points) if x > at]
    ramp = steps.pop(0) if steps and steps[0].start == 0 < steps[0].end else None
    while steps and steps[-1].end == 0:
        steps.pop()
    words = _level(load, load.most)
    if {each for step in steps for each in (step.start, step.end)} <= {load.most}:
        words += f" for {_length(sum(step.length_s for step in steps))}" if steps else ""
    elif len(steps) <= MAX_STEPS:
        words = ", then ".join(_step(load, step) for step in steps)
    else:
        words = f"up to {words} in {count(len(steps))} steps over {_length(sum(step.length_s for step in steps))}"
    return f"{words}, ramp-up {_length(ramp.length_s)}" if ramp else words


def _step(load: Load, step: _Step) -> str:
    if step.start == step.end:
        return f"{_level(load, step.start)} for {_length(step.length_s)}"
    return f"from {step.start:g} to {_level(load, step.end)} in {_length(step.length_s)}"


def _level(load: Load, level: float) -> str:
    return plural(round(level), "user") if load.model == "users" else f"{level:.4g}/s"


def _length(seconds: float) -> str:
    """Return a time as people set it: 600 s is 10 min."""
    for unit, scale in LONG_S:
        if seconds >= 2 * scale and seconds % scale == 0:
            return f"{seconds / scale:g} {unit}"
    return f"{round(seconds, 3):g} s"
