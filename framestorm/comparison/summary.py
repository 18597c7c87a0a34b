"""comparison.json: everything that the page shows, put together of the sides; the page is made of it alone."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from framestorm import record
from framestorm.comparison import runs, settings, studies
from framestorm.comparison.contrast import Contrast, claimed
from framestorm.comparison.judgement import Judged, Threshold, judge
from framestorm.comparison.metrics import metric
from framestorm.comparison.sides import Run, RunSide, StudySide
from framestorm.comparison.words import interval_text, sentence
from framestorm.report.units import count, percent, plural

FORMAT = 1
EXIT_REGRESSION = 3
MAIN_OF_RUNS = ("median_ms", "p95_ms", "success")
CURVE_POINTS = 400
# Failures that would make a comparison of times one of what was left: 1 in 100.
MANY_FAILED = 0.01


def summarise(
    sides: Sequence[RunSide] | Sequence[StudySide],
    thresholds: Sequence[Threshold],
    out_dir: Path,
    command: Sequence[str],
    factor: str | None = None,
) -> dict[str, Any]:
    """Compare the first side with each of the others."""
    old, *others = sides
    if isinstance(old, StudySide):
        names = _metrics(old, thresholds)
        compared = {new.label: studies.compare(old, new, names) for new in others if isinstance(new, StudySide)}
    else:
        compared = {
            new.label: studies.Compared(runs.contrasts(old, new, (0, number)), [], [], [], [], None)
            for number, new in enumerate(others, 1)
            if isinstance(new, RunSide)
        }
    overall = _claimed({label: each.overall for label, each in compared.items()})
    points = _claimed_by_metric({label: each.points for label, each in compared.items()})
    judged = judge(
        thresholds, [(label, each) for found in (overall, points) for label, family in found.items() for each in family]
    )
    comparisons = []
    for new in others:
        changed = settings.changes(old, new)
        each = compared[new.label]
        comparisons.append(
            {
                "label": new.label,
                "against": old.label,
                "answers": _answers(overall[new.label], old, new),
                "changes": [change.as_json() for change in changed],
                "warnings": [*settings.warnings(changed, (old.label, new.label)), *_warnings(old, new, each)],
                "overall": [contrast.as_json() for contrast in overall[new.label]],
                "points": [contrast.as_json() for contrast in points[new.label]],
                "shared": each.shared,
                "only_old": each.only_old,
                "only_new": each.only_new,
                "pairs": each.pairs,
            }
        )
    return {
        "format": FORMAT,
        "kind": "comparison",
        "of": "runs" if isinstance(old, RunSide) else "levels" if factor else "studies",
        "factor": factor,
        "study": old.folder.name if isinstance(old, StudySide) else None,
        "kit": record.kit(),
        "made_ms": record.now_ms(),
        "command": list(command),
        "verdict": _verdict(judged),
        "sides": [_side(side, out_dir) for side in sides],
        "comparisons": comparisons,
        "thresholds": [each.as_json() | {"said": _said(each)} for each in judged],
        "series": {"round_trips": [_curve(side) for side in sides if isinstance(side, RunSide)]},
    }


def _metrics(side: StudySide, thresholds: Sequence[Threshold]) -> list[str]:
    """The study's own metrics, and those that are to be judged."""
    own = (side.study.get("definition") or {}).get("metrics") or ["mean_ms", "median_ms", "p95_ms", "success"]
    return list(dict.fromkeys([*own, *(threshold.metric for threshold in thresholds)]))


def _claimed(found: Mapping[str, list[Contrast]]) -> dict[str, list[Contrast]]:
    """Claims of all comparisons of the page as one family."""
    family = iter(claimed([contrast for contrasts in found.values() for contrast in contrasts]))
    return {label: [next(family) for _ in contrasts] for label, contrasts in found.items()}


def _claimed_by_metric(found: Mapping[str, list[Contrast]]) -> dict[str, list[Contrast]]:
    """Claims at points: a family for each metric."""
    names = dict.fromkeys(contrast.metric for contrasts in found.values() for contrast in contrasts)
    by_side: dict[str, list[Contrast]] = {label: [] for label in found}
    for name in names:
        of_metric = {label: [each for each in contrasts if each.metric == name] for label, contrasts in found.items()}
        for label, contrasts in _claimed(of_metric).items():
            by_side[label] += contrasts
    return by_side


def _answers(overall: Sequence[Contrast], old: RunSide | StudySide, new: RunSide | StudySide) -> list[str]:
    """What the page says first: the main metric, and what else is claimed for better or worse."""
    by_name = {contrast.metric: contrast for contrast in overall}
    wanted = MAIN_OF_RUNS if isinstance(old, RunSide) else (*list(by_name)[:1], "success")
    main = [name for name in dict.fromkeys(wanted) if name in by_name]
    return [sentence(by_name[name].as_json(), old.label, new.label) for name in main]


def _verdict(judged: Sequence[Judged]) -> dict[str, Any]:
    regressions = [each for each in judged if each.state == "regression"]
    open_ones = [each for each in judged if each.state in {"undecided", "not compared"}]
    if regressions:
        text = f"{plural(len(regressions), 'regression')} beyond the threshold: {_said(regressions[0])}"
        text += f", and {len(regressions) - 1} more" if len(regressions) > 1 else ""
        return {"verdict": "regression", "exit_status": EXIT_REGRESSION, "text": text}
    if open_ones and len(open_ones) == len(judged):
        return {
            "verdict": "undecided",
            "exit_status": 0,
            "text": "nothing could be decided, for want of samples or repetitions",
        }
    text = "no worsening beyond a threshold was shown"
    if open_ones:
        text += f"; {len(open_ones)} of {plural(len(judged), 'check')} could not be decided"
    else:
        text += ", and every interval keeps within its threshold"
    return {"verdict": "none", "exit_status": 0, "text": text}


