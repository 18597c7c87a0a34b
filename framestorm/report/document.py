"""A page that needs nothing else, neither the network nor a server: style, script, drawing library and charts in it.

Pages of runs, studies and comparisons are all made here; each brings a template that extends document.html.j2.
"""

import importlib.util
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from framestorm.report import units
from framestorm.report.figure import Chart
from framestorm.report.files import ReportError

HERE = Path(__file__).parent


def render(
    template: Path, charts: Sequence[Chart], *, filters: Mapping[str, Callable[..., Any]] | None = None, **values: Any
) -> str:
    """Fill `template` with `values`, the charts, and all that they need to be drawn.

    The template has the filters of `framestorm.report.units`, `utc` and `value` beside jinja2's own and the given ones,
    and imports the macro of a chart from figure.html.j2. The charts have to stand in the page in the order given here.
    """
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader([template.parent, HERE]),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        duration=units.duration, percent=units.percent, count=units.count, rate=units.rate, size=units.size,
        significant=units.significant, utc=utc, value=value,
    )  # fmt: skip
    environment.filters.update(filters or {})
    figures = json.dumps([chart.figure() for chart in charts], separators=(",", ":"), allow_nan=False)
    return environment.get_template(template.name).render(
        charts=charts,
        # In a script element only "<" can do harm.
        figures=Markup(figures.replace("<", "\\u003c")),  # noqa: S704
        style=Markup((HERE / "style.css").read_text(encoding="utf-8")),  # noqa: S704
        script=Markup((HERE / "page.js").read_text(encoding="utf-8")),  # noqa: S704
        plotly=Markup(_plotly()),  # noqa: S704
        **values,
    )


def _plotly() -> str:
    """The drawing library's script, as its package carries it."""
    spec = importlib.util.find_spec("plotly")
    if spec is None or spec.origin is None:
        raise ReportError("the Python package plotly is not installed in this environment; ./run.sh sets it up")
    script = (Path(spec.origin).parent / "package_data" / "plotly.min.js").read_text(encoding="utf-8")
    return script.replace("</script", "<\\/script")


def value(setting: Any) -> str:
    """A setting as text."""
    if setting is None or setting == "":
        return units.NONE
    if isinstance(setting, bool):
        return "yes" if setting else "no"
    return json.dumps(setting, ensure_ascii=False) if isinstance(setting, (dict, list)) else str(setting)


def utc(ms: float | None) -> str:
    """A moment given in epoch ms."""
    if ms is None:
        return "not known"
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
