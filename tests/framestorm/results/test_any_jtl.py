"""A report of any JTL: whatever is in a run's folder, the page is made, and each row is counted or said to be lost."""

import gzip
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from framestorm import report
from framestorm.model.files import read
from framestorm.model.metric import metric
from framestorm.model.summary import Summary
from framestorm.report.charts import charts
from framestorm.report.terminal import terminal_text
from framestorm.results.jtl_file import DEFAULT, JtlFile, open_jtl
from tests.framestorm.results.conftest import JTL_HEADER, START_MS

HEADER = JTL_HEADER.split(",")
RUN = {
    "format": 2, "plan": "theirs.jmx", "state": "complete", "label": "all", "started_ms": START_MS - 1000,
    "ended_ms": START_MS + 20_000, "properties": {},
}  # fmt: skip


def row(number: int, **changes: object) -> list[str]:
    """A row as JMeter writes it: every fifth is a failure."""
    failed = number % 5 == 4
    cells: dict[str, object] = dict.fromkeys(HEADER, "0") | {
        "timeStamp": START_MS + 100 * number, "elapsed": 50 + number, "label": "cart" if number % 2 else "search",
        "responseCode": 503 if failed else 200, "responseMessage": "no" if failed else "OK",
        "threadName": "users 1-1", "dataType": "text", "success": str(not failed).lower(), "failureMessage": "",
        "bytes": 100, "sentBytes": 80, "grpThreads": 1, "allThreads": 1, "URL": "http://127.0.0.1/", "Latency": 20,
        "Hostname": "here",
    }  # fmt: skip
    return [str(cell) for cell in (cells | changes).values()]


def jtl(rows: list[list[str]], header: list[str] | None = HEADER, delimiter: str = ",", end: str = "\n") -> bytes:
    lines = [delimiter.join(cells) for cells in ([header] if header else []) + rows]
    return (end.join(lines) + end).encode()


def reported(folder: Path, content: bytes | None, run: dict[str, Any] | None = None) -> Summary:
    """The summary of a run with this samples.jtl; the page, the terminal and JUnit are made of it too."""
    if content is not None:
        (folder / "samples.jtl").write_bytes(content)
    (folder / "run.json").write_text(json.dumps(RUN if run is None else run))
    verdict = report.build(folder)
    summary = read(folder / "summary.json", Summary)
    assert summary.verdict == verdict
    assert "</html>" in (folder / "index.html").read_text() and "<testsuite" in (folder / "junit.xml").read_text()
    assert terminal_text(summary)
    return summary


def rows_of(n: int = 10, **changes: object) -> list[list[str]]:
    return [row(number, **changes) for number in range(n)]


def counts(summary: Summary) -> dict[str, tuple[int, int]]:
    return {name: (label.n, label.failed) for name, label in summary.labels.items()}


