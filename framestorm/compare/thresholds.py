"""Thresholds of a comparison: how much worse a metric of the candidate may be before it is a regression."""

import re
from collections.abc import Sequence

from framestorm.errors import UsageError
from framestorm.inference.contrasts import Threshold
from framestorm.model.metric import PERCENTILES, SERIES, column, metric

# A tenth is what separate runs on a quiet machine may differ by; a point of success is one failure in a hundred.
ALWAYS = "success 1 point"
DEFAULTS = ("mean 10 %", "median 10 %", "p95 10 %", ALWAYS)
EXAMPLES = "'mean 5 %', 'handler p95 10 %', 'success 1 point', 'rate 5 %'"
SHORT_NAMES = {"rate": "served_per_s", "served": "served_per_s", "errors": "failed"}
_FORM = re.compile(r"\s*(?P<metric>[a-z][\w ]*?)\s+(?P<limit>\d+(?:\.\d+)?)\s*(?P<unit>%|points?)\s*", re.IGNORECASE)


def parse_all(texts: Sequence[str]) -> list[Threshold]:
    """The thresholds of a comparison; success is always among them, for times alone look better the more fail.

    Raises:
        UsageError: as `parse`.
    """
    chosen = [parse(text) for text in texts or DEFAULTS]
    success = parse(ALWAYS)
    return chosen if any(each.metric == success.metric for each in chosen) else [*chosen, success]


def parse(text: str) -> Threshold:
    """Read `metric limit unit`.

    Raises:
        UsageError: it is not understood; the message says what is allowed.
    """
    match = _FORM.fullmatch(text)
    if match is None:
        raise UsageError(f"--threshold {text!r}: expected a metric, a number and % or points, e.g. {EXAMPLES}")
    about = metric(metric_name(match["metric"]))
    if about.worse is None:
        raise UsageError(
            f"--threshold {text!r}: it is not known which way {match['metric']!r} gets worse; give a time (mean, "
            "median, p95, p99, also of handler, model or user), success or rate, or a study metric with a direction"
        )
    if about.is_share == (match["unit"] == "%"):
        unit = "points, e.g. 'success 1 point'" if about.is_share else "%, e.g. 'mean 5 %'"
        raise UsageError(f"--threshold {text!r}: {match['metric']} is compared in {unit}")
    limit = float(match["limit"]) / 100
    if about.worse == "lower" and limit >= 1:
        raise UsageError(
            f"--threshold {text!r}: {match['metric']} cannot fall by 100 % or more, so it would never be a regression"
        )
    return Threshold(" ".join(text.split()), about.name, limit)


def metric_name(words: str) -> str:
    """The metric's name for what a person writes: `p95`, `handler mean`, `success`, `rate`, or the name itself."""
    name = "_".join(words.lower().split())
    series, _, statistic = name.rpartition("_")
    series = {"frame": "", "rtt": ""}.get(series, series)
    if statistic in {"mean", *PERCENTILES} and series in SERIES:
        return column(series, statistic)
    return SHORT_NAMES.get(name, name)
