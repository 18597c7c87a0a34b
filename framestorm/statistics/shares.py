"""Two shares, such as success ratios, by their difference; and how much dependent samples of a share are worth."""

import math

import numpy as np
from numpy.typing import NDArray
from scipy import special

from framestorm.report.stats import wilson

# Few and long blocks of successive samples are enough, and the safer the longer.
BLOCKS = 30


def newcombe(a: tuple[float, float], b: tuple[float, float], level: float) -> tuple[float, float]:
    """The interval of a - b, each given as (share, n); right also near 0 and 1.

    Hybrid score interval, method 10 of Newcombe, Interval Estimation for the Difference between Independent
    Proportions, Statistics in Medicine 17, 1998. n may be the number of independent samples that dependent ones are
    worth (`design_effect`).
    """
    z = float(special.ndtri((1 + level) / 2))
    (low_a, high_a), (low_b, high_b) = (wilson(share * n, n, z) or (0.0, 1.0) for share, n in (a, b))
    value = a[0] - b[0]
    return value - math.hypot(a[0] - low_a, high_b - b[0]), value + math.hypot(high_a - a[0], b[0] - low_b)


def design_effect(right: NDArray[np.bool_]) -> float:
    """How many samples, in the order they were taken, are worth one independent one; at least 1.

    Failures come in clusters: the variance of the ratios of BLOCKS blocks to the binomial one (Rao and Scott, A Simple
    Method for the Analysis of Clustered Binary Data, Biometrics 48, 1992; on so few blocks Schmeiser, Batch Size
    Effects in the Analysis of Simulation Output, Operations Research 30, 1982).
    """
    n, ratio = right.size, float(right.mean())
    blocks = min(BLOCKS, n)
    if ratio in (0.0, 1.0) or blocks < 2:
        return 1.0
    spread = np.var([part.mean() for part in np.array_split(right, blocks)], ddof=1)
    return float(max(1.0, spread / (ratio * (1 - ratio) / (n / blocks))))
