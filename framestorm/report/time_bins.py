"""Bins of time that the charts over time share."""

from typing import NamedTuple

import polars as pl

MAX_TIME_BINS = 120
MAX_BINS = 20 * MAX_TIME_BINS  # where a clock is wrong
SAMPLES_PER_BIN = 10
BIN_WIDTHS_S = (0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 43200, 86400)


class TimeBins(NamedTuple):
    """Bins of equal width from the start of the load on. The last one takes the rest, so it may be half a width off."""

    start_s: float
    width_s: float
    n: int
    last_s: float  # the width of the last one

    @classmethod
    def of(cls, n: int, low_s: float, high_s: float) -> "TimeBins":
        """Return the bins of n moments, the first and the last of which are given."""
        width_s = _bin_width_s(n, high_s - low_s)
        # 80 starts in 1 s are 80/s though the last is there after 79 pauses: one more follows it, unless they are few.
        length_s = high_s - low_s + min((high_s - low_s) / max(1, n - 1), width_s / 4)
        n_bins = max(1, round(length_s / width_s))
        if n_bins > MAX_BINS:
            return cls(low_s, width_s, MAX_BINS, width_s)
        # What takes no time at all has no rate: no bin is shorter than half a width.
        return cls(low_s, width_s, n_bins, max(length_s - (n_bins - 1) * width_s, width_s / 2))

    @property
    def x(self) -> list[float]:
        """The middles of the bins."""
        whole = [self.start_s + (number + 0.5) * self.width_s for number in range(self.n - 1)]
        last = self.start_s + (self.n - 1) * self.width_s + self.last_s / 2
        return [round(middle, 3) for middle in (*whole, last)]

    def number(self, at_s: pl.Expr) -> pl.Expr:
        """Return the bin of a moment. A clock that is years off must not make a million: later moments are in none."""
        number = ((at_s - self.start_s) / self.width_s).floor()
        is_of_last = (number == self.n) & (at_s < self.start_s + (self.n + 0.5) * self.width_s)
        return pl.when(is_of_last).then(self.n - 1).otherwise(number.clip(upper_bound=self.n)).cast(pl.Int32)

    def per_s(self, count: pl.Expr) -> pl.Expr:
        """Return the rate that is meant by a count in a bin, whose number is the column `bin`."""
        return count / pl.when(pl.col("bin") == self.n - 1).then(self.last_s).otherwise(self.width_s)


def _bin_width_s(n: int, length_s: float) -> float:
    """Return a round bin width that leaves enough of `n` samples in a bin and not too many bins."""
    bins = min(MAX_TIME_BINS, max(5, n // SAMPLES_PER_BIN))
    return float(next((width for width in BIN_WIDTHS_S if width * bins >= length_s), BIN_WIDTHS_S[-1]))
