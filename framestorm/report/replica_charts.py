"""Charts of OpenFaaS's replicas: how many there were, and what each of them held."""

from typing import Any

from framestorm.report.figure import BAD, INK, LINE_COLOURS, MAIN, Chart, Clock, Trace, axis_title, dots, line
from framestorm.report.replica_use import NETWORK
from framestorm.report.units import count

SHARE = "cpu_throttled_share"


def replica_charts(data: dict[str, Any], clock: Clock) -> list[Chart]:
    """The charts that there are metrics for."""
    found = [_counts(data, clock)]
    if "in_flight" in data:
        found.append(
            _by_replica(
                data, clock, "in_flight", "Requests in each replica", "requests in flight",
                "Requests that were given to a replica and not yet answered. One line above the others is a balancer "
                "that does not share out evenly.",
            )
        )  # fmt: skip
    throttled = SHARE in data and any(data[SHARE]["whole"])
    if "cpu_cores" in data:
        caption = "Cores that each replica kept busy, mean of the last 10 s."
        if SHARE in data and not throttled:
            caption += " None was held back by a CPU limit."
        found.append(_by_replica(data, clock, "cpu_cores", "Processor use of replicas", "cores busy", caption))
    if throttled:
        found.append(
            _by_replica(
                data, clock, SHARE, "Replicas held back by their CPU limit", "periods held back (%)",
                "Share of the periods of 100 ms, over the last 10 s, in which a replica used up its CPU limit and had "
                "to wait for the next: round trips then measure the limit.",
                scale=0.01,
            )
        )  # fmt: skip
    if "memory_bytes" in data:
        unit, scale = ("GB", 1e9) if max(value or 0 for value in data["memory_bytes"]["whole"]) >= 1e10 else ("MB", 1e6)
        found.append(
            _by_replica(
                data, clock, "memory_bytes", "Memory of replicas", f"memory ({unit})",
                "Memory of each replica. A line that keeps rising under an even load is a leak; where a line ends, the "
                "replica did.",
                scale=scale,
            )
        )  # fmt: skip
    if NETWORK in data:
        unit, scale = ("MB/s", 1e6) if max(value or 0 for value in data[NETWORK]["whole"]) >= 1e6 else ("kB/s", 1e3)
        found.append(
            _by_replica(
                data, clock, NETWORK, "Network of replicas", f"received and sent ({unit})",
                "Bytes that each replica received and sent, mean of the last 10 s, headers of all layers included.",
                scale=scale,
            )
        )  # fmt: skip
    return found


def _counts(data: dict[str, Any], clock: Clock) -> Chart:
    x, counts = clock.x(data["x"]), data["counts"]
    traces: list[Trace] = []
    short: dict[str, list[Any]] = {"x": [], "y": []}
    for number, (function, of) in enumerate(counts.items()):
        alone = len(counts) == 1
        wanted, ready = ("wanted", "ready") if alone else (f"{function} wanted", f"{function} ready")
        colour = LINE_COLOURS[number]
        traces.append(line(x, of["ready"], ready, MAIN if alone else colour, 2, shape="hv"))
        traces.append(line(x, of["wanted"], wanted, INK if alone else colour, dash="dash", shape="hv"))
        for at, value in zip(x, of["short"], strict=True):
            if value is not None:
                short["x"].append(at)
                short["y"].append(value)
    if short["x"]:
        traces.append(dots(short["x"], short["y"], "fewer ready than wanted", BAD, symbol="diamond", size=7))
    most = max((value or 0 for of in counts.values() for name in ("wanted", "ready") for value in of[name]), default=0)
    caption = "Replicas that were asked for, and those that took requests."
    if data["of_functions"] > len(counts):
        caption += f" Of {count(data['of_functions'])} functions, the {len(counts)} busiest."
    return Chart(
        name="replicas-over-time",
        title="Replicas over time",
        caption=caption,
        traces=traces,
        xaxis=clock.axis(),
        yaxis=axis_title("replicas") | ({"dtick": 1, "range": [0, most + 0.5]} if most <= 8 else {}),
    )


def _by_replica(
    data: dict[str, Any], clock: Clock, metric: str, title: str, what: str, caption: str, scale: float = 1
) -> Chart:
    part, x = data[metric], clock.x(data["x"])
    traces = [
        line(x, _scaled(each["y"], scale), each["name"], LINE_COLOURS[each["number"] % len(LINE_COLOURS)])
        for each in part["lines"]
    ]
    choices: dict[str, list[Any]] = {}
    if part["replicas"] > 1:
        how = "mean" if metric == SHARE else "sum"
        traces.append(line(x, _scaled(part["whole"], scale), f"{how} of all", INK, 2.2))
        # Under the sum of many, each of them is a flat line.
        axis = {"yaxis.autorange": True}
        choices = {
            f"with the {how}": [{"visible": [True] * len(traces)}, axis],
            "each alone": [{"visible": [*([True] * len(part["lines"])), False]}, axis],
        }
    if part["replicas"] > len(part["lines"]):
        caption += f" {len(part['lines'])} of {count(part['replicas'])} replicas have a line."
    return Chart(
        name=f"replicas-{metric.replace('_', '-')}",
        title=title,
        caption=caption,
        traces=traces,
        xaxis=clock.axis(),
        yaxis=axis_title(what),
        choices=choices,
        chosen=next(iter(choices), ""),
    )


def _scaled(values: list[float | None], scale: float) -> list[float | None]:
    return [None if value is None else float(f"{value / scale:.5g}") for value in values]
