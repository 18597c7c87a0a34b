"""comparison.json: everything that the page shows, put together of the sides; the page is made of it alone."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from framestorm import record
from framestorm.comparison import caveats, runs, settings, studies
from framestorm.comparison.contrast import Contrast, claimed
from framestorm.comparison.judgement import Judged, Threshold, judge
from framestorm.comparison.metrics import metric
from framestorm.comparison.sides import RunSide, StudySide
from framestorm.comparison.words import interval_text, sentence
from framestorm.report.units import plural

FORMAT = 1
EXIT_MISSING, EXIT_REGRESSION = 1, 3
MAIN_OF_RUNS = ("median_ms", "p95_ms", "success")
CURVE_POINTS = 400


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
            new.label: studies.Compared(
                runs.contrasts(old, new, (0, number)), [], [], [], [], runs.missing(old, new), None
            )
            for number, new in enumerate(others, 1)
            if isinstance(new, RunSide)
        }
    overall = _claimed({label: each.overall for label, each in compared.items()})
    points = _claimed_by_metric({label: each.points for label, each in compared.items()})
    judged = judge(
        thresholds,
        [(label, each) for found in (overall, points) for label, family in found.items() for each in family],
        [(label, what) for label, each in compared.items() for what in each.missing],
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
                "warnings": [*settings.warnings(changed, (old.label, new.label)), *caveats.between(old, new, each)],
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
    missing = [each for each in judged if each.state == "missing"]
    open_ones = [each for each in judged if each.state in {"undecided", "not compared"}]
    if regressions:
        text = f"{plural(len(regressions), 'regression')} beyond the threshold: {_said(regressions[0])}"
        text += f", and {len(regressions) - 1} more" if len(regressions) > 1 else ""
        return {"verdict": "regression", "exit_status": EXIT_REGRESSION, "text": text}
    if missing:
        text = f"{_said(missing[0])} ({missing[0].why})"
        text += f", and {len(missing) - 1} more" if len(missing) > 1 else ""
        return {"verdict": "missing", "exit_status": EXIT_MISSING, "text": text}
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
    words, about = metric(judged.threshold.metric).words, judged.about
    if about is None:
        return f"{words}: not measured on both sides"
    where = f" at {about.point}" if about.point else ""
    seen = interval_text(about.as_json()) if isinstance(about, Contrast) else "none, though the baseline has it"
    return f"{judged.label}, {words.lower()}{where}: {seen}"


def _side(side: RunSide | StudySide, out_dir: Path) -> dict[str, Any]:
    if isinstance(side, StudySide):
        return {
            "label": side.label,
            "name": side.name,
            "parts": [_link(side.folder, out_dir)],
            "says": f"{plural(len(side.points), 'point')}, {plural(side.repetitions, 'repetition')}",
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
        "warnings": [sentence for run in side.runs for sentence in caveats.of_run(run)] + warnings,
    }


def _link(folder: Path, out_dir: Path) -> dict[str, str]:
    return {"name": folder.name, "path": os.path.relpath(folder / "index.html", out_dir)}


def _curve(side: RunSide) -> dict[str, Any]:
    """Share of all that was sent that was answered rightly within a time, all repetitions together."""
    times = [run.times[""] for run in side.runs if "" in run.times]
    n, cut = sum(run.right.size for run in side.runs), sum(int(each.cut.sum()) for each in times)
    if not times:
        return {"label": side.label, "x_ms": [], "share": [], "n": n, "timed_out": 0, "failed": n}
    full = np.sort(np.concatenate([each.values_ms[~each.cut] for each in times]))
    shown = np.linspace(0, full.size - 1, min(CURVE_POINTS, full.size)).astype(int)
    ranks = sorted(set(shown.tolist()))
    return {
        "label": side.label,
        "x_ms": [round(float(full[rank]), 3) for rank in ranks],
        "share": [round((rank + 1) / n, 6) for rank in ranks],
        "n": n,
        "timed_out": cut,
        "failed": n - int(full.size) - cut,
    }
