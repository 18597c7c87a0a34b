"""Read a run's raw files, judge them, and show them; nothing here measures, and every report can be made again."""

from collections.abc import Sequence
from pathlib import Path

from framestorm.model.summary import Verdict


def build(run_dir: Path, criteria: Sequence[str] | None = None) -> Verdict:
    """Make samples.csv, summary.json, junit.xml and index.html of a run's folder from its raw files.

    Works on a run that died: then the verdict is partial and the page says what is missing. `criteria` replace those of
    run.json. Each file is replaced whole or not at all.

    Raises:
        CriteriaError: a criterion is not understood.
        FormatError: the folder is of another format.
        ReportError: the folder holds nothing of a run, or cannot be written.
    """
    from framestorm.report.building import build_files  # loads polars, which takes long

    return build_files(run_dir, criteria).verdict
