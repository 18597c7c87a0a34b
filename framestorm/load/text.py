"""A load as people write it, `10/s for 30 s, to 200/s in 2 min, 200/s for 5 min`, and what arrives by it."""

import difflib
import math
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from framestorm.errors import UsageError

Points = Sequence[tuple[float, float]]
# The properties of a plan whose place a load in words takes.
IN_PLACE_OF = ("rate_per_s", "ramp_s", "hold_s")

_UNITS_S = {"ms": 0.001, "s": 1.0, "sec": 1.0, "second": 1.0, "min": 60.0, "m": 60.0, "minute": 60.0}
_UNITS_S |= {"h": 3600.0, "hour": 3600.0, "d": 86400.0, "day": 86400.0}
_NUMBER = r"(?:\d+(?:\.\d*)?|\.\d+)"
_UNIT = r"(?:ms|seconds?|secs?|s|minutes?|mins?|m|hours?|h|days?|d)"
_TIME = rf"{_NUMBER}\s*{_UNIT}(?:\s*{_NUMBER}\s*{_UNIT})*"
_RATE = rf"{_NUMBER}\s*(?:/|\s+per\s+|/\s*)\s*{_UNIT}"
_LEVEL = rf"(?:{_RATE}|0)"
_SEPARATOR = re.compile(r"\s*(?:,\s*then\s+|,|;|\n|\bthen\s+)\s*")
_SEGMENT = re.compile(
    rf"(?:(?P<hold>{_LEVEL})\s+for\s+(?P<hold_time>{_TIME})"
    rf"|pause\s+(?:for\s+)?(?P<pause>{_TIME})"
    rf"|(?:(?:from\s+)?(?P<start>{_NUMBER}(?:\s*(?:/|\s+per\s+)\s*{_UNIT})?)\s+)?to\s+(?P<end>{_LEVEL})\s+in\s+(?P<time>{_TIME}))",
    re.IGNORECASE,
)
# What a segment that cannot be read is compared with.
_FORMS = ("50/s for 30 s", "to 50/s in 2 min", "10/s to 50/s in 2 min", "pause 10 s", "600/min for 1 h")


def parse(text: str) -> Points:
    """Read the arrivals that a text asks for.

    Returns:
        The corners of their rate: seconds since the start, and arrivals per second; a jump has two with one time.

    Raises:
        UsageError: the text is not understood; the message marks the place, and has the forms that are nearest to it.
    """
    points: list[tuple[float, float]] = []
    for start, segment in _segments(text):
        match = _SEGMENT.fullmatch(segment)
        if match is None:
            raise _error(text, start, len(segment), _why(segment), _nearest(segment))
        at_s, level = points[-1] if points else (0.0, 0.0)
        if match["hold"] or match["pause"]:
            first = last = _per_s(match["hold"]) if match["hold"] else 0.0
        else:
            last = _per_s(match["end"])
            first = _per_s(match["start"], of=match["end"]) if match["start"] else level
        length_s = _seconds(match["hold_time"] or match["pause"] or match["time"])
        if length_s == 0:
            raise _error(text, start, len(segment), "a part of 0 s sends nothing", ())
        points += [(at_s, first), (at_s + length_s, last)]
    if not points:
        raise _error(text, 0, 1, "no load", _FORMS[:3])
    return points


def due(points: Points) -> int:
    """Count the arrivals of a schedule: what is below its line, as jmx/groovy/arrival.groovy counts it."""
    return math.ceil(sum((next_x - x) * (y + next_y) / 2 for (x, y), (next_x, next_y) in pairwise(points)) - 1e-9)


def schedule(points: Points) -> str:
    """Write a schedule as jmx/groovy/arrival.groovy reads it: its corners, and that all arrivals are of one JMeter."""
    return " ".join([*(f"{x!r}:{y!r}" for x, y in points), "0/1"])


def part(schedule: str, number: int, of: int) -> str:
    """Give one of several JMeters every so many-th arrival: together they send what one would, at the same moments."""
    return f"{schedule.rpartition(' ')[0]} {number}/{of}"


def _segments(text: str) -> Iterator[tuple[int, str]]:
    """The parts of a text with their places; an empty one at its end counts as none."""
    at = 0
    for separator in [*_SEPARATOR.finditer(text), None]:
        end = separator.start() if separator else len(text)
        part = text[at:end]
        if part.strip() or separator:
            yield at + len(part) - len(part.lstrip()), part.strip()
        at = separator.end() if separator else len(text)


def _per_s(rate: str, of: str = "") -> float:
    """Arrivals per second; a rate without a unit, before one that has it, is in the unit of that."""
    number, unit = re.fullmatch(rf"({_NUMBER})\s*(?:(?:/|per)\s*({_UNIT}))?", rate.strip(), re.IGNORECASE).groups()  # type: ignore[union-attr]
    if unit is None and of and (found := re.search(rf"{_UNIT}$", of, re.IGNORECASE)):
        unit = found[0]
    return float(number) / (_unit_s(unit) if unit else 1.0)


def _seconds(text: str) -> float:
    parts = re.findall(rf"({_NUMBER})\s*({_UNIT})", text, re.IGNORECASE)
    return sum(float(number) * _unit_s(unit) for number, unit in parts)


def _unit_s(unit: str) -> float:
    short = unit.lower()
    return _UNITS_S[short] if short in _UNITS_S else _UNITS_S[short.removesuffix("s")]


def _why(segment: str) -> str:
    if not segment:
        return "a part without words"
    if re.search(r"\b(?:users?|vus?|threads?)\b", segment, re.IGNORECASE):
        return "users: this plan's load is a rate; users are set by -Jusers in jmx/requests.jmx"
    if re.fullmatch(_RATE, segment, re.IGNORECASE):
        return "for how long?"
    if re.search(r"\bin\b", segment, re.IGNORECASE) and not re.search(r"\bto\b", segment, re.IGNORECASE):
        return "to which rate?"
    if re.match(rf"(?:to\s+)?{_NUMBER}\s+(?:for|in)\b", segment, re.IGNORECASE):
        return "a rate has a unit, such as 50/s or 3000/min"
    return "not understood"


def _nearest(segment: str) -> Sequence[str]:
    def likeness(form: str) -> float:
        return difflib.SequenceMatcher(None, re.sub(_NUMBER, "", form), re.sub(_NUMBER, "", segment.lower())).ratio()

    return sorted(_FORMS, key=likeness, reverse=True)[:3]


def _error(text: str, start: int, length: int, why: str, forms: Sequence[str]) -> UsageError:
    line = re.sub(r"\s", " ", text)
    hint = f"\nfor instance: {' | '.join(forms)}" if forms else ""
    return UsageError(f"-Jload: {why}\n  {line}\n  {' ' * start}{'^' * max(1, length)}{hint}")
