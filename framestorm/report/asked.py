"""What the schedules of a run ask for, together and each by itself: those of open thread groups, or of timers."""

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

import polars as pl

from framestorm.model.load import Load
from framestorm.model.run import Host, Record
from framestorm.model.series import Curves
from framestorm.report import series
from framestorm.results.groups import is_of_groups
from framestorm.results.table import IS_OWN

# Thread groups that have as many users at each moment as they say.
KEEP_USERS = ("ConcurrencyThreadGroup", "SteppingThreadGroup", "UltimateThreadGroup")


class Asked(NamedTuple):
    """Requests that are due by a schedule.

    per_s: corners of the line of their rate, in seconds since the run's start; empty if it is not known.
    limit: the most threads that may send at the same time, None without a limit or if that is not known.
    is_paced: users wait for their turn, so that a request is late, and not dropped, where all of them wait for answers.
    is_limit: the rate may be meant as an upper limit: not to reach it is a warning, and no failure.
    groups, numbers, labels: of which thread groups, as of a load, and labels they are; empty for all.
    name: of the one load that it is of, where a plan has several; empty for all of them.
    """

    per_s: Curves
    limit: int | None = None
    is_paced: bool = False
    is_limit: bool = False
    groups: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()
    labels: tuple[str, ...] = ()
    name: str = ""

    def of(self, samples: pl.LazyFrame, slaves: Iterable[Host] = ()) -> pl.LazyFrame:
        """Return the samples that are due by it, without transactions and sub-results."""
        is_due = IS_OWN
        if self.labels:
            is_due &= pl.col("label").cast(pl.String).is_in(self.labels)
        if self.groups:
            is_due &= is_of_groups("user", self.groups, slaves, self.numbers)
        return samples.filter(is_due)

    def comparable(self, samples: pl.LazyFrame) -> "Asked":
        """The schedule as a rate of samples: without its line where an arrival makes samples of several labels."""
        if self.is_paced or samples.select(pl.col("label").n_unique()).collect().item() <= 1:
            return self
        return self._replace(per_s={})


def read_asked(record: Record, first_s: float) -> Asked | None:
    """Return what a run's schedules ask for together; None if its users just send again once they have their answer.

    first_s: when the first sample started, in seconds since the run's start, where the schedule begins.
    """
    if not record.loads:  # of an older run
        per_s = series.asked(record.properties, "rate_per_s", first_s)
        limit = record.properties.get("concurrency_limit", "")
        return Asked(per_s, int(limit) if limit.isdecimal() else None) if record.is_open_model else None
    own = [load for load in record.loads if not load.is_aside]
    loads = [load for load in own if load.is_open]
    if loads:
        is_all = len(loads) == sum(not load.is_timer for load in record.loads)
        # A user who is a process does not know its thread; the kit's plans of such users have one group of them.
        groups = () if is_all or record.has_users else loads
        return Asked(
            _together(loads, first_s),
            _sum(load.limit for load in loads),
            groups=tuple(load.name for load in groups),
            numbers=tuple(number for load in groups for number in load.numbers),
        )
    timers = [load for load in own if load.is_timer and load.model == "arrivals"]
    paced = [name for load in timers for name in load.groups]
    if not timers or len(set(paced)) < len(paced):
        return None
    return Asked(
        _together(timers, first_s),
        _limit(paced, record),
        is_paced=True,
        is_limit=all(map(_is_limit, timers)),
        groups=tuple(paced) if len(paced) < sum(not load.is_timer for load in record.loads) else (),
        labels=tuple(name for load in timers for name in load.labels) if all(load.labels for load in timers) else (),
    )


def read_users(record: Record, first_s: float) -> Curves:
    """Draw the line of the users that a plan asks for, from its first sample on.

    Empty unless these are the users of one of the kit's plans, or of thread groups that keep as many as they say: those
    of other groups may have ended.
    """
    of_words = [load for load in record.loads if load.words and load.model == "users"]
    own = [load for load in record.loads if not (load.is_aside or load.is_timer)]
    keep = own if all(load.kind in KEEP_USERS and not load.unknown for load in own) else []
    if not (loads := of_words or keep):
        return series.asked(record.properties, "users", first_s)
    line = _together(loads, first_s)
    pairs = pairwise(zip(line.get("x", []), line.get("y", []), strict=True))
    begin_s = next((x for (x, _), (_, y) in pairs if x is not None and y), first_s)
    # The first user may come after a delay.
    return (
        line | {"x": [None if x is None else round(x - begin_s + first_s, 3) for x in line["x"]]}
        if keep and line
        else line
    )


def read_separate(record: Record) -> list[Load]:
    """Return the schedules of a plan that has several, those that may be upper limits last.

    A timer is left out whose samples come by another schedule too.
    """
    loads = [load for load in record.loads if load.model == "arrivals" and not load.is_aside]
    apart = [
        load
        for load in loads
        if not (load.is_timer and any(_share(load, other) for other in loads if other is not load))
    ]
    return sorted(apart, key=_is_limit) if len(loads) > 1 else []


def alone(load: Load, record: Record, first_s: float = 0.0) -> Asked:
    """What one of several loads asks for; `first_s`: when the first of its samples started, as for `read_asked`."""
    return Asked(
        _together([load], first_s),
        _limit(load.groups, record) if load.is_timer else load.limit,
        is_paced=load.is_timer,
        is_limit=_is_limit(load),
        groups=load.groups or (load.name,),
        numbers=load.numbers,
        labels=load.labels,
        name=load.name,
    )


def _is_limit(load: Load) -> bool:
    """Return whether users also set this timer to keep a plan below a rate."""
    return load.kind == "ConstantThroughputTimer"


def _share(one: Load, other: Load) -> bool:
    """Return whether some samples come by both."""
    has_same_label = not one.labels or not other.labels or bool({*one.labels} & {*other.labels})
    return has_same_label and bool({*one.groups} & {*other.groups})


def _limit(groups: Iterable[str], record: Record) -> int | None:
    """Return the most threads of these groups together."""
    limits = {load.name: load.limit for load in record.loads if not load.is_timer and not load.is_aside}
    return _sum(limits.get(name) for name in groups)


def _sum(limits: Iterable[int | None]) -> int | None:
    known = list(limits)
    return None if None in known else sum(each for each in known if each)


def _together(loads: Sequence[Load], first_s: float) -> Curves:
    """Return the sum of the loads' curves from `first_s` on; empty if one of them is not known."""
    starts = [load.start_s for load in loads]
    if not all(load.points for load in loads) or (len(loads) > 1 and None in starts):
        return {}
    shifts = [(start or 0.0) - min(each or 0.0 for each in starts) for start in starts]
    corners = sorted({x + shift for load, shift in zip(loads, shifts, strict=True) for x, _ in load.points})
    if not all(load.has_end for load in loads):
        corners.append(corners[-1] + 1e6)
    curve: Curves = {"x": [], "y": []}

    def add(at_s: float, before_s: float) -> None:
        rate = sum(load.at(before_s - shift) or 0.0 for load, shift in zip(loads, shifts, strict=True))
        curve["x"].append(round(first_s + at_s, 3))
        near = round(rate, 6)
        # Next to the corner, not at it; but 100/min is no rate of six decimals.
        curve["y"].append(near if math.isclose(rate, near, rel_tol=1e-8) else rate)

    for low, high in pairwise(corners):
        # Both ends from within: there may be a jump at either.
        inside = (high - low) * 1e-9
        add(low, low + inside)
        add(high, high - inside)
    return curve
