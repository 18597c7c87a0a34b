"""Series of the summary to charts: each with a title, axes with units, and a caption that says what to read off."""

from collections.abc import Sequence

from framestorm.model.series import (
    Bins,
    ByIndex,
    Histogram,
    InFlight,
    MachineLine,
    OverTime,
    SuccessOverTime,
)
from framestorm.model.summary import Machine, Summary
from framestorm.model.units import count, plural
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
    Json,
    Lengths,
    axis_title,
    dots,
    line,
    marked,
    timed_out,
)
from framestorm.report.replica_charts import replica_charts

MAX_HOSTS_BY_PART = 3
# Titles of the figures that are drawn by index.
FIGURE_NAMES = {"rtt_ms": "Response time", "handler_ms": "Handler time", "model_ms": "Model time"}
FILLED = {"fill": "tozeroy", "fillcolor": BAND}


def charts(summary: Summary) -> list[Chart]:
    """The charts that the summary has series for."""
    series, label = summary.series, summary.label
    clock = Clock.of(series)
    drawn = [_by_index(lines, _figure_name(name), label) for name, lines in series.by_index.items()]
    if series.over_time:
        drawn.append(_over_time(series.over_time, clock, label))
    if series.replicas:
        drawn += replica_charts(series.replicas, clock)
    if series.success_over_time:
        drawn += [_success(series.success_over_time, clock, label), _throughput(series.success_over_time, clock, label)]
    if series.in_flight:
        drawn.append(_in_flight(series.in_flight, clock))
    if series.histogram:
        drawn.append(_histogram(series.histogram, label))
    if series.machines:
        drawn.append(_machines(series.machines, summary.machines, clock))
    if series.marks:
        drawn = [marked(chart, series.marks, clock) if chart.xaxis == clock.axis() else chart for chart in drawn]
    return drawn


def _figure_name(name: str) -> str:
    return FIGURE_NAMES.get(name) or name.removesuffix("_ms").replace("_", " ").capitalize()


def _by_index(data: ByIndex, what: str, label: str) -> Chart:
    band, cut, x = data.band, data.timed_out, data.x
    # Each chart has its own unit: one for all three would hide the model beside the response time.
    axis = Lengths.of(*(user.y for user in data.lines), band.high if band else [], cut.y)
    traces = []
    if band:
        hidden = {"hoverinfo": "skip", "mode": "lines"}
        traces.append(line(x, axis.y(band.low), "5 %", BAND, 0) | hidden | {"showlegend": False})
        fill = {"fill": "tonexty", "fillcolor": BAND}
        traces.append(line(x, axis.y(band.high), "5 % to 95 % of all", BAND, 0) | hidden | fill)
    for number, user in enumerate(data.lines):
        name, y = f"user {user.user}", axis.y(user.y)
        if band:
            example = {"legendgroup": "examples", "showlegend": number == 0}
            traces.append(line(x, y, name, QUIET, 1) | example | {"name": name if number else "single users"})
        else:
            dash = "solid" if number < len(LINE_COLOURS) else "dot"
            traces.append(line(x, y, name, LINE_COLOURS[number % len(LINE_COLOURS)], dash=dash))
    if band:
        traces.append(line(x, axis.y(band.mid), "median", MAIN, 2.2))
    traces += timed_out(cut.x, axis.y(cut.y))
    return Chart(
        name=f"{what.lower().replace(' ', '-')}-by-index",
        title=f"{what} by {label}",
        caption=_by_index_caption(data, label) + _log_note(axis),
        traces=traces,
        xaxis=axis_title(f"{label} (index)"),
        yaxis=axis.axis(what.lower()),
        choices=axis.choices(),
        chosen="log",
    )


def _by_index_caption(data: ByIndex, label: str) -> str:
    if data.band:
        whose = f"all {plural(data.users, 'user')}" if data.users else f"all {label}s"
        text = f"Median of {whose}, and the band from the 5th to the 95th percentile"
        text += f"; {len(data.lines)} users as examples." if data.lines else "."
    else:
        text = "One line per user, in the order of their starts."
    if data.step > 1:
        text += f" Each point is the median of {data.step} {label}s in a row."
    text += f" A peak at the same index for every user comes from that {label}; one only at the start is a cold start."
    return text + (" A cross is a timeout: the true time is longer." if data.timed_out.x else "")


