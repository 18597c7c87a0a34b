"""Charts of a study: metrics over a factor with their intervals, as lines or bars, the published ones beside ours."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from framestorm.report.figure import INK, LINE_COLOURS, Chart, Trace, Values
from framestorm.study.answers import wording
from framestorm.study.page.axes import LONE_SPAN, Scale, apart, band, log_ticks, thin
from framestorm.study.page.frame_charts import frame_chart
from framestorm.study.page.panels import Panel, arrange, columns_for, titled

# Panels whose tops differ by more have axes of their own: on a common one the lower would be flat.
COMMON_AXIS_RATIO = 4
# An interval of few repetitions may be far wider than what is measured; the axis follows it so far.
MOST_ABOVE = 1.6
Point = Mapping[str, Any]


def study_charts(summary: Mapping[str, Any]) -> list[Chart]:
    """The charts that study.yml asks for and that there is something to draw of."""
    found = []
    for number, asked in enumerate(summary["definition"]["charts"]):
        if asked.get("kind") == "per-frame":
            chart = frame_chart(asked, summary["series"].get(str(number)))
        else:
            chart = _Drawing(summary, asked).chart()
        if chart is not None:
            chart.name = re.sub(r"[^a-z0-9]+", "-", chart.title.lower()).strip("-")
            found.append(chart)
    return found


class _Drawing:
    """One chart of lines or bars."""

    def __init__(self, summary: Mapping[str, Any], asked: Mapping[str, Any]) -> None:
        self.asked = asked
        self.metrics: list[str] = list(asked.get("metrics") or [asked["metric"]])
        self.x: str = asked["x"]
        self.log: str = asked.get("log") or ""
        self.groups = asked.get("kind") == "bars"
        # How high a bar is says nothing where there is no 0 to stand on.
        self.bars = self.groups and "y" not in self.log
        self.points = [point for point in summary["points"] if _matches(point["factors"], asked)]
        self.published = [row for row in summary["published"] or [] if self._is_drawn(row)]
        self.fits = summary["scalability"]
        self.levels = summary["definition"]["levels"]
        self.bounds = False
        self.has_law = False
        self.cut = False
        self.beyond = False
        self.from_zero = False
        self.repeated = any(len(point["runs"]) > 1 for point in self.points)

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
            panels.sort(key=lambda found: levels.index(found[0]))
        traces, layout, height = arrange([panel for _, panel, _ in panels], columns)
        if self.groups:
            layout |= {"barmode": "group", "scattermode": "group"}
        chart = Chart(
            name="", title=self.asked["title"], caption=self._caption(published=len(ours) < len(panels)), traces=traces,
            xaxis=layout.pop("xaxis"), yaxis=layout.pop("yaxis"), layout=layout, height_rem=height, panels=len(panels),
        )  # fmt: skip
        return chart

    def _panels(self) -> tuple[list[tuple[Any, Panel, bool]], list[Any]]:
        by = self.asked.get("panels")
        levels = self._levels_of(by) if by else [None]
        found = []
        for rows, ours in ((self.points, True), (self.published, False)):
            for level in levels:
                chosen = [row for row in rows if by is None or _level(row["factors"], by, level)]
                panel = self._panel(chosen, level, ours=ours)
                if panel.traces:
                    found.append((level, panel, ours))
        return (found if any(ours for _, _, ours in found) else []), levels

    def _panel(self, points: Sequence[Point], level: Any, *, ours: bool) -> Panel:
        lines = self.asked.get("lines")
        traces: list[Trace] = []
        axis = self._axis(points)
        series: list[tuple[str, str, Any]] = [(metric, wording.label(metric), None) for metric in self.metrics]
        if lines:
            names = {value: self._line_name(lines, value) for value in self._levels_of(lines)}
            series = [(self.metrics[0], name, value) for value, name in names.items()]
        shown: list[float] = []
        for number, (metric, name, value) in enumerate(series):
            own = [point for point in points if lines is None or _level(point["factors"], lines, value)]
            drawn = self._line(own, metric, name, LINE_COLOURS[number % len(LINE_COLOURS)], axis, ours=ours)
            traces += drawn
            self.from_zero |= axis.is_cut
            if drawn and ours:
                traces += self._law(own, metric, axis, drawn[-1]["line"]["color"] if not self.groups else "")
            shown += [y for trace in drawn if trace.get("showlegend", True) for y in trace["y"] if y is not None]
        if not self._is_category():
            apart(traces, log="x" in self.log)
        title = "" if level is None else wording.named_level(self.asked["panels"], level)
        if not ours:
            title = f"published{', ' + title if title else ''}"
        elif not title and self.published:
            title = "here"
        return Panel(title, traces, self._x_axis(points), self._y_axis(axis, traces, shown))

    def _line(
        self, points: Sequence[Point], metric: str, name: str, colour: str, axis: Scale, *, ours: bool
    ) -> list[Trace]:
        by_x = {str(point["factors"].get(self.x)): point["figures"].get(metric) for point in points}
        levels = [level for level in self._levels_of(self.x) if by_x.get(str(level))]
        if not levels:
            return []
        figures = [by_x[str(level)] or {} for level in levels]
        x = [wording.level(level) if self._is_category() else level for level in levels]
        y = [axis.y(figure["value"]) for figure in figures]
        low, high = (
            [axis.end(figure[end], y_value) for figure, y_value in zip(figures, y, strict=True)]
            for end in ("low", "high")
        )
        is_lower = [figure.get("bound", "exact") != "exact" for figure in figures]
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
        line = {
            "type": "scatter", "mode": "lines+markers", "x": x, "y": y, "name": name, "marker": marker,
            "line": {"color": colour, "width": 1.8, **({} if ours else {"dash": "dot"})}, **error,
        }  # fmt: skip
        return [*(band(x, low, high, colour) if not error else []), line]

    def _law(self, points: Sequence[Point], metric: str, axis: Scale, colour: str) -> list[Trace]:
        """The scalability law that was fitted to just the points of a line."""
        rest = [{name: level for name, level in p["factors"].items() if name != self.x} for p in points]
        fit = next((f for f in self.fits if (f["over"], f["metric"], f["factors"]) == (self.x, metric, rest[0])), None)
        if self._is_category() or fit is None or not fit["usl"] or any(one != rest[0] for one in rest):
            return []
        self.has_law = True
        law = {"type": "scatter", "mode": "lines", "name": "law", "showlegend": False, "hoverinfo": "skip"}
        line = {"color": colour, "width": 1.2, "dash": "dash"}
        return [law | {"x": fit["curve"]["loads"], "y": [axis.y(y) for y in fit["curve"]["throughput"]], "line": line}]

    def _axis(self, points: Sequence[Point]) -> Scale:
        values: Values = [
            figure["value"] for point in points for name in self.metrics if (figure := point["figures"].get(name))
        ]
        return Scale.of(self.metrics[0], values, log="y" in self.log)

    def _x_axis(self, points: Sequence[Point]) -> dict[str, Any]:
        title = titled(wording.axis(self.x))
        if self._is_category():
            return title | {"type": "category"}
        levels = [level for level in self._levels_of(self.x) if any(p["factors"].get(self.x) == level for p in points)]
        ticks = {"tickmode": "array", "tickvals": levels, "ticktext": [wording.level(level) for level in levels]}
        kind: dict[str, Any] = {"type": "log"} if "x" in self.log else {}
        if len(levels) == 1 and not (kind and levels[0] <= 0):
            middle = math.log10(levels[0]) if kind else float(levels[0])
            kind |= {"range": [middle - LONE_SPAN / 2, middle + LONE_SPAN / 2]}
        return title | (ticks if len(levels) <= 10 else {}) | kind

    def _y_axis(self, axis: Scale, traces: Sequence[Trace], shown: Sequence[float]) -> dict[str, Any]:
        what = " and ".join(dict.fromkeys(wording.label(metric) for metric in self.metrics))
        title = titled(f"{what}{f' ({axis.unit})' if axis.unit else ''}")
        if axis.log:
            return title | {"type": "log", "rangemode": "normal"} | log_ticks(shown)
        if axis.unit == "%" and wording.unit(self.metrics[0]) == "share" and shown and max(shown) > 50:
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
        tops = [float(found[1]) for found in ranges if found]
        if max(tops) <= COMMON_AXIS_RATIO * min(tops):
            for panel in panels:
                panel.yaxis["range"] = [0, max(tops)]

    def _caption(self, *, published: bool) -> str:
        text = str(self.asked.get("caption") or "").strip()
        if text and not text.endswith("."):
            text += "."
        where = self.asked.get("where")
        parts = [text] if text else []
        if where:
            parts.append(f"At {wording.settings(where)}.")
        if self.bounds:
            of = "95 % interval" if self.repeated else "95 % interval within the run"
            parts.append(f"{'Bar on top' if self.bars else 'Bar' if self.groups else 'Band or bar'}: {of}.")
        if self.beyond:
            parts.append("Some go on beyond the axis.")
        if self.from_zero:
            parts.append("Those from 0 on are drawn from a tenth of the value, for this axis has no 0.")
        if self.has_law:
            parts.append("Dashed: the scalability law that fits.")
        if self.cut:
            parts.append("Open triangle: time-outs cut times off, the true figure lies above.")
        if published:
            parts.append("Published: on other hardware; compare the shape, not the height.")
        return " ".join(parts) or ("Means over the repetitions." if self.repeated else "One repetition: no interval.")

    def _is_drawn(self, row: Point) -> bool:
        return _matches(row["factors"], self.asked, strict=False) and self.metrics[0] in row["figures"]

    def _levels_of(self, factor: str) -> list[Any]:
        return list(self.levels.get(factor, []))

    def _line_name(self, factor: str, value: Any) -> str:
        return wording.level(value) if wording.speaks(wording.level(value)) else wording.named_level(factor, value)

    def _is_category(self) -> bool:
        return self.groups or not all(_is_number(level) for level in self._levels_of(self.x))


def _matches(factors: Mapping[str, Any], asked: Mapping[str, Any], *, strict: bool = True) -> bool:
    """Whether a point is in the chart; a published row says nothing of factors that it has no column for."""
    for name, wanted in (asked.get("where") or {}).items():
        if not strict and name not in factors:
            continue
        if factors.get(name) not in (wanted if isinstance(wanted, list) else [wanted]):
            return False
    return True


def _level(factors: Mapping[str, Any], name: str, wanted: Any) -> bool:
    return factors.get(name) == wanted and isinstance(factors.get(name), bool) == isinstance(wanted, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
