"""Runs against runs: one with one by resampling what each measured, repetitions by how far they vary."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from framestorm.compare.sides import Run, RunSide, Times
from framestorm.inference.contrasts import Missing, Question
from framestorm.inference.evidence import (
    ByFormula,
    Evidence,
    Resampled,
    Scale,
    geometric_ratio,
    of_estimate,
    of_shares,
    over_repetitions,
    wider,
    within,
)
from framestorm.model.comparison import SideFigure
from framestorm.model.metric import PERCENTILES, column
from framestorm.model.units import plural
from framestorm.stats.bootstrap import Resamples, change_of, draw
from framestorm.stats.effects import cliffs_delta
from framestorm.stats.estimate import Estimate
from framestorm.stats.means import welch_difference
from framestorm.stats.percentiles import Sample
from framestorm.stats.resampling import choose_block
from framestorm.stats.rounding import rounding_ms
from framestorm.stats.shares import design_effect

STATISTICS = {"mean": "mean"} | PERCENTILES
# Fewer say too little about their spread for a claim.
LEAST_SAMPLES = 20
RESAMPLES = 10_000
# Of a long run: longer blocks are right whenever shorter ones are, and many cost time.
MOST_BLOCKS = 200
# Of the samples that have to lie beyond a percentile before it is compared: of p99, 1000 samples in all.
LEAST_BEYOND = 10
RATE_WINDOWS = 20
LEAST_IN_WINDOW = 5
SEED = 20_211_101
BLOCK_METHOD = f"block bootstrap of each run, {RESAMPLES:,} resamples"
RATE_METHOD = f"bootstrap of {RATE_WINDOWS} windows of time of each run"
SHARE_METHOD = "Newcombe's interval, for as many independent samples as the clustered ones are worth"
REPEATED_METHOD = "Welch's interval over repetitions; ratios of geometric means"
ONE_BOUND = "timeouts hide the figure of one side, which is a lower bound"
BOTH_BOUNDS = "timeouts hide the figure of both sides"


def questions(old: RunSide, new: RunSide, numbers: tuple[int, int] = (0, 1)) -> list[Question]:
    """Every metric that both sides have; `numbers` tell their random numbers apart."""
    is_single = len(old.runs) == len(new.runs) == 1
    asked: list[Question] = []
    for series in series_of(old):
        if all(series in run.times for run in new.runs):
            asked += _one_run_each(old, new, series, numbers) if is_single else _repeated(old, new, series)
    asked.append(_success(old, new))
    rate = _rate(old.runs[0], new.runs[0], numbers) if is_single else _repeated_rate(old, new)
    return asked + ([rate] if rate else [])


def series_of(side: RunSide) -> list[str]:
    """The series of times that all runs of a side have."""
    return [series for series in side.runs[0].times if all(series in run.times for run in side.runs)]


def metrics_of(side: RunSide) -> list[str]:
    """The metrics that a side may have, by name."""
    names = [column(series, statistic) for series in side.runs[0].times for statistic in STATISTICS]
    return [*names, "success", "served_per_s"]


def missing(old: RunSide, new: RunSide) -> list[Missing]:
    """The metrics that the old side has and the new one has not, or not in all of its runs."""
    of_new = _of_every_run(new)
    lacking = []
    for name, series in _of_every_run(old).items():
        if name not in of_new:
            n, run = min(((_n(run, series), run) for run in new.runs), key=lambda each: each[0])
            lacking.append(Missing(name, f"{run.name} has {n} of them in {plural(run.right.size, 'sample')}"))
    return lacking


def _of_every_run(side: RunSide) -> dict[str, str | None]:
    """The metrics that a comparison takes of a side, each with its series; the rate, which is of none, with None."""
    metrics: dict[str, str | None] = {}
    for series in series_of(side):
        for statistic in STATISTICS:
            figures = [_figure(run.times[series].sample(), statistic) for run in side.runs]
            if any(figure and not figure.few for figure in figures):
                metrics[column(series, statistic)] = series
    if any(run.rate_per_s is not None for run in side.runs):
        metrics["served_per_s"] = None
    return metrics


def _n(run: Run, series: str | None) -> int:
    if series is None:
        return int(run.ended_ms.size)
    return run.times[series].n if series in run.times else 0


def seed(side: int, what: str) -> list[int]:
    """Of random numbers that are the same in every comparison and differ by side and series."""
    return [SEED, side, *what.encode()]


def least_samples(statistic: str) -> int:
    """How many samples a statistic of a run needs before it is compared."""
    if statistic == "mean":
        return LEAST_SAMPLES
    percent = float(PERCENTILES[statistic])
    return max(LEAST_SAMPLES, round(100 * LEAST_BEYOND / min(percent, 100 - percent)))


def resamples_of_times(times: Times, seed: list[int]) -> dict[str, Resamples]:
    """Mean, median and percentiles, by name; without those of too few samples.

    On either side they are off by what times in whole ms hide.
    """
    block = max(choose_block(times.values_ms), times.n // MOST_BLOCKS)
    resamples = {}
    for name, statistic in STATISTICS.items():
        if times.n >= least_samples(name):
            drawn = draw(times.values_ms, statistic, cut=times.cut, block=block, seed=seed, resamples=RESAMPLES)
            off = rounding_ms(drawn.value)
            resamples[name] = replace(drawn, values=drawn.values - off, most=drawn.most + off)
    return resamples


def _resamples_of_rate(run: Run, seed: list[int]) -> Resamples | None:
    """Of samples without error a second, by windows of time that are independent; None where they hold too few."""
    if run.serving_ms is None or run.ended_ms.size < RATE_WINDOWS * LEAST_IN_WINDOW:
        return None
    start, end = run.serving_ms
    counts, _ = np.histogram(run.ended_ms, bins=RATE_WINDOWS, range=(start, end))
    return draw(counts / ((end - start) / RATE_WINDOWS / 1000), block=1, seed=seed, resamples=RESAMPLES)


def _one_run_each(old: RunSide, new: RunSide, series: str, numbers: tuple[int, int]) -> list[Question]:
    times = (old.runs[0].times[series], new.runs[0].times[series])
    resamples = [resamples_of_times(each, seed(number, series)) for each, number in zip(times, numbers, strict=True)]
    effect = _effect(times[0], times[1])
    asked = []
    for statistic in STATISTICS:
        figures = [_figure(each.sample(), statistic) for each in times]
        # A percentile of so few samples that it is just the largest of them is none.
        if any(each is None or each.few for each in figures):
            continue
        a, b = (SideFigure(f.value, f.bound == "lower", each.n) for f, each in zip(figures, times, strict=True) if f)
        of_old, of_new = (each.get(statistic) for each in resamples)
        evidence = _resampled(of_old, of_new) if of_old and of_new else {}
        too_few = f"insufficient data (n < {least_samples(statistic):,}): n = {min(each.n for each in times)}"
        why = None if evidence else too_few
        asked.append(_question(column(series, statistic), a, b, evidence, BLOCK_METHOD, effect, why))
    return asked


def _question(
    name: str,
    old: SideFigure,
    new: SideFigure,
    evidence: dict[Scale, Evidence],
    method: str,
    effect: float | None,
    why: str | None = None,
) -> Question:
    if old.is_lower_bound and new.is_lower_bound:
        return Question(name, old, new, {}, method, effect=effect, why=BOTH_BOUNDS)
    if why is None and (old.is_lower_bound or new.is_lower_bound):
        why = ONE_BOUND
    return Question(name, old, new, evidence, method, effect=effect, why=why)


def _resampled(old: Resamples, new: Resamples) -> dict[Scale, Evidence]:
    evidence: dict[Scale, Evidence] = {"difference": Resampled(*change_of(new, old, "difference"))}
    if old.value > 0 and new.value > 0:
        evidence["ratio"] = Resampled(*change_of(new, old, "ratio"))
    return evidence


def _effect(old: Times, new: Times) -> float:
    """Cliff's delta of the new times against the old ones."""
    return cliffs_delta(*(part for of in (new, old) for part in (of.values_ms[~of.cut], of.values_ms[of.cut])))


