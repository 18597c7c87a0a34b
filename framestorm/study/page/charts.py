"""Charts of a study: metrics over a factor with intervals, the published ones beside ours; times by index."""

import itertools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from framestorm.judge import wording
from framestorm.model import study as design
from framestorm.model.metric import figure_label, metric
from framestorm.model.study import Value, matches
from framestorm.model.study_summary import IndexCell, PointSummary, PublishedPoint
from framestorm.model.units import is_number
from framestorm.report.figure import (
    BAND,
    INK,
    MAIN,
    Chart,
    Lengths,
    Panel,
    Trace,
    arranged,
    axis_title,
    colour_of,
    line,
)
from framestorm.study.summary import StudySummary

# Panels whose tops differ by more have axes of their own: on a common one the lower would be flat.
COMMON_AXIS_RATIO = 4
# An interval of few repetitions may be far wider than what is measured; the axis follows it so far.
MOST_ABOVE = 1.6
MOST_COLUMNS, MOST_TICKS = 3, 10
APART, LONE_SPAN = 0.03, 2.0  # of an axis' length; of an axis with one place: one to either side, or a decade
# Units of an axis, and what a metric's own is multiplied by.
UNITS = {"share": ("%", 100.0), "bytes": ("MB", 1e-6), "bytes/s": ("kB/s", 1e-3), "1/s": ("per second", 1.0)}
# What a caption says of what is drawn, in this order.
NOTES = {
    "beyond": "Some reach beyond the axis.",
    "from_zero": "Lower ends at 0 are drawn at one tenth of the value: a logarithmic axis has no 0.",
    "law": "Dashed: the fitted universal scalability law.",
    "cut": "Open triangle: timeouts cut times off, the true figure lies above.",
    "published": "Published: on other hardware; compare the shape, not the height.",
}
# A metric over the factor that sets it is a diagonal.
GIVEN_BY = {"asked_per_s": "rate_per_s"}
# On a common logarithmic axis the rows of a panel could not be told apart.
ORDINARY = {"type": "linear", "tickmode": "auto", "rangemode": "tozero"}
Drawn = PointSummary | PublishedPoint


def study_charts(summary: StudySummary) -> list[Chart]:
    """Return the charts that study.yml asks for, or the default charts; charts without data are left out."""
    charts = []
    for number, asked in enumerate(summary.study.definition.charts or _usual_charts(summary)):
        if asked.is_by_index:
            chart = _by_index_chart(asked, summary.by_index.get(number, []))
        else:
            chart = _Drawing(summary, asked).chart()
        if chart is not None:
            chart.name = re.sub(r"[^a-z0-9]+", "-", chart.title.lower()).strip("-")
            charts.append(chart)
    return charts


def _usual_charts(summary: StudySummary) -> list[design.ChartDefinition]:
    """Return one of each metric of the table, if it can show all factors: along the axis, as lines and as panels."""
    # A factor of one level would be an axis or a legend with nothing to tell apart.
    varied = {name: levels for name, levels in summary.levels.items() if len(levels) > 1} or summary.levels
    levels = list(varied.values())
    if len(levels) > 3:
        return []
    asked = {"kind": "lines" if all(map(is_number, levels[0])) else "bars"}
    asked |= dict(zip(("x", "lines", "panels"), varied, strict=False))
    metrics = [name for name in summary.study.definition.metrics if GIVEN_BY.get(name) not in varied]
    return [
        design.ChartDefinition.model_validate({"title": metric(name).title, "metric": name, **asked})
        for name in metrics
    ]


