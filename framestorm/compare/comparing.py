"""Put a comparison together: what is asked of two sides, judged, with all that a reader has to know of it."""

import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

import numpy as np

from framestorm.compare import caveats, runs, settings, studies
from framestorm.compare.sides import RunSide, StudySide
from framestorm.inference.contrasts import Judged, Question, Threshold, judge_differences, judge_thresholds
from framestorm.inference.wording import change_and_interval, contrast_sentence
from framestorm.machine import now_ms
from framestorm.model.comparison import (
    Comparison,
    Contrast,
    Curve,
    JudgedThreshold,
    Link,
    Side,
    SideComparison,
    Verdict,
)
from framestorm.model.metric import metric
from framestorm.model.units import plural
from framestorm.run import record

EXIT_MISSING, EXIT_REGRESSION = 1, 3
MAIN_OF_RUNS = ("median_ms", "p95_ms", "success")
CURVE_POINTS = 400
Families = dict[str, list[Contrast]]


def compare(
    sides: Sequence[RunSide] | Sequence[StudySide],
    thresholds: Sequence[Threshold],
    out_dir: Path,
    command: Sequence[str],
    factor: str | None = None,
) -> Comparison:
    """Compare the first side with each of the others."""
    everyone: Sequence[RunSide | StudySide] = sides
    old, *others = everyone
    compared = {new.label: _compared(old, new, number, thresholds) for number, new in enumerate(others, 1)}
    overall = _judged({label: each.overall for label, each in compared.items()})
    points = _judged_by_metric({label: each.points for label, each in compared.items()})
    contrasts = {
        (label, each.metric, each.point): each for families in (overall, points) for label, family in families.items()
        for each in family
    }  # fmt: skip
    judged = judge_thresholds(
        thresholds,
        [(label, each) for label, found in compared.items() for each in found.overall]
        + [(label, each) for label, found in compared.items() for each in _by_metric(found.points)],
        [(label, what) for label, each in compared.items() for what in each.missing],
    )
    judged_texts = [(each, _threshold_text(each, contrasts)) for each in judged]
    return Comparison(
        of="runs" if isinstance(old, RunSide) else "levels" if factor else "studies",
        kit=record.kit(),
        made_ms=now_ms(),
        command=tuple(command),
        verdict=_verdict(judged_texts),
        sides=[_side(side, out_dir) for side in sides],
        comparisons=[
            _side_comparison(old, new, compared[new.label], overall[new.label], points[new.label]) for new in others
        ],
        thresholds=[
            JudgedThreshold(
                each.threshold.text, each.threshold.metric, each.threshold.limit, each.label,
                each.about.point if each.about else None, each.state, each.why, text,
            )
            for each, text in judged_texts
        ],
        curves=[_curve(side) for side in sides if isinstance(side, RunSide)],
        factor=factor,
        study=old.folder.name if isinstance(old, StudySide) else None,
    )  # fmt: skip


def _compared(
    old: RunSide | StudySide, new: RunSide | StudySide, number: int, thresholds: Sequence[Threshold]
) -> studies.Compared:
    if isinstance(old, StudySide) and isinstance(new, StudySide):
        return studies.compare(old, new, _metrics(old, thresholds))
    assert isinstance(old, RunSide) and isinstance(new, RunSide)  # noqa: S101 - sides.read_sides sees to it
    return studies.Compared(runs.questions(old, new, (0, number)), [], [], [], [], runs.missing(old, new), None)


def _metrics(side: StudySide, thresholds: Sequence[Threshold]) -> list[str]:
    """The study's own metrics, and those that are to be judged."""
    return list(dict.fromkeys([*side.study.definition.metrics, *(threshold.metric for threshold in thresholds)]))


def _judged(questions: Mapping[str, list[Question]]) -> Families:
    """Claims of all sides as one family."""
    family = iter(judge_differences(list(chain.from_iterable(questions.values()))))
    return {label: [next(family) for _ in asked] for label, asked in questions.items()}


def _judged_by_metric(questions: Mapping[str, list[Question]]) -> Families:
    """Claims at points: a family for each metric."""
    by_side: Families = {label: [] for label in questions}
    for name in dict.fromkeys(question.metric for asked in questions.values() for question in asked):
        of_metric = {label: [each for each in asked if each.metric == name] for label, asked in questions.items()}
        for label, contrasts in _judged(of_metric).items():
            by_side[label] += contrasts
    return by_side


def _by_metric(questions: Sequence[Question]) -> Iterator[Question]:
    """The questions of one side, those of a metric together."""
    for name in dict.fromkeys(question.metric for question in questions):
        yield from (question for question in questions if question.metric == name)


