"""Objectives of a search: criteria that have to hold, and what a run says of them."""

import math
import re
from collections.abc import Sequence
from pathlib import Path

from framestorm.endpoint import is_on_this_machine
from framestorm.errors import FramestormError, UsageError
from framestorm.model import criteria as grammar
from framestorm.model import files, stop_rule
from framestorm.model.cause import is_answered
from framestorm.model.criteria import ALL, EACH, OVERLOAD, USER, Criterion
from framestorm.model.judgement import Judgement
from framestorm.model.metric import LOAD_METRICS, PERCENTILE
from framestorm.model.plan import Plan
from framestorm.model.search import LoadRange, Outcome, Probe
from framestorm.model.summary import LabelSummary, Summary, Times
from framestorm.model.units import plural
from framestorm.results.samples import Samples, read_samples
from framestorm.run.options import Output
from framestorm.run.preparation import check_criteria
from framestorm.stats.batches import FEWEST_EVENTS, rate_ends
from framestorm.stats.estimate import Estimate

ON_ERRORS = ("success", "errors")
KEEPS_UP = "it keeps up with the rate"
OPPOSITES = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_SIGN = re.compile(r"(.*)(<=|>=|<|>)(.*)", re.DOTALL)
# Below so many samples on the smaller side of a percentile, it says little.
LEAST_BEYOND = 5
LEAST_SAMPLES = 30
LITTLE = 0.25  # of the machine's cores
KEPT = 0.95  # of the rate that was sent, without an error


def opposite(text: str) -> str:
    """Return the criterion that fails a run where an objective is missed, or the objective of such a criterion."""
    match = _SIGN.fullmatch(text)
    if match is None:
        return text
    before, sign, after = match.groups()
    return f"{before}{OPPOSITES[sign]}{after}"


def criterion_of(objective: str) -> str:
    """Return what fails a run that misses an objective.

    Raises:
        UsageError: it is no criterion of --fail-if, or has no sign that can be turned round.
    """
    try:
        grammar.parse(objective)
    except grammar.CriteriaError as error:
        raise UsageError(str(error).replace("--fail-if", "--slo", 1)) from None
    return opposite(" ".join(objective.split()))


def check_labels(plan: Plan, output: Output) -> None:
    """Check that a plan has the labels of the objectives, which are the criteria of `output`.

    With --scrape they may be series, which only the targets know.

    Raises:
        UsageError: it has not.
    """
    try:
        if not output.scrape:
            check_criteria(plan, output)
    except UsageError as error:
        raise UsageError(str(error).replace("--fail-if", "--slo", 1)) from None


def needed_samples(objectives: Sequence[str]) -> int:
    """Return how many samples a probe needs, so that each percentile among the objectives has samples beyond it."""
    return max([LEAST_SAMPLES, *(_samples_with(LEAST_BEYOND, grammar.parse(text).metric) for text in objectives)])


def _samples_with(beyond: int, metric: str) -> int:
    """Return how many samples it takes so that `beyond` of them lie above a percentile; 0 for any other metric."""
    match = PERCENTILE.fullmatch(metric)
    return math.ceil(beyond / (1 - float(match[1]) / 100) - 1e-6) if match else 0


