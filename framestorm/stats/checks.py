"""Kinds of values that statistics share, and the check of what goes into them."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
# Ends of an interval; None: the data cannot give it.
Ends = tuple[float | None, float | None]
LEVEL = 0.95


def finite(values: ArrayLike) -> Floats:
    """`values` as one row of floats.

    Raises:
        ValueError: none are there, or one is not finite.
    """
    row = np.atleast_1d(np.asarray(values, dtype=np.float64))
    if not row.size or not np.isfinite(row).all():
        raise ValueError(f"finite numbers are wanted, one at least, not {row}")
    return row


def hull(first: Ends, second: Ends) -> Ends:
    """The interval that holds two others; an end is not known if either is not."""
    (low_1, high_1), (low_2, high_2) = first, second
    low = None if low_1 is None or low_2 is None else min(low_1, low_2)
    return low, None if high_1 is None or high_2 is None else max(high_1, high_2)


def clipped(ends: Ends, least: float | None, most: float | None) -> Ends:
    """The interval without what cannot be."""
    low, high = ends
    low = low if low is None or least is None else max(low, least)
    return low, high if high is None or most is None else min(high, most)
