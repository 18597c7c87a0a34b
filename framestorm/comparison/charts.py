"""Charts of a comparison: ratios with their intervals, and how the round trips of runs are spread."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from framestorm.comparison.contrast import NONE_SHOWN
from framestorm.comparison.words import ratio_text
from framestorm.report.figure import BAD, INK, LINE_COLOURS, QUIET, SECOND, Chart, Lengths, Trace, axis_title, line
from framestorm.report.units import count

GOOD = "var(--good)"
Row = Mapping[str, Any]
# Candidates of marks on an axis of ratios; those are taken that leave few enough.
TICKS = (
    0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99,
    1, 1.01, 1.02, 1.05, 1.1, 1.2, 1.3, 1.5, 2, 3, 5, 10, 20, 30, 50, 100, 200, 500, 1000,
)  # fmt: skip
LEAST_GAP = 0.07  # of the axis, between two marks
ROW_REM, FRAME_REM = 1.5, 5.5
MARGIN = 0.04


def charts(summary: Mapping[str, Any]) -> list[Chart]:
    """The charts that there is something to draw of."""
    found = []
    several = len(summary["comparisons"]) > 1
    for each in summary["comparisons"]:
        what = "over all points" if len(each["shared"]) > 1 else ""
        by = f"{each['label']} against {each['against']}"
        suffix = f", {by}" if several else ""
        rows = [(row["words"], row) for row in each["overall"]]
        found.append(_forest(f"Ratios {what}".strip() + suffix, f"ratios-{each['label']}", rows, by))
        if each["points"]:
            main = each["points"][0]
            of_main = [(row["point"], row) for row in each["points"] if row["metric"] == main["metric"]]
            found.append(_forest(f"{main['words']} by point{suffix}", f"points-{each['label']}", of_main, by))
    if any(curve["x_ms"] for curve in summary["series"]["round_trips"]):
        found.append(_spread(summary["series"]["round_trips"]))
    return [chart for chart in found if chart]


def _forest(title: str, name: str, rows: Sequence[tuple[str, Row]], by: str) -> Chart | None:
    """A row a metric or point: the ratio and its interval."""
    drawn = [(label, row) for label, row in rows if row["scale"] == "ratio" and row["bound"] != "unknown"]
    if not drawn:
        return None
    ends = [end for _, row in drawn for end in row["ratio"].values() if end]
    low, high = math.log10(min([1.0, *ends])), math.log10(max([1.0, *ends]))
    margin = max(0.003, (high - low) * MARGIN)
    reach = (low - margin, high + margin)
    traces: list[Trace] = []
    for label, colour, wanted in (
        ("for the worse", BAD, lambda row: row["is_worse"] is True),
        ("for the better", GOOD, lambda row: row["is_worse"] is False),
        ("different", SECOND, lambda row: row["claim"] in {"higher", "lower"} and row["is_worse"] is None),
        (NONE_SHOWN, INK, lambda row: row["claim"] == NONE_SHOWN),
        ("no interval", QUIET, lambda row: row["claim"] == "not compared"),
    ):
        chosen = [(words, row) for words, row in drawn if wanted(row)]
        if chosen:
            traces.append(_marks(chosen, label, colour, reach))
    is_open = any((row["ratio"]["low"] is None) != (row["ratio"]["high"] is None) for _, row in drawn)
    open_note = " An interval that leaves the chart is open: a time-out hides its end." if is_open else ""
    ticks = _ticks(*reach)
    labels = [label for label, _ in drawn]
    return Chart(
        name=name,
        title=title,
        caption=(
            f"{by}: the ratio and its 95 % interval; right of the line is more. Coloured: the claim stands with all "
            f"others of its kind on this page taken into account.{open_note}"
        ),
        traces=traces,
        xaxis=axis_title(f"ratio, {by}")
        | {
            "type": "log", "range": list(reach), "tickmode": "array", "tickvals": ticks,
            "ticktext": [f"{tick:g}" for tick in ticks], "showgrid": True,
        },
        yaxis=axis_title("")
        | {"type": "category", "categoryorder": "array", "categoryarray": labels[::-1], "showgrid": False, "ticks": "",
           "range": [-0.6, len(labels) - 0.4]},
        layout={
            "shapes": [
                {"type": "line", "x0": 1, "x1": 1, "yref": "paper", "y0": 0, "y1": 1, "layer": "below",
                 "line": {"color": "var(--soft)", "width": 1, "dash": "dash"}}
            ]
        },
        height_rem=FRAME_REM + ROW_REM * len(labels),
    )  # fmt: skip


def _marks(rows: Sequence[tuple[str, Row]], name: str, colour: str, reach: tuple[float, float]) -> Trace:
    x = [row["ratio"]["value"] for _, row in rows]
    least, most = 10 ** reach[0], 10 ** reach[1]
    plus, minus = [], []
    for _, row in rows:
        value, low, high = (row["ratio"][end] for end in ("value", "low", "high"))
        has_any = low is not None or high is not None
        minus.append(max(0.0, value - (low if low is not None else least)) if has_any else 0.0)
        plus.append(max(0.0, (high if high is not None else most) - value) if has_any else 0.0)
    texts = [f"{label}: {ratio_text(row['ratio']['value'])}" for label, row in rows]
    return {
        "type": "scatter", "mode": "markers", "x": x, "y": [label for label, _ in rows], "name": name,
        "marker": {"color": colour, "size": 8, "symbol": "circle"},
        "error_x": {"type": "data", "symmetric": False, "array": plus, "arrayminus": minus, "color": colour,
                    "thickness": 1.6, "width": 0},
        "text": texts, "hoverinfo": "text",
    }  # fmt: skip


def _ticks(low: float, high: float) -> list[float]:
    """Marks within the axis (given in powers of ten), 1 first, then those that stand far enough from the others."""
    inside = [tick for tick in TICKS if low <= math.log10(tick) <= high]
    gap = LEAST_GAP * (high - low)
    chosen: list[float] = []
    by_roundness = sorted(inside, key=lambda tick: (tick != 1, math.log10(tick) % 1 != 0, -abs(math.log10(tick))))
    for tick in by_roundness:
        if all(abs(math.log10(tick) - math.log10(other)) >= gap for other in chosen):
            chosen.append(tick)
    return sorted(chosen)


def _spread(curves: Sequence[Mapping[str, Any]]) -> Chart:
    axis = Lengths.of(*(curve["x_ms"] for curve in curves))
    traces = [
        line(axis.y(curve["x_ms"]), [100 * share for share in curve["share"]], curve["label"], colour, 2, shape="hv")
        for curve, colour in zip(curves, LINE_COLOURS * len(curves), strict=False)
    ]
    caption = "Share of all frames that were answered rightly within a time: the further left, the faster; where curves cross, one side is faster for some frames only."  # noqa: E501
    for kind, words in (("timed_out", "Timed out"), ("failed", "Failed otherwise")):
        never = [f"{count(curve[kind])} of {curve['label']}" for curve in curves if curve[kind]]
        caption += f" {words}, and never reached: {', '.join(never)}." if never else ""
    x = axis.axis("round trip")
    return Chart(
        name="round-trips",
        title="Round trips, cumulative",
        caption=caption,
        traces=traces,
        xaxis=x,
        yaxis=axis_title("frames answered") | {"range": [0, 102], "ticksuffix": " %"},
        choices={
            f"{name} time": [{}, {"xaxis.type": name, "xaxis.tickmode": mode, "xaxis.autorange": True}]
            for name, mode in (("linear", "auto"), ("log", "auto"))
        },
        chosen="log time" if axis.log else "linear time",
    )
