"""Series of the summary to charts: each with a title, axes with units, and a caption that says what to read off."""

from typing import Any

from framestorm.report.figure import (
    BAD,
    BAND,
    INK,
    LINE_COLOURS,
    MAIN,
    QUIET,
    SECOND,
    Chart,
    Clock,
    Lengths,
    axis_title,
    dots,
    line,
    marked,
    timed_out,
)
from framestorm.report.replica_charts import replica_charts
from framestorm.report.unit import FRAME
from framestorm.report.units import count, plural

MAX_HOSTS_BY_PART = 3


def charts(summary: dict[str, Any]) -> list[Chart]:
    """The charts that the summary has series for."""
    series, unit = summary["series"], summary["unit"]
    clock = Clock.of(series)
    found = []
    for column, what in (("rtt_ms", "Round trip"), ("handler_ms", "Handler time"), ("model_ms", "Model time")):
        if data := series.get(f"by_index_{column}"):
            found.append(_by_index(data, what, unit))
    if data := series.get("over_time"):
        found.append(_over_time(data, clock, unit))
    if data := series.get("openfaas"):
        found += replica_charts(data, clock)
    if data := series.get("success_over_time"):
        found += [_success(data, clock, unit), _throughput(data, clock, unit)]
    if data := series.get("in_flight"):
        found.append(_in_flight(data, clock))
    if data := series.get("histogram"):
        found.append(_histogram(data, unit))
    if data := series.get("machines"):
        found.append(_machines(data, summary["machines"], clock))
    if marks := series.get("marks"):
        found = [marked(chart, marks, clock) if chart.xaxis == clock.axis() else chart for chart in found]
    return found


def _by_index(data: dict[str, Any], what: str, unit: str) -> Chart:
    band, cut, x = data.get("band"), data.get("timed_out") or {"x": [], "y": []}, data["x"]
    # Each chart has its own unit: one for all three would hide the model beside the round trip.
    axis = Lengths.of(*(user["y"] for user in data["lines"]), band["high"] if band else [], cut["y"])
    traces = []
    if band:
        hidden = {"hoverinfo": "skip", "mode": "lines"}
        traces.append(line(x, axis.y(band["low"]), "5 %", BAND, 0) | hidden | {"showlegend": False})
        fill = {"fill": "tonexty", "fillcolor": BAND}
        traces.append(line(x, axis.y(band["high"]), "5 % to 95 % of all", BAND, 0) | hidden | fill)
    for number, user in enumerate(data["lines"]):
        name, y = f"user {user['user']}", axis.y(user["y"])
        if band:
            example = {"legendgroup": "examples", "showlegend": number == 0}
            traces.append(line(x, y, name, QUIET, 1) | example | {"name": name if number else "single users"})
        else:
            dash = "solid" if number < len(LINE_COLOURS) else "dot"
            traces.append(line(x, y, name, LINE_COLOURS[number % len(LINE_COLOURS)], dash=dash))
    if band:
        traces.append(line(x, axis.y(band["mid"]), "median", MAIN, 2.2))
    traces += timed_out(cut["x"], axis.y(cut["y"]))
    return Chart(
        name=f"{what.lower().replace(' ', '-')}-by-frame",
        title=f"{what} by {unit}",
        caption=_by_index_caption(data, axis, unit, with_cut=bool(cut["x"])),
        traces=traces,
        xaxis=axis_title(f"{unit} (index)"),
        yaxis=axis.axis(what.lower()),
        choices=axis.choices(),
        chosen="log",
    )


def _by_index_caption(data: dict[str, Any], axis: Lengths, unit: str, *, with_cut: bool) -> str:
    if data.get("band"):
        who = f"all {plural(data['users'], 'user')}" if data["users"] else "all requests"
        text = f"Median of {who}, the band from 5 % to 95 %"
        text += f", and {len(data['lines'])} users as examples." if data["lines"] else "."
    else:
        text = "One line a user, in order of start."
    if data["step"] > 1:
        text += f" A point stands for {data['step']} {unit}s in a row."
    if unit == FRAME:
        text += " A peak at the same frame for every user is the frame's; one at the start only is a cold function."
    text += " A cross is a time-out: the true time lies above it." if with_cut else ""
    return text + _log_note(axis)