def _said(judged: Judged) -> str:
    """A judgement as words: side, metric, point and interval."""
    contrast = judged.contrast
    if contrast is None:
        return f"{metric(judged.threshold.metric).words}: not measured on both sides"
    where = f" at {contrast.point}" if contrast.point else ""
    return f"{judged.label}, {contrast.about.words.lower()}{where}: {interval_text(contrast.as_json())}"


def _warnings(old: RunSide | StudySide, new: RunSide | StudySide, compared: studies.Compared) -> list[str]:
    if isinstance(old, StudySide) and isinstance(new, StudySide):
        return _warnings_of_studies(old, new, compared)
    assert isinstance(old, RunSide) and isinstance(new, RunSide)  # noqa: S101 - sides.read_sides sees to it
    said = []
    a, b = old.label, new.label
    shared = {run.folder for run in old.runs} & {run.folder for run in new.runs}
    if shared:
        said.append(
            f"{a} and {b} share {', '.join(sorted(folder.name for folder in shared))}: it is compared with itself."
        )
    if len(old.runs) == len(new.runs) == 1:
        said.append(
            f"{a} and {b} are one run each. The intervals say how far the figures of these two runs may be off; how "
            "far one run of the same thing differs from the next nobody can tell from them, and a claim here may be no "
            "more than that. Repeat both, and give the runs as A1,A2,A3 B1,B2,B3."
        )
    elif 1 in (len(old.runs), len(new.runs)):
        one, many = (a, b) if len(old.runs) == 1 else (b, a)
        said.append(f"{one} is a single run: it is taken to vary from run to run as {many} does.")
    return said


def _warnings_of_studies(old: StudySide, new: StudySide, compared: studies.Compared) -> list[str]:
    said = []
    for side in dict.fromkeys((old.folder, new.folder)):
        of = old if side == old.folder else new
        if of.left_out:
            said.append(f"{plural(of.left_out, 'run')} of {side.name} failed and are left out.")
    if any(contrast.why == studies.ONE_ONLY for contrast in (*compared.overall, *compared.points)):
        said.append(f"Some figures have no interval: {studies.ONE_ONLY}.")
    if compared.pairs == "point" and old.folder != new.folder:
        said.append(
            f"{old.label} and {new.label} ran once each. The intervals over all points say how far the points differ; "
            "what the machine did otherwise in all of one study nobody can tell from them. Give both repetitions."
        )
    return said


def _side(side: RunSide | StudySide, out_dir: Path) -> dict[str, Any]:
    if isinstance(side, StudySide):
        repetitions = side.results["repetition"].n_unique()
        return {
            "label": side.label,
            "name": side.name,
            "parts": [_link(side.folder, out_dir)],
            "says": f"{plural(len(side.points), 'point')}, {plural(repetitions, 'repetition')}",
            "warnings": [],
        }
    frames = sum(run.right.size for run in side.runs)
    says = plural(frames, "frame") + (f" in {plural(len(side.runs), 'repetition')}" if len(side.runs) > 1 else "")
    warnings = [f"{run.name}: {sentence}" for run in side.runs for sentence in run.summary.get("warnings") or ()]
    return {
        "label": side.label,
        "name": side.name,
        "parts": [_link(run.folder, out_dir) for run in side.runs],
        "says": says,
        "warnings": [sentence for run in side.runs for sentence in _about_run(run)] + warnings,
    }


def _about_run(run: Run) -> list[str]:
    """What of a run is not in its figures, or should not be."""
    said = []
    verdict = run.summary.get("verdict") or {}
    if verdict.get("verdict") in {"partial", "unjudged"}:
        said.append(f"{run.name} is {verdict['verdict']}: {verdict.get('text')}.")
    n, failed = run.right.size, int(run.right.size - run.right.sum())
    cut = int(run.times[""].cut.sum()) if "" in run.times else 0
    if cut:
        said.append(f"{run.name}: {count(cut)} of {plural(n, 'frame')} timed out; their times are lower bounds.")
    if failed - cut > MANY_FAILED * n:
        said.append(
            f"{run.name}: {percent((failed - cut) / n)} of the frames failed otherwise than by a time-out; of them "
            "there are no times, and those of the others may look better for it."
        )
    cold = (((run.summary.get("frames") or {}).get("times") or {}).get("cold") or {}).get("n")
    if cold:
        are = "frame, the first of a process, is" if cold == 1 else "frames, the first of their processes, are"
        said.append(f"{run.name}: {count(cold)} cold {are} in the figures.")
    return said


def _link(folder: Path, out_dir: Path) -> dict[str, str]:
    return {"name": folder.name, "path": os.path.relpath(folder / "index.html", out_dir)}


def _curve(side: RunSide) -> dict[str, Any]:
    """Share of the round trips at or below a time, all repetitions together; time-outs count, and are never reached."""
    times = [run.times[""] for run in side.runs if "" in run.times]
    if not times:
        return {"label": side.label, "x_ms": [], "share": [], "n": 0, "timed_out": 0}
    full = np.sort(np.concatenate([each.values_ms[~each.cut] for each in times]))
    n, cut = sum(each.n for each in times), sum(int(each.cut.sum()) for each in times)
    shown = np.linspace(0, full.size - 1, min(CURVE_POINTS, full.size)).astype(int)
    ranks = sorted(set(shown.tolist()))
    return {
        "label": side.label,
        "x_ms": [round(float(full[rank]), 3) for rank in ranks],
        "share": [round((rank + 1) / n, 6) for rank in ranks],
        "n": n,
        "timed_out": cut,
    }
