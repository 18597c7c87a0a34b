"""Read a run's raw files, judge them, and show them; nothing here measures, and every report can be made again."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from framestorm.model import criteria as grammar
from framestorm.model.files import write, write_text
from framestorm.model.scraped import scraped_criterion
from framestorm.model.summary import Summary, Verdict

BASELINE = "baseline"  # the folder, in that of a run, of its comparison with a baseline
COMPARISON = "comparison.json"


def build(
    run_dir: Path,
    criteria: Sequence[str] | None = None,
    title: str | None = None,
    before_page: Callable[[], object] | None = None,
    *,
    accepts_overload: bool | None = None,
    judges_steady: bool | None = None,
) -> Verdict:
    """Make samples.csv, summary.json, junit.xml and index.html of a run's folder from its raw files.

    Works on a run that died: then the verdict is partial and the page says what is missing. `criteria`, `title`,
    `accepts_overload` and `judges_steady` replace those of run.json. Each file is replaced whole or not at all.
    `before_page` waits for files that the page lists and something else makes.

    Raises:
        CriteriaError: a criterion is not understood.
        FormatError: the folder is of another format.
        ReportError: the folder holds nothing of a run, or cannot be written.
    """
    # These load polars, which takes long.
    from framestorm.report.summary import run_files, summarise
    from framestorm.results.reading import RAW_FILES, ReportError, read_results

    if not any((run_dir / name).exists() for name in RAW_FILES):
        raise ReportError(f"{run_dir} is not the folder of a run: it has none of {', '.join(RAW_FILES)}")
    for text in criteria or ():
        if not ((run_dir / "scrapes.csv").exists() and scraped_criterion(text)):
            grammar.parse(text)
    try:
        remove_comparison(run_dir)
        results = read_results(run_dir)
        record = results.record
        record = record if title is None else replace(record, title=title)
        record = record if accepts_overload is None else replace(record, accepts_overload=accepts_overload)
        record = record if judges_steady is None else replace(record, judges_steady=judges_steady)
        results = replace(results, record=record)
        summary = summarise(run_dir, results, criteria)
        if before_page is not None:
            before_page()
            summary = replace(summary, files=run_files(run_dir))
        write_pages(run_dir, summary)
    except OSError as error:
        raise ReportError(f"the report of {run_dir} cannot be made: {error}") from error
    return summary.verdict


def remove_comparison(run_dir: Path) -> None:
    """Remove the comparison of an earlier report of the run, which is none of this one."""
    folder = run_dir / BASELINE
    if not (folder / COMPARISON).exists():
        return
    for name in ("index.html", COMPARISON):
        (folder / name).unlink(missing_ok=True)
    with suppress(OSError):  # a run of that name is in it
        folder.rmdir()


def write_pages(run_dir: Path, summary: Summary) -> None:
    """Write summary.json, and junit.xml and index.html, which are made of it."""
    from framestorm.report.junit import junit_xml
    from framestorm.report.page import page_html

    write(run_dir / "summary.json", summary)
    write_text(run_dir / "junit.xml", junit_xml(summary))
    write_text(run_dir / "index.html", page_html(summary))
