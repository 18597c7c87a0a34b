"""The questions of a comparison: every metric that both sides have, with the evidence from their runs.

With one run per side, its samples are resampled; with repetitions, their variation counts. Studies are compared point
by point, and over all points that both have.
"""

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from framestorm.compare.runs import RATE, STATISTICS, SUCCESS, Measured, Run, RunSide
from framestorm.compare.sides import StudySide
from framestorm.errors import FramestormError
from framestorm.judge.contrasts import Missing, Question
from framestorm.model.comparison import SideFigure
from framestorm.model.metric import column, is_of_run, is_rounded, metric, percentile, split_label
from framestorm.model.units import plural
from framestorm.results.jtl import JMETER_TIMES
from framestorm.results.samples import OrderedTimes
from framestorm.stats.bootstrap import Resamples, draw
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
RATE_WINDOWS = 20
LEAST_OF_RATE = RATE_WINDOWS * 5  # samples without error
SEED = 20_211_101
BLOCK_METHOD = f"block bootstrap of each run, {RESAMPLES:,} resamples"
RATE_METHOD = f"bootstrap of {RATE_WINDOWS} windows of time of each run"
SHARE_METHOD = "Newcombe's interval with the effective number of independent samples"
REPEATED_SHARE_METHOD = (
    "for success and errors the wider of Welch's or Student's interval over repetitions and Newcombe's over samples"
)
PAIRED_METHOD = "Student's interval over pairs, one in each repetition; ratios of geometric means"
POINTS_METHOD = "one repetition a side: Student's interval over pairs, one at each point; ratios of geometric means"
WELCH_METHOD = "Welch's interval over repetitions; ratios of geometric means"
ONE_BOUND = "timeouts hide the figure of one side, which is a lower bound"
BOTH_BOUNDS = "timeouts hide the figure of both sides"
ONE_ONLY = "insufficient data (n < 2 repetitions): the variation between repetitions is not known"


@dataclass(frozen=True)
class Questions:
    """The questions for two sides: each metric over all common points, and at each; and points that only one side has.

    points: empty if there is only one point, which `overall` is about.
    missing: metrics for which only the old side has a value.
    pairs: what is paired over all points; None: nothing, because the sides ran in different orders, or only once.
    """

    overall: list[Question]
    missing: list[Missing]
    points: list[Question] = field(default_factory=list)
    shared: list[str] = field(default_factory=list)
    only_baseline: list[str] = field(default_factory=list)
    only_candidate: list[str] = field(default_factory=list)
    pairs: Literal["repetition", "point"] | None = None


def of_runs(old: RunSide, new: RunSide, numbers: tuple[int, int] = (0, 1), wanted: Collection[str] = ()) -> Questions:
    """The questions for runs: every metric that both sides have, and of those of labels and of JMeter's own the wanted.

    With one run per side its samples are resampled; of repetitions each run's figure is one value, because samples of
    a run are not repetitions. `numbers` give each side its own random numbers.
    """
    is_single = len(old.runs) == len(new.runs) == 1
    usual = [column(series, each) for series in old.series() if series not in JMETER_TIMES for each in STATISTICS]
    asked: list[Question] = []
    missing: list[Missing] = []
    by_series: dict[tuple[str | None, str | None], dict[str, None]] = {}
    for name in (*usual, SUCCESS, RATE, *wanted):
        by_series.setdefault((split_label(name)[0], metric(name).series), {})[name] = None
    for (label, series), of_series in by_series.items():
        effect: float | None = None
        for name in of_series:
            figures = [list(side.figures(name).values()) for side in (old, new)]
            if not all(figures):
                why = f"{new.name} has too few samples of it, or none"
                missing += [Missing(new.label, name, why)] if figures[0] else []
                continue
            if split_label(name)[1] == SUCCESS:
                question = _success(old, new, name)
            elif is_single:
                question = _resampled(name, figures[0][0], figures[1][0], (old.runs[0], new.runs[0]), numbers)
            elif series is None:
                question = _question(name, figures, (len(figures[0]), len(figures[1])), WELCH_METHOD)
            else:
                n = old.times(label, series).n, new.times(label, series).n
                question = _question(name, figures, n, WELCH_METHOD)
            if series is not None and effect is None:
                effect = new.times(label, series).cliffs_delta(old.times(label, series))
            asked.append(replace(question, side=new.label, effect=effect))
    return Questions(asked, missing)


def seed(side: int, what: str) -> list[int]:
    """A seed for random numbers, the same in every comparison but different for each side and series."""
    return [SEED, side, *what.encode()]


def least_samples(statistic: str) -> int:
    """How many samples a statistic of a run needs before it is compared."""
    if statistic == "mean":
        return LEAST_SAMPLES
    percent = float(str(percentile(statistic)))
    return max(LEAST_SAMPLES, round(100 * LEAST_BEYOND / min(percent, 100 - percent)))


