"""What the charts over time and by index draw: bins, the points that are shown, and the users with a line."""

from typing import Any

import polars as pl
import pytest

from framestorm.model.series import Curves, Histogram, InFlight, OverTime, SuccessOverTime
from framestorm.model.summary import LostHost
from framestorm.report import series
from framestorm.report.time_bins import MAX_BINS

START_MS = 1_790_000_000_000.0


def samples(starts_s: list[float], **columns: Any) -> pl.LazyFrame:
    """Successful samples of host `a` that take 10 ms each, with these starts."""
    given = {
        "user": "u", "index": range(len(starts_s)), "start_ms": [START_MS + 1000 * each for each in starts_s],
        "rtt_ms": 10.0, "ok": True, "cold": None, "timed_out": False, "host": "a", "source": "jtl",
    }  # fmt: skip
    table = pl.LazyFrame({"start_ms": given["start_ms"]})
    return table.with_columns(
        pl.Series(name, values) if isinstance(values, (list, range)) else pl.lit(values).alias(name)
        for name, values in (given | columns).items()
    ).with_columns(pl.col("cold").cast(pl.Boolean))


def over_time(table: pl.LazyFrame) -> tuple[OverTime, SuccessOverTime]:
    found = series.sample_series(table, START_MS)
    assert found.over_time and found.success_over_time
    return found.over_time, found.success_over_time


@pytest.mark.parametrize(
    ("n", "apart_s", "width_s", "n_bins"),
    [
        (101, 0.1, 1, 10),  # as many bins as there are tens of samples
        (102, 0.1, 2, 5),
        (20, 0.1, 0.5, 4),
        (3000, 0.1, 5, 60),  # at most 120 bins
    ],
)
def test_bins_have_a_round_width(n: int, apart_s: float, width_s: float, n_bins: int) -> None:
    times, success = over_time(samples([apart_s * each for each in range(n)]))
    assert (times.width_s, len(times.x), times.x[:2]) == (width_s, n_bins, [width_s / 2, 1.5 * width_s])
    assert success.ratio == [100.0] * n_bins and times.mid == times.high == [10.0] * n_bins
    assert success.hosts["a"]["ok"] == pytest.approx([1 / apart_s] * n_bins, rel=0.02), "the last bin too"


def test_a_bin_counts_its_own_samples() -> None:
    starts_s, rtts_ms = [0.1, 0.2, 0.3, 0.4, 1.6], [1.0, 2.0, 3.0, 50.0, 7.0]
    table = samples(starts_s, rtt_ms=rtts_ms, ok=[True, True, False, True, True], host=["a", "b", "a", "a", "b"])
    times, success = over_time(table)
    # The first bin begins with the first sample, and the last one ends with the last.
    assert (times.x, times.mid, times.high) == ([0.35, 0.85, 1.413], [2.0, None, 7.0], [50.0, None, 7.0])
    assert success.ratio == [75.0, None, 100.0]
    assert success.hosts["a"] == {"ok": [4.0, 0.0, 0.0], "failed": [2.0, 0.0, 0.0]}
    assert success.hosts["b"] == {"ok": [2.0, 0.0, pytest.approx(1 / 0.625, abs=1e-3)], "failed": [0.0] * 3}
    assert (times.of, times.shown) == (4, 4), "no time of the failed one"


def test_a_clock_far_off_makes_no_million_bins() -> None:
    ten_years_s = 10 * 365 * 86400.0
    times, success = over_time(samples([*(each / 10 for each in range(20)), ten_years_s]))
    assert len(times.x) == len(success.ratio) == MAX_BINS
    assert times.of == 21 and success.hosts["a"]["ok"][0] == pytest.approx(20 / 86400, abs=1e-3)
    assert success.ratio[-1] is None, "the last bin is not that of all later ones"


