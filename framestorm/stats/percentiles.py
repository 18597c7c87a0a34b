"""Exact statistics over times of which some are only lower bounds.

Percentile: the nearest rank, that is the smallest sample value with at least p % of all samples at or below it; always
a value that was measured, never interpolated, exact for any n.

A sample that was cut off by a timeout (right-censored) is known only to be longer than the time waited. It keeps its
place: the r-th smallest of the values as seen is a lower bound of the r-th smallest true value, and equal to it as
long as no cut-off value is among the first r. Every figure therefore says whether it is exact or a lower bound.
"""

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
from scipy import special

from framestorm.stats.checks import LEVEL, Floats
from framestorm.stats.estimate import Estimate, EstimateBound, nearest_rank


class Sample:
    """Times in ms: those measured in full, and those cut off (right-censored)."""

    def __init__(self, full_ms: Floats, cut_ms: Floats | None = None) -> None:
        cut = np.empty(0) if cut_ms is None else cut_ms
        self.censored = int(cut.size)
        self.n = int(full_ms.size) + self.censored
        if self.censored:
            first_cut = float(cut.min())
            # A full value equal to the first cut-off one sorts before it: the cut-off one is known to be longer.
            self._exact_ranks = int(np.count_nonzero(full_ms <= first_cut))
            in_order = np.sort(np.concatenate([full_ms, cut]))
        else:
            self._exact_ranks = self.n
            in_order = np.sort(full_ms)
        self._mean = float(in_order.mean()) if self.n else math.nan
        # Times of millions of samples repeat: each value is kept once, with the last of its ranks.
        is_last = np.append(in_order[1:] != in_order[:-1], [True])[: self.n]
        self._values, self._ranks = in_order[is_last], np.flatnonzero(is_last) + 1

    def percentile(self, percent: str) -> Estimate | None:
        """Return the nearest-rank percentile with its interval; `percent` is a decimal number as text, e.g. "99.9"."""
        if not self.n:
            return None
        p = Fraction(percent) / 100
        rank = nearest_rank(self.n, percent)
        low, high = interval_ranks(self.n, p)
        return Estimate(
            value=self._value(rank),
            n=self.n,
            method="order statistics",
            bound=self._bound(rank),
            low=self._value(low) if low else None,
            high=self._value(high) if high and high <= self._exact_ranks else None,
            few=self.n * (1 - p) < 1,
        )

    def mean(self) -> Estimate | None:
        """Return the mean; a lower bound as soon as one value was cut off."""
        if not self.n:
            return None
        return Estimate(self._mean, n=self.n, bound="lower" if self.censored else "exact")

    def extreme(self, *, largest: bool) -> Estimate | None:
        """Return the smallest or the largest value."""
        if not self.n:
            return None
        rank = self.n if largest else 1
        return Estimate(self._value(rank), n=self.n, bound=self._bound(rank))

    def _value(self, rank: int) -> float:
        return float(self._values[np.searchsorted(self._ranks, rank)])

    def _bound(self, rank: int) -> EstimateBound:
        return "exact" if rank <= self._exact_ranks else "lower"


@lru_cache(maxsize=256)
def interval_ranks(n: int, p: Fraction) -> tuple[int | None, int | None]:
    """Ranks of the two order statistics that hold the p-quantile with at least 95 % (None where n is too small).

    Non-parametric, from the binomial distribution of how many of n independent samples fall below the quantile
    (Le Boudec, Performance Evaluation of Computer and Communication Systems, 2010, theorem 2.1).
    """
    if not 0 < p < 1:
        return None, None
    low, high = (math.ceil(special.bdtrik(tail, n, float(p))) for tail in ((1 - LEVEL) / 2, (1 + LEVEL) / 2))
    return low if low >= 1 else None, high + 1 if high < n else None
