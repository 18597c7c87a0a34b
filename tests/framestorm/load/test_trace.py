"""Traces of arrivals."""

import csv
from pathlib import Path

import pytest

from framestorm.errors import UsageError
from framestorm.load import kit_load, trace
from framestorm.load.kit_load import KitLoad
from framestorm.model import plan as plans
from framestorm.paths import JMX

OF_2019 = "HashOwner,HashApp,HashFunction,Trigger,1,2,3\no,a,f,http,60,0,30\no,a,g,timer,0,0,30\n"


@pytest.mark.parametrize(
    ("text", "times_s"),
    [
        ("5\n5.5\n\n7\n", [0, 0.5, 2]),
        ("Time,user\n1e3,a\n1000.25,b\n", [0, 0.25]),
        ("user,timestamp\na,2026-11-25T10:00:00\nb,2026-11-25 10:00:01.500\n", [0, 1.5]),
        # The public trace of Azure Functions of 2021, in the order of the ends.
        ("app,func,end_timestamp,duration\na,f,11.0,0.5\na,g,12.0,2.0\n", [0, 0.5]),
        ("3\n3\n4\n", [0, 1e-6, 1]),
        ("3\n", [0]),
    ],
)
def test_each_arrival_is_due_at_its_time(text: str, times_s: list[float]) -> None:
    assert trace.is_trace(text)
    load = KitLoad("arrivals", trace.read(Path("trace.csv"), text, 1.0), is_trace=True)
    assert load.total == len(times_s)
    # Where the area below the line reaches each whole number; the last is the corner before the end.
    due, area = [], 0.0
    for (x, y), (next_x, next_y) in zip(load.points, load.points[1:], strict=False):
        if (next_x - x) * (y + next_y) and area == pytest.approx(len(due), abs=1e-6):
            due.append(x)
        area += (next_x - x) * (y + next_y) / 2
    assert due == pytest.approx(times_s)


def test_counts_per_minute_are_rates() -> None:
    """Of all functions of the trace together."""
    points = trace.read(Path("azure.csv"), OF_2019, 60.0)
    assert points == [(0, 60), (1, 60), (1, 0), (2, 0), (2, 60), (3, 60)]
    assert KitLoad("arrivals", points).total == 120


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("1\nsoon\n", "line 2: 'soon' is no time"),
        ("time,user\n1,a\n,b\n", "line 3: '' is no time"),
        ("1\nnan\n", "line 2: 'nan' is no time"),
        ("1\n3\n2\n", "arrival 3 is at 2 s, before the one at 3 s: sort them"),
        ("time\n", "no line with a time"),
        ("app,end_timestamp\na,1\n", "needs a column duration"),
        ("func,1,2\nf,3,x\n", "line 2: 'x' is no count of minute 2"),
        ("func,1,2\nf,0,0\n", "nothing arrives in any minute"),
        (f"func,1,2\nf,{'9' * 5000},0\n", "line 2: '9{40}' is no count of minute 1"),
        (f"func,1,2\nf,{10**17},0\n", r"2,147,483,647 arrivals per second; the trace has up to 1\.667e\+15 per second"),
        ("1\n2000003\n", "a load lasts at most 2,000,000 s; .* and lasts 2,000,002 s at"),
    ],
)
def test_a_trace_that_is_wrong_is_refused_with_its_line(text: str, why: str) -> None:
    assert trace.is_trace(text)
    with pytest.raises(UsageError, match=why):
        trace.read(Path("trace.csv"), text, 1.0)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "load.csv"


def read(plan: str, file: Path, **more: str) -> KitLoad | None:
    return kit_load.read(plans.read(JMX / f"{plan}.jmx"), {"load": f"@{file}", "seed": "1", "speed": "2", **more})


def test_a_file_has_a_trace_or_words(file: Path) -> None:
    file.write_text("".join(f"{number / 10}\n" for number in range(41)))
    load = read("request-rate", file)
    assert load is not None
    assert (load.total, load.words) == (41, "load.csv: 41 arrivals in 2 s")
    # The last one is due at the very end.
    assert [(round(x, 3), round(rate, 1)) for x, rate in load.curve] == [(0, 20), (1, 20), (1, 20.5), (2, 20.5)]
    with pytest.raises(UsageError, match="says when each request arrives"):
        read("request-rate", file, arrivals="poisson")
    with pytest.raises(UsageError, match="use jmx/request-rate"):
        read("requests", file)
    words = file.with_name("words.txt")
    words.write_text("0 to 5 users in 1 s,\n\n5 users for 2 s\n")
    of_words = read("requests", words)
    assert of_words is not None
    assert (of_words.total, of_words.words) == (5, "0 to 5 users in 1 s, 5 users for 2 s")


def test_a_line_that_is_too_long_is_refused_whatever_limit_other_readers_of_csv_have_set() -> None:
    before = csv.field_size_limit(1 << 24)
    try:
        with pytest.raises(UsageError, match="a line is not of a trace: field larger"):
            trace.read(Path("trace.csv"), f"1\n{'x' * 200_000}\n", 1.0)
    finally:
        csv.field_size_limit(before)
