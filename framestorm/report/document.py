"""A self-contained page that needs no network or server: it includes style, script, chart library and charts.

The pages of runs, studies and comparisons are all made here; each has a template that extends document.html.j2, and
uses the common parts in parts.html.j2.
"""

import importlib.util
import json
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from framestorm.model import units
from framestorm.plain import visible
from framestorm.report.figure import Chart
from framestorm.results.reading import ReportError
from framestorm.results.times import LAST_MS

TEMPLATES = Path(__file__).parent / "templates"
# Options that take what must not exist.
NEW_FILES = ("-o", "--reportoutputfolder", "-l", "--logfile")
FORMATS = ("duration", "percent", "count", "rate", "size", "significant", "cores", "core_count", "size_rate")


def render(
    template: str, charts: Sequence[Chart], *, filters: Mapping[str, Callable[..., Any]] | None = None, **values: Any
) -> str:
    """Return the page from `template` (the name of a file in templates/), `values` and the charts.

    In addition to jinja2's own filters and `filters`, the template has `utc`, `value` and those of
    `framestorm.model.units`, which show unknown values as a dash. The page must have the charts in this order.
    """
    figures = json.dumps(
        [chart.figure() for chart in charts], separators=(",", ":"), allow_nan=False, ensure_ascii=False
    )
    return _template(template, filters or {}).render(
        charts=charts,
        # In a script element only "<" is dangerous.
        figures=Markup(visible(figures).replace("<", "\\u003c")),  # noqa: S704
        style=_own("style.css"),
        script=_own("page.js"),
        live_script=_own("live.js"),
        plotly=Markup(_plotly()),  # noqa: S704
        **values,
    )


def render_part(template: str, **values: Any) -> str:
    """Return a part of a page, which a page that is open puts into itself."""
    return _template(template, {}).render(**values)


class _Compiled(jinja2.BytecodeCache):
    """What this process has compiled: a page with filters of its own would compile all of its templates again."""

    def __init__(self) -> None:
        self._templates: dict[str, bytes] = {}

    def load_bytecode(self, bucket: jinja2.bccache.Bucket) -> None:
        if bucket.key in self._templates:
            bucket.bytecode_from_string(self._templates[bucket.key])

    def dump_bytecode(self, bucket: jinja2.bccache.Bucket) -> None:
        self._templates[bucket.key] = bucket.bytecode_to_string()


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda each: visible(each) if isinstance(each, str) and not isinstance(each, Markup) else each,
        bytecode_cache=_Compiled(),
    )
    formats = {name: _or_dash(getattr(units, name)) for name in FORMATS}
    environment.filters.update(formats | {"utc": utc, "value": value, "quoted": shlex.quote, "repeatable": repeatable})
    return environment


def _template(name: str, filters: Mapping[str, Callable[..., Any]]) -> jinja2.Template:
    environment = _environment()
    if filters:
        environment = environment.overlay()
        environment.filters = {**environment.filters, **filters}
    return environment.get_template(name)


def _own(name: str) -> Markup:
    return Markup((TEMPLATES / name).read_text(encoding="utf-8"))  # noqa: S704


def _or_dash(to_text: Callable[[Any], str]) -> Callable[[Any], str]:
    return lambda figure: units.NONE if figure is None else to_text(figure)


def _plotly() -> str:
    """Return the script of the chart library, from its Python package."""
    spec = importlib.util.find_spec("plotly")
    if spec is None or spec.origin is None:
        raise ReportError("the Python package plotly is not installed in this environment; ./run.sh sets it up")
    script = (Path(spec.origin).parent / "package_data" / "plotly.min.js").read_text(encoding="utf-8")
    return script.replace("</script", "<\\/script")


def repeatable(words: Sequence[str]) -> list[str]:
    """Return the words of a command without the new folder and file that it named: these exist now."""
    left, repeated = iter(words), []
    for word in left:
        if word in NEW_FILES:
            next(left, None)
        elif not re.match(r"-[ol]|--(reportoutputfolder|logfile)=", word):
            repeated.append(word)
    return repeated


def value(setting: Any) -> str:
    """Return a setting as text."""
    if setting is None or setting == "":
        return units.NONE
    if isinstance(setting, bool):
        return "yes" if setting else "no"
    return json.dumps(setting, ensure_ascii=False) if isinstance(setting, (dict, list)) else str(setting)


def utc(ms: float | None) -> str:
    """Return a moment given in epoch ms."""
    at = moment(ms)
    return "not known" if at is None else at.strftime("%Y-%m-%d %H:%M:%S UTC")


def moment(ms: float | None) -> datetime | None:
    """Return a moment given in epoch ms; None if it is not known, or cannot be, as in a damaged file."""
    return datetime.fromtimestamp(ms / 1000, UTC) if ms is not None and 0 <= ms <= LAST_MS else None
