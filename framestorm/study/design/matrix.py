"""The points of a study: what each one sets, which are chosen, in which order they run, and how long that takes."""

import itertools
import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from framestorm import paths
from framestorm.errors import UsageError
from framestorm.model import facets
from framestorm.model import plan as plans
from framestorm.model.plan import Plan
from framestorm.model.study import Level, Study, Value
from framestorm.model.units import as_number, as_text, duration, names_in
from framestorm.platform import registry
from framestorm.platform.base import SettingError
from framestorm.platform.registry import PLATFORMS
from framestorm.points import expressions
from framestorm.points.expressions import ExpressionError, Number
from framestorm.points.folder import Overrides, Point
from framestorm.study.design.yaml_lines import PointError, YamlPath, choices

# Time of a run in addition to its load: start and end of JMeter, its dashboard, the report, settings of the target.
# Measured on two cores; each run of a study improves the estimate for the remaining ones.
RUN_OVERHEAD_S = 5.5
# In these, a row of data fills in {column} for each request (jmx/java/plan/Requests.java).
FILLED_BY_ROWS = {
    ("target", "url"), *(("properties", name) for name in ("headers", "body", "form", "expect", "reject")),
}  # fmt: skip
PLACEHOLDER = re.compile(r"\{([A-Za-z_][\w.]*)\}")


def points(study: Study) -> list[Point]:
    """Return every point once, in the order of the factors in study.yml.

    Raises:
        PointError: a level or a value gives a point that cannot be run.
    """
    by_id: dict[str, Point] = {}
    for block in study.blocks or ({},):
        places = (
            [number for number, level in enumerate(factor.values) if level in block.get(name, factor.values)]
            for name, factor in study.factors.items()
        )
        for chosen in itertools.product(*places):
            point = _point(study, dict(zip(study.factors, chosen, strict=True)))
            by_id.setdefault(point.id, point)
    return list(by_id.values())


def override(study: Study, overrides: Overrides) -> Study:
    """Return the study with fixed properties and repetitions as set by -J and --repetitions.

    Raises:
        UsageError: the plan does not have a property, the study varies it, or its value is out of range.
    """
    properties, repetitions = overrides.properties, overrides.repetitions
    varied = {
        property_: name
        for name, factor in study.factors.items()
        for value in factor.values
        for property_ in factor.level(name, value).properties
    }
    for name in properties:
        if name in varied:
            raise UsageError(f"-J{name}: the study varies it, by its factor {varied[name]}; choose levels by --only")
    changes: dict[str, object] = {"properties": {**study.properties, **properties}}
    if repetitions is not None:
        if study.stop and repetitions < 2:
            raise UsageError(
                f"--repetitions {repetitions}: the study's stop rule needs at least 2, for the variation between runs"
            )
        changes["repetitions"] = repetitions
        if study.stop and study.stop.at_most < repetitions:
            changes["stop"] = study.stop.model_copy(update={"at_most": repetitions})
    return study.model_copy(update=changes)


def choose(points: Sequence[Point], words: Iterable[str]) -> list[Point]:
    """The points that have one of the wanted levels of each factor; words: `factor=level` or `factor=level,level`.

    Raises:
        UsageError: there is no such factor, level or point.
    """
    chosen = list(points)
    wanted: dict[str, list[str]] = {}
    for word in words:
        name, equals, text = word.partition("=")
        factors = points[0].factors
        if not equals or not text:
            example = next(f"{factor}={as_text(level)}" for factor, level in factors.items())
            raise UsageError(f"--only {word}: give factor=level, for example --only {example}")
        if name not in factors:
            raise UsageError(f"--only {word}: unknown factor {name!r}{choices(name, list(factors))}")
        levels = list(dict.fromkeys(as_text(point.factors[name]) for point in points))
        for level in names_in(text, levels.__contains__):
            if level not in levels:
                raise UsageError(f"--only {word}: unknown level {level!r} of {name}{choices(level, levels)}")
            wanted.setdefault(name, []).append(level)
    for name, levels in wanted.items():
        chosen = [point for point in chosen if as_text(point.factors[name]) in levels]
    if not chosen:
        which = " ".join(words)
        raise UsageError(f"--only: the study has no point with {which}; ./run.sh study NAME --dry-run lists them")
    return chosen


