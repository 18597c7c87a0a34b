"""Charts of a study: metrics over a factor with intervals, the published ones beside ours; times by index."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from framestorm.inference import wording
from framestorm.model import study as design
from framestorm.model.metric import SERIES, metric
from framestorm.model.series import Values
from framestorm.model.study import Value
from framestorm.model.study_summary import IndexCell, PointSummary, PublishedPoint
from framestorm.report.figure import BAND, INK, LINE_COLOURS, MAIN, Chart, Lengths, Trace, line
from framestorm.study.answers.summary import StudySummary
from framestorm.study.page.axes import (
    LONE_SPAN,
    Panel,
    Scale,
    arrange,
    band,
    columns_for,
    log_ticks,
    spread_lone_points,
    thin,
    titled,
)

# Panels whose tops differ by more have axes of their own: on a common one the lower would be flat.
COMMON_AXIS_RATIO = 4
# An interval of few repetitions may be far wider than what is measured; the axis follows it so far.
MOST_ABOVE = 1.6
Drawn = PointSummary | PublishedPoint


def study_charts(summary: StudySummary) -> list[Chart]:
    """The charts that study.yml asks for and that there is something to draw of."""
    charts = []
    for number, asked in enumerate(summary.study.definition.charts):
        if asked.kind == "per-frame":
            chart = _by_index_chart(asked, summary.by_index.get(number, []))
        else:
            chart = _Drawing(summary, asked).chart()
        if chart is not None:
            chart.name = re.sub(r"[^a-z0-9]+", "-", chart.title.lower()).strip("-")
            charts.append(chart)
    return charts


class _Drawing:
    """One chart of lines or bars."""

    def __init__(self, summary: StudySummary, asked: design.Chart) -> None:
        self.asked = asked
        self.metrics: tuple[str, ...] = asked.metrics or (str(asked.metric),)
        self.x = str(asked.x)
        self.log = asked.log or ""
        self.groups = asked.kind == "bars"
        # How high a bar is says nothing where there is no 0 to stand on.
        self.bars = self.groups and "y" not in self.log
        self.points = [point for point in summary.points if _matches(point.factors, asked)]
        self.published = [row for row in summary.published or () if self._is_drawn(row)]
        self.fits = summary.scalability
        self.levels = summary.levels
        self.bounds = False
        self.has_law = False
        self.cut = False
        self.beyond = False
        self.from_zero = False
        self.repeated = any(point.complete > 1 for point in self.points)

    def chart(self) -> Chart | None:
        panels, levels = self._panels()
        if not panels:
            return None
        ours = [panel for _, panel, is_ours in panels if is_ours]
        self._common_axis(ours)
        columns = columns_for(len(panels))
        for _, panel, _ in panels:
            thin(panel.xaxis, columns)
        if len(ours) > 1 and len(panels) == 2 * len(ours):
            # Ours in the row above, the published ones below.
            columns = len(ours)
        else:
            # A published one next to ours.
            panels.sort(key=lambda panel: levels.index(panel[0]))
        traces, layout, height = arrange([panel for _, panel, _ in panels], columns)
        if self.groups:
            layout |= {"barmode": "group", "scattermode": "group"}
        chart = Chart(
            name="", title=self.asked.title, caption=self._caption(published=len(ours) < len(panels)), traces=traces,
            xaxis=layout.pop("xaxis"), yaxis=layout.pop("yaxis"), layout=layout, height_rem=height, panels=len(panels),
        )  # fmt: skip
        return chart

    def _panels(self) -> tuple[list[tuple[Any, Panel, bool]], list[Any]]:
        by = self.asked.panels
        levels = self._levels_of(by) if by else [None]
        panels = []
        sides: tuple[tuple[Sequence[Drawn], bool], ...] = ((self.points, True), (self.published, False))
        for rows, ours in sides:
            for level in levels:
                chosen = [row for row in rows if by is None or _level(row.factors, by, level)]
                panel = self._panel(chosen, level, ours=ours)
                if panel.traces:
                    panels.append((level, panel, ours))
        return (panels if any(ours for _, _, ours in panels) else []), levels

    def _panel(self, points: Sequence[Drawn], level: Any, *, ours: bool) -> Panel:
        lines = self.asked.lines
        traces: list[Trace] = []
        axis = self._axis(points)
        series: list[tuple[str, str, Any]] = [(name, metric(name).label, None) for name in self.metrics]
        if lines:
            names = {value: self._line_name(lines, value) for value in self._levels_of(lines)}
            series = [(self.metrics[0], name, value) for value, name in names.items()]
        shown: list[float] = []
        for number, (of, name, value) in enumerate(series):
            of_line = [point for point in points if lines is None or _level(point.factors, lines, value)]
            drawn = self._line(of_line, of, name, LINE_COLOURS[number % len(LINE_COLOURS)], axis, ours=ours)
            traces += drawn
            self.from_zero |= axis.is_cut
            if drawn and ours:
                traces += self._law(of_line, of, axis, drawn[-1]["line"]["color"] if not self.groups else "")
            shown += [y for trace in drawn if trace.get("showlegend", True) for y in trace["y"] if y is not None]
        if not self._is_category():
            spread_lone_points(traces, log="x" in self.log)
        title = "" if level is None else wording.named_level(self.asked.panels or "", level)
        if not ours:
            title = f"published{', ' + title if title else ''}"
        elif not title and self.published:
            title = "here"
        return Panel(title, traces, self._x_axis(points), self._y_axis(axis, traces, shown))

    def _line(
        self, points: Sequence[Drawn], metric: str, name: str, colour: str, axis: Scale, *, ours: bool
    ) -> list[Trace]:
        by_x = {str(p.factors.get(self.x)): p.figures[metric] for p in points if metric in p.figures}
        levels = [level for level in self._levels_of(self.x) if str(level) in by_x]
        if not levels:
            return []
        figures = [by_x[str(level)] for level in levels]
        x = [wording.level(level) if self._is_category() else level for level in levels]
        y = [axis.y(figure.value) for figure in figures]
        low = [axis.end(figure.low, middle) for figure, middle in zip(figures, y, strict=True)]
        high = [axis.end(figure.high, middle) for figure, middle in zip(figures, y, strict=True)]
        is_lower = [figure.bound != "exact" for figure in figures]
        self.cut |= any(is_lower)
        has_ends = any(end is not None for end in low)
        self.bounds |= has_ends
        error: dict[str, Any] = {}
        if has_ends and (self.groups or len(levels) == 1):  # a band takes two points
            error["error_y"] = {
                "type": "data", "symmetric": False, "thickness": 1.2, "width": 4,
                "color": INK if self.groups else colour,
                "array": [0 if v is None or b is None else b - v for v, b in zip(y, high, strict=True)],
                "arrayminus": [0 if v is None or a is None else v - a for v, a in zip(y, low, strict=True)],
            }  # fmt: skip
        if self.bars:
            return [{"type": "bar", "x": x, "y": y, "name": name, "marker": {"color": colour}, **error}]
        marker = {
            "size": [8 if cut else 5 for cut in is_lower],
            "symbol": ["triangle-up-open" if cut else "circle" for cut in is_lower],
            "color": colour,
        }
        if self.groups:
            marker |= {"size": 10, "symbol": marker["symbol"] if any(is_lower) else "circle"}
            return [{"type": "scatter", "mode": "markers", "x": x, "y": y, "name": name, "marker": marker, **error}]
        drawn = {
            "type": "scatter", "mode": "lines+markers", "x": x, "y": y, "name": name, "marker": marker,
            "line": {"color": colour, "width": 1.8, **({} if ours else {"dash": "dot"})}, **error,
        }  # fmt: skip
        return [*(band(x, low, high, colour) if not error else []), drawn]

    def _law(self, points: Sequence[Drawn], metric: str, axis: Scale, colour: str) -> list[Trace]:
        """The scalability law that was fitted to just the points of a line."""
        rest = [{name: level for name, level in p.factors.items() if name != self.x} for p in points]
        fit = next((f for f in self.fits if (f.over, f.metric, f.factors) == (self.x, metric, rest[0])), None)
        if self._is_category() or fit is None or not fit.curve or any(one != rest[0] for one in rest):
            return []
        self.has_law = True
        law = {"type": "scatter", "mode": "lines", "name": "law", "showlegend": False, "hoverinfo": "skip"}
        look = {"color": colour, "width": 1.2, "dash": "dash"}
        return [law | {"x": fit.curve.loads, "y": [axis.y(y) for y in fit.curve.throughput], "line": look}]

    def _axis(self, points: Sequence[Drawn]) -> Scale:
        values: Values = [
            point.figures[name].value for point in points for name in self.metrics if name in point.figures
        ]
        return Scale.of(self.metrics[0], values, log="y" in self.log)

    def _x_axis(self, points: Sequence[Drawn]) -> dict[str, Any]:
        title = titled(wording.axis(self.x))
        if self._is_category():
            return title | {"type": "category"}
        levels = [level for level in self._levels_of(self.x) if any(p.factors.get(self.x) == level for p in points)]
        ticks = {"tickmode": "array", "tickvals": levels, "ticktext": [wording.level(level) for level in levels]}
        kind: dict[str, Any] = {"type": "log"} if "x" in self.log else {}
        if len(levels) == 1 and not (kind and levels[0] <= 0):
            middle = math.log10(levels[0]) if kind else float(levels[0])
            kind |= {"range": [middle - LONE_SPAN / 2, middle + LONE_SPAN / 2]}
        return title | (ticks if len(levels) <= 10 else {}) | kind

    def _y_axis(self, axis: Scale, traces: Sequence[Trace], shown: Sequence[float]) -> dict[str, Any]:
        what = " and ".join(dict.fromkeys(metric(name).label for name in self.metrics))
        title = titled(f"{what}{f' ({axis.unit})' if axis.unit else ''}")
        if axis.log:
            return title | {"type": "log", "rangemode": "normal"} | log_ticks(shown)
        if axis.unit == "%" and metric(self.metrics[0]).unit == "share" and shown and max(shown) > 50:
            return title | {"range": [0, 104]}
        if not shown or not max(shown) > 0 or min(shown) < 0:
            return title | {"rangemode": "normal"}
        ends = [y for trace in traces for y in trace["y"] if y is not None]
        ends += [v + e for t in traces if "error_y" in t for v, e in zip(t["y"], t["error_y"]["array"], strict=True)]
        self.beyond |= max(ends) > MOST_ABOVE * max(shown)
        return title | {"range": [0, 1.05 * min(max(ends), MOST_ABOVE * max(shown))]}

    def _common_axis(self, panels: Sequence[Panel]) -> None:
        """One range for panels that can be read on it."""
        ranges = [panel.yaxis.get("range") for panel in panels]
        units = {panel.yaxis["title"]["text"] for panel in panels}
        if len(panels) < 2 or None in ranges or len(units) > 1:
            return
        tops = [float(one[1]) for one in ranges if one]
        if max(tops) <= COMMON_AXIS_RATIO * min(tops):
            for panel in panels:
                panel.yaxis["range"] = [0, max(tops)]

    def _caption(self, *, published: bool) -> str:
        text = str(self.asked.caption or "").strip()
        if text and not text.endswith("."):
            text += "."
        where = self.asked.where
        parts = [text] if text else []
        if where:
            parts.append(f"At {wording.settings(where)}.")
        if self.bounds:
            of = "95 % confidence interval" if self.repeated else "95 % confidence interval within the run"
            parts.append(f"{'Bar on top' if self.bars else 'Bar' if self.groups else 'Band or bar'}: {of}.")
        if self.beyond:
            parts.append("Some reach beyond the axis.")
        if self.from_zero:
            parts.append("Lower ends at 0 are drawn at one tenth of the value: a logarithmic axis has no 0.")
        if self.has_law:
            parts.append("Dashed: the scalability law that fits.")
        if self.cut:
            parts.append("Open triangle: timeouts cut times off, the true figure lies above.")
        if published:
            parts.append("Published: on other hardware; compare the shape, not the height.")
        return " ".join(parts) or ("Means over the repetitions." if self.repeated else "One repetition: no interval.")

    def _is_drawn(self, row: Drawn) -> bool:
        return _matches(row.factors, self.asked, strict=False) and self.metrics[0] in row.figures

    def _levels_of(self, factor: str) -> list[Any]:
        return list(self.levels.get(factor, []))

    def _line_name(self, factor: str, value: Any) -> str:
        return wording.level(value) if wording.speaks(wording.level(value)) else wording.named_level(factor, value)

    def _is_category(self) -> bool:
        return self.groups or not all(_is_number(level) for level in self._levels_of(self.x))


def _matches(factors: Mapping[str, Value], asked: design.Chart, *, strict: bool = True) -> bool:
    """Whether a point is in the chart; a published row says nothing of factors that it has no column for."""
    for name, levels in asked.where.items():
        if not strict and name not in factors:
            continue
        if factors.get(name) not in (levels if isinstance(levels, tuple) else (levels,)):
            return False
    return True


def _level(factors: Mapping[str, Value], name: str, level: Value | None) -> bool:
    return factors.get(name) == level and isinstance(factors.get(name), bool) == isinstance(level, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


# On a common logarithmic axis the rows of a panel could not be told apart.
ORDINARY = {"type": "linear", "tickmode": "auto", "rangemode": "tozero"}


def _by_index_chart(asked: design.Chart, cells: Sequence[IndexCell]) -> Chart | None:
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
            title = f"{_series_label(column)}, {wording.named_level(str(asked.rows), level)}"
            yaxis = axis.axis("time") | ORDINARY
            panels.append(Panel(title, [trace for _, trace in drawn], titled("index of the sample"), yaxis))
    traces, layout, height = arrange(panels, len(columns))
    caption = (
        "Median of all users and repetitions, and the band from 5 % to 95 % of them. Each panel has its own axis. A "
        "response that timed out counts with the time waited; further figures are of samples without error."
    )
    names = {choice: wording.named_level(asked.panels or "", choice) for choice in choices if choice is not None}
    return Chart(
        name="", title=asked.title, caption=f"{asked.caption or ''} {caption}".strip(), traces=traces,
        xaxis=layout.pop("xaxis"), yaxis=layout.pop("yaxis"), layout=layout, height_rem=height, panels=len(panels),
        choices={name: [{"visible": [owner == choice for owner in owners]}, {}] for choice, name in names.items()}
        if len(names) > 1 else {},
        chosen=names.get(chosen, "") if chosen is not None else "",
    )  # fmt: skip


def _series_label(column: str) -> str:
    series = column.removesuffix("_ms")
    return SERIES["" if series == "rtt" else series][0] if series in {"rtt", *SERIES} else series.replace("_", " ")


def _band_traces(cell: IndexCell, column: str, axis: Lengths, chosen: Value | None) -> list[Trace]:
    band_ = cell.bands[column]
    hidden = {"hoverinfo": "skip", "showlegend": False, "mode": "lines"}
    shape = {"fill": "toself", "fillcolor": BAND, "line": {"width": 0, "color": BAND}}
    around = {"type": "scatter", "name": "5 % to 95 %", "x": [*band_.x, *reversed(band_.x)]}
    around["y"] = [*axis.y(list(band_.high)), *reversed(axis.y(list(band_.low)))]
    visible = {"visible": cell.panel == chosen}
    median = line(band_.x, axis.y(list(band_.mid)), "median", MAIN, 1.8)
    return [around | shape | hidden | visible, median | visible]
