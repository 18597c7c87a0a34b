"""Criteria: `--fail-if '[label] [series] metric op value [unit]'`, parsed, and judged by what was measured.

The series is `rtt` (the response time, which may be left out), `warm`, `cold`, `outside`, or any further figure in ms
that samples carry, by its full name (`first_token_ms`); `handler` and `model` need no `_ms`.

A criterion names what must NOT hold: `frame p95 > 2 s` fails the run if the 95th percentile is above 2 s. One that
cannot be judged (no samples; a timeout hides the figure) fails too and says why: never a pass by lack of data.
"""

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from framestorm.errors import UsageError
from framestorm.model import units
from framestorm.model.metric import metric
from framestorm.stats.estimate import Bound, Estimate, Times

SAMPLE_SERIES = ("rtt", "warm", "cold", "outside", "handler", "model")
USER = "user"
USER_SERIES = ("duration",)
TIME_METRICS = ("mean", "median", "min", "max")
# Metrics of all samples, not of a series of times, by their names in the catalogue.
COUNT_METRICS = {"success": "success", "errors": "failed", "rate": "served_per_s", "n": "n"}
ALIASES = {"failures": "errors"}
METRICS_HELP = "success, errors, mean, median, p50 … p99.9 (any pX), min, max, rate, n"
UNITS = {
    "time": {"ms": 1.0, "s": 1000.0, "min": 60_000.0},
    "success": {"%": 0.01},
    "errors": {"": 1.0, "%": 0.01},
    "rate": {"/s": 1.0, "/min": 1 / 60},
    "n": {"": 1.0},
}
OPERATORS: dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}
State = Literal["passed", "failed", "unjudged"]
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
class Judgement(Criterion):
    """A criterion and how it came out; `measured` is the figure in words, `why` a sentence unless it passed."""

    state: State
    measured: str
    value: float | None
    bound: Bound | None
    why: str


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

    def peek(self, ahead: int = 0) -> _Token:
        end = len(self.text.rstrip())
        return self._tokens[ahead] if ahead < len(self._tokens) else _Token("end", "", end, end + 1)

    def take(self) -> _Token:
        token = self.peek()
        del self._tokens[:1]
        return token

    def error(self, token: _Token, problem: str) -> CriteriaError:
        return CriteriaError(self.text, token.start, token.end, problem)


def parse(text: str, main_label: str = "sample") -> Criterion:
    """Parse one criterion, which is of the run's main samples where it names no label; raises CriteriaError.

    Any word may be a label: whether the plan has it is for the caller to check.
    """
    words = _Words(text)
    if words.peek().kind == "end":
        raise words.error(words.peek(), f"an empty criterion; give one such as {EXAMPLES}")
    labelled = words.take() if _is_label(words, main_label) else None
    label = main_label
    if labelled and labelled.text.lower() != main_label.lower():
        label = labelled.text.lower() if labelled.text.lower() == USER else labelled.text
    of_label = USER_SERIES if label == USER else SAMPLE_SERIES
    named = words.take() if _is_series(words.peek().text, of_label) else None
    series = named.text.lower().removesuffix("_ms") if named else of_label[0]
    name, percent = _metric(words, main_label, labelled, named)
    sign = words.take()
    if sign.text not in OPERATORS:
        raise words.error(sign, f"expected one of {', '.join(OPERATORS)} after '{name}', got {_quoted(sign)}")
    limit, unit = _limit(words, name)
    rest = words.peek()
    if rest.kind != "end":
        raise words.error(rest, f"unexpected '{rest.text}'; a criterion ends after the unit")
    return Criterion(" ".join(text.split()), label, series, name, percent, sign.text, limit, unit)


def _is_label(words: _Words, main_label: str) -> bool:
    first = words.peek()
    name = first.text.lower()
    if name in (USER, main_label.lower()):
        return True
    is_metric = name in TIME_METRICS or name in COUNT_METRICS or name in ALIASES or re.fullmatch(r"p\d+(\.\d+)?", name)
    return first.kind == words.peek(1).kind == "word" and not is_metric and not _is_series(name, SAMPLE_SERIES)


