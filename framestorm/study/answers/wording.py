"""Metrics, levels and figures as a reader of the page has them: names, units, intervals."""

import re
from collections.abc import Mapping
from typing import Any

from framestorm.report import units
from framestorm.report.units import NBSP
from framestorm.study.design.metrics import BY_NAME

# A figure with one unit after it, not `2 min 05 s`.
NUMBER = re.compile(r"(\N{MINUS SIGN}?[\d.,]+)(\D*)")
# Of a derived metric the unit is known by its name.
SUFFIXES = {
    "_bytes_per_s": "bytes/s",
    "_per_s": "1/s",
    "_percent": "%",
    "_bytes": "bytes",
    "_ms": "ms",
    "_s": "s",
    "_share": "share",
}
AXES = {
    "success": "answered rightly", "served_per_s": "served", "asked_per_s": "asked", "offered_per_s": "offered",
    "p95_ms": "95th percentile", "p99_ms": "99th percentile", "mean_ms": "mean round trip",
    "user_success": "users right",
    "median_ms": "median round trip", "sd_ms": "standard deviation", "worker_share_max": "largest share of a worker",
    "worker_share_min": "smallest share of a worker", "timed_out": "timed out", "total_s": "total time",
    "user_mean_ms": "mean time of a user", "user_median_ms": "median time of a user", "replicas_max": "replicas, most",
    "handler_mean_ms": "mean time in the handler", "model_mean_ms": "mean time in the model",
    "worker_cores_max": "cores of the busiest worker", "worker_cores_min": "cores of the least busy worker",
    "worker_network_max_bytes_per_s": "most traffic of a worker",
    "worker_network_min_bytes_per_s": "least traffic of a worker",
    "target_cores_mean": "cores of the target", "target_memory_max_bytes": "memory of a replica",
    "throttled_mean": "held back by the CPU limit", "dropped_arrivals": "arrivals dropped",
    "open_p99_ms": "99th percentile from the intended start",
}  # fmt: skip


def unit(metric: str) -> str:
    """The unit of a metric, as in the catalogue; of a derived one by the end of its name."""
    if metric in BY_NAME:
        return BY_NAME[metric].unit
    return next((of for suffix, of in SUFFIXES.items() if metric.endswith(suffix)), "")


def label(metric: str) -> str:
    """A metric's name without its unit: `mean round trip`, `start share`."""
    if metric in AXES:
        return AXES[metric]
    name = next((metric.removesuffix(end) for end in SUFFIXES if end != "_share" and metric.endswith(end)), metric)
    return name.replace("_", " ")


def show(metric: str, value: float | None) -> str:
    """A figure of `metric` with its unit."""
    if value is None:
        return units.NONE
    sign = "\N{MINUS SIGN}" if value < 0 else ""
    size = abs(value)
    match unit(metric):
        case "ms":
            return sign + units.duration(size)
        case "s":
            return sign + units.duration(1000 * size)
        case "share":
            return sign + units.percent(size)
        case "%":
            return f"{sign}{units.significant(size)}{NBSP}%"
        case "1/s":
            return sign + units.rate(size)
        case "bytes":
            return sign + units.size(size)
        case "bytes/s":
            return f"{sign}{units.size(size)}/s"
        case "cores":
            return f"{sign}{units.significant(size, 2)}{NBSP}cores"
    return sign + (units.count(size) if float(size).is_integer() else units.significant(size))


def ends(metric: str, value: float, low: float | None, high: float | None) -> str:
    """An interval from low to high around `value`, without units where all three have the same; empty without one."""
    parts = [NUMBER.fullmatch(show(metric, number)) for number in (value, low, high) if number]
    is_plain = None not in parts and len({part[2] for part in parts if part}) <= 1

    def shown(end: float | None) -> str | None:
        if end is None:
            return None
        return NUMBER.sub(r"\1", show(metric, end)) if is_plain or end == 0 else show(metric, end)

    return units.ends(shown(low), shown(high))


def level(value: Any) -> str:
    """A level of a factor."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)


def speaks(text: str) -> bool:
    """Whether a level says by itself what it is of; `on`, `none` and numbers need the factor's name before them."""
    return text[:1].isalpha() and text not in ("on", "off", "none", "yes", "no")


def factor(name: str) -> str:
    """A factor's name in a sentence: `sleep_s` stays what it is in study.yml, `target.replicas` is `replicas`."""
    return name.removeprefix("target.")


def named_level(name: str, value: Any) -> str:
    """A level with its factor: `sleep 5 s`, `rate 50/s`, `users 9`, `way: fork`."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return f"{factor(name)}: {level(value)}"
    base, of = _split(factor(name))
    return f"{base} {level(value)}{of}"


def axis(name: str) -> str:
    """A factor as the title of an axis: `sleep (s)`."""
    base, of = _split(factor(name))
    return f"{base} ({of.strip().replace('/s', 'per second')})" if of else base


def _split(name: str) -> tuple[str, str]:
    for end, of in (("_per_s", "/s"), ("_ms", f"{NBSP}ms"), ("_s", f"{NBSP}s")):
        if name.endswith(end):
            return name.removesuffix(end).replace("_", " "), of
    return name.replace("_", " "), ""


def settings(factors: Mapping[str, Any]) -> str:
    """`users=1, sleep_s=0`; lists of levels as `users=4, 5, 6`."""
    parts = []
    for name, value in factors.items():
        many = value if isinstance(value, list | tuple) else [value]
        parts.append(f"{factor(name)}={' or '.join(level(one) for one in many) if len(many) < 4 else _span(many)}")
    return ", ".join(parts)


def _span(levels: list[Any] | tuple[Any, ...]) -> str:
    return f"{level(levels[0])} to {level(levels[-1])}"