def _over_time(data: OverTime, clock: Clock, label: str) -> Chart:
    warm, cold, cut = data.warm, data.cold, data.timed_out
    axis = Lengths.of(warm.y, cold.y, cut.y)
    x = clock.x(data.x)
    traces = [
        dots(clock.x(warm.x), axis.y(warm.y), label, QUIET),
        line(x, axis.y(data.mid), "median", MAIN, 2.2),
        line(x, axis.y(data.high), "95th percentile", SECOND),
    ]
    if cold.x:
        traces.append(dots(clock.x(cold.x), axis.y(cold.y), f"cold {label}", SECOND, symbol="diamond", size=7))
    traces += timed_out(clock.x(cut.x), axis.y(cut.y))
    shown = f" {count(data.shown)} of {count(data.of)} {label}s are drawn." if data.shown < data.of else ""
    caption = (
        f"Each {label} at its start; median and 95th percentile of each {_seconds(data.width_s)}.{shown} "
        "Lines that keep rising mean that the function falls behind; a peak only at the start is warm-up."
    )
    return Chart(
        name="response-time-over-time",
        title="Response time over time",
        caption=caption + _log_note(axis),
        traces=traces,
        xaxis=clock.axis(),
        yaxis=axis.axis("response time"),
        choices=axis.choices(),
        chosen="log",
    )


def _success(data: SuccessOverTime, clock: Clock, label: str) -> Chart:
    return Chart(
        name="success-over-time",
        title="Success rate over time",
        caption=(
            f"Share of the {label}s started in each {_seconds(data.width_s)} that succeeded; a gap means that none "
            "started."
        ),
        traces=[line(clock.x(data.x), data.ratio, "success rate", MAIN, 2, shape="hvh")],
        xaxis=clock.axis(),
        yaxis=axis_title("success rate") | {"range": [0, 104], "ticksuffix": " %"},
    )


def _throughput(data: SuccessOverTime, clock: Clock, label: str) -> Chart:
    hosts, x = data.hosts, clock.x(data.x)
    width = data.width_s / clock.scale * 0.92
    bar: Json = {"type": "bar", "x": x, "width": width}
    traces = [
        bar | {"y": rates.ok, "name": "successful" if len(hosts) == 1 else host, "marker": {"color": colour}}
        for (host, rates), colour in zip(hosts.items(), LINE_COLOURS * len(hosts), strict=False)
    ]
    failed = [
        round(sum(rate or 0.0 for rate in rates), 3)
        for rates in zip(*(part.failed for part in hosts.values()), strict=True)
    ]
    if any(failed):
        traces.append(bar | {"y": failed, "name": "failed", "marker": {"color": BAD}})
    by = " by the host that sent them" if len(hosts) > 1 else ""
    caption = (
        f"{label.capitalize()}s by their start, in each {_seconds(data.width_s)}{by}; the first and last bar may be "
        "partly filled."
    )
    if data.closed_model:
        caption += f" A user sends its next {label} only after the last answer: a slow function gets less load."
    return Chart(
        name="throughput",
        title=f"{label.capitalize()}s per second",
        caption=caption,
        traces=traces,
        xaxis=clock.axis(),
        yaxis=axis_title(f"{label}s per second"),
        layout={"barmode": "stack"},
    )


def _in_flight(data: InFlight, clock: Clock) -> Chart:
    if data.what == "users":
        title, caption = (
            "Users over time",
            "Users whose process was running: the load as it was, which may be less than configured.",
        )
    else:
        title = f"{data.what.capitalize()} in flight over time"
        caption = "Sent and not yet answered. At a fixed arrival rate, a line that keeps rising is a growing queue."
    whole = {"dtick": 1} if max(data.y) <= 8 else {}
    return Chart(
        name="in-flight",
        title=title,
        caption=caption,
        traces=[line(clock.x(data.x), data.y, data.what, MAIN, shape="hv") | FILLED],
        xaxis=clock.axis(),
        yaxis=axis_title(data.what) | whole,
    )


