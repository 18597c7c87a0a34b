"""What is said of a plan before its load."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """Where a plan does something else than it says; `is_fatal`: nobody would start, or the load would never end."""

    text: str
    is_fatal: bool = False
