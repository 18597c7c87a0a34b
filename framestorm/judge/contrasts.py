"""One metric of a candidate compared with the baseline: the claim about it, and whether it is a regression.

Both kinds of claims are corrected for multiple comparisons (Holm).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from framestorm.judge.differences import NO_RATIO, Missing, Question
from framestorm.judge.needed import needed
from framestorm.judge.wording import change_and_interval
from framestorm.model.comparison import (
    NEUTRAL,
    NOT_COMPARED,
    NOT_SIGNIFICANT,
    Bound,
    ChangeWord,
    Contrast,
    JudgedThreshold,
    ThresholdState,
)
from framestorm.model.expectation import CONFIRMED, REJECTED, Expectation
from framestorm.model.metric import Worse, is_rounded, metric
from framestorm.stats.effects import magnitude
from framestorm.stats.evidence import Scale, holm, rounding_ms

OPEN = "neither end of its interval is known: too few samples, or timeouts hide them"
NOT_IN_FAMILY = "alone it would be a regression; not significant after correction for multiple comparisons"
BY_DIFFERENCE = f"{NO_RATIO}: judged by the difference"
# Errors other than timeouts have no time: if their share is larger, times describe only the remaining samples.
MANY_FAILED = 0.01
TIME_CLAIMS: dict[Worse, ChangeWord] = {"higher": "slower", "lower": "faster"}
BOUNDS: dict[tuple[bool, bool], Bound] = {
    (False, False): "exact", (False, True): "at least", (True, False): "at most", (True, True): "unknown",
}  # fmt: skip


def share_without_time(n: int, ok: int, timed_out: int) -> float | None:
    """Return the share of failed samples without a time if it is so large that times are misleading; else None."""
    failed = n - ok - timed_out
    return failed / n if failed > MANY_FAILED * n else None


@dataclass(frozen=True)
class Threshold:
    """`limit`: how much worse a metric may be, as a share of the baseline's figure, or for shares as a difference.

    worse: the direction that is judged.
    """

    text: str
    metric: str
    limit: float
    worse: Worse

    def bound_for(self, question: Question) -> tuple[Scale, float]:
        """Return the ratio or difference beyond which it is a regression; where there is no ratio, the difference."""
        change = self.limit if self.worse == "higher" else -self.limit
        if metric(self.metric).is_share:
            return "difference", change
        if _has_no_ratio(question):
            return "difference", change * abs(question.baseline.value)
        return "ratio", NEUTRAL["ratio"] + change

    def expectation(self, margin: float) -> Expectation:
        """Return the differences or ratios that are no regression, which ends at a margin."""
        ends = (-math.inf, margin) if self.worse == "higher" else (margin, math.inf)
        return Expectation(self.text, *ends)


def _has_no_ratio(question: Question) -> bool:
    """Return whether a metric that is compared by its ratio has a figure of 0."""
    return not question.about.is_share and question.scale == "difference" and "difference" in question.evidence


def judge_differences(family: Sequence[Question]) -> dict[Question, Contrast]:
    """Return the claim about each question; at most 5 % of all such families include any false claim (Holm).

    Figures that are equal on both sides and have no spread, such as a rate set on both, do not count: no claim about
    them can be false.
    """
    contrasts = {question: _unclaimed(question) for question in family}
    tested = [
        question
        for question, contrast in contrasts.items()
        if contrast.p_value is not None
        and question.evidence[question.scale].interval() != (NEUTRAL[question.scale],) * 2
    ]
    for question, stands in zip(tested, holm([contrasts[each].p_value or 0.0 for each in tested]), strict=True):
        if stands:
            contrasts[question] = _claimed(question, contrasts[question])
    return contrasts


def _unclaimed(question: Question) -> Contrast:
    evidence = question.evidence.get(question.scale)
    is_open = evidence is not None and evidence.interval() == (None, None)
    p_value = None if evidence is None or is_open else evidence.two_sided(NEUTRAL[question.scale])
    return Contrast(
        metric=question.metric,
        point=question.point,
        baseline=question.baseline,
        candidate=question.candidate,
        difference=question.change("difference"),
        ratio=question.change("ratio"),
        scale=question.scale,
        bound=BOUNDS[question.baseline.is_lower_bound, question.candidate.is_lower_bound],
        p_value=p_value,
        claim=NOT_COMPARED if p_value is None else NOT_SIGNIFICANT,
        is_worse=None,
        cliffs_delta=question.effect,
        cliffs_magnitude=None if question.effect is None else magnitude(question.effect),
        method=question.method,
        why=OPEN if is_open else question.why,
    )


def _claimed(question: Question, contrast: Contrast) -> Contrast:
    about, evidence, neutral = question.about, question.evidence[question.scale], NEUTRAL[question.scale]
    direction: Worse = "higher" if evidence.above(neutral) < evidence.below(neutral) else "lower"
    claim = TIME_CLAIMS[direction] if about.is_time else direction
    return replace(contrast, claim=claim, is_worse=None if about.worse is None else direction == about.worse)


def judge_thresholds(
    thresholds: Sequence[Threshold], contrasts: Mapping[Question, Contrast], missing: Sequence[Missing] = ()
) -> list[JudgedThreshold]:
    """Judge every question by every threshold on its metric; a missing metric never passes.

    A regression is a worsening beyond the threshold that the interval shows. Holm's procedure over all of them ensures
    that at most 2.5 % of such judgements report any false regression.
    """
    pairs = [(each, question) for each in thresholds for question in contrasts if question.metric == each.metric]
    tested = [(each, question) for each, question in pairs if each.bound_for(question)[0] in question.evidence]
    stands = holm([2 * _p_of_no_worsening(each, question) for each, question in tested])
    regressions = {pair for pair, is_regression in zip(tested, stands, strict=True) if is_regression}
    judged = []
    for threshold, question in pairs:
        is_regression = (threshold, question) in regressions
        state, why = ("regression", None) if is_regression else _state_of(threshold, question)
        if _has_no_ratio(question):
            why = "; ".join(each for each in (BY_DIFFERENCE, why) if each)
        of = _judged(threshold, question, state, why, change_and_interval(contrasts[question]))
        judged.append(replace(of, needed=_needed(threshold, question)) if state == "inconclusive" else of)
    judged += [
        _judged(each, what, "missing", what.why, "none, though the baseline has it")
        for each in thresholds
        for what in missing
        if what.metric == each.metric
    ]
    measured = {each.threshold for each in judged}
    return judged + [
        JudgedThreshold(
            each.text, each.metric, each.limit, "", None, "not compared",
            "the baseline has too few samples of it, or none",
            f"{metric(each.metric).title}: not measured on both sides",
        )
        for each in thresholds
        if each.text not in measured
    ]  # fmt: skip


def _judged(
    threshold: Threshold, of: Question | Missing, state: ThresholdState, why: str | None, change: str
) -> JudgedThreshold:
    where = f" at {of.point}" if of.point else ""
    text = f"{of.side}, {metric(of.metric).label}{where}: {change}"
    return JudgedThreshold(threshold.text, of.metric, threshold.limit, of.side, of.point, state, why, text)


def _state_of(threshold: Threshold, question: Question) -> tuple[ThresholdState, str | None]:
    """Return the result if no regression was shown."""
    scale, margin = threshold.bound_for(question)
    if scale not in question.evidence:
        return "not compared", question.why
    verdict = threshold.expectation(margin).verdict(*question.evidence[scale].interval())
    if verdict == CONFIRMED:
        return "within", None
    return "inconclusive", NOT_IN_FAMILY if verdict == REJECTED else None


def _needed(threshold: Threshold, question: Question) -> str | None:
    scale, margin = threshold.bound_for(question)
    value, evidence = question.value(scale), question.evidence.get(scale)
    if value is None or evidence is None:
        return None
    old, new = question.baseline, question.candidate
    off_old, off_new = (rounding_ms([side.value]) if is_rounded(question.metric) else 0.0 for side in (old, new))
    return needed(scale, margin, value, evidence.interval(), (old, new), (off_old, off_new))


def _p_of_no_worsening(threshold: Threshold, question: Question) -> float:
    """Return the p-value of no worsening beyond the threshold."""
    scale, margin = threshold.bound_for(question)
    evidence = question.evidence[scale]
    return evidence.above(margin) if threshold.worse == "higher" else evidence.below(margin)