WHOLE = {"all": (10, 2), "search": (5, 1), "cart": (5, 1)}
SAME: dict[str, Callable[[], bytes]] = {
    "as JMeter writes it": lambda: jtl(rows_of()),
    "semicolons": lambda: jtl(rows_of(), delimiter=";"),
    "tabs": lambda: jtl(rows_of(), delimiter="\t"),
    "bars": lambda: jtl(rows_of(), delimiter="|"),
    "carriage returns": lambda: jtl(rows_of(), end="\r\n"),
    "mixed line ends": lambda: jtl(rows_of()).replace(b"\n", b"\r\n", 4),
    "a byte order mark": lambda: b"\xef\xbb\xbf" + jtl(rows_of()),
    "UTF-16": lambda: jtl(rows_of()).decode().encode("utf-16"),
    "packed": lambda: gzip.compress(jtl(rows_of())),
    "packed in parts": lambda: gzip.compress(jtl(rows_of())[:100]) + gzip.compress(jtl(rows_of())[100:]),
    "no header": lambda: jtl([cells[:17] for cells in rows_of()], None),
    "no header, commas in quotes": lambda: jtl([r[:17] for r in rows_of(responseMessage='"OK, really"')], None),
    "no header, semicolons in quotes": lambda: jtl([r[:17] for r in rows_of(URL=f'"{";" * 20}"')], None),
    "no header, line ends in quotes": lambda: jtl([r[:17] for r in rows_of(failureMessage='"a\n""b"",\r\nx"')], None),
    "other cases of names": lambda: jtl(rows_of(), [name.upper() for name in HEADER]),
    "blanks around names": lambda: jtl(rows_of(), [f" {name} " for name in HEADER]),
    "another order": lambda: jtl([cells[::-1] for cells in rows_of()], HEADER[::-1]),
    "other words for true": lambda: jtl([[*r[:7], r[7].upper(), *r[8:]] for r in rows_of()]),
    "1 and 0": lambda: jtl([[*r[:7], str(int(r[7] == "true")), *r[8:]] for r in rows_of()]),
    "Yes and No": lambda: jtl([[*r[:7], {"true": "Yes", "false": "No"}[r[7]], *r[8:]] for r in rows_of()]),
    "joined": lambda: jtl(rows_of(5)) + jtl(rows_of()[5:]),
    "joined, a header in quotes": lambda: jtl(rows_of(5)) + jtl(rows_of()[5:], [f'"{name}"' for name in HEADER]),
    "joined, with semicolons": lambda: jtl(rows_of(5), delimiter=";") + jtl(rows_of()[5:], delimiter=";"),
    "joined, of Windows": lambda: b"\xef\xbb\xbf".join(
        [b"", jtl(rows_of(5), end="\r\n"), jtl(rows_of()[5:], end="\r\n")]
    ),
    "joined, the first without a header": lambda: (
        jtl([r[:17] for r in rows_of(5)], None) + jtl([r[:17] for r in rows_of()[5:]], list(DEFAULT))
    ),
    "a column twice": lambda: jtl([[*r, "x"] for r in rows_of()], [*HEADER, "label"]),
    "only what is needed": lambda: jtl([[r[0], r[1], r[2], r[7]] for r in rows_of()], [*HEADER[:3], HEADER[7]]),
    "line ends in quotes": lambda: jtl(rows_of(failureMessage='"a\n""b"",\r\n1790000000000,1,x"')),
    "NULs in texts": lambda: jtl(rows_of(threadName="a\0b", URL="\0")),
    "not UTF-8": lambda: jtl(rows_of()).replace(b"users", b"\xfc\xdfers"),
}


@pytest.mark.parametrize("name", SAME)
def test_any_form_of_the_file_has_the_same_samples(name: str, tmp_path: Path) -> None:
    summary = reported(tmp_path, SAME[name]())
    assert counts(summary) == WHOLE
    assert summary.main.times["rtt"].max.value == 58  # type: ignore[union-attr]
    assert (summary.verdict.word, summary.missing) == ("fail", [])


@pytest.mark.parametrize(
    "second",
    [jtl(rows_of(), delimiter=";"), jtl([r[:17] for r in rows_of()], HEADER[:17]), jtl(rows_of(), [*HEADER, '"user"'])],
    ids=["another delimiter", "fewer columns", "one column more"],
)
def test_joined_files_of_other_columns_are_not_read_as_one(second: bytes, tmp_path: Path) -> None:
    (tmp_path / "samples.jtl").write_bytes(jtl(rows_of()) + second)
    problem = open_jtl(tmp_path / "samples.jtl")
    assert isinstance(problem, str) and problem.startswith("line 12 of samples.jtl is a header line of other ")


@pytest.mark.parametrize("name", ["1 and 0", "joined"])
def test_jmeter_s_dashboard_is_of_rows_as_jmeter_writes_them(name: str, tmp_path: Path) -> None:
    for file, content in (("usual", jtl(rows_of())), ("other", SAME[name]())):
        (tmp_path / file).write_bytes(content)
        opened = open_jtl(tmp_path / file)
        assert isinstance(opened, JtlFile)
        opened.write(tmp_path / f"{file}-written")
    assert not opened.is_usual
    assert (tmp_path / "other-written").read_bytes() == (tmp_path / "usual-written").read_bytes()


def test_labels_that_are_not_utf_8_are_read_as_windows_1252(tmp_path: Path) -> None:
    """Wherever the first such character is."""
    rows = [*rows_of(1000), *([*row(n)[:2], "prüfen: 5 €", *row(n)[3:]] for n in range(1000, 1010))]
    summary = reported(tmp_path, jtl(rows).decode().encode("cp1252"), {"format": 2})
    assert counts(summary)["prüfen: 5 €"] == (10, 2)
    assert "The encoding of samples.jtl is not UTF-8; Windows-1252 is assumed." in " ".join(summary.warnings)


