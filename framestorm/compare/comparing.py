"""Put a comparison together: the judged questions about the sides, with everything a reader has to know."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from framestorm.compare import caveats
from framestorm.compare.questions import Questions, of_runs, of_studies
from framestorm.compare.runs import RunSide
from framestorm.compare.sides import Sides, StudySide
from framestorm.judge.contrasts import Threshold, judge_differences, judge_thresholds
from framestorm.judge.wording import contrast_sentence
from framestorm.machine import kit, now_ms
from framestorm.model.comparison import (
    ComparedSide,
    Comparison,
    ComparisonVerdict,
    Contrast,
    Curve,
    JudgedThreshold,
    Link,
    SideComparison,
)
from framestorm.model.metric import RESPONSE, metric
from framestorm.model.run import Undecided
from framestorm.model.units import listed, plural
from framestorm.report.junit import suite_name
from framestorm.results.samples import OrderedTimes

EXIT_MISSING, EXIT_REGRESSION, EXIT_UNDECIDED = 1, 3, 5
MAIN_OF_RUNS = ("median_ms", "p95_ms", "success")
CURVE_POINTS = 400
BOTH_OVERLOADED = "both sides were overloaded: their times are those of a queue"


def compare(
    sides: Sides,
    thresholds: Sequence[Threshold],
    out_dir: Path,
    command: Sequence[str],
    factor: str | None = None,
    undecided: Undecided = "pass",
) -> Comparison:
    """Compare the first side with each of the others; `factor`: of which they are levels."""
    everyone: Sequence[RunSide | StudySide] = sides
    old, *others = everyone
    asked = [_asked(old, new, number, thresholds) for number, new in enumerate(others, 1)]
    # Claims of all sides are one family; at points, those of each metric.
    contrasts = judge_differences([question for each in asked for question in each.overall])
    at_points = [question for each in asked for question in each.points]
    for name in dict.fromkeys(question.metric for question in at_points):
        contrasts |= judge_differences([question for question in at_points if question.metric == name])
    judged = judge_thresholds(thresholds, contrasts, [what for each in asked for what in each.missing])
    overloaded = [side.label for side in everyone if caveats.is_overloaded(side)]
    by_label = {side.label: side for side in everyone}
    judged = [
        replace(each, state="not compared", why=BOTH_OVERLOADED, needed=None)
        if metric(each.metric).is_time and each.side and caveats.are_queues(old, by_label[each.side], each.point)
        else each
        for each in judged
    ]
    return Comparison(
        of="runs" if isinstance(old, RunSide) else "levels" if factor else "studies",
        kit=kit(),
        made_ms=now_ms(),
        command=tuple(command),
        verdict=_verdict(judged, undecided, overloaded),
        sides=[_side(side, out_dir) for side in sides],
        comparisons=[
            _side_comparison(old, new, each, [contrasts[question] for question in each.overall],
                             [contrasts[question] for question in each.points])
            for new, each in zip(others, asked, strict=True)
        ],
        thresholds=judged,
        curves=[_curve(side) for side in sides if isinstance(side, RunSide)],
        factor=factor,
        study=old.folder.name if isinstance(old, StudySide) else None,
        undecided=undecided,
        subject=old.study.name if isinstance(old, StudySide) else suite_name(old.runs[0].summary),
    )  # fmt: skip


def _asked(
    old: RunSide | StudySide, new: RunSide | StudySide, number: int, thresholds: Sequence[Threshold]
) -> Questions:
    judged = [threshold.metric for threshold in thresholds]
    if isinstance(old, StudySide) and isinstance(new, StudySide):
        return of_studies(old, new, list(dict.fromkeys([*old.study.definition.metrics, *judged])))
    assert isinstance(old, RunSide) and isinstance(new, RunSide)  # noqa: S101 - sides.read_sides sees to it
    return of_runs(old, new, (0, number), judged)


def _side_comparison(
    old: RunSide | StudySide,
    new: RunSide | StudySide,
    asked: Questions,
    overall: list[Contrast],
    points: list[Contrast],
) -> SideComparison:
    changed = caveats.changes(old, new)
    by_name = {contrast.metric: contrast for contrast in overall}
    main = MAIN_OF_RUNS if isinstance(old, RunSide) else (*list(by_name)[:1], "success")
    return SideComparison(
        label=new.label,
        against=old.label,
        answers=[
            contrast_sentence(by_name[name], old.label, new.label) for name in dict.fromkeys(main) if name in by_name
        ],
        changes=changed,
        warnings=[*caveats.of_settings(changed, (old.label, new.label)), *caveats.between(old, new, asked)],
        overall=overall,
        points=points,
        shared=asked.shared,
        only_baseline=asked.only_baseline,
        only_candidate=asked.only_candidate,
        pairs=asked.pairs,
    )


def _verdict(judged: Sequence[JudgedThreshold], undecided: Undecided, overloaded: Sequence[str]) -> ComparisonVerdict:
    regressions = [each.text for each in judged if each.state == "regression"]
    missing = [f"{each.text} ({each.why})" for each in judged if each.state == "missing"]
    n_open = sum(each.is_undecided for each in judged)
    queues = f"; {listed([*overloaded])} {'was' if len(overloaded) == 1 else 'were'} overloaded" if overloaded else ""
    if regressions:
        text = f"{plural(len(regressions), 'regression')} beyond the threshold: {_first_of(regressions)}"
        return ComparisonVerdict("regression", EXIT_REGRESSION, text + queues)
    if missing:
        return ComparisonVerdict("missing", EXIT_MISSING, _first_of(missing) + queues)
    text = "no worsening beyond a threshold was shown"
    if not n_open:
        return ComparisonVerdict("none", 0, f"{text}, and every interval is within its threshold{queues}")
    if n_open < len(judged):
        text += f"; {n_open} of {plural(len(judged), 'check')} could not be decided{queues}"
    elif overloaded:
        text = f"no threshold could be decided{queues}"
    else:
        text = "insufficient data: too few samples or repetitions to decide any threshold"
    if undecided == "fail":
        return ComparisonVerdict("inconclusive", EXIT_UNDECIDED, f"{text}, which counts as failed (--undecided fail)")
    return ComparisonVerdict("inconclusive" if n_open == len(judged) else "none", 0, text)


def _first_of(texts: Sequence[str]) -> str:
    return texts[0] + (f", and {len(texts) - 1} more" if len(texts) > 1 else "")


def _side(side: RunSide | StudySide, out_dir: Path) -> ComparedSide:
    links = [Link(folder.name, os.path.relpath(folder / "index.html", out_dir)) for folder in side.folders]
    runs = side.runs if isinstance(side, RunSide) else ()
    warnings = [each for run in runs for each in caveats.of_run(run)]
    return ComparedSide(side.label, side.name, links, side.extent, warnings, caveats.is_overloaded(side))


def _curve(side: RunSide) -> Curve:
    """Share of all samples that ended without error within a time, all repetitions together."""
    n = sum(run.of().right.size for run in side.runs)
    n_right = sum(int(run.of().right.sum()) for run in side.runs)
    parts = [run.times()[RESPONSE] for run in side.runs if RESPONSE in run.times()]
    times = OrderedTimes.together([OrderedTimes(np.empty(0), np.empty(0, dtype=bool)), *parts])
    full = np.sort(times.full_ms)
    shown = np.linspace(0, full.size - 1, min(CURVE_POINTS, full.size)).astype(int)
    ranks = sorted(set(shown.tolist()))
    return Curve(
        label=side.label,
        x_ms=[round(float(full[rank]), 3) for rank in ranks],
        share=[round((rank + 1) / n, 6) for rank in ranks],
        n=n,
        timed_out=times.cut_ms.size,
        failed=n - n_right - times.cut_ms.size,
        untimed=n_right - full.size,
    )
