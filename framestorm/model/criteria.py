"""Criteria: `--fail-if '[label] [series] metric op value [unit]'`, parsed, and judged by what was measured.

A label with spaces stands in quotes, which are doubled within it (`'it''s'`); `all` is the whole of all samplers,
`*` each of their labels.

The series is `rtt` (the response time, which may be left out), `warm`, `cold`, `outside`, or any further figure that
samples carry, by its full name (`first_token_ms`, `tokens`); `handler` and `model` need no `_ms`. A limit has the unit
of the figure; that of a figure in ms may be left out. After a figure whose name ends in no unit, the label is needed.

`asked`, `answered` (each with or without the word `rate`), `in_flight`, `dropped` and `goodput` (a share or a rate) are
of the whole load, and have no label: `answered rate < 79/s`, `goodput < 95 %`. The criterion `overload` is one word:
the function did not keep up with a load that comes by a schedule. It is added to all others unless `--accept-overload`
is given.

A criterion names what must NOT hold: `p95 > 2 s` fails the run if the 95th percentile is above 2 s. One that
cannot be judged (no samples; a timeout hides the figure) fails too and says why: missing data is never a pass.
"""

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from framestorm.errors import UsageError
from framestorm.model import words as words_of_others
from framestorm.model.metric import (
    ALIASES,
    COMMON_SERIES,
    COUNT_METRICS,
    IN_QUOTES,
    LOAD_METRICS,
    PERCENTILE,
    RESPONSE,
    TIME_METRICS,
    column,
    is_of_run,
    of_label,
    quoted,
    unit,
    unquoted,
)
from framestorm.model.sample import TIMES, is_figure_name
from framestorm.model.units import scaled

USER, OVERLOAD = "user", "overload"
ALL, EACH = "all", "*"  # the samples of all samplers, and each label for itself
USER_SERIES = ("duration",)
# In the catalogue: metrics of users, and series by the words of criteria.
USER_METRICS = {"success": "user_success", "n": "users"}
SERIES = {"": RESPONSE, "rtt": RESPONSE, "duration": USER, **{name.removesuffix("_ms"): name for name in TIMES}}
METRICS_HELP = "success, errors, mean, median, p50 … p99.9 (any pX), min, max, rate, n"
LOAD_METRICS_HELP = "asked rate, answered rate, in_flight, dropped, goodput"
PER_MIN = Fraction(1, 60)  # no float is a sixtieth
Factors = Mapping[str, float | Fraction]  # of units
TIME_UNITS: Factors = {"ms": 1.0, "s": 1000.0, "min": 60_000.0}
# Of further figures, by their unit; those of none and others have no unit in a criterion either.
FIGURE_UNITS: Mapping[str, Factors] = {
    "ms": {"": 1.0, **TIME_UNITS},
    "s": {"": 1.0, "ms": 0.001, "s": 1.0, "min": 60.0},
    "%": {"": 1.0, "%": 1.0},
    "share": {"": 1.0, "%": 0.01},
    "1/s": {"": 1.0, "/s": 1.0, "/min": PER_MIN},
    "bytes": {"": 1.0, "b": 1.0, "kb": 1e3, "mb": 1e6},
}
COUNT_UNITS: Mapping[str, Factors] = {
    "success": {"%": 0.01},
    "errors": {"": 1.0, "%": 0.01},
    "rate": {"/s": 1.0, "/min": PER_MIN},
    "n": {"": 1.0},
    "asked": {"/s": 1.0, "/min": PER_MIN},
    "answered": {"/s": 1.0, "/min": PER_MIN},
    "in_flight": {"": 1.0},
    "dropped": {"": 1.0, "%": 0.01},
    "goodput": {"%": 0.01, "/s": 1.0, "/min": PER_MIN},
}
SHARES = ("success", "errors", "dropped", "goodput")
OPERATORS: dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}
EXAMPLES = "'p95 > 2 s', 'success < 99 %', 'user mean > 30 s', 'answered rate < 79/s'"
# So many digits that a limit is no infinity, which nothing would ever be above.
DIGITS = r"[0-9]{1,15}(?:\.[0-9]+)?"
_NUMBER = re.compile(f"-?{DIGITS}")
_WORD = re.compile(rf"\s*({IN_QUOTES}|[<>=!]+|-?[0-9]+(?:\.[0-9]+)?|%|/?[^\W\d][\w.,-]*|\S)")


