"""A run's raw files as one typed table, and what is missing in them."""

import csv
import json
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from framestorm.model.cause import request_cause, user_cause
from framestorm.model.run import Record
from framestorm.report.page import page_html
from framestorm.report.summary import summarise
from framestorm.results import table
from framestorm.results.reading import main_label, missing, read_results, reconciliation
from framestorm.results.table import causes, read_table, sample_group, user_group

HEADER = ("timeStamp", "elapsed", "label", "responseCode", "responseMessage", "success", "failureMessage")
START_MS = 1_790_000_000_000


def write_jtl(folder: Path, figures: tuple[str, ...], *rows: tuple[Any, ...]) -> None:
    with (folder / "samples.jtl").open("w", newline="") as file:
        csv.writer(file).writerows([(*HEADER, *figures), *rows])


def edit_lines(path: Path, edit: Callable[[list[str]], list[str]]) -> None:
    path.write_text("".join(edit(path.read_text().splitlines(keepends=True))))


@pytest.mark.parametrize(
    ("record", "names", "label"),
    [
        ({}, [], "sample"),
        ({"label": "task"}, [], "task"),
        ({"label": "login"}, ["login", "search"], "login"),
        ({"label": "frame"}, ["request"], "request"),
        ({"label": "frame"}, ["request", "other"], "all"),
    ],
)
def test_the_label_of_the_main_samples(record: dict[str, Any], names: list[str], label: str) -> None:
    assert main_label(Record(**record), names) == label


def test_times_by_the_microsecond_where_the_row_has_its_own(tmp_path: Path) -> None:
    row = ("request", 200, "OK", "true", "")
    times = [(0, "461"), (12, "12999"), (13, "12001"), (40, "12001"), (2, "null"), (3, "")]
    write_jtl(tmp_path, ("elapsed_us",), *((START_MS, ms, *row, us) for ms, us in times))
    results = read_results(tmp_path)
    assert results.samples["rtt_ms"].to_list() == [0.461, 12.999, 12.001, 40, 2, 3]
    assert results.jtl.figures == ()


def test_every_label_is_judged_and_no_transaction_counted_twice(tmp_path: Path) -> None:
    (tmp_path / "samples.jtl").write_text(
        "timeStamp,elapsed,label,responseCode,responseMessage,success,failureMessage,threadName\n"
        "1000,10,log in,200,OK,true,,users 1-1\n"
        "1010,30,search,200,OK,false,Test failed: text expected,users 1-1\n"
        '1000,40,whole visit,,"Number of samples in transaction : 2, number of failing samples : 1",false,,users 1-1\n'
    )
    summary = summarise(
        tmp_path, read_results(tmp_path), ["* p95 > 20 ms", '"whole visit" success < 100 %', "all n < 2"]
    )
    assert {name: (of.n, of.failed, of.kind) for name, of in summary.labels.items()} == {
        "all": (2, 1, "sampler"), "log in": (1, 0, "sampler"), "search": (1, 1, "sampler"),
        "whole visit": (1, 1, "transaction"),
    }  # fmt: skip
    assert summary.labels["whole visit"].causes == {"failed-sample": 1}
    assert summary.labels["search"].causes == {"failed-check: Test failed: text expected": 1}
    assert [(criterion.text, criterion.state) for criterion in summary.criteria] == [
        ('"log in" p95 > 20 ms', "passed"), ("search p95 > 20 ms", "unjudged"),
        ('"whole visit" success < 100 %', "failed"), ("all n < 2", "passed"),
    ]  # fmt: skip
    defaults = summarise(tmp_path, read_results(tmp_path), None).criteria
    assert {criterion.label: criterion.state for criterion in defaults} == {"log in": "passed", "search": "failed"}
    assert "3 samples" not in summary.verdict.text and "2 samples" in summary.verdict.text


def test_a_sample_that_never_began_does_not_stretch_the_load(tmp_path: Path) -> None:
    never = (0, 0, "absent class", "", "", "false", "")
    write_jtl(tmp_path, (), never, (1000, 50, "a", 200, "OK", "true", ""), never)
    summary = summarise(tmp_path, read_results(tmp_path), None)
    assert summary.labels["absent class"].n == 2
    assert summary.load is not None and summary.load.duration_ms == 50