def _over_time(data: dict[str, Any], clock: Clock, unit: str) -> Chart:
    points = data["points"]
    axis = Lengths.of(*(part["y"] for part in points.values()))
    warm, cold, cut = points["warm"], points["cold"], points["timed_out"]
    x = clock.x(data["x"])
    traces = [
        dots(clock.x(warm["x"]), axis.y(warm["y"]), unit, QUIET),
        line(x, axis.y(data["mid"]), "median", MAIN, 2.2),
        line(x, axis.y(data["high"]), "95th percentile", SECOND),
    ]
    if cold["x"]:
        traces.append(dots(clock.x(cold["x"]), axis.y(cold["y"]), f"cold {unit}", SECOND, symbol="diamond", size=7))
    traces += timed_out(clock.x(cut["x"]), axis.y(cut["y"]))
    chosen = f" {count(data['shown'])} of {count(data['of'])} {unit}s are drawn." if data["shown"] < data["of"] else ""
    caption = (
        f"{unit.capitalize()}s by their start; median and 95th percentile of each {_seconds(data['width_s'])}.{chosen} "
        "Lines that keep rising say that the function falls behind; a high start alone says that it had to warm up."
    )
    return Chart(
        name="round-trip-over-time",
        title="Round trip over time",
        caption=caption + _log_note(axis),
        traces=traces,
        xaxis=clock.axis(),
        yaxis=axis.axis("round trip"),
        choices=axis.choices(),
        chosen="log",
    )


def _success(data: dict[str, Any], clock: Clock, unit: str) -> Chart:
    return Chart(
        name="success-over-time",
        title="Success over time",
        caption=(
            f"Share of the {unit}s started in each {_seconds(data['width_s'])} that were answered rightly; "
            f"a gap had no {unit}s."
        ),
        traces=[line(clock.x(data["x"]), data["ratio"], "answered rightly", MAIN, 2, shape="hvh")],
        xaxis=clock.axis(),
        yaxis=axis_title("answered rightly") | {"range": [0, 104], "ticksuffix": " %"},
    )


def _throughput(data: dict[str, Any], clock: Clock, unit: str) -> Chart:
    hosts, x = data["hosts"], clock.x(data["x"])
    width = data["width_s"] / clock.scale * 0.92
    bar = {"type": "bar", "x": x, "width": width}
    traces = [
        bar | {"y": part["ok"], "name": "answered rightly" if len(hosts) == 1 else host, "marker": {"color": colour}}
        for (host, part), colour in zip(hosts.items(), LINE_COLOURS * len(hosts), strict=False)
    ]
    failed = [round(sum(values), 3) for values in zip(*(part["failed"] for part in hosts.values()), strict=True)]
    if any(failed):
        traces.append(bar | {"y": failed, "name": "failed", "marker": {"color": BAD}})
    by = " by the host that sent them" if len(hosts) > 1 else ""
    every = _seconds(data["width_s"])
    caption = f"{unit.capitalize()}s by their start, in each {every}{by}; the first and last bar are partly filled."
    if data["closed_loop"]:
        caption += f" A user sends its next {unit} only after the answer to the last: a slow function is sent less."
    return Chart(
        name="frames-per-second",
        title=f"{unit.capitalize()}s per second",
        caption=caption,
        traces=traces,
        xaxis=clock.axis(),
        yaxis=axis_title(f"{unit}s per second"),
        layout={"barmode": "stack"},
    )


def _in_flight(data: dict[str, Any], clock: Clock) -> Chart:
    if data["what"] == "users":
        title, caption = (
            "Users over time",
            "Users whose process was running: the load as it was, not as it was asked for.",
        )
    else:
        title = f"{data['what'].capitalize()} under way over time"
        caption = "Requests sent and not yet answered. At a fixed rate a line that keeps rising is a growing queue."
    whole = {"dtick": 1} if max(data["y"]) <= 8 else {}
    steps = line(clock.x(data["x"]), data["y"], data["what"], MAIN, shape="hv") | {"fill": "tozeroy", "fillcolor": BAND}
    return Chart(
        name="users-over-time",
        title=title,
        caption=caption,
        traces=[steps],
        xaxis=clock.axis(),
        yaxis=axis_title(data["what"]) | whole,
    )


