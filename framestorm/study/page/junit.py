"""junit.xml of a study: a test case a point; a point with a failed run fails, one without runs is skipped."""

from collections.abc import Mapping
from typing import Any

from framestorm.report.junit import Case, suite_xml
from framestorm.report.units import plural


def junit_xml(summary: Mapping[str, Any]) -> str:
    """The points of summary.json as JUnit's XML; verdicts of hypotheses are properties, for they are no failures."""
    progress = summary["progress"]
    started_ms = progress["started_ms"] or summary["started_ms"] or 0
    return suite_xml(
        f"study.{summary['name']}",
        [_case(point) for point in summary["points"]],
        {f"hypothesis: {each['name']}": each["verdict"] for each in summary["hypotheses"]},
        started_ms,
        progress["ended_ms"] - started_ms if progress["ended_ms"] else 0,
    )


def _case(point: Mapping[str, Any]) -> Case:
    of = f"{point['complete']} of {plural(point['planned'], 'repetition')} complete"
    if point["failed"]:
        return Case(point["id"], (point["state"], f"{of}: " + "\n".join(point["causes"])))
    return Case(point["id"], skipped=of if point["complete"] < point["planned"] else None)
