"""The points of a study, what each of them sets, and the order in which they are run."""

import itertools
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

from framestorm import paths, properties
from framestorm.errors import UsageError
from framestorm.properties import Knob
from framestorm.study.design import expressions
from framestorm.study.design.definition import Level, Study, Value
from framestorm.study.design.expressions import ExpressionError, Number
from framestorm.study.design.lines import Place, PointError
from framestorm.study.design.target import Target

PLACEHOLDER = re.compile(r"\{([A-Za-z_][\w.]*)\}")


@dataclass(frozen=True)
class Point:
    """One cell of the matrix: its level of each factor, and the plan, properties and target that this comes to."""

    id: str
    factors: Mapping[str, Value]
    plan: str
    properties: Mapping[str, str]
    target: Mapping[str, Any]

    def as_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "factors": dict(self.factors),
            "plan": self.plan,
            "properties": dict(self.properties),
            "target": dict(self.target),
        }


def points(study: Study) -> list[Point]:
    """Every point once, in the order of the factors as they are written.

    Raises:
        PointError: a level or a value leads to something that cannot be run.
    """
    found: dict[str, Point] = {}
    for block in study.blocks or ({},):
        for levels in itertools.product(*_places(study, block)):
            point = _point(study, dict(zip(study.factors, levels, strict=True)))
            found.setdefault(point.id, point)
    return list(found.values())


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
    effective = {name: knob.default for name, knob in knobs(point.plan).items() if name not in properties.KIT_KNOBS}
    return {
        name: number
        for name, value in {**effective, **point.properties, **point.factors}.items()
        if (number := as_number(value)) is not None
    }


@cache
def knobs(plan: str) -> dict[str, Knob]:
    """The knobs of a plan of the checkout.

    Raises:
        UsageError: there is no such plan.
    """
    return properties.read_plan(paths.ROOT / plan)


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


def _places(study: Study, block: Mapping[str, Sequence[Value]]) -> Iterator[list[tuple[int, Level]]]:
    """For each factor its levels in this block, each with its number among all."""
    for name, factor in study.factors.items():
        wanted = block.get(name, factor.values)
        yield [(number, level) for number, level in enumerate(factor.levels) if level.value in wanted]


def _point(study: Study, levels: Mapping[str, tuple[int, Level]]) -> Point:
    factors = {name: level.value for name, (_, level) in levels.items()}
    plan = study.plan
    plan_place: Place = ("plan",)
    values: dict[str, tuple[Any, Place]] = {}
    parts: dict[str, tuple[Any, Place]] = {}
    for name, value in study.properties.items():
        values[name] = value, ("properties", name)
    for name, value in study.target.items():
        parts[name] = value, ("target", name)
    set_by: dict[str, str] = {}
    for name, (number, level) in levels.items():
        is_named = study.factors[name].named
        place: Place = ("factors", name, str(level.value) if is_named else number)
        # The later would win, and the point would not be what it is called.
        for what, where in _settings(level):
            if (other := set_by.setdefault(what, name)) != name:
                both = f"{other}={as_text(factors[other])} and {name}={as_text(level.value)}"
                raise PointError((*place, *where), f"{both} both set {what}; a point has it from one factor")
        if level.plan is not None:
            plan, plan_place = level.plan, (*place, "plan")
        for key, value in level.properties.items():
            values[key] = value, ((*place, "properties", key) if is_named else place)
        for key, value in level.target.items():
            whole = {**parts[key][0], **value} if key == "environment" and key in parts and is_named else value
            parts[key] = whole, ((*place, "target", key) if is_named else place)
    try:
        of_plan = knobs(plan)
    except UsageError as error:
        raise PointError(plan_place, str(error)) from None
    resolver = _Resolver(factors, values, of_plan)
    given = {name: as_text(resolver.value(name)) for name in values}
    resolved = {name: resolver.resolve(value, place) for name, (value, place) in parts.items()}
    target = Target.of(resolved, {name: place for name, (_, place) in parts.items()})
    allowed = sorted(set(of_plan) - properties.KIT_KNOBS - {"url"})
    for name, (_, place) in values.items():
        if name == "url":
            raise PointError(place, "the property url is set by the target; give target: {kind: url, url: …}")
        if "." not in name and name not in allowed:
            raise PointError(place, f"{plan} has no property {name!r}", allowed, name)
        try:
            properties.effective(of_plan, {name: given[name]})
        except UsageError as error:
            raise PointError(place, str(error).removeprefix("-J")) from None
    to_any = "url" in of_plan and not of_plan["url"].default
    is_local = "mode" in of_plan and given.get("mode", of_plan["mode"].default) == "local"
    if target.kind == "embedded" and to_any and not is_local:
        place = parts["kind"][1]
        what = f"{plan} can send to any function, not to the embedded one; give another kind"
        raise PointError(place, what, ("openfaas", "url"))
    name = ",".join(f"{factor}={as_text(value)}" for factor, value in factors.items())
    return Point(name, factors, plan, given, asdict(target))


def _settings(level: Level) -> Iterator[tuple[str, Place]]:
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

    def __init__(
        self, factors: Mapping[str, Value], values: Mapping[str, tuple[Any, Place]], of_plan: Mapping[str, Knob]
    ) -> None:
        self._factors = factors
        self._values = values
        self._defaults = {
            name: knob.default for name, knob in of_plan.items() if name not in {*properties.KIT_KNOBS, "url"}
        }
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

    def resolve(self, value: Any, place: Place) -> Any:
        """Any value of study.yml."""
        if isinstance(value, Mapping):
            return {name: as_text(self.resolve(each, place)) for name, each in value.items()}
        if not isinstance(value, str):
            return value
        if not expressions.is_expression(value):
            return PLACEHOLDER.sub(lambda found: self._filled(found[1], place), value)
        try:
            parsed = expressions.parse(value)
            return parsed.value({name: self._number(name, parsed.text, place) for name in sorted(parsed.names)})
        except ExpressionError as error:
            raise PointError(place, str(error)) from None

    def _filled(self, name: str, place: Place) -> str:
        if name not in self._factors:
            raise PointError(place, f"{{{name}}} is no factor", list(self._factors), name)
        return as_text(self._factors[name])

    def _number(self, name: str, text: str, place: Place) -> Number:
        known = {**self._defaults, **self._values, **self._factors}
        if name not in known:
            raise PointError(place, f"{text}: unknown name {name!r}", sorted(known), name)
        if name in self._factors:
            value: Any = self._factors[name]
        else:
            value = self.value(name) if name in self._values else self._defaults[name]
        number = as_number(value)
        if number is None:
            raise PointError(place, f"{text}: {name} is {value!r}, and no number")
        return number


def estimate_s(study: Study, point: Point) -> float:
    """How long the load of a point's run takes, by run_s.

    Raises:
        PointError: run_s cannot be calculated for it.
    """
    run_s: float | str = study.run_s
    place: Place = ("run_s",)
    for name, factor in study.factors.items():
        for level in factor.levels:
            if level.run_s is not None and level.value == point.factors[name]:
                run_s, place = level.run_s, ("factors", name, str(level.value), "run_s")
    values = {name: (value, place) for name, value in point.properties.items()}
    seconds = _Resolver(point.factors, values, knobs(point.plan)).resolve(run_s, place)
    if seconds <= 0:
        raise PointError(place, f"run_s is {seconds:g} s at {point.id}, and has to be above 0")
    return float(seconds)
