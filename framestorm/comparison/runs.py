"""Runs against runs: one with one by resampling what each measured, repetitions by how far they vary."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from framestorm.comparison import draws
from framestorm.comparison.contrast import Contrast, Missing, Scale, Side
from framestorm.comparison.evidence import ByFormula, Ends, Evidence, Resampled, wider, within
from framestorm.comparison.metrics import PERCENTS, RUN_SERIES, STATISTICS, column
from framestorm.comparison.repetitions import geometric_ratio, over_repetitions, welch
from framestorm.comparison.sides import Run, RunSide, Times
from framestorm.report.estimate import Estimate
from framestorm.report.stats import Sample
from framestorm.report.units import plural
from framestorm.statistics.bootstrap import Draws, apart
from framestorm.statistics.effects import cliffs_delta
from framestorm.statistics.rounding import hidden_ms
from framestorm.statistics.shares import design_effect, newcombe

BLOCK_METHOD = f"block bootstrap of each run, {draws.RESAMPLES:,} resamples"
RATE_METHOD = f"bootstrap of {draws.RATE_WINDOWS} windows of time of each run"
SHARE_METHOD = "Newcombe's interval, for as many independent samples as the clustered ones are worth"
REPEATED_METHOD = "Welch's interval over repetitions; ratios of geometric means"


def contrasts(old: RunSide, new: RunSide, numbers: tuple[int, int] = (0, 1)) -> list[Contrast]:
    """All metrics that both sides have; `numbers` tell their random numbers apart."""
    single = len(old.runs) == len(new.runs) == 1
    found: list[Contrast] = []
    for series in RUN_SERIES:
        if all(series in run.times for side in (old, new) for run in side.runs):
            found += _one_run_each(old, new, series, numbers) if single else _repeated(old, new, series)
    found.append(_success(old, new))
    rate = _rate(old.runs[0], new.runs[0], numbers) if single else _repeated_rate(old, new)
    return found + ([rate] if rate else [])


def missing(old: RunSide, new: RunSide) -> list[Missing]:
    """The metrics that the old side has and the new one has not, or not in all of its runs."""
    theirs = _of_every_run(new)
    found = []
    for name, series in _of_every_run(old).items():
        if name not in theirs:
            n, run = min(((_n(run, series), run) for run in new.runs), key=lambda each: each[0])
            found.append(Missing(name, f"{run.name} has {n} of them in {plural(run.right.size, 'sample')}"))
    return found


def _of_every_run(side: RunSide) -> dict[str, str | None]:
    """The metrics that a comparison takes of a side, each with its series; the rate, which is of none, with None."""
    series_there = [series for series in RUN_SERIES if all(series in run.times for run in side.runs)]
    found: dict[str, str | None] = {}
    for series in series_there:
        for statistic in STATISTICS:
            figures = [_figure(run.times[series].sample(), statistic) for run in side.runs]
            if any(figure and not figure.few for figure in figures):
                found[column(series, statistic)] = series
    if any(run.rate_per_s is not None for run in side.runs):
        found["served_per_s"] = None
    return found


def _n(run: Run, series: str | None) -> int:
    if series is None:
        return int(run.ended_ms.size)
    return run.times[series].n if series in run.times else 0


def _one_run_each(old: RunSide, new: RunSide, series: str, numbers: tuple[int, int]) -> list[Contrast]:
    times = (old.runs[0].times[series], new.runs[0].times[series])
    drawn = [draws.of_times(each, draws.seed(number, series)) for each, number in zip(times, numbers, strict=True)]
    effect = _effect(times[0], times[1])
    found = []
    for statistic in STATISTICS:
        sides = [_figure(each.sample(), statistic) for each in times]
        # A percentile of so few samples that it is just the largest of them is none.
        if any(each is None or each.few for each in sides):
            continue
        a_drawn, b_drawn = (each.get(statistic) for each in drawn)
        evidence = _resampled(a_drawn, b_drawn) if a_drawn and b_drawn else {}
        a, b = (Side(s.value, s.bound == "lower", each.n) for s, each in zip(sides, times, strict=True) if s)
        why = None if evidence else _too_few(statistic, min(each.n for each in times))
        found.append(_contrast(column(series, statistic), a, b, evidence, BLOCK_METHOD, effect, why))
    return found


def _contrast(
    name: str, old: Side, new: Side, evidence: dict[Scale, Evidence], method: str, effect: float | None, why: str | None
) -> Contrast:
    if old.is_bound and new.is_bound:
        return Contrast(name, old, new, {}, method, effect=effect, why="time-outs hide the figure of both sides")
    if why is None and (old.is_bound or new.is_bound):
        why = "time-outs hide the figure of one side, which is a lower bound"
    return Contrast(name, old, new, evidence, method, effect=effect, why=why)


def _too_few(statistic: str, n: int) -> str:
    return f"too few samples: {n} of {draws.least_samples(statistic):,}"


def _resampled(old: Draws, new: Draws) -> dict[Scale, Evidence]:
    evidence: dict[Scale, Evidence] = {"difference": Resampled(*apart(new, old, "difference"))}
    if old.value > 0 and new.value > 0:
        evidence["ratio"] = Resampled(*apart(new, old, "ratio"))
    return evidence


def _effect(old: Times, new: Times) -> float:
    """Cliff's delta of the new times against the old ones."""
    return cliffs_delta(*(part for of in (new, old) for part in (of.values_ms[~of.cut], of.values_ms[of.cut])))


