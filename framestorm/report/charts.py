"""Makes charts of the summary's series: each with a title, axes with units, and a caption on how to read it."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from framestorm.model import series
from framestorm.model.criteria import ALL
from framestorm.model.metric import figure_label
from framestorm.model.summary import Machine
from framestorm.model.units import count, plural
from framestorm.plain import as_label
from framestorm.report.figure import (
    BAD,
    BAND,
    INK,
    LINE_COLOURS,
    MAIN,
    QUIET,
    SECOND,
    Chart,
    Charted,
    Clock,
    Json,
    Lengths,
    axis_title,
    colour_of,
    dots,
    each_width,
    line,
    marked,
)
from framestorm.report.replica_charts import replica_charts

MAX_HOSTS_BY_PART = 3
FILLED = {"fill": "tozeroy", "fillcolor": BAND}


def charts(run: Charted) -> list[Chart]:
    """Return the charts for which there are series; of several labels, those of each next to each other."""
    data, main = run.series, run.label
    clock = Clock(data, run.load_start_s)
    labels: dict[str, series.SampleSeries] = {main: data, **data.labels}

    def each(draw: Callable[[series.SampleSeries, str], list[Chart]]) -> list[Chart]:
        """Return the charts of the main samples, and of each further label."""
        of_labels = []
        for number, (label, of) in enumerate(labels.items()):
            for chart in draw(of, run.unit if label == main else "sample"):
                name = f"{chart.name}-{number}" if number else chart.name
                of_labels.append(replace(chart, name=name, label=as_label(label) if len(labels) > 1 else None))
        return of_labels

    drawn = _by_label(labels, clock) if len(data.labels) > 1 else []
    drawn += each(lambda of, unit: [_by_index(lines, name, unit) for name, lines in of.by_index.items()])
    drawn += each(lambda of, unit: [_over_time(of.over_time, of.by, clock, unit)] if of.over_time else [])
    drawn += [_scraped(each, number, clock) for number, each in enumerate(data.scraped)]
    if data.replicas:
        drawn += replica_charts(data.replicas, clock)
    drawn += each(lambda of, unit: _rates(of, data.asked_per_s if of is data else {}, clock, unit))
    drawn += [_in_flight(part, clock) for part in (data.threads, data.in_flight) if part]
    drawn += each(lambda of, unit: [_histogram(of.histogram, unit)] if of.histogram else [])
    if data.machines:
        drawn.append(_machines(data.machines, run.machines, clock))
    if data.marks:
        drawn = [marked(chart, data.marks, clock) if chart.xaxis == clock.axis() else chart for chart in drawn]
    return drawn


def _by_label(labels: Mapping[str, series.SampleSeries], clock: Clock) -> list[Chart]:
    """Return response times of labels in one chart, which tells the slow ones; of many, the slowest."""
    medians = {label: of.over_time for label, of in labels.items() if label != ALL and of.over_time}
    heights = {label: max((value or 0.0 for value in of.mid), default=0.0) for label, of in medians.items()}
    chosen = sorted(medians, key=lambda label: -heights[label])[: len(LINE_COLOURS)]
    axis = Lengths.of(*(medians[label].mid for label in chosen))
    traces = [
        line(clock.x(medians[label].x), axis.y(medians[label].mid), as_label(label), colour_of(number))
        for number, label in enumerate(chosen)
    ]
    by = next(iter(labels.values())).by
    caption = f"Median response time of each label, by the {by} of its samples."
    if len(chosen) < len(medians):
        caption += f" The {len(chosen)} slowest of {count(len(medians))} labels are drawn."
    yaxis = axis.axis("median response time")
    title = "Response time by label"
    return [Chart("response-time-by-label", title, caption, traces, clock.axis(), yaxis).with_scales(axis)]


def _by_index(data: series.ByIndex, name: str, label: str) -> Chart:
    what = figure_label(name)
    band, x = data.band, data.x
    # Each chart has its own unit: with one for all three, model times would be too small to see.
    axis = Lengths.plain()
    if name.endswith("_ms"):
        axis = Lengths.of(*(user.y for user in data.lines), band["high"] if band else [], data.timed_out["y"])
    caption, traces = "One line per user, in the order of their starts.", []
    if band:
        hidden = {"hoverinfo": "skip", "mode": "lines"}
        fill = {"fill": "tonexty", "fillcolor": BAND}
        traces.append(line(x, axis.y(band["low"]), "5 %", BAND, 0) | hidden | {"showlegend": False})
        traces.append(line(x, axis.y(band["high"]), "5 % to 95 % of all", BAND, 0) | hidden | fill)
        for number, user in enumerate(data.lines):
            example = {"legendgroup": "examples", "showlegend": not number}
            traces.append(
                line(x, axis.y(user.y), f"user {user.user}" if number else "single users", QUIET, 1) | example
            )
        traces.append(line(x, axis.y(band["mid"]), "median", MAIN, 2.2))
        all_of = plural(data.users, "user") if data.users else f"{label}s"
        caption = f"Median of all {all_of}, and the band from the 5th to the 95th percentile"
        caption += f"; {plural(len(data.lines), 'user')} as examples." if data.lines else "."
    else:
        for number, user in enumerate(data.lines):
            dash = "solid" if number < len(LINE_COLOURS) else "dot"
            traces.append(line(x, axis.y(user.y), f"user {user.user}", colour_of(number), dash=dash))
    if data.step > 1:
        caption += f" Each point is the median of {data.step} consecutive {label}s."
    caption += (
        f" A peak at the same index for every user comes from that {label}; one only at the start is a cold start."
    )
    if data.timed_out["x"]:
        caption += " A cross is a timeout: the true time is longer."
        traces.append(_timed_out(data.timed_out["x"], axis.y(data.timed_out["y"])))
    slug = re.sub(r"\W+", "-", f"{what} by index")
    title, xaxis = f"{what.capitalize()} by {label}", axis_title(f"{label} (index)")
    return Chart(slug, title, caption, traces, xaxis, axis.axis(what)).with_scales(axis)


def _over_time(data: series.OverTime, by: str, clock: Clock, label: str) -> Chart:
    warm, cold, cut = data.warm, data.cold, data.timed_out
    has_points = any(part["x"] for part in (warm, cold, cut))
    axis = Lengths.of(warm["y"], cold["y"], cut["y"]) if has_points else Lengths.of(data.mid, data.high)
    x = clock.x(data.x)
    traces = [
        *([dots(clock.x(warm["x"]), axis.y(warm["y"]), label, QUIET)] if has_points else []),
        line(x, axis.y(data.mid), "median", MAIN, 2.2),
        line(x, axis.y(data.high), "95th percentile", SECOND),
    ]
    if cold["x"]:
        traces.append(dots(clock.x(cold["x"]), axis.y(cold["y"]), f"cold {label}", SECOND, symbol="diamond", size=7))
    if cut["x"]:
        traces.append(_timed_out(clock.x(cut["x"]), axis.y(cut["y"])))
    shown = f" {count(data.shown)} of {count(data.of)} {label}s are drawn." if data.shown < data.of else ""
    each = f"Each {label} at its {by}; median" if has_points else f"By the {by} of {label}s: median"
    caption = (
        f"{each} and 95th percentile of each {each_width(data.width_s)}.{shown} "
        "Lines that keep rising mean that the function falls behind; a peak only at the start is warm-up."
    )
    title, yaxis = "Response time over time", axis.axis("response time")
    return Chart("response-time-over-time", title, caption, traces, clock.axis(), yaxis).with_scales(axis)


def _timed_out(x: series.Values, y: series.Values) -> Json:
    return dots(x, y, "timed out (at least)", BAD, symbol="x-thin-open", size=8)


def _rates(data: series.SampleSeries, asked_per_s: series.Curves, clock: Clock, label: str) -> list[Chart]:
    rates = data.success_over_time
    if not rates:
        return []
    throughput = [_throughput(data, rates, asked_per_s, clock, label)] if rates.hosts else []
    return [_success(rates, data.by, clock, label), *throughput]


def _success(data: series.SuccessOverTime, by: str, clock: Clock, label: str) -> Chart:
    caption = (
        f"Share of the {label}s {by}ed in each {each_width(data.width_s)} that succeeded; a gap means that none {by}ed."
    )
    traces = [line(clock.x(data.x), data.ratio, "success rate", MAIN, 2, shape="hvh")]
    yaxis = axis_title("success rate") | {"range": [0, 104], "ticksuffix": " %"}
    return Chart("success-over-time", "Success rate over time", caption, traces, clock.axis(), yaxis)


def _throughput(
    samples: series.SampleSeries, data: series.SuccessOverTime, asked: series.Curves, clock: Clock, label: str
) -> Chart:
    hosts = data.hosts
    bar: Json = {"type": "bar", "x": clock.x(data.x), "width": [0.92 * width / clock.scale for width in data.widths_s]}
    traces = [
        bar
        | {"y": rates["ok"], "name": host if len(hosts) > 1 else "successful", "marker": {"color": colour_of(number)}}
        for number, (host, rates) in enumerate(hosts.items())
    ]
    by_host = zip(*(rates["failed"] for rates in hosts.values()), strict=True)
    failed = [round(sum(rate or 0.0 for rate in rates), 3) for rates in by_host]
    if any(failed):
        traces.append(bar | {"y": failed, "name": "failed", "marker": {"color": BAD}})
    by = ", by the host that sent them" if len(hosts) > 1 else ""
    caption = f"{label.capitalize()}s by their {samples.by}, in each {each_width(data.width_s)}{by}."
    if data.closed_model:
        caption += f" A user sends its next {label} only after the last answer: a slow function gets less load."
    # Bars by the end of samples are what was answered.
    if samples.rates and not samples.is_by_end:
        caption += (
            f" Line: {label}s answered without an error, by their end; below the bars, the function falls behind."
        )
        traces.append(line(clock.x(samples.rates.x), samples.rates.answered, "answered", SECOND, 2))
    if asked:
        caption += " Dashed: the arrival rate that the plan's settings ask for."
        traces.append(_asked(asked, clock))
    title, yaxis = f"{label.capitalize()}s per second", axis_title(f"{label}s per second")
    return Chart("throughput", title, caption, traces, clock.axis(), yaxis, {"barmode": "stack"})


def _in_flight(data: series.InFlight, clock: Clock) -> Chart:
    title = f"{data.what.capitalize()} in flight over time"
    caption = "Sent and not yet answered. At a fixed arrival rate, a line that keeps rising is a growing queue."
    if data.is_estimated:
        caption = (
            "The mean of each point, estimated from the times of those that ended. A line that keeps rising is a "
            "growing queue."
        )
    if data.what == "users":
        title = "Users over time"
        caption = "Users that were running: the load as it was."
    traces = [line(clock.x(data.x), data.y, data.what, MAIN, shape="hv") | FILLED]
    if data.asked:
        caption += " Dashed: as many as the plan's settings ask for."
        traces.append(_asked(data.asked, clock))
    yaxis = axis_title(data.what) | ({"dtick": 1} if max(data.y) <= 8 else {})
    return Chart(f"{data.what}-over-time", title, caption, traces, clock.axis(), yaxis)


def _asked(data: series.Curves, clock: Clock) -> Json:
    return line(clock.x(data["x"]), data["y"], "asked for", INK, dash="dash")


def _histogram(data: series.Histogram, label: str) -> Chart:
    axis = Lengths.of(data.linear.edges)
    by_scale = {"linear": _steps(data.linear, axis, label), "log": _steps(data.log, axis, label)}
    traces = [steps | {"visible": scale == "linear"} for scale, of in by_scale.items() for steps in of]
    choices: dict[str, list[Json]] = {
        f"{shown} time": [
            {"visible": [scale == shown for scale, of in by_scale.items() for _ in of]},
            {"xaxis.type": shown, "xaxis.autorange": True},
        ]
        for shown in by_scale
    }
    caption = "How often each response time occurred. With two peaks, one average describes neither."
    for n, where in ((data.above, "beyond the right end (see the log axis)"), (data.timed_out, "timed out")):
        caption += f" Not drawn: {plural(n, label)} {where}." if n else ""
    title, xaxis = "Distribution of response times", axis_title(f"response time of successful {label}s ({axis.unit})")
    chart = Chart("response-time-histogram", title, caption, traces, xaxis, axis_title(f"{label}s"))
    chart.choices, chart.chosen = choices, "linear time"
    return chart


def _steps(bins: series.Bins, axis: Lengths, label: str) -> list[Json]:
    edges = axis.y(bins.edges)
    kinds = [("warm", bins.warm, MAIN), ("cold", bins.cold, SECOND)]
    drawn = [(name, counts, colour) for name, counts, colour in kinds if counts is not None]
    return [
        line([edges[0], *edges], [0, *counts, 0], f"{label}s" if len(drawn) == 1 else name, colour, shape="hv") | FILLED
        for name, counts, colour in drawn
    ]


def _machines(lines: Sequence[series.MachineLine], machines: Sequence[Machine], clock: Clock) -> Chart:
    hosts = list(dict.fromkeys(each.host for each in lines))
    colours = {"generator": MAIN, "target": SECOND, "host": INK}
    traces = []
    for each in lines:
        number, x = hosts.index(each.host), clock.x(each.x)
        if len(hosts) <= MAX_HOSTS_BY_PART:
            part = "whole machine" if each.part == "host" else each.part
            name, dash = part if len(hosts) == 1 else f"{each.host} {part}", ("solid", "dash", "dot")[number]
            traces.append(line(x, each.y, name, colours.get(each.part, QUIET), dash=dash))
        elif each.part == "host":  # every part of many hosts would be too many lines to tell apart
            traces.append(line(x, each.y, each.host, colour_of(number)))
    chart = Chart("processor-use", "CPU use", "Cores in use.", traces, clock.axis(), axis_title("cores busy"))
    cores = {machine.cores for machine in machines if machine.part == "host" and machine.cores}
    if len(cores) == 1:
        top = cores.pop()
        limit = {"color": BAD, "width": 1, "dash": "dash"}
        chart.layout = {
            "shapes": [{"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": top, "y1": top, "line": limit}]
        }
        chart.yaxis["range"] = [0, top * 1.08]
        chart.caption += (
            " The dashed line marks all cores; where the machine reaches it, times include waiting for a core."
        )
    if any(machine.part == "target" for machine in machines):
        chart.caption += " Generator and function share the machine: what one uses, the other cannot."
    return chart


def _scraped(data: series.ScrapedLine, number: int, clock: Clock) -> Chart:
    family = data.name.partition("{")[0]
    what = f"{family} per second" if data.is_rate else family
    caption = f"{data.name}, as {data.url} gives it{', its growth per second' if data.is_rate else ''}."
    traces = [line(clock.x(data.x), data.y, what, colour_of(number), shape="linear" if data.is_rate else "hv")]
    return Chart(f"scraped-{number}", what, caption, traces, clock.axis(), axis_title(what) | {"rangemode": "tozero"})
