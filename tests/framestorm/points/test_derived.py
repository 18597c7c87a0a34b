"""Metrics that a study derives from others."""

from framestorm.platform.embedded import EmbeddedSettings
from framestorm.points.derived import derive
from framestorm.points.folder import Point, RunLine
from framestorm.points.results_csv import ResultRow


def row_of(properties: dict[str, str], **metrics: float) -> ResultRow:
    point = Point("p", {}, "jmx/chat-rate.jmx", properties, EmbeddedSettings())
    return ResultRow(metrics=dict(metrics), point=point, line=RunLine("p", 1, "runs/p", "complete", None, 0, 0, 0, 1))


def test_a_property_that_is_a_text_hides_no_metric_of_its_name() -> None:
    row = row_of({"goodput": "ttft_ms < 500", "users": "4"}, goodput=0.9, served_per_s=10.0)
    derive({"good": "=goodput * served_per_s", "each": "=good / users"}, [row])
    assert (row.metrics["good"], row.metrics["each"]) == (9.0, 2.25)