class CriteriaError(UsageError):
    """A criterion is not valid; the message marks the wrong word and lists what is allowed."""


@dataclass(frozen=True)
class Criterion:
    """A criterion; `limit` is in ms, a ratio, events per second or a count, depending on the metric."""

    text: str
    label: str
    series: str
    metric: str
    op: str
    limit: float
    unit: str

    @property
    def is_share_of_samples(self) -> bool:
        """Whether its figure is a share of the samples, and no time, rate or number."""
        return self.unit == "%" and self.metric in SHARES

    @property
    def is_above(self) -> bool:
        """Whether it is about a figure above its limit."""
        return self.op.startswith(">")


class _Word(NamedTuple):
    text: str
    start: int

    @property
    def is_name(self) -> bool:
        return self.text[:1].isalpha() or self.is_label

    @property
    def is_label(self) -> bool:
        """Whether it can be nothing but a label: it stands in quotes, or for each of them."""
        return self.text[:1] in ("'", '"', EACH)

    @property
    def quoted(self) -> str:
        return f"'{self.text}'" if self.text else "nothing"


class Words:
    """The words of one criterion, read in order, with an empty one at the end; every error points at one of them."""

    def __init__(self, text: str, option: str = "--fail-if") -> None:
        self._text, self._option = text, option
        self._words = [_Word(match[1], match.start(1)) for match in _WORD.finditer(text)]
        self._words.append(_Word("", len(text.rstrip())))

    def peek(self, ahead: int = 0) -> _Word:
        return self._words[min(ahead, len(self._words) - 1)]

    def take(self) -> _Word:
        return self._words.pop(0) if len(self._words) > 1 else self._words[0]

    def error(self, word: _Word, problem: str, *forms: str) -> CriteriaError:
        """Return the error at a word; `forms` say below it what may stand there, a line each."""
        mark = " " * word.start + "^" * max(1, len(word.text))
        return CriteriaError("\n".join((f"{self._option}: {problem}", f"  {self._text}", f"  {mark}", *forms)))


# What follows the name of a transaction that a sampler has too.
OF_TRANSACTION = " (transaction)"


def own_label(label: str) -> str:
    """Return the name here of a label of a plan's own: `all` means the samples of all labels, and `user` processes."""
    return f"{label} (label)" if label in (ALL, USER) else label


def parse(text: str, main_label: str = "sample") -> Criterion:
    """Parse one criterion; without a label it applies to the run's main samples. Raises CriteriaError.

    Any word may be a label: the caller has to check whether the plan has it.
    """
    try:
        return _parse(text, main_label)
    except CriteriaError as error:
        names_label = text.split()[:1] in ([USER], [ALL], [main_label])
        if not names_label and (with_label := _valid(f"{main_label} {text.strip()}", main_label)):
            what = "the label stands before a figure whose name ends in no unit"
            raise CriteriaError(f"{error}\n{what}: {with_label}") from None
        in_quotes = _in_quotes(text, main_label)
        if in_quotes is None:
            of_metric = text.strip().removeprefix(main_label).strip()
            ours = words_of_others.of_criteria(of_metric, {*TIME_METRICS, *COUNT_METRICS, *LOAD_METRICS})
            if ours is None or ours == of_metric.split()[0].lower():
                raise
            marked = str(error).split("\n")[:3]  # in place of all the words that there are, the one that was meant
            hint = f"in criteria that is {ours}; what a criterion says must not be true"
            raise CriteriaError("\n".join([*marked, hint])) from None
        raise CriteriaError(f"{error}\nput a label that is not one plain word in quotes: {in_quotes}") from None


