"""index.html: the summary as one page that needs nothing else, neither the network nor a server."""

import importlib.util
import json
import shlex
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from framestorm.report import units
from framestorm.report.charts import charts
from framestorm.report.files import ReportError
from framestorm.report.losses import share_text
from framestorm.report.table import SERIES_NAMES

HERE = Path(__file__).parent
COLUMNS = ("mean", "p50", "p90", "p95", "p99", "max")
WITH_INTERVAL = ("p50", "p95", "p99")
NONE = "\N{EN DASH}"  # no value, and from … to
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
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        duration=units.duration, percent=units.percent, count=units.count, rate=units.rate, size=units.size, utc=_utc,
        share=share_text, figure=_figure, interval=_interval, cause=_cause, value=_value,
    )  # fmt: skip
    drawn = charts(summary)
    figures = json.dumps([chart.figure() for chart in drawn], separators=(",", ":"), allow_nan=False)
    return environment.get_template("page.html.j2").render(
        s=summary,
        run=summary["run"],
        verdict_word=VERDICT_WORDS[summary["verdict"]["verdict"]],
        state_words=STATE_WORDS,
        series_names=SERIES_NAMES,
        columns=COLUMNS,
        with_interval=WITH_INTERVAL,
        command=shlex.join(str(word) for word in summary["run"]["command"] or ()),
        charts=drawn,
        # In a script element only "<" can do harm.
        figures=Markup(figures.replace("<", "\\u003c")),  # noqa: S704
        style=Markup((HERE / "style.css").read_text(encoding="utf-8")),  # noqa: S704
        script=Markup((HERE / "page.js").read_text(encoding="utf-8")),  # noqa: S704
        plotly=Markup(_plotly()),  # noqa: S704
    )


def _plotly() -> str:
    """The drawing library's script, as its package carries it."""
    spec = importlib.util.find_spec("plotly")
    if spec is None or spec.origin is None:
        raise ReportError("the Python package plotly is not installed in this environment; ./run.sh sets it up")
    script = (Path(spec.origin).parent / "package_data" / "plotly.min.js").read_text(encoding="utf-8")
    return script.replace("</script", "<\\/script")


def _figure(figure: dict[str, Any] | None) -> str:
    if figure is None:
        return NONE
    few = "†" if figure["few"] else ""
    return ("> " if figure["bound"] == "lower" else "") + units.duration(figure["value"]) + few


def _interval(figure: dict[str, Any] | None) -> str:
    """A percentile's interval; an open end where the sample is too small or cut off there."""
    if figure is None or figure["few"] or (figure["low"] is None and figure["high"] is None):
        return ""
    low, high = (units.duration(figure[end]) if figure[end] is not None else "…" for end in ("low", "high"))
    return f"{low} {NONE} {high}"


def _cause(cause: str) -> str:
    if cause in CAUSE_WORDS:
        return CAUSE_WORDS[cause]
    if cause.startswith("exit-"):
        return f"the client's process ended with {cause.removeprefix('exit-')}"
    return f"HTTP {cause.removeprefix('status-')}" if cause.startswith("status-") else cause


def _value(value: Any) -> str:
    """A setting as text."""
    if value is None or value == "":
        return NONE
    if isinstance(value, bool):
        return "yes" if value else "no"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, (dict, list)) else str(value)


def _utc(ms: float | None) -> str:
    if ms is None:
        return "not known"
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
