"""A study's page and the files beside it, made of the folder's runs; of an unfinished study it says what is missing."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from framestorm import paths
from framestorm.report import units
from framestorm.report.document import render
from framestorm.report.files import ReportError, write_text
from framestorm.report.units import plural
from framestorm.study.answers import wording
from framestorm.study.answers.analysis import DOUBTS
from framestorm.study.answers.results import write_rows
from framestorm.study.answers.summary import as_text, study_of, summarise
from framestorm.study.design.expectation import CONFIRMED, REFUTED, UNDECIDED
from framestorm.study.design.folder import StudyFolder
from framestorm.study.design.rejudging import settings_now
from framestorm.study.page.junit import junit_xml
from framestorm.study.page.study_charts import study_charts

HERE = Path(__file__).parent
# A verdict's class in the style sheet.
LOOKS = {CONFIRMED: "pass", REFUTED: "fail", UNDECIDED: "partial"}
# Columns that the table has in any case.
ALWAYS_SHOWN = ("n", "failed", "timed_out")
REJECTED = ("warm_up", "cold", "warm")
MAX_CAUSES = 5


@dataclass(frozen=True)
class StudyOutcome:
    """How a study came out: the exit status that goes with it, and a few lines for the terminal."""

    exit_status: int
    text: str


def build(study_dir: Path) -> StudyOutcome:
    """Make results.csv, summary.json, junit.xml and index.html of a study's folder, each whole or not at all.

    Raises:
        UsageError: it is no study's folder, or one of a format that this version does not know; or the study.yml in it
            was changed in more than what is asked of the runs.
        ReportError: a file cannot be written.
    """
    folder = StudyFolder(study_dir)
    folder.settings = settings_now(folder)
    study = study_of(folder)
    summary = summarise(study)
    try:
        write_rows(study_dir, folder.settings, study.rows)
        write_text(study_dir / "summary.json", as_text(summary))
        write_text(study_dir / "junit.xml", junit_xml(summary))
        write_text(study_dir / "index.html", page_html(summary))
    except OSError as error:
        raise ReportError(f"the page of {study_dir} cannot be written: {error}") from error
    return StudyOutcome(exit_status(summary), terminal_text(summary, study_dir / "index.html"))


def exit_status(summary: Mapping[str, Any]) -> int:
    """0 if all points are complete, 1 if no run is, else 4: hypotheses do not change it."""
    progress = summary["progress"]
    if not progress["complete_runs"]:
        return 1
    return 0 if progress["states"]["complete"] == progress["points"] else 4


def terminal_text(summary: Mapping[str, Any], page: Path) -> str:
    """The hypotheses with their verdicts, what is missing or failed, and where the page is."""
    lines = [f"{summary['name']}{' (quick)' if summary['quick'] else ''}: {progress_text(summary)}."]
    for hypothesis in summary["hypotheses"]:
        lines.append(f"  {hypothesis['verdict']:<14} {hypothesis['name']}: {hypothesis['text']}")
        lines += [f"  {'':<14} {claim['sentence']}" for claim in hypothesis["claims"]]
    troubled = [point for point in summary["points"] if point["failed"]]
    for point in troubled[:MAX_CAUSES]:
        of = f"{point['failed']} of {point['planned']} runs failed"
        lines.append(f"  {of} at {point['id']}: {'; '.join(point['causes'])}")
    if len(troubled) > MAX_CAUSES:
        lines.append(f"  and {plural(len(troubled) - MAX_CAUSES, 'more point')} with failed runs")
    return "\n".join([*lines, f"page: {paths.shown(page)}"])


def progress_text(summary: Mapping[str, Any]) -> str:
    """How many runs there are of how many, and what came of the rest."""
    progress = summary["progress"]
    text = f"{units.count(progress['complete_runs'])} of {plural(progress['planned_runs'], 'run')} complete"
    failed, missing = progress["failed_runs"], progress["states"]["missing"]
    if failed:
        text += f", {units.count(failed)} failed"
    if missing:
        text += f", {plural(missing, 'point')} without a run"
    return text


def page_html(summary: Mapping[str, Any]) -> str:
    """Render the page from what summary.json holds, and nothing besides."""
    drawn = study_charts(summary)
    return render(
        HERE / "study.html.j2",
        drawn,
        filters={
            "figure": figure_text, "ends": figure_ends, "label": wording.label, "factor": wording.factor,
            "level": wording.level, "unit": wording.unit, "look": LOOKS.__getitem__, "settings": wording.settings,
        },
        s=summary,
        d=summary["definition"],
        p=summary["progress"],
        metrics=[name for name in summary["definition"]["metrics"] if name not in ALWAYS_SHOWN],
        progress=progress_text(summary),
        complete=exit_status(summary) == 0,
        doubts=[(n, DOUBTS[kind]) for kind, n in summary["progress"]["doubts"].items()],
        published=published_points(summary),
        command=command_text(summary),
        fits=[row for row in summary["scalability"] if row["usl"]],
        knees=[row for row in summary["scalability"] if row["knee"]],
        rejected=[name for name in REJECTED if summary["progress"]["counts"].get(f"rejected_{name}")],
    )  # fmt: skip


def command_text(summary: Mapping[str, Any]) -> str:
    """The command that takes the study again, with its seed: the same order of runs."""
    command = summary["command"] or ["./run.sh", "study", summary["name"]]
    given = iter(shlex.split(command) if isinstance(command, str) else [str(word) for word in command])
    words = []
    for word in given:
        if word == "-o":
            next(given, None)  # that folder is there now
        elif word == "--all":
            words.append(str(summary["name"]))
        elif word != "--resume" and not word.startswith("-o"):
            words.append(word)
    if not any(word.split("=")[0] == "--seed" for word in words):
        words += ["--seed", str(summary["seed"])]
    return shlex.join(words)


def figure_text(figure: Mapping[str, Any] | None, metric: str) -> str:
    """A figure as it stands in the table: "> " for a lower bound, "≈ " where time-outs made it unsure."""
    if figure is None:
        return units.NONE
    mark = {"lower": "> ", "unsure": "\N{ALMOST EQUAL TO} "}.get(figure["bound"], "")
    return mark + wording.show(metric, figure["value"])


def figure_ends(figure: Mapping[str, Any] | None, metric: str) -> str:
    """Its interval."""
    return "" if figure is None else wording.ends(metric, figure["value"], figure["low"], figure["high"])


def published_points(summary: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """By point, what was published of it: where all its factors are known to be the same."""
    found = {}
    for point in summary["points"]:
        for row in summary["published"] or []:
            if row["factors"] and all(point["factors"].get(name) == level for name, level in row["factors"].items()):
                found[point["id"]] = row["figures"]
                break
    return found
