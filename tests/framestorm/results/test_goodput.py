"""Goodput, counted over samples."""

import polars as pl
import pytest

from framestorm.results.goodput import read_goodput

SAMPLES = pl.LazyFrame(
    {
        "start_ms": [0.0, 1000.0, 2000.0, 3000.0, 4000.0],
        "rtt_ms": [1000.0] * 5,
        "ok": [True, True, True, True, False],
        "ttft_ms": [100.0, 600.0, 100.0, 499.0, 1.0],
        "itl_p99_ms": [10.0, 10.0, 60.0, None, 1.0],
        "tokens": [5, 5, 5, 1, 5],
    }
)


def test_a_sample_is_good_if_it_meets_every_objective_and_has_no_error() -> None:
    goodput = read_goodput(SAMPLES, {"goodput": "ttft_ms < 500, itl_p99_ms < 50"}, at_rate=False)
    assert goodput is not None
    # The answer of one piece has no gap: it meets that objective. The one with an error is fast, and not good.
    assert (goodput.good, goodput.n, goodput.share) == (2, 5, 0.4)
    assert goodput.met == {"ttft_ms < 500": 3, "itl_p99_ms < 50": 3}
    assert goodput.per_s == pytest.approx(2 / 5)
    assert goodput.low is not None and goodput.high is not None and goodput.low < 0.4 < goodput.high


def test_without_objectives_there_is_none() -> None:
    assert read_goodput(SAMPLES, {}, at_rate=False) is None
    assert read_goodput(SAMPLES, {"goodput": ""}, at_rate=False) is None


@pytest.mark.parametrize(
    ("objectives", "absent"), [("ttfb_ms < 5", ["ttfb_ms"]), ("rtt_ms < 5, a < 1, b < 2", ["a", "b"])]
)
def test_a_figure_that_no_sample_has_leaves_it_unknown(objectives: str, absent: list[str]) -> None:
    goodput = read_goodput(SAMPLES, {"goodput": objectives}, at_rate=False)
    assert goodput is not None and (goodput.share, goodput.good, goodput.absent) == (None, None, absent)


def test_without_samples_it_is_not_known() -> None:
    goodput = read_goodput(SAMPLES.clear(), {"goodput": "rtt_ms < 5"}, at_rate=False)
    assert goodput is not None and (goodput.n, goodput.share, goodput.absent) == (0, None, [])
