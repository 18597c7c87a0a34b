"""Failures of one time: when a time-out in between is the reason, and when the figures prove nothing."""

from pathlib import Path

import numpy as np
import pytest

from framestorm.report.summary import summarise
from framestorm.report.trust.limits import limit_of
from framestorm.results.reading import read_results
from tests.framestorm.results.conftest import START_MS, write_rows

RANDOM = np.random.default_rng(7)
FAST, TAIL = RANDOM.uniform(20, 400, 200), RANDOM.gamma(2, 2500, 500)


@pytest.mark.parametrize(
    ("failed", "ok", "n"),
    [
        ([*RANDOM.uniform(10_000, 10_030, 94), 12, 300, 4000], FAST, 94),
        (RANDOM.uniform(60_000, 60_900, 30).tolist(), FAST, 30),
        (RANDOM.uniform(1000, 1040, 40).tolist(), [], 40),
        # A function with a long tail, of which the limit lets through what is shorter.
        (RANDOM.uniform(5000, 5020, 60).tolist(), TAIL[TAIL < 5000], 60),
    ],
    ids=["94 of 97", "60 s", "no success", "cut tail"],
)
def test_failures_of_one_time_are_a_limit(failed: list[float], ok: list[float], n: int) -> None:
    limit = limit_of(np.array(failed), np.array(ok))
    assert limit is not None and limit[0] == n


@pytest.mark.parametrize(
    ("failed", "ok"),
    [
        ([10_000.0] * 4, FAST),
        (RANDOM.uniform(2, 9, 500).tolist(), FAST),
        (RANDOM.uniform(800, 9000, 200).tolist(), FAST),
        ([*RANDOM.uniform(1000, 1020, 50), *RANDOM.uniform(20, 900, 50)], FAST),
        (RANDOM.uniform(1000, 1020, 50).tolist(), RANDOM.uniform(990, 1020, 300)),
        (RANDOM.uniform(5000, 5020, 60).tolist(), TAIL),
    ],
    ids=["too few", "at once", "of any time", "only half", "as successes", "longer successes"],
)
def test_otherwise_nothing_is_said(failed: list[float], ok: list[float]) -> None:
    assert limit_of(np.array(failed), np.array(ok)) is None


def test_the_warning_has_count_cause_and_times(tmp_path: Path) -> None:
    failed = [(START_MS + n, 10_000 + n % 30, "call", 502, "Bad Gateway", "false", "") for n in range(94)]
    others = [(START_MS + n, 70, "call", 502, "Bad Gateway", "false", "") for n in range(3)]
    checks = [(START_MS + n, 3000, "call", 200, "OK", "false", "text expected") for n in range(20)]
    good = [(START_MS + n, 50 + n, "call", 200, "OK", "true", "") for n in range(100)]
    write_rows(tmp_path, (), *failed, *others, *checks, *good)
    warnings = summarise(tmp_path, read_results(tmp_path), None).warnings
    (text,) = (text.replace("\u00a0", " ") for text in warnings if "time-out of a gateway" in text)
    assert text.startswith("94 of 97 status-502 took 10.00 to 10.03 s: a time-out of a gateway or proxy in between")