def probe_of(run_dir: Path, over: LoadRange, load: float, length_s: float | None) -> Probe:
    """Return what a run says of each objective.

    Raises:
        FramestormError: an objective could not be judged, was met by too few samples, or there was none.
    """
    summary = files.read(run_dir / "summary.json", Summary)
    if not summary.criteria or (summary.has_default_criteria and all(c.metric != OVERLOAD for c in summary.criteria)):
        raise FramestormError(
            "without --slo a search finds the rate that the function keeps up with, and this load comes by no "
            "schedule: give an objective, such as --slo 'p95 < 500 ms'"
        )
    # A rule of --stop-if that did not end the load says nothing more.
    of_rules = summary.run.stop_if
    judged = [each for each in summary.criteria if not summary.has_default_criteria or each.metric == OVERLOAD]
    judged = [each for each in judged if each.text not in of_rules]
    rates = summary.facts.rates
    missed = [each for each in judged if each.state != "passed" or _failures(each, summary)]
    is_by_answers = any(_is_missed_by_answers(each, summary, in_bursts=False) for each in judged)
    generator = "" if is_by_answers else _blame(summary, is_missed=bool(missed)) or _bursts(missed, summary)
    unjudged = [each for each in judged if each.state == "unjudged" and not _failures(each, summary)]
    # Neither the load generator nor the function is to blame for a label or a series that there is not.
    of_labels = [each for each in unjudged if each.metric not in (OVERLOAD, *LOAD_METRICS)]
    labels = {*summary.labels, ALL, EACH, USER} if summary.labels else {each.label for each in of_labels}
    unknown = [each for each in of_labels if each.label not in labels]
    if unknown or (unjudged and not (generator or is_by_answers)):
        first = (unknown or unjudged)[0]
        why, *_ = first.why.partition(", so it cannot")
        raise FramestormError(
            f"{over.at(load)}, {objective_of(first)!r} could not be judged: {why}; {longer(length_s)}, or give another "
            "objective"
        )
    if not (generator or missed):
        _check_samples(judged, summary, over.at(load), longer(length_s))
    return Probe(
        load,
        run_dir.name,
        [_outcome(each, summary) for each in judged],
        length_s,
        rates.asked_per_s,
        rates.answered_per_s,
        rates.in_flight,
        generator,
    )


def longer(length_s: float | None) -> str:
    """Return how probes get longer; the search does not set their length if that is None."""
    return (
        "make the run of the plan longer, by its own properties"
        if length_s is None
        else "give longer probes by --probe-s"
    )


def _check_samples(judged: Sequence[Judgement], summary: Summary, at: str, advice: str) -> None:
    """Refuse a pass by a percentile that is just the largest of too few samples."""
    for each in judged:
        if (n := _too_few(each, summary)) is not None:
            least = _samples_with(1, each.metric)
            raise FramestormError(
                f"{at}, {objective_of(each)!r} had {n} samples and needs {least:,}: a percentile of fewer is "
                f"just the largest of them; {advice}, or give a lower percentile"
            )


def _too_few(judgement: Judgement, summary: Summary) -> int | None:
    """Return of how many samples an objective is met that needs more of them; None if they are enough."""
    times = _times(judgement, summary)
    is_met_by_few = judgement.state == "passed" and times and times.n < _samples_with(1, judgement.metric)
    return times.n if times and is_met_by_few else None


def decided_of(run_dir: Path, load: float, length_s: float | None) -> Probe:
    """Return what a run says that a rule of --stop-if ended: it missed what the rule is about, and no more.

    Its figures are of the part of a probe that was chosen by them.
    """
    summary = files.read(run_dir / "summary.json", Summary)
    decision, rates = summary.run.decision, summary.facts.rates
    rule, measured = (decision.text, decision.measured) if decision else ("", "")
    is_on_errors = (
        bool(decision) and stop_rule.parse(stop_rule.STOP_IF, rule, summary.label).criterion.metric in ON_ERRORS
    )
    return Probe(
        load,
        run_dir.name,
        [Outcome(opposite(rule), is_met=False, measured=measured)],
        length_s,
        rates.asked_per_s,
        in_flight=rates.in_flight,
        generator="" if is_on_errors and _is_refused(summary) else _blame(summary, is_missed=True),
    )


def rung_of(run_dir: Path, over: LoadRange, load: float, length_s: float | None) -> Probe:
    """Return what a run says of the rate of answers, with its interval by batch means.

    Raises:
        FramestormError: there are too few answers without an error for a rate, and no lower load had more of them.
    """
    summary, samples = files.read(run_dir / "summary.json", Summary), read_samples(run_dir)
    has_collapsed, (low, high) = _has_collapsed(summary.main), (None, None)
    n, rate_per_s = samples.ended_ms.size, _rate_of_answers(samples)
    if rate_per_s is None or (n < FEWEST_EVENTS and (load <= over.low or not has_collapsed)):
        at_once = ", all at once" if n >= FEWEST_EVENTS else ""
        raise FramestormError(
            f"{over.at(load)}, a rate needs {FEWEST_EVENTS} answers without an error, and there are {n}{at_once}; see "
            f"{run_dir}/index.html, or {longer(length_s)}"
        )
    if not has_collapsed:
        low, high = rate_ends(samples.ended_ms, rate_per_s)
    return Probe(
        load,
        run_dir.name,
        [],
        length_s,
        answered_per_s=rate_per_s,
        in_flight=summary.facts.rates.in_flight,
        generator="" if _is_refused(summary) else _blame(summary, is_missed=True),
        answered_low=low,
        answered_high=high,
    )


