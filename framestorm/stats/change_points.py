"""Where the level of a series of figures changed: E-divisive, with a permutation test for each change.

Matteson and James, A Nonparametric Approach for Multiple Change Point Analysis of Multivariate Data, JASA 109, 2014, in
one dimension and with the exponent 1: the place of a change is where the energy distance between what is before and
after is largest, weighted by their sizes. It is a change if few permutations of the series have a larger one anywhere.
Then both parts are searched in the same way. benchmarks/history_alarms.py measures power and false alarms.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from framestorm.stats.checks import Floats, finite

# At least so many figures on both sides of a change: one or two that differ are outliers.
LEAST = 3
LEVEL = 0.02
PERMUTATIONS = 999
LONGEST = 200  # figures; of a longer series the last
_SEED = 31
_CELLS = 1 << 20  # of distances in memory


class ChangePoint(NamedTuple):
    """A change of level: at which figure, the first after it; and the p-value of no change."""

    at: int
    p_value: float


def change_points(values: Sequence[float]) -> list[ChangePoint]:
    """Return the changes of level of a series in the order of time; the same series always has the same."""
    if len(values) < 2 * LEAST:
        return []
    row = finite(values)
    first = max(0, row.size - LONGEST)
    return sorted(_changes(row, first, row.size, LEVEL))


def _changes(row: Floats, begin: int, end: int, level: float) -> list[ChangePoint]:
    part = row[begin:end]
    if part.size < 2 * LEAST or np.ptp(part) == 0:
        return []
    distances = np.abs(part[:, None] - part[None, :])
    divergences = _divergences(distances[None])[0]
    index = int(divergences.argmax())
    p_value = _p_value(distances, float(divergences[index]), level)
    if p_value > level:
        return []
    at, level_of_parts = begin + index + LEAST, LEVEL / 2  # there are two of them
    return [
        ChangePoint(at, p_value),
        *_changes(row, begin, at, level_of_parts),
        *_changes(row, at, end, level_of_parts),
    ]


def _divergences(distances: NDArray[np.float64]) -> NDArray[np.float64]:
    """The weighted energy distance of both sides of each possible change.

    Args:
        distances: (k, n, n) between the n figures of k series.

    Returns:
        (k, n - 2 LEAST + 1): the first for a change after LEAST figures.
    """
    n = distances.shape[1]
    to_earlier, to_later = np.tril(distances).sum(axis=2), np.triu(distances).sum(axis=2)
    before = to_earlier.cumsum(axis=1)[:, LEAST - 1 : n - LEAST]
    after = to_later[:, ::-1].cumsum(axis=1)[:, ::-1][:, LEAST : n - LEAST + 1]
    across = to_earlier.sum(axis=1)[:, None] - before - after
    n_before = np.arange(LEAST, n - LEAST + 1)
    n_after = n - n_before
    energy = 2 * across / (n_before * n_after)
    energy -= 2 * before / (n_before * (n_before - 1)) + 2 * after / (n_after * (n_after - 1))
    return np.asarray(energy * n_before * n_after / n)


def _p_value(distances: NDArray[np.float64], divergence: float, level: float) -> float:
    """The share of permutations with a change at least as large; a lower bound of it as soon as it is above `level`."""
    n, random = len(distances), np.random.default_rng(_SEED)
    batch = max(1, min(PERMUTATIONS, _CELLS // n**2))
    larger = done = 0
    while done < PERMUTATIONS and (larger + 1) / (PERMUTATIONS + 1) <= level:
        count = min(batch, PERMUTATIONS - done)
        order = np.argsort(random.random((count, n)), axis=1)
        largest = _divergences(distances[order[:, :, None], order[:, None, :]]).max(axis=1)
        larger += int((largest >= divergence * (1 - 1e-12)).sum())
        done += count
    return (larger + 1) / (PERMUTATIONS + 1)
