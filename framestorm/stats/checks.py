"""Kinds of values that statistics share, and the check of what goes into them."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
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
