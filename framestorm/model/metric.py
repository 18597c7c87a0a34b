"""Metrics of a run, declared once: name, unit, meaning, worse direction, and for a share the samples that it counts.

Criteria, studies (study.yml, results.csv), comparisons and pages use them. A statistic of a series has the names of
both: `mean_ms` and `p95_ms` are of the response time, `handler_p95_ms` is of the figure handler_ms that samples carry,
`tokens_p95` of tokens, `tokens_p95_per_s` of tokens_per_s; any figure that samples carry has such metrics. Those of one
label begin with it, in quotes if it has spaces: `login p95_ms`, `"log in" success`. `criteria.metric_name` gives these
names to the words of criteria: `login p95`, `handler mean`, `all errors`.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from framestorm.model import units
from framestorm.model.sample import FIGURE_WORDS, TIMES
from framestorm.model.units import NBSP
from framestorm.plain import as_label

Worse = Literal["higher", "lower"]
# Statistics of a series of times: the percentile if it is one (as text, nearest rank), and its name in words.
PERCENTILE = re.compile(r"p(\d+(?:\.\d+)?)")
PERCENTILES = {"median": "50", "p95": "95", "p99": "99"}
STATISTICS = {
    "mean": "mean", "median": "median", "p95": "p95", "p99": "p99", "sd": "standard deviation of",
    "min": "shortest", "max": "longest",
}  # fmt: skip
# The response time is the series with the empty name; every further figure that samples carry is also a series.
RESPONSE, OPEN, OUTSIDE, WARM, COLD, USER = "", "open", "outside", "warm", "cold", "user"
SERIES = {
    RESPONSE: ("response time", "response time"),
    OPEN: ("response time from the intended start", "response time from the intended start on"),
    OUTSIDE: ("time outside the handler", "response time without the time in the function's handler"),
    WARM: ("warm response time", "response time of the warm samples"),
    COLD: ("cold response time", "response time of the cold samples"),
    USER: ("user time", "time of a user from start to end"),
    **FIGURE_WORDS,
}
TIMES_OF_SAMPLES = (RESPONSE, OPEN, OUTSIDE, WARM, COLD, USER)
# The words of criteria: series that everyone knows, statistics of a series, and metrics of all samples, by their names
# in the catalogue.
COMMON_SERIES = ("rtt", "warm", "cold", "outside", *(name.removesuffix("_ms") for name in TIMES))
TIME_METRICS = ("mean", "median", "min", "max")
COUNT_METRICS = {"success": "success", "errors": "failed", "rate": "served_per_s", "n": "n"}
# Those of the whole load; after a rate may stand the word `rate`.
LOAD_METRICS = {
    "asked": "asked_per_s", "answered": "answered_per_s", "in_flight": "in_flight_max", "dropped": "dropped_arrivals",
    "goodput": "goodput",
}  # fmt: skip
ALIASES = {"failures": "errors"}
# The unit of a further figure or a derived metric follows from the end of its name.
SUFFIXES = {
    "_bytes_per_s": "bytes/s", "_per_s": "1/s", "_percent": "%", "_bytes": "bytes", "_ms": "ms", "_s": "s",
    "_share": "share",
}  # fmt: skip
_TEXTS: dict[str, Callable[[float], str]] = {
    "ms": units.duration, "s": lambda s: units.duration(1000 * s), "share": units.percent,
    "%": lambda percent: f"{units.significant(percent)}{NBSP}%", "1/s": units.rate, "bytes": units.size,
    "bytes/s": units.size_rate, "cores": lambda cores: f"{units.significant(cores, 2)}{NBSP}cores",
}  # fmt: skip
# A figure followed by one unit; does not match `2 min 05 s`.
_NUMBER = re.compile(r"(\N{MINUS SIGN}?[\d.,]+)(\D*)")
# A text in quotes; the quotation mark around it stands in it doubled.
IN_QUOTES = r"""(?:"(?:[^"]|"")*"|'(?:[^']|'')*')"""
_OF_LABEL = re.compile(rf"({IN_QUOTES}|\S+)\s+(\S+)")
_OF_SERIES = re.compile(
    rf"(?:(?P<stem>[a-z][a-z0-9_]*)_)?(?P<statistic>{'|'.join(STATISTICS)}|p\d+(?:\.\d+)?)(?P<suffix>{'|'.join(SUFFIXES)})?"
)


