from fractions import Fraction

import numpy as np
import pytest

from framestorm.model import units
from framestorm.stats.percentiles import Sample, interval_ranks
from framestorm.stats.shares import wilson


def value(sample: Sample, percent: str) -> tuple[float, str]:
    figure = sample.percentile(percent)
    assert figure is not None
    return figure.value, figure.bound


@pytest.mark.parametrize(
    ("n", "percent", "expected"),
    [(1, "50", 1), (2, "50", 1), (3, "50", 2), (4, "50", 2), (10, "90", 9), (10, "95", 10), (100, "99", 99),
     (100, "99.9", 100), (1000, "99.9", 999), (200, "99.5", 199), (1_000_000, "99.99", 999_900),
     (1_000_000, "29", 290_000)],
)  # fmt: skip
def test_nearest_rank(n: int, percent: str, expected: int) -> None:
    assert value(Sample(np.arange(n, 0, -1.0)), percent) == (expected, "exact")


def test_no_window_forgets_the_first_samples() -> None:
    """80,000 slow samples, then 20,000 fast ones: JMeter's default of a window of 20,000 says 10 ms."""
    sample = Sample(np.concatenate([np.full(80_000, 1000.0), np.full(20_000, 10.0)]))
    assert value(sample, "50") == (1000.0, "exact")
    assert value(sample, "20") == (10.0, "exact")
    assert value(sample, "20.001") == (1000.0, "exact")


def test_censored_values_are_lower_bounds() -> None:
    sample = Sample(np.array([10.0, 20.0, 30.0, 40.0]), np.array([30.0]))
    assert [value(sample, p) for p in ("20", "40", "60", "80", "100")] == [
        (10.0, "exact"), (20.0, "exact"), (30.0, "exact"), (30.0, "lower"), (40.0, "lower"),
    ]  # fmt: skip
    mean, low, high = sample.mean(), sample.extreme(largest=False), sample.extreme(largest=True)
    assert mean and low and high
    assert (mean.value, mean.bound, low.bound, high.bound) == (26.0, "lower", "exact", "lower")


def test_bounds_hold_for_any_true_value() -> None:
    noise = np.random.default_rng(5)
    for _ in range(200):
        true = np.round(noise.exponential(10, 15), 1)
        limit = np.round(noise.exponential(12, 15), 1)
        cut = true > limit
        sample, whole = Sample(true[~cut], limit[cut]), Sample(true)
        for percent in ("10", "50", "90", "99"):
            seen, bound = value(sample, percent)
            assert seen == value(whole, percent)[0] if bound == "exact" else seen <= value(whole, percent)[0]


@pytest.mark.parametrize(
    ("n", "p", "ranks"),
    # Le Boudec, table of the median's interval at 95 %: 6 -> (1, 6), 10 -> (2, 9), 20 -> (6, 15), 70 -> (27, 44).
    [(5, "1/2", (None, None)), (6, "1/2", (1, 6)), (10, "1/2", (2, 9)), (20, "1/2", (6, 15)), (70, "1/2", (27, 44)),
     (50, "99/100", (48, None)), (1000, "1/2", (469, 532))],
)  # fmt: skip
def test_interval_ranks(n: int, p: str, ranks: tuple[int | None, int | None]) -> None:
    assert interval_ranks(n, Fraction(p)) == ranks


@pytest.mark.parametrize(
    ("ok", "n", "expected"),
    [
        (0, 0, None),
        (0, 10, (0.0, 0.2775)),
        (10, 10, (0.7225, 1.0)),
        (5, 10, (0.2366, 0.7634)),
        (81, 263, (0.2553, 0.3662)),
    ],
)
def test_wilson(ok: int, n: int, expected: tuple[float, float] | None) -> None:
    """81 of 263: Newcombe, Statistics in Medicine 17 (1998), table I."""
    assert wilson(ok, n) == (None if expected is None else pytest.approx(expected, abs=5e-5))


@pytest.mark.parametrize(
    ("ms", "text"),
    [(0, "0 ms"), (0.0123, "0.0123 ms"), (9.996, "10.0 ms"), (12, "12 ms"), (12.34, "12.3 ms"), (999.4, "999 ms"),
     (999.6, "1.00 s"), (25_001, "25.0 s"), (119_400, "119 s"), (119_600, "2 min 00 s"), (3_599_700, "1 h 00 min"),
     (172_799_000, "47 h 59 min"),
     (172_800_000, "2 days"), (213_840_000, "2 days 11 h"), (258_900_000, "3 days"), (1e10, "115 days 18 h")],
)  # fmt: skip
def test_duration(ms: float, text: str) -> None:
    assert units.duration(ms).replace(units.NBSP, " ") == text


@pytest.mark.parametrize(
    ("ratio", "text"),
    [(1, "100 %"), (0, "0 %"), (0.99996, "99.996 %"), (0.9999999, "99.99999 %"), (0.00004, "0.004 %"), (0.5, "50.0 %")],
)
def test_percent_never_rounds_to_all_or_none(ratio: float, text: str) -> None:
    assert units.percent(ratio).replace(units.NBSP, " ") == text


@pytest.mark.parametrize(("n", "text"), [(0, "0 runs"), (1, "1 run"), (2, "2 runs")])
def test_only_one_is_singular(n: int, text: str) -> None:
    assert units.plural(n, "run") == text


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [(None, None, ""), ("1", None, "1 \u2013 …"), (None, "2", "… \u2013 2"), ("1", "2", "1 \u2013 2")],
)
def test_an_end_that_is_not_known_is_left_open(low: str | None, high: str | None, text: str) -> None:
    assert units.ends(low, high) == text


@pytest.mark.parametrize(
    ("n_bytes", "text"),
    [
        (0, "0 B"),
        (0.4, "0.400 B"),
        (512.4, "512 B"),
        (999, "999 B"),
        (1000, "1.00 kB"),
        (1e6, "1.00 MB"),
        (999e6, "999 MB"),
        (1e9, "1.00 GB"),
        (2e12, "2000 GB"),
    ],
)
def test_a_size_has_the_unit_that_it_reaches(n_bytes: float, text: str) -> None:
    assert units.size(n_bytes).replace(units.NBSP, " ").replace(",", "") == text


@pytest.mark.parametrize(("n", "text"), [(0, "0.00"), (0.004, "0.0040"), (0.1, "0.10"), (1.5, "1.50")])
def test_cores_that_are_hardly_busy_are_not_idle(n: float, text: str) -> None:
    assert units.cores(n) == text
