"""The points of a study: what each of them sets, the order in which they are run, and how long that takes."""

import itertools
import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from framestorm import paths
from framestorm.errors import UsageError
from framestorm.model import plan as plans
from framestorm.model.plan import Plan
from framestorm.model.study import Level, Study, Value
from framestorm.model.units import duration
from framestorm.platform import registry
from framestorm.platform.base import SettingError, Settings
from framestorm.platform.registry import PLATFORMS
from framestorm.study.design import expressions
from framestorm.study.design.expressions import ExpressionError, Number
from framestorm.study.design.record import Point
from framestorm.study.design.yaml_lines import PointError, YamlPath

# What a run takes beside its load: JMeter's start and end, its dashboard, the report, bringing the target to the point.
# Measured on two cores; every run of a study makes the rest of its estimate better.
RUN_OVERHEAD_S = 5.5
PLACEHOLDER = re.compile(r"\{([A-Za-z_][\w.]*)\}")


def points(study: Study) -> list[Point]:
    """Every point once, in the order of the factors as they are written.

    Raises:
        PointError: a level or a value leads to something that cannot be run.
    """
    by_id: dict[str, Point] = {}
    for block in study.blocks or ({},):
        for levels in itertools.product(*_places(study, block)):
            point = _point(study, dict(zip(study.factors, levels, strict=True)))
            by_id.setdefault(point.id, point)
    return list(by_id.values())


def schedule(points: Sequence[Point], repetitions: int, seed: int, order: str) -> list[tuple[Point, int]]:
    """Points with the number of their repetition, from 1 on, in the order of running."""
    return [each for number in range(1, repetitions + 1) for each in in_order(points, number, seed, order)]


def in_order(points: Sequence[Point], repetition: int, seed: int, order: str) -> list[tuple[Point, int]]:
    """One repetition of the points; its order hangs on the seed and its number alone."""
    ordered = list(points)
    if order == "randomised":
        # No secret is made of it.
        random.Random(f"{seed}/{repetition}").shuffle(ordered)  # noqa: S311
    return [(point, repetition) for point in ordered]


def numbers(point: Point) -> dict[str, Number]:
    """What of a point can be calculated with: its factors and properties, by the plan's defaults where none is set."""
    return {
        name: number
        for name, value in {**read_plan(point.plan).defaults, **point.properties, **point.factors}.items()
        if (number := as_number(value)) is not None
    }


@cache
def read_plan(plan: str) -> Plan:
    """A plan of the checkout.

    Raises:
        UsageError: the plan is missing or wrong.
    """
    return plans.read(paths.ROOT / plan)


def as_number(value: object) -> Number | None:
    """A number, or a text that is one."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    for kind in (int, float):
        try:
            return kind(value) if isinstance(value, str) else value
        except ValueError:
            continue
    return None


def as_text(value: object) -> str:
    """A value as a property of JMeter has it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return str(value)


def _places(study: Study, block: Mapping[str, Sequence[Value]]) -> Iterator[list[tuple[int, Value]]]:
    """For each factor its levels in this block, each with its number among all."""
    for name, factor in study.factors.items():
        wanted = block.get(name, factor.values)
        yield [(number, level) for number, level in enumerate(factor.values) if level in wanted]


def _point(study: Study, levels: Mapping[str, tuple[int, Value]]) -> Point:
    factors = {name: value for name, (_, value) in levels.items()}
    plan = study.plan
    plan_place: YamlPath = ("plan",)
    values: dict[str, tuple[Any, YamlPath]] = {}
    parts: dict[str, tuple[Any, YamlPath]] = {}
    for name, value in study.properties.items():
        values[name] = value, ("properties", name)
    for name, setting in study.target.items():
        if setting is not None:
            parts[name] = setting, ("target", name)
    set_by: dict[str, str] = {}
    for name, (number, value) in levels.items():
        level, is_named = study.factors[name].level(name, value), study.factors[name].is_named
        place: YamlPath = ("factors", name, str(value) if is_named else number)
        # The later would win, and the point would not be what it is called.
        for what, where in _settings(level):
            if (other := set_by.setdefault(what, name)) != name:
                both = f"{other}={as_text(factors[other])} and {name}={as_text(value)}"
                raise PointError((*place, *where), f"{both} both set {what}; a point has it from one factor")
        if level.plan is not None:
            plan, plan_place = level.plan, (*place, "plan")
        for key, each in level.properties.items():
            values[key] = each, ((*place, "properties", key) if is_named else place)
        for key, setting in level.target.items():
            # Variables of an environment are added to those of the study.
            before = parts[key][0] if key in parts else None
            whole = {**before, **setting} if isinstance(before, dict) and isinstance(setting, dict) else setting
            parts[key] = whole, ((*place, "target", key) if is_named else place)
    try:
        of_plan = read_plan(plan)
    except UsageError as error:
        raise PointError(plan_place, str(error)) from None
    resolver = _Resolver(factors, values, of_plan)
    texts = {name: as_text(resolver.value(name)) for name in values}
    resolved = {name: resolver.resolve(value, place) for name, (value, place) in parts.items()}
    target = _target(resolved, {name: place for name, (_, place) in parts.items()})
    allowed = sorted(set(of_plan.settable) - {"url"})
    for name, (_, place) in values.items():
        if name == "url":
            raise PointError(place, "the property url is set by the target; give target: {kind: url, url: …}")
        if "." not in name and name not in allowed:
            raise PointError(place, f"{plan} has no property {name!r}", allowed, name)
        try:
            if name in of_plan.settable:
                of_plan.check(name, texts[name])
        except UsageError as error:
            raise PointError(place, str(error).removeprefix("-J")) from None
    url = of_plan.url
    needs_url = url and not url.facets.is_embedded_by_default and url.is_needed({**of_plan.defaults, **texts})
    if needs_url and not PLATFORMS[target.kind].serves_any_function:
        what = f"{plan} can send to any function, not to the {target.kind} one; give another kind"
        others = tuple(kind for kind, platform in PLATFORMS.items() if platform.serves_any_function)
        raise PointError(parts["kind"][1], what, others)
    name = ",".join(f"{factor}={as_text(value)}" for factor, value in factors.items())
    return Point(name, factors, plan, texts, target)


