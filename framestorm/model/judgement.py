"""Criteria judged by what was measured."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from framestorm.model import units
from framestorm.model.criteria import EACH, OPERATORS, OVERLOAD, Criterion
from framestorm.model.goodput import Goodput
from framestorm.model.metric import COUNT_METRICS, LOAD_METRICS, Metric, metric, quoted
from framestorm.model.overload import Queue
from framestorm.model.sample import noun
from framestorm.stats.estimate import AnyTimes, Ends, Estimate, EstimateBound

JudgedState = Literal["passed", "failed", "unjudged"]
NO_SCHEDULE = "the load comes by no schedule that is known"


@dataclass
class Group:
    """The measurements of one label: `user`, or another label of the run.

    units: those of series that are figures. rate_ends: of the interval of rate_per_s, as far as it was asked for.
    """

    label: str
    n: int = 0
    ok: int = 0
    rate_per_s: float | None = None
    samples: Mapping[str, AnyTimes] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)
    rate_ends: Ends = (None, None)

    def unit(self, series: str) -> str:
        """Return the unit of a series of its samples."""
        return self.units.get(series, "ms")


@dataclass(frozen=True)
class LoadFigures:
    """What criteria of the whole load are judged by; None: not known.

    due, dropped: arrivals by the schedule, and those that were not sent.
    is_overloaded: whether the function did not keep up; why: why it did not, or why that is not known; of_one: what was
        asked and answered of the one load of several that it did not keep up with; queue: what it accepted and did of
        it, if its queue grew.
    """

    asked_per_s: float | None = None
    answered_per_s: float | None = None
    in_flight: int | None = None
    due: int | None = None
    dropped: int | None = None
    is_overloaded: bool | None = None
    why: str = NO_SCHEDULE
    of_one: tuple[float, float] | None = None
    queue: Queue | None = None
    goodput: Goodput | None = None


@dataclass(frozen=True)
class Judgement(Criterion):
    """A criterion and its result; `measured` is the figure in words, `why` a sentence unless it passed.

    low, high: ends of the 95 % interval of a statistic of samples; None where there is none.
    """

    state: JudgedState
    measured: str
    value: float | None
    bound: EstimateBound | None
    why: str
    low: float | None = None
    high: float | None = None


def for_each(criterion: Criterion, labels: Iterable[str]) -> list[Criterion]:
    """Return a criterion of `*` as one for each of the labels; any other as it is."""
    if criterion.label != EACH:
        return [criterion]
    rest = criterion.text.removeprefix(EACH)
    return [replace(criterion, label=label, text=f"{quoted(label)}{rest}") for label in labels]


def judge(criterion: Criterion, groups: Mapping[str, Group], load: LoadFigures | None = None) -> Judgement:
    """Judge a criterion by the measured groups, or by the load; without a figure it is `unjudged`, which fails."""
    if criterion.metric == OVERLOAD or criterion.metric in LOAD_METRICS:
        return _judge_load(criterion, load or LoadFigures())
    group = groups.get(criterion.label) or Group(criterion.label)
    holds, figure = OPERATORS[criterion.op], _measure(criterion, group)
    state: JudgedState = "unjudged"
    if figure is None:
        label = quoted(criterion.label)
        # A run without any sample has no label either.
        of_label = "" if label == noun("") else f" of {label}"
        what = f"no sample{of_label} has this figure" if group.n else f"there is no sample{of_label}"
        if group.samples and criterion.series not in group.samples:
            what += f" (there are {', '.join(sorted(group.samples))})"
        why = f"{what}, so it cannot be judged and counts as failed"
        return Judgement(**vars(criterion), state=state, measured="no samples", value=None, bound=None, why=why)
    of_figure = Metric("", group.unit(criterion.series), "")
    measured = _in_words(criterion, figure, of_figure)
    is_held = holds(figure.value, criterion.limit)
    if figure.bound == "lower" and is_held != holds(math.inf, criterion.limit):
        above = of_figure.text(figure.value)
        why = f"timeouts hide the figure: it is above {above}, and may be on either side of the limit; counts as failed"
    else:
        state, why = ("failed", f"{criterion.text} is true: measured {measured}") if is_held else ("passed", "")
    return Judgement(
        **vars(criterion),
        state=state,
        measured=measured,
        value=figure.value,
        bound=figure.bound,
        why=why,
        low=figure.low,
        high=figure.high,
    )


def _judge_load(criterion: Criterion, load: LoadFigures) -> Judgement:
    def judged(state: JudgedState, measured: str, value: float | None, why: str) -> Judgement:
        bound: EstimateBound | None = None if value is None else "exact"
        return Judgement(**vars(criterion), state=state, measured=measured, value=value, bound=bound, why=why)

    if criterion.metric == OVERLOAD:
        rates = dict(zip(("asked", "answered"), load.of_one or (load.asked_per_s, load.answered_per_s), strict=True))
        if load.queue:
            rates = {"accepted": load.queue.accepted_per_s, "done": load.queue.done_per_s}
        measured = ", ".join(f"{word} {units.rate(per_s)}" for word, per_s in rates.items() if per_s is not None)
        if load.is_overloaded is None:
            why = f"{load.why.rstrip('.')}, so it cannot be judged and counts as failed"
            return judged("unjudged", measured or "not known", None, why)
        state: JudgedState = "failed" if load.is_overloaded else "passed"
        return judged(state, measured, float(load.is_overloaded), load.why if load.is_overloaded else "")
    value, about = _of_load(criterion, load), metric(LOAD_METRICS[criterion.metric])
    if value is None and criterion.metric == "goodput":
        why = _no_goodput(load)
        return judged("unjudged", "not known", None, f"{why}, so it cannot be judged and counts as failed")
    if value is None:
        needs = criterion.metric in ("asked", "dropped")
        why = NO_SCHEDULE if needs and load.due is None else "there are too few samples"
        return judged("unjudged", "not known", None, f"{why}, so it cannot be judged and counts as failed")
    measured = units.percent(value) if criterion.unit == "%" else about.text(value)
    if criterion.metric == "goodput" and criterion.unit != "%":
        measured = units.rate(value)
    is_held = OPERATORS[criterion.op](value, criterion.limit)
    why = f"{criterion.text} is true: measured {measured}" if is_held else ""
    return judged("failed" if is_held else "passed", measured, value, why)


def _no_goodput(load: LoadFigures) -> str:
    if load.goodput is None:
        return "no objectives are set: give them by -Jgoodput=, of a plan with this property"
    if load.goodput.absent:
        return f"no sample has {units.listed(load.goodput.absent)}"
    return "there are too few samples"


def _of_load(criterion: Criterion, load: LoadFigures) -> float | None:
    if criterion.metric == "goodput":
        goodput = load.goodput or Goodput("", 0)
        return goodput.share if criterion.unit == "%" else goodput.per_s
    if criterion.metric == "dropped":
        if load.dropped is None or (criterion.unit == "%" and not load.due):
            return None
        return load.dropped / load.due if criterion.unit == "%" and load.due else float(load.dropped)
    figures = {"asked": load.asked_per_s, "answered": load.answered_per_s, "in_flight": load.in_flight}
    value = figures[criterion.metric]
    return None if value is None else float(value)


def _measure(criterion: Criterion, group: Group) -> Estimate | None:
    name, sample = criterion.metric, group.samples.get(criterion.series)
    if name == "n":
        return Estimate(float(group.n))
    if not group.n:
        return None
    if name == "success":
        return Estimate(group.ok / group.n)
    if name == "errors":
        failed = group.n - group.ok
        return Estimate(failed / group.n if criterion.unit == "%" else float(failed))
    if name == "rate":
        return None if group.rate_per_s is None else Estimate(group.rate_per_s)
    if sample is None:
        return None
    if name in ("min", "max"):
        return sample.extreme(largest=name == "max")
    return sample.mean() if name == "mean" else sample.percentile(name[1:] if name != "median" else "50")


def _in_words(criterion: Criterion, figure: Estimate, of_figure: Metric) -> str:
    if criterion.metric == "errors" and criterion.unit == "%":
        return units.percent(figure.value)
    if criterion.metric in COUNT_METRICS:
        return metric(COUNT_METRICS[criterion.metric]).text(figure.value)
    return ("> " if figure.bound == "lower" else "") + of_figure.text(figure.value)
