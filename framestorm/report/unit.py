"""What a run counts beside users: the label of its samples, and the word of its report."""

from collections.abc import Iterable, Mapping
from typing import Any

FRAME, TASK = "frame", "task"
UNITS = (FRAME, "request", TASK)


def unit_of(run: Mapping[str, Any], labels: Iterable[str]) -> str:
    """What was counted, by the samples' labels, most frequent first; a run without samples says what it would have."""
    found = [label for label in labels if label in UNITS]
    said = run.get("unit")
    if found:
        return str(said) if said in found else found[0]
    return str(said) if said in UNITS else FRAME
