"""The charts of a run that goes on are made of its intervals."""

from collections.abc import Iterable
from typing import Any

import pytest

from framestorm.model.criteria import ALL
from framestorm.model.load import Load
from framestorm.model.run import Host, Record
from framestorm.model.series import Mark
from framestorm.report.charts import charts
from framestorm.report.live_series import MAX_CELLS, MAX_LABELS, LiveSeries
from framestorm.report.overview import overview
from framestorm.results.interval import Interval, Key

BEGAN_S = 1_800_000_000.0


def ended(at_s: float, ms: float = 50.0, cause: str | None = None, label: str = "request", slave: str = "", n: int = 1,
          kind: Any = "sampler") -> Interval:  # fmt: skip
    """Samples that end at a time, given in seconds since the run's start."""
    interval = Interval(Key(int(BEGAN_S + at_s), label, kind, slave))
    for _ in range(n):
        interval.add(BEGAN_S + at_s - ms / 1000, ms, cause)
    return interval


def series_of(intervals: Iterable[Interval], now_s: float, users: int = 0, **record: Any) -> LiveSeries:
    """The series of a run that took these intervals, at a time since its start."""
    live = LiveSeries(Record(started_ms=BEGAN_S * 1000, **record), "request")
    live.take(BEGAN_S + now_s, intervals, users, {})
    return live


def n_drawn(live: LiveSeries) -> int:
    """How many samples the histogram of all of them has."""
    histogram = live.series.histogram
    assert histogram is not None
    return sum(histogram.log.warm or [])


def test_rates_are_of_the_samples_that_ended_in_each_second() -> None:
    each_second = [
        ended(5.0, n=1),
        *(ended(second + 0.5, n=10) for second in (5, 6, 8)),
        ended(6.2, cause="reset", n=2),
    ]
    series = series_of(each_second, 10.0).series
    assert series.rates is not None and series.success_over_time is not None
    # The load began at 4.95 s, so that the cell of the 4th second has a twentieth of it.
    assert series.rates.x == [4.5, 5.5, 6.5, 7.5, 8.5]
    assert (series.rates.answered, series.rates.failed) == ([0, 11, 10, 0, 10], [0, 0, 2, 0, 0])
    assert series.rates.started == []
    assert series.success_over_time.ratio == [None, 100.0, pytest.approx(1000 / 12), None, 100.0]


def test_the_second_that_is_not_over_is_left_out() -> None:
    intervals = [ended(second + 0.1, n=10) for second in range(5, 10)]
    last = {now_s: series_of(intervals, now_s).series.rates.x[-1] for now_s in (9.2, 10.2, 10.6)}  # type: ignore[union-attr]
    assert last == {9.2: 7.5, 10.2: 8.5, 10.6: 9.5}
    over = series_of(intervals, 60.0)
    assert over.series.rates is not None and over.series.rates.answered[-1] == 0
    over.finish()
    assert over.series.rates is not None and over.series.rates.answered[-3:] == [10, 10, 10]


def test_times_are_nearest_ranks_of_samples_without_error() -> None:
    intervals = [ended(5.5, ms) for ms in (10, 20, 30, 40, 1000)] + [ended(5.5, 60_000, "timeout")]
    series = series_of(intervals, 9.0).series
    assert series.over_time is not None and series.histogram is not None
    assert series.over_time.mid[-3:] == [pytest.approx(30, rel=0.006), None, None]
    assert series.over_time.high[-3:] == [pytest.approx(1000, rel=0.006), None, None]
    assert sum(series.histogram.log.warm or []) == 5 and series.histogram.timed_out == 1
    linear = series.histogram.linear
    assert sum(linear.warm or []) + series.histogram.above == 5


