"""A study's page and the files beside it, made of the folder's runs; of an unfinished study it says what is missing."""

from pathlib import Path

from framestorm import paths
from framestorm.judge import wording
from framestorm.model import units
from framestorm.model.expectation import CONFIRMED, INCONCLUSIVE, REJECTED
from framestorm.model.files import write, write_text
from framestorm.model.metric import metric
from framestorm.model.study import matches
from framestorm.model.study_summary import Basis, HypothesisAnswer, PointSummary
from framestorm.model.summary import Doubt
from framestorm.model.units import plural
from framestorm.points.folder import STOPPED, StudyFolder, StudyRecord
from framestorm.points.results_csv import write_rows
from framestorm.points.study_results import StudyResults
from framestorm.report.document import render, repeatable
from framestorm.report.junit import Case, suite_xml
from framestorm.results.reading import ReportError
from framestorm.stats.estimate import Estimate
from framestorm.study.design.reading import record_now
from framestorm.study.page.charts import study_charts
from framestorm.study.summary import StudySummary, summarise

# A verdict's class in the style sheet.
LOOKS = {CONFIRMED: "pass", REJECTED: "fail", INCONCLUSIVE: "partial"}
# Columns that the table has in any case.
ALWAYS_SHOWN = ("n", "failed", "timed_out")
EXIT_NOTHING, EXIT_REJECTED, EXIT_PARTIAL, EXIT_INCONCLUSIVE = 1, 3, 4, 5
REJECTED_FOR = ("warm_up", "cold", "warm")
MAX_CAUSES = 5
# The warnings of a run's own report, by kind, as they are counted over runs.
DOUBTS: dict[Doubt, str] = {
    "overloaded": "the function did not keep up with the load: times are those of a queue that grows with the run",
    "saturated": "the machine was saturated: times include waiting for a core",
    "not_offered": "the users or the rate that were asked for were not reached",
    "stopped": "the plan itself stopped the test early",
    "slave_lost": "a slave was lost",
    "replica_lost": "a replica was lost",
    "replicas_short": "fewer replicas were ready than wanted",
    "element_failed": "scripts or other elements of the plan failed, and JMeter went on",
    "unreplaced": "names of variables were sent in place of values",
    "buffered": "something in between kept streams back: times to the first token and gaps are not the function's",
    "hosts_differ": "slaves measured different times",
    "clock": "a clock was wrong",
    "self_check": "times were wrong: the rows are not what JMeter counted by itself",
    "drift": "response times never became steady",
}


def build(study_dir: Path) -> StudySummary:
    """Make results.csv, summary.json, junit.xml and index.html of a study's folder, each completely or not at all.

    Raises:
        UsageError: it is not a study's folder, or has a format that this version does not read; or its study.yml was
            changed in keys that decide how runs are made.
        ReportError: a file cannot be written.
    """
    folder = StudyFolder(study_dir)
    folder.record = record_now(folder)
    study = StudyResults(folder)
    summary = summarise(study)
    try:
        write_rows(study_dir, folder.record, study.rows)
        write(study_dir / "summary.json", summary)
        write_text(study_dir / "junit.xml", junit_xml(summary))
        write_text(study_dir / "index.html", page_html(summary))
    except OSError as error:
        raise ReportError(f"the page of {study_dir} cannot be written: {error}") from error
    return summary


def is_complete(summary: StudySummary) -> bool:
    """Return whether each point has all of its runs, and those that a stop rule added."""
    progress = summary.progress
    is_whole = progress.states["complete"] == progress.points and not progress.failed_runs
    return bool(progress.complete_runs) and is_whole


def exit_status(summary: StudySummary) -> int:
    """Return what run.sh returns: runs that are missing come first, as the answers may change with them."""
    if not summary.progress.complete_runs:
        return EXIT_NOTHING
    if not is_complete(summary):
        return EXIT_PARTIAL
    if summary.verdicts.get(REJECTED):
        return EXIT_REJECTED
    return EXIT_INCONCLUSIVE if summary.verdicts.get(INCONCLUSIVE) else 0


def terminal_text(summary: StudySummary, page: Path) -> str:
    """Return the hypotheses with their verdicts, what is missing or failed, and where the page is."""
    lines = [f"{summary.study.name}{' (quick)' if summary.study.quick else ''}: {progress_text(summary)}."]
    for hypothesis in summary.hypotheses:
        lines.append(f"  {hypothesis.verdict:<14} {hypothesis.name}: {hypothesis.text}")
        for claim in hypothesis.claims:
            lines.append(f"  {'':<14} {claim.sentence}")
            lines += [f"  {'':<14} warning: {sentence}" for sentence in basis_sentences(claim.basis)]
            lines += [f"  {'':<14} note: {note}" for note in claim.notes]
    lines += [f"  {sentence}" for sentence in summary.unmeasured]
    runs = summary.progress.complete_runs
    lines += [
        f"  warning: in {n} of {plural(runs, 'run')} {DOUBTS[kind]}" for kind, n in summary.progress.doubts.items()
    ]
    if summary.mixed:
        lines.append(f"  warning: not all runs have the same {', '.join(summary.mixed)}")
    failed = [point for point in summary.points if point.failed]
    for point in failed[:MAX_CAUSES]:
        lines.append(f"  {point.failed} of {point.planned} runs failed at {point.id}: {'; '.join(point.causes)}")
    if len(failed) > MAX_CAUSES:
        lines.append(f"  and {plural(len(failed) - MAX_CAUSES, 'more point')} with failed runs")
    return "\n".join([*lines, f"page: {paths.shown(page)}"])


