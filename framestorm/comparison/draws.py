"""What of one run's figures is resampled, and from how many samples on; how is statistics.bootstrap's."""

from dataclasses import replace

import numpy as np

from framestorm.comparison.metrics import PERCENTS, STATISTICS
from framestorm.comparison.sides import Run, Times
from framestorm.statistics.bootstrap import Draws, draw
from framestorm.statistics.resampling import choose_block
from framestorm.statistics.rounding import hidden_ms

# Fewer say too little about their spread for a claim.
LEAST_SAMPLES = 20
RESAMPLES = 10_000
# Of a long run: longer blocks are right whenever shorter ones are, and many cost time.
MOST_BLOCKS = 200
# Of the samples that have to lie beyond a percentile before it is compared: of p99, 1000 samples in all.
LEAST_BEYOND = 10
RATE_WINDOWS = 20
LEAST_IN_WINDOW = 5
SEED = 20_211_101


def seed(side: int, what: str) -> list[int]:
    """Of random numbers that are the same in every comparison and differ by side and series."""
    return [SEED, side, *what.encode()]


def least_samples(statistic: str) -> int:
    """How many samples a statistic of a run needs before it is compared."""
    if statistic == "mean":
        return LEAST_SAMPLES
    percent = float(PERCENTS[statistic])
    return max(LEAST_SAMPLES, round(100 * LEAST_BEYOND / min(percent, 100 - percent)))


def of_times(times: Times, seed: list[int]) -> dict[str, Draws]:
    """Mean, median and percentiles, by name; without those of too few samples."""
    block = max(choose_block(times.values_ms), times.n // MOST_BLOCKS)
    return {
        name: _rounded(
            draw(times.values_ms, PERCENTS.get(name, name), cut=times.cut, block=block, seed=seed, resamples=RESAMPLES)
        )
        for name in STATISTICS
        if times.n >= least_samples(name)
    }


def _rounded(drawn: Draws) -> Draws:
    """With what times in whole ms hide on either side."""
    hidden = hidden_ms(drawn.value)
    return replace(drawn, values=drawn.values - hidden, most=drawn.most + hidden)


def of_rate(run: Run, seed: list[int]) -> Draws | None:
    """Right answers a second, by windows of time long enough to be independent; None where they would hold too few."""
    if run.serving_ms is None or run.ended_ms.size < RATE_WINDOWS * LEAST_IN_WINDOW:
        return None
    start, end = run.serving_ms
    counts, _ = np.histogram(run.ended_ms, bins=RATE_WINDOWS, range=(start, end))
    return draw(counts / ((end - start) / RATE_WINDOWS / 1000), block=1, seed=seed, resamples=RESAMPLES)
