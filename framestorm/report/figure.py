"""Common to all charts: a chart's parts and panels, colours, traces, and axes with suitable units.

Colours are names of the style sheet's variables, so that light, dark and print each have their own.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Protocol

from framestorm.model.series import Mark, Series, Values
from framestorm.model.summary import Machine

Json = dict[str, Any]  # an axis or a layout in Plotly's format
Trace = Json
LINE_COLOURS = tuple(f"var(--line-{number})" for number in range(1, 9))
MAIN, SECOND, BAD, QUIET, SOFT, BAND, INK = (
    LINE_COLOURS[0], LINE_COLOURS[1], "var(--bad)", "var(--quiet)", "var(--soft)", "var(--band)", "var(--ink)",
)  # fmt: skip
# By the largest value: the scale, and the unit after it.
LENGTH_UNITS = ((1000.0, 1.0, "ms"), (300_000.0, 1000.0, "s"), (float("inf"), 60_000.0, "min"))
CLOCK_UNITS = ((900.0, 1.0, "s"), (18_000.0, 60.0, "min"), (float("inf"), 3600.0, "h"))
CLOCK_TICKS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0)
MAX_LABELS = 4
LABEL_WIDTH, LABEL_HEIGHT = 0.4, 16  # of the time axis; in pixels
# If the ratio of the largest to the middle value is at least this, a linear axis would show a flat line with one peak.
LOG_RATIO = 20
# The height of a chart of panels: of each of several rows, and of a single one.
ROW_REM, ONE_REM = 16.7, 21.0


class Charted(Protocol):
    """What charts are drawn of: the summary of a run, or what is known of one that goes on.

    The fields are those of model/summary.py.
    """

    @property
    def label(self) -> str: ...
    @property
    def labels(self) -> Mapping[str, object]: ...
    @property
    def unit(self) -> str: ...
    @property
    def load_start_s(self) -> float: ...
    @property
    def machines(self) -> Sequence[Machine]: ...
    @property
    def series(self) -> Series: ...


@dataclass
class Chart:
    """A chart of the page."""

    name: str
    title: str
    caption: str
    traces: list[Json]
    xaxis: Json
    yaxis: Json
    layout: Json = field(default_factory=dict)
    # The choices above the chart, and what each changes in traces and layout; `chosen` is the initial one.
    choices: dict[str, list[Json]] = field(default_factory=dict)
    chosen: str = ""
    # For a chart with panels, each of which has its own axes in `layout`; None: the same height as other charts.
    panels: int = 1
    height_rem: float | None = None
    # The label that it is of, where the reader chooses one; None: it is always shown.
    label: str | None = None

    def with_scales(self, axis: "Lengths") -> "Chart":
        """Return the chart with a choice between a linear and a logarithmic time axis, if it makes a difference."""
        if axis.log:
            self.caption += " The time axis is logarithmic at first."
            self.chosen = "log"
            self.choices = {
                name: [{}, {"yaxis.type": name, "yaxis.tickmode": mode, "yaxis.autorange": True}]
                for name, mode in (("linear", "auto"), ("log", "array"))
            }
        return self

    def figure(self) -> Json:
        """The chart in Plotly's format, whose texts it shows as they are.

        Title and legend are for downloads only, because the page has its own.
        """
        layout = {"xaxis": self.xaxis, "yaxis": {"rangemode": "tozero"} | self.yaxis, **self.layout}
        choices = list(self.choices.values())
        size = {"panels": self.panels, "height_rem": self.height_rem} if self.height_rem else {}
        shown = {"title": self.title, "data": self.traces, "layout": layout, "choices": choices}
        return {"name": self.name, **escaped(shown), **size}

    def legend(self) -> list[dict[str, str]]:
        """Return name, colour and kind (a dash, a symbol, or bar) of each trace; empty if there is only one."""
        entries = {}
        for trace in self.traces:
            if trace.get("showlegend", True) and trace["name"] not in entries:
                entries[trace["name"]] = {"name": trace["name"], **_mark(trace)}
        return list(entries.values()) if len(entries) > 1 else []


def _mark(trace: Json) -> dict[str, str]:
    if trace["type"] == "bar":
        return {"kind": "bar", "colour": trace["marker"]["color"]}
    if trace["mode"] == "markers":
        symbol = trace["marker"]["symbol"]
        return {"kind": symbol if isinstance(symbol, str) else "circle", "colour": trace["marker"]["color"]}
    if not trace["line"]["width"]:
        return {"kind": "bar", "colour": trace["fillcolor"]}
    return {"kind": trace["line"].get("dash", "solid"), "colour": trace["line"]["color"]}


@dataclass
class Panel:
    """A panel: its traces, and its axes as Plotly takes them."""

    title: str
    traces: list[Trace]
    xaxis: dict[str, Any]
    yaxis: dict[str, Any]


def arranged(title: str, caption: str, panels: Sequence[Panel], columns: int, **more: Any) -> Chart:
    """Return a chart of panels in rows, with an axis pair each.

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
        name="", title=title, caption=caption, traces=traces, xaxis=layout.pop("xaxis"),
        yaxis=layout.pop("yaxis"), layout=layout | more.pop("layout", {}), panels=len(panels),
        height_rem=ONE_REM if rows == 1 else rows * ROW_REM, **more,
    )  # fmt: skip


