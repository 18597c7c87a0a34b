"""Answers to hypotheses: for each claim a figure with its interval over the repetitions, and the verdict."""

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from framestorm.judge import wording
from framestorm.judge.cells import (
    EMPTY,
    HIDDEN,
    Cell,
    Table,
    groups,
    read_table,
    resamples_of,
)
from framestorm.judge.contrasts import share_without_time
from framestorm.judge.differences import NO_RATIO
from framestorm.judge.knees import judge_knee
from framestorm.judge.point_figures import limits, sample_statistic, share_of
from framestorm.model.expectation import INCONCLUSIVE, REJECTED, whole_verdict
from framestorm.model.metric import beside, split_label
from framestorm.model.metric import metric as metric_of
from framestorm.model.study import Claim, Hypothesis
from framestorm.model.study_summary import ClaimAnswer, EffectSize, HypothesisAnswer
from framestorm.model.units import percent, plural
from framestorm.points.derived import inputs
from framestorm.points.folder import Point
from framestorm.points.study_results import StudyResults
from framestorm.stats.bootstrap import Resamples
from framestorm.stats.checks import LEVEL, Floats
from framestorm.stats.effects import hedges_g, magnitude
from framestorm.stats.estimate import Ends, Estimate
from framestorm.stats.evidence import LARGEST_LOG
from framestorm.stats.means import student, without_repetition
from framestorm.stats.shares import margins

MAX_NAMED = 4


def answer(study: StudyResults) -> list[HypothesisAnswer]:
    """Return each hypothesis with its verdict and its claims."""
    return [_hypothesis(study, hypothesis) for hypothesis in study.record.definition.hypotheses]


def _hypothesis(study: StudyResults, hypothesis: Hypothesis) -> HypothesisAnswer:
    claims = [judge(study, claim) for claim in hypothesis.claims]
    verdict = whole_verdict([claim.verdict for claim in claims], one_is_enough=hypothesis.any)
    return HypothesisAnswer(hypothesis.name, hypothesis.text, hypothesis.published, verdict, hypothesis.any, claims)


def judge(study: StudyResults, claim: Claim) -> ClaimAnswer:
    """Return the answer to one claim."""
    if claim.knee:
        return judge_knee(study, claim, claim.knee)
    of = inputs(study.derived, claim.metric)
    table = read_table(study, claim, without_cut=any(split_label(name)[1] == "sd_ms" for name in of))
    problem = _problem(claim, table)
    design, weights = (None, None) if problem else _model(claim, table)
    if design is None or weights is None:
        problem = problem or f"there are not two levels of {claim.trend} with figures to compare"
        return ClaimAnswer(
            INCONCLUSIVE, f"{wording.claim_subject(claim)}: {problem}.", wording.claim_kind(claim), claim.metric,
            claim.expect.text, cells=[cell.name for cell in table.cells],
        )  # fmt: skip
    figure = _estimate(study, claim, table, weights, design)
    ends = figure.ends
    verdict = claim.expect.verdict(*ends)
    about = metric_of(claim.metric)
    is_plain_share = about.is_share and about.counted_by is not None and wording.claim_kind(claim) == "value"
    if is_plain_share and figure.value in (0.0, 1.0) and claim.expect.excludes(figure.value):
        # Less than all: of failures that were never seen no number of samples gives an interval that excludes them.
        verdict = REJECTED
    if table.left_out_for(EMPTY):
        verdict = INCONCLUSIVE
    effect = _effect(study, claim, table)
    return ClaimAnswer(
        verdict=verdict,
        sentence=wording.claim_sentence(
            _as_measured(claim, table), figure, len(table.repetitions), len(table.cells), effect
        ),
        kind=wording.claim_kind(claim),
        metric=claim.metric,
        expect=claim.expect.text,
        value=figure.value,
        low=figure.low,
        high=figure.high,
        n=len(table.repetitions),
        cells=[cell.name for cell in table.cells],
        method=figure.method,
        effect=effect,
        notes=[*_notes(table, ends, figure.method), *_failing(study, claim, table)],
        basis=study.basis(_points(table, weights), claim.metric, table.repetitions),
    )


def _as_measured(claim: Claim, table: Table) -> Claim:
    """Return the claim about those of its levels that were measured: of a part of a study it is about less."""
    where = {
        name: tuple(level for level in levels if any(cell.factors.get(name) == level for cell in table.cells)) or levels
        if isinstance(levels, tuple)
        else levels
        for name, levels in claim.where.items()
    }
    return claim.model_copy(update={"where": where})


