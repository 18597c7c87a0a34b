"""The steps from raw files to the report, in order."""

from collections.abc import Sequence
from pathlib import Path

from framestorm.model import criteria as grammar
from framestorm.model.files import write, write_text
from framestorm.model.summary import Summary
from framestorm.report.junit import junit_xml
from framestorm.report.page import page_html
from framestorm.report.summary import summarise
from framestorm.results.files import ReportError
from framestorm.results.reading import RAW_FILES, read_results


def build_files(run_dir: Path, criteria: Sequence[str] | None) -> Summary:
    """Make the four files of the report; returns the summary."""
    if not any((run_dir / name).exists() for name in RAW_FILES):
        raise ReportError(f"{run_dir} is not the folder of a run: it has none of {', '.join(RAW_FILES)}")
    for text in criteria or ():
        grammar.parse(text)
    try:
        summary = summarise(run_dir, read_results(run_dir), criteria)
        write(run_dir / "summary.json", summary)
        write_text(run_dir / "junit.xml", junit_xml(summary))
        write_text(run_dir / "index.html", page_html(summary))
    except OSError as error:
        raise ReportError(f"the report of {run_dir} cannot be written: {error}") from error
    return summary