def schedule(points: Sequence[Point], repetitions: int, seed: int, order: str) -> list[tuple[Point, int]]:
    """Return points with the number of their repetition (from 1), in the order in which they run."""
    return [(point, n) for n in range(1, repetitions + 1) for point in in_order(points, n, seed, order)]


def in_order(points: Sequence[Point], repetition: int, seed: int, order: str) -> list[Point]:
    """Return the points in the order of one repetition, which depends only on the seed and the repetition's number."""
    ordered = list(points)
    if order == "randomised":
        # Not used for security.
        random.Random(f"{seed}/{repetition}").shuffle(ordered)  # noqa: S311
    return ordered


@cache
def read_plan(plan: str) -> Plan:
    """Return a plan of the checkout.

    Raises:
        UsageError: the plan is missing or wrong.
    """
    return plans.read(paths.ROOT / plan)


def _point(study: Study, places: Mapping[str, int]) -> Point:
    """Return the point with these levels, each given by its position in its factor."""
    factors = {name: study.factors[name].values[number] for name, number in places.items()}
    base = Level.model_construct(plan=study.plan, properties=study.properties, target=study.target, run_s=study.run_s)
    settings: dict[YamlPath, tuple[Any, YamlPath]] = {
        key: (value, key) for key, value in _settings(base) if value is not None
    }
    set_by: dict[YamlPath, str] = {}
    for name, value in factors.items():
        place: YamlPath = ("factors", name, str(value) if study.factors[name].is_named else places[name])
        for key, setting in _settings(study.factors[name].level(name, value)):
            # The later level would win, and the point would not match its name; run_s is only an estimate.
            if (other := set_by.setdefault(key, name)) != name and key != ("run_s",):
                both = f"{other}={as_text(factors[other])} and {name}={as_text(value)}"
                what = ".".join(map(str, key))
                raise PointError((*place, *key), f"{both} both set {what}; a point can have it from one factor only")
            settings[key] = setting, (*place, *key)
    plan, plan_place = settings["plan",]
    try:
        of_plan = read_plan(plan)
    except UsageError as error:
        raise PointError(plan_place, str(error)) from None
    properties = {str(key[1]): each for key, each in settings.items() if key[0] == "properties"}
    url = of_plan.url
    if url is not None and url.name in properties:
        value, place = properties[url.name]
        what = "the address of the function is set by the target, not by a property; "
        raise PointError(place, f"{what}give target: {{kind: url, url: {as_text(value)}}}")
    resolver = _Resolver(factors, properties, of_plan)
    texts = {name: as_text(resolver.value(name)) for name in properties}
    target: dict[str, Any] = {}
    mappings: dict[str, dict[str, str]] = {}
    for (part, *names), (value, where) in settings.items():
        if part == "target" and len(names) == 1:
            target[str(names[0])] = resolver.resolve(value, where)
        elif part == "target":
            mappings.setdefault(str(names[0]), {})[str(names[1])] = as_text(resolver.resolve(value, where))
    try:
        typed = registry.read({**mappings, **target})
    except SettingError as error:
        where = settings.get(("target", error.name), settings.get(("target", "kind"), (None, ("target",))))[1]
        raise PointError(where, error.what, error.allowed, error.seen) from None
    _check_properties(of_plan, plan, texts, {name: where for name, (_, where) in properties.items()})
    needs_url = url and facets.EMBEDDED not in url.facets and url.is_needed({**of_plan.defaults, **texts})
    if needs_url and not PLATFORMS[typed.kind].serves_any_function:
        what = f"{plan} can send to any function, but target.kind {typed.kind} serves only its own; give another kind"
        others = tuple(kind for kind, platform in PLATFORMS.items() if platform.serves_any_function)
        raise PointError(settings["target", "kind"][1], what, others)
    name = ",".join(f"{factor}={as_text(value)}" for factor, value in factors.items())
    load_s = resolver.resolve(*settings["run_s",])
    if load_s <= 0:
        raise PointError(settings["run_s",][1], f"run_s is {load_s:g} s at {name}, and has to be above 0")
    return Point(name, factors, plan, texts, typed, load_s)


