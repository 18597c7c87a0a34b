"""A chart of panels in rows, with an axis pair each."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from framestorm.model import study as design
from framestorm.report.figure import Chart, Trace, axis_title

ROW_REM, ONE_REM = 16.7, 21.0


@dataclass
class Panel:
    """A panel: its traces, and its axes as Plotly takes them."""

    title: str
    traces: list[Trace]
    xaxis: dict[str, Any]
    yaxis: dict[str, Any]


def arranged(asked: design.Chart, caption: str, panels: Sequence[Panel], columns: int, **more: Any) -> Chart:
    """A chart of panels in rows, with an axis pair each.

    A title that the panel below, or the one to the left, has as well is left out.
    """
    rows = -(-len(panels) // columns)
    traces: list[Trace] = []
    layout: dict[str, Any] = {"annotations": [], "grid": {"rows": rows, "columns": columns, "pattern": "independent"}}
    named: set[str] = set()
    for place, panel in enumerate(panels):
        x, y = (f"{axis}{place + 1 if place else ''}" for axis in "xy")
        is_repeated = place % columns and panel.yaxis["title"] == panels[place - 1].yaxis["title"]
        layout[x.replace("x", "xaxis")] = panel.xaxis | (axis_title("") if place + columns < len(panels) else {})
        layout[y.replace("y", "yaxis")] = panel.yaxis | (axis_title("") if is_repeated else {})
        for trace in panel.traces:
            traces.append(trace | {"xaxis": x, "yaxis": y})
            # A line that is in several panels stands once in the legend, and is shown and hidden with its like.
            if trace.get("showlegend", True):
                traces[-1] |= {"legendgroup": trace["name"], "showlegend": trace["name"] not in named}
                named.add(trace["name"])
        if panel.title:
            layout["annotations"].append(
                {"text": panel.title, "xref": f"{x} domain", "yref": f"{y} domain", "x": 0, "y": 1, "xanchor": "left",
                 "yanchor": "bottom", "yshift": 3, "showarrow": False, "borderpad": 0, "font": {"size": 12}}
            )  # fmt: skip
    return Chart(
        name="", title=asked.title, caption=caption, traces=traces, xaxis=layout.pop("xaxis"),
        yaxis=layout.pop("yaxis"), layout=layout | more.pop("layout", {}), panels=len(panels),
        height_rem=ONE_REM if rows == 1 else rows * ROW_REM, **more,
    )  # fmt: skip
