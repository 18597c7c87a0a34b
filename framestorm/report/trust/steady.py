"""Since when response times are steady: a note, or the warning that they never are."""

from framestorm.model.summary import SteadyState, Summary
from framestorm.model.units import count, duration, percent, plural


def drift(summary: Summary) -> list[str]:
    """Return the warning that response times never became steady; a function that falls behind has one of its own."""
    steady, overload = summary.facts.steady, summary.facts.overload
    if steady is None or steady.since_s is not None or (overload and overload.signs):
        return []
    return [
        f"Response times never became steady: in the last third of {_part(steady)} they are "
        f"{_compared(steady.change)} than in the first. The figures depend on the length of the run. Let it run "
        "longer, or find out what changes: memory, a cache, a neighbour."
    ]


def since(summary: Summary) -> list[str]:
    """Return the note on the steady part, and on what the figures leave out of the run."""
    steady, unit = summary.facts.steady, summary.unit
    if summary.run.judges_steady:
        return [_left_out(summary)]
    if steady is None or steady.since_s is None:
        return []
    if steady.is_from_begin:
        return [f"Response times are steady in all of {_part(steady)}."]
    return [
        f"Response times are steady from {_since(steady, summary)} on: before, they are {_compared(steady.change)} "
        f"({count(steady.before)} of {plural(steady.n, unit)}). The figures are of the whole run; --steady leaves that "
        "out."
    ]


def _left_out(summary: Summary) -> str:
    steady, of = summary.facts.steady, f"{count(summary.facts.left_out)} of its {summary.unit}s"
    if steady is None:
        return f"--steady: the run is too short to tell since when it is steady: {of} are left out."
    if steady.since_s is None:
        return f"--steady: the run has no steady part: {of} are left out."
    return f"--steady: figures and criteria leave out what began before {_since(steady, summary)}: {of}."


def _since(steady: SteadyState, summary: Summary) -> str:
    at_s = (steady.since_s or 0.0) - summary.load_start_s
    return f"{duration(1000 * max(0.0, at_s))} after the start of the load"


def _part(steady: SteadyState) -> str:
    return f"the {duration(1000 * (steady.to_s - steady.from_s))} of the full load"


def _compared(change: float) -> str:
    if change >= 1:
        return f"{1 + change:.3g} times as long"
    return f"{percent(abs(change))} {'longer' if change > 0 else 'shorter'}"
