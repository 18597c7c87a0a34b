from typing import Any

import numpy as np
import pytest

from benchmarks.compare_itself import claims, made_up
from framestorm.compare.runs import STATISTICS
from framestorm.judge import differences
from framestorm.results.samples import OrderedTimes
from framestorm.stats.bootstrap import Resamples

SEED = differences.seed(0, "")


def full(values: Any) -> OrderedTimes:
    row = np.asarray(values, dtype=float)
    return OrderedTimes(row, np.zeros(row.size, dtype=bool))


def resamples(times: OrderedTimes, statistic: str) -> Resamples:
    drawn = differences.resamples_of_times(times, SEED, statistic)
    assert drawn
    return drawn


def test_what_follows_on_each_other_counts_less() -> None:
    random = np.random.default_rng(9)
    alone = full(random.normal(50, 3, 600))
    together = full(np.repeat(random.normal(50, 3, 60), 10))
    spread = [resamples(times, "mean").least.std() for times in (alone, together)]
    assert spread[1] > 2 * spread[0]


@pytest.mark.parametrize(
    ("n", "there"),
    [
        (19, set()),
        (20, {"mean", "median"}),
        (200, {"mean", "median", "p95"}),
        (1000, {"mean", "median", "p95", "p99"}),
    ],
)
def test_a_percentile_needs_samples_beyond_it(n: int, there: set[str]) -> None:
    assert {each for each in STATISTICS if differences.resamples_of_times(full(np.arange(n)), SEED, each)} == there


def test_time_outs_are_lower_bounds() -> None:
    cut = np.random.default_rng(3).permutation(240) < 40
    mean, median, p95 = (
        resamples(OrderedTimes(np.where(cut, 1000.0, 50.0), cut), of) for of in ("mean", "median", "p95")
    )
    assert np.isinf(mean.most).all() and np.isfinite(mean.least).all()
    assert (median.most == 51.0).all(), "whole ms: one may be hidden"
    assert np.isinf(p95.most).mean() > 0.9


def test_a_run_compared_with_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Halves of one run, drawn anew each time: benchmarks/compare_itself.py does it 200 times and with real runs."""
    monkeypatch.setattr(differences, "RESAMPLES", 2000)
    random = np.random.default_rng(11)
    wrong = sum(bool(claims(made_up(random, 800), random)) for _ in range(25))
    assert wrong <= 1