def test_any_column_of_the_plan_is_a_further_figure(tmp_path: Path) -> None:
    figures = ("first_token_ms", "tokens", "cold", "begun_at_ms")
    good = (1000, 50, "chat", 200, "OK", "true", "", "31.5", "7", "true", "999")
    unset = (2000, 60, "chat", 200, "OK", "true", "", "null", "", "cold", "null")
    other = (3000, 5, "login", 200, "OK", "true", "", "null", "null", "null", "null")
    write_jtl(tmp_path, figures, good, unset, other)
    results = read_results(tmp_path)
    assert (results.label, results.samples.height, list(results.labels)) == ("all", 3, ["chat", "login"])
    chats = results.table("chat")
    assert chats["first_token_ms"].to_list() == [31.5, None]
    assert chats["cold"].to_list() == [True, None]
    assert table.figures(chats) == ["handler_ms", "model_ms", "first_token_ms", "tokens"]
    times = sample_group(chats, "chat").samples
    assert times["first_token"].mean().value == 31.5  # type: ignore[union-attr]
    assert times["rtt"].mean().value == 55.0  # type: ignore[union-attr]
    assert times["tokens"].mean().value == 7 and "begun_at" not in times  # type: ignore[union-attr]
    written = pl.read_csv(tmp_path / "samples.csv", infer_schema=False)
    assert written.columns[-4:] == ["first_token_ms", "tokens", "cold", "begun_at_ms"]
    assert read_table(tmp_path / "samples.csv")["label"].to_list() == ["chat", "chat", "login"]


def test_a_label_user_without_processes_is_a_label_like_others(tmp_path: Path) -> None:
    write_jtl(tmp_path, (), (1000, 50, "user", 200, "OK", "true", ""))
    (tmp_path / "run.json").write_text('{"format": 2, "plan": "mine.jmx", "has_users": false}')
    results = read_results(tmp_path)
    assert (results.label, results.samples.height, results.users.height) == ("user", 1, 0)


def test_a_label_all_is_told_from_all_labels(tmp_path: Path) -> None:
    write_jtl(tmp_path, (), *((1000, 50, name, 200, "OK", "true", "") for name in ("all", "all", "cart")))
    summary = summarise(tmp_path, read_results(tmp_path), ['"all (label)" n > 2', "all n > 2"])
    assert {name: of.n for name, of in summary.labels.items()} == {"all": 3, "all (label)": 2, "cart": 1}
    assert [each.state for each in summary.criteria] == ["passed", "failed"]


def test_every_field_of_a_line_is_a_column(three_users: Any) -> None:
    """A figure that only some samples have, and late ones, is a column of samples.csv all the same."""
    three_users.users[1].frames[5] |= {"first_token_ms": 12.5, "model_name": 'a,"b"'}
    three_users.users[2].frames[0] |= {"late": True}
    folder = three_users.write()
    results = read_results(folder)
    rows = pl.read_csv(folder / "samples.csv")
    line, first = three_users.users[0].frames[0], rows.row(0, named=True)
    assert {name: first[name] for name in line if name != "type"} == {k: v for k, v in line.items() if k != "type"}
    assert (first["host"], first["thread"], first["source"]) == ("master", "user 1-1", "tree")
    assert rows.columns[-3:] == ["first_token_ms", "model_name", "late"]
    late = rows.select(rows.columns[-3:]).filter(~pl.all_horizontal(pl.all().is_null())).rows()
    assert late == [(12.5, 'a,"b"', None), (None, None, True)]
    assert "first_token" in sample_group(results.samples, "frame").samples
    with (folder / "samples.csv").open(newline="") as file:
        assert {len(row) for row in csv.reader(file)} == {len(rows.columns)}