def test_of_many_samples_every_nth_is_a_point() -> None:
    n = 2 * series.MAX_POINTS + 1
    is_cold, is_cut = [each == 5 for each in range(n)], [each == 7 for each in range(n)]
    times, _ = over_time(samples([each / 100 for each in range(n)], cold=is_cold, timed_out=is_cut))
    # There are 4000 warm samples for 2000 points.
    assert (len(times.cold["x"]), len(times.timed_out["x"])) == (1, 1)
    assert len(times.warm["x"]) == n // 2 and times.shown == n // 2 + 2 and times.of == n


@pytest.mark.parametrize("users", [series.MAX_LINES, series.MAX_LINES + 1])
def test_many_users_are_a_band_with_some_examples(users: int) -> None:
    of_user = [f"u{each // 3:02}" for each in range(3 * users)]
    rtts_ms = [float(10 * (each // 3) + each % 3) for each in range(3 * users)]
    index = [each % 3 for each in range(3 * users)]
    table = samples(
        [float(each) for each in range(3 * users)], user=of_user, index=index, rtt_ms=rtts_ms, source="tree"
    )
    found = series.by_index(table, "rtt_ms", coarse=1)
    assert found and (found.users, found.step, found.x) == (users, 1, [0, 1, 2])
    is_many = users > series.MAX_LINES
    numbers = [1, 4, 7, 10, 13] if is_many else [*range(1, users + 1)]
    assert [line.user for line in found.lines] == numbers
    assert all(line.y == [10.0 * (line.user - 1) + each for each in range(3)] for line in found.lines)
    band = {"low": [0.0, 1.0, 2.0], "mid": [60.0, 61.0, 62.0], "high": [120.0, 121.0, 122.0]}
    assert found.band == (band if is_many else None)


def counted(rtts_ms: list[float], **columns: Any) -> Histogram:
    found = series.histogram(samples([float(each) for each in range(len(rtts_ms))], rtt_ms=rtts_ms, **columns))
    assert found
    return found


@pytest.mark.parametrize(
    ("rtts_ms", "edges", "counts", "above"),
    [
        ([float(each) for each in range(1, 101)], [10.0 * each for each in range(12)], [9, *[10] * 9, 1], 0),
        ([10.0] * 3, [9.0, 11.0], [3], 0),
        # Far outliers lie beyond twice the 99th percentile.
        ([float(10 + each % 2) for each in range(199)] + [1000.0], None, None, 1),
        ([1.0, 60.0], [5.0 * each for each in range(14)], [1, *[0] * 11, 1], 0),
        ([0.0, 0.0, 60.0], [5.0 * each for each in range(14)], [2, *[0] * 11, 1], 0),  # on the logarithmic axis too
    ],
)
def test_a_histogram_has_edges_at_round_figures(
    rtts_ms: list[float], edges: list[float] | None, counts: list[int] | None, above: int
) -> None:
    found = counted(rtts_ms)
    if edges is not None:
        assert (found.linear.edges, found.linear.warm) == (pytest.approx(edges), counts)
    assert (found.above, found.linear.cold, found.timed_out) == (above, None, 0)
    assert sum(found.linear.warm or ()) == len(rtts_ms) - above and sum(found.log.warm or ()) == len(rtts_ms)
    assert len(found.log.edges) == 41
    assert [found.log.edges[0], found.log.edges[-1]] == pytest.approx(
        [min(rtts_ms) * 0.999, max(rtts_ms) * 1.001], abs=1e-3
    )


@pytest.mark.parametrize(("rtt_ms", "top"), [(0.0, 1.0), (0.01, 0.01)])
def test_times_that_are_all_the_same_have_a_place_on_the_logarithmic_axis(rtt_ms: float, top: float) -> None:
    found = counted([rtt_ms] * 3).log
    assert found.edges == sorted({*found.edges}) and found.edges[-1] == pytest.approx(top * 1.001)
    assert sum(found.warm or ()) == 3


def test_a_histogram_counts_cold_ones_apart_and_leaves_out_failed_ones() -> None:
    found = counted([1.0, 2.0, 3.0, 4.0, 0.0], cold=[True, False, None, False, False],
                    ok=[True, True, True, False, True], timed_out=[False, False, False, True, False])  # fmt: skip
    assert (sum(found.linear.warm or ()), sum(found.linear.cold or ()), found.timed_out) == (3, 1, 1)
    assert series.histogram(samples([0.0], ok=[False])) is None


@pytest.mark.parametrize(("last_s", "width_s"), [(599, 1.0), (1200, 2.0)])
def test_machines_are_means_of_bins(last_s: int, width_s: float) -> None:
    rows = [(START_MS + 1000 * at_s, "a", "host", at_s % 2 + 0.5) for at_s in range(last_s + 1)]
    table = pl.DataFrame(rows, ["time_ms", "host", "part", "cores"], orient="row")
    (line,) = series.machines_over_time(table, START_MS - 1000)
    assert (line.host, line.part) == ("a", "host")
    if width_s == 1.0:
        assert (line.x[:3], line.y[:3]) == ([1.0, 2.0, 3.0], [0.5, 1.5, 0.5])
    else:
        assert (line.x[:3], line.y[:3]) == ([1.0, 2.5, 4.5], [0.5, 1.0, 1.0])
    assert series.machines_over_time(table.clear(), START_MS) == []


def test_users_and_samples_in_flight_are_counted_at_every_change() -> None:
    table = samples([0.0, 1.0, 2.0], rtt_ms=1500.0)
    nobody = pl.LazyFrame(schema={"start_ms": pl.Float64, "elapsed_ms": pl.Float64, "host": pl.String})
    asked: Curves = {"x": [0.0], "y": [1.0]}
    of_samples = series.in_flight(table, nobody, [], START_MS, "frame", asked)
    assert of_samples == InFlight("frames", [0.0, 1.0, 1.5, 2.0, 2.5, 3.5], [1, 2, 1, 2, 1, 0], 2)
    users = pl.LazyFrame(
        {
            "start_ms": [START_MS, START_MS + 1000, START_MS + 1000],
            "elapsed_ms": [2000.0, None, None],
            "host": ["a", "b", "a"],
        }
    )
    lost = [LostHost("b", None, "gone", 3.0, None, {})]
    of_users = series.in_flight(table, users, lost, START_MS, "frame", asked)
    assert of_users == InFlight("users", [0.0, 1.0, 2.0, 3.0, 3.5], [1, 3, 2, 1, 0], 3, asked)
    assert series.in_flight(table.clear(), nobody, [], START_MS, "frame", {}) is None


def test_threads_are_summed_over_hosts_until_one_is_lost() -> None:
    rows = [(START_MS / 1000 + at_s, host, threads) for at_s, host, threads in
            ((0, "a", 1), (1, "b", 2), (2, "a", 3), (4, "a", 3))]  # fmt: skip
    table = pl.DataFrame(rows, ["time_s", "host", "threads"], orient="row")
    lost = [LostHost("b", None, "gone", 2.0, None, {})]
    found = series.threads_over_time(table, lost, START_MS - 500, {})
    assert found == InFlight("users", [0.5, 1.5, 2.5, 4.5], [1, 3, 3, 3], 3)
    assert series.threads_over_time(table.clear(), [], START_MS, {}) is None


@pytest.mark.parametrize(
    ("properties", "line"),
    [
        ({"users": "4", "ramp_s": "2", "hold_s": "10"}, {"x": [1, 3, 13], "y": [0, 4, 4]}),
        ({"users": "4", "ramp_s": "2"}, {}),
        ({"users": "many", "ramp_s": "2", "hold_s": "10"}, {}),
    ],
)
def test_settings_ask_for_a_rise_and_a_level(properties: dict[str, str], line: Curves) -> None:
    assert series.asked(properties, "users", 1.0) == line
