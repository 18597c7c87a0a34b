"""Kinds of values that statistics share, and checks of what goes into them; their errors say which value is wrong."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
# Ends of an interval; None: the data cannot give it.
Ends = tuple[float | None, float | None]
LEVEL = 0.95


def finite(values: ArrayLike, what: str = "values") -> Floats:
    """`values` as one row of floats.

    Raises:
        ValueError: none are there, one is not finite, or they have more than one dimension.
    """
    row = np.atleast_1d(np.asarray(values, dtype=np.float64))
    if row.ndim != 1:
        raise ValueError(f"{what}: one row of numbers is wanted, not an array of shape {row.shape}")
    if not row.size:
        raise ValueError(f"{what}: there are none")
    wrong = np.flatnonzero(~np.isfinite(row))
    if wrong.size:
        raise ValueError(f"{what}: number {wrong[0] + 1} of {row.size} is {row[wrong[0]]}, not a finite number")
    return row


def pairs(a: ArrayLike, b: ArrayLike, what_a: str, what_b: str) -> tuple[Floats, Floats]:
    """Two rows of the same length.

    Raises:
        ValueError: as `finite`, or their lengths differ.
    """
    row_a, row_b = finite(a, what_a), finite(b, what_b)
    if row_a.size != row_b.size:
        raise ValueError(f"{row_a.size} {what_a} but {row_b.size} {what_b}: as many of each are wanted")
    return row_a, row_b


def positive(values: ArrayLike, what: str = "values") -> Floats:
    """`values` as one row of floats above 0, as logarithms and ratios need them.

    Raises:
        ValueError: as `finite`, or one is 0 or less.
    """
    row = finite(values, what)
    if row.min() <= 0:
        raise ValueError(f"{what}: {row.min()} is among them; ratios and logarithms need numbers above 0")
    return row


def check_level(level: float) -> None:
    """Raises ValueError unless the level of an interval is a share between 0 and 1."""
    if not 0 < level < 1:
        raise ValueError(f"level {level}: a share between 0 and 1 is wanted, e.g. 0.95")