def _is_series(word: str, of_label: tuple[str, ...]) -> bool:
    return word.lower() in of_label or (word.lower().endswith("_ms") and of_label != USER_SERIES)


def _metric(words: _Words, main_label: str, label: _Token | None, series: _Token | None) -> tuple[str, str | None]:
    token = words.take()
    name = ALIASES.get(token.text.lower(), token.text.lower())
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
        allowed.append(f"a label ({USER}, {main_label})")
    if not series and not (label and label.text.lower() == USER):
        allowed.append(f"a series of times ({', '.join(SAMPLE_SERIES)}, or a figure such as first_token_ms)")
    allowed.append(f"a metric ({METRICS_HELP})")
    raise words.error(token, f"expected {' or '.join(allowed)}; got {_quoted(token)}")


def _limit(words: _Words, metric: str) -> tuple[float, str]:
    token = words.take()
    if token.kind != "number":
        raise words.error(token, f"expected a number such as 2 or 0.5, got {_quoted(token)}")
    if token.text.startswith("-"):
        raise words.error(token, f"{token.text} is below 0, and nothing measured here can be")
    allowed = UNITS["time" if metric not in UNITS else metric]
    unit = words.peek()
    name = unit.text.lower()
    if name not in allowed:
        listed = " or ".join(f"'{u}'" if u else "no unit" for u in allowed)
        raise words.error(unit, f"{metric} is given in {listed}, got {_quoted(unit)}")
    if name:
        words.take()
    value = float(token.text)
    if name == "%" and value > 100:
        raise words.error(token, f"{token.text} % is above 100 %, which no share can be")
    return value * allowed[name], name


def _quoted(token: _Token) -> str:
    return "nothing" if token.kind == "end" else f"'{token.text}'"


def judge(criterion: Criterion, groups: Mapping[str, Group]) -> Judgement:
    """Judge a criterion by the groups measured; without samples it is `unjudged`, which counts as failed."""
    group = groups.get(criterion.label) or Group(criterion.label)
    figure = _measure(criterion, group) if group.n or criterion.metric == "n" else None
    if figure is None:
        what = "was measured" if not group.n else f"has a {criterion.series} time"
        why = f"no {criterion.label} {what}, so it cannot be judged and counts as failed"
        return Judgement(**vars(criterion), state="unjudged", measured="no samples", value=None, bound=None, why=why)
    measured = _in_words(criterion, figure)
    beyond = figure.value > criterion.limit or (figure.value == criterion.limit and criterion.op in (">=", "<"))
    state: State = "failed" if OPERATORS[criterion.op](figure.value, criterion.limit) else "passed"
    if figure.bound == "lower":
        # Beyond the limit it settles the question: the true figure is no smaller.
        state = "unjudged" if not beyond else "failed" if criterion.op in (">", ">=") else "passed"
    why = f"{criterion.text} holds: measured {measured}" if state == "failed" else ""
    if state == "unjudged":
        why = (
            f"timeouts hide the figure: it is above {units.duration(figure.value)}, so whether it meets the limit is "
            "not known; counts as failed"
        )
    return Judgement(**vars(criterion), state=state, measured=measured, value=figure.value, bound=figure.bound, why=why)


def _measure(criterion: Criterion, group: Group) -> Estimate | None:
    name = criterion.metric
    if name == "n":
        return Estimate(float(group.n))
    if name == "success":
        return Estimate(group.ok / group.n)
    if name == "errors":
        failed = group.n - group.ok
        return Estimate(failed / group.n if criterion.unit == "%" else float(failed))
    if name == "rate":
        return None if group.rate_per_s is None else Estimate(group.rate_per_s)
    sample = group.samples.get(criterion.series)
    if sample is None:
        return None
    if criterion.percent is not None:
        return sample.percentile(criterion.percent)
    if name == "mean":
        return sample.mean()
    return sample.extreme(largest=name == "max")


def _in_words(criterion: Criterion, figure: Estimate) -> str:
    if criterion.metric == "errors" and criterion.unit == "%":
        return units.percent(figure.value)
    if criterion.metric in COUNT_METRICS:
        return metric(COUNT_METRICS[criterion.metric]).text(figure.value)
    return ("> " if figure.bound == "lower" else "") + units.duration(figure.value)
