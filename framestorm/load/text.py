"""Loads as people write them: `10/s for 30 s, to 200/s in 2 min`, or `0 to 50 users in 1 min, 50 users for 5 min`."""

import difflib
import re
from collections.abc import Iterator, Sequence

from framestorm.errors import UsageError
from framestorm.model.facets import LARGEST, LONGEST_S
from framestorm.model.load import LoadModel

Points = Sequence[tuple[float, float]]
WITHOUT_UNIT = "a rate has a unit, such as 50/s or 3000/min"

_UNITS_S = {"ms": 0.001, "s": 1.0, "sec": 1.0, "second": 1.0, "min": 60.0, "m": 60.0, "minute": 60.0}
_UNITS_S |= {"h": 3600.0, "hour": 3600.0, "d": 86400.0, "day": 86400.0}
_NUMBER = r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
_UNIT = r"(?:ms|seconds?|secs?|s|minutes?|mins?|m|hours?|h|days?|d)"
_TIME = rf"{_NUMBER}\s*{_UNIT}(?:\s*{_NUMBER}\s*{_UNIT})*"
_RATE = rf"{_NUMBER}\s*(?:/|\s+per\s+|/\s*)\s*{_UNIT}"
_RATE_PARTS = re.compile(rf"({_NUMBER})\s*(?:(?:/|per)\s*({_UNIT}))?", re.IGNORECASE)
_USERS = r"[0-9]+\s*(?:users?|vus?|threads?)"
_IS_NUMBER = re.compile(_NUMBER).fullmatch
_SEPARATOR = re.compile(r"\s*(?:,\s*then\s+|,|;|\n|\bthen\s+)\s*")


def _segment(level: str, start: str) -> re.Pattern[str]:
    """The form of one part of a load. The level at its start may leave out the unit, which is then that of its end."""
    return re.compile(
        rf"(?:(?P<hold>{level})\s+for\s+(?P<hold_time>{_TIME})"
        rf"|pause\s+(?:for\s+)?(?P<pause>{_TIME})"
        rf"|(?:(?:from\s+)?(?P<start>{start})\s+)?to\s+(?P<end>{level})\s+in\s+(?P<time>{_TIME}))",
        re.IGNORECASE,
    )


_SEGMENTS = {
    "arrivals": _segment(rf"(?:{_RATE}|0)", rf"{_NUMBER}(?:\s*(?:/|\s+per\s+)\s*{_UNIT})?"),
    "users": _segment(rf"(?:{_USERS}|0)", rf"(?:{_USERS}|[0-9]+)"),
}
_LOAD = re.compile(rf"(?<![\w.])(?:{_RATE}|{_USERS}|(?:for|in)\s+{_NUMBER}|pause)\b", re.IGNORECASE)
# What a part that cannot be read is compared with.
_FORMS = {
    "arrivals": ("50/s for 30 s", "to 50/s in 2 min", "10/s to 50/s in 2 min", "pause 10 s", "600/min for 1 h"),
    "users": ("50 users for 5 min", "to 50 users in 2 min", "10 to 50 users in 2 min", "pause 10 s", "1 user for 1 h"),
}


def parse(text: str, model: LoadModel) -> Points:
    """Read the arrivals, or the users, that a text asks for.

    Returns:
        The corners of their line: seconds since the start, and arrivals per second, or users; a jump has two points
        with one time.

    Raises:
        UsageError: the text is not understood; the message marks the place, and has the forms that are nearest to it.
    """
    points: list[tuple[float, float]] = []
    for start, segment in _segments(text):
        match = _SEGMENTS[model].fullmatch(segment)
        if match is None:
            raise _error(text, start, len(segment), _why(segment, model), _nearest(segment, model))
        at_s, level = points[-1] if points else (0.0, 0.0)
        if match["hold"] or match["pause"]:
            first = last = _level(match["hold"], model) if match["hold"] else 0.0
        else:
            last = _level(match["end"], model)
            first = _level(match["start"], model, match["end"]) if match["start"] else level
            if model == "arrivals" and first and all(map(_IS_NUMBER, (match["start"] or "", match["end"]))):
                raise _error(text, start, len(segment), WITHOUT_UNIT, _nearest(segment, model))
        length_s = _seconds(match["hold_time"] or match["pause"] or match["time"])
        if length_s == 0:
            raise _error(text, start, len(segment), "a part of 0 s sends nothing", ())
        if why := too_much(model, max(first, last), at_s + length_s):
            raise _error(text, start, len(segment), why, ())
        points += [(at_s, first), (at_s + length_s, last)]
    if not points:
        raise _error(text, 0, 1, "no load", _FORMS[model][:3])
    if not any(level for _, level in points):
        raise _error(text, 0, len(text), "this load sends nothing", _FORMS[model][:3])
    return points


