"""Goodput: the samples that meet every objective of the plan's property `goodput`, each by itself.

An objective is `figure < limit` (or `<=`, `>`, `>=`), with a unit as in criteria: `ttft_ms < 500 ms, itl_p99_ms < 50`.
"""

import re
from dataclasses import dataclass, field

from framestorm.errors import UsageError
from framestorm.model.criteria import DIGITS, FIGURE_UNITS, OPERATORS
from framestorm.model.metric import unit
from framestorm.model.sample import is_figure_name
from framestorm.model.units import scaled

PROPERTY = "goodput"
RESPONSE_MS = "rtt_ms"
EXAMPLE = "ttft_ms < 500, itl_p99_ms < 50"
_OBJECTIVE = re.compile(rf"(?P<figure>\w+) *(?P<op>[<>]=?) *(?P<number>{DIGITS}) *(?P<unit>(?:[^\s\d]\S*)?)", re.ASCII)


@dataclass(frozen=True)
class SampleObjective:
    """What a figure of a sample has to be; `limit` is in the unit in which the figure's name ends."""

    text: str
    figure: str
    op: str
    limit: float


@dataclass(frozen=True)
class Goodput:
    """The samples without error that met every objective.

    met: of the samples without error those that met it, by objective. absent: figures that no sample has; the rest is
        then not known.
    share: of all samples, errors included, with Wilson's interval. per_s: over the same time as rate_per_s.
    """

    objectives: str
    n: int
    good: int | None = None
    share: float | None = None
    low: float | None = None
    high: float | None = None
    per_s: float | None = None
    met: dict[str, int] = field(default_factory=dict)
    absent: list[str] = field(default_factory=list)


def parse_objectives(text: str) -> list[SampleObjective]:
    """Parse the objectives of a property; none if it is empty.

    Raises:
        UsageError: one is not understood.
    """
    return [_parse(each.strip()) for each in text.split(",")] if text.strip() else []


def _parse(text: str) -> SampleObjective:
    match = _OBJECTIVE.fullmatch(text)
    if match is None or not (is_figure_name(match["figure"]) or match["figure"] == RESPONSE_MS):
        raise UsageError(f"-J{PROPERTY}: {text!r} is not of the form `figure < limit`; give it as in '{EXAMPLE}'")
    figure, word = match["figure"], match["unit"]
    allowed = FIGURE_UNITS.get(unit(figure), {"": 1.0})
    if word not in allowed:
        units = ", ".join(each for each in allowed if each)
        raise UsageError(f"-J{PROPERTY}: {text!r}: {figure} has {f'one of the units {units}' if units else 'no unit'}")
    assert match["op"] in OPERATORS  # noqa: S101 (by the pattern)
    return SampleObjective(text, figure, match["op"], scaled(match["number"], allowed[word]))
