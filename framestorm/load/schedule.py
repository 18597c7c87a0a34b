"""The schedule of an Open Model Thread Group, `rate(50/s) even_arrivals(10 s)`, read as JMeter reads it."""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from framestorm.errors import UsageError
from framestorm.load.fields import MOST

_TOKEN = re.compile(
    r"(?:\s+|/\*.*?\*/|//[^\n\r]*[\n\r]+)|(?P<number>\d+(?:\.\d+)?|\.\d+)|(?P<word>[A-Za-z][A-Za-z0-9_]*)"
    r"|(?P<sign>[()/])",
    re.DOTALL,
)
_UNITS_S = {"ms": 0.001, "s": 1.0, "sec": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "hour": 3600.0, "d": 86400.0}
_UNITS_S |= {"day": 86400.0}
_ARRIVALS = ("even_arrivals", "random_arrivals")


@dataclass(frozen=True)
class Step:
    """A part of a schedule: for `length_s`, the rate goes from `start` to `end`, in arrivals per second."""

    length_s: float
    start: float
    end: float
    is_random: bool = False

    @property
    def arrivals(self) -> int:
        """How many there are: JMeter leaves out what is no whole one at the end of each step."""
        return math.floor((self.start + self.end) / 2 * self.length_s)


def read_schedule(text: str) -> list[Step]:
    """Return the steps of a schedule.

    Raises:
        UsageError: JMeter cannot read the schedule, and would start nothing.
    """
    if re.fullmatch(r"[+-]?\d+", text) and abs(float(text)) <= MOST:
        # So many in a second, then an hour for their answers, as JMeter takes a number.
        return [Step(1.0, float(text), float(text)), Step(3600.0, 0.0, 0.0)]
    return list(_ScheduleParser(text).steps())


class _ScheduleParser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[str] = []
        position = 0
        while position < len(text):
            token = _TOKEN.match(text, position)
            if token is None:
                raise self._error(text[position : position + 20])
            if token.lastgroup:
                self._tokens.append(token[0])
            position = token.end()
        self._at = 0

    def steps(self) -> Iterator[Step]:
        rates: list[float | tuple[float, bool]] = []  # a rate, or a length with whether it is random
        last = 0.0
        while self._at < len(self._tokens):
            word = self._next().lower()
            self._take("(")
            if word == "rate":
                last = self._rate()
                rates.append(last)
            elif word in _ARRIVALS:
                rates.append((self._length_s(), word == "random_arrivals"))
            elif word == "pause":
                rates += [last, 0.0, (self._length_s(), False), 0.0, last]
            else:
                raise self._error(word)
            self._take(")")
        rate = 0.0
        for number, each in enumerate(rates):
            if isinstance(each, float):
                rate = each
                continue
            after = rates[number + 1] if number + 1 < len(rates) else rate
            yield Step(each[0], rate, after if isinstance(after, float) else rate, each[1])

    def _next(self) -> str:
        if self._at == len(self._tokens):
            raise self._error("its end")
        self._at += 1
        return self._tokens[self._at - 1]

    def _take(self, sign: str) -> None:
        if (token := self._next()) != sign:
            raise self._error(token)

    def _rate(self) -> float:
        rate = self._number()
        if rate == 0 and self._is_followed_by(r"\)"):
            return 0.0
        if (sign := self._next()).lower() not in ("/", "per"):
            raise self._error(sign)
        return rate / self._unit_s()

    def _length_s(self) -> float:
        length_s = 0.0
        while True:
            number = self._number()
            if number == 0 and self._is_followed_by(r"\)"):
                return length_s
            length_s += number * self._unit_s()
            if not self._is_followed_by(r"[\d.].*"):
                return length_s

    def _is_followed_by(self, pattern: str) -> bool:
        return self._at < len(self._tokens) and bool(re.fullmatch(pattern, self._tokens[self._at]))

    def _number(self) -> float:
        token = self._next()
        try:
            number = float(token)
        except ValueError:
            raise self._error(token) from None
        if number > MOST:
            raise self._error(token)
        return number

    def _unit_s(self) -> float:
        token = self._next()
        unit = token.lower()
        long = next((name for name in ("sec", "min", "hour", "day") if unit.startswith(name)), unit)
        if long not in _UNITS_S:
            raise self._error(token)
        return _UNITS_S[long]

    def _error(self, token: str) -> UsageError:
        return UsageError(
            f"JMeter cannot read the schedule {self._text!r} at {token!r}, and would start nothing; "
            "for instance: rate(10/s) even_arrivals(30 s) rate(50/s)"
        )
