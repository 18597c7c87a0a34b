"""The live page: charts of a run that goes on, by the code that draws those of its report."""

import json
from collections.abc import Sequence
from typing import Any

from framestorm.model.glance import Glance
from framestorm.model.run import Record
from framestorm.model.summary import Verdict
from framestorm.plain import as_label, visible
from framestorm.report import overview
from framestorm.report.charts import charts
from framestorm.report.document import render, render_part
from framestorm.report.figure import Chart, Charted
from framestorm.report.load_words import words_of


def live_html() -> str:
    """Return the page, which has nothing in it yet and asks for its content."""
    return render("live.html.j2", [])


def live_json(
    name: str,
    record: Record,
    run: Charted,
    glance: Glance | None,
    *,
    is_over: bool,
    verdict: Verdict | None,
    where: str,
) -> str:
    """Return what the page shows now: the text of its main part, and the figures of the charts in it.

    name: the run's; is_over: the load has ended; verdict: of the report, once that is made; where: its file.
    """
    drawn = _drawn(run)
    main = render_part(
        "live_main.html.j2",
        charts=drawn,
        name=name,
        record=record,
        load_words=[f"{as_label(load.name)}: {words_of(load)}" for load in record.loads if not load.is_aside],
        glance=glance,
        is_over=is_over,
        verdict=verdict,
        where=where,
    )
    content: dict[str, Any] = {
        "has_report": verdict is not None,
        "main": main,
        "figures": [chart.figure() for chart in drawn],
    }
    return visible(json.dumps(content, separators=(",", ":"), allow_nan=False, ensure_ascii=False))


def _drawn(run: Charted) -> Sequence[Chart]:
    if not run.series.over_time:
        return []
    first = overview.overview(run)
    return [*([first] if first else []), *charts(run)]