@pytest.mark.parametrize(
    ("code", "message", "failure", "cause"),
    [
        ("200", "too-few-faces", "", "too-few-faces"),
        ("200", "OK", "not-json", "not-json"),
        ("reset", "reset", "", "reset"),
        ("201", "status-201", "", "status-201"),
        ("Non HTTP response code: org.apache.http.conn.ConnectTimeoutException", "x", "", "connect-timeout"),
        ("Non HTTP response code: java.net.SocketTimeoutException", "Read timed out", "", "timeout"),
        ("Non HTTP … org.apache.http.conn.HttpHostConnectException", "Connection refused", "", "connect"),
        ("Non HTTP response code: java.net.UnknownHostException", "nowhere", "", "connect"),
        ("Non HTTP response code: org.apache.http.NoHttpResponseException", "failed to respond", "", "reset"),
        ("Non HTTP response code: java.net.SocketException", "Connection reset", "", "reset"),
        ("Non HTTP response code: java.net.SocketException", "Too many open files", "", "generator-limit"),
        ("Non HTTP response code: org.apache.http.client.ClientProtocolException", "x", "", "not-http"),
        ("503", "oops", "", "status-503"),
        (
            "200",
            "OK",
            'Test failed: text expected,\nbut "this" came',
            'failed-check: Test failed: text expected, but "this" came',
        ),
        ("200", "OK", "It took 1,203 milliseconds, but", "failed-check: It took ... milliseconds, but"),
        ("200", "OK", "x" * 999, f"failed-check: {'x' * 120}..."),
        ("MY-1", "stock\nempty", "", "error: MY-1 stock empty"),
        ("null 0", "java.sql.SQLException: no such table", "", "exception: java.sql.SQLException: no such table"),
        (
            "Non HTTP response code: java.net.URISyntaxException",
            "Non HTTP response message: Illegal character",
            "",
            "exception: URISyntaxException: Illegal character",
        ),
        (
            "Non HTTP response code: javax.net.ssl.SSLHandshakeException",
            "Non HTTP response message: PKIX path",
            "",
            "tls: SSLHandshakeException: PKIX path",
        ),
        ("200", "OK", "", "unknown"),
    ],
)
def test_why_a_request_failed(code: str, message: str, failure: str, cause: str) -> None:
    assert request_cause(code, message, failure) == cause


def test_what_sends_no_http_has_no_status_of_the_function() -> None:
    failed = ("500", "javax.script.ScriptException: no such property", "Test failed: text expected")
    assert request_cause(*failed, is_http=False) == "exception: javax.script.ScriptException: no such property"
    assert request_cause("500", "mailbox full", "", is_http=False) == "error: 500 mailbox full"
    assert request_cause(*failed) == request_cause("500", "", "", is_http=False) == "status-500"


@pytest.mark.parametrize(
    ("code", "message", "cause"),
    [
        ("1", "status-500", "status-500"),
        ("500", "Process timeout", "user-timeout"),
        ("500", "Interrupted while running", "stopped"),
        ("500", "Exception in call", "not-started"),
        ("137", "KO", "exit-137"),
        ("", "", "exit-unknown"),
    ],
)
def test_why_a_user_failed(code: str, message: str, cause: str) -> None:
    assert user_cause(code, message) == cause


@pytest.mark.parametrize(("message", "cause"), [("OK", "reset"), ("not-json-lines", "not-json-lines")])
def test_the_plans_word_goes_before_the_clients(fake_run: Any, message: str, cause: str) -> None:
    user = fake_run.user([{}, {"cause": "reset"}])
    user.code, user.message = "1", message
    assert causes(read_results(fake_run.write()).users) == ({cause: 1}, {})


def test_samples_of_jmeters_own_sampler(tmp_path: Path) -> None:
    figures = ("index", "intended_ms", "worker", "handler_ms", "cold", "faces")
    rows = [
        (START_MS, 50, "frame", "200", "OK", "true", "", 0, START_MS, "r1", "40.5", "true", 1),
        (START_MS + 100, 51, "frame", "504", "GATEWAY TIMEOUT", "false", "", 1, START_MS + 90, "", "null", "null", ""),
        (START_MS + 200, 52, "frame", "java.net.SocketTimeoutException", "-", "false", "", 2, "", "r2", "", "", ""),
        (START_MS + 300, 53, "frame", "200", "OK", "false", 'said "no",\nthen more', "", "", "r1", "30", "false", 1),
    ]
    write_jtl(tmp_path, figures, *rows)
    samples = read_results(tmp_path).samples
    assert samples["cause"].to_list() == [None, "status-504", "timeout", 'failed-check: said "no", then more']
    assert samples["index"].to_list() == [0, 1, 2, None]
    assert samples["worker"].to_list() == ["r1", None, "r2", "r1"]
    assert (samples["start_ms"] - samples["intended_ms"]).to_list() == [0, 10, None, None]
    assert samples["handler_ms"].to_list() == [40.5, None, None, 30.0]
    assert samples["timed_out"].to_list() == [False, True, True, False], "the client's time-out and the platform's"
    assert samples["verified"].to_list() == [False, None, None, False]


