"""Criteria: `--fail-if '[label] [series] metric op value [unit]'`, parsed, and judged by what was measured.

A criterion names what must NOT hold: `frame p95 > 2 s` fails the run if the 95th percentile is above 2 s. One that
cannot be judged (no samples; a time-out hides the figure) fails too and says why: never a pass by lack of data.
"""

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from framestorm.errors import UsageError
from framestorm.report import units
from framestorm.report.estimate import Estimate, Times
from framestorm.report.unit import FRAME
from framestorm.report.unit import UNITS as UNIT_LABELS

UNIT_SERIES = ("rtt", "warm", "cold", "outside", "handler", "model")
SERIES = {**dict.fromkeys(UNIT_LABELS, UNIT_SERIES), "user": ("duration",)}
TIME_METRICS = ("mean", "median", "min", "max")
COUNT_METRICS = ("success", "failures", "rate", "n")
METRICS_HELP = "success, failures, mean, median, p50 … p99.9 (any pX), min, max, rate, n"
UNITS = {
    "time": {"ms": 1.0, "s": 1000.0, "min": 60_000.0},
    "success": {"%": 0.01},
    "failures": {"": 1.0, "%": 0.01},
    "rate": {"/s": 1.0, "/min": 1 / 60},
    "n": {"": 1.0},
}
OPERATORS: dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}
EXAMPLES = "'frame p95 > 2 s', 'frame success < 99 %', 'user mean > 30 s', 'frame rate < 5/s'"
_TOKEN = re.compile(r"\s*(?:(?P<op>[<>=!]+)|(?P<number>-?\d+(?:\.\d+)?)|(?P<word>%|/?[^\W\d][\w.,-]*|\S))")


class CriteriaError(UsageError):
    """A criterion that is not understood; the message shows it with a mark under the word and what is allowed."""

    def __init__(self, text: str, start: int, end: int, problem: str) -> None:
        mark = " " * start + "^" * max(1, end - start)
        super().__init__(f"--fail-if: {problem}\n  {text}\n  {mark}")


@dataclass(frozen=True)
class Criterion:
    """`limit` is in ms, a ratio, events a second or a count, after the metric; `percent` is set for percentiles."""

    text: str
    label: str
    series: str
    metric: str
    percent: str | None
    op: str
    limit: float
    unit: str


@dataclass
class Group:
    """What was measured of one label: `user`, or the run's unit."""

    label: str
    n: int = 0
    ok: int = 0
    rate_per_s: float | None = None
    samples: Mapping[str, Times] = field(default_factory=dict)


@dataclass(frozen=True)
class Judgement:
    """A criterion and how it came out; `measured` is a figure in words."""

    criterion: Criterion
    state: Literal["passed", "failed", "unjudged"]
    measured: str
    value: float | None
    bound: str | None
    why: str

    def as_json(self) -> dict[str, Any]:
        """As it stands in summary.json."""
        return {
            "text": self.criterion.text,
            "label": self.criterion.label,
            "series": self.criterion.series,
            "metric": self.criterion.metric,
            "op": self.criterion.op,
            "limit": self.criterion.limit,
            "state": self.state,
            "value": self.value,
            "bound": self.bound,
            "measured": self.measured,
            "why": self.why,
        }


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    start: int
    end: int


class _Words:
    """The tokens of one criterion, taken one after the other; every complaint points at one of them."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._tokens = [
            _Token(
                match.lastgroup or "", match.group(match.lastgroup or 0), match.start(match.lastgroup or 0), match.end()
            )
            for match in _TOKEN.finditer(text.rstrip())
        ]

    def peek(self) -> _Token:
        end = len(self.text.rstrip())
        return self._tokens[0] if self._tokens else _Token("end", "", end, end + 1)

    def take(self) -> _Token:
        token = self.peek()
        del self._tokens[:1]
        return token

    def error(self, token: _Token, problem: str) -> CriteriaError:
        return CriteriaError(self.text, token.start, token.end, problem)


def parse(text: str, unit: str = FRAME) -> Criterion:
    """Parse one criterion, which is of the run's `unit` where it names no label; raises CriteriaError."""
    words = _Words(text)
    if words.peek().kind == "end":
        raise words.error(words.peek(), f"an empty criterion; give one such as {EXAMPLES}")
    labelled = words.take() if words.peek().text.lower() in SERIES else None
    label = labelled.text.lower() if labelled else unit
    named = words.take() if words.peek().text.lower() in SERIES[label] else None
    series = named.text.lower() if named else SERIES[label][0]
    metric, percent = _metric(words, labelled, named)
    sign = words.take()
    if sign.text not in OPERATORS:
        raise words.error(sign, f"expected one of {', '.join(OPERATORS)} after '{metric}', got {_seen(sign)}")
    limit, unit = _limit(words, metric)
    rest = words.peek()
    if rest.kind != "end":
        raise words.error(rest, f"'{rest.text}' is too much; a criterion ends after the unit")
    return Criterion(" ".join(text.split()), label, series, metric, percent, sign.text, limit, unit)


