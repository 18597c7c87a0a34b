"""Effect sizes: how far apart two samples lie, independent of their unit and size."""

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from framestorm.stats.checks import finite


def cliffs_delta(a: ArrayLike, cut_a: ArrayLike, b: ArrayLike, cut_b: ArrayLike) -> float:
    """P(a > b) - P(a < b) over all pairs: -1 (all of a are less) to 1 (all are more), 0 for equal samples.

    In O(n log n) by ranks (Cliff, Dominance Statistics, Psychological Bulletin 114(3), 1993). Pairs of which a timeout
    leaves open which is longer count as neither (Gehan, A Generalized Wilcoxon Test for Comparing Arbitrarily
    Singly-Censored Samples, Biometrika 52, 1965).

    a, b: what was measured in full; cut_a, cut_b: times of the same sample that were cut off, and are longer in truth.
    """
    n_a, n_b = (finite(np.concatenate(side)).size for side in ((a, cut_a), (b, cut_b)))
    return (_longer(a, cut_a, b) - _longer(b, cut_b, a)) / (n_a * n_b)


def _longer(full: ArrayLike, cut: ArrayLike, than: ArrayLike) -> int:
    """In how many pairs a value is known to be longer than one of `than`."""
    row = np.sort(np.asarray(than, dtype=np.float64))
    return int(np.searchsorted(row, full, side="left").sum() + np.searchsorted(row, cut, side="right").sum())


def magnitude(delta: float) -> str:
    """Return Cliff's delta in a word: negligible below 0.147, small below 0.33, medium below 0.474, else large.

    Limits of Romano, Kromrey, Coraggio and Skowronek, Appropriate Statistics for Ordinal Level Data, 2006.
    """
    for limit, word in ((0.147, "negligible"), (0.33, "small"), (0.474, "medium")):
        if abs(delta) < limit:
            return word
    return "large"


def hedges_g(a: ArrayLike, b: ArrayLike) -> float | None:
    """Return the difference of means, a - b, in pooled standard deviations, unbiased for small samples.

    With the exact factor gamma(m / 2) / (sqrt(m / 2) gamma((m - 1) / 2)), m = n_a + n_b - 2 (Hedges, Distribution
    Theory for Glass's Estimator of Effect Size, Journal of Educational Statistics 6(2), 1981). None where it is not
    defined: fewer than 4 values in all, or no spread.
    """
    row_a, row_b = finite(a), finite(b)
    freedom = row_a.size + row_b.size - 2
    if freedom < 2:
        return None
    pooled = math.sqrt((row_a.size * float(row_a.var()) + row_b.size * float(row_b.var())) / freedom)
    if pooled <= 1e-12 * max(abs(row_a.mean()), abs(row_b.mean())):  # equal values differ by rounding
        return None
    unbiased = math.exp(special.gammaln(freedom / 2) - special.gammaln((freedom - 1) / 2)) / math.sqrt(freedom / 2)
    return float(unbiased * (row_a.mean() - row_b.mean()) / pooled)
