"""The chart of all frames: round trip, handler and model by the frame's index, a row for each level of a factor."""

from collections.abc import Mapping
from typing import Any

from framestorm.report.figure import BAND, MAIN, Chart, Lengths, Trace, line
from framestorm.study.answers import wording
from framestorm.study.answers.frame_series import COLUMNS
from framestorm.study.page.panels import Panel, arrange, titled


def frame_chart(asked: Mapping[str, Any], series: Mapping[str, Any] | None) -> Chart | None:
    """The chart, with a choice of the level of `panels`; the last is chosen at first."""
    if not series:
        return None
    cells = series["cells"]
    choices = list(dict.fromkeys(cell["panel"] for cell in cells))
    levels = list(dict.fromkeys(cell["row"] for cell in cells))
    chosen = choices[-1]
    panels = []
    owners: list[Any] = []  # of each trace, the choice it belongs to
    for level in levels:
        for column, what in COLUMNS.items():
            own = [cell for cell in cells if cell["row"] == level and column in cell["columns"]]
            drawn = [(cell["panel"], trace) for cell in own for trace in _traces(cell, column, own, chosen)]
            owners += [panel for panel, _ in drawn]
            axis = _axis(own, column)
            title = f"{what}, {wording.named_level(asked['rows'], level)}"
            panels.append(
                Panel(title, [trace for _, trace in drawn], titled("frame (index)"), axis.axis("time") | ORDINARY)
            )
    traces, layout, height = arrange(panels, len(COLUMNS))
    caption = (
        "Median of all users and repetitions, and the band from 5 % to 95 % of them. Each panel has its own axis. A "
        "round trip that timed out counts as long as was waited; handler and model are of the frames answered rightly."
    )
    names = {choice: wording.named_level(asked["panels"], choice) for choice in choices if choice is not None}
    return Chart(
        name="", title=asked["title"], caption=f"{asked.get('caption', '')} {caption}".strip(), traces=traces,
        xaxis=layout.pop("xaxis"), yaxis=layout.pop("yaxis"), layout=layout, height_rem=height, panels=len(panels),
        choices={name: [{"visible": [owner == choice for owner in owners]}, {}] for choice, name in names.items()}
        if len(names) > 1 else {},
        chosen=names.get(chosen, ""),
    )  # fmt: skip


# On a common logarithmic axis the rows of a panel could not be told apart.
ORDINARY = {"type": "linear", "tickmode": "auto", "rangemode": "tozero"}


def _axis(cells: list[Any], column: str) -> Lengths:
    return Lengths.of([value for cell in cells for value in cell["columns"][column]["high"]])


def _traces(cell: Mapping[str, Any], column: str, beside: list[Any], chosen: Any) -> list[Trace]:
    axis, data = _axis(beside, column), cell["columns"][column]
    hidden = {"hoverinfo": "skip", "showlegend": False, "mode": "lines"}
    shape = {"fill": "toself", "fillcolor": BAND, "line": {"width": 0, "color": BAND}}
    around = {"type": "scatter", "name": "5 % to 95 %", "x": [*data["x"], *reversed(data["x"])]}
    around["y"] = [*axis.y(data["high"]), *reversed(axis.y(data["low"]))]
    seen = {"visible": cell["panel"] == chosen}
    return [around | shape | hidden | seen, line(data["x"], axis.y(data["mid"]), "median", MAIN, 1.8) | seen]
