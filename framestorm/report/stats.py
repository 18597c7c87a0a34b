"""Exact statistics over times of which some are only lower bounds.

Percentile: the nearest rank, that is the smallest sample value with at least p % of all samples at or below it; always
a value that was measured, never interpolated, exact for any n.

A sample that was cut off by a time-out (right-censored) is known only to be longer than the time waited. It keeps its
place: the r-th smallest of the values as seen is a lower bound of the r-th smallest true value, and equal to it as
long as no cut-off value is among the first r. Every figure therefore says whether it is exact or a lower bound.
"""

import math
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from framestorm.report.estimate import Bound, Estimate

Floats = NDArray[np.float64]
LEVEL = 0.95
Z = 1.959963984540054  # the normal quantile of (1 + LEVEL) / 2
TABLE_PERCENTILES = ("50", "90", "95", "99")


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
            self._sorted = np.sort(np.concatenate([full_ms, cut]))
        else:
            self._exact_ranks = self.n
            self._sorted = np.sort(full_ms)

    def percentile(self, percent: str) -> Estimate | None:
        """The nearest-rank percentile with its interval; `percent` is a decimal number as text, e.g. "99.9"."""
        if not self.n:
            return None
        p = Fraction(percent) / 100
        rank = max(1, math.ceil(p * self.n))
        low, high = interval_ranks(self.n, p)
        return Estimate(
            value=float(self._sorted[rank - 1]),
            bound=self._bound(rank),
            low=float(self._sorted[low - 1]) if low else None,
            high=float(self._sorted[high - 1]) if high and high <= self._exact_ranks else None,
            few=self.n * (1 - p) < 1,
        )

    def mean(self) -> Estimate | None:
        """The mean; a lower bound as soon as one value was cut off."""
        if not self.n:
            return None
        return Estimate(float(self._sorted.mean()), "lower" if self.censored else "exact")

    def extreme(self, *, largest: bool) -> Estimate | None:
        """The smallest or the largest value."""
        if not self.n:
            return None
        rank = self.n if largest else 1
        return Estimate(float(self._sorted[rank - 1]), self._bound(rank))

    def describe(self) -> dict[str, Any]:
        """All figures of the page's tables, as they stand in summary.json."""
        figures = {
            "mean": self.mean(),
            "min": self.extreme(largest=False),
            **{f"p{p}": self.percentile(p) for p in TABLE_PERCENTILES},
            "max": self.extreme(largest=True),
        }
        described = {name: figure.as_json() if figure else None for name, figure in figures.items()}
        return {"n": self.n, "censored": self.censored, **described}

    def _bound(self, rank: int) -> Bound:
        return "exact" if rank <= self._exact_ranks else "lower"


@lru_cache(maxsize=256)
def interval_ranks(n: int, p: Fraction) -> tuple[int | None, int | None]:
    """Ranks of the two order statistics that hold the p-quantile with at least 95 % (None where n is too small).

    Non-parametric, from the binomial distribution of how many of n independent samples fall below the quantile
    (Le Boudec, Performance Evaluation of Computer and Communication Systems, 2010, theorem 2.1).
    """
    if not 0 < p < 1:
        return None, None
    tail = (1 - LEVEL) / 2
    q = float(p)
    spread = 10 * math.sqrt(n * q * (1 - q)) + 10
    first, last = max(0, math.floor(n * q - spread)), min(n, math.ceil(n * q + spread))
    low = high = None
    below = 0.0  # P(B < k), up to what lies outside of ten standard deviations
    for k in range(first, last + 1):
        if below <= tail and k >= 1:
            low = k
        below += _binomial(n, k, q)
        if below >= 1 - tail:
            high = k + 1
            break
    return low, high if high is not None and high <= n else None


def _binomial(n: int, k: int, q: float) -> float:
    choose = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
    return math.exp(choose + k * math.log(q) + (n - k) * math.log1p(-q))


def wilson(ok: float, n: float, z: float = Z) -> tuple[float, float] | None:
    """Wilson's interval of a success ratio, 95 % unless `z` says otherwise; right also near 0 and 1 and for small n.

    n may be the number of independent samples that dependent ones are worth (Wilson, Probable Inference, the Law of
    Succession, and Statistical Inference, JASA 22, 1927).
    """
    if not n:
        return None
    ratio = ok / n
    centre = ratio + z * z / (2 * n)
    half = z * math.sqrt(ratio * (1 - ratio) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    return (0.0 if ok == 0 else (centre - half) / scale, 1.0 if ok == n else (centre + half) / scale)
