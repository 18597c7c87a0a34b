"""Pairs of values of the same thing: whether the second is smaller, how often clearly, and by how much."""

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from framestorm.stats.estimate import Estimate
from framestorm.stats.shares import Z, wilson


def signed_rank_below(differences: ArrayLike) -> float:
    """Return the one-sided p-value of Wilcoxon's signed-rank test if differences are not below 0 in the middle.

    By the normal approximation with correction for ties and continuity, good from about 20 differences; zeros are left
    out (Hollander, Wolfe and Chicken, Nonparametric Statistical Methods, 2014, section 3.1).
    """
    values = np.asarray(differences, dtype=np.float64)
    values = values[values != 0]
    n = values.size
    if not n:
        return 1.0
    _, places, counts = np.unique(np.abs(values), return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[places]
    above = float(ranks[values > 0].sum())
    variance = n * (n + 1) * (2 * n + 1) / 24 - float((counts**3 - counts).sum()) / 48
    return float(special.ndtr((above - n * (n + 1) / 4 + 0.5) / np.sqrt(variance)))


def more_often(wins: int, losses: int) -> float:
    """Return the one-sided p-value of the exact sign test, McNemar's, if wins are not more likely than losses."""
    return float(special.bdtrc(wins - 1, wins + losses, 0.5)) if wins else 1.0


def hodges_lehmann(differences: ArrayLike) -> Estimate:
    """Return the median of all means of two differences, or of one with itself, with its 95 % interval.

    The interval belongs to the signed-rank test: so many of the ordered means are cut off at each end (Hodges and
    Lehmann, Estimates of Location Based on Rank Tests, Annals of Mathematical Statistics 34, 1963; Hollander, Wolfe and
    Chicken, section 3.3). There are n (n + 1) / 2 means: 2 million of 2,000 differences.
    """
    values = np.asarray(differences, dtype=np.float64)
    n = values.size
    first, second = np.triu_indices(n)
    means = np.sort((values[first] + values[second]) / 2)
    cut = int(np.floor(n * (n + 1) / 4 - Z * np.sqrt(n * (n + 1) * (2 * n + 1) / 24)))
    is_known = cut >= 1
    return Estimate(
        float(np.median(means)),
        float(means[cut - 1]) if is_known else None,
        float(means[-cut]) if is_known else None,
        n=n,
        method="Hodges and Lehmann",
    )


def paired_difference(both: int, first_only: int, second_only: int, neither: int) -> Estimate:
    """Return by how much the share of the first is larger than that of the second, with its 95 % interval.

    Method 10 of Newcombe, Improved Confidence Intervals for the Difference between Binomial Proportions Based on Paired
    Data, Statistics in Medicine 17, 1998: what each share's own interval, Wilson's, reaches, with their correlation.

    Args:
        both: of how many things the first and the second are true.
        first_only: of how many only the first is.
        second_only: of how many only the second is.
        neither: of how many none is.
    """
    n = both + first_only + second_only + neither
    first, second = both + first_only, both + second_only
    product = both * neither - first_only * second_only
    scale = math.sqrt(first * (n - first) * second * (n - second))
    correlation = (max(product - n / 2, 0) if product > 0 else product) / scale if scale else 0.0
    (low_1, high_1), (low_2, high_2) = (wilson(each, n) or (0.0, 1.0) for each in (first, second))
    below, above = (first / n - low_1, high_2 - second / n), (high_1 - first / n, second / n - low_2)
    down, up = (math.sqrt(a * a - 2 * correlation * a * b + b * b) for a, b in (below, above))
    middle = (first_only - second_only) / n
    return Estimate(middle, middle - down, middle + up, n=n, method="Newcombe")
