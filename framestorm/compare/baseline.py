"""A run compared with its baseline: found among earlier runs of the same plan, target and load, or named."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from framestorm import paths
from framestorm.compare.comparing import compare
from framestorm.compare.page import page_html
from framestorm.compare.runs import RunSide, read_compared
from framestorm.compare.sides import find_run
from framestorm.compare.thresholds import check_measured, parse_threshold, thresholds_of
from framestorm.errors import FramestormError, UsageError
from framestorm.history.headlines import RECORD, read_headline, read_headlines
from framestorm.judge import wording
from framestorm.model.comparison import Comparison, JudgedThreshold
from framestorm.model.files import write, write_text
from framestorm.model.headline import Headline
from framestorm.model.summary import Against, BaselineCheck, CheckState, ComparedFigure, Summary, Verdict
from framestorm.report import BASELINE, COMPARISON, remove_comparison

LAST, BEST, MAIN = "last", "best", "main"
MAIN_BRANCHES = ("main", "master")
EXIT_REGRESSION, EXIT_UNDECIDED = 3, 5
# Of the runs that can be compared, in the order of their starts.
CHOICES: dict[str, Callable[[Sequence[Headline]], Sequence[Headline]]] = {
    LAST: lambda runs: runs,
    BEST: lambda runs: sorted(
        (run for run in runs if run.verdict == "pass" and "median_ms" in run.figures),
        key=lambda run: -run.figures["median_ms"].value,
    ),
    MAIN: lambda runs: [run for run in runs if run.branch in MAIN_BRANCHES],
}
LACKING = {
    LAST: "no earlier complete run of the same plan, target, load and properties",
    BEST: "no earlier run of the same plan, target, load and properties that passed",
    MAIN: "no earlier complete run on the branch main of the same plan, target, load and properties (a run has a "
    "branch if it was started in a checkout of git)",
}


def checked(baseline: str, thresholds: Sequence[str]) -> str:
    """Check before a run that its baseline is there, and that its thresholds are some; return where the baseline is.

    Raises:
        UsageError: they are not.
    """
    for text in thresholds:
        parse_threshold(text)
    if baseline in CHOICES:
        return baseline
    folder = find_run(baseline)
    if folder is None and paths.is_file(Path(baseline)):
        raise UsageError(
            f"--baseline {baseline} is a file: make it a run by ./run.sh report {baseline} -o DIR, and name DIR"
        )
    if folder is None:
        raise UsageError(
            f"--baseline {baseline}: expected {', '.join(CHOICES)}, or a run; there is no {RECORD} in a folder "
            f"of that name, nor in {paths.shown(paths.DASHBOARDS / baseline)}"
        )
    return str(folder)


def with_baseline(run_dir: Path, summary: Summary) -> Summary:
    """Return the summary of a run with the comparison that its record asks for, whose page goes to a folder of the run.

    The verdict fails if the run is worse than its baseline by more than a threshold, and that is significant.
    """
    asked, undecided = summary.run.baseline, summary.run.undecided
    remove_comparison(run_dir)
    if asked is None:
        return summary
    if summary.verdict.word not in ("pass", "fail"):
        text = f"{summary.verdict.text}; not compared with a baseline, because the run is not whole"
        return replace(summary, verdict=replace(summary.verdict, text=text))
    try:
        against = _against(run_dir, asked, summary)
    except UsageError as error:  # a threshold of something that was not measured
        against = Against(
            asked, None, str(error), checks=[BaselineCheck("the thresholds can be judged", "failed", str(error))]
        )
    except FramestormError as error:
        against = _undecided(asked, str(error))
    return replace(summary, against=against, verdict=_verdict(summary.verdict, against, undecided == "fail"))


def _against(run_dir: Path, asked: str, summary: Summary) -> Against:
    """Return the comparison of a run, and write its page."""
    baseline = find_run(asked) if asked not in CHOICES else _chosen(run_dir, asked)
    if baseline is None:
        return _undecided(asked, LACKING.get(asked, "it is no longer there"))
    if baseline.resolve() == run_dir.resolve():
        return _undecided(asked, "it is this run itself")
    sides = [RunSide(label, (read_compared(each),)) for label, each in (("A", baseline), ("B", run_dir))]
    thresholds = thresholds_of(summary.run.thresholds, sides)
    if summary.run.thresholds:
        check_measured(thresholds, sides)
    words = [word for text in summary.run.thresholds for word in ("--threshold", text)]
    command = ["./run.sh", "compare", paths.shown(baseline), paths.shown(run_dir), *words]
    folder = run_dir / BASELINE
    folder.mkdir(exist_ok=True)
    comparison = compare(sides, thresholds, folder, command, undecided=summary.run.undecided)
    write(folder / COMPARISON, comparison, indent=1)
    write_text(folder / "index.html", page_html(comparison))
    return Against(
        asked,
        baseline.name,
        _sentence(baseline.name, comparison),
        _figures(comparison),
        [BaselineCheck(each.threshold, _state(each), _text(each)) for each in comparison.thresholds],
        f"{BASELINE}/index.html",
    )


def _state(judged: JudgedThreshold) -> CheckState:
    return "undecided" if judged.is_undecided else "passed" if judged.state == "within" else "failed"


def _sentence(name: str, comparison: Comparison) -> str:
    failed = [each for each in comparison.thresholds if _state(each) == "failed"]
    if not failed:
        return f"against the baseline {name}: {comparison.verdict.text}"
    more = f", and {len(failed) - 1} more" if len(failed) > 1 else ""
    return f"worse than the baseline {name}: {_text(failed[0])}{more}"


def _text(judged: JudgedThreshold) -> str:
    """Return the figure of a check, and of an undecided one why, and how much data would decide it."""
    figure = judged.text.removeprefix(f"{judged.side}, ")
    return "; ".join(text for text in (figure, judged.why, judged.needed) if text)


def _figures(comparison: Comparison) -> list[ComparedFigure]:
    return [ComparedFigure(*wording.contrast_row(contrast)) for contrast in comparison.comparisons[0].overall]


def _undecided(asked: str, why: str) -> Against:
    text = f"not compared (--baseline {asked}): {why}"
    return Against(asked, None, text, checks=[BaselineCheck("there is a run to compare with", "undecided", text)])


def _chosen(run_dir: Path, asked: str) -> Path | None:
    """Return the folder of the run that was asked for in a word, among those in dashboards/ and beside this one."""
    this = read_headline(run_dir.resolve())
    beside = [read_headline(each.parent) for each in run_dir.resolve().parent.glob(f"*/{RECORD}")]
    inside = read_headlines([paths.DASHBOARDS]) if paths.DASHBOARDS.is_dir() else []
    comparable = {each.folder: each for each in (*inside, *beside) if each.key == this.key and not each.problem}
    in_order = sorted((each for each in comparable.values() if each.is_whole), key=_start)
    runs = CHOICES[asked]([each for each in in_order if _start(each) < _start(this)])
    return Path(runs[-1].folder) if runs else None


def _start(run: Headline) -> float:
    return run.started_ms or 0.0


def _verdict(verdict: Verdict, against: Against, fails_undecided: bool) -> Verdict:
    """Return the verdict with the outcome of the comparison; one that has failed already keeps its exit status."""
    states = {each.state for each in against.checks}
    is_worse, is_open = "failed" in states, fails_undecided and "undecided" in states
    if verdict.word == "fail" or not (is_worse or is_open):
        return replace(verdict, text=f"{verdict.text}; {against.text}")
    status = EXIT_REGRESSION if is_worse else EXIT_UNDECIDED
    return replace(verdict, word="fail", exit_status=status, text=f"{against.text}; {verdict.text}")
