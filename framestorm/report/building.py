"""The steps from raw files to the report, in order."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from framestorm.report import criteria as grammar
from framestorm.report.files import ReportError, read_run, replacing, write_text
from framestorm.report.frames import merge
from framestorm.report.jtl import read_jtl, read_users, write_frames
from framestorm.report.junit import junit_xml
from framestorm.report.page import page_html
from framestorm.report.summary import Raw, summarise
from framestorm.report.table import users_table
from framestorm.report.unit import unit_of

RAW_FILES = ("tree.xml", "journal.jsonl", "samples.jtl", "frames.csv", "run.json")


def build_files(run_dir: Path, criteria: Sequence[str] | None) -> dict[str, Any]:
    """Make the four files of the report; returns the summary."""
    if not any((run_dir / name).exists() for name in RAW_FILES):
        raise ReportError(f"{run_dir} holds nothing of a run: none of {', '.join(RAW_FILES)} is there")
    for text in criteria or ():
        grammar.parse(text)
    try:
        summary = _summary(run_dir, criteria)
        write_text(
            run_dir / "summary.json", json.dumps(summary, allow_nan=False, separators=(",", ":"), ensure_ascii=False)
        )
        write_text(run_dir / "junit.xml", junit_xml(summary))
        write_text(run_dir / "index.html", page_html(summary))
    except OSError as error:
        raise ReportError(f"the report of {run_dir} cannot be written: {error}") from error
    return summary


def _summary(run_dir: Path, criteria: Sequence[str] | None) -> dict[str, Any]:
    run, problem = read_run(run_dir)
    hosts = run.get("hosts") or [{}]
    with read_jtl(run_dir, str(hosts[0].get("name") or "this host")) as jtl, replacing(run_dir / "frames.csv") as table:
        jtl.unit = unit_of(run, jtl.labels())
        merged = merge(run_dir, table)
        users = users_table(merged.users.values())
        if not merged.users and jtl.rows is not None:
            users = read_users(jtl) if jtl.count("user") else users
            write_frames(jtl, table)
        elif not merged.users and (run_dir / "frames.csv").exists():
            # An archive that kept only the table: better than nothing, and said to be incomplete.
            table.unlink()
            table.hardlink_to(run_dir / "frames.csv")
        return summarise(run_dir, table, Raw(run, problem, merged, jtl, users), criteria)
