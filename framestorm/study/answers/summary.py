"""summary.json of a study: every figure of its page, put together; the page is made of this and nothing else."""

import csv
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from framestorm.report.files import read_run
from framestorm.study.answers.analysis import Study, analyse
from framestorm.study.answers.claims import answer
from framestorm.study.answers.frame_series import frame_series
from framestorm.study.answers.knees import scalability
from framestorm.study.answers.results import PERCENTILES, factor_names, result_rows
from framestorm.study.design.expectation import CONFIRMED, REFUTED, UNDECIDED
from framestorm.study.design.folder import STOPPED, StudyFolder
from framestorm.study.design.matrix import as_number
from framestorm.study.design.metrics import BY_NAME

FORMAT = 1
SETTINGS = (
    "name", "quick", "kit", "seed", "command", "started_ms", "ended_ms", "state", "only", "overrides", "gateway",
    "slaves", "resumed", "rejudged",
)  # fmt: skip
DEFINED = (
    "title", "question", "plan", "target", "properties", "blocks", "repetitions", "stop", "order", "warm_up_s",
    "temperature", "metrics", "derived", "charts", "published_from",
)  # fmt: skip
FILES = {
    "results.csv": "a row a point and repetition, with every metric",
    "summary.json": "every figure of this page",
    "study.yml": "the study as it was asked for",
    "study.json": "the study as it was run: seed, points, versions",
    "runs.jsonl": "a line a run as it ended",
    "junit.xml": "a test case a point, for CI",
    "study.log": "what was done when",
}
MADE_HERE = frozenset({"results.csv", "summary.json", "junit.xml"})


def study_of(folder: StudyFolder) -> Study:
    """The study with the figures of its runs."""
    return Study(folder.path, folder.settings, result_rows(folder))


def summarise(study: Study) -> dict[str, Any]:
    """The whole of summary.json."""
    definition = study.definition
    points, hypotheses = analyse(study), answer(study)
    published = read_published(study.folder, definition)
    charts = definition.get("charts") or []
    return {
        "format": FORMAT,
        "kind": "study",
        **{name: study.settings.get(name) for name in SETTINGS},
        "definition": {name: definition.get(name) for name in DEFINED}
        | {"charts": charts, "factors": factor_names(study.settings)}
        | {"levels": _levels(definition, published), "levels_run": _levels_run(study)},
        "progress": _progress(study, points),
        "verdicts": {word: sum(h["verdict"] == word for h in hypotheses) for word in (CONFIRMED, REFUTED, UNDECIDED)},
        "hypotheses": hypotheses,
        "points": points,
        "published": published,
        "scalability": scalability(study),
        "series": {
            str(number): frame_series(study, chart)
            for number, chart in enumerate(charts)
            if chart.get("kind") == "per-frame"
        },
        "machine": _machine(study),
        "files": [
            {"path": name, "what": what}
            for name, what in FILES.items()
            if name in MADE_HERE or (study.folder / name).exists()
        ],
    }


def _levels(definition: Mapping[str, Any], published: list[dict[str, Any]] | None) -> dict[str, list[Any]]:
    """Of each factor its levels in order, those that only the published study has among them."""
    found = {}
    for name, levels in definition["factors"].items():
        own = list(levels)
        more = dict.fromkeys(row["factors"][name] for row in published or [] if name in row["factors"])
        every = [*own, *(level for level in more if level not in own)]
        are_numbers = all(isinstance(level, int | float) and not isinstance(level, bool) for level in every)
        found[name] = sorted(every) if are_numbers else every
    return found


def _levels_run(study: Study) -> dict[str, list[Any]]:
    """Of each factor the levels that points have."""
    return {
        name: [level for level in levels if any(point["factors"].get(name) == level for point in study.points)]
        for name, levels in study.definition["factors"].items()
    }


def _progress(study: Study, points: list[dict[str, Any]]) -> dict[str, Any]:
    """How many of how many runs there are, how long they took, and what the engine itself cost."""
    costs_ms = [float(row["engine_ms"]) for row in study.rows if row.get("engine_ms") is not None]
    starts = [row["started_ms"] for row in study.rows if row.get("started_ms")]
    ends = [row["ended_ms"] for row in study.rows if row.get("ended_ms")]
    return {
        "points": len(points),
        "planned_runs": sum(max(point["planned"], point["complete"]) for point in points),
        "complete_runs": len(study.complete),
        "failed_runs": len(study.rows) - len(study.complete),
        "states": {
            state: sum(p["state"] == state for p in points) for state in ("complete", "partial", "failed", "missing")
        },
        "stopped": study.settings.get("state") == STOPPED,
        "started_ms": min(starts, default=None),
        "ended_ms": max(ends, default=None),
        "engine_mean_ms": sum(costs_ms) / len(costs_ms) if costs_ms else None,
        "engine_max_ms": max(costs_ms, default=None),
        "doubts": {
            name: n
            for name in dict.fromkeys(name for point in points for name in point["doubts"])
            if (n := sum(point["doubts"].get(name, 0) for point in points))
        },
        "counts": {name: sum(point["counts"][name] for point in points) for name in points[0]["counts"]}
        if points
        else {},
    }


def _machine(study: Study) -> dict[str, Any] | None:
    """Hosts and versions, as the first run that is there says."""
    for row in study.complete:
        run, problem = read_run(study.folder / row["run"])
        if problem is None:
            return {name: run.get(name) for name in ("hosts", "versions")}
    return None


def read_published(folder: Path, definition: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """The published results as points: factors by our levels, figures without intervals; None if there are none."""
    name = definition.get("published")
    path = folder / name if name else None
    if path is None or not path.exists():
        return None
    # A table that Excel saved begins with a mark.
    with path.open(encoding="utf-8-sig", newline="") as file:
        return [_published(row, definition) for row in csv.DictReader(file)]


def _published(row: Mapping[str, str | None], definition: Mapping[str, Any]) -> dict[str, Any]:
    factors: dict[str, Any] = {}
    figures: dict[str, Any] = {}
    known = {*BY_NAME, *(definition.get("derived") or {})}
    is_cut = row.get("mean_is_lower_bound") == "true"
    for name, text in row.items():
        number = as_number(text) if text else None
        if name in definition["factors"] and text:
            factors[name] = _level(text, list(definition["factors"][name]))
        elif name in known and number is not None:
            # A percentile that lies among those that timed out is no more than what was waited.
            right, percentile = as_number(row.get("success") or ""), PERCENTILES.get(name.removesuffix("_ms"))
            is_beyond = percentile is not None and right is not None and float(percentile) > 100 * right
            bound = "lower" if is_cut and (name == "mean_ms" or is_beyond) else "exact"
            figures[name] = {"value": float(number), "low": None, "high": None, "n": 1, "bound": bound}
    return {"factors": factors, "figures": figures}


def _level(text: str, levels: list[Any]) -> Any:
    """The level that `text` stands for; a number that ours does not have stays a number where ours are numbers."""
    for level in levels:
        if str(level) == text or (not isinstance(level, str) and as_number(text) == level):
            return level
    number = as_number(text)
    return number if number is not None and not any(isinstance(level, str) for level in levels) else text


def as_text(summary: Mapping[str, Any]) -> str:
    """summary.json's contents."""
    return json.dumps(summary, allow_nan=False, separators=(",", ":"), ensure_ascii=False)
