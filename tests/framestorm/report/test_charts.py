"""What a run's charts draw of given series: axes and their units, lines, labels of marks, and what captions say."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from framestorm.model import series
from framestorm.model.series import Mark, Series
from framestorm.model.summary import Summary
from framestorm.report import figure
from framestorm.report.charts import charts
from framestorm.report.figure import BAD, INK, LINE_COLOURS, Chart, Clock, Lengths
from framestorm.results.replicas import NETWORK, THROTTLED

NO_POINTS: series.Curves = {"x": [], "y": []}


def drawn(hosts: Any = (), /, **given: Any) -> dict[str, Chart]:
    """The charts of a run of frames by their names."""
    summary = SimpleNamespace(series=Series(**given), label="frame", unit="frame", machines=hosts, load_start_s=0.0)
    return {chart.name: chart for chart in charts(cast(Summary, summary))}


def over_time(warm: series.Values, mid: series.Values, of: int = 0, **more: Any) -> series.OverTime:
    given = {"cold": NO_POINTS, "timed_out": NO_POINTS, "high": mid} | more
    x: series.Values = [float(number) for number in range(len(warm))]
    return series.OverTime(5.0, len(warm), of or len(warm), {"x": x, "y": warm}, x=x, mid=mid, **given)


@pytest.mark.parametrize(
    ("end_s", "unit", "end", "dtick"),
    [
        (0.2, "s", 1, 0.2),
        (0.9 * 2, "s", 1.8, 0.2),
        (90, "s", 90, 10),
        (91, "s", 91, 20),
        (899, "s", 899, 120),
        (900, "min", 15, 2),
        (17_999, "min", 299.983, 60),
        (18_000, "h", 5, 1),
        (3_600_000, "h", 1000, 120),
        (4_320_000, "h", 1200, 150),
    ],
)
def test_the_axis_of_time_has_a_unit_and_few_ticks(end_s: float, unit: str, end: float, dtick: float) -> None:
    clock = Clock(Series(marks=[Mark(at_s, "", is_shaded=False) for at_s in (0.0, end_s)]))
    axis = clock.axis()
    assert axis["title"]["text"] == f"time since the start of the load ({unit})"
    assert (axis["tick0"], axis["dtick"]) == (0, pytest.approx(dtick))
    assert axis["range"] == pytest.approx([-0.01 * end, 1.02 * end], rel=1e-4)
    assert clock.at(end_s) == pytest.approx(end if end_s >= 1 else end_s, rel=1e-4)


def test_the_axis_of_time_reaches_from_the_first_load_to_the_last_point() -> None:
    assert Clock(Series()).end == 1
    machine = series.MachineLine("a", "host", [0.0, 7.0], [1.0, 1.0])
    clock = Clock(Series(machines=[machine], in_flight=series.InFlight("users", [4.0, 9.0], [1, 1], 1)))
    assert (clock.end, clock.range()) == (9, pytest.approx([3.95, 9.1]))


@pytest.mark.parametrize(
    ("values", "unit", "is_log", "ticks"),
    [
        ([20.0, 999.0], "ms", False, [10, 20, 50, 100, 200, 500, 1000, 2000, 5000]),
        ([20.0, 1000.0], "s", False, [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5]),
        ([299_999.0], "s", False, [100, 200, 500, 1000, 2000, 5000]),
        ([300_000.0], "min", False, [1, 2, 5, 10, 20, 50]),
        ([2.0, 2.0, 40.0], "ms", False, [1, 2, 5, 10, 20, 50, 100, 200, 500]),
        ([2.0, 2.0, 41.0], "ms", True, [1, 2, 5, 10, 20, 50, 100, 200, 500]),
        ([None, 2.0, 41.0], "ms", False, [1, 2, 5, 10, 20, 50, 100, 200, 500]),
        ([0.0, 0.0, 41.0], "ms", False, [0.001, 0.01, 0.1, 1, 10, 100]),
        ([1.0, 1.0, 10_000.0], "s", True, [f * 10.0**e for e in range(-3, 2) for f in (1, 2, 5)]),
        ([0.99, 0.99, 10_000.0], "s", True, [0.0001, 0.001, 0.01, 0.1, 1, 10]),
        ([], "ms", False, [0.001]),
    ],
)
def test_an_axis_of_lengths_has_the_unit_of_its_largest(
    values: list[float | None], unit: str, is_log: bool, ticks: list[float]
) -> None:
    lengths = Lengths.of(values)
    assert (lengths.unit, lengths.log, lengths.ticks) == (unit, is_log, pytest.approx(tuple(ticks)))
    axis = lengths.axis("time")
    assert axis["title"]["text"] == f"time ({unit})"
    assert (axis.get("type"), axis.get("tickvals")) == (("log", lengths.ticks) if is_log else (None, None))
    assert Lengths.plain().axis("faces") == {"title": {"text": "faces"}}
    assert Lengths(1000.0, "s", log=False, ticks=()).y([1.0, None, 123_456.7]) == [0.001, None, 123.46]


@pytest.mark.parametrize(
    ("y", "mode"),
    [
        ([1, 2, None], "lines"),
        ([1, None, 2, 3], "lines+markers"),
        ([1, 2, None, 3], "lines+markers"),
        ([1], "lines+markers"),
    ],
)
def test_a_value_between_gaps_is_a_dot(y: list[Any], mode: str) -> None:
    trace = figure.line(list(range(len(y))), y, "n", INK)
    assert (trace["mode"], trace["connectgaps"], trace["line"]["width"]) == (mode, False, 1.6)


def test_a_legend_names_each_line_once_as_it_is_drawn() -> None:
    line, dots = figure.line([1], [1], "line", INK, dash="dash"), figure.dots([1], [1], "dots", BAD, symbol="diamond")
    area = figure.line([1], [1], "area", INK, 0) | {"fillcolor": BAD}
    several = dots | {"name": "several", "marker": {"symbol": ["circle", "x"], "color": INK}}
    bars = {"type": "bar", "name": "bars", "marker": {"color": INK}}
    hidden = figure.line([1], [1], "hidden", INK) | {"showlegend": False}
    chart = Chart("", "", "", [line, line, dots, several, area, bars, hidden], {}, {})
    assert [(each["name"], each["kind"], each["colour"]) for each in chart.legend()] == [
        ("line", "dash", INK), ("dots", "diamond", BAD), ("several", "circle", INK), ("area", "bar", BAD),
        ("bars", "bar", INK),
    ]  # fmt: skip
    assert Chart("", "", "", [line, line, hidden], {}, {}).legend() == []


def test_marks_have_labels_that_do_not_overlap() -> None:
    marks = [Mark(at_s, f"m{at_s}", is_shaded=at_s == 10) for at_s in (0, 10, 40, 71, 100)]
    chart = drawn(over_time=over_time([1.0] * 2, [1.0] * 2), marks=marks)["response-time-over-time"]
    # Of 100 s, a label is 40 wide; one beyond 70 is to the left of its mark.
    notes = chart.layout["annotations"]
    assert [(note["x"], note["xanchor"], note["yshift"]) for note in notes] == [
        (0, "left", 0), (10, "left", 16), (40, "left", 0), (71, "right", 32),
    ]  # fmt: skip
    assert not any(note["showarrow"] for note in notes)
    shapes = chart.layout["shapes"]
    assert [(shape["type"], shape["x0"], shape["x1"]) for shape in shapes] == [
        ("line", 0, 0), ("line", 10, 10), ("rect", 10, 102), ("line", 40, 40), ("line", 71, 71), ("line", 100, 100),
    ]  # fmt: skip
    assert chart.caption.endswith(
        " Marked: m0 at 0 s; m10 at 10 s; m40 at 40 s; m71 at 71 s, and 1 more. Shaded: load without the share of the "
        "lost host."
    )
    four = drawn(over_time=over_time([1.0], [1.0]), marks=[Mark(5, "m", is_shaded=False)] * 4)
    assert four["response-time-over-time"].caption.endswith("; m at 5 s.")
    late = [Mark(at_s, "", is_shaded=False) for at_s in (70, 100)]
    notes = drawn(over_time=over_time([1.0], [1.0]), marks=late)["response-time-over-time"].layout["annotations"]
    assert [note["xanchor"] for note in notes] == ["left", "right"]


def test_marks_of_a_load_that_began_late_have_labels_inside_the_chart() -> None:
    load = over_time([1.0, 1.0], [1.0, 1.0])
    load = replace(load, x=[90.0, 100.0])
    marks = [Mark(at_s, "m", is_shaded=False) for at_s in (90, 94, 98)]
    notes = drawn(over_time=load, marks=marks)["response-time-over-time"].layout["annotations"]
    assert [(note["xanchor"], note["yshift"]) for note in notes] == [("left", 0), ("left", 0), ("right", 16)]


def by_index(users: int, *, step: int = 1, band: bool = False, lines: int | None = None, **more: Any) -> series.ByIndex:
    of_users = [series.UserLine(number + 1, [20.0, 30.0]) for number in range(users if lines is None else lines)]
    around: series.Curves | None = {"low": [1.0, 2.0], "mid": [3.0, 4.0], "high": [5.0, 6.0]} if band else None
    return series.ByIndex(step, users, [0, step], of_users, around, **{"timed_out": NO_POINTS, **more})


def test_every_user_has_a_line_by_index() -> None:
    data = by_index(9, timed_out={"x": [1.0], "y": [2000.0]})
    chart = drawn(by_index={"rtt_ms": data, "faces": by_index(1)})["response-time-by-index"]
    assert chart.chosen == "log"
    assert chart.choices == {
        "linear": [{}, {"yaxis.type": "linear", "yaxis.tickmode": "auto", "yaxis.autorange": True}],
        "log": [{}, {"yaxis.type": "log", "yaxis.tickmode": "array", "yaxis.autorange": True}],
    }
    lines, cut = chart.traces[:-1], chart.traces[-1]
    assert [(trace["name"], trace["line"]["color"]) for trace in lines] == [
        (f"user {number + 1}", LINE_COLOURS[number % 8]) for number in range(9)
    ]
    assert [trace["line"]["dash"] for trace in lines] == ["solid"] * 8 + ["dot"]
    assert (lines[0]["x"], lines[0]["y"], cut["x"], cut["y"]) == ([0, 1], [0.02, 0.03], [1], [2])
    assert chart.caption == (
        "One line per user, in the order of their starts. A peak at the same index for every user comes from that "
        "frame; one only at the start is a cold start. A cross is a timeout: the true time is longer. "
        "The time axis is logarithmic at first."
    )
    faces = drawn(by_index={"faces": by_index(1)})["faces-by-index"]
    assert (faces.title, faces.yaxis, len(faces.traces)) == ("Faces by frame", {"title": {"text": "faces"}}, 1)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (by_index(40, band=True, lines=6), "Median of all 40 users, and the band from the 5th to the 95th percentile; "
         "6 users as examples. A peak"),
        (by_index(0, band=True, step=2), "Median of all frames, and the band from the 5th to the 95th percentile. Each "
         "point is the median of 2 consecutive frames. A peak"),
    ],
)  # fmt: skip
def test_many_users_have_a_band_by_index(data: series.ByIndex, said: str) -> None:
    chart = drawn(by_index={"model_ms": data})["model-time-by-index"]
    low, high, *examples, median = chart.traces
    assert [trace["y"] for trace in (low, median, high)] == [[1, 2], [3, 4], [5, 6]]
    assert (low["showlegend"], "fill" in low, high["fill"]) == (False, False, "tonexty")
    names = ["single users", *(f"user {number}" for number in range(2, 7))][: len(data.lines)]
    assert [(trace["name"], trace["showlegend"]) for trace in examples] == [(n, n == names[0]) for n in names]
    assert chart.caption.startswith(said)


def test_points_and_medians_over_time() -> None:
    data = over_time(
        [10.0, 20.0], [10.0, 20.0], of=3, cold={"x": [0.5], "y": [30.0]}, timed_out={"x": [1.0], "y": [9.0]}
    )
    chart = drawn(over_time=data)["response-time-over-time"]
    assert [(trace["name"], trace["x"], trace["y"]) for trace in chart.traces] == [
        ("frame", [0, 1], [10, 20]), ("median", [0, 1], [10, 20]), ("95th percentile", [0, 1], [10, 20]),
        ("cold frame", [0.5], [30]), ("timed out (at least)", [1], [9]),
    ]  # fmt: skip
    assert "of each 5 s. 2 of 3 frames are drawn. Lines" in chart.caption
    whole = drawn(over_time=over_time([10.0], [10.0]))["response-time-over-time"]
    assert (len(whole.traces), whole.chosen) == (3, "") and "of each 5 s. Lines" in whole.caption
    assert drawn(over_time=over_time([20.0, 20.0, 401.0], [20.0]))["response-time-over-time"].chosen == "log"


def rates(hosts: dict[str, series.Curves], *, closed: bool = False, width_s: float = 600.0) -> series.SuccessOverTime:
    return series.SuccessOverTime(width_s, closed, [width_s / 2, 1.5 * width_s], [100.0, None], hosts)


def test_rates_are_bars_by_host() -> None:
    one: dict[str, series.Curves] = {"a": {"ok": [1.0, 0.0], "failed": [0.0, 0.0]}}
    found = drawn(success_over_time=rates(one, closed=True))
    assert found["success-over-time"].traces[0]["y"] == [100, None]
    assert found["success-over-time"].yaxis["range"] == [0, 104]
    (bars,) = found["throughput"].traces
    assert (bars["x"], bars["y"], bars["name"]) == ([5, 15], [1, 0], "successful")
    assert bars["width"] == pytest.approx([9.2, 9.2]), "in minutes"
    assert found["throughput"].caption.startswith("Frames by their start, in each 10 min. ")
    assert found["throughput"].caption.endswith("less load.")
    assert "in each 2 min." in drawn(success_over_time=rates(one, width_s=120.0))["throughput"].caption
    both: dict[str, series.Curves] = {
        "a": {"ok": [1.0, 0.0], "failed": [0.2, 0.0]},
        "b": {"ok": [2.0, 0.0], "failed": [0.1, None]},
    }
    asked: series.Curves = {"x": [0.0, 9.0], "y": [3.0, 3.0]}
    chart = drawn(success_over_time=rates(both, width_s=1.0), asked_per_s=asked)["throughput"]
    assert [(trace["name"], trace["y"]) for trace in chart.traces] == [
        ("a", [1, 0]), ("b", [2, 0]), ("failed", [0.3, 0]), ("asked for", [3, 3]),
    ]  # fmt: skip
    assert chart.caption.startswith("Frames by their start, in each second, by the host that sent them. ")
    assert chart.caption.endswith(" Dashed: the arrival rate that the plan's settings ask for.")
    assert chart.layout == {"barmode": "stack"}


@pytest.mark.parametrize(("most", "dtick"), [(8, 1), (9, None)])
def test_what_is_in_flight_is_counted_in_whole_numbers(most: int, dtick: int | None) -> None:
    users = series.InFlight("users", [0.0, 1.0], [most, 0], most, {"x": [0.0, 1.0], "y": [4.0, 4.0]})
    frames = series.InFlight("frames", [0.0, 1.0], [most, 0], most)
    found = drawn(in_flight=frames, threads=users)
    of_users, of_frames = found["users-over-time"], found["frames-over-time"]
    assert of_users.yaxis.get("dtick") == of_frames.yaxis.get("dtick") == dtick
    assert (of_users.title, of_frames.title) == ("Users over time", "Frames in flight over time")
    assert [trace["name"] for trace in of_users.traces] == ["users", "asked for"]
    assert len(of_frames.traces) == 1 and "Dashed" not in of_frames.caption


@pytest.mark.parametrize("cold", [None, [0, 1]])
def test_a_histogram_has_steps_on_two_axes(cold: list[int] | None) -> None:
    linear, log = series.Bins([1.0, 2.0, 3.0], [3, 4], cold), series.Bins([1.0, 10.0, 100.0], [7, 1], cold)
    data = series.Histogram(linear, log, above=2, timed_out=1)
    chart = drawn(histogram=data)["response-time-histogram"]
    kinds = ["frames"] if cold is None else ["warm", "cold"]
    assert [(trace["name"], trace["visible"]) for trace in chart.traces] == [
        (name, is_linear) for is_linear in (True, False) for name in kinds
    ]
    assert (chart.traces[0]["x"], chart.traces[0]["y"]) == ([1, 1, 2, 3], [0, 3, 4, 0])
    shown = [True] * len(kinds) + [False] * len(kinds)
    assert chart.choices == {
        "linear time": [{"visible": shown}, {"xaxis.type": "linear", "xaxis.autorange": True}],
        "log time": [{"visible": shown[::-1]}, {"xaxis.type": "log", "xaxis.autorange": True}],
    }
    assert "panels" not in chart.figure()
    assert chart.chosen == "linear time"
    assert chart.caption.endswith(
        "Not drawn: 2 frames beyond the right end (see the log axis). Not drawn: 1 frame timed out."
    )


@pytest.mark.parametrize(
    ("hosts", "names"),
    [
        (1, ["generator", "whole machine"]),
        (3, [f"h{number} {part}" for number in range(3) for part in ("generator", "whole machine")]),
        (4, ["h0", "h1", "h2", "h3"]),
    ],
)
def test_machines_have_a_line_by_part_or_of_many_one_each(hosts: int, names: list[str]) -> None:
    lines = [series.MachineLine(f"h{n}", part, [0.0], [1.0]) for n in range(hosts) for part in ("generator", "host")]
    machines = [SimpleNamespace(part="host", cores=4), SimpleNamespace(part="generator", cores=None)]
    chart = drawn(machines, machines=lines)["processor-use"]
    assert [trace["name"] for trace in chart.traces] == names
    (limit,) = chart.layout["shapes"]
    assert (limit["x0"], limit["x1"], limit["y0"], limit["y1"]) == (0, 1, 4, 4)
    assert chart.yaxis["range"] == [0, 4.32] and "share the machine" not in chart.caption
    shared = drawn([SimpleNamespace(part="target", cores=4)], machines=lines)["processor-use"]
    assert "share the machine" in shared.caption and "shapes" not in shared.layout
    unequal = drawn([*machines, SimpleNamespace(part="host", cores=64)], machines=lines)["processor-use"]
    assert "shapes" not in unequal.layout, "all cores are a line where every machine has as many"


def replicas(n: int, use: dict[str, float], functions: int = 1, wanted: float = 2.0) -> series.ReplicasOverTime:
    counts: series.Curves = {"wanted": [wanted, 2.0], "ready": [1.0, 2.0], "short": [1.0, None]}
    lines = [series.ReplicaLine(number, f"r{number}", [0.0]) for number in range(min(n, 12))]
    of_use = {name: series.ReplicaUse(n, [0.0, top], lines) for name, top in use.items()}
    return series.ReplicasOverTime([0.0, 1.0], functions, {"f": counts}, of_use)


def test_replicas_are_counted() -> None:
    chart = drawn(replicas=replicas(1, {}))["replicas-over-time"]
    assert [(trace["name"], trace["y"]) for trace in chart.traces] == [
        ("ready", [1, 2]), ("wanted", [2, 2]), ("fewer ready than wanted", (1,)),
    ]  # fmt: skip
    assert chart.traces[2]["x"] == (0,)
    assert (chart.yaxis["dtick"], chart.yaxis["range"]) == (1, [0, 2.5])
    assert drawn(replicas=replicas(1, {}, wanted=8))["replicas-over-time"].yaxis["range"] == [0, 8.5]
    many = drawn(replicas=replicas(1, {}, functions=2, wanted=9))["replicas-over-time"]
    assert "range" not in many.yaxis
    assert many.caption.endswith(" The 1 busiest of 2 functions are drawn.")


@pytest.mark.parametrize(
    ("use", "titles"),
    [
        ({"memory_bytes": 1e10, NETWORK: 1e6, THROTTLED: 0.5}, ["memory (GB)", "received and sent (MB/s)"]),
        ({"memory_bytes": 1e10 - 1, NETWORK: 1e6 - 1, THROTTLED: 0.1}, ["memory (MB)", "received and sent (kB/s)"]),
    ],
)
def test_what_replicas_use_has_a_fitting_unit(use: dict[str, float], titles: list[str]) -> None:
    found = drawn(replicas=replicas(1, {"cpu_cores": 3.0, **use}))
    shown = [chart.yaxis["title"]["text"] for chart in found.values()]
    assert shown == ["replicas", "cores busy", "periods throttled (%)", *titles]
    assert "throttled" not in found["replicas-cpu-cores"].caption


def test_many_replicas_have_a_sum() -> None:
    found = drawn(replicas=replicas(13, {"cpu_cores": 3.0, THROTTLED: 0.0}))
    assert list(found) == ["replicas-over-time", "replicas-cpu-cores"]
    cores = found["replicas-cpu-cores"]
    assert cores.caption.endswith(" 12 of 13 replicas are drawn. No replica was throttled by a CPU limit.")
    assert (cores.traces[-1]["name"], cores.traces[-1]["y"], len(cores.traces)) == ("sum of all", [0, 3], 13)
    assert cores.chosen == "with the sum"
    anew = {"yaxis.autorange": True}
    assert cores.choices == {
        "with the sum": [{"visible": [True] * 13}, anew],
        "replicas only": [{"visible": [True] * 12 + [False]}, anew],
    }
    throttled = drawn(replicas=replicas(2, {THROTTLED: 0.5}))["replicas-cpu-throttled-share"]
    assert (throttled.traces[-1]["name"], throttled.traces[-1]["y"]) == ("mean of all", [0, 50])
    alone = drawn(replicas=replicas(1, {"cpu_cores": 3.0}))["replicas-cpu-cores"]
    assert (len(alone.traces), alone.choices) == (1, {})


def test_of_many_labels_the_slowest_are_drawn() -> None:
    labels = {f"l{n}": series.SampleSeries(over_time=over_time([1.0], [float(n)])) for n in range(10)}
    found = drawn(over_time=over_time([1.0], [1.0]), labels=labels)
    chart = found["response-time-by-label"]
    assert [trace["name"] for trace in chart.traces] == [f"l{n}" for n in range(9, 1, -1)]
    assert chart.caption.endswith(" The 8 slowest of 11 labels are drawn.")
    assert [found[name].label for name in ("response-time-over-time", "response-time-over-time-10")] == ["frame", "l9"]
    two = drawn(labels={name: labels[name] for name in ("l1", "l2")})["response-time-by-label"]
    assert (len(two.traces), "slowest" in two.caption) == (2, False)
    one = drawn(over_time=over_time([1.0], [1.0]), labels={"l1": labels["l1"]})
    assert "response-time-by-label" not in one and one["response-time-over-time-1"].label == "l1"
    assert drawn(over_time=over_time([1.0], [1.0]))["response-time-over-time"].label is None


def test_labels_are_no_html_for_plotly() -> None:
    """In names, hovers, axes with words, and the title of a download; numbers and identifiers are as they were."""
    trace = {"type": "scatter", "x": [1.5, None], "y": ["<b>a</b> & b", "c"], "name": "<i>", "text": ["<\nd"]}
    axis = {"title": {"text": "of <u>"}, "categoryarray": ("<b>a</b> & b", "c")}
    shown = Chart("a-chart", "of <b>", "", [trace], {}, axis).figure()
    (of_trace,), of_axis = shown["data"], shown["layout"]["yaxis"]
    assert of_trace == {
        "type": "scatter", "x": [1.5, None], "y": ["&lt;b>a&lt;/b> &amp; b", "c"], "name": "&lt;i>",
        "text": ["&lt;<br>d"],
    }  # fmt: skip
    assert (shown["name"], shown["title"], of_axis["title"]["text"]) == ("a-chart", "of &lt;b>", "of &lt;u>")
    assert of_axis["categoryarray"] == of_trace["y"], "as its points"
