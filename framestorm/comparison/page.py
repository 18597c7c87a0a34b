"""index.html of a comparison, made of what comparison.json holds and nothing besides."""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from framestorm.comparison.charts import charts
from framestorm.comparison.words import VERDICT_WORDS, change_text, claim_text, ends_text, figure_text
from framestorm.report.document import render

HERE = Path(__file__).parent
LOOKS = {"regression": "fail", "missing": "fail", "none": "pass", "undecided": "partial"}
STATE_LOOKS = {
    "regression": "failed",
    "missing": "failed",
    "within": "passed",
    "undecided": "open",
    "not compared": "open",
}


def page_html(summary: Mapping[str, Any]) -> str:
    """Render the page."""
    verdict = summary["verdict"]["verdict"]
    return render(
        HERE / "compare.html.j2",
        charts(summary),
        filters={"change": change_text, "claim_of": claim_text, "ends": ends_text, "figure_of": figure_text},
        s=summary,
        verdict_word=VERDICT_WORDS[verdict],
        look=LOOKS[verdict],
        state_looks=STATE_LOOKS,
        command=shlex.join(summary["command"]),
    )
