"""Updates of a run, made by hand."""

from framestorm.model.glance import Glance
from framestorm.results.interval import Interval, Key
from framestorm.sinks.sink import Update

BEGAN_S = 1_800_000_000


def interval_of(second: int, *times_ms: float, label: str = "request", slave: str = "", **causes: int) -> Interval:
    """The samples that ended in a second of the run: those without error by their times, and errors by cause."""
    interval = Interval(Key(BEGAN_S + second, label, "sampler", slave))
    for ms in times_ms:
        interval.add(BEGAN_S + second, ms, None)
    for cause, n in causes.items():
        for _ in range(n):
            interval.add(BEGAN_S + second, 5.0, cause.replace("_", "-"))
    return interval


def update(at_s: float, *intervals: Interval, users: int = 1, cores: dict[str, float] | None = None) -> Update:
    """What became known at a time of the run."""
    return Update(BEGAN_S + at_s, intervals, users, cores or {}, (), Glance("", [], [], [], [], []))