def _histogram(data: Histogram, label: str) -> Chart:
    axis = Lengths.of(data.linear.edges)
    scales = {"linear": data.linear, "log": data.log}
    traces = [
        trace | {"visible": scale == "linear"} for scale, bins in scales.items() for trace in _steps(bins, axis, label)
    ]
    choices: dict[str, list[Json]] = {
        f"{shown} time": [
            {"visible": [scale == shown for scale, bins in scales.items() for _ in _steps(bins, axis, label)]},
            {"xaxis.type": shown, "xaxis.autorange": True},
        ]
        for shown in scales
    }
    caption = "How often each response time occurred. With two peaks, one average describes neither."
    for n, where in ((data.above, "beyond the right end (see the log axis)"), (data.timed_out, "timed out")):
        caption += f" Not drawn: {plural(n, label)} {where}." if n else ""
    return Chart(
        name="response-time-histogram",
        title="Distribution of response times",
        caption=caption,
        traces=traces,
        xaxis=axis_title(f"response time of successful {label}s ({axis.unit})"),
        yaxis=axis_title(f"{label}s"),
        choices=choices,
        chosen="linear time",
    )


def _steps(bins: Bins, axis: Lengths, label: str) -> list[Json]:
    edges = axis.y(bins.edges)
    kinds = [("warm", bins.warm, MAIN), ("cold", bins.cold, SECOND)]
    drawn = [(name, counts, colour) for name, counts, colour in kinds if counts is not None]
    return [
        line([edges[0], *edges], [0, *counts, 0], f"{label}s" if len(drawn) == 1 else name, colour, shape="hv") | FILLED
        for name, counts, colour in drawn
    ]


def _machines(lines: Sequence[MachineLine], machines: Sequence[Machine], clock: Clock) -> Chart:
    hosts = list(dict.fromkeys(each.host for each in lines))
    few = len(hosts) <= MAX_HOSTS_BY_PART
    colours = {"generator": MAIN, "target": SECOND, "host": INK}
    traces = []
    for each in lines:
        number, name = hosts.index(each.host), {"host": "whole machine"}.get(each.part, each.part)
        if few:
            label = name if len(hosts) == 1 else f"{each.host} {name}"
            dash = ("solid", "dash", "dot")[number]
            traces.append(line(clock.x(each.x), each.y, label, colours.get(each.part, QUIET), dash=dash))
        elif each.part == "host":  # each part of many hosts: more lines than can be told apart
            traces.append(line(clock.x(each.x), each.y, each.host, LINE_COLOURS[number % len(LINE_COLOURS)]))
    cores = {machine.cores for machine in machines if machine.part == "host" and machine.cores}
    layout: Json = {}
    yaxis = axis_title("cores busy")
    caption = "Cores in use."
    if len(cores) == 1:
        top = cores.pop()
        limit = {"color": BAD, "width": 1, "dash": "dash"}
        layout["shapes"] = [{"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": top, "y1": top, "line": limit}]
        yaxis |= {"range": [0, top * 1.08]}
        caption += " The dashed line is all cores; where the machine reaches it, times include waiting for a core."
    if any(machine.part == "target" for machine in machines):
        caption += " Generator and function share the machine: what one uses, the other cannot."
    return Chart(
        name="processor-use",
        title="CPU use",
        caption=caption,
        traces=traces,
        xaxis=clock.axis(),
        yaxis=yaxis,
        layout=layout,
    )


def _log_note(axis: Lengths) -> str:
    return " The time axis is logarithmic at first." if axis.log else ""


def _seconds(width_s: float) -> str:
    if width_s == 1:
        return "second"
    return f"{width_s:g} s" if width_s < 120 else f"{width_s / 60:g} min"