@pytest.mark.parametrize("place", [*range(101, 140, 3), 166, 170, 180])
def test_a_half_row_of_the_jtl_is_left_out(tmp_path: Path, place: int) -> None:
    """Wherever the file is cut, also within a quotation that holds line ends."""
    write_jtl(tmp_path, (), (1, 5, "a", 200, "OK", "true", ""), (2, 6, "a", 500, 'a "x",\nb', "false", "c\n\n d"))
    content = (tmp_path / "samples.jtl").read_bytes()
    (tmp_path / "samples.jtl").write_bytes(content[: min(place, len(content) - 1)])
    results = read_results(tmp_path)
    assert results.samples["rtt_ms"].to_list() == [5.0]
    assert results.jtl.problem == "samples.jtl ends in the middle of a row; the row was left out"


@pytest.mark.parametrize("name", ["tree.xml", "samples.jtl", "journal.jsonl"])
def test_cut_off_anywhere(three_users: Any, name: str) -> None:
    """A file of a run that died is cut anywhere: it is always told, and each frame is there once."""
    folder = three_users.write()
    whole = (folder / name).read_bytes()
    chance = random.Random(name)  # noqa: S311
    places = [0, 1, 30, len(whole) - 2, *(chance.randrange(len(whole)) for _ in range(6))]
    if name == "tree.xml":
        second = whole.index(b"<responseData", 5000)
        places += [whole.index(b'lb="frame"') + 3, second + 5, second + 60, whole.index(b"</responseData>", second) + 9]
    for place in places:
        (folder / name).write_bytes(whole[:place])
        results = read_results(folder)
        assert results.samples.height == 111, (name, place)
        if name != "journal.jsonl" or not whole[:place].endswith(b"\n"):
            assert any(name.removesuffix(".jsonl") in sentence for sentence in missing(results)), (name, place)


@pytest.mark.parametrize(
    ("gone", "told"),
    [
        ("tree.xml", "tree.xml"),
        ("journal.jsonl", "journal.jsonl"),
        ("samples.jtl", "samples.jtl"),
        ("run.json", "run.json"),
        ("tree.xml journal.jsonl", "tree.xml journal.jsonl"),
        ("tree.xml samples.jtl", "tree.xml samples.jtl"),
        ("tree.xml journal.jsonl samples.jtl", "samples.jtl"),
    ],
)
def test_missing_files(three_users: Any, gone: str, told: str) -> None:
    folder = three_users.write()
    whole = read_results(folder)  # so samples.csv is there at least
    for name in gone.split():
        (folder / name).unlink()
    results = read_results(folder)
    assert results.samples.height == 111
    if "tree.xml" not in gone or "journal.jsonl" not in gone:  # else the users are those of samples.jtl
        assert results.users["ok"].sum() == whole.users["ok"].sum()
    sentences = " ".join(missing(results))
    for name in told.split():
        assert name in sentences


def test_killed_run(three_users: Any) -> None:
    """The conductor was killed: state running, the last user in the journal only and without its end."""
    three_users.user([{} for _ in range(5)], end=False)
    last = three_users.users[-1]
    last.start["samples"] = 37
    folder = three_users.write(state="running", ended_ms=None)
    tree = (folder / "tree.xml").read_text()
    (folder / "tree.xml").write_text(tree[: tree.index(last.name) - 300])
    results = read_results(folder)
    sentences = missing(results)
    assert "recorded no end" in sentences[0]
    assert any("1 user started and never ended; 32 frames of theirs never arrived" in text for text in sentences)
    assert causes(results.users)[0]["never-ended"] == 1
    assert results.samples["source"].value_counts().sort("count").rows() == [("journal", 5), ("tree", 111)]


