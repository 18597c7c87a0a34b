"""What a claim expects of its figure, and whether an interval meets it as a whole."""

import math
import re
from dataclasses import dataclass

CONFIRMED, REFUTED, UNDECIDED = "confirmed", "not confirmed", "undecided"
_LIMIT = re.compile(r"\s*([<>]=?)\s*(-?[0-9.]+(?:e-?[0-9]+)?)\s*")
_WITHIN = re.compile(r"\s*=\s*(-?[0-9.]+)\s+within\s+([0-9.]+)\s*%\s*")


@dataclass(frozen=True)
class Expectation:
    """The figures that meet it: from `low` to `high`, each end included or not; `text` as in study.yml."""

    text: str
    low: float = -math.inf
    high: float = math.inf
    with_ends: bool = True

    def meets(self, low: float, high: float) -> bool:
        """Whether all from `low` to `high` meets it."""
        if self.with_ends:
            return self.low <= low and high <= self.high
        return (self.low < low or self.low == -math.inf) and (high < self.high or self.high == math.inf)

    def fails(self, low: float, high: float) -> bool:
        """Whether nothing from `low` to `high` meets it."""
        if self.with_ends:
            return high < self.low or low > self.high
        return high <= self.low > -math.inf or low >= self.high < math.inf

    def excludes(self, value: float) -> bool:
        """Whether it is the very limit, which does not meet it: 1 of `< 1`."""
        return not self.with_ends and value in (self.low, self.high)

    def verdict(self, low: float | None, high: float | None) -> str:
        """Confirmed if the whole interval meets it, not confirmed if the whole of it fails, else undecided.

        An end that is not known is as far away as can be.
        """
        low, high = -math.inf if low is None else low, math.inf if high is None else high
        if self.meets(low, high):
            return CONFIRMED
        return REFUTED if self.fails(low, high) else UNDECIDED


def parse(text: str) -> Expectation:
    """`< 0.9`, `> 0`, `<= 3`, `>= 2` or `= 1 within 5 %` (of 0: by so many hundredths).

    Raises:
        ValueError: it is none of these.
    """
    if limit := _LIMIT.fullmatch(text):
        sign, value = limit[1], float(limit[2])
        with_ends = sign.endswith("=")
        return Expectation(text, high=value, with_ends=with_ends) if sign[0] == "<" else Expectation(
            text, low=value, with_ends=with_ends
        )  # fmt: skip
    if within := _WITHIN.fullmatch(text):
        value, share = float(within[1]), float(within[2]) / 100
        half = abs(value) * share if value else share
        return Expectation(text, value - half, value + half)
    raise ValueError(f'expect: "{text}" is none of "< 0.9", "> 0", "<= 3", ">= 2" and "= 1 within 5 %"')