@dataclass(frozen=True)
class Metric:
    """A metric; a run's metrics are never below 0.

    unit: empty for plain numbers, "share" for 0 to 1, "yes or no" for a boolean.
    label: a few words without the unit, for a sentence or an axis.
    worse: which direction is worse; None: neither, or it is not known.
    counted_by: the metric that counts the samples of which it is a share, or some.
    series, statistic: for a statistic of what samples carry, its series and the statistic.
    """

    name: str
    unit: str
    label: str
    meaning: str = ""
    worse: Worse | None = None
    counted_by: str | None = None
    series: str | None = None
    statistic: str | None = None

    @property
    def is_share(self) -> bool:
        """Whether it is from 0 to 1; shares are compared by the difference in percentage points, not by the ratio."""
        return self.unit == "share"

    @property
    def is_time(self) -> bool:
        """Whether it is a length of time."""
        return self.unit in {"ms", "s"}

    @property
    def title(self) -> str:
        """The label with a capital letter, for the beginning of a sentence."""
        return self.label[:1].upper() + self.label[1:]

    def text(self, value: float | None) -> str:
        """Return a figure of this metric with its unit."""
        if value is None:
            return units.NONE
        sign, size = "\N{MINUS SIGN}" if value < 0 else "", abs(value)
        if self.unit in _TEXTS:
            return sign + _TEXTS[self.unit](size)
        return sign + (units.count(size) if float(size).is_integer() else units.significant(size))

    def change_text(self, change: float) -> str:
        """Return a difference of two figures with its sign."""
        sign = "+" if change > 0 else "\N{MINUS SIGN}" if change < 0 else ""
        if self.is_share:
            return f"{sign}{units.significant(abs(change) * 100)}{NBSP}points"
        return sign + self.text(abs(change))

    def ends_text(self, value: float, low: float | None, high: float | None) -> str:
        """Return an interval around `value`, without units if all three have the same one; empty if it has no ends."""
        parts = [_NUMBER.fullmatch(self.text(number)) for number in (value, low, high) if number]
        is_plain = None not in parts and len({part[2] for part in parts if part}) <= 1

        def shown(end: float | None) -> str | None:
            if end is None:
                return None
            return _NUMBER.sub(r"\1", self.text(end)) if is_plain or end == 0 else self.text(end)

        return units.ends(shown(low), shown(high))


def _of_series(series: str, statistic: str) -> Metric:
    stem, suffix = _split(series)
    is_time = suffix == "_ms"
    words = stem.replace("_", " ") + (" time" if is_time else "")
    label, meaning = SERIES.get(series, (words, f"figure {series} of the samples"))
    word = STATISTICS.get(statistic, statistic)
    word = word if is_time else {"min": "least", "max": "most"}.get(statistic, word)
    return Metric(
        column(series, statistic), unit(series), f"{word} {label}", f"{word} {meaning}",
        "higher" if is_time else None, None, series, statistic,
    )  # fmt: skip


def _times(series: str, *statistics: str) -> list[Metric]:
    return [_of_series(series, statistic) for statistic in statistics]


def _split(series: str) -> tuple[str, str]:
    """Return a series without its unit, and the end of its name that gives the unit."""
    if series in TIMES_OF_SAMPLES:
        return series, "_ms"
    suffix = next((suffix for suffix in SUFFIXES if series.endswith(suffix)), "")
    return series.removesuffix(suffix), suffix


def unit(series: str) -> str:
    """Return the unit of a series, by the end of its name."""
    return SUFFIXES.get(_split(series)[1], "")


def figure_label(name: str) -> str:
    """Return a figure of samples in words, by its column: `response time` is rtt_ms, `first token` first_token_ms."""
    series = RESPONSE if name == "rtt_ms" else name
    return SERIES[series][0] if series in SERIES else name.removesuffix("_ms").replace("_", " ")