def basis_sentences(basis: Basis) -> list[str]:
    """Why the figure of a claim may not be what it seems: what its runs were warned of, and that runs are missing."""
    sentences = []
    for doubt, n in basis.doubts.items():
        which = f"all {basis.runs} runs" if n == basis.runs else f"{n} of the {basis.runs} runs"
        # What it means is told once, where all warnings are.
        words = DOUBTS[doubt].partition(":")[0]
        sentences.append(f"In {'the only run' if basis.runs == 1 else which} behind this figure {words}.")
    if basis.failed:
        sentences.append(
            f"{plural(basis.failed, 'run')} of these points failed, and the figure is of the others: if the load made "
            "them fail, it looks better than it is."
        )
    return sentences


def progress_text(summary: StudySummary) -> str:
    """Return how many runs there are of how many, and what came of the rest."""
    progress = summary.progress
    text = f"{units.count(progress.complete_runs)} of {plural(progress.planned_runs, 'run')} complete"
    if progress.failed_runs:
        text += f", {units.count(progress.failed_runs)} failed"
    if progress.repeated_runs:
        text += f", {units.count(progress.repeated_runs)} made again"
    if missing := progress.states["missing"]:
        text += f", {plural(missing, 'point')} without a run"
    return text


def junit_xml(summary: StudySummary) -> str:
    """JUnit's XML: a test case a hypothesis, which fails unless it is confirmed, and one a point."""
    started_ms = summary.progress.started_ms or summary.study.started_ms
    return suite_xml(
        ["study", summary.study.name],
        [*map(_hypothesis_case, summary.hypotheses), *map(_point_case, summary.points)],
        {f"hypothesis: {each.name}": each.verdict for each in summary.hypotheses},
        started_ms,
        summary.progress.ended_ms - started_ms if summary.progress.ended_ms else 0,
    )


def _hypothesis_case(hypothesis: HypothesisAnswer) -> Case:
    claims = [f"{claim.verdict}: {claim.sentence}" for claim in hypothesis.claims]
    if hypothesis.verdict == CONFIRMED:
        return Case(hypothesis.name, output="\n".join(claims), label="hypothesis")
    why = "\n".join([f"{hypothesis.verdict}: {hypothesis.text}", *claims])
    return Case(hypothesis.name, (hypothesis.verdict, why), label="hypothesis")


def _point_case(point: PointSummary) -> Case:
    """Return the test case of a point: failed with a failed run, skipped if runs are missing."""
    done = f"{point.complete} of {plural(point.planned, 'repetition')} complete"
    if point.failed:
        return Case(point.id, (point.state, f"{done}: " + "\n".join(point.causes)))
    return Case(point.id, skipped=done if point.complete < point.planned else None)


def page_html(summary: StudySummary) -> str:
    """Render the page from what summary.json holds, and nothing besides."""
    definition, counts = summary.study.definition, summary.progress.counts
    return render(
        "study.html.j2",
        study_charts(summary),
        filters={
            "figure": figure_text, "ends": figure_ends, "label": lambda name: metric(name).label,
            "factor": wording.factor, "level": wording.level, "look": LOOKS.__getitem__, "settings": wording.settings,
            "doubted": basis_sentences,
        },
        s=summary,
        d=definition,
        p=summary.progress,
        metrics=[name for name in definition.metrics if name not in ALWAYS_SHOWN],
        progress=progress_text(summary),
        complete=is_complete(summary),
        stopped=summary.study.state == STOPPED,
        doubts=[(n, DOUBTS[doubt]) for doubt, n in summary.progress.doubts.items()],
        published=published_points(summary),
        command=repeating_command(summary.study),
        verdict_words=[verdict.capitalize() for verdict in LOOKS],
        fits=[line for line in summary.scalability if line.usl],
        knees=[line for line in summary.scalability if line.knee],
        rejected=[name for name in REJECTED_FOR if counts.get(f"rejected_{name}")],
    )  # fmt: skip


def repeating_command(study: StudyRecord) -> list[str]:
    """Return the command that takes the study again, with its seed: the same order of runs."""
    command = repeatable(study.command or ("./run.sh", "study", study.name))
    words = [study.name if word == "--all" else word for word in command if word != "--resume"]
    if not any(word.split("=")[0] == "--seed" for word in words):
        words += ["--seed", str(study.seed)]
    return words


def figure_text(figure: Estimate | None, name: str) -> str:
    """Return a figure as it stands in the table: "> " for a lower bound, "≈ " where timeouts made it unsure."""
    if figure is None:
        return units.NONE
    mark = {"lower": "> ", "unsure": "\N{ALMOST EQUAL TO} "}.get(figure.bound, "")
    return mark + metric(name).text(figure.value)


def figure_ends(figure: Estimate | None, name: str) -> str:
    """Return the interval of a figure; empty without one."""
    return "" if figure is None else metric(name).ends_text(figure.value, figure.low, figure.high)


def published_points(summary: StudySummary) -> dict[str, dict[str, Estimate]]:
    """Return the published figures of each point: those of the row that has the same levels of all its factors."""
    figures = {}
    for point in summary.points:
        for row in summary.published or ():
            if row.factors and matches(point.factors, row.factors):
                figures[point.id] = row.figures
                break
    return figures
