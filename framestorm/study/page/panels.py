"""Charts of several panels: places for them, and the axes of each."""

from dataclasses import dataclass
from typing import Any

from framestorm.report.figure import Trace, axis_title

GAP_X, GAP_Y_REM = 0.075, 3.4
ROW_REM = 16.0
ONE_REM = 21.0
MOST_COLUMNS = 3


@dataclass
class Panel:
    """A panel: its traces, and its axes as Plotly takes them."""

    title: str
    traces: list[Trace]
    xaxis: dict[str, Any]
    yaxis: dict[str, Any]


def columns_for(panels: int) -> int:
    """How many panels stand beside each other: rows of the same length where that goes."""
    if panels <= MOST_COLUMNS:
        return panels
    return 2 if panels == 4 else MOST_COLUMNS


def arrange(panels: list[Panel], columns: int) -> tuple[list[Trace], dict[str, Any], float]:
    """All traces, the layout with an axis pair a panel, and the height in rem.

    A title that the panel below, or the one to the left, has as well is left out.
    """
    rows = -(-len(panels) // columns)
    height = ONE_REM if rows == 1 else rows * ROW_REM + (rows - 1) * GAP_Y_REM * 0.2
    gap_y = 0.0 if rows == 1 else GAP_Y_REM / height
    width, tall = (1 - GAP_X * (columns - 1)) / columns, (1 - gap_y * (rows - 1)) / rows
    traces: list[Trace] = []
    layout: dict[str, Any] = {"annotations": []}
    for place, panel in enumerate(panels):
        row, column = divmod(place, columns)
        left, top = column * (width + GAP_X), 1 - row * (tall + gap_y)
        number = "" if place == 0 else str(place + 1)
        layout[f"xaxis{number}"] = {"domain": _domain(left, left + width), "anchor": f"y{number}"} | panel.xaxis
        layout[f"yaxis{number}"] = {"domain": _domain(top - tall, top), "anchor": f"x{number}"} | panel.yaxis
        if place + columns < len(panels):  # another one stands below it
            layout[f"xaxis{number}"]["title"] = {"text": ""}
        if column and panel.yaxis["title"] == panels[place - 1].yaxis["title"]:
            layout[f"yaxis{number}"]["title"] = {"text": ""}
        traces += [trace | {"xaxis": f"x{number}", "yaxis": f"y{number}"} for trace in panel.traces]
        if panel.title:
            layout["annotations"].append(
                {"text": panel.title, "xref": "paper", "yref": "paper", "x": round(left, 4), "y": round(top, 4),
                 "xanchor": "left", "yanchor": "bottom", "yshift": 3, "showarrow": False, "borderpad": 0,
                 "font": {"size": 12}}
            )  # fmt: skip
    _named_once(traces)
    return traces, layout, height


def _named_once(traces: list[Trace]) -> None:
    """A line that is in several panels stands once in the legend, and is shown and hidden with its like."""
    seen: set[str] = set()
    for trace in traces:
        if trace.get("showlegend", True):
            trace["legendgroup"] = trace["name"]
            trace["showlegend"] = trace["name"] not in seen
            seen.add(trace["name"])


def _domain(low: float, high: float) -> list[float]:
    return [round(max(0.0, low), 4), round(min(1.0, high), 4)]


def titled(text: str, **more: Any) -> dict[str, Any]:
    """An axis with its title."""
    return axis_title(text) | more
