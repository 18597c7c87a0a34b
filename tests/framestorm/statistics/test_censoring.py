import numpy as np
import pytest
from scipy import stats

from framestorm.statistics.censoring import kaplan_meier, restricted_mean
from framestorm.statistics.means import student

# Weeks of remission under 6-MP (Freireich et al., 1963), the textbook case: Klein and Moeschberger, Survival Analysis,
# 2nd edition, 2003, table 4.1A and example 4.2.
ENDED = (6, 6, 6, 7, 10, 13, 16, 22, 23)
CUT = (6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35)
WEEKS, CENSORED = np.array(ENDED + CUT, dtype=float), np.array([False] * len(ENDED) + [True] * len(CUT))


def test_the_textbooks_curve() -> None:
    curve = kaplan_meier(WEEKS, CENSORED)
    assert list(curve.times) == [6, 7, 10, 13, 16, 22, 23]
    assert list(curve.at_risk) == [21, 17, 15, 12, 11, 7, 6]
    assert list(curve.events) == [3, 1, 1, 1, 1, 1, 1]
    assert curve.survival == pytest.approx([0.857, 0.807, 0.753, 0.690, 0.627, 0.538, 0.448], abs=5e-4)


def test_agreement_with_scipy() -> None:
    noise = np.random.default_rng(1)
    true, limits = np.round(noise.exponential(10, 300), 1), np.round(noise.exponential(15, 300), 1)
    cut = true > limits
    times = np.minimum(true, limits)
    curve = kaplan_meier(times, cut)
    expected = stats.ecdf(stats.CensoredData(times[~cut], right=times[cut])).sf
    assert curve.survival == pytest.approx(np.asarray(expected.evaluate(curve.times)), rel=1e-9, abs=1e-12)


def test_restricted_mean_of_the_textbook() -> None:
    """Klein and Moeschberger, example 4.1 (continued): 23.29 weeks up to 35, standard error 2.83."""
    seen = restricted_mean(WEEKS, CENSORED, 35)
    assert seen.value == pytest.approx(23.29, abs=5e-3)
    error = 2.827 * np.sqrt(21 / 20)
    assert seen.low == pytest.approx(seen.value - stats.t.ppf(0.975, 20) * error, abs=5e-3)
    assert (seen.high, seen.n) == (pytest.approx(seen.value + stats.t.ppf(0.975, 20) * error, abs=5e-3), 21)
    assert seen.method == "mean up to 35, 12 of 21 cut off, Greenwood and Student, 95 %"


@pytest.mark.parametrize("horizon", [3.0, 20.0, 25.0])
def test_restricted_mean_at_one_time_out_is_students(horizon: float) -> None:
    """Where all are seen up to the horizon nothing is estimated: it is the mean of the times, cut there."""
    true = np.random.default_rng(4).exponential(10, 200)
    seen = restricted_mean(np.minimum(true, 25.0), true > 25, horizon)
    expected = student(np.minimum(true, horizon))
    assert (seen.value, seen.low, seen.high) == pytest.approx((expected.value, expected.low, expected.high), rel=1e-9)


def test_restricted_mean_without_cut_off_times_is_the_mean() -> None:
    row = np.random.default_rng(5).exponential(10, 50)
    seen, expected = restricted_mean(row, np.zeros(50), 1000), student(row)
    assert (seen.value, seen.low, seen.high) == pytest.approx((expected.value, expected.low, expected.high), rel=1e-9)


def test_restricted_mean_rises_with_the_horizon_and_follows_scale() -> None:
    means = [restricted_mean(WEEKS, CENSORED, horizon).value for horizon in (1, 6, 10, 20, 35)]
    assert means == sorted(means) and means[0] == 1
    plain, scaled = restricted_mean(WEEKS, CENSORED, 30), restricted_mean(1000 * WEEKS, CENSORED, 30_000)
    assert plain.low is not None and plain.high is not None
    assert (scaled.value, scaled.low, scaled.high) == pytest.approx(
        (1000 * plain.value, 1000 * plain.low, 1000 * plain.high), rel=1e-9
    )


def test_times_that_all_timed_out() -> None:
    seen = restricted_mean([25.0] * 10, [True] * 10, 25)
    assert (seen.value, seen.low, seen.high) == (25.0, None, 25.0)
    assert restricted_mean([3.0], [False], 25).low is None


@pytest.mark.parametrize(
    ("times", "censored", "horizon", "said"),
    [
        ([], [], 1, "times: there are none"),
        ([1.0, float("inf")], [False, True], 1, "number 2 of 2 is inf"),
        ([1.0, -2.0], [False, False], 1, r"-2\.0 is among them"),
        ([1.0, 2.0], [False], 1, "2 times but 1 marks"),
        ([1.0, 2.0], [False, False], 0, "horizon 0"),
        ([1.0, 2.0], [False, True], 3, "horizon 3: the longest time is 2 and cut off"),
    ],
)
def test_refusals(times: list[float], censored: list[bool], horizon: float, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        restricted_mean(times, censored, horizon)