def test_user_that_jmeter_ended(fake_run: Any) -> None:
    """user_timeout_s passed: JMeter kept what was said so far; what only the journal has is no loss."""
    user = fake_run.user([{} for _ in range(6)], end=False)
    user.code, user.message = "500", "System Sampler interrupted … java.lang.InterruptedException: Process timeout"
    rest = user.frames.pop()
    folder = fake_run.write()
    with (folder / "journal.jsonl").open("a") as file:
        file.write(json.dumps(rest | {"ok": False, "cause": "stopped", "censored": True}) + "\n")
    results = read_results(folder)
    assert missing(results) == []
    assert causes(results.users)[0] == {"user-timeout": 1}
    assert user_group(results.users).samples["duration"].percentile("50").bound == "lower"  # type: ignore[union-attr]
    assert causes(results.samples) == ({"stopped": 1}, {})
    assert not results.samples["timed_out"].any(), "a frame cut off by the stop is in no time"
    assert results.clients.from_killed_users == 1


@pytest.mark.parametrize(
    ("name", "edit", "sentence"),
    [
        ("journal.jsonl", lambda rows: rows[:5] + rows[6:], "1 frame of tree.xml is not in the journal"),
        (
            "samples.jtl",
            lambda rows: rows[:5] + rows[6:],
            "samples.jtl has 110 rows labelled frame, but tree.xml holds 111 frames",
        ),
        ("journal.jsonl", lambda rows: [*rows, rows[5]], "1 frame of the journal arrived twice (counted once)"),
        (
            "journal.jsonl",
            lambda rows: [*rows, '{"type":"sample","label":"frame","user":7}\n'],
            "1 line of the journal cannot be read",
        ),
        ("samples.jtl", lambda rows: [*rows, "half,a,row\n"], "1 row of samples.jtl cannot be read"),
        ("tree.xml", lambda rows: [*rows, "<?xml version='1.0'?><testResults/>"], "tree.xml goes on after its end"),
    ],
)
def test_contradictions_are_told(
    three_users: Any, name: str, edit: Callable[[list[str]], list[str]], sentence: str
) -> None:
    folder = three_users.write()
    edit_lines(folder / name, edit)
    (told,) = missing(read_results(folder))
    assert told.startswith(sentence)


def test_frames_without_sub_results_come_from_the_output(fake_run: Any) -> None:
    """A plan whose post-processor is gone: the users' own output still holds all frames."""
    user = fake_run.user([{} for _ in range(4)])
    folder = fake_run.write()
    tree = (folder / "tree.xml").read_text()
    start, end = tree.index("  <sample"), tree.rindex("  </sample>") + len("  </sample>\n")
    (folder / "tree.xml").write_text(tree[:start] + tree[end:])
    edit_lines(folder / "samples.jtl", lambda rows: [row for row in rows if ",frame," not in row])
    results = read_results(folder)
    assert results.samples.height == len(user.frames)
    assert missing(results) == ["samples.jtl has 0 rows labelled frame, but tree.xml holds 4 frames"]


def test_garbage_in_the_tree(fake_run: Any) -> None:
    """Characters that XML has no place for, as JMeter writes them raw or as references, do not end the reading."""
    for _ in range(2):
        fake_run.user([{}, {}])
    folder = fake_run.write()
    garbage = "\x00\x1b[31m&#x0;&#27;&#xD800;<![CDATA[x]]> Ünïcode ✓\n"
    data, tree = '\n  <responseData class="java.lang.String">', (folder / "tree.xml").read_text()
    end = tree.index("</responseData>\n  <samplerData")
    spoilt = (tree[:end] + garbage + tree[end:]).replace(data, data + garbage)
    (folder / "tree.xml").write_text(spoilt)
    results = read_results(folder)
    assert missing(results) == []
    assert all(user.has_last_line for user in results.clients.users.values())