def _target(values: Mapping[str, object], places: Mapping[str, YamlPath]) -> Settings:
    """The target of resolved values; `places` are where study.yml says them.

    Raises:
        PointError: it cannot be had.
    """
    try:
        return registry.read(values)
    except SettingError as error:
        place = places.get(error.name, places.get("kind", ("target",)))
        raise PointError(place, error.what, error.allowed, error.seen) from None


def _settings(level: Level) -> Iterator[tuple[str, YamlPath]]:
    """What a level sets, each by its name and its place below the level."""
    if level.plan is not None:
        yield "the plan", ("plan",)
    for key in level.properties:
        yield key, ("properties", key)
    for key, value in level.target.items():
        if key == "environment" and isinstance(value, Mapping):
            yield from ((f"target.environment.{variable}", ("target", key, variable)) for variable in value)
        else:
            yield f"target.{key}", ("target", key)


class _Resolver:
    """Values of one point: expressions calculated, placeholders filled in."""

    def __init__(self, factors: Mapping[str, Value], values: Mapping[str, tuple[Any, YamlPath]], of_plan: Plan) -> None:
        self._factors = factors
        self._values = values
        self._defaults = {name: default for name, default in of_plan.defaults.items() if name != "url"}
        self._under_way: list[str] = []

    def value(self, name: str) -> Any:
        """The value of a property."""
        value, place = self._values[name]
        if name in self._under_way:
            raise PointError(place, f"{name} needs itself: {' -> '.join([*self._under_way, name])}")
        self._under_way.append(name)
        resolved = self.resolve(value, place)
        self._under_way.pop()
        return resolved

    def resolve(self, value: Any, place: YamlPath) -> Any:
        """Any value of study.yml."""
        if isinstance(value, Mapping):
            return {name: as_text(self.resolve(each, place)) for name, each in value.items()}
        if not isinstance(value, str):
            return value
        if not expressions.is_expression(value):
            return PLACEHOLDER.sub(lambda match: self._filled(match[1], place), value)
        try:
            parsed = expressions.parse(value)
            return parsed.value({name: self._number(name, parsed.text, place) for name in sorted(parsed.names)})
        except ExpressionError as error:
            raise PointError(place, str(error)) from None

    def _filled(self, name: str, place: YamlPath) -> str:
        if name not in self._factors:
            raise PointError(place, f"{{{name}}} is not a factor", list(self._factors), name)
        return as_text(self._factors[name])

    def _number(self, name: str, text: str, place: YamlPath) -> Number:
        names = {**self._defaults, **self._values, **self._factors}
        if name not in names:
            raise PointError(place, f"{text}: unknown name {name!r}", sorted(names), name)
        if name in self._factors:
            value: Any = self._factors[name]
        else:
            value = self.value(name) if name in self._values else self._defaults[name]
        number = as_number(value)
        if number is None:
            raise PointError(place, f"{text}: {name} is {value!r}, which is not a number")
        return number


def estimate_s(study: Study, point: Point) -> float:
    """How long the load of a point's run takes, by run_s.

    Raises:
        PointError: run_s cannot be calculated for it.
    """
    run_s: float | str = study.run_s
    place: YamlPath = ("run_s",)
    for name, level in study.levels(point.factors).items():
        if level.run_s is not None:
            run_s, place = level.run_s, ("factors", name, str(point.factors[name]), "run_s")
    values = {name: (value, place) for name, value in point.properties.items()}
    seconds = _Resolver(point.factors, values, read_plan(point.plan)).resolve(run_s, place)
    if seconds <= 0:
        raise PointError(place, f"run_s is {seconds:g} s at {point.id}, and has to be above 0")
    return float(seconds)


class TimeLeft:
    """Seconds of runs that are still to come; every run that ends makes it better."""

    def __init__(self, study: Study, points: Sequence[Point]) -> None:
        self._load_s = {point.id: estimate_s(study, point) for point in points}
        self._over_s: list[float] = []

    def saw(self, point: Point, took_s: float) -> None:
        """A run of the point took so long, all in all."""
        self._over_s.append(took_s - self._load_s[point.id])

    def of(self, points: Iterable[Point]) -> float:
        """s that these runs take."""
        # The constant has the weight of one run, so that the first does not turn everything over.
        over_s = (RUN_OVERHEAD_S + sum(self._over_s)) / (1 + len(self._over_s))
        return sum(max(0.0, self._load_s[point.id] + over_s) for point in points)


def total_s(study: Study, points: Sequence[Point]) -> float:
    """s that a study takes without the repetitions that its stop rule may add."""
    return TimeLeft(study, points).of(point for point in points for _ in range(study.repetitions))


def shown_time(seconds: float) -> str:
    """A time for people at a terminal."""
    return duration(seconds * 1000).replace("\N{NO-BREAK SPACE}", " ")