def _problem(claim: Claim, table: Table) -> str | None:
    """Return why the claim cannot be judged; None if it can."""
    if no_ratio := table.left_out_for(NO_RATIO):
        return f"{_names(no_ratio)}: {NO_RATIO}"
    if not table.cells and table.without:
        return "; ".join(f"{why}: {_names(table.left_out_for(why))}" for why in dict.fromkeys(table.without.values()))
    if not table.cells:
        differ = f"two points that differ in just {wording.factor(claim.pair[0])}" if claim.pair else "such point"
        return f"this study has no {differ}"
    return None if table.repetitions else "no repetition has more than half of the points"


def _model(claim: Claim, table: Table) -> tuple[Floats, Floats | None]:
    """Return the design matrix of a claim's model, and the weight of each cell in its figure, a weighted sum of cells.

    The model is one mean, or a straight line over the factor for each row of cells; the figure that mean, or the mean
    of the lines' slopes: without weights, because no line has two levels.
    """
    n = len(table.cells)
    if not claim.trend:
        return np.ones((n, 1)), np.full(n, 1 / n)
    x, lines = np.array([float(cell.factors[claim.trend]) for cell in table.cells]), groups(table.cells, claim.trend)
    sloped = [places for places in lines if np.unique(x[places]).size > 1]
    design, weights = np.zeros((n, 2 * len(lines))), np.zeros(n)
    for line, places in enumerate(lines):
        design[places, 2 * line], design[places, 2 * line + 1] = 1, x[places]
    for places in sloped:
        centred = x[places] - x[places].mean()
        weights[places] = centred / float(centred @ centred) / len(sloped)
    return design, weights if sloped else None


def _estimate(study: StudyResults, claim: Claim, table: Table, weights: Floats, design: Floats) -> Estimate:
    """Return the figure with its interval, which covers every known source of variation and error."""
    # Sums of equal figures may differ in the last digit; such a difference must not decide a claim.
    scale = float(np.abs(table.values).max()) or 1.0
    by_repetition = np.round(weights @ table.values / scale, 12) * scale
    # Nor must that rounding: a third of 3 is 1, and limits are numbers with few digits.
    short = np.array([float(f"{each:.6g}") for each in by_repetition])
    by_repetition = np.where(np.abs(by_repetition - short) <= 1e-12 * scale, short, by_repetition)
    figure = student(by_repetition)
    if by_repetition.size == 1:
        figure = _of_single_runs(study, claim, table, weights, design, figure.value)
    if metric_of(claim.metric).counted_by:
        # A few repetitions are often equal by chance: the interval is at least that of the samples' variation.
        below, above = margins(_terms(study, claim, table, weights), LEVEL, of_logs=table.as_ratio)
        of_samples = figure.value - below, figure.value + above
        # An end that the repetitions cannot give is that of the samples.
        low, high = (end if own is None else own for own, end in zip(figure.ends, of_samples, strict=True))
        method = f"{figure.method}, or wider, by Wilson's of the samples"
        figure = replace(figure, low=low, high=high).or_wider(of_samples, method)
    below, above = _reach(table, weights)
    figure = figure.or_wider((figure.value - below, figure.value + above)).opened(math.isinf(below), math.isinf(above))
    if table.as_ratio:
        least, most = (None if end is None or end > LARGEST_LOG else _from_log(claim, end) for end in figure.ends)
        figure = replace(figure, value=_from_log(claim, figure.value), low=least, high=most)
    return figure.within(limits(study, claim.metric)) if wording.claim_kind(claim) == "value" else figure


def _from_log(claim: Claim, log: float) -> float:
    """Return the ratio, or for a trend the growth in percent per unit of the factor."""
    return 100 * math.expm1(log) if claim.trend else math.exp(log)


def _terms(study: StudyResults, claim: Claim, table: Table, weights: Floats) -> Iterator[tuple[float, float, float]]:
    """Yield the terms whose sum is a figure of shares, or of how many of a run's samples are of a kind.

    Each has weight, share, and number of samples; of ratios the logarithms of the shares are summed.
    """
    about = metric_of(claim.metric)
    counted_by = str(about.counted_by)
    for cell, weight in zip(table.cells, weights, strict=True):
        for point, sign in zip(cell.points, (1, -1), strict=False):
            rows = study.runs(point, table.repetitions)
            runs = [row for row in rows if row.metrics.get(claim.metric) is not None and row.count(counted_by)]
            if runs:
                per_run = sum(row.count(counted_by) for row in runs) / len(runs)
                size = 1.0 if about.is_share or table.as_ratio else per_run
                yield sign * float(weight) * size, *share_of(study, claim.metric, runs)


def _reach(table: Table, weights: Floats) -> tuple[float, float]:
    """How far the true figure may lie below and above, if every cell is off as far as possible in that direction."""
    used = weights != 0  # 0 times infinity would be NaN
    below, above = np.array(table.reach)[used].T
    rises, size = weights[used] > 0, np.abs(weights[used])
    return float(size @ np.where(rises, below, above)), float(size @ np.where(rises, above, below))