# By their first and last time, of which only the last may say what is the day.
@pytest.mark.parametrize(
    ("first", "last", "taken_as"),
    [
        ("2026/09/21 12:13:20.250", "2026/09/22 12:13:20.250", "taken as UTC"),
        ("20260921121320", "20260922121320", "taken as UTC"),
        ("11/09/2026 12:13:20.250", "12/09/2026 12:13:20.250", "taken as day/month/year in UTC"),
        ("09/12/2026 12:13:20.250", "09/13/2026 12:13:20.250", "taken as month/day/year in UTC"),
        ("12/09/26 12:13:20.250", "13/09/26 12:13:20.250", "taken as day/month/year in UTC"),
        ("09/12/2026 11:13:20 PM", "09/13/2026 11:13:20 PM", "taken as month/day/year in UTC"),
    ],
)
def test_times_of_day_are_read(first: str, last: str, taken_as: str, tmp_path: Path) -> None:
    rows = [[last if number == 9 else first, *row(number)[1:]] for number in range(10)]
    summary = reported(tmp_path, jtl(rows), {"format": 2})
    assert counts(summary) == WHOLE and summary.load is not None
    assert summary.load.duration_ms == 86_400_000 + 59
    assert taken_as in " ".join(summary.warnings)


@pytest.mark.parametrize("time", ["12:13:20", "21 Sep 2026 12:13:20", "yesterday"])
def test_times_of_a_form_that_is_not_known_are_left_out(time: str, tmp_path: Path) -> None:
    summary = reported(tmp_path, jtl([[time, *row(number)[1:]] for number in range(10)]), {"format": 2})
    assert counts(summary) == WHOLE and summary.load is None
    assert summary.main.times["rtt"].max.value == 58  # type: ignore[union-attr]
    assert f"such as {time}, are in no form that is known" in " ".join(summary.warnings)


@pytest.mark.parametrize(("decimals", "is_known"), [(5, False), (9, True), (12, True)])
def test_times_that_a_spreadsheet_has_rounded_are_left_out(decimals: int, is_known: bool, tmp_path: Path) -> None:
    """A time may have an exponent if it has all its digits; a spreadsheet keeps 6 of these 13."""
    rows = [[f"{START_MS + 1000 * number:.{decimals}E}", *row(number)[1:]] for number in range(10)]
    summary = reported(tmp_path, jtl(rows), {"format": 2})
    assert counts(summary) == WHOLE and (summary.load is not None) == is_known
    assert ("such as 1.79000E+12, are rounded to 10,000 s" in " ".join(summary.warnings)) != is_known


NO_TIMES: dict[str, dict[str, object]] = {
    "a day and more before": {"timeStamp": START_MS - 2 * 86_400_000},
    "a day and more after": {"timeStamp": START_MS + 2 * 86_400_000},
    "zero": {"timeStamp": 0},
    "negative start": {"timeStamp": -5},
    "year 300,000": {"timeStamp": 10**16},
    "negative": {"elapsed": -1},
    "longer than the run": {"elapsed": 3_600_000},
    "the largest": {"elapsed": 2**63 - 1},
    "larger": {"elapsed": 2**70},
    "the smallest": {"elapsed": -(2**63)},
    "a float": {"elapsed": "1e308"},
}


@pytest.mark.parametrize("name", NO_TIMES)
def test_a_time_that_cannot_be_is_none(name: str, tmp_path: Path) -> None:
    """Of all samples, and of one of ten: they are counted, and nothing of them is measured."""
    summary = reported(tmp_path, jtl(rows_of(**NO_TIMES[name])))
    assert counts(summary) == WHOLE and summary.facts.untimed == 10
    assert summary.main.times["rtt"].n == 0 and summary.load is None
    summary = reported(tmp_path, jtl([*rows_of(9), row(9, **NO_TIMES[name])]))
    assert counts(summary) == WHOLE and summary.facts.untimed == 1
    assert summary.load is not None and summary.load.duration_ms < 1000
    assert any("times that cannot be" in text or "a time that cannot be" in text for text in summary.warnings)
    assert summary.main.times["rtt"].n == 8, "of those that succeeded"