def percentile(statistic: str) -> str | None:
    """Return the percentile that a statistic is, as text; None if it is none."""
    return PERCENTILES.get(statistic) or (statistic[1:] if PERCENTILE.fullmatch(statistic) else None)


def column(series: str, statistic: str) -> str:
    """The name of a series' statistic: `handler_ms`, `mean` give `handler_mean_ms`; the response time `mean_ms`."""
    stem, suffix = _split(series)
    return f"{stem}_{statistic}{suffix}" if stem else f"{statistic}{suffix}"


_STEMS_OF_TIMES = {_split(series)[0] for series in SERIES if unit(series) == "ms"}
CATALOGUE = (
    Metric("n_sent", "", "samples sent", "samples recorded, those rejected included"),
    Metric("n", "", "samples", "samples counted, after rejection"),
    Metric("ok", "", "samples without error", "samples without error", "lower", "n"),
    Metric("failed", "", "errors", "samples with an error, timeouts included", "higher", "n"),
    Metric("timed_out", "", "timeouts", "samples that timed out", "higher", "n"),
    Metric("success", "share", "success rate", "share of the samples without error", "lower", "n"),
    Metric("rejected_warm_up", "", "rejected in the warm-up", "samples rejected because they started in the warm-up"),
    Metric("rejected_cold", "", "rejected as cold", "samples rejected because a cold replica answered them"),
    Metric("rejected_warm", "", "rejected as warm", "samples rejected because a warm replica answered them"),
    *_times(RESPONSE, "mean", "sd", "min", "median", "p95", "p99", "max"),
    Metric(
        "mean_is_lower_bound", "yes or no", "mean is a lower bound", "whether timeouts are in the mean, as lower bounds"
    ),
    *_times(OPEN, "mean", "median", "p95", "p99"),
    *_times(OUTSIDE, "mean", "median", "p95", "p99", "sd"),
    *(each for name in TIMES for each in _times(name, "mean", "median", "p95", "p99", "sd")),
    Metric("users", "", "users", "users that ran"),
    Metric("user_success", "share", "success rate of users", "share of the users without any error", "lower", "users"),
    *_times(USER, "mean", "median", "p95"),
    Metric("asked_per_s", "1/s", "requested rate", "arrival rate that the plan was set to"),
    Metric("offered_per_s", "1/s", "offered rate", "samples sent, by the span of their starts"),
    Metric("served_per_s", "1/s", "served rate", "samples without error, by the span in which answers could come",
           "lower"),
    Metric("answered_per_s", "1/s", "answered rate",
           "samples without error, by a span as long as that of their starts, one median response time later", "lower"),
    Metric("in_flight_max", "", "requests in flight, peak", "most samples that were in flight at a time"),
    Metric("dropped_arrivals", "", "dropped arrivals", "arrivals that were due and never sent", "higher"),
    Metric("goodput", "share", "goodput", "share of the samples that met every objective of the property goodput",
           "lower", "n"),
    Metric("good_per_s", "1/s", "rate of good samples", "samples that met every objective of the property goodput",
           "lower"),
    Metric("total_s", "s", "total time", "from the first start to the last end", "higher"),
    Metric("workers_seen", "", "replicas that answered", "replicas that answered"),
    Metric("worker_share_max", "share", "largest share of a replica", "share of samples of the busiest replica"),
    Metric("worker_share_min", "share", "smallest share of a replica", "share of samples of the least busy replica"),
    Metric("worker_cores_max", "cores", "cores of the busiest replica", "mean CPU of the busiest replica"),
    Metric("worker_cores_min", "cores", "cores of the least busy replica", "mean CPU of the least busy replica"),
    Metric("worker_network_max_bytes_per_s", "bytes/s", "largest traffic of a replica",
           "bytes received and sent by the replica with the most traffic"),
    Metric("worker_network_min_bytes_per_s", "bytes/s", "smallest traffic of a replica",
           "bytes received and sent by the replica with the least traffic"),
    Metric("replicas_max", "", "replicas, peak", "most replicas that were ready at a time"),
    Metric("target_cores_mean", "cores", "cores of the target", "mean CPU of all replicas together"),
    Metric("target_memory_max_bytes", "bytes", "memory of a replica", "most memory that a replica held", "higher"),
    Metric("throttled_mean", "share", "CPU throttling",
           "mean share of the 100 ms periods in which replicas used up their CPU limit"),
    Metric("generator_cores_mean", "cores", "cores of the generator", "mean CPU of the load generator"),
    Metric("host_busy_time", "share", "time saturated",
           "share of the time with at least 90 % of the machine's cores in use"),
    Metric("warnings", "", "warnings", "warnings on the run's own page", "higher"),
)  # fmt: skip
BY_NAME = {metric.name: metric for metric in CATALOGUE}
METRICS = tuple(BY_NAME)
# Columns of results.csv in addition to factors and metrics.
RESULT_COLUMNS = ("study", "point", "repetition", "run", "state", "reason", "cut_off")