def _metric(words: _Words, label: _Token | None, series: _Token | None) -> tuple[str, str | None]:
    token = words.take()
    name = token.text.lower()
    percentile = re.fullmatch(r"p(\d+(?:\.\d+)?)", name)
    if percentile:
        if not 0 < float(percentile[1]) < 100:
            raise words.error(token, f"'{token.text}' is no percentile: p0 and p100 are min and max")
        return name, percentile[1]
    if name in TIME_METRICS:
        return name, "50" if name == "median" else None
    if name in COUNT_METRICS:
        if series:
            problem = f"'{series.text}' goes with times only; {name} is of all of them: leave '{series.text}' out"
            raise words.error(series, problem)
        return name, None
    allowed = []
    if not label and not series:
        allowed.append(f"a label (user, {', '.join(UNIT_LABELS)})")
    if not series and not (label and label.text.lower() == "user"):
        allowed.append(f"a series of times ({', '.join(UNIT_SERIES)})")
    allowed.append(f"a metric ({METRICS_HELP})")
    raise words.error(token, f"expected {' or '.join(allowed)}; got {_seen(token)}")


def _limit(words: _Words, metric: str) -> tuple[float, str]:
    token = words.take()
    if token.kind != "number":
        raise words.error(token, f"expected a number such as 2 or 0.5, got {_seen(token)}")
    if token.text.startswith("-"):
        raise words.error(token, f"{token.text} is below 0, and nothing measured here can be")
    allowed = UNITS["time" if metric not in UNITS else metric]
    unit = words.peek()
    name = unit.text.lower()
    if name not in allowed:
        listed = " or ".join(f"'{u}'" if u else "no unit" for u in allowed)
        raise words.error(unit, f"{metric} is given in {listed}, got {_seen(unit)}")
    if name:
        words.take()
    value = float(token.text)
    if name == "%" and value > 100:
        raise words.error(token, f"{token.text} % is more than all of them")
    return value * allowed[name], name


def _seen(token: _Token) -> str:
    return "nothing" if token.kind == "end" else f"'{token.text}'"


def judge(criterion: Criterion, groups: Mapping[str, Group]) -> Judgement:
    """Judge a criterion by the groups measured; without samples it is `unjudged`, which counts as failed."""
    group = groups.get(criterion.label) or Group(criterion.label)
    if not group.n and criterion.metric != "n":
        why = f"no {criterion.label} was measured, so it cannot be judged and counts as failed"
        return Judgement(criterion, "unjudged", "no samples", None, None, why)
    figure = _measure(criterion, group)
    if figure is None:
        why = f"no {criterion.label} has a {criterion.series} time, so it cannot be judged and counts as failed"
        return Judgement(criterion, "unjudged", "no samples", None, None, why)
    measured = _in_words(criterion, figure)
    beyond = figure.value > criterion.limit or (figure.value == criterion.limit and criterion.op in (">=", "<"))
    if figure.bound == "lower" and not beyond:
        why = (
            f"time-outs hide the figure: it is above {units.duration(figure.value)}, but on which side of the limit is "
            "not known; counts as failed"
        )
        return Judgement(criterion, "unjudged", measured, figure.value, figure.bound, why)
    # A lower bound beyond the limit settles it: the true figure is no smaller.
    held = (
        criterion.op in (">", ">=")
        if figure.bound == "lower"
        else OPERATORS[criterion.op](figure.value, criterion.limit)
    )
    why = "" if not held else f"{criterion.text} holds: measured {measured}"
    return Judgement(criterion, "failed" if held else "passed", measured, figure.value, figure.bound, why)


def _measure(criterion: Criterion, group: Group) -> Estimate | None:
    metric = criterion.metric
    if metric == "n":
        return Estimate(float(group.n))
    if metric == "success":
        return Estimate(group.ok / group.n)
    if metric == "failures":
        failed = group.n - group.ok
        return Estimate(failed / group.n if criterion.unit == "%" else float(failed))
    if metric == "rate":
        return None if group.rate_per_s is None else Estimate(group.rate_per_s)
    sample = group.samples.get(criterion.series)
    if sample is None:
        return None
    if criterion.percent is not None:
        return sample.percentile(criterion.percent)
    if metric == "mean":
        return sample.mean()
    return sample.extreme(largest=metric == "max")


def _in_words(criterion: Criterion, figure: Estimate) -> str:
    if criterion.metric in ("success", "failures") and criterion.unit == "%":
        return units.percent(figure.value)
    if criterion.metric == "rate":
        return units.rate(figure.value)
    if criterion.metric in COUNT_METRICS:
        return units.count(figure.value)
    return ("> " if figure.bound == "lower" else "") + units.duration(figure.value)
