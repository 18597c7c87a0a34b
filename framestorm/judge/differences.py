"""The difference of two sides in one metric, with the evidence for it, before it is judged.

With one run per side, its samples are resampled; with repetitions, their variation counts.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from framestorm.model.comparison import Change, SideFigure
from framestorm.model.metric import Metric, is_of_run, is_rounded, metric, percentile
from framestorm.results.samples import OrderedTimes
from framestorm.stats.batches import BATCHES, batch_of_rate, rate_changes
from framestorm.stats.bootstrap import Resamples, draw
from framestorm.stats.checks import Flags, Floats
from framestorm.stats.evidence import (
    Evidence,
    Scale,
    geometric_ratio,
    of_estimate,
    of_shares,
    over_repetitions,
    rounding_ms,
)
from framestorm.stats.means import welch
from framestorm.stats.shares import design_effect

# Fewer show too little of their spread for a claim.
LEAST_SAMPLES = 20
RESAMPLES = 10_000
# For long runs: longer blocks are valid whenever shorter ones are, and many blocks cost time.
MOST_BLOCKS = 200
# How many samples must lie beyond a percentile before it is compared: for p99, 1000 samples in all.
LEAST_BEYOND = 10
LEAST_OF_RATE = BATCHES * 5  # samples without error
SEED = 20_211_101
BLOCK_METHOD = f"block bootstrap of each run, {RESAMPLES:,} resamples"
RATE_METHOD = f"Welch's interval of the means of {BATCHES} batches of each run"
SHARE_METHOD = "Newcombe's interval with the effective number of independent samples"
REPEATED_SHARE_METHOD = (
    "for success and errors the wider of Welch's or Student's interval over repetitions and Newcombe's over samples"
)
PAIRED_METHOD = "Student's interval over pairs, one in each repetition; ratios of geometric means"
POINTS_METHOD = "one repetition a side: Student's interval over pairs, one at each point; ratios of geometric means"
WELCH_METHOD = "Welch's interval over repetitions; ratios of geometric means"
ONE_BOUND = "timeouts hide the figure of one side, which is a lower bound"
BOTH_BOUNDS = "timeouts hide the figure of both sides"
RATE_DRIFTS = "the rate of one run rises or falls during the run"
NO_RATIO = "a figure of 0 has no ratio"
ONE_ONLY = "insufficient data (n < 2 repetitions): the variation between repetitions is not known"


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
        """Return the ratio (None if a figure is not above 0) or the difference."""
        old, new = self.baseline.value, self.candidate.value
        if scale == "difference":
            return new - old
        if self.ratio_of_means is not None:
            return self.ratio_of_means
        return new / old if old > 0 and new > 0 else None

    def change(self, scale: Scale) -> Change | None:
        """Return the value with its interval."""
        value, evidence = self.value(scale), self.evidence.get(scale)
        return None if value is None else Change(value, *(evidence.interval() if evidence else (None, None)))


@dataclass(frozen=True)
class Missing:
    """A metric that only the baseline has; `why` says what the candidate has instead."""

    side: str
    metric: str
    why: str
    point: str | None = None


def seed(side: int, what: str) -> list[int]:
    """Return a seed for random numbers, the same in every comparison but different for each side and series."""
    return [SEED, side, *what.encode()]


def least_samples(statistic: str) -> int:
    """Return how many samples a statistic of a run needs before it is compared."""
    if statistic == "mean":
        return LEAST_SAMPLES
    percent = float(str(percentile(statistic)))
    return max(LEAST_SAMPLES, round(100 * LEAST_BEYOND / min(percent, 100 - percent)))


def resamples_of_times(times: OrderedTimes, seed: list[int], statistic: str) -> Resamples | None:
    """Return resamples of the mean or a percentile; None with too few samples.

    Their interval includes the rounding error of times in whole ms.
    """
    if times.n < least_samples(statistic):
        return None
    block = max(times.block, times.n // MOST_BLOCKS)
    drawn = draw(
        times.values_ms, percentile(statistic) or statistic, cut=times.cut, block=block, seed=seed, resamples=RESAMPLES
    )
    off = rounding_ms(drawn.value)
    return replace(drawn, least=drawn.least - off, most=drawn.most + off)


def of_rates(name: str, figures: tuple[SideFigure, SideFigure], ended_ms: tuple[Floats, Floats]) -> Question:
    """Return the question about the rates of single runs, by when their samples without error ended."""
    fewest = min(each.size for each in ended_ms)
    if fewest < LEAST_OF_RATE:
        why = f"insufficient data (n < {LEAST_OF_RATE:,}): n = {fewest}"
        return Question(name, *figures, {}, RATE_METHOD, why=why)
    old, new = map(batch_of_rate, ended_ms)
    if old is None or new is None or not (old.value and new.value):
        return Question(name, *figures, {}, RATE_METHOD, why=RATE_DRIFTS)
    rates = figures[0].value, figures[1].value
    return Question(name, *figures, rate_changes(old, new, rates), RATE_METHOD)


def of_single_runs(
    name: str, a: SideFigure, b: SideFigure, drawn: tuple[Resamples | None, Resamples | None]
) -> Question:
    """Return the question about single runs, by resamples of their figure; None for a run with too few samples."""
    (of_old, of_new), method = drawn, BLOCK_METHOD
    if of_old is None or of_new is None:
        why = f"insufficient data (n < {least_samples(str(metric(name).statistic)):,}): n = {min(a.n, b.n)}"
        return _bounded(Question(name, a, b, {}, method, why=why))
    evidence: dict[Scale, Evidence] = {"difference": of_new.change_from(of_old, "difference")}
    if of_old.value > 0 and of_new.value > 0:
        evidence["ratio"] = of_new.change_from(of_old, "ratio")
    return _bounded(Question(name, a, b, evidence, method))


def of_success(name: str, old: Sequence[Flags], new: Sequence[Flags]) -> Question:
    """Return the question about the success rate, by whether each sample of each run is right.

    Over repetitions its evidence is the wider of the intervals by samples and by repetitions.
    """
    rights = (old, new)
    # If one side has no errors, their clusters are unknown: those of the other side are assumed.
    clustered = max(design_effect(right) for side in rights for right in side)
    together = [np.concatenate(side) for side in rights]
    a, b = (
        SideFigure(float(right.mean()), n=right.size, repetitions=len(side))
        for right, side in zip(together, rights, strict=True)
    )
    evidence: Evidence = of_shares([(1.0, b.value, b.n / clustered), (-1.0, a.value, a.n / clustered)])
    if max(map(len, rights)) == 1:
        return Question(name, a, b, {"difference": evidence}, SHARE_METHOD)
    # Shares of all samples together, because repetitions of one plan have nearly equal numbers.
    by_run = [[float(right.mean()) for right in side] for side in rights]
    evidence = evidence.or_wider(of_estimate(lambda level: welch(by_run[1], by_run[0], level))).within(-1, 1)
    return Question(name, a, b, {"difference": evidence}, REPEATED_SHARE_METHOD)


def of_repetitions(
    name: str,
    figures: Sequence[Sequence[SideFigure]],
    n: tuple[int, int],
    rows: Sequence[Sequence[float]] = (),
    by_point: Sequence[Sequence[float]] = (),
    *,
    paired: bool = False,
) -> Question:
    """Return the question about figures of each side, of n samples.

    rows: one value per repetition, if figures are not that; by_point: with one repetition a side, one value per point,
    which is what the sides are compared by. paired: whether repetitions are pairs; points always are.
    """
    rows = rows or [[figure.value for figure in side] for side in figures]
    old, new = (
        SideFigure(float(np.mean(row)), is_bound(side), total, len(row))
        for row, side, total in zip(rows, figures, n, strict=True)
    )
    off = [rounding_ms([each.value for each in side]) if is_rounded(name) else 0.0 for side in figures]
    before, after = by_point or rows
    method = POINTS_METHOD if by_point else PAIRED_METHOD if paired else WELCH_METHOD
    bounds, rounding, why = (old.is_lower_bound, new.is_lower_bound), (off[0], off[1]), None
    evidence = over_repetitions(before, after, bounds, paired=method != WELCH_METHOD, rounding=rounding)
    if any(bounds) and (name.endswith("sd_ms") or not is_of_run(name)):
        evidence, why = {}, "the figure of one side means nothing, because of timeouts"
    elif not evidence:
        why = ONE_ONLY
    if metric(name).counted_by and evidence and old.n and new.n:
        # At least as wide as the variation of samples, because a few repetitions are often equal by chance.
        of_samples = _of_samples(name, figures, (old, new))
        evidence = {scale: each.or_wider(of_samples[scale]) for scale, each in evidence.items() if scale in of_samples}
        method = REPEATED_SHARE_METHOD
    if metric(name).is_share and evidence:
        evidence = {"difference": evidence["difference"].within(-1, 1)}
    ratio = geometric_ratio(before, after)
    return _bounded(Question(name, old, new, evidence, method, why=why, ratio_of_means=ratio))


def _bounded(question: Question) -> Question:
    """Return the question with its bound from timeouts; if they hide the figures of both sides, it has no evidence."""
    are_bounds = question.baseline.is_lower_bound, question.candidate.is_lower_bound
    if all(are_bounds):
        return replace(question, evidence={}, why=BOTH_BOUNDS)
    return replace(question, why=ONE_BOUND) if any(are_bounds) and question.why is None else question


def _of_samples(
    name: str, figures: Sequence[Sequence[SideFigure]], sides: tuple[SideFigure, SideFigure]
) -> dict[Scale, Evidence]:
    """Return what the samples show of a share of them, or of how many of a run's are of a kind, such as errors."""
    if metric(name).is_share:
        terms = [(sign, side.value, side.n) for sign, side in zip((-1.0, 1.0), sides, strict=True)]
        return {"difference": of_shares(terms)}
    old, new = (sum(each.value for each in of) / side.n for of, side in zip(figures, sides, strict=True))
    per_run = [side.n / len(of) for of, side in zip(figures, sides, strict=True)]
    evidence: dict[Scale, Evidence] = {
        "difference": of_shares([(per_run[1], new, sides[1].n), (-per_run[0], old, sides[0].n)])
    }
    if min(old, new) > 0:
        ratio = of_shares([(1.0, new, sides[1].n), (-1.0, old, sides[0].n)], of_logs=True)
        evidence["ratio"] = ratio.scaled(per_run[1] / per_run[0])
    return evidence


def is_bound(figures: Iterable[SideFigure]) -> bool:
    return any(figure.is_lower_bound for figure in figures)