def resamples_of_times(times: OrderedTimes, seed: list[int], statistic: str) -> Resamples | None:
    """Resamples of the mean or a percentile; None with too few samples.

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


def _resamples_of_rate(of: Measured, seed: list[int]) -> Resamples | None:
    """Resamples of the rate of samples without error, by independent time windows; None if these have too few."""
    if of.serving_ms is None or of.ended_ms.size < LEAST_OF_RATE:
        return None
    start, end = of.serving_ms
    counts, _ = np.histogram(of.ended_ms, bins=RATE_WINDOWS, range=(start, end))
    return draw(counts / ((end - start) / RATE_WINDOWS / 1000), block=1, seed=seed, resamples=RESAMPLES)


def _resampled(name: str, a: SideFigure, b: SideFigure, runs: tuple[Run, Run], numbers: tuple[int, int]) -> Question:
    """The question for single runs, by resampling the samples of each."""
    label, about = split_label(name)[0], metric(name)
    if about.series is None:
        method, least = RATE_METHOD, LEAST_OF_RATE
        drawn = [_resamples_of_rate(run.of(label), seed(n, "rate")) for run, n in zip(runs, numbers, strict=True)]
    else:
        series, statistic = about.series, str(about.statistic)
        method, least = BLOCK_METHOD, least_samples(statistic)
        drawn = [
            resamples_of_times(run.of(label).times[series], seed(n, series.removesuffix("_ms")), statistic)
            for run, n in zip(runs, numbers, strict=True)
        ]
    of_old, of_new = drawn
    if of_old is None or of_new is None:
        why = f"insufficient data (n < {least:,}): n = {min(a.n, b.n)}"
        return _bounded(Question(name, a, b, {}, method, why=why))
    evidence: dict[Scale, Evidence] = {"difference": of_new.change_from(of_old, "difference")}
    if of_old.value > 0 and of_new.value > 0:
        evidence["ratio"] = of_new.change_from(of_old, "ratio")
    return _bounded(Question(name, a, b, evidence, method))


def _bounded(question: Question) -> Question:
    """The question with its bound from timeouts; if they hide the figures of both sides, it has no evidence."""
    are_bounds = question.baseline.is_lower_bound, question.candidate.is_lower_bound
    if all(are_bounds):
        return replace(question, evidence={}, why=BOTH_BOUNDS)
    return replace(question, why=ONE_BOUND) if any(are_bounds) and question.why is None else question


def _success(old: RunSide, new: RunSide, name: str) -> Question:
    """Success rate of the samples; over repetitions, the wider of the intervals by samples and by repetitions."""
    rights = [[run.of(split_label(name)[0]).right for run in side.runs] for side in (old, new)]
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


def of_studies(old: StudySide, new: StudySide, metrics: Sequence[str]) -> Questions:
    """The questions for two studies or levels about `metrics`, which are columns of results.csv.

    Raises:
        FramestormError: they have no point in common.
    """
    shared = [key for key in old.points if key in new.points]
    if not shared:
        examples = f"{old.name} has {next(iter(old.points))}, {new.name} has {next(iter(new.points))}"
        raise FramestormError(f"{old.name} and {new.name} have no point in common, nothing can be compared: {examples}")
    is_paired = old.schedule == new.schedule and len(old.repetitions & new.repetitions) > 1
    is_one = len(shared) == 1
    points, overall, missing = [], [], []
    for name in metrics:
        for key in shared:
            if question := _at(old, new, key, name, is_paired):
                points.append(replace(question, point=None if is_one else key, side=new.label))
            elif old.figures(key, name):
                missing.append(Missing(new.label, name, _lack(new, key), key))
        if not is_one and (question := _overall(old, new, name, shared, is_paired)):
            overall.append(replace(question, side=new.label))
    ran_once = not is_one and len(old.repetitions) == len(new.repetitions) == 1
    return Questions(
        points if is_one else overall,
        missing,
        [] if is_one else points,
        shared,
        [key for key in old.points if key not in new.points],
        [key for key in new.points if key not in old.points],
        "point" if ran_once else "repetition" if is_paired else None,
    )


def _lack(side: StudySide, point: str) -> str:
    """What a side has at a point where it has no figure."""
    runs = len(side.figures(point, "n"))
    without_error = f"{side.total(point, 'ok')} samples without error of {plural(side.total(point, 'n'), 'sample')}"
    return f"{plural(runs, 'complete run')} with {without_error}" if runs else "no complete run"


def _at(old: StudySide, new: StudySide, point: str, name: str, is_paired: bool) -> Question | None:
    """The question about one metric at one point; None if a side has no value."""
    sides = [side.figures(point, name) for side in (old, new)]
    if not all(sides):
        return None
    common = sides[0].keys() & sides[1].keys()
    in_pairs = is_paired and len(common) > 1
    figures = [[each[number] for number in sorted(common if in_pairs else each)] for each in sides]
    n = _total(old, [point], name), _total(new, [point], name)
    question = _question(name, figures, n, PAIRED_METHOD if in_pairs else WELCH_METHOD)
    runs = sum(len(side.figures(point, "n")) for side in (old, new))
    lacking = runs - sum(map(len, sides))
    note = f"{lacking} of {plural(runs, 'run')} of both sides have no value" if lacking > 0 else None
    return replace(question, why="; ".join(each for each in (question.why, note) if each) or None)


def _overall(old: StudySide, new: StudySide, name: str, shared: Sequence[str], is_paired: bool) -> Question | None:
    """Return the question about a metric over all points that both sides have: its mean over points, by repetition.

    The mean is geometric, so that each point counts by its ratio and not by its size, and arithmetic for shares and for
    values that may be 0. Repetitions that lack one of these points do not count. With one repetition a side, the
    variation between points takes the place of that between repetitions, as in `stats.means.without_repetition`.
    """
    figures = {key: (old.figures(key, name), new.figures(key, name)) for key in shared}
    known = {key: sides for key, sides in figures.items() if all(sides)}
    # Cut off by timeouts on both sides, in any repetition.
    hidden = [key for key, sides in known.items() if all(_is_bound(side.values()) for side in sides)]
    points = {key: sides for key, sides in known.items() if key not in hidden}
    whole = [set.intersection(*(set(of[side]) for of in points.values())) if points else set() for side in (0, 1)]
    in_pairs = is_paired and len(whole[0] & whole[1]) > 1
    repetitions = [sorted(whole[0] & whole[1] if in_pairs else each) for each in whole]
    if not all(repetitions):
        return None
    every = [[figure for sides in points.values() for figure in sides[side].values()] for side in (0, 1)]
    is_geometric = min(figure.value for side in every for figure in side) > 0 and not metric(name).is_share

    def centre(values: Sequence[float]) -> float:
        return math.exp(float(np.log(values).mean())) if is_geometric else float(np.mean(values))

    rows = [[centre([sides[side][k].value for sides in points.values()]) for k in repetitions[side]] for side in (0, 1)]
    n = _total(old, points, name), _total(new, points, name)
    if max(len(row) for row in rows) == 1 and len(points) > 1:
        by_point = [[of[side][repetitions[side][0]].value for of in points.values()] for side in (0, 1)]
        question = _question(name, every, n, POINTS_METHOD, rows, by_point)
        # The scale on which the points were averaged.
        scale: Scale = "ratio" if is_geometric else "difference"
        question = replace(question, evidence={scale: question.evidence[scale]} if question.evidence else {})
    else:
        question = _question(name, every, n, PAIRED_METHOD if in_pairs else WELCH_METHOD, rows)
    of_all, lacking = f"of {len(shared)} points", len(shared) - len(known)
    notes = [
        question.why,
        f"{len(hidden)} {of_all} left out: timeouts hide both sides" if hidden else None,
        f"{lacking} {of_all} have no value on one side" if lacking else None,
    ]
    return replace(question, why="; ".join(note for note in notes if note) or None)


def _total(side: StudySide, points: Iterable[str], name: str) -> int:
    """The number of samples behind a figure, over all repetitions."""
    return sum(side.total(point, metric(name).counted_by or "n") for point in points)


def _of_samples(
    name: str, figures: Sequence[Sequence[SideFigure]], sides: tuple[SideFigure, SideFigure]
) -> dict[Scale, Evidence]:
    """What the samples show of a share of them, or of how many of a run's are of a kind, such as errors."""
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


def _is_bound(figures: Iterable[SideFigure]) -> bool:
    return any(figure.is_lower_bound for figure in figures)


def _question(
    name: str,
    figures: Sequence[Sequence[SideFigure]],
    n: tuple[int, int],
    method: str,
    rows: Sequence[Sequence[float]] = (),
    by_point: Sequence[Sequence[float]] = (),
) -> Question:
    """The question about figures of each side, of n samples.

    rows: one value per repetition, if figures are not that; by_point: with `POINTS_METHOD`, one per point, which is
    what the sides are compared by.
    """
    rows = rows or [[figure.value for figure in side] for side in figures]
    old, new = (
        SideFigure(float(np.mean(row)), _is_bound(side), total, len(row))
        for row, side, total in zip(rows, figures, n, strict=True)
    )
    off = [rounding_ms([each.value for each in side]) if is_rounded(name) else 0.0 for side in figures]
    before, after = by_point or rows
    bounds = old.is_lower_bound, new.is_lower_bound
    is_paired = method != WELCH_METHOD
    evidence, why = over_repetitions(before, after, bounds, paired=is_paired, rounding=(off[0], off[1])), None
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