def metric(name: str) -> Metric:
    """Return the metric of that name: from the catalogue, of a further figure, or derived by a study.

    The unit of a derived metric follows from the end of its name. A longer time is worse; otherwise it is not known
    which direction is worse.
    """
    if name in BY_NAME:
        return BY_NAME[name]
    label, rest = split_label(name)
    if label is not None:
        base = metric(rest)
        counted_by = of_label(label, base.counted_by) if base.counted_by else None
        return replace(base, name=name, label=f"{base.label} of {as_label(label)}", counted_by=counted_by)
    if is_of_run(name) and (parts := _OF_SERIES.fullmatch(name)):
        stem, suffix = parts["stem"], parts["suffix"] or ""
        is_other = not stem or (stem in TIMES_OF_SAMPLES and suffix == "_ms")
        return _of_series(stem or RESPONSE if is_other else f"{stem}{suffix}", parts["statistic"])
    stem, suffix = _split(name)
    words = (name if suffix == "_share" else stem).replace("_", " ")
    return Metric(name, unit(name), words, worse="higher" if suffix == "_ms" else None)


def of_label(label: str, name: str) -> str:
    """Return the name of a metric of one label."""
    return f"{quoted(label)} {name}"


def beside(name: str, other: str) -> str:
    """Another metric of the samples that a metric is of: `n` of those of `login p95_ms` is `login n`."""
    label, _ = split_label(name)
    return other if label is None else of_label(label, other)


def split_label(name: str) -> tuple[str | None, str]:
    """Return the label of a metric and its name without; None: it is of the main samples."""
    match = _OF_LABEL.fullmatch(name.strip())
    return (unquoted(match[1]), match[2]) if match else (None, name)


def quoted(label: str) -> str:
    """A label as criteria and metrics name it; in quotes also where it could be read as another of their words."""
    word = label.lower()
    is_known = (
        word in {*COMMON_SERIES, *TIME_METRICS, *COUNT_METRICS, *LOAD_METRICS, *ALIASES}
        or unit(word)
        or percentile(word)
    )
    is_word = is_known and label != USER
    if re.fullmatch(r"[^\W\d][\w.-]*", label) and not is_word:
        return label
    mark = "'" if '"' in label else '"'
    return mark + label.replace(mark, 2 * mark) + mark


def unquoted(word: str) -> str:
    """Return the label that a word of a criterion names, in quotes or not."""
    mark = word[:1]
    return word[1:-1].replace(2 * mark, mark) if re.fullmatch(IN_QUOTES, word) else word


def is_rounded(name: str) -> bool:
    """Return whether it is a time of a run's samples, which may have been taken in whole milliseconds."""
    return is_of_run(name) and metric(name).unit == "ms"


def is_of_run(name: str) -> bool:
    """Return whether a run may have a metric of that name: from the catalogue, or of a further figure of its samples.

    `handler_mean` is more likely a slip for handler_mean_ms than a figure `handler`.
    """
    _, rest = split_label(name)
    parts = _OF_SERIES.fullmatch(rest)
    if rest in BY_NAME or parts is None:
        return rest in BY_NAME
    lacks_unit = parts["stem"] is None or parts["stem"] in _STEMS_OF_TIMES
    return parts["suffix"] == "_ms" if lacks_unit else True
