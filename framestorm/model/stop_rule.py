"""Rules that end the load before its time: `--stop-if 'p95 > 5 s for 30 s'`, `--stop-when 'p95 within 5 %'`.

The figures are those of a criterion (model/criteria.py) that are known while the run goes on: response times of a
label, its errors and its rate. `over N s` judges the last N seconds together; without it, each second by itself. `for N
s` asks that it holds for N seconds without a break. Counts that only grow (`errors > 100`) may stand without both.
"""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from framestorm.model import criteria
from framestorm.model.criteria import DIGITS, EACH, USER, CriteriaError, Criterion, Words
from framestorm.model.metric import COUNT_METRICS, LOAD_METRICS
from framestorm.model.run import Record, StopOption
from framestorm.model.units import scaled

STOP_IF: Literal["--stop-if"] = "--stop-if"
STOP_WHEN: Literal["--stop-when"] = "--stop-when"
LONGEST_S = 600
TIME_S = {"s": 1, "min": 60}
SERIES = ("rtt", "duration")
FORMS = {
    STOP_IF: "give it as in 'p95 > 5 s for 30 s' or 'errors > 10 % over 20 s'",
    STOP_WHEN: "give it as in 'p95 within 5 %' or 'login mean within 2 %'",
}
_TAIL = re.compile(r"(?:'[^']*'|\"[^\"]*\"|[^'\"])*?\s(?=(?:for|over|within)\s|(?:for|over|within)$)", re.IGNORECASE)


@dataclass(frozen=True)
class StopRule:
    """A rule that ends the load.

    criterion: the figure; of --stop-if also its limit. over_s: of how many seconds together the figure is, 0: of each
        second. for_s: for how many seconds it must hold, 0: once.
    within: of --stop-when, half the width of the figure's 95 % interval, as a share of the figure.
    """

    option: StopOption
    text: str
    criterion: Criterion
    over_s: int = 0
    for_s: int = 0
    within: float = 0.0

    @property
    def is_of_all(self) -> bool:
        """Whether the figure is of the whole run so far."""
        return not self.over_s and not self.for_s


def of_run(record: Record, main_label: str = "sample") -> list[StopRule]:
    """Return the rules of a run, those of --stop-if first. Raises CriteriaError."""
    return parse_all(record.stop_if, record.stop_when, main_label)


def parse_all(stop_if: Iterable[str], stop_when: Iterable[str], main_label: str = "sample") -> list[StopRule]:
    """Parse the rules of both options. Raises CriteriaError."""
    rules = [parse(STOP_IF, text, main_label) for text in stop_if]
    return rules + [parse(STOP_WHEN, text, main_label) for text in stop_when]


def parse(option: StopOption, text: str, main_label: str = "sample") -> StopRule:
    """Parse a stop rule; without a label it is about the run's main samples. Raises CriteriaError."""
    match = _TAIL.match(text)
    head = text[: match.end()].rstrip() if match else text.rstrip()
    words = Words(text, option)
    while words.peek().text and words.peek().start < len(head):
        words.take()
    rule = _stop_when(text, head, words, main_label) if option == STOP_WHEN else _stop_if(text, head, words, main_label)
    if words.peek().text:
        raise words.error(words.peek(), f"unexpected {words.peek().quoted}", FORMS[option])
    return rule


def _stop_if(text: str, head: str, words: Words, main_label: str) -> StopRule:
    try:
        criterion = criteria.parse(head, main_label)
    except CriteriaError as error:
        raise _as_of(STOP_IF, error, head, text) from None
    _check_known(criterion, STOP_IF)
    spans = {"over": 0, "for": 0}
    while (word := words.peek()).text.lower() in spans:
        words.take()
        if spans[word.text.lower()]:
            raise words.error(word, f"'{word.text}' stands twice", FORMS[STOP_IF])
        spans[word.text.lower()] = _seconds(words)
    grows = criterion.metric in ("errors", "n") and not criterion.unit
    if not any(spans.values()) and not words.peek().text and not grows:
        needs = f"needs a time: '{head} for 30 s' (in each second of 30) or '{head} over 30 s' (in 30 s together)"
        raise words.error(words.peek(), needs)
    return StopRule(STOP_IF, " ".join(text.split()), criterion, spans["over"], spans["for"])


def _stop_when(text: str, head: str, words: Words, main_label: str) -> StopRule:
    try:
        criteria.metric_name(head, main_label)
    except CriteriaError as error:
        raise _as_of(STOP_WHEN, error, head, text) from None
    word = words.take()
    if word.text.lower() != "within":
        raise words.error(word, f"expected 'within' after '{head}', got {word.quoted}", FORMS[STOP_WHEN])
    number = words.take()
    if not re.fullmatch(DIGITS, number.text) or not 0 < float(number.text) <= 50:
        raise words.error(number, f"expected a number above 0, at most 50, got {number.quoted}", FORMS[STOP_WHEN])
    percent = words.take()
    if percent.text != "%":
        raise words.error(percent, f"expected % after {number.text}, got {percent.quoted}", FORMS[STOP_WHEN])
    try:
        criterion = criteria.parse(f"{head} > 0 ms", main_label)
    except CriteriaError:
        raise CriteriaError(f"--stop-when: {head!r} is not a time; {FORMS[STOP_WHEN]}") from None
    _check_known(criterion, STOP_WHEN)
    if criterion.metric in ("min", "max") or criterion.label == EACH:
        what = f"{criterion.metric} has no interval" if criterion.label != EACH else "* stands for several labels"
        raise CriteriaError(f"--stop-when: {what}; {FORMS[STOP_WHEN]}")
    return StopRule(STOP_WHEN, " ".join(text.split()), criterion, within=float(number.text) / 100)


def _check_known(criterion: Criterion, option: StopOption) -> None:
    """Raise CriteriaError for a figure that is known only after the run."""
    name = criterion.metric
    if name in LOAD_METRICS or name == criteria.OVERLOAD:
        why = f"'{name}' is of the whole load, and judged after the run by --fail-if"
    elif name not in COUNT_METRICS and criterion.series not in SERIES:
        why = f"'{criterion.series}' is known only after the run, where --fail-if judges it; here are response times"
    elif criterion.label == USER and name == "rate":
        why = "users have no rate"
    else:
        return
    raise CriteriaError(f"{option}: {why}; {FORMS[option]}")


def _seconds(words: Words) -> int:
    number, unit = words.take(), words.take()
    if not re.fullmatch(DIGITS, number.text):
        raise words.error(number, f"expected a number of seconds, got {number.quoted}", FORMS[STOP_IF])
    if unit.text.lower() not in TIME_S:
        raise words.error(unit, f"expected s or min after {number.text}, got {unit.quoted}", FORMS[STOP_IF])
    seconds = math.ceil(scaled(number.text, TIME_S[unit.text.lower()]))
    if not 1 <= seconds <= LONGEST_S:
        raise words.error(number, f"a time is from 1 s to {LONGEST_S // 60} min", FORMS[STOP_IF])
    return seconds


def _as_of(option: StopOption, error: CriteriaError, head: str, text: str) -> CriteriaError:
    """Return the error of a criterion as one of this option and its whole text."""
    _, _, rest = str(error).partition(":")
    return CriteriaError(f"{option}:{rest}".replace(f"\n  {head}\n", f"\n  {text}\n", 1))