def _valid(text: str, main_label: str) -> str | None:
    """Return the criterion as it is shown; None if it is not valid."""
    try:
        return _parse(text, main_label).text
    except CriteriaError:
        return None


def _in_quotes(text: str, main_label: str) -> str | None:
    """Return the criterion with all that precedes its metric quoted as one label; None if that is not valid either."""
    metrics = [word.start(1) for word in _WORD.finditer(text) if _is_metric(word[1].lower())]
    label = text[: metrics[0]].strip() if metrics else ""
    if not label or label.split()[0] in (USER, ALL, main_label):
        return None
    return _valid(f"{quoted(label)} {text[metrics[0] :].strip()}", main_label)


def _parse(text: str, main_label: str) -> Criterion:
    words = Words(text)
    if not words.peek().text:
        raise words.error(words.peek(), f"an empty criterion; give one such as {EXAMPLES}")
    if text.strip().lower() == OVERLOAD:
        return Criterion(OVERLOAD, ALL, "", OVERLOAD, ">", 0.0, "")
    label = _take_label(words, main_label)
    label = main_label if label is None else label
    series, name = _subject(words, label, main_label)
    sign = words.take()
    if sign.text not in OPERATORS:
        raise words.error(sign, f"expected one of {', '.join(OPERATORS)} after '{name}', got {sign.quoted}")
    limit, limit_unit = _limit(words, name, series)
    if words.peek().text:
        raise words.error(words.peek(), f"unexpected {words.peek().quoted}; a criterion ends after the unit")
    default = (USER_SERIES if label == USER else COMMON_SERIES)[0]
    of_times = series.removesuffix("_ms") or default
    return Criterion(" ".join(text.split()), label, of_times, name, sign.text, limit, limit_unit)


def metric_name(text: str, main_label: str) -> str:
    """Return the name in the catalogue of what a criterion calls `[label] [series] metric`; such a name itself stays.

    It has no label if that is the one of the main samples. Raises CriteriaError.
    """
    words = Words(text, "metric")
    if not words.peek().text:
        raise words.error(words.peek(), "a metric is missing; give one such as p95, 'login p95' or 'login errors'")
    label = _take_label(words, main_label)
    if label == EACH:
        raise words.error(words.peek(), f"{EACH} stands for each label; name one here, or {ALL}")
    if is_of_run(words.peek().text) and not words.peek(1).text and label != USER:
        name = words.take().text
    else:
        series, statistic = _subject(words, main_label if label is None else label, main_label)
        if label == USER and statistic in COUNT_METRICS and statistic not in USER_METRICS:
            raise words.error(
                words.peek(), f"users have no {statistic} here; they have {', '.join(USER_METRICS)} and times"
            )
        counts = USER_METRICS if label == USER else COUNT_METRICS | LOAD_METRICS
        of_times = USER if label == USER else SERIES.get(series.removesuffix("_ms"), series)
        name = counts.get(statistic) or column(of_times, "median" if statistic == "p50" else statistic)
        label = None if label == USER else label
    if words.peek().text:
        raise words.error(words.peek(), f"unexpected {words.peek().quoted} after {name}")
    return name if label in (None, main_label) else of_label(label, name)