@dataclass(frozen=True)
class _Scale:
    """From a metric's own unit to that of the axis; intervals end within what there can be."""

    unit: str
    factor: float
    least: float
    most: float

    @classmethod
    def of(cls, name: str, values: Sequence[float]) -> "_Scale":
        unit = metric(name).unit
        least = 0.0 if all(value >= 0 for value in values) else -math.inf
        most = 100.0 if unit == "share" else math.inf
        if unit in ("ms", "s"):
            in_ms = 1000.0 if unit == "s" else 1.0
            lengths = Lengths.of([abs(value) * in_ms for value in values])
            return cls(lengths.unit, in_ms / lengths.scale, least, most)
        return cls(*UNITS.get(unit, (unit, 1.0)), least, most)

    def place(self, value: float) -> float:
        return float(f"{value * self.factor:.5g}")

    def end(self, value: float | None) -> float | None:
        """Return an end of an interval."""
        return None if value is None else float(f"{min(max(value * self.factor, self.least), self.most):.5g}")


class _Drawing:
    """One chart of lines or bars."""

    def __init__(self, summary: StudySummary, asked: design.ChartDefinition) -> None:
        self.asked = asked
        self.metrics: tuple[str, ...] = asked.metrics or (str(asked.metric),)
        self.x = str(asked.x)
        self.log = asked.log or ""
        self.points = [point for point in summary.points if matches(point.factors, asked.where)]
        # A published row says nothing of factors that it has no column for.
        self.published = [
            row
            for row in summary.published or ()
            if matches(row.factors, {name: asked.where[name] for name in asked.where.keys() & row.factors})
            and self.metrics[0] in row.figures
        ]
        self.fits = summary.scalability
        self.levels = summary.levels
        self.groups = asked.kind == "bars"
        self.is_category = self.groups or not all(map(is_number, self.levels.get(self.x, ())))
        # How high a bar is says nothing where there is no 0 to stand on.
        self.bars = self.groups and "y" not in self.log
        self.has_intervals = False
        self.notes: set[str] = set()
        self.repeated = any(point.complete > 1 for point in self.points)

    def chart(self) -> Chart | None:
        by = self.asked.panels
        levels = list(self.levels.get(by, ())) if by else [None]
        ours = self._panels(self.points, by, levels, "")
        if not ours:
            return None
        published = self._panels(self.published, by, levels, "published")
        self._common_axis([panel for _, panel in ours])
        panels, columns = [*ours, *published], len(ours)
        if published:
            self.notes.add("published")
            for _, panel in ours:
                panel.title = panel.title or "here"
        if len(ours) == 1 or len(published) != len(ours):
            # A published one next to ours, and not in the row below.
            panels.sort(key=lambda panel: levels.index(panel[0]))
            columns = 2 if len(panels) == 4 else min(len(panels), MOST_COLUMNS)
        layout = {"barmode": "group", "scattermode": "group"} if self.groups else {}
        return arranged(self.asked.title, self._caption(), [panel for _, panel in panels], columns, layout=layout)

    def _panels(
        self, points: Sequence[Drawn], by: str | None, levels: Sequence[Any], prefix: str
    ) -> list[tuple[Any, Panel]]:
        """Return the panels that have something in them, each with its level of the factor `by`."""
        panels = []
        for level in levels:
            chosen = [point for point in points if by is None or matches(point.factors, {by: level})]
            panel = self._panel(chosen, is_ours=not prefix)
            named = [prefix] if prefix else []
            named += [wording.named_level(by, level)] if by is not None else []
            panel.title = ", ".join(named)
            if panel.traces:
                panels.append((level, panel))
        return panels

    def _panel(self, points: Sequence[Drawn], *, is_ours: bool) -> Panel:
        lines = self.asked.lines
        traces: list[Trace] = []
        shown: list[float] = []
        values = [point.figures[name].value for point in points for name in self.metrics if name in point.figures]
        scale = _Scale.of(self.metrics[0], values)
        series: list[tuple[str, str, Any]] = [(name, metric(name).label, None) for name in self.metrics]
        if lines:
            series = [(self.metrics[0], _line_name(lines, level), level) for level in self.levels.get(lines, ())]
        for number, (of, name, level) in enumerate(series):
            of_line = [point for point in points if lines is None or matches(point.factors, {lines: level})]
            colour = colour_of(number)
            drawn = self._line(of_line, of, name, colour, scale, is_ours=is_ours)
            traces += drawn
            if drawn and is_ours:
                traces += self._law(of_line, of, scale, colour)
            shown += [y for trace in drawn if trace.get("showlegend", True) for y in trace["y"] if y is not None]
        if not self.is_category:
            _spread_lone_points(traces, is_log="x" in self.log)
        return Panel("", traces, self._x_axis(points), self._y_axis(scale, traces, shown))

    def _line(
        self, points: Sequence[Drawn], metric: str, name: str, colour: str, scale: _Scale, *, is_ours: bool
    ) -> list[Trace]:
        by_x = {str(point.factors.get(self.x)): point.figures[metric] for point in points if metric in point.figures}
        levels = [level for level in self.levels.get(self.x, ()) if str(level) in by_x]
        if not levels:
            return []
        figures = [by_x[str(level)] for level in levels]
        x = [wording.level(level) if self.is_category else level for level in levels]
        y = [None if "y" in self.log and figure.value <= 0 else scale.place(figure.value) for figure in figures]
        low = [self._low(scale.end(figure.low), at) for figure, at in zip(figures, y, strict=True)]
        high = [None if at is None else scale.end(figure.high) for figure, at in zip(figures, y, strict=True)]
        is_cut = [figure.bound != "exact" for figure in figures]
        self.notes |= {"cut"} if any(is_cut) else set()
        has_ends = any(end is not None for end in low)
        self.has_intervals |= has_ends
        trace: Trace = {"x": x, "y": y, "name": name}
        marker = {
            "size": [10 if self.groups else 8 if cut else 5 for cut in is_cut],
            "symbol": ["triangle-up-open" if cut else "circle" for cut in is_cut],
            "color": colour,
        }
        is_band = has_ends and not self.groups and len(levels) > 1  # a band takes two points
        if has_ends and not is_band:
            trace["error_y"] = {
                "type": "data", "symmetric": False, "thickness": 1.2, "width": 4,
                "color": INK if self.groups else colour,
                "array": [0 if v is None or b is None else b - v for v, b in zip(y, high, strict=True)],
                "arrayminus": [0 if v is None or a is None else v - a for v, a in zip(y, low, strict=True)],
            }  # fmt: skip
        if self.bars:
            return [trace | {"type": "bar", "marker": {"color": colour}}]
        if self.groups:
            return [trace | {"type": "scatter", "mode": "markers", "marker": marker}]
        dash = {} if is_ours else {"dash": "dot"}
        trace |= {"type": "scatter", "mode": "lines+markers", "marker": marker}
        trace["line"] = {"color": colour, "width": 1.8, **dash}
        return [*(_band(x, low, high, colour) if is_band else []), trace]

    def _low(self, end: float | None, middle: float | None) -> float | None:
        """Return the lower end of an interval around `middle`."""
        if end is None or middle is None:
            return None
        if "y" in self.log and end <= 0:
            self.notes.add("from_zero")
            return middle / 10
        return end

    def _law(self, points: Sequence[Drawn], metric: str, scale: _Scale, colour: str) -> list[Trace]:
        """Return the scalability law that was fitted to just the points of a line."""
        rest = [{name: level for name, level in point.factors.items() if name != self.x} for point in points]
        fit = next((f for f in self.fits if (f.over, f.metric, f.factors) == (self.x, metric, rest[0])), None)
        if self.is_category or fit is None or not fit.curve or any(one != rest[0] for one in rest):
            return []
        self.notes.add("law")
        law = {"type": "scatter", "mode": "lines", "name": "law", "showlegend": False, "hoverinfo": "skip"}
        look = {"color": colour, "width": 1.2, "dash": "dash"}
        return [law | {"x": fit.curve.loads, "y": [scale.place(y) for y in fit.curve.throughput], "line": look}]

    def _x_axis(self, points: Sequence[Drawn]) -> dict[str, Any]:
        title = axis_title(wording.axis(self.x))
        if self.is_category:
            return title | {"type": "category"}
        levels = [level for level in self.levels[self.x] if any(p.factors.get(self.x) == level for p in points)]
        ticks = {"tickmode": "array", "tickvals": levels, "ticktext": [wording.level(level) for level in levels]}
        axis = title | (ticks if len(levels) <= MOST_TICKS else {}) | ({"type": "log"} if "x" in self.log else {})
        if len(levels) == 1 and not ("x" in self.log and float(levels[0]) <= 0):
            middle = math.log10(float(levels[0])) if "x" in self.log else float(levels[0])
            axis["range"] = [middle - LONE_SPAN / 2, middle + LONE_SPAN / 2]
        return axis

    def _y_axis(self, scale: _Scale, traces: Sequence[Trace], shown: Sequence[float]) -> dict[str, Any]:
        labels = {metric(name).label for name in self.metrics}
        what = labels.pop() if len(labels) == 1 else ""  # the legend names several, which no axis has room for
        title = axis_title(f"{what} ({scale.unit})" if what and scale.unit else what or scale.unit)
        if "y" in self.log:
            return title | {"type": "log", "rangemode": "normal"} | _log_ticks(shown)
        if scale.most == 100 and shown and max(shown) > 50:
            return title | {"range": [0, 104]}
        if not shown or not max(shown) > 0 or min(shown) < 0:
            return title | {"rangemode": "normal"}
        ends = [y for trace in traces for y in trace["y"] if y is not None]
        ends += [v + e for t in traces if "error_y" in t for v, e in zip(t["y"], t["error_y"]["array"], strict=True)]
        top = MOST_ABOVE * max(shown)
        self.notes |= {"beyond"} if max(ends) > top else set()
        return title | {"range": [0, 1.05 * min(max(ends), top)]}

    def _common_axis(self, panels: Sequence[Panel]) -> None:
        """One range for panels that can be read on it."""
        tops = [panel.yaxis["range"][1] for panel in panels if "range" in panel.yaxis]
        units = {panel.yaxis["title"]["text"] for panel in panels}
        if len(tops) == len(panels) and len(units) == 1 and max(tops) <= COMMON_AXIS_RATIO * min(tops):
            for panel in panels:
                panel.yaxis["range"] = [0, max(tops)]

    def _caption(self) -> str:
        text = str(self.asked.caption or "").strip()
        parts = [text if text.endswith(".") else f"{text}."] if text else []
        if self.asked.where:
            parts.append(f"At {wording.settings(self.asked.where)}.")
        if self.has_intervals:
            of = "95 % confidence interval" if self.repeated else "95 % confidence interval within the run"
            parts.append(f"{'Bar on top' if self.bars else 'Bar' if self.groups else 'Band or bar'}: {of}.")
        parts += [note for name, note in NOTES.items() if name in self.notes]
        return " ".join(parts) or ("Means over the repetitions." if self.repeated else "One repetition: no interval.")


