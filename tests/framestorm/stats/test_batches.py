import numpy as np
import pytest
from scipy import signal

from framestorm.stats.batches import BATCHES, batch_interval


@pytest.mark.parametrize("phi", [0.0, 0.9])
def test_the_interval_holds_the_mean_of_dependent_samples(phi: float) -> None:
    """In nearly 95 of 100 runs; one that takes samples for independent does so in fewer than 40 with phi 0.9."""
    random = np.random.default_rng(3)
    held = naive = 0
    for _ in range(400):
        samples = signal.lfilter([1], [1, -phi], random.normal(size=BATCHES * 100 + 500))[500:] + 10
        interval = batch_interval([*samples.reshape(BATCHES, -1).mean(axis=1)], float(samples.mean()))
        assert interval is not None and interval.low is not None and interval.high is not None
        held += interval.low <= 10 <= interval.high
        naive += abs(samples.mean() - 10) <= 1.96 * samples.std() / samples.size**0.5
    assert held >= 360
    assert naive < 160 if phi else naive >= 360


def test_a_drift_has_no_interval() -> None:
    assert batch_interval([*np.linspace(100, 110, BATCHES)], 105) is None
    assert batch_interval([*np.linspace(100, 100, BATCHES)], 100) is not None