def test_lines_of_any_form_are_samples_in_their_order(fake_run: Any) -> None:
    """Most lines are read in bulk; those of another form between them keep their place and their values."""
    frames = [{} for _ in range(12)]
    frames[1] = {"worker": 'a,"b"'}
    frames[2] = {"rtt_ms": 1e-9, "worker": "c&d <e>"}
    frames[5] = {"label": "Rahmen ✓", "late_ms": 1.5}
    frames[7] = {"faces": "many"}
    user = fake_run.user(frames)
    user.frames[4] = dict(reversed(user.frames[4].items()))
    user.frames[9]["index"] = 10_000_000
    user.frames[10] |= {"ok": 1}
    folder = fake_run.write()
    results = read_results(folder)
    rows = pl.read_csv(folder / "samples.csv", infer_schema=False)
    good = [line for number, line in enumerate(user.frames) if number not in (9, 10)]
    texts = {True: "true", False: "false", None: None}
    for row, line in zip(rows.iter_rows(named=True), good, strict=True):
        assert row["late_ms"] == (str(line["late_ms"]) if "late_ms" in line else None)
        assert {name: row[name] for name in ("label", "worker") if name in line} == {
            name: line[name] for name in ("label", "worker") if name in line
        }
        assert (int(row["index"]), float(row["rtt_ms"])) == (line["index"], line["rtt_ms"])
        assert row["cold"] == texts[line["cold"]]
    assert results.clients.bad_lines == Counter({"tree.xml": 2, "the journal": 2})
    assert (results.clients.from_tree, results.clients.from_journal) == (10, 0)


@pytest.mark.parametrize("is_jtl", [True, False])
@pytest.mark.parametrize(
    ("answered", "kept"),
    [
        ("=cmd|' /C calc'!A0", "'=cmd|' /C calc'!A0"),
        ("@sum(a1)", "'@sum(a1)"),
        ("-1+cmd|a", "'-1+cmd|a"),
        ("+1", "+1"),
        ("-1.5e-7", "-1.5e-7"),
        ("a=1", "a=1"),
    ],
)
def test_what_a_function_answers_is_no_formula(
    fake_run: Any, tmp_path: Path, is_jtl: bool, answered: str, kept: str
) -> None:
    if is_jtl:
        folder = tmp_path
        write_jtl(folder, ("worker",), (START_MS, 50, "=label", "200", "OK", "true", "", answered))
    else:
        fake_run.user([{"worker": answered, "label": "=label"}])
        folder = fake_run.write()
    read_results(folder)
    row = pl.read_csv(folder / "samples.csv", infer_schema=False).row(0, named=True)
    assert (row["worker"], row["label"]) == (kept, "=label"), "labels are the plan's"


@pytest.mark.parametrize(
    "line",
    [b"\xff", b"\x00", b"[" * 100_000, b'{"type":"sample",', rb'{"type":"user","user":"\ud800"}', b'{"type":NaN}', b""],
    ids=["no UTF-8", "NUL", "deep", "half", "half a character", "NaN", "empty"],
)
def test_a_bad_line_of_the_journal_is_counted_and_nothing_else_is_lost(three_users: Any, line: bytes) -> None:
    folder = three_users.write()
    (folder / "tree.xml").unlink()
    rows = (folder / "journal.jsonl").read_bytes().splitlines()
    (folder / "journal.jsonl").write_bytes(b"\n".join([*rows[:50], line, *rows[50:], b""]))
    results = read_results(folder)
    assert results.samples.height == 111
    assert results.clients.bad_lines == Counter({"the journal": 1})


def test_entities_are_refused(fake_run: Any) -> None:
    fake_run.user([{}])
    folder = fake_run.write()
    bomb = '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;&a;">]>\n'
    edit_lines(folder / "tree.xml", lambda rows: [rows[0], bomb, *rows[1:]])
    results = read_results(folder)
    assert "damaged" in missing(results)[0]
    assert results.samples.height == 1, "the journal has it"


