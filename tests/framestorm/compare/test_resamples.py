from typing import Any

import numpy as np
import pytest

from benchmarks.compare_itself import claims, made_up
from framestorm.compare import questions
from framestorm.study.answers.samples import Times

SEED = questions.seed(0, "")


def full(values: Any) -> Times:
    row = np.asarray(values, dtype=float)
    return Times(row, np.zeros(row.size, dtype=bool))


def test_what_follows_on_each_other_counts_less() -> None:
    random = np.random.default_rng(9)
    alone = full(random.normal(50, 3, 600))
    together = full(np.repeat(random.normal(50, 3, 60), 10))
    spread = [questions.resamples_of_times(times, SEED)["mean_ms"].least.std() for times in (alone, together)]
    assert spread[1] > 2 * spread[0]


@pytest.mark.parametrize(
    ("n", "there"),
    [
        (19, set()),
        (20, {"mean_ms", "median_ms"}),
        (200, {"mean_ms", "median_ms", "p95_ms"}),
        (1000, {"mean_ms", "median_ms", "p95_ms", "p99_ms"}),
    ],
)
def test_a_percentile_needs_samples_beyond_it(n: int, there: set[str]) -> None:
    assert questions.resamples_of_times(full(np.arange(n)), SEED).keys() == there


def test_time_outs_are_lower_bounds() -> None:
    cut = np.random.default_rng(3).permutation(240) < 40
    drawn = questions.resamples_of_times(Times(np.where(cut, 1000.0, 50.0), cut), SEED)
    assert np.isinf(drawn["mean_ms"].most).all() and np.isfinite(drawn["mean_ms"].least).all()
    assert (drawn["median_ms"].most == 51.0).all(), "whole ms: one may be hidden"
    assert np.isinf(drawn["p95_ms"].most).mean() > 0.9


def test_a_run_compared_with_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Halves of one run, drawn anew each time: benchmarks/compare_itself.py does it 200 times and with real runs."""
    monkeypatch.setattr(questions, "RESAMPLES", 2000)
    random = np.random.default_rng(11)
    wrong = sum(bool(claims(made_up(random, 800), random)) for _ in range(25))
    assert wrong <= 1
