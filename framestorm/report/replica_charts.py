"""Makes charts of a function's replicas: how many there were, and what each used."""

from collections.abc import Sequence
from typing import NamedTuple

from framestorm.model import series
from framestorm.model.units import count
from framestorm.report.figure import BAD, INK, Chart, Clock, Json, axis_title, colour_of, dots, each_width, line, scaled
from framestorm.results.replicas import NETWORK, THROTTLED


class Drawing(NamedTuple):
    """How a metric of replicas is drawn; `units` maps each unit to the smallest value that is shown in it."""

    title: str
    axis: str
    caption: str
    units: Sequence[tuple[float, str, float]] = ((0.0, "", 1.0),)


DRAWINGS = {
    "in_flight": Drawing(
        "Requests in each replica",
        "requests in flight",
        "Requests that each replica has and has not yet answered. One line above the others means that the load "
        "balancer does not distribute evenly.",
    ),
    "cpu_cores": Drawing("CPU use of replicas", "cores busy", "Cores that each replica used, mean of the last 10 s."),
    THROTTLED: Drawing(
        "CPU throttling of replicas",
        "periods throttled (%)",
        "Share of the 100 ms periods of the last 10 s in which a replica used up its CPU limit and had to wait for the "
        "next period: response times then measure the limit.",
        ((0.0, "", 0.01),),
    ),
    "memory_bytes": Drawing(
        "Memory of replicas",
        "memory",
        "Memory of each replica. A line that keeps rising under a steady load is a leak. A line ends with the last "
        "measurement of its replica.",
        ((1e10, " (GB)", 1e9), (0.0, " (MB)", 1e6)),
    ),
    NETWORK: Drawing(
        "Network traffic of replicas",
        "received and sent",
        "Bytes that each replica received and sent, mean of the last 10 s, including the headers of all layers.",
        ((1e6, " (MB/s)", 1e6), (0.0, " (kB/s)", 1e3)),
    ),
}


def replica_charts(data: series.ReplicasOverTime, clock: Clock) -> list[Chart]:
    """Return the chart of their number, and one of each metric that was measured of them."""
    throttled = data.use.get(THROTTLED)
    is_throttled = throttled is not None and any(throttled.whole)
    drawn = [_counts(data, clock)]
    for name in DRAWINGS:
        if name in data.use and (name != THROTTLED or is_throttled):
            drawn.append(_use(name, data.use[name], clock, data.x))
            if name == "cpu_cores" and throttled is not None and not is_throttled:
                drawn[-1].caption += " No replica was throttled by a CPU limit."
    return drawn


def _counts(data: series.ReplicasOverTime, clock: Clock) -> Chart:
    x, alone = clock.x(data.x), len(data.counts) == 1
    traces: list[Json] = []
    short: list[tuple[float | None, float]] = []
    for number, (function, counts) in enumerate(data.counts.items()):
        prefix, colour = "" if alone else f"{function} ", colour_of(number)
        traces.append(line(x, counts["ready"], f"{prefix}ready", colour, 2, shape="hv"))
        wanted = line(x, counts["wanted"], f"{prefix}wanted", INK if alone else colour, dash="dash", shape="hv")
        traces.append(wanted)
        if "autoscaler" in counts:
            traces.append(line(x, counts["autoscaler"], f"{prefix}autoscaler", colour, dash="dot", shape="hv"))
        if "activator" in counts:
            # At the foot of the chart, where nothing else is drawn for long.
            on_path = [0.0 if value else None for value in counts["activator"]]
            traces.append(line(x, on_path, f"{prefix}activator on the path", colour, 6, shape="hv"))
        short += [(at, value) for at, value in zip(x, counts["short"], strict=True) if value is not None]
    if short:
        short_x, short_y = zip(*short, strict=True)
        traces.append(dots(short_x, short_y, "fewer ready than wanted", BAD, symbol="diamond", size=7))
    most = max((value or 0 for of in data.counts.values() for value in (*of["wanted"], *of["ready"])), default=0)
    caption = "Replicas wanted, and those ready for requests"
    caption += f": the fewest in each {each_width(round(data.x[1] - data.x[0], 1))}." if len(data.x) > 1 else "."
    if any("autoscaler" in of for of in data.counts.values()):
        caption += " The autoscaler's line is what it asks for, before its bounds and before the platform acts on it."
    if any("activator" in of for of in data.counts.values()):
        caption += " A bar at 0 marks when requests went through Knative's activator, which holds them back."
    if data.of_functions > len(data.counts):
        caption += f" The {len(data.counts)} busiest of {count(data.of_functions)} functions are drawn."
    yaxis = axis_title("replicas") | ({"dtick": 1, "range": [0, most + 0.5]} if most <= 8 else {})
    return Chart("replicas-over-time", "Replicas over time", caption, traces, clock.axis(), yaxis)


def _use(metric: str, data: series.ReplicaUse, clock: Clock, at_s: list[float]) -> Chart:
    drawing, x = DRAWINGS[metric], clock.x(at_s)
    largest = max(value or 0 for value in data.whole)
    unit, scale = next((unit, scale) for least, unit, scale in drawing.units if largest >= least)
    traces = [line(x, scaled(each.y, scale), each.name, colour_of(each.number)) for each in data.lines]
    caption = drawing.caption
    if data.replicas > len(data.lines):
        caption += f" {len(data.lines)} of {count(data.replicas)} replicas are drawn."
    name, yaxis = f"replicas-{metric.replace('_', '-')}", axis_title(f"{drawing.axis}{unit}")
    chart = Chart(name, drawing.title, caption, traces, clock.axis(), yaxis)
    if data.replicas > 1:
        how = "mean" if metric == THROTTLED else "sum"
        traces.append(line(x, scaled(data.whole, scale), f"{how} of all", INK, 2.2))
        # Next to the sum of many, each single one is a flat line.
        axis, chart.chosen = {"yaxis.autorange": True}, f"with the {how}"
        chart.choices = {
            chart.chosen: [{"visible": [True] * len(traces)}, axis],
            "replicas only": [{"visible": [*([True] * len(data.lines)), False]}, axis],
        }
    return chart