def _log_ticks(values: Sequence[float]) -> dict[str, Any]:
    """Ticks at 1, 2 and 5, or where there are many decades at 1 alone, written out."""
    known = [value for value in values if value > 0]
    if not known:
        return {}
    low, high = math.floor(math.log10(min(known))), math.ceil(math.log10(max(known)))
    steps = (1, 2, 5) if high - low <= 2 else (1,)
    ticks = [float(f"{step}e{exponent}") for exponent in range(low, high + 1) for step in steps]
    return {"tickmode": "array", "tickvals": ticks, "ticktext": [f"{tick:,g}" for tick in ticks]}


def _spread_lone_points(traces: Sequence[Trace], *, is_log: bool) -> None:
    """Move points that stand alone a little to either side: at the same place their intervals hide each other."""
    lone = [trace for trace in traces if "error_y" in trace and len(trace["x"]) == 1]
    every = [x for trace in traces for x in trace["x"] if x is not None]
    if not lone or (is_log and min(every) <= 0):
        return
    span = math.log10(max(every) / min(every)) if is_log else max(every) - min(every)
    for number, trace in enumerate(lone):
        step = APART * (span or LONE_SPAN) * (number - (len(lone) - 1) / 2)
        trace["x"] = [x * 10**step if is_log else x + step for x in trace["x"]]


