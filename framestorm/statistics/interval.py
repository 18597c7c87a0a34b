"""A figure, its interval, and how both were made."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Interval:
    """A figure with its interval, all in the unit of what it was made of.

    low, high: ends of the interval; None where the data cannot give it (one repetition has no spread).
    n: how many values (repetitions, samples) it rests on.
    method: how the interval was made, in words for a page's footnote.
    """

    value: float
    low: float | None
    high: float | None
    n: int
    method: str

    def as_json(self) -> dict[str, Any]:
        """As it stands in summary.json."""
        return {"value": self.value, "low": self.low, "high": self.high, "n": self.n, "method": self.method}
