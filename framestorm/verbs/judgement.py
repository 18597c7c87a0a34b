"""What a run and the report of one have in common: the options by which it is judged, and how its outcome is shown."""

import argparse
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from framestorm import paths
from framestorm.errors import UsageError
from framestorm.parser import AddCriteria
from framestorm.plain import say

EXIT_STATUS = (
    "exit status: 0 passed, 1 the run could not be done, 2 wrong usage, 3 criteria failed, "
    "4 partial (something was lost or stopped early), 5 undecided against the baseline (with --undecided fail)"
)


# Of these options, those that the record of a run has.
RECORDED = ("criteria", "title", "baseline", "thresholds", "undecided", "accepts_overload", "judges_steady")


def add_judgement(parser: argparse.ArgumentParser) -> None:
    """Add what a run and its report have in common: criteria, and a title."""
    parser.add_argument(
        "--fail-if", metavar="CRITERION", dest="criteria", action=AddCriteria, default=[],
        help="fail the run on a condition such as 'p95 > 2 s' or 'user success < 99 %%'; may be repeated; "
        "@FILE: those of a file, one a line",
    )  # fmt: skip
    parser.add_argument("--title", metavar="TEXT", help="a title for the page and junit.xml, such as 'OCR, nightly'")
    parser.add_argument(
        "--accept-overload", dest="accepts_overload", action="store_true",
        help="let a run pass in which the function does not keep up with an arrival rate (default: it fails)",
    )  # fmt: skip
    parser.add_argument(
        "--steady", dest="judges_steady", action="store_true",
        help="judge the steady part only, and say how much was left out (default: the whole run)",
    )  # fmt: skip
    parser.add_argument(
        "--baseline", metavar="RUN",
        help="fail the run if it is significantly worse than this run, by more than a threshold: last, best or main "
        "(of the earlier runs of the same plan, target and load: the newest, the fastest, or the newest of the branch "
        "main), or the folder of a run",
    )  # fmt: skip
    parser.add_argument(
        "--threshold", metavar="LIMIT", dest="thresholds", action="append", default=[],
        help="with --baseline: how much worse is a regression, as in ./run.sh compare: 'p95 10 %%'; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--undecided", choices=("pass", "fail"), default="pass",
        help="with --baseline: the outcome of a check that cannot be decided, or has no run to compare with "
        "(default: pass)",
    )  # fmt: skip
    parser.add_argument(
        "--summary", metavar="FILE", dest="markdown", type=Path,
        help="append the outcome to this file as Markdown, such as the job summary of a CI",
    )  # fmt: skip


def check_judgement(options: argparse.Namespace) -> dict[str, Any]:
    """Check what `add_judgement` adds, before anything is started; return what the record of a run has of it.

    Raises:
        UsageError: there is no such baseline, no place for the summary, or a threshold without a baseline.
    """
    if options.markdown is not None and not options.markdown.absolute().parent.is_dir():
        raise UsageError(f"--summary {options.markdown}: the folder {options.markdown.parent} does not exist")
    if options.markdown is not None and options.markdown.is_dir():
        raise UsageError(f"--summary {options.markdown} is a folder; name a file")
    options.criteria, options.thresholds = tuple(options.criteria), tuple(options.thresholds)
    if options.baseline is not None:
        from framestorm.compare import baseline

        options.baseline = baseline.checked(options.baseline, options.thresholds)
    elif options.thresholds or options.undecided == "fail":
        raise UsageError("--threshold and --undecided are for a comparison: name the run to compare with by --baseline")
    return {name: getattr(options, name) for name in RECORDED}


def report(run_dir: Path, judgement: argparse.Namespace, *, has_dashboard: bool = True) -> int:
    """Make the report of a run, and show its outcome; what `add_judgement` adds replaces what the run says.

    has_dashboard: JMeter's own is made too, which takes several times as long.
    """
    from framestorm.model import files
    from framestorm.model.summary import Summary
    from framestorm.report import build, write_pages
    from framestorm.report.terminal import terminal_text
    from framestorm.run.dashboard import dashboard_of
    from framestorm.setup import pieces as setup

    if has_dashboard:
        setup.ensure(setup.FOR_A_RUN)
    with dashboard_of(run_dir) if has_dashboard else nullcontext() as made:
        build(
            run_dir,
            judgement.criteria or None,
            judgement.title,
            before_page=made,
            accepts_overload=judgement.accepts_overload or None,
            judges_steady=judgement.judges_steady or None,
        )
    summary = files.read(run_dir / "summary.json", Summary)
    if judgement.baseline is not None:
        of_baseline = {name: getattr(judgement, name) for name in ("baseline", "thresholds", "undecided")}
        summary = replace(summary, run=replace(summary.run, **of_baseline))
    if summary.run.baseline is not None:
        from framestorm.compare.baseline import with_baseline
        from framestorm.report.summary import run_files

        summary = with_baseline(run_dir, summary)
        summary = replace(summary, files=run_files(run_dir))
        write_pages(run_dir, summary)
    say(terminal_text(summary))
    if judgement.markdown is not None:
        from framestorm.report.markdown import markdown_text

        with judgement.markdown.open("a", encoding="utf-8") as file:
            file.write(markdown_text(summary))
    say(f"\nreport: {paths.shown(run_dir / 'index.html')}")
    return summary.verdict.exit_status