def _histogram(data: dict[str, Any], unit: str) -> Chart:
    kinds = [name for name in ("warm", "cold") if name in data["linear"]]
    axis = Lengths.of(data["linear"]["edges"])
    traces = []
    for scale in ("linear", "log"):
        for name in kinds:
            edges, counts = axis.y(data[scale]["edges"]), data[scale][name]
            label = f"{unit}s" if len(kinds) == 1 else name
            steps = line([edges[0], *edges], [0, *counts, 0], label, MAIN if name == "warm" else SECOND, shape="hv")
            traces.append(steps | {"fill": "tozeroy", "fillcolor": BAND, "visible": scale == "linear"})
    choices = {
        f"{shown} time": [
            {"visible": [scale == shown for scale in ("linear", "log") for _ in kinds]},
            {"xaxis.type": shown, "xaxis.autorange": True},
        ]
        for shown in ("linear", "log")
    }
    caption = "How often each round trip was seen. Two humps are two kinds of them: one average describes neither."
    for n, where in ((data["above"], "beyond the right end, on the log axis only"), (data["timed_out"], "timed out")):
        caption += f" Not drawn: {plural(n, unit)} {where}." if n else ""
    return Chart(
        name="round-trip-histogram",
        title="How round trips are spread",
        caption=caption,
        traces=traces,
        xaxis=axis_title(f"round trip of {unit}s answered rightly ({axis.unit})"),
        yaxis=axis_title(f"{unit}s"),
        choices=choices,
        chosen="linear time",
    )


def _machines(data: dict[str, Any], rows: list[dict[str, Any]], clock: Clock) -> Chart:
    hosts = list(dict.fromkeys(part["host"] for part in data["lines"]))
    few = len(hosts) <= MAX_HOSTS_BY_PART
    colours = {"generator": MAIN, "target": SECOND, "host": INK}
    traces = []
    for part in data["lines"]:
        number, name = hosts.index(part["host"]), {"host": "whole machine"}.get(part["part"], part["part"])
        label = name if len(hosts) == 1 else f"{part['host']} {name}"
        if few:
            dash = ("solid", "dash", "dot")[number]
            traces.append(line(clock.x(part["x"]), part["y"], label, colours.get(part["part"], QUIET), dash=dash))
        elif part["part"] == "host":  # each part of many hosts: more lines than can be told apart
            colour = LINE_COLOURS[number % len(LINE_COLOURS)]
            traces.append(line(clock.x(part["x"]), part["y"], part["host"], colour))
    cores = {row["cores"] for row in rows if row["part"] == "host" and row["cores"]}
    layout: dict[str, Any] = {}
    yaxis = axis_title("cores busy")
    caption = "Cores kept busy."
    if len(cores) == 1:
        top = cores.pop()
        all_cores = {"color": BAD, "width": 1, "dash": "dash"}
        layout["shapes"] = [
            {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": top, "y1": top, "line": all_cores}
        ]
        yaxis |= {"range": [0, top * 1.08]}
        caption += (
            " The dashed line is all there are; where the whole machine is at it, times include waiting for a core."
        )
    if "target" in {row["part"] for row in rows}:
        caption += " What the generator takes is not there for the function, for they share the machine."
    return Chart(
        name="processor-use",
        title="Processor use",
        caption=caption,
        traces=traces,
        xaxis=clock.axis(),
        yaxis=yaxis,
        layout=layout,
    )


def _log_note(axis: Lengths) -> str:
    return " Times are on a logarithmic axis at first." if axis.log else ""


def _seconds(width_s: float) -> str:
    if width_s == 1:
        return "second"
    return f"{width_s:g} s" if width_s < 120 else f"{width_s / 60:g} min"
