"""One metric of a candidate compared with the baseline: the claim about it, and whether it is a regression.

Both kinds of claims are corrected for multiple comparisons (Holm).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from framestorm.judge.needed import needed
from framestorm.judge.wording import change_and_interval
from framestorm.model.comparison import (
    NEUTRAL,
    NOT_COMPARED,
    NOT_SIGNIFICANT,
    Bound,
    Change,
    ChangeWord,
    Contrast,
    JudgedThreshold,
    SideFigure,
    ThresholdState,
)
from framestorm.model.metric import Metric, Worse, metric
from framestorm.stats.effects import magnitude
from framestorm.stats.evidence import Evidence, Scale, holm

OPEN = "neither end of its interval is known: too few samples, or timeouts hide them"
NOT_IN_FAMILY = "alone it would be a regression; not significant after correction for multiple comparisons"
# Errors other than timeouts have no time: if their share is larger, times describe only the remaining samples.
MANY_FAILED = 0.01
TIME_CLAIMS: dict[Worse, ChangeWord] = {"higher": "slower", "lower": "faster"}
BOUNDS: dict[tuple[bool, bool], Bound] = {
    (False, False): "exact", (False, True): "at least", (True, False): "at most", (True, True): "unknown",
}  # fmt: skip


def share_without_time(n: int, ok: int, timed_out: int) -> float | None:
    """The share of failed samples without a time if it is so large that times are misleading; else None."""
    failed = n - ok - timed_out
    return failed / n if failed > MANY_FAILED * n else None


@dataclass(frozen=True, eq=False)
class Question:
    """`candidate` compared with `baseline`, before judging; `why` says why there is no evidence, if there is none.

    side: the candidate's label.
    ratio_of_means: the ratio if it is not that of the two figures: over repetitions it is that of geometric means.
    """

    metric: str
    baseline: SideFigure
    candidate: SideFigure
    evidence: dict[Scale, Evidence]
    method: str
    point: str | None = None
    effect: float | None = None
    why: str | None = None
    ratio_of_means: float | None = None
    side: str = ""

    @property
    def about(self) -> Metric:
        return metric(self.metric)

    @property
    def scale(self) -> Scale:
        """The scale on which differences are claimed."""
        has_ratio = self.value("ratio") is not None and ("ratio" in self.evidence or not self.evidence)
        return "ratio" if has_ratio and not self.about.is_share else "difference"

    def value(self, scale: Scale) -> float | None:
        """The ratio (None if a figure is not above 0) or the difference."""
        old, new = self.baseline.value, self.candidate.value
        if scale == "difference":
            return new - old
        if self.ratio_of_means is not None:
            return self.ratio_of_means
        return new / old if old > 0 and new > 0 else None

    def change(self, scale: Scale) -> Change | None:
        """The value with its interval."""
        value, evidence = self.value(scale), self.evidence.get(scale)
        return None if value is None else Change(value, *(evidence.interval() if evidence else (None, None)))


@dataclass(frozen=True)
class Missing:
    """A metric that only the baseline has; `why` says what the candidate has instead."""

    side: str
    metric: str
    why: str
    point: str | None = None


@dataclass(frozen=True)
class Threshold:
    """`limit`: how much worse a metric may be, as a share of the baseline's figure, or for shares as a difference.

    worse: the direction that is judged.
    """

    text: str
    metric: str
    limit: float
    worse: Worse

    @property
    def scale(self) -> Scale:
        return "difference" if metric(self.metric).is_share else "ratio"

    @property
    def sign(self) -> int:
        """1 where more is worse, else -1."""
        return 1 if self.worse == "higher" else -1

    @property
    def margin(self) -> float:
        """The difference or ratio beyond which it is a regression."""
        return NEUTRAL[self.scale] + self.sign * self.limit


def judge_differences(family: Sequence[Question]) -> dict[Question, Contrast]:
    """The claim about each question; at most 5 % of all such families include any false claim (Holm).

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
    tested = [(each, question) for each, question in pairs if each.scale in question.evidence]
    stands = holm([2 * _p_of_no_worsening(each, question.evidence[each.scale]) for each, question in tested])
    regressions = {pair for pair, is_regression in zip(tested, stands, strict=True) if is_regression}
    judged = []
    for threshold, question in pairs:
        is_regression = (threshold, question) in regressions
        state, why = ("regression", None) if is_regression else _state_of(threshold, question)
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
            each.text, each.metric, each.limit, "", None, "not compared", "the baseline has none",
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
    """The result if no regression was shown."""
    if threshold.scale not in question.evidence:
        return "not compared", question.why
    # How far the better end and the worse end of the interval lie beyond the margin.
    better, worse = question.evidence[threshold.scale].interval()[:: threshold.sign]
    if worse is not None and threshold.sign * (worse - threshold.margin) <= 0:
        return "within", None
    is_beyond = better is not None and threshold.sign * (better - threshold.margin) > 0
    return "inconclusive", NOT_IN_FAMILY if is_beyond else None


def _needed(threshold: Threshold, question: Question) -> str | None:
    scale = threshold.scale
    value, evidence = question.value(scale), question.evidence.get(scale)
    if value is None or evidence is None:
        return None
    return needed(scale, threshold.margin, value, evidence.interval(), (question.baseline, question.candidate))


def _p_of_no_worsening(threshold: Threshold, evidence: Evidence) -> float:
    """The p-value of no worsening beyond the threshold."""
    return evidence.above(threshold.margin) if threshold.sign > 0 else evidence.below(threshold.margin)