def _figure(sample: Sample, statistic: str) -> Estimate | None:
    return sample.mean() if statistic == "mean" else sample.percentile(PERCENTILES[statistic])


def _success(old: RunSide, new: RunSide) -> Question:
    """Success of the samples; over repetitions the wider of what samples and what repetitions vary by."""
    # Where one side has no failure its clusters cannot be seen: they are taken to be those of the other.
    clustered = max(design_effect(run.right) for side in (old, new) for run in side.runs)
    right = [np.concatenate([run.right for run in side.runs]) for side in (old, new)]
    share = [float(each.mean()) for each in right]
    a, b = (
        SideFigure(value, n=each.size, repetitions=len(side.runs))
        for value, each, side in zip(share, right, (old, new), strict=True)
    )
    of_samples = of_shares([(1.0, share[1], right[1].size / clustered), (-1.0, share[0], right[0].size / clustered)])
    by_run = [[float(run.right.mean()) for run in side.runs] for side in (old, new)]
    if max(len(each) for each in by_run) == 1:
        return Question("success", a, b, {"difference": ByFormula(of_samples)}, SHARE_METHOD)
    # Shares of all samples together, for repetitions of one plan have nearly as many each.
    method = "the wider of Welch's interval over repetitions and Newcombe's over samples"
    of_runs = of_estimate(lambda level: welch_difference(by_run[1], by_run[0], level))
    return Question("success", a, b, {"difference": ByFormula(within(wider(of_samples, of_runs), -1, 1))}, method)


