"""Traces of arrivals."""

import csv
import gzip
import time
from pathlib import Path

import pytest

from framestorm.errors import UsageError
from framestorm.load import kit_load, trace
from framestorm.load.kit_load import KitLoad
from framestorm.model import plan as plans
from framestorm.paths import JMX

MS = 1764064800000
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
        ("3\n3\n3\n", [0, 1e-6, 2e-6]),
        ("3\n", [0]),
        ("-5\n-.5\n1E1\n", [0, 4.5, 15]),
        ("# of Monday\n\n time \n#\n1\n # and\n2\n", [0, 1]),
        ('time,user\n1,a\n\ufeffTime,"user"\n3,b\n', [0, 2]),
        ("time;user\n0;a\n0,5;b\n", [0, 0.5]),
        ("0,5|a\n1.5|b\n", [0, 1]),
        ("user\tt\na\t0\nb\t1.5\n", [0, 1.5]),
        ('t,text\n1,"a\u2028b\nc"\n2,c\u2028d\n', [0, 1]),
        # A zone as written, and none is UTC, whatever hour this machine leaves out in March.
        ("2026-11-25t10:00:00z\n2026-11-25T11:00:01.123456789+01:00\n", [0, 1.123456]),
        ("2026-03-29T01:30:00\n2026-03-29 02:30:00.5\n2026-03-29T03:30\n", [0, 3600.5, 7200]),
        # The first time decides the unit; without a date the name of its column does.
        (f"{MS}\n{MS + 250}\n", [0, 0.25]),
        (f"{MS}000,200\n{MS}500,200\n", [0, 0.0005]),
        (f"{MS}000000\n{MS + 2000}000000\n", [0, 2]),
        ("time_ms,user\n0,1\n250,2\n", [0, 0.25]),
        (f"end_timestamp,duration\n{MS + 1000},500\n{MS + 1100},900\n", [0, 0.3]),
        # JMeter and k6 write what has ended, and more than requests.
        (
            f"timeStamp,elapsed,label,responseMessage\n{MS + 100},20,a,OK\n{MS},200,b,OK\n"
            f'{MS},220,c,"Number of samples in transaction : 1, number of failing samples : 0"\n',
            [0, 0.1],
        ),
        (f"timeStamp;elapsed;sample_kind\n{MS};20;sample\n{MS};20;sub-result\n{MS};20;transaction\n", [0]),
        (
            f"start_ms,rtt_ms,source\n{MS},20,jtl\n{MS},20,sub-result\n{MS},50,transaction\n{MS - 250},9,jtl\n",
            [0, 0.25],
        ),
        (
            "metric_name,timestamp,metric_value\nhttp_reqs,1764064801,1\nhttp_req_duration,1764064801,20\n"
            "http_reqs,1764064800,1\n",
            [0, 1],
        ),
    ],
)
def test_each_arrival_is_due_at_its_time(text: str, times_s: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    assert trace.is_trace(text)
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:
        points, _ = trace.read(Path("trace.csv"), text, 1.0)
    finally:
        monkeypatch.undo()
        time.tzset()
    load = KitLoad("arrivals", points, is_trace=True)
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
    points, _ = trace.read(Path("azure.csv"), OF_2019, 60.0)
    assert points == [(0, 60), (1, 60), (1, 0), (2, 0), (2, 60), (3, 60)]
    assert KitLoad("arrivals", points).total == 120
    assert trace.read(Path("azure.csv"), "1,2,3\n60,0,30\n0,0,30\n", 60.0).points == points


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("1\nsoon\n", "line 2: 'soon' is no time"),
        ("time,user\n1,a\n,b\n", "line 3: '' is no time"),
        ("1\nnan\n", "line 2: 'nan' is no time"),
        ("1\n3\n\n2\n", "line 4: '2' is before '3' in line 2: sort the lines"),
        ("1\n1_0\n", "line 2: '1_0' is no time"),
        ("1\n\uff12\n", "line 2: '\uff12' is no time"),
        (f"1\n{'9' * 400}\n", "line 2: '9{40}' is no time"),
        ("0,5\n1,25\n2\n", "line 1: '0,5' is a time with a comma"),
        ("t\n0\n0,5\n", "line 3: '0,5' is a time with a comma"),
        ("2026-11-25 10:00:00,250 INFO a, b\n", "line 1: '2026-11-25 10:00:00,250 INFO a' is a time with a comma"),
        (f"0\n{MS}\n", "its times are taken as seconds; a header such as time_ms names another unit"),
        ("time\n", "no line with a time"),
        (f"timeStamp,elapsed,sample_kind\n{MS},20,transaction\n", "no line is of a request alone: all are of transact"),
        ("app,end_timestamp\na,1\n", "needs a column duration"),
        ("app,func,1,2\na,f,3,x\n", "line 2: 'x' is no count of minute 2"),
        ("func,1,2\nf,0,0\n", "nothing arrives in any minute"),
        (f"func,1,2\nf,{'9' * 5000},0\n", "line 2: '9{40}' is no count of minute 1"),
        (f"func,1,2\nf,{10**17},0\n", r"2,147,483,647 arrivals per second; the trace has up to 1\.667e\+15 per second"),
        ("1\n1e300\n", "and lasts 1e\\+300 s at"),
        ('1,"a"\n2,"b\n3,c\n', "the quotation mark before 'b.n3,c.n' is not closed"),
        ("0\n1e12\n1e12\n", "a load lasts at most 2,000,000 s"),
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


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (f"{MS}\n{MS + 500}\n".encode(), "load.csv: 2 arrivals in 0.25 s, times in milliseconds"),
        (
            b"1\n1\n",
            "load.csv: 2 arrivals in 0 s, times are whole seconds, and what has the same one is sent at once",
        ),
        ("\ufefft\n1\n2\n".encode(), "load.csv: 2 arrivals in 0.5 s"),
        ("1\n2\n".encode("utf-16"), "load.csv: 2 arrivals in 0.5 s"),
        ("t,name\n1,Jos\xe9\n2,\n".encode("latin-1"), "load.csv: 2 arrivals in 0.5 s"),
        (b"1\r2\r", "load.csv: 2 arrivals in 0.5 s"),
        # As of logs that were put together.
        (gzip.compress(b"1\n2\n", mtime=0) + gzip.compress(b"3\n", mtime=0), "load.csv: 3 arrivals in 1 s"),
        (b"# of Monday\n10/s for 5 s,\n\n20/s for 2 s", "10/s for 5 s, 20/s for 2 s"),
    ],
)
def test_a_file_may_come_from_any_program(file: Path, content: bytes, words: str) -> None:
    file.write_bytes(content)
    load = read("request-rate", file)
    assert load is not None and load.words == words


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "it has no line of a trace, or of a load in words: give a time a line"),
        (b"# 10/s for 5 s\n", "it has no line of a trace"),
        (
            b'127.0.0.1 - - [25/Nov/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 12\n',
            "'127.0.0.1 - - .* is no line",
        ),
        ("\u0665\n\u0666\n".encode(), "'\u0665' is no line of a trace"),
        (b"1e400\n", "'1e400' is no line of a trace"),
        (b"10/s fr 30 s\n", "(?s)not understood.*10/s fr 30 s"),
        (b"PK\3\4\x14\0\0\0", "is no text: it begins with .*; unpack an archive"),
        ("1\n2\n".encode("utf-16-le"), "save UTF-16 with its byte order mark"),
        (gzip.compress(b"1\n2\n", mtime=0)[:-4], "is a gzip file that is cut off or damaged"),
        (b"<?xml version='1.0'?>\n<testResults/>", "is XML; of a JTL, ./run.sh report .* -o DIR makes"),
    ],
)
def test_a_file_that_has_no_load_is_refused_with_what_it_is(file: Path, content: bytes, why: str) -> None:
    file.write_bytes(content)
    with pytest.raises(UsageError, match=why):
        read("request-rate", file)


def test_a_folder_and_a_missing_file_are_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is a folder: name a file"):
        read("request-rate", tmp_path)
    with pytest.raises(UsageError, match=r"none\.csv is no file: name a file"):
        read("request-rate", tmp_path / "none.csv")
