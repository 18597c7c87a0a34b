"""Charts of the function's replicas: how many there were, and what each of them held."""

from collections.abc import Sequence
from typing import NamedTuple

from framestorm.model.series import ReplicasOverTime, ReplicaUse, Values
from framestorm.model.units import count
from framestorm.report.figure import (
    BAD,
    INK,
    LINE_COLOURS,
    MAIN,
    Chart,
    Clock,
    Json,
    axis_title,
    dots,
    line,
    scaled,
)
from framestorm.results.replicas import NETWORK, THROTTLED


class Drawing(NamedTuple):
    """How a metric of replicas is drawn: units by the smallest value from which on each fits."""

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
        "Share of the periods of 100 ms, over the last 10 s, in which a replica used up its CPU limit and had to wait "
        "for the next: response times then measure the limit.",
        ((0.0, "", 0.01),),
    ),
    "memory_bytes": Drawing(
        "Memory of replicas",
        "memory",
        "Memory of each replica. A line that keeps rising under a steady load is a leak; where a line ends, the "
        "replica ended.",
        ((1e10, " (GB)", 1e9), (0.0, " (MB)", 1e6)),
    ),
    NETWORK: Drawing(
        "Network traffic of replicas",
        "received and sent",
        "Bytes that each replica received and sent, mean of the last 10 s, including the headers of all layers.",
        ((1e6, " (MB/s)", 1e6), (0.0, " (kB/s)", 1e3)),
    ),
}


def replica_charts(data: ReplicasOverTime, clock: Clock) -> list[Chart]:
    """The charts that there are metrics for."""
    throttled = data.use.get(THROTTLED)
    is_throttled = throttled is not None and any(throttled.whole)
    drawn = [_counts(data, clock)]
    for name in DRAWINGS:
        if name in data.use and (name != THROTTLED or is_throttled):
            drawn.append(_by_replica(name, data.use[name], clock, data.x))
            if name == "cpu_cores" and throttled is not None and not is_throttled:
                drawn[-1].caption += " None was throttled by a CPU limit."
    return drawn


def _counts(data: ReplicasOverTime, clock: Clock) -> Chart:
    x, alone = clock.x(data.x), len(data.counts) == 1
    traces: list[Json] = []
    short_x: Values = []
    short_y: Values = []
    for number, (function, of) in enumerate(data.counts.items()):
        prefix, colour = ("", MAIN) if alone else (f"{function} ", LINE_COLOURS[number])
        traces.append(line(x, of.ready, f"{prefix}ready", colour, 2, shape="hv"))
        traces.append(line(x, of.wanted, f"{prefix}wanted", INK if alone else colour, dash="dash", shape="hv"))
        short = [(at, value) for at, value in zip(x, of.short, strict=True) if value is not None]
        short_x += [at for at, _ in short]
        short_y += [value for _, value in short]
    if short_x:
        traces.append(dots(short_x, short_y, "fewer ready than wanted", BAD, symbol="diamond", size=7))
    most = max((value or 0 for of in data.counts.values() for value in (*of.wanted, *of.ready)), default=0)
    caption = "Replicas wanted, and those ready for requests."
    if data.of_functions > len(data.counts):
        caption += f" The {len(data.counts)} busiest of {count(data.of_functions)} functions are drawn."
    return Chart(
        name="replicas-over-time",
        title="Replicas over time",
        caption=caption,
        traces=traces,
        xaxis=clock.axis(),
        yaxis=axis_title("replicas") | ({"dtick": 1, "range": [0, most + 0.5]} if most <= 8 else {}),
    )


def _by_replica(name: str, data: ReplicaUse, clock: Clock, at_s: list[float]) -> Chart:
    metric, x = DRAWINGS[name], clock.x(at_s)
    largest = max(value or 0 for value in data.whole)
    unit, scale = next((unit, scale) for least, unit, scale in metric.units if largest >= least)
    traces = [
        line(x, scaled(each.y, scale), each.name, LINE_COLOURS[each.number % len(LINE_COLOURS)]) for each in data.lines
    ]
    choices: dict[str, list[Json]] = {}
    if data.replicas > 1:
        how = "mean" if name == THROTTLED else "sum"
        traces.append(line(x, scaled(data.whole, scale), f"{how} of all", INK, 2.2))
        # Under the sum of many, each of them is a flat line.
        axis = {"yaxis.autorange": True}
        choices = {
            f"with the {how}": [{"visible": [True] * len(traces)}, axis],
            "replicas only": [{"visible": [*([True] * len(data.lines)), False]}, axis],
        }
    caption = metric.caption
    if data.replicas > len(data.lines):
        caption += f" {len(data.lines)} of {count(data.replicas)} replicas are drawn."
    return Chart(
        name=f"replicas-{name.replace('_', '-')}",
        title=metric.title,
        caption=caption,
        traces=traces,
        xaxis=clock.axis(),
        yaxis=axis_title(f"{metric.axis}{unit}"),
        choices=choices,
        chosen=next(iter(choices), ""),
    )
