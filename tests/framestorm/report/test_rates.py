"""What was asked, sent and answered per second: over the same span, whatever the response time."""

import polars as pl
import pytest

from framestorm.model.overload import Rates
from framestorm.model.series import Curves
from framestorm.report.rates import asked_rates, rates
from framestorm.report.series import in_flight, rates_over_time
from framestorm.results.table import users_table
from tests.framestorm.report.test_series import START_MS, samples

STEADY: Curves = {"x": [0.0, 0.0, 10.0], "y": [0.0, 80.0, 80.0]}


def of(table: pl.LazyFrame, asked: Curves = STEADY) -> Rates:
    return rates(table, in_flight(table, users_table([]).lazy(), [], START_MS, "request", {}), asked)


def at_rate(per_s: float, length_s: float) -> list[float]:
    return [each / per_s for each in range(round(per_s * length_s))]


@pytest.mark.parametrize("rtt_ms", [1.0, 700.0, 25_000.0])
def test_a_function_that_keeps_up_answers_what_is_asked(rtt_ms: float) -> None:
    """However long it takes: even where no answer comes before the last start."""
    rates_of = of(samples(at_rate(80, 10), rtt_ms=rtt_ms))
    exactly = pytest.approx(80.0)
    assert rates_of == Rates(80.0, 80.0, exactly, exactly, min(800, round(rtt_ms * 0.08) or 1), exactly, exactly)


def test_a_function_that_falls_behind_answers_what_it_can() -> None:
    """Sixty a second, one after the other, of the eighty that arrive."""
    rtt_ms = [1000 * ((n + 1) / 60 - n / 80) for n in range(800)]
    found = of(samples(at_rate(80, 10), rtt_ms=rtt_ms))
    assert (found.sent_per_s, found.answered_per_s) == (pytest.approx(80), pytest.approx(60, abs=0.1))
    assert found.in_flight == 201


def test_errors_are_no_answers() -> None:
    found = of(samples(at_rate(80, 10), ok=[n % 4 != 0 for n in range(800)]))
    assert (found.sent_per_s, found.answered_per_s) == pytest.approx((80, 60))


def test_a_single_sample_has_no_rate() -> None:
    assert of(samples([0.0]), {}) == Rates(in_flight=1)
    assert of(samples([0.0, 0.0], ok=False), {}) == Rates(in_flight=2)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({}, (None, None)),
        ({"x": [5.0, 5.0, 5.0], "y": [0.0, 80.0, 80.0]}, (None, None)),
        ({"x": [2.0, 2.0, 12.0], "y": [0.0, 80.0, 80.0]}, (80.0, 80.0)),
        ({"x": [0.0, 10.0, 20.0], "y": [0.0, 80.0, 80.0]}, (60.0, 80.0)),
    ],
)
def test_the_asked_rate_is_the_mean_of_the_schedule(asked: Curves, expected: tuple[float | None, float | None]) -> None:
    assert asked_rates(asked) == expected


@pytest.mark.parametrize(
    ("asked", "within_s", "expected"),
    [
        ({"x": [0.0, 10.0, 10.0, 60.0], "y": [100.0, 100.0, 0.0, 0.0]}, 10.0, (100.0, 100.0)),
        ({"x": [0.0, 50.0, 50.0, 60.0], "y": [0.0, 0.0, 100.0, 100.0]}, 10.0, (100.0, 100.0)),
        # One between two parts counts.
        ({"x": [0.0, 10.0, 10.0, 20.0, 20.0, 30.0], "y": [90.0, 90.0, 0.0, 0.0, 90.0, 90.0]}, 30.0, (60.0, 90.0)),
        # A run that ended early, and one that ended with the last request before the end of the schedule.
        ({"x": [0.0, 60.0], "y": [0.0, 100.0]}, 30.0, (25.0, 50.0)),
        ({"x": [0.0, 60.0], "y": [0.0, 100.0]}, 59.7, (50.0, 100.0)),
    ],
)
def test_what_is_due_before_or_after_the_load_was_not_asked(
    asked: Curves, within_s: float, expected: tuple[float, float]
) -> None:
    assert asked_rates(asked, within_s) == pytest.approx(expected)


@pytest.mark.parametrize(("hangs_s", "asked_per_s"), [(0, 80.0), (10, 120.0)])
def test_the_asked_rate_is_of_the_time_until_the_last_answer(hangs_s: int, asked_per_s: float) -> None:
    """A run that ended after half of its schedule, and a function that hangs when the rate is doubled."""
    rtt_ms = [1.0] * 799 + [1000.0 * hangs_s + 12.5]
    found = of(samples(at_rate(80, 10), rtt_ms=rtt_ms), {"x": [0.0, 10.0, 10.0, 20.0], "y": [80.0, 80.0, 160.0, 160.0]})
    assert (found.asked_per_s, found.sent_per_s) == pytest.approx((asked_per_s, 80.0))


def test_starts_and_ends_are_counted_apart() -> None:
    table = samples([0.1, 0.2, 1.1, 1.6], rtt_ms=[500.0, 950.0, 900.0, 1500.0], ok=[True, True, False, True])
    found = rates_over_time(table, START_MS)
    assert found is not None
    assert (found.width_s, found.x) == (1.0, [0.6, 1.6, 2.725])
    last_s = 1.25  # of the last bin, which ends a quarter of a bin after the last answer
    rows = (found.started, found.answered, found.failed)
    assert rows == ([2.0, 2.0, 0.0], [1.0, 1.0, pytest.approx(1 / last_s, abs=1e-3)], [0.0, 1.0, 0.0])
    assert rates_over_time(samples([]), START_MS) is None


@pytest.mark.parametrize(("first_s", "last_s"), [(0.0, 12.0), (2.3, 14.2), (2.3, 14.6)])
def test_a_steady_rate_is_level_from_its_first_bin_to_its_last(first_s: float, last_s: float) -> None:
    starts = [first_s + number / 80 for number in range(round((last_s - first_s) * 80))]
    found = rates_over_time(samples(starts, rtt_ms=20.0), START_MS)
    assert found is not None
    assert found.started == pytest.approx([80.0] * len(found.x), rel=0.1)
    assert found.answered == pytest.approx([80.0] * len(found.x), rel=0.1)