@pytest.mark.parametrize(("role", "untimed"), [("generator", 2), ("slave", 0)])
def test_what_lies_beyond_the_run_on_its_own_clock_is_no_time(role: str, untimed: int, tmp_path: Path) -> None:
    """An hour after the run, and over its end; the clock of a slave may be wrong by that much."""
    later = [row(8, timeStamp=START_MS + 3_600_000), row(9, timeStamp=START_MS + 19_000, elapsed=9000)]
    summary = reported(tmp_path, jtl([*rows_of(8), *later]), RUN | {"hosts": [{"name": "here", "role": role}]})
    assert summary.facts.untimed == untimed and summary.main.n == 10


LOST: dict[str, tuple[Callable[[], bytes], int, str]] = {
    "no number": (lambda: jtl([*rows_of(9), row(9, elapsed="fast")]), 9, "elapsed is not a number, as in 'fast'"),
    "not a number": (lambda: jtl([*rows_of(9), row(9, elapsed="NaN")]), 9, "elapsed is not a number, as in 'NaN'"),
    "an empty time": (lambda: jtl([*rows_of(9), row(9, elapsed="")]), 9, "cannot be read: elapsed is empty"),
    "no time": (lambda: jtl([*rows_of(9), row(9, timeStamp="now")]), 9, "timeStamp is not a time, as in 'now'"),
    "no date": (
        lambda: jtl([*rows_of(9, timeStamp="2026-09-21T14:13:20Z"), row(9, timeStamp="1970-01-01T00:00:00Z")]),
        9,
        "timeStamp is not a time, as in '1970-01-01T00:00:00Z'",
    ),
    "neither true nor false": (
        lambda: jtl([*rows_of(9), row(9, success="maybe")]),
        9,
        "1 row of samples.jtl cannot be read: success is not true or false, as in 'maybe'",
    ),
    "short rows": (lambda: jtl([*rows_of(9), row(9)[:3]]), 9, "1 row of samples.jtl cannot be read: success is empty"),
    "cut off": (lambda: jtl(rows_of())[:-5], 9, "ends in the middle of a row"),
    "cut off, and joined": (
        lambda: jtl(rows_of(5))[:-79] + jtl(rows_of()[5:]),
        9,
        "elapsed is not a number, as in '5timeStamp'",
    ),
    "an open quotation": (lambda: jtl([*rows_of(8), row(8, label='"x'), row(9)]), 8, "a quotation mark"),
}


@pytest.mark.parametrize("name", LOST)
def test_what_cannot_be_read_is_said(name: str, tmp_path: Path) -> None:
    content, n, why = LOST[name]
    summary = reported(tmp_path, content())
    assert summary.main.n == n and summary.verdict.word == "partial"
    assert why in " ".join(summary.missing)


NOTHING: dict[str, bytes | None] = {
    "no file": None, "empty": b"", "a header": jtl([]), "an open line": b"timeStamp,elapsed,label,success",
    "one column": b"label\na\nb\n", "no elapsed": b"timeStamp,label,success\n1,a,true\n", "NULs": b"\0" * 5000,
    "line ends": b"\n" * 500, "old line ends": jtl(rows_of(), end="\r"),
    "XML": b"<?xml version='1.0'?>\n<testResults/>\n",
    "cut gzip": gzip.compress(jtl(rows_of()))[:20], "not gzip": b"\x1f\x8b\x08" + b"x" * 100,
    "words": b"this is no table\nat all\n", "quotes": b'"' * 1001 + b"\n", "a picture": bytes(range(256)) * 20,
}  # fmt: skip


@pytest.mark.parametrize("name", NOTHING)
def test_a_file_without_a_sample_is_not_judged(name: str, tmp_path: Path) -> None:
    summary = reported(tmp_path, NOTHING[name])
    assert (summary.verdict.word, summary.verdict.exit_status) == ("unjudged", 1)
    assert summary.missing and not summary.main.n