def _band(x: Sequence[Any], low: Sequence[float | None], high: Sequence[float | None], colour: str) -> list[Trace]:
    """Return the interval as a shape around the line; in pieces where a point has none."""
    xs: list[Any] = []
    ys: list[float | None] = []
    for has_ends, piece in itertools.groupby(zip(x, low, high, strict=True), lambda point: None not in point):
        if has_ends:
            at, bottom, top = zip(*piece, strict=True)
            xs += [*at, *reversed(at), None]
            ys += [*top, *reversed(bottom), None]
    shape = {"type": "scatter", "mode": "lines", "x": xs[:-1], "y": ys[:-1], "name": "interval", "fill": "toself"}
    look = {"fillcolor": colour, "opacity": 0.16, "line": {"width": 0, "color": BAND}}
    return [shape | look | {"hoverinfo": "skip", "showlegend": False}] if xs else []


def _line_name(factor: str, level: Any) -> str:
    text = wording.level(level)
    return text if wording.speaks(text) else wording.named_level(factor, level)


def _by_index_chart(asked: design.ChartDefinition, cells: Sequence[IndexCell]) -> Chart | None:
    """Times by index, a row for each level of a factor, with a choice of the level of `panels`; the last is chosen."""
    if not cells:
        return None
    choices = list(dict.fromkeys(cell.panel for cell in cells))
    chosen = choices[-1]
    columns = list(dict.fromkeys(column for cell in cells for column in cell.bands))
    panels = []
    owners: list[Value | None] = []  # of each trace, the choice it belongs to
    for level in dict.fromkeys(cell.row for cell in cells):
        for column in columns:
            of_panel = [cell for cell in cells if cell.row == level and column in cell.bands]
            axis = Lengths.of([value for cell in of_panel for value in cell.bands[column].high])
            drawn = [(cell.panel, trace) for cell in of_panel for trace in _band_traces(cell, column, axis, chosen)]
            owners += [panel for panel, _ in drawn]
            title = f"{figure_label(column)}, {wording.named_level(str(asked.rows), level)}"
            traces, yaxis = [trace for _, trace in drawn], axis.axis("time") | ORDINARY
            panels.append(Panel(title, traces, axis_title("index of the sample"), yaxis))
    caption = (
        "Median of all users and repetitions, and the band from 5 % to 95 % of them. Each panel has its own axis. A "
        "response that timed out counts with the time waited; further figures are of samples without error."
    )
    names = {choice: wording.named_level(asked.panels or "", choice) for choice in choices if choice is not None}
    shown = {name: [{"visible": [owner == choice for owner in owners]}, {}] for choice, name in names.items()}
    return arranged(
        asked.title,
        f"{asked.caption or ''} {caption}".strip(),
        panels,
        len(columns),
        choices=shown if len(shown) > 1 else {},
        chosen=names.get(chosen, "") if chosen is not None else "",
    )


def _band_traces(cell: IndexCell, column: str, axis: Lengths, chosen: Value | None) -> list[Trace]:
    band_ = cell.bands[column]
    hidden = {"hoverinfo": "skip", "showlegend": False, "mode": "lines"}
    shape = {"fill": "toself", "fillcolor": BAND, "line": {"width": 0, "color": BAND}}
    around = {"type": "scatter", "name": "5 % to 95 %", "x": [*band_.x, *reversed(band_.x)]}
    around["y"] = [*axis.y(list(band_.high)), *reversed(axis.y(list(band_.low)))]
    visible = {"visible": cell.panel == chosen}
    median = line(band_.x, axis.y(list(band_.mid)), "median", MAIN, 1.8)
    return [around | shape | hidden | visible, median | visible]