def _rate(old: Run, new: Run, numbers: tuple[int, int]) -> Question | None:
    rates = [rate for run in (old, new) if (rate := run.rate_per_s) is not None]
    if len(rates) < 2:
        return None
    of_old, of_new = (
        _resamples_of_rate(run, seed(number, "rate")) for run, number in zip((old, new), numbers, strict=True)
    )
    a, b = (SideFigure(rate, n=run.ended_ms.size) for rate, run in zip(rates, (old, new), strict=True))
    if of_old is None or of_new is None:
        least = RATE_WINDOWS * LEAST_IN_WINDOW
        why = f"insufficient data (n < {least} samples without error): n = {min(a.n, b.n)}"
        return Question("served_per_s", a, b, {}, RATE_METHOD, why=why)
    return Question("served_per_s", a, b, _resampled(of_old, of_new), RATE_METHOD)


def _repeated(old: RunSide, new: RunSide, series: str) -> list[Question]:
    """Each run's own figure is one value; samples of a run are no repetitions of it."""
    together = [_together([run.times[series] for run in side.runs]) for side in (old, new)]
    effect = _effect(together[0], together[1])
    asked = []
    for statistic in STATISTICS:
        figures = [
            [f for run in side.runs if (f := _figure(run.times[series].sample(), statistic)) and not f.few]
            for side in (old, new)
        ]
        if not all(figures):
            continue
        a, b = (
            SideFigure(
                float(np.mean([f.value for f in side])), any(f.bound == "lower" for f in side), each.n, len(side)
            )
            for side, each in zip(figures, together, strict=True)
        )
        before, after = ([f.value for f in side] for side in figures)
        bounds, rounding = (a.is_lower_bound, b.is_lower_bound), (rounding_ms(before), rounding_ms(after))
        evidence = over_repetitions(before, after, bounds, rounding=rounding)
        question = _question(column(series, statistic), a, b, evidence, REPEATED_METHOD, effect)
        asked.append(replace(question, ratio_of_means=geometric_ratio(before, after)))
    return asked


def _repeated_rate(old: RunSide, new: RunSide) -> Question | None:
    before, after = ([rate for run in side.runs if (rate := run.rate_per_s) is not None] for side in (old, new))
    if not before or not after:
        return None
    a, b = (SideFigure(float(np.mean(each)), n=len(each), repetitions=len(each)) for each in (before, after))
    evidence, ratio = over_repetitions(before, after), geometric_ratio(before, after)
    return Question("served_per_s", a, b, evidence, REPEATED_METHOD, ratio_of_means=ratio)


def _together(parts: Sequence[Times]) -> Times:
    return Times(np.concatenate([p.values_ms for p in parts]), np.concatenate([p.cut for p in parts]))
