"""What a point wants under test, told apart from how it is brought there."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Self

import yaml

from framestorm.openfaas import balancers
from framestorm.openfaas.layout import STACK
from framestorm.study.design import schema
from framestorm.study.design.lines import Place, PointError

# What a gateway elsewhere does not do for us: it is asked for its function as that is there.
OURS_ALONE = ("replicas", "policy", "autoscale", "concurrency_limit", "cpu", "memory", "environment", "queue_at_once")
WAYS_OF_ANY_GATEWAY = ("gateway", "queue")
WHOLE = ("replicas", "autoscale_max", "concurrency_limit", "queue_at_once")


@dataclass(frozen=True)
class Target:
    """The target of a point; the fields are those of `target` in study.yml, whose meaning is in schema.json."""

    kind: str
    url: str | None
    function: str | None
    replicas: int
    route: str
    policy: str
    autoscale: bool
    autoscale_max: int
    concurrency_limit: int
    cpu: str | None
    memory: str | None
    queue_at_once: int | None
    environment: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, values: Mapping[str, Any], places: Mapping[str, Place]) -> Self:
        """The target of resolved values, completed by the defaults; `places` are where study.yml says them.

        Raises:
            PointError: it cannot be had.
        """
        return cls(**{**schema.defaults("target"), **_typed(values, places)})._checked(values, places)

    def _checked(self, given: Mapping[str, Any], places: Mapping[str, Place]) -> Self:
        def refuse(name: str, what: str, allowed: tuple[str, ...] = (), seen: str | None = None) -> None:
            raise PointError(places.get(name, ("target",)), what, allowed, seen)

        if self.kind != "openfaas":
            allowed = {"embedded": {"kind"}, "url": {"kind", "url"}}[self.kind]
            for name in given.keys() - allowed:
                refuse(name, f"target.{name} means nothing with kind {self.kind}", tuple(sorted(allowed)))
            if self.kind == "url" and not self.url:
                refuse("kind", "a target of kind url needs its url")
            return self
        functions = tuple(stack_functions())
        if self.url:
            refuse("url", "target.url means nothing with kind openfaas; give kind: url, or a function")
        if not self.function:
            refuse("function", "no function: a target of kind openfaas needs one", functions)
        if self.function not in functions:
            what = f"unknown function {self.function!r}: function/stack.yml does not have it"
            refuse("function", what, functions, self.function)
        if self.route == "direct" and self.replicas != 1:
            refuse("route", f"route direct is the address of one replica, and there are {self.replicas}")
        if self.autoscale and self.route not in WAYS_OF_ANY_GATEWAY:
            refuse("autoscale", f"autoscale with route {self.route}: OpenFaaS scales by what its gateway sees")
        if self.autoscale and self.replicas > self.autoscale_max:
            refuse("replicas", f"{self.replicas} replicas are more than autoscale_max, {self.autoscale_max}")
        if self.route in balancers.KINDS and self.policy not in balancers.KINDS[self.route].policies:
            policies = tuple(balancers.KINDS[self.route].policies)
            refuse("policy", f"{self.route} has no policy {self.policy!r}", policies, self.policy)
        return self

    def asks_of_a_gateway_elsewhere(self, base: Mapping[str, Any]) -> str | None:
        """What of it a gateway elsewhere cannot be made to do, in words.

        Args:
            base: the study's own target: what is the same in all points is taken as it is there.
        """
        if self.route not in WAYS_OF_ANY_GATEWAY:
            return f"route {self.route}"
        usual = {**schema.defaults("target"), **{name: base[name] for name in OURS_ALONE if name in base}}
        for name in OURS_ALONE:
            value = getattr(self, name)
            is_calculated = isinstance(usual[name], str) and usual[name].startswith("=")
            if value != (schema.defaults("target")[name] if is_calculated else usual[name]):
                return f"{name} {value}"
        return None


@cache
def stack_functions() -> dict[str, Any]:
    """The entries of function/stack.yml by name."""
    return dict(yaml.safe_load(STACK.read_text())["functions"])


def _typed(values: Mapping[str, Any], places: Mapping[str, Place]) -> dict[str, Any]:
    """Values with the types of the fields: what was calculated may be 4.0 where 4 is meant."""
    typed = dict(values)
    for name in WHOLE:
        value = typed.get(name)
        if value is None:
            continue
        least = 0 if name == "concurrency_limit" else 1
        if isinstance(value, str | bool) or not float(value).is_integer() or value < least:
            raise PointError(places[name], f"target.{name} is {value!r}, but has to be a whole number from {least} on")
        typed[name] = int(value)
    if isinstance(typed.get("autoscale", False), str):
        raise PointError(places["autoscale"], f"target.autoscale is {typed['autoscale']!r}, but true or false is meant")
    if typed.get("cpu") is not None:
        typed["cpu"] = str(typed["cpu"])
    # Levels that are listed are known to the schema as values alone, not as parts of a target.
    for name, value in typed.items():
        if problem := schema.problem_with("target", name, value):
            raise PointError(places[name], *problem)
    return typed