def _rate_of_answers(samples: Samples) -> float | None:
    """Return the rate of answers without an error while requests were sent; None without any time.

    It begins with the first answer: that this one takes its time is no part of the rate.
    """
    loaded, ended_ms = samples.loaded, samples.ended_ms.tolist()
    ends_ms = (loaded["start_ms"] + loaded["rtt_ms"]).drop_nulls().to_list()
    first_ms = min(ends_ms, default=math.inf)
    span_ms = max([*loaded["start_ms"], *ended_ms[-1:]], default=-math.inf) - first_ms
    n = len(ended_ms) - (ended_ms[:1] == [first_ms])
    return 1000 * n / span_ms if span_ms > 0 else None


def _label(judgement: Judgement, summary: Summary) -> LabelSummary | None:
    """Return the figures of the label that an objective is about; `all` has none of its own beside a single label."""
    samplers = [each for each in summary.labels.values() if each.kind == "sampler" and each.label != USER]
    alone = samplers[0] if judgement.label == ALL and len(samplers) == 1 else None
    return summary.labels.get(judgement.label, alone)


def _errors_of_answers(label: LabelSummary) -> int:
    """Return how many errors the function's own answers report, however long they took."""
    causes = [*label.causes.items(), *label.further_causes.items()]
    return sum(n for cause, n in causes if is_answered(cause))


def _is_missed_by_answers(judgement: Judgement, summary: Summary, *, in_bursts: bool) -> bool:
    """Return whether the errors that the function's own answers report are alone enough to miss an objective.

    in_bursts: with those that it may have answered only because the load generator sent requests late.
    """
    label = _label(judgement, summary)
    if _failures(judgement, summary):
        of_failures = label if label and label.n else summary.main
        return 2 * _errors_of_answers(of_failures) > of_failures.n
    if judgement.state != "failed" or judgement.metric not in ON_ERRORS or not (label and label.n):
        return False
    n = _errors_of_answers(label) - (0 if in_bursts else label.errors_in_bursts)
    share = (label.n - n if judgement.metric == "success" else n) / label.n
    value = share if judgement.unit == "%" else n
    return grammar.OPERATORS[judgement.op](value, judgement.limit)


def _bursts(missed: Sequence[Judgement], summary: Summary) -> str:
    """Return why only requests that were sent late and together made a probe miss its objectives; else empty."""
    if not missed or not all(_is_missed_by_answers(each, summary, in_bursts=True) for each in missed):
        return ""
    label = _label(missed[0], summary) or summary.main
    return (
        "the load generator sent requests late, and then together, which may have caused "
        f"{label.errors_in_bursts} of {plural(label.failed, 'error')}"
    )


def _failures(judgement: Judgement, summary: Summary) -> str:
    """Return how many requests failed, if most did and an objective has no figure, or one of the few others only.

    Where a function collapses, requests that follow on others may not be sent at all. Times of a few are enough where
    another objective says how many may fail. Empty in any other case.
    """
    label = _label(judgement, summary)
    of = label if label and label.n else summary.labels.get(summary.label)
    if of is None or not _has_collapsed(of):
        return ""
    of_errors = [c for c in summary.criteria if c.metric in ON_ERRORS and c.text not in summary.run.stop_if]
    is_of_few = judgement.state == "passed" and _times(judgement, summary) is not None and not of_errors
    if judgement.state != "unjudged" and not is_of_few and _too_few(judgement, summary) is None:
        return ""
    return f"{of.failed:,} of {plural(of.n, 'request')} failed" if of.ok else "every request failed"


def _has_collapsed(label: LabelSummary) -> bool:
    """Return whether most samples of a label failed."""
    return 2 * label.ok < label.n


