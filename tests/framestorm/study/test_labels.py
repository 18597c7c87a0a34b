"""Questions about labels and their figures, in the words of criteria."""

import csv
import json
from typing import Any

import pytest

from framestorm.model.files import dump
from framestorm.model.summary import LabelSummary
from framestorm.points.folder import StudyFolder
from framestorm.points.study_results import StudyResults
from framestorm.study.page import page
from framestorm.study.summary import summarise
from tests.framestorm.study.conftest import FakeResult, frames_of

LABELS = ("all", "log in", "search")
LOG_IN, SEARCH = (100.0, 200.0, 300.0, 400.0), (1000.0, 2000.0)
CONTENT: dict[str, Any] = {
    "plan": "jmx/process.jmx",
    "target": {"kind": "url", "url": "http://127.0.0.1:9"},
    "properties": {"command": "true"},
    "repetitions": 2,
    "metrics": ["p95", '"log in" p95', "search p90", "search handler mean", '"log in" errors'],
    "derived": {
        "share": "='\"log in\" mean' / 'search mean'",
        "growth": {"metric": '"log in" p95', "against": {"users": 1}, "as": "ratio"},
    },
    "hypotheses": [
        {
            "name": "slower",
            "text": "Twice the users, twice the time.",
            "claims": [
                {"metric": '"log in" p95', "compare": {"users": [2, 1]}, "expect": "= 2 within 5 %"},
                {"metric": '"log in" success', "expect": "> 0.5"},
                {"metric": "log_out p95", "expect": "> 1"},
                {"metric": "search tokens p95", "expect": "> 1"},
            ],
        }
    ],
    "charts": [{"title": "By label", "metrics": ['"log in" p95', "search p95"], "x": "users"}],
}


@pytest.fixture
def made(fake_study: Any) -> Any:
    """Users double the times of `log in`, which are a tenth of those of `search`, of which the first fails."""

    def simulate(point: Any, repetition: int) -> Any:
        users = point.factors["users"]
        frames = frames_of([users * (each + repetition) for each in LOG_IN], label="log in")
        frames += frames_of(SEARCH, label="search")
        frames[len(LOG_IN)] |= {"ok": "false", "cause": "status-500"}
        labels = {name: LabelSummary(name, len(frames), 0, 0, 0, {}, None, None, None, None, {}) for name in LABELS}
        return FakeResult(frames, summary={"label": "all", "labels": labels})

    return fake_study.make(simulate, CONTENT)


def test_labels_in_every_part_of_a_study(made: Any) -> None:
    summary = page.build(made)
    with (made / "results.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    first = next(row for row in rows if row["users"] == "1" and row["repetition"] == "1")
    assert {name: float(first[name]) for name in ('"log in" p95_ms', "search p90_ms", '"log in" failed', "share")} == {
        '"log in" p95_ms': 401.0, "search p90_ms": 2000.0, '"log in" failed': 0.0, "share": 251 / 2000,
    }  # fmt: skip
    assert (first["search n"], first["search ok"], first["p95_ms"]) == ("2", "1", "2000.0")
    claims = summary.hypotheses[0].claims
    assert [claim.verdict for claim in claims] == ["confirmed", "confirmed", "inconclusive", "inconclusive"]
    assert claims[0].value == 2.0 and claims[0].effect and claims[0].effect.of == "samples"
    point = next(point for point in summary.points if point.factors == {"users": 2})
    assert point.figures["growth"].value == 2.0 and point.figures['"log in" p95_ms'].value == 803.0
    chart = (made / "index.html").read_text()
    assert "p95 response time of search" in chart


def test_what_no_run_has_is_said_with_what_there_is(made: Any) -> None:
    summary = summarise(StudyResults(StudyFolder(made)))
    of_label, of_figure = summary.unmeasured
    assert "log_out" in of_label and {*LABELS} <= {
        name.strip('".') for name in of_label.partition("there are ")[2].split(", ")
    }
    assert "tokens of an answer of search" in of_figure and "handler_ms, model_ms" in of_figure
    assert of_label in page.terminal_text(summary, made / "index.html")
    assert "No sample has the label log_out" in page.page_html(summary)


def test_the_record_reads_as_it_was_written(made: Any) -> None:
    """study.json has the names of the catalogue, which stay."""
    definition = StudyFolder(made).record.definition
    assert definition.metrics[1] == '"log in" p95_ms'
    assert type(definition).model_validate(json.loads(dump(definition))) == definition