def _side_comparison(
    old: RunSide | StudySide,
    new: RunSide | StudySide,
    compared: studies.Compared,
    overall: list[Contrast],
    points: list[Contrast],
) -> SideComparison:
    changed = settings.changes(old, new)
    return SideComparison(
        label=new.label,
        against=old.label,
        answers=_answers(overall, old, new),
        changes=changed,
        warnings=[*settings.warnings(changed, (old.label, new.label)), *caveats.between(old, new, compared)],
        overall=overall,
        points=points,
        shared=compared.shared,
        only_baseline=compared.only_baseline,
        only_candidate=compared.only_candidate,
        pairs=compared.pairs,
    )


def _answers(overall: Sequence[Contrast], old: RunSide | StudySide, new: RunSide | StudySide) -> list[str]:
    """What the page says first: the main metrics."""
    by_name = {contrast.metric: contrast for contrast in overall}
    main = MAIN_OF_RUNS if isinstance(old, RunSide) else (*list(by_name)[:1], "success")
    names = [name for name in dict.fromkeys(main) if name in by_name]
    return [contrast_sentence(by_name[name], old.label, new.label) for name in names]


def _verdict(judged: Sequence[tuple[Judged, str]]) -> Verdict:
    regressions = [text for each, text in judged if each.state == "regression"]
    missing = [f"{text} ({each.why})" for each, text in judged if each.state == "missing"]
    n_open = sum(each.state in {"inconclusive", "not compared"} for each, _ in judged)
    if regressions:
        text = f"{plural(len(regressions), 'regression')} beyond the threshold: {_first_of(regressions)}"
        return Verdict("regression", EXIT_REGRESSION, text)
    if missing:
        return Verdict("missing", EXIT_MISSING, _first_of(missing))
    if n_open and n_open == len(judged):
        return Verdict("inconclusive", 0, "insufficient data: too few samples or repetitions to decide any threshold")
    text = "no worsening beyond a threshold was shown"
    if n_open:
        text += f"; {n_open} of {plural(len(judged), 'check')} could not be decided"
    else:
        text += ", and every interval is within its threshold"
    return Verdict("none", 0, text)


def _first_of(texts: Sequence[str]) -> str:
    return texts[0] + (f", and {len(texts) - 1} more" if len(texts) > 1 else "")


def _threshold_text(judged: Judged, contrasts: Mapping[tuple[str, str, str | None], Contrast]) -> str:
    """A judgement as words: side, metric, point and interval."""
    about = metric(judged.threshold.metric)
    if judged.about is None:
        return f"{about.title}: not measured on both sides"
    where = f" at {judged.about.point}" if judged.about.point else ""
    contrast = contrasts.get((judged.label, judged.about.metric, judged.about.point))
    is_question = isinstance(judged.about, Question) and contrast is not None
    change = change_and_interval(contrast) if is_question and contrast else "none, though the baseline has it"
    return f"{judged.label}, {about.label}{where}: {change}"


def _side(side: RunSide | StudySide, out_dir: Path) -> Side:
    if isinstance(side, StudySide):
        extent = f"{plural(len(side.points), 'point')}, {plural(side.repetitions, 'repetition')}"
        return Side(side.label, side.name, [_link(side.folder, out_dir)], extent, [])
    samples = sum(run.right.size for run in side.runs)
    extent = plural(samples, "sample") + (f" in {plural(len(side.runs), 'repetition')}" if len(side.runs) > 1 else "")
    warnings = [f"{run.name}: {sentence}" for run in side.runs for sentence in run.summary.warnings]
    of_runs = [sentence for run in side.runs for sentence in caveats.of_run(run)]
    parts = [_link(run.folder, out_dir) for run in side.runs]
    return Side(side.label, side.name, parts, extent, of_runs + warnings)


def _link(folder: Path, out_dir: Path) -> Link:
    return Link(folder.name, os.path.relpath(folder / "index.html", out_dir))


def _curve(side: RunSide) -> Curve:
    """Share of all samples that were without error within a time, all repetitions together."""
    times = [run.times[""] for run in side.runs if "" in run.times]
    n, cut = sum(run.right.size for run in side.runs), sum(int(each.cut.sum()) for each in times)
    if not times:
        return Curve(side.label, [], [], n, 0, n)
    full = np.sort(np.concatenate([each.values_ms[~each.cut] for each in times]))
    shown = np.linspace(0, full.size - 1, min(CURVE_POINTS, full.size)).astype(int)
    ranks = sorted(set(shown.tolist()))
    return Curve(
        label=side.label,
        x_ms=[round(float(full[rank]), 3) for rank in ranks],
        share=[round((rank + 1) / n, 6) for rank in ranks],
        n=n,
        timed_out=cut,
        failed=n - int(full.size) - cut,
    )
