from pathlib import Path

import polars as pl
import pytest

from framestorm.model.summary import Stall
from framestorm.results.jmeter_log import read_log
from framestorm.results.stalls import errors_in_bursts, read_stalls, samples_during

ORIGIN_MS = 1_790_000_000_000.0
LOAD = (ORIGIN_MS + 1000, ORIGIN_MS + 9900)
# What jmx/java/plan/User.java says of a line that a client printed.
USER_FAILED = "2026-11-23 22:43:00,123 WARN o.a.j.e.J.client output: user failed: 1 lines of its client: line 1, a: "
ARRIVALS = '{"type":"arrivals","due":7,"dropped":1}'
REFUSED = '{"type":"refused","why":"a"}'
WATCHED = 'INFO f.Stalls: {"type":"stalls","noticed_from_ms":10}\n'


def stall(at_s: float, longest_ms: int, gc_ms: int = 0) -> str:
    start_ms = int(ORIGIN_MS + 1000 * at_s)
    figures = f'"longest_ms":{longest_ms},"gc_ms":{gc_ms},"compiler_ms":5'
    return f'INFO f.Stalls: {{"type":"stall","start_ms":{start_ms},{figures}}}\n'


def samples(rtt_ms: float) -> pl.LazyFrame:
    """Ten a second from second 1 to second 9; the first of second 4 starts 30 ms late."""
    due_ms = [ORIGIN_MS + 1000 + 100.0 * number for number in range(90)]
    start_ms = [each + 30 * (number == 30) for number, each in enumerate(due_ms)]
    return pl.LazyFrame({"start_ms": start_ms, "intended_ms": due_ms}).with_columns(rtt_ms=rtt_ms, ok=True)


@pytest.mark.parametrize(
    ("log", "rtt_ms", "is_open_model", "expected", "during"),
    [
        (WATCHED + stall(2.5, 40, 38) + stall(2.6, 20), 1.0, False, [(2, 40, 38)], 10),
        (WATCHED + stall(6, 10) + stall(7, 9), 1.0, False, [(6, 10, 0)], 10),
        (WATCHED + stall(0, 90) + stall(10, 90), 1.0, False, [], 0),  # not under load
        (WATCHED + stall(1, 90) + stall(9.9, 90), 1.0, False, [(1, 90, 0), (9, 90, 0)], 20),
        (WATCHED + stall(2, 49) + stall(3, 50), 500.0, False, [(3, 50, 0)], 15),  # too short to matter
        (WATCHED + USER_FAILED + stall(2, 40), 1.0, False, [], 0),
        (WATCHED, 1.0, True, [(4, 30, 0)], 10),
        (WATCHED + '{"type":"stall","start_ms":what an answer may be}\n{"type":"stall","x"}\n', 1.0, False, [], 0),
        (WATCHED, 1.0, False, [], 0),  # users who wait for answers are late by themselves
        ("INFO", 1.0, True, [], 0),  # nobody watched
    ],
)
def test_seconds_in_which_the_generator_was_held_up(
    log: str, rtt_ms: float, is_open_model: bool, expected: list[tuple[float, ...]], during: int, tmp_path: Path
) -> None:
    (tmp_path / "jmeter.log").write_text(log)
    table = samples(rtt_ms)
    stalls = read_stalls(read_log(tmp_path), table, LOAD, ORIGIN_MS, is_open_model=is_open_model)
    assert stalls == [Stall(*each) for each in expected]
    assert samples_during(table, stalls, ORIGIN_MS) == during


@pytest.mark.parametrize(
    ("late", "failed", "expected"),
    [
        ({}, {1: "status-429"}, 0),
        ({1: 40}, {1: "status-429"}, 1),
        ({1: 40, 2: 20}, {2: "status-429", 3: "status-503"}, 2),  # the third is sent while those are under way
        ({1: 40, 2: 20}, {7: "status-429"}, 0),  # long after them
        ({5: 40}, {4: "status-429"}, 0),  # before it
        ({1: 40}, {1: "status-429", 2: "status-429", 3: "status-429"}, 1),  # no more than were held up
        ({1: 9}, {1: "status-429"}, 0),  # too little to matter
        ({1: 40}, {1: "timeout"}, 0),
        ({1: 40}, {1: "failed-check: The operation lasted too long"}, 0),
    ],
)
def test_errors_that_late_requests_may_have_caused(late: dict[int, int], failed: dict[int, str], expected: int) -> None:
    """Requests come every 20 ms, and their answers take 50 ms."""
    of_errors = pl.Series([failed.get(number, "") for number in range(10)], dtype=pl.Categorical)
    due_ms = [20.0 * number for number in range(10)]
    start_ms = [due + late.get(number, 0) for number, due in enumerate(due_ms)]
    table = pl.LazyFrame({"start_ms": start_ms, "intended_ms": due_ms, "cause": of_errors})
    assert errors_in_bursts(table.with_columns(rtt_ms=50.0, ok=pl.col("cause").cast(pl.String) == "")) == expected


@pytest.mark.parametrize(
    ("log", "refusal", "arrivals", "dropped"),
    [
        ('ERROR f.p.Requests: {"type":"refused","why":"-Jbody: \\"é\\" is\\nwrong"}', '-Jbody: "é" is', None, 0),
        (
            'ERROR f.p.A: {"type":"refused","why":}\nERROR f.p.A: {"type":"refused","why":"a\\x"}\n'
            f'ERROR f.p.A: {{"type":"refused","why":["a"]}}\nERROR o.a.j.x: {REFUSED}',
            None,
            None,
            0,
        ),
        (f"INFO a: {ARRIVALS}\nINFO a: {ARRIVALS}", None, 14, 2),
        (f'INFO a: {{"type":"arrivals","due":{"9" * 5000}', None, None, 0),
        (f"{USER_FAILED}{ARRIVALS}\n{USER_FAILED}{REFUSED}", None, None, 0),
    ],
)
def test_messages_are_read_whatever_else_a_log_has(
    log: str, refusal: str | None, arrivals: int | None, dropped: int, tmp_path: Path
) -> None:
    (tmp_path / "jmeter.log").write_text(f"{log}\n")
    read = read_log(tmp_path)
    assert (read.refusal, read.arrivals, read.dropped) == (refusal, arrivals, dropped)
