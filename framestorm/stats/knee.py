"""Where the served rate stops following the offered one."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from framestorm.stats.checks import LEVEL, Floats, finite, positive
from framestorm.stats.means import student, welch_difference


@dataclass(frozen=True)
class Knee:
    """The load from which on, up to the largest tried, what is served falls short of what is offered.

    It lies above `follows_to`, and at `at` at the latest: between two loads that were tried, nothing is known.

    follows_to: the largest load that surely follows; 0 where none does. If it is the largest of all, there is no knee
        up to it.
    at: the smallest load from which on each falls short with its whole interval; None where the largest does not.
    shares: mean served / offered at each load, in ascending order of loads.
    """

    follows_to: float
    at: float | None
    shares: tuple[float, ...]


def knee(
    loads: ArrayLike, served: Sequence[ArrayLike], within: float, *, closed: bool = False, level: float = LEVEL
) -> Knee:
    """Find the knee, given what share of the offered rate may be missing.

    A load falls short if served - (1 - within) * offered is below 0 with its whole interval, and surely follows if no
    part of the interval is below 0. The knee as throughput's (Jain, The Art of Computer Systems Performance Analysis,
    1991, section 3.3), found by intervals instead of by eye.

    Args:
        loads: what was offered: a rate per second, or with `closed` any measure of load such as users or workers.
        served: for each of `loads` the rates served, one a repetition, per second.
        within: share of the offered rate that may be missing, e.g. 0.05.
        closed: users wait for answers, so no rate is offered: then it is the rate served at the smallest load, grown
            in proportion (its own spread counts, and it follows by definition).
        level: of the intervals: Student's, with `closed` Welch's. One repetition of a load leaves it undecided.

    Raises:
        ValueError: no loads, one not above 0 or given twice, not as many rates as loads, a load without rates, a rate
            that is not finite, `within` not between 0 and 1, or nothing served at the smallest load of a closed loop.
    """
    offered = positive(loads, "loads")
    if len(served) != offered.size:
        raise ValueError(f"{offered.size} loads but rates served at {len(served)}: as many of each are wanted")
    if np.unique(offered).size != offered.size:
        raise ValueError(f"loads {[float(load) for load in offered]}: each is wanted once, with all its repetitions")
    if not 0 < within < 1:
        raise ValueError(f"within {within}: a share between 0 and 1 is wanted, e.g. 0.05")
    points = sorted(
        (
            (float(load), finite(rates, f"rates served at {load:g}"))
            for load, rates in zip(offered, served, strict=True)
        ),
        key=lambda point: point[0],
    )
    base = points[0][1] / points[0][0] if closed else None
    if base is not None and base.mean() <= 0:
        raise ValueError(f"at the smallest load, {points[0][0]:g}, nothing was served that could grow with the load")
    states = [
        "follows" if closed and number == 0 else _state(load, rates, base, within, level)
        for number, (load, rates) in enumerate(points)
    ]
    ascending = [load for load, _ in points]
    return Knee(
        follows_to=max([0.0, *(load for load, state in zip(ascending, states, strict=True) if state == "follows")]),
        at=_first_of_tail(ascending, [state == "short" for state in states]),
        shares=tuple(float(rates.mean() / (load * (1 if base is None else base.mean()))) for load, rates in points),
    )


def _state(load: float, rates: Floats, base: Floats | None, within: float, level: float) -> str:
    least = (1 - within) * load
    margin = student(rates - least, level) if base is None else welch_difference(rates, least * base, level)
    if margin.high is not None and margin.high < 0:
        return "short"
    return "follows" if margin.low is not None and margin.low >= 0 else "undecided"


def _first_of_tail(ascending: list[float], holds: list[bool]) -> float | None:
    """The smallest load from which on it holds for all."""
    first = None
    for load, is_true in zip(reversed(ascending), reversed(holds), strict=True):
        if not is_true:
            break
        first = load
    return first
