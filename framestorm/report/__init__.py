"""Read a run's raw files, judge them, and show them; nothing here measures, and every report can be made again.

`criteria` is free of third-party imports; the rest is loaded by `build`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Outcome:
    """How a run came out: verdict pass, fail, partial or unjudged, the exit status that goes with it, and one line."""

    verdict: str
    exit_status: int
    text: str


def build(run_dir: Path, criteria: Sequence[str] | None = None) -> Outcome:
    """Make frames.csv, summary.json, junit.xml and index.html of a run's folder from its raw files.

    Works on a run that died: then the verdict is partial and the page says what is missing. `criteria` replace those of
    run.json. Each file is replaced whole or not at all.

    Raises:
        CriteriaError: a criterion is not understood.
        ReportError: the folder holds nothing of a run, or cannot be written.
    """
    from framestorm.report.building import build_files

    verdict = build_files(run_dir, criteria)["verdict"]
    name = str(verdict["verdict"])
    return Outcome(name, int(verdict["exit_status"]), f"{name.capitalize()}: {verdict['text']}.")
