"""Axes of a study's charts: units that fit, ticks that can be read, and the band of an interval."""

import math
from collections.abc import Sequence
from typing import Any

from framestorm.report.figure import BAND, Lengths, Trace, Values
from framestorm.study.answers import wording

BAND_OPACITY = 0.16
APART = 0.03  # of an axis' length
LONE_SPAN = 2.0  # of an axis with one place only: one to either side, of a logarithmic one a decade
PLOT_PX, CHARACTER_PX = 720, 7.5  # all panels of a row beside each other; a digit on an axis


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
    def of(cls, metric: str, values: Values, *, log: bool) -> "Scale":
        of = wording.unit(metric)
        known = [value for value in values if value is not None]
        least = 0.0 if known and min(known) >= 0 else None
        if of in ("ms", "s"):
            in_ms: Values = [value * (1000 if of == "s" else 1) for value in known]
            lengths = Lengths.of([abs(value) for value in in_ms if value is not None])
            return cls(lengths.unit, (1000 if of == "s" else 1) / lengths.scale, least, log=log)
        if of == "share":
            return cls("%", 100, least, log=log, most=100)
        if of == "bytes":
            return cls("MB", 1e-6, least, log=log)
        if of == "bytes/s":
            return cls("kB/s", 1e-3, least, log=log)
        return cls({"1/s": "per second"}.get(of, of), 1, least, log=log)

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


def apart(traces: Sequence[Trace], *, log: bool) -> None:
    """Move points that stand alone at the same place a little to either side: their intervals would hide each other."""
    by_place: dict[float, list[Trace]] = {}
    for trace in traces:
        if "error_y" in trace and len(trace["x"]) == 1 and not (log and trace["x"][0] <= 0):
            by_place.setdefault(trace["x"][0], []).append(trace)
    others = [x for trace in traces for x in trace["x"] if x is not None and not (log and x <= 0)]
    for place, found in by_place.items():
        span = math.log10(max(others) / min(others)) if log else max(others) - min(others)
        for number, trace in enumerate(found):
            step = APART * (span or LONE_SPAN) * (number - (len(found) - 1) / 2)
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
