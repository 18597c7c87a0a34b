"""The questions of a comparison: every metric that both sides have.

Studies are compared point by point, and over all points that both have.
"""

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from framestorm.compare.runs import RATE, STATISTICS, SUCCESS, Run, RunSide
from framestorm.compare.sides import StudySide
from framestorm.errors import FramestormError
from framestorm.judge.differences import (
    Missing,
    Question,
    is_bound,
    of_rates,
    of_repetitions,
    of_single_runs,
    of_success,
    resamples_of_times,
    seed,
)
from framestorm.model.metric import column, metric, split_label
from framestorm.model.units import count, plural
from framestorm.results.jtl_samples import JMETER_TIMES
from framestorm.stats.bootstrap import Resamples
from framestorm.stats.evidence import Scale


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
                old_right, new_right = ([run.of(label).right for run in side.runs] for side in (old, new))
                question = of_success(name, old_right, new_right)
            elif is_single and series is None:
                ended_ms = old.runs[0].of(label).ended_ms, new.runs[0].of(label).ended_ms
                question = of_rates(name, (figures[0][0], figures[1][0]), ended_ms)
            elif is_single:
                drawn = (_drawn(old.runs[0], name, numbers[0]), _drawn(new.runs[0], name, numbers[1]))
                question = of_single_runs(name, figures[0][0], figures[1][0], drawn)
            elif series is None:
                question = of_repetitions(name, figures, (len(figures[0]), len(figures[1])))
            else:
                n = old.times(label, series).n, new.times(label, series).n
                question = of_repetitions(name, figures, n)
            if series is not None and effect is None:
                effect = new.times(label, series).cliffs_delta(old.times(label, series))
            asked.append(replace(question, side=new.label, effect=effect))
    return Questions(asked, missing)


def _drawn(run: Run, name: str, number: int) -> Resamples | None:
    """Return resamples of a metric of a run; None with too few samples."""
    label, series = split_label(name)[0], str(metric(name).series)
    times, statistic = run.times(label)[series], str(metric(name).statistic)
    return resamples_of_times(times, seed(number, series.removesuffix("_ms")), statistic)


def of_studies(old: StudySide, new: StudySide, metrics: Sequence[str]) -> Questions:
    """Return the questions for two studies or levels about `metrics`, which are columns of results.csv.

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
    """Return what a side has at a point where it has no figure."""
    runs = len(side.figures(point, "n"))
    ok, n = side.total(point, "ok"), side.total(point, "n")
    without_error = f"{plural(ok, 'sample')} without error of {count(n)}"
    return f"{plural(runs, 'complete run')} with {without_error}" if runs else "no complete run"


def _at(old: StudySide, new: StudySide, point: str, name: str, is_paired: bool) -> Question | None:
    """Return the question about one metric at one point; None if a side has no value."""
    sides = [side.figures(point, name) for side in (old, new)]
    if not all(sides):
        return None
    common = sides[0].keys() & sides[1].keys()
    in_pairs = is_paired and len(common) > 1
    figures = [[each[number] for number in sorted(common if in_pairs else each)] for each in sides]
    n = _total(old, [point], name), _total(new, [point], name)
    question = of_repetitions(name, figures, n, paired=in_pairs)
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
    hidden = [key for key, sides in known.items() if all(is_bound(side.values()) for side in sides)]
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
        question = of_repetitions(name, every, n, rows, by_point)
        # The scale on which the points were averaged.
        scale: Scale = "ratio" if is_geometric else "difference"
        question = replace(question, evidence={scale: question.evidence[scale]} if question.evidence else {})
    else:
        question = of_repetitions(name, every, n, rows, paired=in_pairs)
    of_all, lacking = f"of {len(shared)} points", len(shared) - len(known)
    notes = [
        question.why,
        f"{len(hidden)} {of_all} left out: timeouts hide both sides" if hidden else None,
        f"{lacking} {of_all} have no value on one side" if lacking else None,
    ]
    return replace(question, why="; ".join(note for note in notes if note) or None)


def _total(side: StudySide, points: Iterable[str], name: str) -> int:
    """Return the number of samples behind a figure, over all repetitions."""
    return sum(side.total(point, metric(name).counted_by or "n") for point in points)
