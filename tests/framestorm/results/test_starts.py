"""How replicas started and ended, beside the samples of that time."""

import polars as pl
import pytest

from framestorm.model.activation import Activation, ColdSplit
from framestorm.model.function_summary import EndedReplica, NodeOutage, PlatformWarning
from framestorm.results.starts import with_starts_and_ends
from tests.framestorm.conftest import function_of

ORIGIN_MS = 1000.0


def metrics(*rows: tuple[float, str, str, float]) -> pl.DataFrame:
    """Rows of one function: time, metric, detail, value."""
    schema = {
        "time_ms": pl.Float64,
        "metric": pl.String,
        "function": pl.String,
        "detail": pl.String,
        "value": pl.Float64,
    }
    full = [(time_ms, metric, "face-blur", detail, value) for time_ms, metric, detail, value in rows]
    return pl.DataFrame(full, schema=schema, orient="row")


def samples(*rows: tuple[float, float, bool]) -> pl.LazyFrame:
    """Start, response time, and whether there was no error."""
    return pl.DataFrame(rows, schema=["start_ms", "rtt_ms", "ok"], orient="row").lazy()


def test_a_start_from_zero_has_its_first_answer_and_a_later_one_has_none() -> None:
    rows = metrics(
        (2000, "activation_asked", "r-1", 1),
        (2000, "activation_ready_s", "r-1", 1.25),
        (3300, "replica_ready", "r-1", 1),
        (5000, "activation_asked", "r-2", 1),
    )
    answered = samples((1000, 200, True), (1500, 600, False), (1600, 1800, True), (1700, 1900, True))
    (function,) = with_starts_and_ends([function_of()], rows, answered, ORIGIN_MS)
    assert function.activations == [
        Activation(
            "face-blur", "r-1", 2000, ready_ms=3250, first_answer_ms=3400,
            split=ColdSplit(1800, queue_ms=400, start_ms=1250, init_ms=None, handler_ms=None, rest_ms=150),
        ),
        Activation("face-blur", "r-2", 5000),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("sent_ms", "rtt_ms", "handler_ms", "split"),
    [
        (1900, 1500, 40, ColdSplit(1500, 100, 700, 450, 40, 210)),
        # It was sent while the replica was started already.
        (2300, 1100, None, ColdSplit(1100, 0, 400, 450, None, 250)),
        # The cluster's clock is ahead: what would be after the answer is cut off.
        (1900, 1200, 40, ColdSplit(1200, 100, 700, 400, 40, 0)),
        (3200, 100, 40, None),
    ],
)
def test_a_first_answer_is_split_into_what_it_waited_for(
    sent_ms: float, rtt_ms: float, handler_ms: float | None, split: ColdSplit | None
) -> None:
    start = Activation("face-blur", "r-1", 2000, scheduled_ms=2100, started_ms=2700, ready_ms=3150)
    assert ColdSplit.of(start, sent_ms, rtt_ms, handler_ms) == split


def test_an_end_counts_the_samples_in_progress_that_failed() -> None:
    rows = metrics((4000, "replica_ended", "r-1: OOMKilled", 137))
    under_way = samples((3000, 1500, False), (3500, 400, False), (3900, 300, True), (4100, 10, False))
    (function,) = with_starts_and_ends([function_of()], rows, under_way, ORIGIN_MS)
    assert function.ended == [EndedReplica("r-1", "OOMKilled", 137, at_s=3.0, failed=1)]


def test_a_node_that_was_not_ready_has_its_times() -> None:
    states = [
        (1000, "n-1", 1),
        (2000, "n-1", 0),
        (5500, "n-1", 0),
        (6000, "n-1", 1),
        (1000, "n-2", 1),
        (8000, "n-2", 0),
    ]
    rows = metrics(
        *((time_ms, "node_ready", node, value) for time_ms, node, value in states), (9000, "node_ready", "n-2", 0)
    )
    (function,) = with_starts_and_ends([function_of()], rows, samples((1000, 1, True)), ORIGIN_MS)
    assert function.node_outages == [
        NodeOutage("n-1", at_s=1.0, length_s=4.0),
        NodeOutage("n-2", at_s=7.0, length_s=1.0),
    ]


def test_a_warning_that_is_repeated_is_one_with_its_times() -> None:
    unhealthy, refused = (
        "Pod r-1: Unhealthy: Readiness probe failed: HTTP 503",
        "ReplicaSet r: FailedCreate: quota: 2 cores",
    )
    rows = metrics((3000, "warning", refused, 1), (4000, "warning", unhealthy, 1), (7000, "warning", unhealthy, 3))
    (function,) = with_starts_and_ends([function_of()], rows, samples((1000, 1, True)), ORIGIN_MS)
    assert function.warnings == [
        PlatformWarning("Pod r-1", "Unhealthy", "Readiness probe failed: HTTP 503", 4, first_s=3.0, last_s=6.0),
        PlatformWarning("ReplicaSet r", "FailedCreate", "quota: 2 cores", 1, first_s=2.0, last_s=2.0),
    ]
