"""Evidence for a figure, a difference or a ratio: its interval at any level, and p-values.

The interval may be open on one side, because a timeout shows only that the time was longer.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from framestorm.stats.checks import LEVEL, finite
from framestorm.stats.estimate import Ends, Estimate, clipped, hull
from framestorm.stats.means import student, welch
from framestorm.stats.shares import margins

Scale = Literal["ratio", "difference"]
# Beyond it a normal tail is below 2e-12: a few samples give no such small probability.
Z_MOST = 7.0
# Beyond this no ratio is meaningful: with two repetitions an end may be too large for a number.
LARGEST_LOG = 25.0
ROUNDED_MS = 1.0


class Evidence:
    """What the data show about a figure: intervals and p-values."""

    def interval(self, level: float = LEVEL) -> Ends:
        """Return the interval at a confidence level between 0 and 1; None for an end that is not known."""
        raise NotImplementedError

    def above(self, at: float) -> float:
        """Return the one-sided p-value if the true value is not above `at`; a small one shows that it is above."""
        return _tail(lambda level: _exceeds(self.interval(level)[0], at))

    def below(self, at: float) -> float:
        """Return the one-sided p-value if the true value is not below `at`."""
        return _tail(lambda level: _exceeds(at, self.interval(level)[1]))

    def two_sided(self, at: float) -> float:
        """Two-sided p-value if the true value is `at`."""
        return min(1.0, 2 * min(self.above(at), self.below(at)))

    def or_wider(self, other: "Evidence | Ends") -> "Evidence":
        """The smallest interval that includes this one and `other` (which may be fixed ends, equal at any level)."""
        of_other = other.interval if isinstance(other, Evidence) else lambda _: other
        return ByFormula(lambda level: hull(self.interval(level), of_other(level)))

    def within(self, least: float | None, most: float | None) -> "Evidence":
        """Return the interval without impossible values."""
        return self.mapped(lambda ends: clipped(ends, least, most))

    def opened(self, low: bool, high: bool) -> "Evidence":
        """Return the interval with its low or high end open, because timeouts hide the true end."""
        return self.mapped(lambda ends: (None if low else ends[0], None if high else ends[1]))

    def of_logs(self) -> "Evidence":
        """Return the interval of a ratio, if this is the interval of its logarithm."""

        def ratio(log: float | None) -> float | None:
            return None if log is None or log > LARGEST_LOG else math.exp(log)

        return self.mapped(lambda ends: (ratio(ends[0]), ratio(ends[1])))

    def scaled(self, factor: float) -> "Evidence":
        """Return the interval of so many times the figure; `factor` is above 0."""

        def scaled(end: float | None) -> float | None:
            return None if end is None else factor * end

        return self.mapped(lambda ends: (scaled(ends[0]), scaled(ends[1])))

    def mapped(self, change: Callable[[Ends], Ends]) -> "Evidence":
        return ByFormula(lambda level: change(self.interval(level)))


@dataclass(frozen=True)
class ByFormula(Evidence):
    """A figure whose interval has a formula."""

    ends: Callable[[float], Ends]

    def interval(self, level: float = LEVEL) -> Ends:
        return self.ends(level)


def of_estimate(estimate: Callable[[float], Estimate]) -> Evidence:
    """Return evidence from a function that gives an estimate with its interval at a confidence level."""

    def ends(level: float) -> Ends:
        figure = estimate(level)
        return figure.low, figure.high

    return ByFormula(ends)


def of_shares(terms: Sequence[tuple[float, float, float]], *, of_logs: bool = False) -> Evidence:
    """Return evidence for a sum of weight * share, each term given as (weight, share, samples); see `shares.margins`.

    of_logs: for the product of the shares to the power of their weights, which are above 0.
    """
    middle = sum(weight * (math.log(share) if of_logs else share) for weight, share, _ in terms)

    def ends(level: float) -> Ends:
        below, above = margins(terms, level, of_logs=of_logs)
        return middle - below, middle + above

    return ByFormula(ends).of_logs() if of_logs else ByFormula(ends)


def over_repetitions(
    old: Sequence[float],
    new: Sequence[float],
    is_bound: tuple[bool, bool] = (False, False),
    *,
    paired: bool = False,
    rounding: tuple[float, float] = (0.0, 0.0),
) -> dict[Scale, Evidence]:
    """Return evidence for the difference of two sides and, if all values are above 0, for the ratio of geometric means.

    In pairs, an effect of a repetition on both sides cancels out (Jain, The Art of Computer Systems Performance
    Analysis, 1991, section 13.4.1).

    Args:
        old: one value per repetition.
        new: one value per repetition; if paired, in the order of the old ones.
        is_bound: which of the two sides includes lower bounds; the interval is then open on that side.
        paired: whether values at the same position belong together.
        rounding: rounding error of each of the old and of each of the new values (`rounding_ms`).
    """
    # At least two repetitions are needed: on one side, or on both if they are paired.
    if max(len(old), len(new)) < 2:
        return {}
    a, b, off = finite(old), finite(new), sum(rounding)

    def change(level: float) -> Estimate:
        return student(b - a, level) if paired else welch(b, a, level)

    def log_change(level: float) -> Estimate:
        return student(np.log(b / a), level) if paired else welch(np.log(b), np.log(a), level)

    middle = float(np.mean(b) - np.mean(a))
    evidence: dict[Scale, Evidence] = {
        "difference": of_estimate(change).opened(*is_bound).or_wider((middle - off, middle + off))
    }
    if min(*old, *new) > 0:
        rounded = log_ratio_ends(new, old, rounding[::-1])
        evidence["ratio"] = of_estimate(log_change).opened(*is_bound).or_wider(rounded).of_logs()
    return evidence


def geometric_ratio(old: Sequence[float], new: Sequence[float]) -> float | None:
    """Geometric mean of `new` over that of `old`; None where a value is not above 0."""
    if min(*old, *new) <= 0:
        return None
    return math.exp(float(np.log(new).mean() - np.log(old).mean()))


def rounding_ms(figures_ms: ArrayLike) -> float:
    """Return the rounding error of each figure: a millisecond if all are whole milliseconds, else 0.

    Repetitions that are all 3 ms have no spread, and their interval would be exactly 3.000 ms. But plain JMeter rounds
    the start and the end of a sample down to the millisecond, so 3 ms can be anything from 2 to 4 ms. Half
    milliseconds count as whole ones, because medians of whole milliseconds may be halves.
    """
    halves = 2 * finite(figures_ms)
    return ROUNDED_MS if np.array_equal(halves, np.round(halves)) else 0.0


def log_ratio_ends(a_ms: ArrayLike, b_ms: ArrayLike, off: tuple[float, float]) -> Ends:
    """Ends of the logarithm of the ratio of geometric means, a / b, if every figure may be off by `off`, up or down.

    An end is None if a figure is no larger than its error.
    """

    def log_mean(figures_ms: ArrayLike, off_ms: float) -> float:
        row = finite(figures_ms) + off_ms
        return float(np.log(row).mean()) if row.min() > 0 else -math.inf

    low = log_mean(a_ms, -off[0]) - log_mean(b_ms, off[1])
    high = log_mean(a_ms, off[0]) - log_mean(b_ms, -off[1])
    return low if math.isfinite(low) else None, high if math.isfinite(high) else None


def holm(p_values: Sequence[float]) -> list[bool]:
    """Return which claims are significant if at most 5 % of such families may include a false claim (Holm).

    The claims may depend on each other.

    Holm, A Simple Sequentially Rejective Multiple Test Procedure, Scandinavian Journal of Statistics 6, 1979.
    """
    stands = [False] * len(p_values)
    for rank, number in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        if p_values[number] > (1 - LEVEL) / (len(p_values) - rank):
            break
        stands[number] = True
    return stands


def _exceeds(larger: float | None, smaller: float | None) -> bool:
    return larger is not None and smaller is not None and larger > smaller


def _tail(excludes: Callable[[float], bool]) -> float:
    """Return the one-sided p-value: (1 - level) / 2 of the widest interval that still excludes the value."""
    low, high = 0.0, Z_MOST
    if not excludes(math.erf(1e-9 / math.sqrt(2))):
        return 1.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if excludes(math.erf(middle / math.sqrt(2))) else (low, middle)
    return math.erfc(low / math.sqrt(2)) / 2