def is_meant_as_load(text: str) -> bool:
    """Return whether a text has at least something of a load in words, be it mistaken."""
    return bool(_LOAD.search(text))


def too_much(model: LoadModel, level: float, end_s: float) -> str:
    """Return why no load may have so many users or arrivals per second, or be so long; empty if it may.

    The limits are those of the properties that are its short forms.
    """
    if level > LARGEST:
        return f"a load has at most {LARGEST:,} {'users' if model == 'users' else 'arrivals per second'}"
    return f"a load lasts at most {LONGEST_S:,} s" if end_s > LONGEST_S else ""


def _segments(text: str) -> Iterator[tuple[int, str]]:
    """Yield the parts of a text with their places; an empty one at its end counts as none."""
    at = 0
    for separator in [*_SEPARATOR.finditer(text), None]:
        end = separator.start() if separator else len(text)
        part = text[at:end]
        if part.strip() or separator:
            yield at + len(part) - len(part.lstrip()), part.strip()
        at = separator.end() if separator else len(text)


def _level(text: str, model: LoadModel, other: str = "") -> float:
    """Read a number of users, or of arrivals per second; a rate without a unit has the unit of `other`."""
    number, unit = _RATE_PARTS.findall(text)[0]
    unit = unit or (_RATE_PARTS.findall(other) or [("", "")])[0][1]
    return float(number) / (_unit_s(unit) if unit and model == "arrivals" else 1.0)


def _seconds(text: str) -> float:
    parts = re.findall(rf"({_NUMBER})\s*({_UNIT})", text, re.IGNORECASE)
    return sum(float(number) * _unit_s(unit) for number, unit in parts)


def _unit_s(unit: str) -> float:
    short = unit.lower()
    return _UNITS_S[short] if short in _UNITS_S else _UNITS_S[short.removesuffix("s")]


def _why(segment: str, model: LoadModel) -> str:
    if not segment:
        return "a part without words"
    if model == "arrivals" and re.search(r"\b(?:users?|vus?|threads?)\b", segment, re.IGNORECASE):
        return "users: this plan's load is a rate; jmx/requests.jmx has users"
    if model == "users" and re.search(_RATE, segment, re.IGNORECASE):
        return "a rate: this plan's load is users; jmx/request-rate.jmx has rates"
    if re.fullmatch(_RATE if model == "arrivals" else _USERS, segment, re.IGNORECASE):
        return "for how long?"
    if re.search(r"\bin\b", segment, re.IGNORECASE) and not re.search(r"\bto\b", segment, re.IGNORECASE):
        return "to which rate?" if model == "arrivals" else "to how many users?"
    if re.match(rf"(?:to\s+)?{_NUMBER}\s+(?:for|in)\b", segment, re.IGNORECASE):
        return WITHOUT_UNIT if model == "arrivals" else "of what? such as 50 users"
    return "not understood"


def _nearest(segment: str, model: LoadModel) -> Sequence[str]:
    def likeness(form: str) -> float:
        return difflib.SequenceMatcher(None, re.sub(_NUMBER, "", form), re.sub(_NUMBER, "", segment.lower())).ratio()

    return sorted(_FORMS[model], key=likeness, reverse=True)[:3]


def _error(text: str, start: int, length: int, why: str, forms: Sequence[str]) -> UsageError:
    line = re.sub(r"\s", " ", text)
    hint = f"\nfor instance: {' | '.join(forms)}" if forms else ""
    return UsageError(f"-Jload: {why}\n  {line}\n  {' ' * start}{'^' * max(1, length)}{hint}")
