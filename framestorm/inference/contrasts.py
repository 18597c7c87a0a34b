"""One metric of a candidate against the baseline: what is claimed of it, and whether it is a regression.

Both kinds of claims are corrected for multiple comparisons (Holm).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from framestorm.inference.evidence import Evidence, holm, two_sided
from framestorm.model.comparison import (
    NEUTRAL,
    NOT_COMPARED,
    NOT_SIGNIFICANT,
    Bound,
    Change,
    Claim,
    Contrast,
    Scale,
    SideFigure,
    State,
)
from framestorm.model.metric import Metric, Worse, metric
from framestorm.stats.effects import magnitude

OPEN = "neither end of its interval is known: too few samples, or timeouts hide them"
NOT_IN_FAMILY = "alone it would be a regression; not significant after correction for multiple comparisons"
# Errors that are no timeouts have no time: beyond this share of them, times are those of what was left.
MANY_FAILED = 0.01
TIME_CLAIMS: dict[Worse, Claim] = {"higher": "slower", "lower": "faster"}
BOUNDS: dict[tuple[bool, bool], Bound] = {
    (False, False): "exact", (False, True): "at least", (True, False): "at most", (True, True): "unknown",
}  # fmt: skip


def share_without_time(n: int, ok: int, timed_out: int) -> float | None:
    """The share of samples that failed and have no time, where it is so large that times mislead; else None."""
    failed = n - ok - timed_out
    return failed / n if failed > MANY_FAILED * n else None


@dataclass(frozen=True)
class Question:
    """`candidate` against `baseline` before it is judged; no evidence where nothing can be said, and then `why`.

    ratio_of_means: the ratio, where it is not that of the two figures: over repetitions it is of geometric means.
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

    @property
    def about(self) -> Metric:
        return metric(self.metric)

    @property
    def scale(self) -> Scale:
        """The scale on which differences are claimed."""
        has_ratio = self.value("ratio") is not None and ("ratio" in self.evidence or not self.evidence)
        return "ratio" if has_ratio and not self.about.is_share else "difference"

    @property
    def p_value(self) -> float | None:
        """Of no difference; None without an interval."""
        if self.is_open or self.scale not in self.evidence:
            return None
        return two_sided(self.evidence[self.scale], NEUTRAL[self.scale])

    @property
    def is_constant(self) -> bool:
        """Whether the two sides are the same without any spread, such as a rate that was set in both."""
        neutral = NEUTRAL[self.scale]
        return self.scale in self.evidence and self.evidence[self.scale].interval() == (neutral, neutral)

    @property
    def is_open(self) -> bool:
        """Whether there is an interval of which neither end is known."""
        return self.scale in self.evidence and self.evidence[self.scale].interval() == (None, None)

    @property
    def direction(self) -> Worse:
        """The way in which the candidate more probably differs."""
        evidence, neutral = self.evidence[self.scale], NEUTRAL[self.scale]
        return "higher" if evidence.above(neutral) < evidence.below(neutral) else "lower"

    def value(self, scale: Scale) -> float | None:
        """The ratio, None where a figure is not above 0, or the difference."""
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
    """A metric that the baseline has and the candidate has not; `why` says what there is instead."""

    metric: str
    why: str
    point: str | None = None


def judge_differences(family: Sequence[Question]) -> list[Contrast]:
    """What is claimed of each; of all families like this one, at most 5 % hold any wrong claim (Holm).

    Constants do not count: of them no claim can be wrong.
    """
    p_values = [question.p_value for question in family]
    tested = [
        (number, p)
        for number, (question, p) in enumerate(zip(family, p_values, strict=True))
        if p is not None and not question.is_constant
    ]
    stands = holm([p for _, p in tested])
    claimed = {number for (number, _), stand in zip(tested, stands, strict=True) if stand}
    return [
        _contrast(question, p, question.direction if number in claimed else None)
        for number, (question, p) in enumerate(zip(family, p_values, strict=True))
    ]


def _contrast(question: Question, p_value: float | None, direction: Worse | None) -> Contrast:
    about, effect = question.about, question.effect
    claim: Claim = NOT_COMPARED if p_value is None else NOT_SIGNIFICANT
    if direction is not None:
        claim = TIME_CLAIMS[direction] if about.is_time else direction
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
        claim=claim,
        is_worse=None if direction is None or about.worse is None else direction == about.worse,
        cliffs_delta=effect,
        cliffs_magnitude=None if effect is None else magnitude(effect),
        method=question.method,
        why=OPEN if question.is_open else question.why,
    )


@dataclass(frozen=True)
class Threshold:
    """`limit`: by which share of the baseline's figure, or of shares by which difference, a metric may be worse."""

    text: str
    metric: str
    limit: float


@dataclass(frozen=True)
class Judged:
    """A threshold and what it is about: a question of one side, or why there is none."""

    threshold: Threshold
    label: str
    about: Question | Missing | None
    state: State
    why: str | None = None


def judge_thresholds(
    thresholds: Sequence[Threshold],
    questions: Sequence[tuple[str, Question]],
    missing: Sequence[tuple[str, Missing]] = (),
) -> list[Judged]:
    """Judge every question, given with its side's label, by every threshold on its metric; what is missing has no pass.

    A regression is a worsening beyond the threshold that the interval shows; that at most 2.5 % of all judgements like
    this one call a regression what is none, they are held together by Holm's procedure.
    """
    rows = [(each, label, q) for each in thresholds for label, q in questions if q.metric == each.metric]
    tested = [number for number, (_, _, question) in enumerate(rows) if _scale(question) in question.evidence]
    stands = holm([2 * _p_of_no_worsening(rows[number][0], rows[number][2]) for number in tested])
    regressions = {number for number, stand in zip(tested, stands, strict=True) if stand}
    judged = [Judged(*row, "regression") if number in regressions else _judged(*row) for number, row in enumerate(rows)]
    judged += [
        Judged(each, label, what, "missing", what.why)
        for each in thresholds
        for label, what in missing
        if what.metric == each.metric
    ]
    measured = {each.threshold.metric for each in judged}
    return judged + [
        Judged(each, "", None, "not compared", "the baseline has none")
        for each in thresholds
        if each.metric not in measured
    ]


def _judged(threshold: Threshold, label: str, question: Question) -> Judged:
    evidence = question.evidence.get(_scale(question))
    if evidence is None:
        return Judged(threshold, label, question, "not compared", question.why)
    low, high = evidence.interval()
    margin = _margin(threshold, question)
    # The end towards the better, and the one towards the worse, as far as they lie beyond the margin.
    sign = 1 if question.about.worse == "higher" else -1
    better, worse = (low, high) if sign > 0 else (high, low)
    if worse is not None and sign * (worse - margin) <= 0:
        return Judged(threshold, label, question, "within")
    is_beyond = better is not None and sign * (better - margin) > 0
    return Judged(threshold, label, question, "inconclusive", NOT_IN_FAMILY if is_beyond else None)


def _scale(question: Question) -> Scale:
    return "difference" if question.about.is_share else "ratio"


def _margin(threshold: Threshold, question: Question) -> float:
    worse = threshold.limit if question.about.worse == "higher" else -threshold.limit
    return worse if question.about.is_share else 1 + worse


def _p_of_no_worsening(threshold: Threshold, question: Question) -> float:
    """The p-value of no worsening beyond the threshold."""
    evidence, margin = question.evidence[_scale(question)], _margin(threshold, question)
    return evidence.above(margin) if question.about.worse == "higher" else evidence.below(margin)
