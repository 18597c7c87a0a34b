"""The figure of one run with its interval, by batch means: while the run goes on, and the rate of its answers."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from framestorm.stats.checks import LEVEL, finite
from framestorm.stats.estimate import Ends, Estimate
from framestorm.stats.evidence import ByFormula, Evidence, Scale
from framestorm.stats.means import t_quantile

BATCHES = 20
FEWEST = 3  # batches' worth of independent figures
FEWEST_EVENTS = 10  # of which a rate has an interval


@dataclass(frozen=True)
class BatchMean:
    """The mean of the figures of batches, its standard error, and how many independent batches these are worth."""

    value: float
    error: float
    worth: float

    def half(self, level: float = LEVEL) -> float:
        """Return half the width of Student's interval."""
        return t_quantile(level, self.worth - 1) * self.error


def batch_mean(of_batches: ArrayLike) -> BatchMean | None:
    """Return the mean of batches in their order; None if they drift.

    Neighbouring samples depend on each other, long batches hardly do: the figures of the batches give Student's
    interval (batch means, of percentiles too: Law, Simulation Modeling and Analysis, 5th edition, 2015, section 9.5.3).
    Where neighbouring batches still go together, with a correlation r of lag 1 above 0, n batches count as n (1 - r) /
    (1 + r), as in an autoregressive process. In a ramp or a drift fewer than FEWEST are left.
    """
    row = finite(of_batches)
    centred = row - row.mean()
    total = float(centred @ centred)
    correlation = max(0.0, float(centred[:-1] @ centred[1:]) / total) if total else 0.0
    worth = row.size * (1 - correlation) / (1 + correlation)
    if worth < FEWEST:
        return None
    return BatchMean(float(row.mean()), math.sqrt(total / (row.size - 1) / worth), worth)


def batch_interval(of_batches: Sequence[float], whole: float) -> Estimate | None:
    """Return a figure with its 95 % interval from that of equally long parts of a run; None while these drift.

    Args:
        of_batches: the figure of each batch, in their order.
        whole: the figure of all samples together, which is the middle of the interval.
    """
    mean = batch_mean(of_batches)
    if mean is None:
        return None
    half = mean.half()
    return Estimate(whole, whole - half, whole + half, len(of_batches), f"batch means, {len(of_batches)} batches")


def batch_of_rate(at: ArrayLike) -> BatchMean | None:
    """Return the mean time from one event to the next, in the unit of their times; None if they are few or drift.

    Batches have the same number of events, or one more, so that the time of each is exact: equally long ones with few
    events would differ by as much. The rate is the inverse.

    Args:
        at: when each event happened, in any order.
    """
    row = finite(at)
    if row.size < FEWEST_EVENTS:
        return None
    ranks = np.linspace(0, row.size - 1, min(BATCHES, row.size - 1) + 1).round().astype(int)
    return batch_mean(np.diff(np.partition(row, ranks)[ranks]) / np.diff(ranks))


def rate_ends(at: ArrayLike, rate: float) -> Ends:
    """Return the ends of the 95 % interval of a rate of events, in its unit; None where the events do not give it."""
    mean = batch_of_rate(at)
    if mean is None or not mean.value:
        return None, None
    off = mean.half() / mean.value
    return rate / (1 + off), rate / (1 - off) if off < 1 else None


def rate_changes(old: BatchMean, new: BatchMean, rates: tuple[float, float]) -> dict[Scale, Evidence]:
    """Return evidence for the change of a rate from one run to another, `rates`, by the means of `batch_of_rate`.

    Welch's interval (`means.welch`) of the logarithms of the mean times between events, and of the rates.
    """
    # Standard errors as shares of the means.
    errors = [each.error / each.value for each in (old, new)]
    log = math.log(rates[1] / rates[0])
    absolute = [error * rate for error, rate in zip(errors, rates, strict=True)]
    return {
        "ratio": _welch(log, errors, (old, new)).of_logs(),
        "difference": _welch(rates[1] - rates[0], absolute, (old, new)),
    }


def _welch(change: float, errors: Sequence[float], means: Sequence[BatchMean]) -> Evidence:
    """Return evidence for a difference of two means with these standard errors."""
    of_each = [(error**2, mean.worth - 1) for error, mean in zip(errors, means, strict=True)]
    total = sum(variance for variance, _ in of_each)
    # Without any spread the interval has no width at any freedom.
    freedom = total**2 / sum(variance**2 / of for variance, of in of_each) if total else 1.0

    def ends(level: float) -> Ends:
        half = t_quantile(level, freedom) * math.sqrt(total)
        return change - half, change + half

    return ByFormula(ends)
