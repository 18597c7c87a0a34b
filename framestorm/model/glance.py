"""A run that goes on, in words: what is shown of it beside its charts."""

from dataclasses import dataclass
from typing import NamedTuple


class KeyFigure(NamedTuple):
    """A figure of now with what it is of, such as `12.5/s` and `answered`, or `p95` and `12 ms`."""

    value: str
    name: str
    is_name_first: bool = False

    @property
    def text(self) -> str:
        """The figure as a part of a line."""
        return f"{self.name} {self.value}" if self.is_name_first else f"{self.value} {self.name}"


@dataclass(frozen=True)
class Glance:
    """What the live view shows at one moment.

    progress: how long the load goes on, and how long it still will. notes: criteria so far, causes of errors.
    heads, rows: the figures of each slave and label, after its name. lost: hosts, each with the reason.
    """

    progress: str
    figures: list[KeyFigure]
    notes: list[str]
    heads: list[str]
    rows: list[tuple[str, list[str]]]
    lost: list[str]