def test_a_long_run_has_no_more_cells_than_a_short_one_and_loses_no_sample() -> None:
    live = LiveSeries(Record(started_ms=BEGAN_S * 1000), "request")
    for second in range(3600):
        live.take(
            BEGAN_S + second + 1, [ended(second + 0.5, 10 + second % 7, slave=f"slave{second % 2}", n=2)], 3, {"a": 1.5}
        )
    live.take(BEGAN_S + 3605, [], 3, {})
    series = live.series
    assert series.rates is not None and series.success_over_time is not None and series.over_time is not None
    assert series.rates.width_s == 32 and MAX_CELLS / 2 < len(series.rates.x) <= MAX_CELLS + 1
    assert series.rates.answered[1:-1] == [2.0] * (len(series.rates.x) - 2)
    hosts = series.success_over_time.hosts
    assert [hosts[name]["ok"][3] for name in ("slave0", "slave1")] == [1.0, 1.0]
    assert series.over_time.mid[3] == pytest.approx(13, rel=0.006)
    assert series.threads is not None and set(series.threads.y) == {3}  # in the first second too
    assert [set(machine.y) for machine in series.machines] == [{1.5}]
    of_all = live._of["", ""]
    assert sum(cell.ok for cell in of_all.cells.values()) == sum(of_all.times.values()) == 7200


def test_several_labels_have_charts_of_their_own() -> None:
    intervals = [
        ended(5.5, 20, label="log in"),
        ended(5.6, 40, label="search"),
        ended(5.6, 60, label="search", kind="transaction"),
    ]
    one, several = series_of(intervals[:1], 8.0), series_of(intervals, 8.0)
    assert (one.label, one.series.labels) == ("log in", {})
    assert (several.label, list(several.series.labels)) == (ALL, ["log in", "search", "search (transaction)"])
    assert n_drawn(several) == 2  # a transaction is made of other samples
    drawn = charts(several)
    assert drawn[0].name == "response-time-by-label" and "by the end of its samples" in drawn[0].caption
    assert [trace["name"] for trace in drawn[0].traces] == ["search (transaction)", "search", "log in"]
    many = series_of([ended(5.5, label=f"label {number}") for number in range(3 * MAX_LABELS)], 8.0)
    assert len(many.labels) == MAX_LABELS
    assert n_drawn(many) == 3 * MAX_LABELS


def test_users_that_are_processes_are_no_samples() -> None:
    live = series_of([ended(9.0, 4000, label="user", kind="user"), ended(5.5, 20, label="frame")], 12.0, users=2)
    assert live.label == "frame" and n_drawn(live) == 1


def test_an_open_load_shows_requests_in_flight_and_the_rate_that_is_asked_for() -> None:
    curve: dict[str, list[float | None]] = {"x": [0, 0, 60], "y": [0, 20, 20]}
    load = Load("arrivals", "ArrivalsThreadGroup", "arrivals", curve=curve, groups=("arrivals",))
    record = {"loads": (load,), "properties": {"rate_per_s": "20"}}
    live = series_of([ended(second + 0.99, 500, n=20) for second in range(4, 12)], 13.0, **record)
    assert live.series.threads is not None and live.series.threads.what == "requests"
    assert live.series.threads.y[2:-1] == [10] * 5  # 20/s for 0.5 s each
    assert live.series.asked_per_s["y"][-1] == 20
    few = series_of([ended(second + 0.99, 30, n=20) for second in range(4, 12)], 13.0, **record).series.threads
    assert few is not None and few.y[2:-1] == [0.6] * 5
    by_name = {chart.name: chart for chart in charts(live)}
    assert "asked for" in {trace["name"] for trace in by_name["throughput"].traces}


def test_the_charts_say_by_which_end_samples_count_and_mark_losses() -> None:
    hosts = (Host("vm-7", "slave", cores=2, inventory_name="slave1"),)
    live = series_of([ended(second + 0.5, n=5, slave="slave1") for second in range(5, 12)], 13.0, users=4, hosts=hosts)
    live.take(BEGAN_S + 13.5, [], 4, {"slave1": 1.5})
    live.mark([Mark(8.0, "slave1 lost", is_shaded=True)])
    first = overview(live)
    assert first is not None and "started" not in {trace["name"] for trace in first.traces}
    assert "Where fewer end than start" not in first.caption and "Marked: slave1 lost at 2.55 s" in first.caption
    by_name = {chart.name: chart for chart in charts(live)}
    assert "samples ended in each second" in by_name["success-over-time"].caption.replace("requests", "samples")
    assert by_name["throughput"].caption.startswith("Requests by their end")
    assert by_name["response-time-over-time"].caption.startswith("By the end of requests: median and 95th percentile")
    assert by_name["processor-use"].yaxis["range"] == [0, 2 * 1.08]


def test_before_the_first_sample_there_is_nothing_to_draw() -> None:
    live = series_of([], 3.0, users=1)
    assert charts(live) == [] and overview(live) is None
