import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import signal

from framestorm.stats.batches import BATCHES, batch_interval, batch_of_rate, rate_changes, rate_ends

FloatArray = NDArray[np.float64]


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


def ends_of_answers(random: np.random.Generator, users: int, phi: float, length_s: float) -> FloatArray:
    """When answers end to users who wait for each, 0.1 s on average; times of a user depend on the one before."""
    n = round(15 * length_s)
    noise = random.normal(size=(users, n + 30)) * (1 - phi**2) ** 0.5
    each_s = 0.1 * np.exp(0.5 * signal.lfilter([1], [1, -phi], noise)[:, 30:] - 0.125)
    ends = np.cumsum(each_s, axis=1).ravel()
    answers: FloatArray = np.sort(ends[ends < length_s])
    return answers


@pytest.mark.parametrize("phi", [0.0, 0.9])
def test_the_interval_of_a_rate_holds_the_true_one(phi: float) -> None:
    random, held, of_ratio = np.random.default_rng(4), 0, 0
    for _ in range(200):
        slow = ends_of_answers(random, 4, phi, 60)
        fast = ends_of_answers(random, 4, phi, 60) / 1.2
        low, high = rate_ends(slow, slow.size / 60)
        assert low is not None and high is not None
        held += low <= 40 <= high
        old, new = batch_of_rate(slow), batch_of_rate(fast)
        assert old is not None and new is not None
        low, high = rate_changes(old, new, (40.0, 48.0))["difference"].interval()
        at_least, at_most = rate_changes(old, new, (slow.size / 60, fast.size / 50))["ratio"].interval()
        assert low is not None and high is not None and low < 8 < high
        assert at_least is not None and at_most is not None
        of_ratio += at_least <= 1.2 <= at_most
    assert held >= 180
    assert of_ratio >= 180


@pytest.mark.parametrize("n", range(40, 61))
def test_every_event_counts_for_the_interval_of_a_rate(n: int) -> None:
    """The second half comes at a fifth of the rate of the first."""
    at = np.cumsum([1.0] * (n // 2) + [5.0] * (n - n // 2))
    assert rate_ends(at, n / float(at[-1])) == (None, None)


def test_a_rate_that_is_kept_to_the_millisecond_has_an_interval_without_width() -> None:
    assert rate_ends(np.arange(0, 60, 0.02), 50.0) == pytest.approx((50.0, 50.0))


def test_a_rate_that_falls_or_of_a_few_answers_has_no_interval() -> None:
    assert rate_ends(np.cumsum(np.linspace(1, 2, 400)), 2 / 3) == (None, None)
    assert rate_ends(np.arange(9.0), 1.0) == (None, None)