def _figure(sample: Sample, statistic: str) -> Estimate | None:
    return sample.mean() if statistic == "mean" else sample.percentile(PERCENTS[statistic])


def _success(old: RunSide, new: RunSide) -> Contrast:
    """Success of the frames; over repetitions the wider of what frames and what repetitions vary by."""
    # Where one side has no failure its clusters cannot be seen: they are taken to be those of the other.
    clustered = max(design_effect(run.right) for side in (old, new) for run in side.runs)
    right = [np.concatenate([run.right for run in side.runs]) for side in (old, new)]
    worth = [(float(each.mean()), each.size / clustered) for each in right]
    by_run = [[float(run.right.mean()) for run in side.runs] for side in (old, new)]
    a, b = (
        Side(share, n=sum(run.right.size for run in side.runs), runs=len(side.runs))
        for (share, _), side in zip(worth, (old, new), strict=True)
    )

    def ends(level: float) -> Ends:
        return newcombe(worth[1], worth[0], level)

    if max(len(each) for each in by_run) == 1:
        return Contrast("success", a, b, {"difference": ByFormula(ends)}, SHARE_METHOD)
    # Shares of all frames together, for repetitions of one plan have nearly as many each.
    method = "the wider of Welch's interval over repetitions and Newcombe's over frames"
    both = within(wider(ends, welch(by_run[0], by_run[1])), -1, 1)
    return Contrast("success", a, b, {"difference": ByFormula(both)}, method)


def _rate(old: Run, new: Run, numbers: tuple[int, int]) -> Contrast | None:
    shown = [rate for run in (old, new) if (rate := run.rate_per_s) is not None]
    if len(shown) < 2:
        return None
    drawn = [draws.of_rate(run, draws.seed(number, "rate")) for run, number in zip((old, new), numbers, strict=True)]
    a, b = (Side(rate, n=run.ended_ms.size) for rate, run in zip(shown, (old, new), strict=True))
    if drawn[0] is None or drawn[1] is None:
        least = draws.RATE_WINDOWS * draws.LEAST_IN_WINDOW
        why = f"too few right answers for an interval: {min(a.n, b.n)} of {least}"
        return Contrast("served_per_s", a, b, {}, RATE_METHOD, why=why)
    return Contrast("served_per_s", a, b, _resampled(drawn[0], drawn[1]), RATE_METHOD)


def _repeated(old: RunSide, new: RunSide, series: str) -> list[Contrast]:
    """Each run's own figure is one value; frames of a run are no repetitions of it."""
    together = [_together([run.times[series] for run in side.runs]) for side in (old, new)]
    effect = _effect(together[0], together[1])
    found = []
    for statistic in STATISTICS:
        figures = [[_figure(run.times[series].sample(), statistic) for run in side.runs] for side in (old, new)]
        known = [[each for each in side if each and not each.few] for side in figures]
        if any(not side for side in known):
            continue
        sides = [
            Side(float(np.mean([e.value for e in side])), any(e.bound == "lower" for e in side), each.n, len(side))
            for side, each in zip(known, together, strict=True)
        ]
        values = [[each.value for each in side] for side in known]
        open_ends = (sides[0].is_bound, sides[1].is_bound)
        evidence = over_repetitions(
            values[0], values[1], open_ends, hidden=(hidden_ms(values[0]), hidden_ms(values[1]))
        )
        made = _contrast(column(series, statistic), sides[0], sides[1], evidence, REPEATED_METHOD, effect, None)
        found.append(replace(made, own_ratio=geometric_ratio(values[0], values[1])))
    return found


def _repeated_rate(old: RunSide, new: RunSide) -> Contrast | None:
    values = [[rate for run in side.runs if (rate := run.rate_per_s) is not None] for side in (old, new)]
    if not values[0] or not values[1]:
        return None
    a, b = (Side(float(np.mean(each)), n=len(each), runs=len(each)) for each in values)
    ratio = geometric_ratio(values[0], values[1])
    return Contrast("served_per_s", a, b, over_repetitions(values[0], values[1]), REPEATED_METHOD, own_ratio=ratio)


def _together(parts: Sequence[Times]) -> Times:
    return Times(np.concatenate([p.values_ms for p in parts]), np.concatenate([p.cut for p in parts]))