@pytest.mark.parametrize("label", ["success", "label", "elapsed"])
def test_a_file_without_a_header_may_begin_with_a_label_like_a_column(label: str, tmp_path: Path) -> None:
    rows = [cells[:17] for cells in (row(0, label=label), row(1, label=label), row(2, label="home"))]
    assert counts(reported(tmp_path, jtl(rows, None))) == {"all": (3, 0), label: (2, 0), "home": (1, 0)}


def test_of_a_single_sample_no_rate_is_drawn(tmp_path: Path) -> None:
    summary = reported(tmp_path, jtl(rows_of(3)))
    names = {chart.name for chart in charts(summary)}
    assert "throughput" in names and summary.series.rates is not None
    summary = reported(tmp_path, jtl(rows_of(1)))
    assert {"throughput", "success-over-time"} & {chart.name for chart in charts(summary)} == {"success-over-time"}
    assert summary.series.rates is None


OF_PARENT = {"label": "Buy", "responseCode": 500, "success": "false", "URL": "null"}
OF_PARENT |= {"responseMessage": '"Number of samples in transaction : 3, number of failing samples : 1"'}
RUNS_OF_OTHERS = pytest.mark.parametrize(
    ("run", "header"),
    [(RUN, HEADER), (RUN | {"source": "results.jtl"}, [*HEADER, "sample_kind"])],
    ids=["no column of kinds", "a JTL that was XML"],
)


@RUNS_OF_OTHERS
def test_a_transaction_is_judged_whose_samples_have_no_rows(
    run: dict[str, Any], header: list[str], tmp_path: Path
) -> None:
    """As JMeter writes one with 'Generate parent sample'."""
    rows = [row(0), [*row(1, **OF_PARENT), "transaction"]]
    summary = reported(tmp_path, jtl([cells[: len(header)] for cells in rows], header), run)
    assert counts(summary) == {"search": (1, 0), "Buy": (1, 1)} and summary.verdict.word == "fail"
    assert {each.label: each.state for each in summary.criteria} == {"search": "passed", "Buy": "failed"}


@RUNS_OF_OTHERS
def test_of_a_file_with_transactions_only_these_are_the_samples(
    run: dict[str, Any], header: list[str], tmp_path: Path
) -> None:
    rows = [[*row(n, **OF_PARENT | {"label": label}), "transaction"] for n, label in enumerate(["Buy", "Buy", "Pay"])]
    summary = reported(tmp_path, jtl([cells[: len(header)] for cells in rows], header), run)
    assert counts(summary) == {"all": (3, 3), "Buy": (2, 2), "Pay": (1, 1)} and not summary.missing
    assert summary.main.causes == {"failed-sample": 3}
    assert any("only rows of transactions in samples.jtl, none of their" in text for text in summary.warnings)


def test_no_name_is_a_label(tmp_path: Path) -> None:
    """In rows, charts, criteria and JUnit; without any other label it is that of the main samples."""
    (tmp_path / "samples.jtl").write_bytes(jtl(rows_of(label="")))
    (tmp_path / "run.json").write_text(json.dumps(RUN | {"label": ""}))
    report.build(tmp_path, ["'' p95 > 1 s", "'' success < 100 %", "* n > 1000"])
    summary = read(tmp_path / "summary.json", Summary)
    assert counts(summary) == {"": (10, 2)} and summary.label == ""
    assert [(each.label, each.state) for each in summary.criteria] == [("", "passed"), ("", "failed"), ("", "passed")]
    assert "(empty)" in terminal_text(summary) and "(empty)" in (tmp_path / "index.html").read_text()
    assert '.(empty)" name=' in (tmp_path / "junit.xml").read_text()
    assert metric("'' p95_ms").label.endswith(" of (empty)")
    (tmp_path / "samples.jtl").write_bytes(jtl([row(n, label="" if n % 2 else "search") for n in range(10)]))
    (tmp_path / "run.json").write_text(json.dumps(RUN))
    report.build(tmp_path, None)
    summary = read(tmp_path / "summary.json", Summary)
    assert counts(summary) == {"all": (10, 2), "search": (5, 1), "": (5, 1)}


