"""The load of one of the kit's plans, by its properties: in words, or by the short forms of a rate and of users."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from framestorm.errors import UsageError
from framestorm.load import poisson
from framestorm.load.text import Points, parse
from framestorm.model.load import LoadModel
from framestorm.model.plan import Plan

# JMeter's property with a load that it cannot read from the plan's properties; jmx/java/Load.java reads it.
PROPERTY = "framestorm.load"
RATE, USERS = "rate_per_s", "users"
RANDOM = "poisson"
MOST_RANDOM = 10_000_000  # 5 s


@dataclass(frozen=True)
class KitLoad:
    """A load over time.

    points: the corners of its line: seconds since the start, and arrivals per second, or users; a jump has two points
        with one time.
    seed: of arrivals that come at random; None if they come evenly.
    words: as people wrote it; empty if it is made of the plan's short forms.
    """

    model: LoadModel
    points: Points
    seed: int | None = None
    words: str = ""

    @property
    def total(self) -> int:
        """All arrivals, or the most users at the same time."""
        if self.model == "users":
            return int(max(y for _, y in self.points))
        return math.ceil(self.area - 1e-9) if self.seed is None else poisson.count(self.area, self.seed)

    @property
    def area(self) -> float:
        """The arrivals by the line alone; at random there are some more or less."""
        return sum((next_x - x) * (y + next_y) / 2 for (x, y), (next_x, next_y) in pairwise(self.points))

    @property
    def is_plain(self) -> bool:
        """Whether JMeter reads it from the plan's own properties."""
        return not self.words and self.seed is None

    def written(self, number: int = 0, of: int = 1) -> str:
        """Write it as JMeter reads it.

        One of several JMeters makes every so many-th arrival, or has every so many-th user: together they make what one
        would, at the same moments.
        """
        seed = () if self.seed is None else (f"seed={self.seed}",)
        return " ".join((*(f"{x!r}:{y!r}" for x, y in self.points), *seed, f"{number}/{of}"))

    def takes_place_of(self, name: str) -> bool:
        """Whether the property has no effect beside this load."""
        return not self.is_plain and name in _short_form(self.model)


def read(plan: Plan, values: Mapping[str, str]) -> KitLoad | None:
    """Read the load of one of the kit's plans from its properties; None where its thread groups have it, as in others.

    Raises:
        UsageError: its words are not understood, or it has more random arrivals than can be drawn.
    """
    load = _read(plan, values)
    if load is not None and load.seed is not None and load.area > MOST_RANDOM:
        raise UsageError(
            f"-Jarrivals={RANDOM}: the load has {load.area:,.0f} arrivals, and at most {MOST_RANDOM:,} can be drawn: "
            "ask for a lower rate or a shorter time"
        )
    return load


def _read(plan: Plan, values: Mapping[str, str]) -> KitLoad | None:
    if plan.load is None:
        return None
    model: LoadModel = "arrivals" if RATE in plan.settable else "users"
    is_random = model == "arrivals" and values.get("arrivals") == RANDOM
    try:
        seed = int(values["seed"]) if is_random else None
        if words := values.get(plan.load.name):
            return KitLoad(model, parse(words, model), seed, words)
        if model == "users":
            return None
        rate, ramp_s, hold_s = (float(values[name]) for name in _short_form(model))
    except (KeyError, ValueError):
        return None
    return KitLoad(model, [(0.0, 0.0), (ramp_s, rate), (ramp_s, rate), (ramp_s + hold_s, rate)], seed)


def _short_form(model: LoadModel) -> tuple[str, str, str]:
    return (RATE if model == "arrivals" else USERS, "ramp_s", "hold_s")
