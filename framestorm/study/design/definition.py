"""A study: what its study.yml says, completed by the defaults."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from framestorm.study.design import schema

FILE = "study.yml"
TARGET_PREFIX = "target."
Value = int | float | str | bool


@dataclass(frozen=True)
class Level:
    """One level of a factor: its value or name, and what it sets; `properties` and `target` may hold expressions."""

    value: Value
    properties: Mapping[str, Any]
    target: Mapping[str, Any]
    plan: str | None = None
    run_s: float | str | None = None


@dataclass(frozen=True)
class Factor:
    """What varies; `named` tells levels that only have names from values of a property."""

    name: str
    levels: tuple[Level, ...]
    named: bool

    @property
    def values(self) -> tuple[Value, ...]:
        return tuple(level.value for level in self.levels)


@dataclass(frozen=True)
class Stop:
    """Repeat a point until the interval of `metric` is within so much of its mean."""

    metric: str
    within_percent: float
    at_most: int


@dataclass(frozen=True)
class Study:
    """A study; the fields are the keys of study.yml, whose meaning is in schema.json."""

    name: str
    title: str
    question: str
    plan: str
    target: Mapping[str, Any]
    properties: Mapping[str, Any]
    factors: Mapping[str, Factor]
    blocks: tuple[Mapping[str, tuple[Value, ...]], ...]
    repetitions: int
    stop: Stop | None
    order: str
    warm_up_s: float
    temperature: str
    run_s: float | str
    budget_min: float | None
    metrics: tuple[str, ...]
    derived: Mapping[str, Any]
    hypotheses: tuple[Mapping[str, Any], ...]
    charts: tuple[Mapping[str, Any], ...]
    published: str | None
    published_from: str | None
    content: Mapping[str, Any]

    def as_json(self) -> dict[str, Any]:
        """The study with the keys of study.yml, defaults written out; `from_json` reads it."""
        return dict(self.content)


def from_json(content: Mapping[str, Any], name: str = "") -> Study:
    """A study by the keys of study.yml; they are not checked again."""
    whole = {**schema.defaults(), **{key: value for key, value in content.items() if key != "quick"}}
    whole["target"] = {**_plain_target(whole["target"])}
    stop = whole.get("stop")
    return Study(
        name=name,
        title=whole["title"],
        question=whole["question"],
        plan=whole["plan"],
        target=whole["target"],
        properties=whole["properties"],
        factors={factor: _factor(factor, levels) for factor, levels in whole["factors"].items()},
        blocks=tuple({factor: tuple(values) for factor, values in block.items()} for block in whole.get("blocks", ())),
        repetitions=whole["repetitions"],
        stop=Stop(**stop) if stop else None,
        order=whole["order"],
        warm_up_s=whole["warm_up_s"],
        temperature=whole["temperature"],
        run_s=whole["run_s"],
        budget_min=whole.get("budget_min"),
        metrics=tuple(whole["metrics"]),
        derived=whole["derived"],
        hypotheses=tuple(whole["hypotheses"]),
        charts=tuple(whole["charts"]),
        published=whole.get("published"),
        published_from=whole.get("published_from"),
        content=whole,
    )


def _plain_target(target: Mapping[str, Any]) -> Mapping[str, Any]:
    return {name: value for name, value in target.items() if value is not None}


def _factor(name: str, levels: Any) -> Factor:
    if isinstance(levels, Mapping):
        named = tuple(
            Level(level, sets.get("properties", {}), sets.get("target", {}), sets.get("plan"), sets.get("run_s"))
            for level, sets in levels.items()
        )
        return Factor(name, named, named=True)
    part = name.removeprefix(TARGET_PREFIX)
    if part != name:
        return Factor(name, tuple(Level(value, {}, {part: value}) for value in levels), named=False)
    return Factor(name, tuple(Level(value, {name: value}, {}) for value in levels), named=False)
