"""index.html: the summary as one page that needs nothing else, neither the network nor a server."""

import shlex
from typing import Any

from framestorm.report import units
from framestorm.report.charts import charts
from framestorm.report.document import HERE, render
from framestorm.report.losses import share_text
from framestorm.report.table import SERIES_NAMES

COLUMNS = ("mean", "p50", "p90", "p95", "p99", "max")
WITH_INTERVAL = ("p50", "p95", "p99")
VERDICT_WORDS = {"pass": "Passed", "fail": "Failed", "partial": "Partial", "unjudged": "Not judged"}
STATE_WORDS = {"passed": "met", "failed": "failed", "unjudged": "not judged"}
CAUSE_WORDS = {
    "connect": "no connection",
    "connect-timeout": "no connection in time",
    "timeout": "no whole answer in time",
    "reset": "connection broken, or the answer cut short",
    "not-json": "the answer is not JSON",
    "not-image": "no image in the answer",
    "wrong-size": "an image of another size",
    "not-blurred": "a reported face is unchanged",
    "changed-outside": "changed outside of the faces",
    "too-few-faces": "fewer faces than there are",
    "redirected-as-get": "a redirect made a GET of it, without its body",
    "stopped": "cut off as the user was stopped",
    "never-ended": "started and never ended",
    "user-timeout": "the user ran out of time",
    "not-started": "the client could not be started",
    "not-json-lines": "the client printed something else than its lines",
    "no-user-line": "the client ended without its last line",
    "status-429": "over the function's concurrency limit",
    "status-500": "error in the function",
    "status-502": "the gateway found no function",
    "status-503": "the function was not ready",
    "status-504": "the function's own time-out",
    "failed-check": "an assertion of the plan",
}


def page_html(summary: dict[str, Any]) -> str:
    """Render the page from what summary.json holds, and nothing besides."""
    return render(
        HERE / "page.html.j2",
        charts(summary),
        filters={"share": share_text, "figure": _figure, "interval": _interval, "cause": _cause},
        s=summary,
        run=summary["run"],
        verdict_word=VERDICT_WORDS[summary["verdict"]["verdict"]],
        state_words=STATE_WORDS,
        series_names=SERIES_NAMES,
        columns=COLUMNS,
        with_interval=WITH_INTERVAL,
        command=shlex.join(str(word) for word in summary["run"]["command"] or ()),
    )


def _figure(figure: dict[str, Any] | None) -> str:
    if figure is None:
        return units.NONE
    few = "†" if figure["few"] else ""
    return ("> " if figure["bound"] == "lower" else "") + units.duration(figure["value"]) + few


def _interval(figure: dict[str, Any] | None) -> str:
    """A percentile's interval; an open end where the sample is too small or cut off there."""
    if figure is None or figure["few"]:
        return ""
    return units.ends(*(units.duration(figure[end]) if figure[end] is not None else None for end in ("low", "high")))


def _cause(cause: str) -> str:
    if cause in CAUSE_WORDS:
        return CAUSE_WORDS[cause]
    if cause.startswith("exit-"):
        return f"the client's process ended with {cause.removeprefix('exit-')}"
    return f"HTTP {cause.removeprefix('status-')}" if cause.startswith("status-") else cause