OTHER_FILES = ("run.json", "tree.xml", "resources.csv", "metrics.csv", "jmeter.log", "journal.jsonl")
WRONG: tuple[Any, ...] = (
    *(None, True, -1, 0, 1e308, 10**30, float("nan"), float("inf"), "", "x" * 3000, "\0", "\ud800", "../x"),
    *([], ["x"], {}, {"x": "y"}, {"x": 1}, [{"name": "a"}], "2026-11-25"),
)


def damaged(choice: random.Random, content: bytes) -> bytes:
    """The content with some bytes or cells changed, cut off, repeated, or in another order."""
    lines = content.split(b"\n")
    for _ in range(choice.choice((0, 1, 3, 20))):
        at = choice.randrange(len(lines))
        cells = lines[at].split(b",")
        cells[choice.randrange(len(cells))] = choice.choice(
            (
                b"",
                b"-1",
                b"0",
                b"NaN",
                b"1e308",
                b"1e999",
                b"9" * 25,
                b"null",
                b'"',
                b'""',
                b"true",
                b"\xff",
                b"\0",
                b"=1+1",
            )
        )
        lines[at] = b",".join(cells)
    changed = bytearray(b"\n".join(lines))
    for _ in range(choice.choice((0, 0, 1, 5))):
        changed[choice.randrange(len(changed))] = choice.randrange(256)
    if choice.random() < 0.2:
        start = choice.randrange(len(changed))
        changed[start : start + choice.randrange(200)] = b""
    return bytes(changed[: choice.choice((len(changed), len(changed), choice.randrange(len(changed) + 1)))])


@pytest.mark.parametrize("seed", range(12))
def test_a_damaged_folder_has_a_page(seed: int, tmp_path: Path) -> None:
    choice = random.Random(seed)  # noqa: S311
    content = damaged(choice, jtl(rows_of(30)))
    run: dict[str, Any] = dict(RUN)
    for _ in range(choice.choice((0, 0, 1, 2))):
        names = [
            *run,
            "hosts",
            "losses",
            "stopping_ms",
            "criteria",
            "given",
            "clock_step_ms",
            "rmi",
            "jmeter",
            "target",
        ]
        run[choice.choice(names)] = choice.choice(WRONG)
    for name in OTHER_FILES[1:]:
        if choice.random() < 0.4:
            (tmp_path / name).write_bytes(damaged(choice, EXAMPLES[name]))
    (tmp_path / "samples.jtl").write_bytes(content)
    text = json.dumps(run)
    (tmp_path / "run.json").write_text(text if choice.random() < 0.9 else text[: choice.randrange(len(text))])
    verdict = report.build(tmp_path)
    summary = read(tmp_path / "summary.json", Summary)
    assert verdict.exit_status in (0, 1, 3, 4)
    assert terminal_text(summary) and "</html>" in (tmp_path / "index.html").read_text()
    assert summary.main.n == summary.main.ok + summary.main.failed


EXAMPLES = {
    "tree.xml": b'<?xml version="1.0" encoding="UTF-8"?>\n<testResults version="1.2">\n'
    b'<sample t="5" lb="user" ts="1">\n'
    b'  <sample t="1" it="0" lt="0" ct="0" ts="1" s="true" lb="frame">\n'
    b'    <responseData class="java.lang.String">{"type": "sample"}</responseData>\n  </sample>\n</sample>\n'
    b"</testResults>\n",
    "resources.csv": b"time_ms,host,part,cpu_percent,rss_bytes,threads,load\n"
    + b"".join(b"%d,here,host,50.0,1000,3,0.5\n" % (START_MS + 1000 * n) for n in range(5)),
    "metrics.csv": b"time_ms,function,metric,detail,value\n"
    + b"".join(b"%d,f,ready,a,1\n" % (START_MS + 1000 * n) for n in range(5)),
    "jmeter.log": b'2026-11-25 10:00:00,000 INFO x: {"type":"arrivals","due":10,"dropped":2}\n'
    b'2026-11-25 10:00:00,000 INFO x: {"type":"stalls",}\n'
    b'2026-11-25 10:00:00,000 INFO x: {"type":"stall","start_ms":%d,"longest_ms":50,"gc_ms":1,}\n' % START_MS,
    "journal.jsonl": b'{"type": "start", "user": "a-1", "start_ms": %d, "samples": 2}\n' % START_MS,
}