def _is_refused(summary: Summary) -> bool:
    """Return whether the function's answers are errors so often that it does not keep up."""
    return _errors_of_answers(summary.main) - summary.main.errors_in_bursts > (1 - KEPT) * summary.main.n


def _blame(summary: Summary, *, is_missed: bool) -> str:
    """Return why a probe says nothing about the function, because of the load generator; empty if it does."""
    overload, doubts = summary.facts.overload, summary.doubts
    has_signs = overload is not None and bool(overload.signs)
    if is_missed and overload is not None and overload.generator:
        return overload.generator
    if "not_offered" in doubts and not has_signs:
        return "the load generator did not make this load"
    # One that sends in time is not to blame for a function that falls behind, on however busy a machine.
    if is_missed and "saturated" in doubts and not has_signs and not _is_by_the_function(summary):
        return "the machine that makes the load was saturated"
    return ""


def _is_by_the_function(summary: Summary) -> bool:
    """Return whether the function is on the machine that makes the load, which takes little of it."""
    target = summary.run.target
    if target is None or target.url is None or not is_on_this_machine(target.url):
        return False
    generators = [each for each in summary.machines if each.part == "generator"]
    return bool(generators) and all(each.cores_mean < LITTLE * (each.cores or 0) for each in generators)


def objective_of(criterion: Criterion) -> str:
    """Return a criterion of a probe as the objective that it stands for."""
    return KEEPS_UP if criterion.metric == OVERLOAD else opposite(criterion.text)


def _outcome(judgement: Judgement, summary: Summary) -> Outcome:
    figure = _figure(judgement, summary)
    ends = (figure.low, figure.high) if figure else (None, None)
    is_sure = figure is None or not (
        (ends[0] is None or ends[0] <= judgement.limit) and (ends[1] is None or ends[1] >= judgement.limit)
    )
    is_met = judgement.state == "passed"
    if judgement.metric == OVERLOAD:
        # A short probe need not show a backlog, however sure it is that one grows.
        rates = summary.facts.rates
        sent_per_s, answered_per_s = rates.sent_per_s or 0.0, rates.answered_per_s or 0.0
        return Outcome(KEEPS_UP, is_met and answered_per_s >= KEPT * sent_per_s, judgement.measured)
    if failures := _failures(judgement, summary):
        return Outcome(objective_of(judgement), is_met=False, measured=failures)
    margin = _margin(judgement)
    return Outcome(objective_of(judgement), is_met, judgement.measured, judgement.value, *ends, is_sure, margin)


def _margin(judgement: Judgement) -> float | None:
    """Return the logarithm of a time or a rate against its limit, above 0 where the objective is missed."""
    value, limit = judgement.value, judgement.limit
    if judgement.metric in ("success", "errors", "goodput") or value is None or value <= 0 or limit <= 0:
        return None
    sign = 1 if judgement.is_above else -1
    return sign * math.log(value / limit)


def _times(judgement: Judgement, summary: Summary) -> Times | None:
    """Return the times that a criterion is about; None if the summary has none."""
    label = _label(judgement, summary)
    times = label.times | label.figures if label else {}
    return times.get(judgement.series) or times.get(f"{judgement.series}_ms")


def _figure(judgement: Judgement, summary: Summary) -> Estimate | None:
    """Return the figure of a criterion with its interval within the run; None if the summary has none."""
    label = _label(judgement, summary)
    if label is None:
        return None
    if judgement.metric == "goodput":
        good = summary.goodput
        share = good.share if good and judgement.unit == "%" else None
        return Estimate(share, good.low, good.high) if good and share is not None else None
    if judgement.metric in ("success", "errors") and label.success is not None:
        low, high = label.success_low, label.success_high
        if judgement.metric == "success":
            return Estimate(label.success, low, high)
        if judgement.unit == "%":
            return Estimate(1 - label.success, None if high is None else 1 - high, None if low is None else 1 - low)
        return None
    if judgement.metric == "rate" and label.rate_per_s is not None:
        return Estimate(label.rate_per_s, label.rate_low_per_s, label.rate_high_per_s)
    if judgement.value is None or judgement.metric in grammar.COUNT_UNITS:
        return None
    return Estimate(judgement.value, judgement.low, judgement.high)
