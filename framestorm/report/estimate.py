"""A figure and what is known about it; free of numpy, so that criteria are read before anything is set up."""

from dataclasses import dataclass
from typing import Any, Literal, Protocol

Bound = Literal["exact", "lower"]


@dataclass(frozen=True)
class Estimate:
    """A figure; times are in ms.

    bound: "lower" if the true figure is larger, because a time-out cut a value off.
    low, high: ends of a 95 % interval, each None where the sample cannot give it.
    few: so few samples that the percentile is just the largest of them.
    """

    value: float
    bound: Bound = "exact"
    low: float | None = None
    high: float | None = None
    few: bool = False

    def as_json(self) -> dict[str, Any]:
        """As it stands in summary.json."""
        return {"value": self.value, "bound": self.bound, "low": self.low, "high": self.high, "few": self.few}


class Times(Protocol):
    """Times of which figures can be asked; None where there are no samples."""

    def percentile(self, percent: str) -> Estimate | None: ...

    def mean(self) -> Estimate | None: ...

    def extreme(self, *, largest: bool) -> Estimate | None: ...