def test_hosts_are_told_apart(fake_run: Any) -> None:
    for number in range(4):
        fake_run.user([{}] * 5, host=f"slave{number % 2 + 1}")
    folder = fake_run.write()
    (folder / "journal.jsonl").rename(folder / "journal-slave1.jsonl")
    results = read_results(folder)
    assert missing(results) == []
    counts = {"users": 2, "sent": 10, "in_tree": 10, "in_samples": 10}
    assert reconciliation(results) == {"slave1": counts, "slave2": counts}


COLUMNS = "timeStamp,elapsed,label,responseCode,responseMessage,threadName,success,failureMessage,bytes,sentBytes"
WITH_URL = f"{COLUMNS},URL,Latency,Connect"


def test_parts_of_a_sample_are_not_counted_as_samples(tmp_path: Path) -> None:
    """Redirects and embedded resources have rows after that of their sample, named by their URL or by number."""
    (tmp_path / "samples.jtl").write_text(
        f"{WITH_URL}\n"
        "1000,40,log in,200,OK,t 1-1,true,,300,30,http://h/home,39,2\n"
        "1000,10,http://h/login,302,Found,t 1-1,true,,100,10,http://h/login,10,2\n"
        "1000,5,search,200,OK,t 1-2,true,,100,10,http://h/search,5,0\n"
        "1010,30,http://h/home,200,OK,t 1-1,true,,200,20,http://h/home,29,0\n"
        "1040,20,page,200,OK,t 1-1,true,,100,10,http://h/page,9,0\n"
        "1045,10,page-0,200,OK,t 1-1,true,,50,5,http://h/logo,4,0\n"
        # Samplers that are named by a URL, or by a number after another's name, but are no parts.
        "1060,20,http://h/named,200,OK,t 1-1,true,,100,10,http://h/named,5,0\n"
        "1090,0,search-7,200,OK,t 1-2,true,,100,10,http://h/search/7,5,0\n"
        "1100,7,script,200,OK,t 1-2,true,,0,0,null,0,0\n"
    )
    results = read_results(tmp_path)
    summary = summarise(tmp_path, results, None)
    parts = {name for name, of in summary.labels.items() if of.kind == "sub-result"}
    assert parts == {"http://h/login", "http://h/home", "page-0"}
    assert summary.main.n == 6
    assert {criterion.label for criterion in summary.criteria}.isdisjoint(parts)
    assert summary.main.received_bytes_per_s == pytest.approx(700 / 0.107)
    assert summary.labels["log in"].completed_per_s == pytest.approx(1 / 0.04)
    assert [of.in_samples for of in summary.hosts] == [6]
    latency, connect = (summary.main.times[name] for name in ("latency", "connect"))
    assert (latency.n, connect.n) == (5, 5), "a script has neither"
    assert latency.mean and latency.mean.value == 12.6 and latency.are_whole
    assert "13\u00a0ms" in page_html(summary) and "12.6\u00a0ms" not in page_html(summary)
    assert summary.labels["log in"].times["latency"].max.value == 39  # type: ignore[union-attr]


def test_parts_with_names_of_their_own_are_not_counted_as_samples(tmp_path: Path) -> None:
    """A Parallel Controller that is a sample too; and a transaction that is one, whose samplers count as always."""
    both = "Number of samples in transaction : 2, number of failing samples : 0"
    rows = [(1000, 300, "both", "null"), (1010, 5, "fast", "null"), (1005, 290, "slow", "null")]
    rows += [(1300, 9, "visit", "null"), (1300, 4, "home", "null"), (1304, 5, "cart", "null"), (1310, 2, "end", "2000")]
    write_jtl(
        tmp_path,
        ("elapsed_us",),
        *((at, ms, name, 200, both if name == "visit" else "OK", "true", "", us) for at, ms, name, us in rows),
    )
    kinds = {name: of.kind for name, of in summarise(tmp_path, read_results(tmp_path), None).labels.items()}
    assert {name for name, kind in kinds.items() if kind == "sub-result"} == {"fast", "slow"}
    assert {name for name, kind in kinds.items() if kind == "sampler"} == {"all", "both", "home", "cart", "end"}