class Clock:
    """The time axis that all charts over time share, so that they can be read one below the other.

    It begins with the load, `start_s` after the start of the run: JMeter takes seconds until it sends anything.
    """

    def __init__(self, series: Series, start_s: float = 0.0) -> None:
        self.start_s = start_s
        parts = (series.over_time, series.success_over_time, series.rates, series.in_flight, *series.machines)
        ends = [part.x[-1] or 0.0 for part in parts if part]
        marks = [mark.at_s for mark in series.marks]
        end_s = max(1.0, max([0.0, *ends, *marks]) - start_s)
        self.scale, self.unit = next((scale, unit) for limit, scale, unit in CLOCK_UNITS if end_s < limit)
        self.end = end_s / self.scale
        # A user that is a process starts before its first request; what machines did before is left out.
        begins = [series.in_flight.x[0]] if series.in_flight else []
        begins += [max(start_s, series.over_time.x[0])] if series.over_time else []
        self.begin = (min([*begins, *marks], default=start_s) - start_s) / self.scale
        self.length = self.end - self.begin

    def axis(self) -> Json:
        tick = next((tick for tick in CLOCK_TICKS if self.length / tick <= 9), self.length / 8)
        title = axis_title(f"time since the start of the load ({self.unit})")
        return title | {"range": self.range(), "tick0": 0, "dtick": tick}

    def range(self) -> list[float]:
        return [self.begin - 0.01 * self.length, self.end + 0.02 * self.length]

    def at(self, seconds: float) -> float:
        return float(f"{(seconds - self.start_s) / self.scale:.6g}")

    def words(self, seconds: float) -> str:
        """Return a moment in words, which need no sign."""
        at = self.at(seconds)
        return f"at {at:.3g} {self.unit}" if at >= 0 else f"{-at:.3g} {self.unit} before the load"

    def x(self, seconds: Sequence[float | None]) -> Values:
        return scaled([None if each is None else each - self.start_s for each in seconds], self.scale, digits=6)


@dataclass(frozen=True)
class Lengths:
    """An axis of times given in ms: its unit, and whether only a logarithmic one shows all of them."""

    scale: float
    unit: str
    log: bool
    ticks: tuple[float, ...]

    @classmethod
    def of(cls, *values: Sequence[float | None]) -> "Lengths":
        known = sorted(value for part in values for value in part if value is not None)
        top = known[-1] if known else 0.0
        scale, unit = next((scale, unit) for limit, scale, unit in LENGTH_UNITS if top < limit)
        middle = known[len(known) // 2] if known else 0.0
        low, steps = (known[0] / scale, (1, 2, 5)) if known and known[0] > 0 else (1e-3, (1,))
        if top / scale > low * 1e4:
            steps = (1,)
        exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(max(top / scale, low))) + 1)
        ticks = tuple(float(f"{step}e{exponent}") for exponent in exponents for step in steps)
        return cls(scale, unit, 0 < middle * LOG_RATIO < top, ticks)

    @classmethod
    def plain(cls) -> "Lengths":
        """Return an axis of figures that are not times, as they are."""
        return cls(1.0, "", log=False, ticks=())

    def axis(self, what: str) -> Json:
        labels = [f"{tick:,g}" for tick in self.ticks]
        ticks = {"type": "log", "tickmode": "array", "tickvals": self.ticks, "ticktext": labels}
        return axis_title(f"{what} ({self.unit})" if self.unit else what) | (ticks if self.log else {})

    def y(self, values: Sequence[float | None]) -> Values:
        return scaled(values, self.scale)


def scaled(values: Sequence[float | None], scale: float, digits: int = 5) -> Values:
    """Return the values divided by `scale`, rounded to the digits that a chart can show; None is a gap."""
    return [None if value is None else float(f"{value / scale:.{digits}g}") for value in values]


