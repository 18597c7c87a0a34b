"""Axes and panels of a study's charts: units that fit, ticks that can be read, places, and the band of an interval."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from framestorm.model.metric import metric
from framestorm.model.series import Values
from framestorm.report.figure import BAND, Lengths, Trace, axis_title

BAND_OPACITY = 0.16
APART = 0.03  # of an axis' length
LONE_SPAN = 2.0  # of an axis with one place only: one to either side, of a logarithmic one a decade
PLOT_PX, CHARACTER_PX = 720, 7.5  # all panels of a row beside each other; a digit on an axis
GAP_X, GAP_Y_REM = 0.075, 3.4
ROW_REM = 16.0
ONE_REM = 21.0
MOST_COLUMNS = 3


class Scale:
    """From a metric's own unit to that of the axis."""

    def __init__(self, unit: str, factor: float, least: float | None, *, log: bool, most: float | None = None) -> None:
        self.unit = unit
        self.log = log
        self._factor = factor
        self._least = least
        self._most = most
        self.is_cut = False  # whether a lower end has no place on it

    @classmethod
    def of(cls, name: str, values: Values, *, log: bool) -> "Scale":
        unit = metric(name).unit
        known = [value for value in values if value is not None]
        least = 0.0 if known and min(known) >= 0 else None
        if unit in ("ms", "s"):
            in_ms: Values = [value * (1000 if unit == "s" else 1) for value in known]
            lengths = Lengths.of([abs(value) for value in in_ms if value is not None])
            return cls(lengths.unit, (1000 if unit == "s" else 1) / lengths.scale, least, log=log)
        if unit == "share":
            return cls("%", 100, least, log=log, most=100)
        if unit == "bytes":
            return cls("MB", 1e-6, least, log=log)
        if unit == "bytes/s":
            return cls("kB/s", 1e-3, least, log=log)
        return cls({"1/s": "per second"}.get(unit, unit), 1, least, log=log)

    def y(self, value: float) -> float | None:
        """A value on the axis; None where a logarithmic one has no place for it."""
        if self.log and value <= 0:
            return None
        return float(f"{value * self._factor:.5g}")

    def end(self, value: float | None, middle: float | None) -> float | None:
        """An end of an interval, within what there can be."""
        if value is None or middle is None:
            return None
        scaled = value * self._factor
        if self._least is not None:
            scaled = max(scaled, self._least)
        if self._most is not None:
            scaled = min(scaled, self._most)
        if self.log and scaled <= 0:
            scaled, self.is_cut = middle / 10, True
        return float(f"{scaled:.5g}")


def log_ticks(values: Sequence[float]) -> dict[str, Any]:
    """Ticks at 1, 2 and 5, or where there are many decades at 1 alone, written out."""
    known = [value for value in values if value > 0]
    if not known:
        return {}
    low, high = math.floor(math.log10(min(known))), math.ceil(math.log10(max(known)))
    steps = (1, 2, 5) if high - low <= 2 else (1,)
    ticks = [float(f"{step}e{exponent}") for exponent in range(low, high + 1) for step in steps]
    return {"tickmode": "array", "tickvals": ticks, "ticktext": [f"{tick:,g}" for tick in ticks]}


def thin(xaxis: dict[str, Any], columns: int) -> None:
    """Leave out labels that would stand on the next one; the last stays."""
    if "tickvals" not in xaxis:
        return
    log = xaxis.get("type") == "log"
    places = [math.log(value) if log and value > 0 else float(value) for value in xaxis["tickvals"]]
    width_px = PLOT_PX / columns
    span = (places[-1] - places[0]) or 1.0
    texts, left_px = list(xaxis["ticktext"]), math.inf
    for number in reversed(range(len(places))):
        at_px, half_px = (places[number] - places[0]) / span * width_px, CHARACTER_PX * (len(texts[number]) + 1) / 2
        if at_px + half_px > left_px:
            texts[number] = ""
        else:
            left_px = at_px - half_px
    xaxis |= {"ticktext": texts, "tickangle": 0}


def spread_lone_points(traces: Sequence[Trace], *, log: bool) -> None:
    """Move points that stand alone at the same place a little to either side: their intervals would hide each other."""
    by_place: dict[float, list[Trace]] = {}
    for trace in traces:
        if "error_y" in trace and len(trace["x"]) == 1 and not (log and trace["x"][0] <= 0):
            by_place.setdefault(trace["x"][0], []).append(trace)
    others = [x for trace in traces for x in trace["x"] if x is not None and not (log and x <= 0)]
    for place, lone in by_place.items():
        span = math.log10(max(others) / min(others)) if log else max(others) - min(others)
        for number, trace in enumerate(lone):
            step = APART * (span or LONE_SPAN) * (number - (len(lone) - 1) / 2)
            trace["x"] = [place * 10**step if log else place + step]


def band(x: Sequence[Any], low: Sequence[float | None], high: Sequence[float | None], colour: str) -> list[Trace]:
    """The interval as a shape around the line; in pieces where a point has none."""
    piece: list[tuple[Any, float, float]] = []
    outline: tuple[list[Any], list[Any]] = ([], [])
    for at, bottom, top in [*zip(x, low, high, strict=True), (None, None, None)]:
        if bottom is not None and top is not None:
            piece.append((at, bottom, top))
            continue
        if piece:
            xs, lows, highs = zip(*piece, strict=True)
            outline[0].extend([*xs, *reversed(xs), None])
            outline[1].extend([*highs, *reversed(lows), None])
        piece = []
    if not outline[0]:
        return []
    shape = {"type": "scatter", "mode": "lines", "x": outline[0][:-1], "y": outline[1][:-1], "name": "interval"}
    look = {"fill": "toself", "fillcolor": colour, "opacity": BAND_OPACITY, "line": {"width": 0, "color": BAND}}
    return [shape | look | {"hoverinfo": "skip", "showlegend": False}]


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
    named: set[str] = set()
    for trace in traces:
        if trace.get("showlegend", True):
            trace["legendgroup"] = trace["name"]
            trace["showlegend"] = trace["name"] not in named
            named.add(trace["name"])


def _domain(low: float, high: float) -> list[float]:
    return [round(max(0.0, low), 4), round(min(1.0, high), 4)]


def titled(text: str, **more: Any) -> dict[str, Any]:
    """An axis with its title."""
    return axis_title(text) | more