def test_labels_beyond_the_limit_are_counted_together(tmp_path: Path) -> None:
    rows = [f"{1000 + n},{n % 9},item-{n},200,OK,t 1-1,{'false' if n == 249 else 'true'},,1,1" for n in range(250)]
    rows += [f"{2000 + n},5,list,200,OK,t 1-1,true,,1,1" for n in range(3)]
    (tmp_path / "samples.jtl").write_text("\n".join([COLUMNS, *rows, ""]))
    summary = summarise(tmp_path, read_results(tmp_path), ["item-240 n < 1", "* errors > 0"])
    together = summary.labels["50 other labels"]
    assert (together.of_labels, together.n) == (50, 50)
    assert len(summary.labels) == 1 + 201 + 1, "all, 200 and the one that a criterion names, the rest"
    assert sum(of.n for name, of in summary.labels.items() if name != "all") == summary.main.n == 253
    assert [each.label for each in summary.criteria if each.state == "failed"] == ["50 other labels"]
    assert any("50 other labels are counted together" in sentence for sentence in summary.warnings)


def test_many_causes_are_bounded(tmp_path: Path) -> None:
    rows = [f"1000,9,page,200,OK,t 1-1,false,no {'x' * n},1,1" for n in range(50)]
    rows += ["1000,9,page,503,Sorry,t 1-1,false,,1,1"]
    (tmp_path / "samples.jtl").write_text("\n".join([COLUMNS, *rows, ""]))
    page = summarise(tmp_path, read_results(tmp_path), None).labels["page"]
    assert (len(page.causes), page.causes["status-503"], page.further_causes) == (21, 1, {"failed-check": 30})
    assert sum(page.causes.values()) + sum(page.further_causes.values()) == page.failed == 51


def test_columns_that_were_not_saved_are_named(tmp_path: Path) -> None:
    (tmp_path / "samples.jtl").write_text("timeStamp,elapsed,label,success\n1000,5,page,true\n1010,5,page,false\n")
    summary = summarise(tmp_path, read_results(tmp_path), None)
    assert "Latency" in summary.facts.absent_columns and "bytes" in summary.facts.absent_columns
    assert (summary.main.received_bytes_per_s, summary.main.causes) == (None, {"unknown": 1})
    assert any("saved without" in sentence for sentence in summary.warnings)


@pytest.mark.parametrize(
    ("state", "cut", "transaction"), [("stopped", "stopped", "stopped"), ("failed", "reset", "failed-sample")]
)
def test_what_a_stop_cuts_off_is_no_error_of_the_function(
    tmp_path: Path, state: str, cut: str, transaction: str
) -> None:
    """Of a run that ends for another reason, such as a target that died, errors are what they say."""
    closed = "Non HTTP response code: java.net.SocketException,Non HTTP response message: Socket closed"
    of_two = "Number of samples in transaction : 2, number of failing samples"
    rows = {
        "before": f"1000,500,before,{closed},t 1-1,false,,0,0",
        "cut": f"1600,900,cut,{closed},t 1-1,false,,0,0",
        "aborted": "1990,20,aborted,org.example.RequestAbortedException,Request aborted,t 1-4,false,,0,0",
        "flow": f'1550,950,flow,,"{of_two} : 1",t 1-1,false,,0,0',
        "both": f'1550,950,both,,"{of_two} : 2",t 1-1,false,,0,0',
        "failed": "1600,900,failed,500,Oops,t 1-2,false,,0,0",
        "answered": "1600,900,answered,200,OK,t 1-3,true,,0,0",
    }
    (tmp_path / "samples.jtl").write_text("\n".join([COLUMNS, *rows.values(), ""]))
    (tmp_path / "run.json").write_text(json.dumps({"format": 2, "state": state, "stopping_ms": 2000.0}))
    results = read_results(tmp_path)
    aborted = "stopped" if state == "stopped" else "exception: RequestAbortedException: Request aborted"
    found = {name: results.table(name).select("cause", "timed_out").row(0) for name in rows}
    assert found == {
        "before": ("reset", False), "cut": (cut, False), "aborted": (aborted, False),
        "flow": (transaction, False), "both": ("failed-sample", False),
        "failed": ("status-500", False), "answered": (None, False),
    }  # fmt: skip
    assert results.table("cut")["censored"].to_list() == [cut == "stopped"]