def marked(chart: Chart, marks: list[Mark], clock: Clock) -> Chart:
    """`chart` (over time) with a line for each mark, labels if there are only a few, and shading after a mark.

    A quiet mark has no label, and a line that does not draw the eye; the panels of a chart have lines only.
    """
    marks = sorted(marks, key=lambda mark: mark.is_quiet)
    shapes = list(chart.layout.get("shapes", ()))
    for place, mark in product(range(1, chart.panels + 1), marks):
        at, axis = clock.at(mark.at_s), str(place) if place > 1 else ""
        height = f"y{axis} domain" if chart.panels > 1 else "paper"
        whole_height = {"xref": f"x{axis}", "yref": height, "y0": 0, "y1": 1, "x0": at}
        stroke = {"color": QUIET if mark.is_quiet else BAD, "width": 1 if mark.is_quiet else 1.2, "dash": "dot"}
        shapes.append(whole_height | {"type": "line", "x1": at, "line": stroke})
        if mark.is_shaded:
            shade = {"fillcolor": "var(--gap)", "line": {"width": 0}, "layer": "below"}
            shapes.append(whole_height | {"type": "rect", "x1": clock.range()[1]} | shade)
    loud = [mark for mark in marks[:MAX_LABELS] if not mark.is_quiet]
    labels = _labels(loud, clock) if chart.panels == 1 else []
    annotations = [*chart.layout.get("annotations", ()), *labels]
    chart.layout = chart.layout | {"shapes": shapes, "annotations": annotations}
    events = "; ".join(f"{mark.label} {clock.words(mark.at_s)}" for mark in marks[:MAX_LABELS])
    more = f", and {len(marks) - MAX_LABELS} more" if len(marks) > MAX_LABELS else ""
    shaded = " Shaded: load without the share of the lost host." if any(mark.is_shaded for mark in marks) else ""
    chart.caption += f" Marked: {events}{more}.{shaded}"
    return chart


def _labels(marks: list[Mark], clock: Clock) -> list[Json]:
    """Return labels above the chart, where they hide nothing, in enough rows not to overlap, even on a phone."""
    labels: list[Json] = []
    rows: list[float] = []  # by row, where its last label ends
    for mark in marks:
        at, width = clock.at(mark.at_s), LABEL_WIDTH * clock.length
        is_late = at > clock.begin + 0.7 * clock.length
        start = at - width if is_late else at
        row = next((number for number, end in enumerate(rows) if end <= start), len(rows))
        rows[row : row + 1] = [start + width]
        labels.append(
            {"text": mark.label, "x": at, "xanchor": "right" if is_late else "left", "yref": "paper", "y": 1,
             "yanchor": "bottom", "yshift": LABEL_HEIGHT * row, "showarrow": False, "borderpad": 0,
             "font": {"size": 11, "color": BAD}}
        )  # fmt: skip
    return labels


def colour_of(number: int) -> str:
    """Return the colour of a line by its number; of many they come again."""
    return LINE_COLOURS[number % len(LINE_COLOURS)]


def escaped(value: Any) -> Any:
    """Return a text, and those within a value, as Plotly takes them, which knows a few elements of HTML."""
    if isinstance(value, str):
        return value.replace("&", "&amp;").replace("<", "&lt;").replace("\n", "<br>")
    if isinstance(value, Mapping):
        return {name: escaped(each) for name, each in value.items()}
    return [escaped(each) for each in value] if isinstance(value, list | tuple) else value


def each_width(width_s: float) -> str:
    """Return the width of a chart's intervals, as it follows "each"."""
    if width_s == 1:
        return "second"
    return f"{width_s:g} s" if width_s < 120 else f"{width_s / 60:g} min"


def axis_title(text: str) -> Json:
    return {"title": {"text": text}}


def line(x: Sequence[Any], y: Sequence[Any], name: str, colour: str, width: float = 1.6, **style: Any) -> Json:
    """Return a line; a single value between gaps is shown as a dot."""
    around = [None, *y, None]
    lonely = any(
        value is not None and before is None and after is None
        for before, value, after in zip(around, y, around[2:], strict=False)
    )
    trace = {"type": "scatter", "mode": "lines+markers" if lonely else "lines", "x": x, "y": y, "name": name}
    return trace | {"connectgaps": False, "line": {"color": colour, "width": width, **style}, "marker": {"size": 4}}


def dots(x: Sequence[Any], y: Sequence[Any], name: str, colour: str, *, symbol: str = "circle", size: int = 4) -> Json:
    marker = {"color": colour, "size": size, "symbol": symbol, "opacity": 0.7 if symbol == "circle" else 1}
    return {"type": "scatter", "mode": "markers", "x": x, "y": y, "name": name, "marker": marker}
