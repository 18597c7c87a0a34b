"""Shares, such as success ratios: sums and differences of them, and how much dependent samples of a share are worth."""

import math
from collections.abc import Iterable

import numpy as np
from scipy import special

from framestorm.stats.checks import LEVEL, Flags

# Few and long blocks of successive samples are enough, and the safer the longer.
BLOCKS = 30
Z = float(special.ndtri((1 + LEVEL) / 2))


def wilson(ok: float, n: float, z: float = Z) -> tuple[float, float] | None:
    """Wilson's interval of a success rate, 95 % unless `z` is given; accurate also near 0 and 1 and for small n.

    For dependent samples, n may be their effective sample size (Wilson, Probable Inference, the Law of Succession, and
    Statistical Inference, JASA 22, 1927).
    """
    if not n:
        return None
    ratio = ok / n
    centre = ratio + z * z / (2 * n)
    half = z * math.sqrt(ratio * (1 - ratio) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    return (0.0 if ok == 0 else (centre - half) / scale, 1.0 if ok == n else (centre + half) / scale)


def margins(terms: Iterable[tuple[float, float, float]], level: float, *, of_logs: bool = False) -> tuple[float, float]:
    """How far below and above the sum of weight * share its interval reaches, each term given as (weight, share, n).

    By what each share's own interval, Wilson's, reaches to the side that matters, squared and added (MOVER of Zou and
    Donner, Construction of Confidence Limits about Effect Measures, Statistics in Medicine 27, 2008; of two shares it
    is method 10 of Newcombe, Interval Estimation for the Difference between Independent Proportions, Statistics in
    Medicine 17, 1998). n may be the number of independent samples that dependent ones are worth (`design_effect`).

    of_logs: of the sum of weight * log(share), for ratios; shares are above 0.
    """
    z = float(special.ndtri((1 + level) / 2))
    of = math.log if of_logs else float
    below = above = 0.0
    for weight, share, n in terms:
        low, high = wilson(share * n, n, z) or (0.0, 1.0)
        reach = of(share) - of(low), of(high) - of(share)
        down, up = reach if weight > 0 else reach[::-1]
        below, above = math.hypot(below, weight * down), math.hypot(above, weight * up)
    return below, above


def design_effect(right: Flags) -> float:
    """Return how many samples, in the order they were taken, are worth one independent one; at least 1.

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
