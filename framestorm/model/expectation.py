"""What a claim expects of its figure, and whether an interval meets it as a whole."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

HypothesisVerdict = Literal["confirmed", "rejected", "inconclusive"]
CONFIRMED: HypothesisVerdict = "confirmed"
REJECTED: HypothesisVerdict = "rejected"
INCONCLUSIVE: HypothesisVerdict = "inconclusive"
FORMS = '"< 0.9", "> 0", "<= 3", ">= 2" or "= 1 within 5 %"'
_DIGITS = r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)"
PATTERN = rf"^\s*(?:([<>]=?)\s*(-?{_DIGITS}(?:e-?[0-9]+)?)|=\s*(-?{_DIGITS})\s+within\s+({_DIGITS})\s*%)\s*$"


@dataclass(frozen=True)
class Expectation:
    """The figures that meet it: from `low` to `high`, both included; `text` as in study.yml."""

    text: str
    low: float
    high: float

    def excludes(self, value: float) -> bool:
        """Return whether a value is just outside of the expected range, as 1 is of `< 1`."""
        return value in (math.nextafter(self.low, -math.inf), math.nextafter(self.high, math.inf))

    def verdict(self, low: float | None, high: float | None) -> HypothesisVerdict:
        """Confirmed if the whole interval meets it, rejected if the whole of it fails, else inconclusive.

        An end that is not known is as far away as can be.
        """
        low, high = -math.inf if low is None else low, math.inf if high is None else high
        if self.low <= low and high <= self.high:
            return CONFIRMED
        return REJECTED if high < self.low or low > self.high else INCONCLUSIVE


def whole_verdict(verdicts: Sequence[HypothesisVerdict], *, one_is_enough: bool = False) -> HypothesisVerdict:
    """Confirmed if all are (or one, where that is enough), rejected if one is (or all), else inconclusive."""
    enough, all_ = (any, all) if one_is_enough else (all, any)
    if enough(verdict == CONFIRMED for verdict in verdicts):
        return CONFIRMED
    return REJECTED if all_(verdict == REJECTED for verdict in verdicts) else INCONCLUSIVE


def parse(text: str) -> Expectation:
    """`< 0.9`, `> 0`, `<= 3`, `>= 2` or `= 1 within 5 %` (of 0: by so many hundredths).

    Raises:
        ValueError: it is none of these.
    """
    match = re.match(PATTERN, text)
    if match is None:
        raise ValueError(f'expect: "{text}" is not one of {FORMS}')
    sign, limit, middle, percent = match.groups()
    if sign is None:
        value, share = float(middle), float(percent) / 100
        half = abs(value) * share if value else share
        return Expectation(text, value - half, value + half)
    far = -math.inf if sign[0] == "<" else math.inf
    limit = float(limit) if sign.endswith("=") else math.nextafter(float(limit), far)
    return Expectation(text, *sorted((limit, far)))
