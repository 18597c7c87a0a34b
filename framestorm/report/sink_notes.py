"""What a report says of the sinks of a run."""

from collections.abc import Iterable

from framestorm.model.sink import SinkOutcome
from framestorm.model.units import count, plural


def sink_notes(sinks: Iterable[SinkOutcome]) -> list[str]:
    """Return a note on each sink that had a problem; what it did not get is in the raw files all the same."""
    return [
        f"{each.sink} did not get {count(each.missed)} of {plural(each.intervals, 'update')}, each of what became "
        f"known of a second of a label: {each.problem or 'it was too slow'}. The files of the run have all of them."
        if each.missed
        else f"{each.sink} got every update ({count(each.intervals)}), though for a time: {each.problem}."
        for each in sinks
        if each.missed or each.problem
    ]