def _subject(words: Words, label: str, main_label: str) -> tuple[str, str]:
    """Return the series (empty if none is named) and the metric, which follow the label."""
    series = words.take() if _is_series(words, label) else None
    word = words.take()
    name = ALIASES.get(word.text.lower(), word.text.lower())
    percentile = PERCENTILE.fullmatch(name)
    if percentile and not 0 < float(percentile[1]) < 100:
        raise words.error(word, f"'{word.text}' is not a percentile: p0 and p100 are min and max")
    if series and name in COUNT_METRICS and series.text.lower() in COUNT_METRICS:
        raise words.error(word, f"'{series.text}' is a metric by itself: leave '{word.text}' out")
    if series and name in COUNT_METRICS:
        what = f"'{series.text}' selects times, and {name} counts all samples: leave '{series.text}' out"
        raise words.error(series, what)
    if name in LOAD_METRICS:
        if label not in (ALL, main_label):
            raise words.error(word, f"'{name}' is of the whole load, not of a label: leave {quoted(label)} out")
        if name in ("asked", "answered", "goodput") and words.peek().text.lower() == "rate":
            words.take()
        return "", name
    if not _is_metric(name):
        labels = ", ".join(each for each in (USER, main_label) if each)
        raise words.error(
            word,
            f"expected a metric, got {word.quoted}",
            f"metrics: {METRICS_HELP}",
            f"before a metric, a label may stand ({labels}), and a series: {', '.join(COMMON_SERIES)},",
            "  or a figure such as first_token_ms",
            f"of the whole load: {LOAD_METRICS_HELP}",
        )
    return series.text.lower() if series else "", name


def _take_label(words: Words, main_label: str) -> str | None:
    """Return the label at the beginning; None if there is none."""
    if not _is_label(words, main_label):
        return None
    return unquoted(words.take().text)


def _is_label(words: Words, main_label: str) -> bool:
    first = words.peek()
    if first.is_label or first.text in (USER, ALL, main_label):
        return True
    is_other = _is_metric(first.text.lower()) or _is_known_series(first.text, main_label)
    is_other |= first.text.lower() in LOAD_METRICS and words.peek(1).text.lower() == "rate"
    return first.is_name and words.peek(1).is_name and not is_other


def _is_metric(name: str) -> bool:
    return name in {*TIME_METRICS, *COUNT_METRICS, *ALIASES} or PERCENTILE.fullmatch(name) is not None


def _is_known_series(word: str, label: str) -> bool:
    """Return whether it can be nothing but a series: it is a common one, or a figure whose name ends in a unit."""
    if label == USER:
        return word.lower() in USER_SERIES
    return word.lower() in COMMON_SERIES or unit(word.lower()) != ""


def _is_series(words: Words, label: str) -> bool:
    if words.peek().text.lower() in LOAD_METRICS and words.peek(1).text.lower() == "rate":
        return False
    is_before_metric = is_figure_name(words.peek().text.lower()) and _is_metric(words.peek(1).text.lower())
    return _is_known_series(words.peek().text, label) or (label != USER and is_before_metric)


def _limit(words: Words, name: str, series: str) -> tuple[float, str]:
    number = words.take()
    if not _NUMBER.fullmatch(number.text):
        raise words.error(number, f"expected a number such as 2 or 0.5, got {number.quoted}")
    if number.text.startswith("-"):
        raise words.error(number, f"{number.text} is below 0, but measured figures are never below 0")
    allowed = COUNT_UNITS.get(name, TIME_UNITS)
    if series not in (*COMMON_SERIES, *USER_SERIES, ""):
        allowed = FIGURE_UNITS.get(unit(series), {"": 1.0})
    word = words.peek().text.lower()
    if word not in allowed:
        problem = f"{series or name} {_units_text([*allowed])}"
        if word:
            problem += f", got {words.peek().quoted}"
        if word in TIME_UNITS and [*allowed] == [""]:  # Server-Timing's db is db_ms among the figures
            problem += f"; the name of a time ends in its unit: {series}_ms"
        raise words.error(words.peek(), problem)
    if word:
        words.take()
    value = scaled(number.text, allowed[word])
    if word == "%" and value > 1 and allowed[word] < 1:
        raise words.error(number, f"{number.text} % is above 100 %, which no share can be")
    return value, word


def _units_text(allowed: list[str]) -> str:
    """Return which units a figure may have: `needs a unit: ms, s or min`."""
    *others, last = [unit for unit in allowed if unit] or [""]
    listed = f"{', '.join(others)} or {last}" if others else last
    if "" not in allowed:
        return f"needs a unit: {listed}"
    return f"is given without a unit, or in {listed}" if listed else "is given without a unit"