def _of_single_runs(
    study: StudyResults, claim: Claim, table: Table, weights: Floats, design: Floats, value: float
) -> Estimate:
    """Return the figure with one run per point; its interval is never narrower than that of the runs' samples."""
    between = without_repetition(table.values[:, 0], weights, design)
    figure, resamples = replace(between, value=value, n=1), resamples_of(study, table, claim.metric)
    if resamples is None:
        return figure
    with np.errstate(invalid="ignore"):  # both ends may be unknown
        drawn = weights @ resamples
    within = Resamples(between.value, drawn, drawn).interval()
    if between.low is None or between.high is None:
        method = "block bootstrap within one run of each point; run-to-run variation is not included"
        return Estimate(value, *within, 1, method)
    return figure.or_wider(within, f"{between.method}, or wider, by a block bootstrap within the runs")


def _effect(study: StudyResults, claim: Claim, table: Table) -> EffectSize | None:
    """Effect size between the two settings, mean over the pairs: of samples if the metric is theirs, else of runs."""
    if not claim.compare or claim.trend:
        return None
    statistic = sample_statistic(study, claim.metric)
    # For a spread or a rate there is only an effect size over the runs.
    by_samples = statistic not in {None, "sd"}
    effects = []
    for cell in table.cells:
        sides = [study.runs(point, table.repetitions) for point in cell.points]
        if by_samples:
            a, b = (study.times(side, claim.metric) for side in sides)
            effects.append(a.cliffs_delta(b) if a.n and b.n else None)
        else:
            figures = [[value for row in side if (value := row.value(claim.metric)) is not None] for side in sides]
            effects.append(hedges_g(*figures))
    values = [effect for effect in effects if effect is not None]
    if not values or len(values) < len(effects):
        return None
    value = float(np.mean(values))
    if by_samples:
        return EffectSize("Cliff's delta", "samples", value, magnitude(value))
    return EffectSize("Hedges' g", "runs", value, None)


def _points(table: Table, weights: Floats) -> list[Point]:
    """Return the points that the figure depends on."""
    return [point for cell, weight in zip(table.cells, weights, strict=True) if weight for point in cell.points]


def _notes(table: Table, ends: Ends, method: str) -> list[str]:
    """Return what a reader has to know about the figure, in sentences."""
    notes = []
    if empty := table.left_out_for(EMPTY):
        notes.append(f"No figure of {_names(empty)}: the claim stays inconclusive.")
    if hidden := table.left_out_for(HIDDEN):
        notes.append(f"Without {_names(hidden)}, where {HIDDEN}.")
    if table.is_cut:
        notes.append("Because of timeouts, an end of the interval is not known.")
    elif any(math.inf in reach for reach in table.reach):
        notes.append("Times in whole milliseconds are too coarse to decide it.")
    if table.filled:
        notes.append(
            f"{plural(table.filled, 'missing value')} of {table.values.size} estimated from the means of point and "
            "repetition (Yates)."
        )
    if table.left_out:
        which = ", ".join(map(str, table.left_out))
        notes.append(f"Left out, because they have half of the points or fewer: repetition {which}.")
    if len(table.repetitions) > 1:
        return notes
    if ends == (None, None) and not table.is_cut:
        notes.append("Insufficient data (n < 2 repetitions): this figure has no interval; repeat the study.")
    elif method.startswith("Student"):
        notes.append("One repetition: the variation between points is taken for that between runs.")
    else:
        notes.append("One repetition: the interval shows within-run variation only.")
    return notes


def _failing(study: StudyResults, claim: Claim, table: Table) -> list[str]:
    """Return notes for a claim on times about samples without a time: all failed ones except timeouts."""
    if not metric_of(claim.metric).is_time:
        return []
    success = {}
    for point in (point for cell in table.cells for point in cell.points):
        runs = study.runs(point, table.repetitions)
        counts = [beside(claim.metric, name) for name in ("n", "ok", "timed_out")]
        n, ok, timed_out = (sum(row.count(name) for row in runs) for name in counts)
        if share_without_time(n, ok, timed_out) is not None:
            success[wording.settings(point.factors)] = ok / n
    if not success:
        return []
    worst = min(success, key=success.__getitem__)
    more = f", and low at {plural(len(success) - 1, 'more point')}" if len(success) > 1 else ""
    return [f"The success rate at {worst} is only {percent(success[worst])}{more}: failing can be faster than working."]


def _names(cells: list[Cell]) -> str:
    names = "; ".join(cell.name for cell in cells[:MAX_NAMED])
    return names + (f" and {len(cells) - MAX_NAMED} more" if len(cells) > MAX_NAMED else "")
