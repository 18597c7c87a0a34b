"""What a study's charts draw of given figures: places, ends of intervals, ranges and ticks of axes."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest

from framestorm.model.study import ChartDefinition as Asked
from framestorm.model.study import Value, matches
from framestorm.model.study_summary import LawCurve, PublishedPoint, ScalabilityLine
from framestorm.report.figure import INK, MAIN, Chart
from framestorm.stats.estimate import Estimate
from framestorm.study.page import charts
from framestorm.study.summary import StudySummary

E = Estimate
Figures = Mapping[Value, Estimate]


def chart(
    ours: Mapping[Any, Estimate],
    metric: str = "mean_ms",
    *,
    complete: int = 3,
    published: Figures | None = None,
    published_metric: str | None = None,
    law: LawCurve | None = None,
    **asked: Any,
) -> Chart:
    """The chart of one factor `x`, or of two where the places are pairs: `x` and the one of lines or panels."""
    places = [place if isinstance(place, tuple) else (place,) for place in ours]
    names = ("x", asked.get("lines") or asked.get("panels"))
    factors = [dict(zip(names, place, strict=False)) for place in places]
    points = [
        SimpleNamespace(factors=each, figures={metric: figure}, complete=complete)
        for each, figure in zip(factors, ours.values(), strict=True)
    ]
    summary = SimpleNamespace(
        points=points,
        published=[
            PublishedPoint({"x": x}, {published_metric or metric: figure}) for x, figure in (published or {}).items()
        ],
        scalability=[ScalabilityLine("x", metric, {}, [], None, None, law)],
        levels={name: list(dict.fromkeys(each[name] for each in factors)) for name in names if name in factors[0]},
    )
    given = {"title": "t", "metric": metric, "x": "x", **asked}
    drawn = charts._Drawing(cast(StudySummary, summary), Asked.model_validate(given)).chart()
    assert drawn is not None
    return drawn


def test_a_band_goes_around_the_points_that_have_an_interval() -> None:
    figures = {1: E(20, 10, 30), 2: E(40, 35, 50), 3: E(40), 4: E(60, 50, 65), 5: E(70, 60, 90)}
    drawn = chart(figures)
    band, line = drawn.traces
    assert drawn.caption == "Band or bar: 95 % confidence interval."
    assert band["x"] == [1, 2, 2, 1, None, 4, 5, 5, 4]
    assert band["y"] == [30, 50, 35, 10, None, 65, 90, 60, 50]
    assert (band["fill"], band["showlegend"], band["line"]["width"]) == ("toself", False, 0)
    assert (line["x"], line["y"], line["mode"]) == ([1, 2, 3, 4, 5], [20, 40, 40, 60, 70], "lines+markers")
    assert "error_y" not in line


def test_a_lone_point_has_its_interval_too() -> None:
    """A band takes two points; one alone has a bar."""
    line, other = chart({(1, "a"): E(20, 10, 32), (1, "b"): E(40, 35, 50)}, lines="way").traces
    assert (line["x"][0] + other["x"][0]) / 2 == 1 and line["x"] != other["x"], "side by side"
    assert (line["error_y"]["array"], line["error_y"]["arrayminus"]) == ([12], [10])


def test_bars_have_their_interval_on_top() -> None:
    drawn = chart({1: E(20, 15, 32), 2: E(40)}, kind="bars")
    (bars,) = drawn.traces
    assert (bars["type"], bars["x"], bars["y"]) == ("bar", ["1", "2"], [20, 40])
    assert (bars["error_y"]["array"], bars["error_y"]["arrayminus"]) == ([12, 0], [5, 0])
    assert (bars["error_y"]["symmetric"], drawn.layout["barmode"]) == (False, "group")
    assert (bars["error_y"]["color"], bars["marker"]["color"]) == (INK, MAIN)
    assert (drawn.caption, drawn.xaxis["type"]) == ("Bar on top: 95 % confidence interval.", "category")
    drawn = chart({1: E(20, -3, 30), 2: E(0, 0, 1)}, kind="bars", log="y")
    (marks,) = drawn.traces
    assert (marks["mode"], marks["y"], marks["marker"]["size"]) == ("markers", [20, None], [10, 10])
    assert (marks["error_y"]["array"], marks["error_y"]["arrayminus"]) == ([10, 0], [18, 0]), "to a tenth; a gap"
    assert drawn.caption.endswith(charts.NOTES["from_zero"])


def test_an_open_triangle_is_a_time_that_was_cut_off() -> None:
    drawn = chart({1: E(20), 2: E(40, bound="lower")}, complete=1)
    assert drawn.traces[0]["marker"]["symbol"] == ["circle", "triangle-up-open"]
    assert drawn.traces[0]["marker"]["size"] == [5, 8]
    assert drawn.caption == charts.NOTES["cut"]
    assert chart({1: E(20), 2: E(40)}).caption == "Means over the repetitions."


@pytest.mark.parametrize(
    ("metric", "figures", "unit", "y", "axis"),
    [
        # Up to the largest end, and 5 % more; of an interval, at most 1.6 times the largest value.
        ("mean_ms", {1: E(20, 10, 30), 2: E(40, 35, 60)}, " (ms)", [20, 40], {"range": [0, 63]}),
        ("mean_ms", {1: E(20, 10, 30), 2: E(40, 35, 64)}, " (ms)", [20, 40], {"range": [0, 67.2]}),
        ("mean_ms", {1: E(20, 10, 30), 2: E(40, 35, 90)}, " (ms)", [20, 40], {"range": [0, 67.2]}),
        ("mean_ms", {1: E(20, 10, 30)}, " (ms)", [20], {"range": [0, 31.5]}),
        ("mean_ms", {1: E(500), 2: E(1000)}, " (s)", [0.5, 1], {"range": [0, 1.05]}),
        ("mean_ms", {1: E(-500), 2: E(20)}, " (ms)", [-500, 20], {"rangemode": "normal"}),
        ("mean_ms", {1: E(0), 2: E(0)}, " (ms)", [0, 0], {"rangemode": "normal"}),
        ("mean_ms", {1: E(0), 2: E(1)}, " (ms)", [0, 1], {"range": [0, 1.05]}),
        # A share, in percent, has all of its axis if any is over a half.
        ("success", {1: E(0.2), 2: E(0.51)}, " (%)", [20, 51], {"range": [0, 104]}),
        ("success", {1: E(0.2), 2: E(0.5)}, " (%)", [20, 50], {"range": [0, 52.5]}),
    ],
)
def test_an_axis_reaches_a_little_beyond_what_is_drawn(
    metric: str, figures: Figures, unit: str, y: list[float], axis: dict[str, Any]
) -> None:
    drawn = chart(figures, metric)
    assert drawn.traces[-1]["y"] == y
    title = drawn.yaxis["title"]["text"]
    assert title.endswith(unit)
    assert {name: pytest.approx(value) for name, value in axis.items()} == {
        name: value for name, value in drawn.yaxis.items() if name in ("range", "rangemode")
    }
    is_beyond = any((figure.high or 0) > 1.6 * max(each.value for each in figures.values())
                    for figure in figures.values())  # fmt: skip
    assert (charts.NOTES["beyond"] in drawn.caption) == is_beyond


def test_ends_of_intervals_stay_within_what_there_can_be() -> None:
    band, _ = chart({1: E(0.9, 0.8, 1.1), 2: E(0.1, -0.1, 0.2)}, "success").traces
    assert band["y"] == [100, 20, 0, 80]
    band, _ = chart({1: E(20, -10, 30), 2: E(40, 35, 60)}).traces
    assert band["y"] == [30, 60, 35, 0]
    band, _ = chart({1: E(-1, -10, 30), 2: E(40, 35, 60)}).traces
    assert band["y"] == [30, 60, 35, -10], "a difference may be negative"
    band, _ = chart({1: E(0, -10, 30), 2: E(40, 35, 60)}).traces
    assert band["y"] == [30, 60, 35, 0]


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        ([30.0, 400.0], [10, 20, 50, 100, 200, 500, 1000, 2000, 5000]),
        ([3.0, 4000.0], [1, 10, 100, 1000, 10_000]),
        ([10.0, 100.0], [10, 20, 50, 100, 200, 500]),
        ([0.0, 0.2], [0.1, 0.2, 0.5, 1, 2, 5]),
        ([0.0, -1.0], None),
    ],
)
def test_a_logarithmic_axis_has_ticks_at_round_figures(values: list[float], ticks: list[float] | None) -> None:
    axis = charts._log_ticks(values)
    assert axis.get("tickvals") == ticks
    assert axis == {} or axis["ticktext"] == [f"{tick:,g}" for tick in axis["tickvals"]]


@pytest.mark.parametrize(
    ("log", "xs", "moved"),
    [
        (None, [[10], [10]], [[10 - 0.03], [10 + 0.03]]),  # of an axis with a single place: 2 wide
        (None, [[10], [10], [0, 20]], [[10 - 0.3], [10 + 0.3], [0, 20]]),
        (None, [[10]], [[10]]),
        (None, [[10], [10], [10]], [[10 - 0.06], [10], [10 + 0.06]]),
        ("x", [[10], [10], [1, 100]], [[10 * 10**-0.03], [10 * 10**0.03], [1, 100]]),
        ("x", [[10], [10], [0, 100]], [[10], [10], [0, 100]]),
    ],
)
def test_points_that_stand_alone_stand_side_by_side(
    log: str | None, xs: list[list[float]], moved: list[list[float]]
) -> None:
    traces = [{"x": x, **({"error_y": {}} if len(x) == 1 else {})} for x in xs]
    charts._spread_lone_points(traces, is_log=log == "x")
    assert [trace["x"] for trace in traces] == [pytest.approx(x) for x in moved]


@pytest.mark.parametrize(
    ("levels", "log", "axis"),
    [
        ([1, 2], None, {"type": None, "tickvals": [1, 2], "ticktext": ["1", "2"]}),
        ([*range(10)], None, {"tickvals": [*range(10)]}),
        ([*range(11)], None, {"tickvals": None}),
        ([100], None, {"range": [99, 101]}),
        ([100], "x", {"type": "log", "range": [1, 3]}),
        ([0], "x", {"range": None}),
        ([0], None, {"range": [-1, 1]}),
        (["a", "b"], None, {"type": "category"}),
    ],
)
def test_levels_are_the_ticks(levels: list[Any], log: str | None, axis: dict[str, Any]) -> None:
    drawn = chart(dict.fromkeys(levels, E(20)), log=log)
    assert {name: drawn.xaxis.get(name) for name in axis} == axis


@pytest.mark.parametrize(("most", "tops"), [(80, [84, 84]), (81, [21, 85.05])])
def test_panels_that_can_be_read_on_one_axis_have_one(most: float, tops: list[float]) -> None:
    drawn = chart({(1, "a"): E(20), (1, "b"): E(most)}, panels="way")
    assert [drawn.yaxis["range"], drawn.layout["yaxis2"]["range"]] == [[0, pytest.approx(top)] for top in tops]
    assert drawn.panels == 2 and drawn.layout["grid"] == {"rows": 1, "columns": 2, "pattern": "independent"}


def test_panels_stand_in_rows() -> None:
    drawn = chart({(1, way): E(2000 if way == "d" else 20) for way in "abcdefg"}, panels="way")
    assert (drawn.layout["grid"]["rows"], drawn.layout["grid"]["columns"], drawn.height_rem) == (3, 3, 3 * 16.7)
    axes = {number: drawn.layout[f"yaxis{number}"]["title"]["text"] for number in range(2, 8)}
    assert [number for number, title in axes.items() if title] == [4, 5, 7], (
        "the first of each row, and after other units"
    )
    axes = {number: drawn.layout[f"xaxis{number}"]["title"]["text"] for number in range(2, 8)}
    assert [number for number, title in axes.items() if title] == [5, 6, 7], "those with none below"
    assert [trace["showlegend"] for trace in drawn.traces] == [True] + [False] * 6
    assert (drawn.figure()["panels"], drawn.figure()["height_rem"]) == (7, 3 * 16.7)
    four = chart({(1, way): E(20) for way in "abcd"}, panels="way")
    assert four.layout["grid"]["columns"] == 2
    assert chart({1: E(20)}).height_rem == 21


def test_the_law_is_drawn_where_it_was_fitted_to_the_points_of_a_line() -> None:
    law = LawCurve([1.0, 2.0], [20.0, 40.0])
    figures = {1: E(20), 2: E(40)}
    line, dashed = chart(figures, "served_per_s", law=law).traces
    assert (dashed["x"], dashed["y"], dashed["line"]["dash"]) == ([1, 2], [20, 40], "dash")
    assert (dashed["showlegend"], line["showlegend"]) == (False, True)
    assert len(chart(figures, "served_per_s").traces) == 1
    assert len(chart(figures, "served_per_s", law=law, kind="bars").traces) == 1
    assert len(chart({(1, "a"): E(20), (1, "b"): E(20)}, "served_per_s", law=law, lines="way").traces) == 2


def test_the_published_are_a_panel_beside_ours() -> None:
    law = LawCurve([1.0, 2.0], [20.0, 40.0])
    drawn = chart({1: E(20), 2: E(40)}, published={1: E(900.0), 2: E(2000.0)}, law=law)
    assert [(each["text"], each["showarrow"]) for each in drawn.layout["annotations"]] == [
        ("here", False), ("published", False),
    ]  # fmt: skip
    ours, of_ours, published = drawn.traces
    assert (of_ours["name"], of_ours["xaxis"]) == ("law", "x")
    assert (published["x"], published["y"], published["xaxis"]) == ([1, 2], [0.9, 2], "x2")
    assert (published["line"].get("dash"), ours["line"].get("dash")) == ("dot", None)
    assert drawn.layout["grid"]["columns"] == 2
    assert drawn.caption == f"{charts.NOTES['law']} {charts.NOTES['published']}"
    assert len(chart({1: E(20)}, published={1: E(900.0)}, published_metric="p95_ms").traces) == 1


@pytest.mark.parametrize(
    ("factors", "is_in"),
    [
        ({"a": 1, "b": "x"}, True),
        ({"a": 2, "b": "x"}, True),
        ({"a": 3, "b": "x"}, False),
        ({"a": True, "b": "x"}, False),
        ({"a": 1}, False),
    ],
)
def test_a_claim_and_a_chart_are_about_the_points_with_their_levels(factors: dict[str, Value], is_in: bool) -> None:
    assert matches(factors, {"a": (1, 2), "b": "x"}) == is_in
    assert matches({"b": True}, {"b": True}) and not matches({"b": 1}, {"b": True})


def test_a_published_row_says_nothing_of_factors_that_it_has_no_column_for() -> None:
    rows = [PublishedPoint(factors, {"mean_ms": E(1.0)}) for factors in ({"a": 1}, {"b": "y"}, {})]
    summary = SimpleNamespace(points=[], published=rows, scalability=[], levels={})
    asked = Asked.model_validate({"title": "t", "metric": "mean_ms", "where": {"a": [1, 2], "b": "x"}})
    assert [row.factors for row in charts._Drawing(cast(StudySummary, summary), asked).published] == [{"a": 1}, {}]
