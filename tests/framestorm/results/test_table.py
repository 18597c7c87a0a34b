"""Figures of a table of samples: which have times, when answers could come, and what is put into bins."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from framestorm.results import table


def samples(**columns: list[Any]) -> pl.LazyFrame:
    """Samples of 10 ms each, one a second, unless other values are given."""
    n = len(next(iter(columns.values())))
    given = {
        "start_ms": [1000.0 * each for each in range(n)], "rtt_ms": [10.0] * n, "ok": [True] * n,
        "timed_out": [False] * n, "cold": [None] * n, "handler_ms": [None] * n,
    }  # fmt: skip
    frame = pl.LazyFrame(given | columns)
    return frame.with_columns(pl.col("cold").cast(pl.Boolean), pl.col("handler_ms").cast(pl.Float64))


def test_of_two_figures_of_one_name_that_in_ms_counts() -> None:
    group = table.sample_group(samples(wait=[1.0, 2.0], wait_ms=[5.0, 7.0], handler_ms=[4.0, 6.0]), "frame")
    largest = {name: times.extreme(largest=True) for name, times in group.samples.items()}
    assert list(largest) == ["rtt", "outside", "handler", "wait"]
    assert {name: each and each.value for name, each in largest.items()} == {
        "rtt": 10.0, "outside": 6.0, "wait": 7.0, "handler": 6.0,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("starts_ms", "rtts_ms", "ok", "at_rate", "span"),
    [
        ([0.0, 1000.0, 2000.0], [300.0, 100.0, 200.0], [True] * 3, False, (0, 2200)),
        # A pause of 1000 ms before the first answer, after 100 ms at the soonest.
        ([0.0, 1000.0, 2000.0], [300.0, 100.0, 200.0], [True] * 3, True, (-900, 2200)),
        ([0.0, 1000.0, 2000.0], [300.0, 100.0, 200.0], [True, False, True], True, (-800, 2200)),
        ([0.0, 500.0], [300.0, 100.0], [True] * 2, True, (-400, 600)),
        ([5.0], [300.0], [True], True, (5, 305)),
        ([0.0, 500.0], [300.0, 100.0], [False] * 2, True, (0, 600)),
    ],
)
def test_when_answers_could_come(
    starts_ms: list[float], rtts_ms: list[float], ok: list[bool], at_rate: bool, span: tuple[float, float]
) -> None:
    given = samples(start_ms=starts_ms, rtt_ms=rtts_ms, ok=ok)
    assert table.serving_ms(given, at_rate=at_rate) == pytest.approx(span)


@pytest.mark.parametrize(
    ("span", "rate"), [((1000.0, 3000.0), 2.0), ((1000.0, 1000.0), None), ((2.0, 1.0), None), (None, None)]
)
def test_a_rate_needs_a_span(span: tuple[float, float] | None, rate: float | None) -> None:
    assert table.rate_per_s(4, span) == rate


def test_what_is_in_no_bin_is_left_out() -> None:
    binned = pl.DataFrame({"bin": [-1, 0, 2, 3, None], "y": [1.0, 2.00049, None, 4.0, 5.0]})
    assert table.spread(binned, "y", 3) == [2.0, None, None]
    assert table.spread(binned, "y", 4, empty=0.0, digits=4) == [2.0005, 0.0, 0.0, 4.0]


@pytest.mark.parametrize(
    ("content", "labels"),
    [
        (b"", []),
        (b"\0" * 4096, []),
        (b"<html>\n<body>\n</html>\n", []),
        (b"label,rtt_ms,ok\ncall,5,true\nc\xff,6,true\n", ["call", ""]),
    ],
    ids=["empty", "NUL bytes", "another file", "bytes that are no UTF-8"],
)
def test_a_damaged_table_has_the_samples_that_can_be_read(content: bytes, labels: list[str], tmp_path: Path) -> None:
    (tmp_path / "samples.csv").write_bytes(content)
    assert table.read_table(tmp_path / "samples.csv").collect()["label"].to_list() == labels