def _settings(level: Level) -> Iterator[tuple[YamlPath, Any]]:
    """Yield what a level sets, each with its place below the level; environment variables one by one."""
    if level.plan is not None:
        yield ("plan",), level.plan
    if level.run_s is not None:
        yield ("run_s",), level.run_s
    for name, value in level.properties.items():
        yield ("properties", name), value
    for name, setting in level.target.items():
        if isinstance(setting, Mapping) and setting:
            yield from ((("target", name, variable), value) for variable, value in setting.items())
        else:
            yield ("target", name), setting


def _check_properties(of_plan: Plan, plan: str, texts: Mapping[str, str], places: Mapping[str, YamlPath]) -> None:
    """Check that the plan has the properties and that their values are in range."""
    allowed = sorted(each.name for each in of_plan.settable.values() if each is not of_plan.url)
    for name, place in places.items():
        if "." not in name and name not in allowed:
            raise PointError(place, f"{plan} has no property {name!r}", allowed, name)
        try:
            if name in of_plan.settable:
                of_plan.check(name, texts[name])
        except UsageError as error:
            raise PointError(place, str(error).removeprefix("-J")) from None


class _Resolver:
    """Resolves the values of one point: calculates expressions and fills in placeholders."""

    def __init__(
        self, factors: Mapping[str, Value], properties: Mapping[str, tuple[Any, YamlPath]], of_plan: Plan
    ) -> None:
        self._factors = factors
        self._properties = properties
        url = of_plan.url
        self._defaults = {name: default for name, default in of_plan.defaults.items() if not url or name != url.name}
        self._under_way: list[str] = []

    def value(self, name: str) -> Any:
        """Return the value of a property."""
        value, place = self._properties[name]
        if name in self._under_way:
            raise PointError(place, f"{name} needs itself: {' -> '.join([*self._under_way, name])}")
        self._under_way.append(name)
        resolved = self.resolve(value, place)
        self._under_way.pop()
        return resolved

    def resolve(self, value: Any, place: YamlPath) -> Any:
        """Return any value of study.yml."""
        if not isinstance(value, str):
            return value
        if not value.startswith("="):
            return PLACEHOLDER.sub(lambda match: self._filled(match, place), value)
        try:
            parsed = expressions.parse(value)
            return parsed.value({name: self._number(name, value, place) for name in sorted(parsed.names)})
        except ExpressionError as error:
            raise PointError(place, str(error)) from None

    def _filled(self, match: re.Match[str], place: YamlPath) -> str:
        name = match[1]
        if name in self._factors:
            return as_text(self._factors[name])
        if place[-2:] in FILLED_BY_ROWS and {**self._defaults, **self._properties}.get("rows"):
            return match[0]
        raise PointError(place, f"{match[0]} is not a factor", list(self._factors), name)

    def _number(self, name: str, text: str, place: YamlPath) -> Number:
        names = {**self._defaults, **self._properties, **self._factors}
        if name not in names:
            raise PointError(place, f"{text}: unknown name {name!r}", sorted(names), name)
        is_property = name in self._properties and name not in self._factors
        value = self.value(name) if is_property else names[name]
        number = as_number(value)
        if number is None:
            raise PointError(place, f"{text}: {name} is {value!r}, which is not a number")
        return number


def time_s(points: Iterable[Point], overheads_s: Sequence[float] = ()) -> float:
    """Estimated time of runs of these points; `overheads_s` are the times of earlier runs in addition to their load."""
    # The constant has the weight of one run, so that the first run does not change the estimate too much.
    overhead_s = (RUN_OVERHEAD_S + sum(overheads_s)) / (1 + len(overheads_s))
    return sum(max(0.0, point.load_s + point.target.settle_s + overhead_s) for point in points)


def shown_time(seconds: float) -> str:
    """Return a time for people at a terminal."""
    return duration(seconds * 1000).replace("\N{NO-BREAK SPACE}", " ")
