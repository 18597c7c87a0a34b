"""The figure of one run with its interval while the run goes on, by batch means."""

import math
from collections.abc import Sequence

from framestorm.stats.checks import LEVEL, finite
from framestorm.stats.estimate import Estimate
from framestorm.stats.means import t_quantile

BATCHES = 20
FEWEST = 3  # batches' worth of independent figures


def batch_interval(of_batches: Sequence[float], whole: float) -> Estimate | None:
    """Return a figure with its 95 % interval from that of equally long parts of a run; None while these drift.

    Neighbouring samples depend on each other, long batches hardly do: the figures of the batches give Student's
    interval (batch means, of percentiles too: Law, Simulation Modeling and Analysis, 5th edition, 2015, section 9.5.3).
    Where neighbouring batches still go together, with a correlation r of lag 1 above 0, n batches count as n (1 - r) /
    (1 + r), as in an autoregressive process. In a ramp or a drift fewer than FEWEST are left.

    Args:
        of_batches: the figure of each batch, in their order.
        whole: the figure of all samples together, which is the middle of the interval.
    """
    row = finite(of_batches)
    centred = row - row.mean()
    total = float(centred @ centred)
    correlation = max(0.0, float(centred[:-1] @ centred[1:]) / total) if total else 0.0
    n = row.size * (1 - correlation) / (1 + correlation)
    if n < FEWEST:
        return None
    half = t_quantile(LEVEL, n - 1) * math.sqrt(total / (row.size - 1) / n)
    return Estimate(whole, whole - half, whole + half, row.size, f"batch means, {row.size} batches")
