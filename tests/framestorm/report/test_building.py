import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from framestorm.model.criteria import CriteriaError
from framestorm.model.files import read
from framestorm.model.summary import Summary
from framestorm.report import build
from framestorm.results.reading import ReportError

MADE = ("samples.csv", "summary.json", "junit.xml", "index.html")


def summary(folder: Path) -> Summary:
    return read(folder / "summary.json", Summary)


def test_a_good_run_passes(fake_run: Any) -> None:
    for _ in range(2):
        fake_run.user([{"rtt_ms": 40.0 + index} for index in range(10)])
    outcome = build(fake_run.write())
    assert (outcome.word, outcome.exit_status) == ("pass", 0)
    assert outcome.line == "Pass: all 2 criteria were met, on 20 frames of 2 users."
    made = summary(fake_run.folder)
    assert (made.main.n, made.users.n, made.missing) == (20, 2, [])
    assert made.main.times["rtt"].p50.value == 44.0
    assert all((fake_run.folder / name).stat().st_size for name in MADE)
    assert not list(fake_run.folder.glob(".*")), "a temporary file was left"


def test_what_went_wrong_is_told_apart(three_users: Any) -> None:
    folder = three_users.write()
    assert build(folder).exit_status == 3
    frames, users = summary(folder).main, summary(folder).users
    assert (frames.n, frames.ok, frames.timed_out) == (111, 108, 1)
    assert frames.causes == {"status-429": 2, "timeout": 1}
    rtt = frames.times["rtt"]
    # 108 answered and one cut off; the two refusals after 1.5 ms are in no time.
    assert (rtt.n, rtt.censored, rtt.max.bound, rtt.mean.bound) == (109, 1, "lower", "lower")
    assert rtt.min.value > 30
    assert frames.times["cold"].n == 1
    assert frames.times["warm"].max.value < 1000
    assert frames.times["model"].n == 108
    # Of the users, the refused one has no time, and the one that timed out a lower bound.
    assert (users.times["duration"].n, users.times["duration"].censored) == (2, 1)


def test_frames_csv_has_every_field(three_users: Any) -> None:
    folder = three_users.write()
    build(folder)
    rows = pl.read_csv(folder / "samples.csv")
    line = three_users.users[0].frames[0]
    assert set(line) - {"type"} <= set(rows.columns)
    assert {"host", "thread", "source"} <= set(rows.columns)
    first = rows.row(0, named=True)
    assert {name: first[name] for name in line if name != "type"} == {k: v for k, v in line.items() if k != "type"}
    assert rows["source"].unique().to_list() == ["tree"]


@pytest.mark.parametrize("given", [None, ["frame p95 > 10 ms"], ["frame p95 > 10 s", "n < 5"]])
def test_criteria_come_from_the_call_or_from_the_run(fake_run: Any, given: list[str] | None) -> None:
    fake_run.user([{}] * 10)
    folder = fake_run.write(criteria=["frame p50 > 39 ms"], default_criteria=False)
    assert build(folder, given).exit_status == (3 if given is None or "10 ms" in given[0] else 0)
    expected = given or ["frame p50 > 39 ms"]
    assert [criterion.text for criterion in summary(folder).criteria] == expected


def test_a_wrong_criterion_writes_nothing(fake_run: Any) -> None:
    fake_run.user([{}])
    with pytest.raises(CriteriaError):
        build(fake_run.write(), ["frame p95 > 2 parsecs"])
    assert not any((fake_run.folder / name).exists() for name in MADE)


def test_80_000_slow_then_20_000_fast_rows(tmp_path: Path, make_jtl: Callable[..., None]) -> None:
    """JMeter's own default reports a median of 10 ms here."""
    common = {
        "label": "frame",
        "responseCode": "200",
        "responseMessage": "OK",
        "threadName": "t 1-1",
        "success": "true",
    }
    rows = [
        common | {"timeStamp": 1_790_000_000_000 + i, "elapsed": 1000 if i < 80_000 else 10} for i in range(100_000)
    ]
    make_jtl(tmp_path / "samples.jtl", rows)
    (tmp_path / "run.json").write_text(json.dumps({"format": 2, "state": "complete", "plan": "p.jmx"}))
    assert build(tmp_path).word == "pass"
    rtt = summary(tmp_path).main.times["rtt"]
    assert (rtt.n, rtt.p50.value, rtt.p90.value) == (100_000, 1000.0, 1000.0)
    page = (tmp_path / "index.html").read_text()
    assert "<dt>Response time, median</dt><dd>1.00\u00a0s</dd>" in page


HTTP_CASES = [
    ("200", "OK", "true", "", None),
    ("Non HTTP response code: java.net.SocketTimeoutException", "Read timed out", "false", "", "timeout"),
    ("Non HTTP … org.apache.http.conn.ConnectTimeoutException", "connect timed out", "false", "", "connect-timeout"),
    ("Non HTTP … org.apache.http.conn.HttpHostConnectException", "Connection refused", "false", "", "connect"),
    ("reset", "reset", "false", "", "reset"),
    ("Non HTTP response code: org.apache.http.NoHttpResponseException", "failed to respond", "false", "", "reset"),
    ("Non HTTP response code: java.net.SocketException", "Connection reset", "false", "", "reset"),
    ("500", "INTERNAL SERVER ERROR", "false", "", "status-500"),
    ("504", "GATEWAY TIMEOUT", "false", "", "status-504"),
    ("200", "OK", "false", "not-blurred", "not-blurred"),
    ("200", "not-image", "false", "", "not-image"),
    ("200", "OK", "false", "Test failed: text expected,\nbut \"this\" came", "failed-check"),
]  # fmt: skip


def test_http_plan(tmp_path: Path, make_jtl: Callable[..., None]) -> None:
    rows = [
        {"timeStamp": 1_790_000_000_000 + 100 * i, "elapsed": 50 + i, "label": "frame", "responseCode": code,
         "index": i, "responseMessage": message, "success": ok, "failureMessage": failure, "threadName": "arrivals 1-1",
         "bytes": 5, "sentBytes": 6, "handler_ms": "40.5", "model_ms": "30.25", "cold": str(i == 0).lower(), "faces": 1}
        for i, (code, message, ok, failure, _) in enumerate(HTTP_CASES)
    ]  # fmt: skip
    make_jtl(tmp_path / "samples.jtl", rows, ("index", "handler_ms", "model_ms", "cold", "faces"))
    (tmp_path / "run.json").write_text(json.dumps({"format": 2, "state": "complete", "plan": "jmx/face-blur-http.jmx"}))
    assert build(tmp_path).exit_status == 3
    frames = pl.read_csv(tmp_path / "samples.csv")
    assert frames["cause"].to_list() == [cause for *_, cause in HTTP_CASES]
    assert frames["index"].to_list() == list(range(len(HTTP_CASES)))
    assert frames["model_ms"][0] == 30.25
    made = summary(tmp_path)
    assert made.users is None
    assert made.main.timed_out == 2, "the client's time-out and the platform's"
    assert [c.text for c in made.criteria] == ["frame success < 100 %"]
    assert made.missing == []


@pytest.mark.parametrize("name", ["tree.xml", "samples.jtl", "journal.jsonl"])
def test_cut_off_anywhere(three_users: Any, name: str) -> None:
    """A file of a run that died is cut anywhere: always a report, always partial, and each frame once."""
    folder = three_users.write()
    whole = (folder / name).read_bytes()
    chance = random.Random(name)  # noqa: S311
    places = [0, 1, 30, len(whole) - 1, len(whole) - 2, *(chance.randrange(len(whole)) for _ in range(6))]
    if name == "tree.xml":
        second = whole.index(b"<responseData", 5000)
        places += [whole.index(b'lb="frame"') + 3, second + 5, second + 60, whole.index(b"</responseData>", second) + 9]
    if name == "tree.xml":
        places.remove(len(whole) - 1)  # only the line end is gone: that is whole
    for place in places:
        (folder / name).write_bytes(whole[:place])
        outcome = build(folder)
        made = summary(folder)
        if name == "journal.jsonl" and whole[:place].endswith(b"\n"):
            continue
        assert (outcome.word, outcome.exit_status) == ("partial", 4), (name, place)
        stem = name.removesuffix(".jsonl")
        assert any(stem in sentence for sentence in made.missing), (name, place, made.missing)
        assert made.main.n == 111, (name, place)
        assert 'class="verdict partial"' in (folder / "index.html").read_text()


@pytest.mark.parametrize(
    ("gone", "frames"),
    [
        (("tree.xml",), 111),
        (("journal.jsonl",), 111),
        (("samples.jtl",), 111),
        (("tree.xml", "journal.jsonl"), 111),
        (("run.json", "resources.csv"), 111),
        (("tree.xml", "samples.jtl", "resources.csv"), 111),
    ],
)
def test_missing_files(three_users: Any, gone: tuple[str, ...], frames: int) -> None:
    folder = three_users.write()
    for name in gone:
        (folder / name).unlink()
    assert build(folder).exit_status == 4
    made = summary(folder)
    assert made.main.n == frames
    for name in set(gone) - {"resources.csv"}:
        assert any(name in sentence for sentence in made.missing), (name, made.missing)
    if "resources.csv" in gone:
        assert any("resources.csv" in sentence for sentence in made.warnings)


@pytest.mark.parametrize(
    ("code", "message", "cause"),
    [
        ("1", "OK", "reset"),
        ("1", "reset", "reset"),
        ("0", "not-json-lines", "not-json-lines"),
        ("500", "System Sampler interrupted … Process timeout out after 9", "user-timeout"),
        ("500", "Exception occurred … java.io.IOException", "not-started"),
    ],
)
def test_why_a_user_failed(fake_run: Any, code: str, message: str, cause: str) -> None:
    """The plans' own word, then the client's, then what JMeter itself says of the process."""
    user = fake_run.user([{}, {"cause": "reset"}])
    user.code, user.message = code, message
    build(fake_run.write())
    assert summary(fake_run.folder).users.causes == {cause: 1}


def test_only_the_table_is_left(three_users: Any) -> None:
    folder = three_users.write()
    build(folder)
    for name in ("tree.xml", "journal.jsonl", "samples.jtl"):
        (folder / name).unlink()
    assert build(folder).exit_status == 4
    assert summary(folder).main.n == 111


def test_killed_run(three_users: Any) -> None:
    """The conductor was killed: state running, the last user in the journal only and without its end."""
    three_users.user([{} for _ in range(5)], end=False)
    last = three_users.users[-1]
    last.start["samples"] = 37
    folder = three_users.write(state="running", ended_ms=None)
    tree = (folder / "tree.xml").read_text()
    (folder / "tree.xml").write_text(tree[: tree.index(last.name) - 300])
    outcome = build(folder)
    assert outcome.exit_status == 4
    made = summary(folder)
    assert "recorded no end" in made.missing[0]
    assert any("1 user started and never ended; 32 frames of theirs never arrived" in text for text in made.missing)
    assert made.main.n == 116
    assert made.users.causes["never-ended"] == 1
    assert pl.read_csv(folder / "samples.csv")["source"].value_counts().sort("count").rows() == [
        ("journal", 5),
        ("tree", 111),
    ]


def test_stopped_run_tells_its_criteria_too(three_users: Any) -> None:
    folder = three_users.write(state="stopped", reason="Ctrl-C", criteria=["frame p95 > 1 ms"], default_criteria=False)
    outcome = build(folder)
    assert outcome.exit_status == 4
    assert "stopped early: Ctrl-C" in outcome.text
    assert "1 of 1 criterion failed" in outcome.text


def test_user_that_jmeter_ended(fake_run: Any) -> None:
    """user_timeout_s passed: JMeter kept what was said so far; what only the journal has is no loss."""
    user = fake_run.user([{} for _ in range(6)], end=False)
    user.code, user.message = (
        "500",
        "System Sampler interrupted … java.lang.InterruptedException: Process timeout out after 9",
    )
    folder = fake_run.write()
    tree, rest = (folder / "tree.xml").read_text(), user.frames.pop()
    fake_run.users[0] = user
    fake_run.write()
    assert (folder / "tree.xml").read_text() != tree
    with (folder / "journal.jsonl").open("a") as file:
        file.write(json.dumps(rest | {"ok": False, "cause": "stopped", "censored": True}) + "\n")
    build(folder)
    made = summary(folder)
    assert made.missing == []
    assert made.users.causes == {"user-timeout": 1}
    assert made.users.times["duration"].censored == 1
    assert made.main.causes == {"stopped": 1}
    assert made.main.times["rtt"].n == 5, "a frame cut off by the stop is in no time"
    assert made.facts.from_killed_users == 1


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (lambda f: _drop_line(f / "journal.jsonl", 5), "1 frame of tree.xml is not in the journal"),
        (
            lambda f: _drop_line(f / "samples.jtl", 5),
            "samples.jtl has 110 rows labelled frame, but tree.xml holds 111 frames",
        ),
        (lambda f: _repeat_line(f / "journal.jsonl", 5), "1 frame of the journal arrived twice (counted once)"),
        (
            lambda f: _append(f / "journal.jsonl", '{"type":"sample","label":"frame","user":7}\n'),
            "1 line of the journal cannot be read",
        ),
        (lambda f: _append(f / "samples.jtl", "half,a,row\n"), "1 row of samples.jtl cannot be read"),
        (lambda f: _append(f / "tree.xml", "<?xml version='1.0'?><testResults/>"), "tree.xml goes on after its end"),
    ],
)
def test_contradictions_make_it_partial(three_users: Any, spoil: Callable[[Path], None], sentence: str) -> None:
    folder = three_users.write()
    spoil(folder)
    assert build(folder).exit_status == 4
    missing = summary(folder).missing
    assert len(missing) == 1
    assert missing[0].startswith(sentence), missing


def _drop_line(path: Path, number: int) -> None:
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:number] + lines[number + 1 :]))


def _repeat_line(path: Path, number: int) -> None:
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([*lines, lines[number]]))


def _append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def test_frames_without_sub_results_come_from_the_output(fake_run: Any) -> None:
    """A plan whose post-processor is gone: the users' own output still holds all frames."""
    user = fake_run.user([{} for _ in range(4)])
    folder = fake_run.write()
    tree = (folder / "tree.xml").read_text()
    start, end = tree.index("  <sample"), tree.rindex("  </sample>") + len("  </sample>\n")
    (folder / "tree.xml").write_text(tree[:start] + tree[end:])
    _keep_rows(folder / "samples.jtl", "user")
    assert build(folder).word == "partial"
    made = summary(folder)
    assert made.main.n == len(user.frames)
    assert made.missing == ["samples.jtl has 0 rows labelled frame, but tree.xml holds 4 frames"]


def _keep_rows(path: Path, label: str) -> None:
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(line for line in lines if line.startswith("timeStamp") or f",{label}," in line))


def test_garbage_in_the_tree(fake_run: Any) -> None:
    """Characters that XML has no place for, as JMeter writes them raw or as references, do not end the reading."""
    for _ in range(2):
        fake_run.user([{}, {}])
    folder = fake_run.write()
    tree = (folder / "tree.xml").read_text()
    garbage = "\x00\x1b[31m&#x0;&#27;&#xD800;<![CDATA[x]]> Ünïcode ✓\n"
    data = '\n  <responseData class="java.lang.String">'
    (folder / "tree.xml").write_text(tree.replace(data, data + garbage))
    assert build(folder).word == "pass", summary(folder).missing


def test_entities_are_refused(fake_run: Any) -> None:
    fake_run.user([{}])
    folder = fake_run.write()
    tree = (folder / "tree.xml").read_text()
    bomb = '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;&a;">]>\n<testResults'
    (folder / "tree.xml").write_text(tree.replace("<testResults", bomb, 1))
    assert build(folder).exit_status == 4
    assert summary(folder).main.n == 1, "the journal has it"


def test_hosts_are_told_apart(fake_run: Any) -> None:
    for number in range(4):
        fake_run.user([{"rtt_ms": 40.0 if number % 2 else 80.0}] * 5, host=f"slave{number % 2 + 1}")
    folder = fake_run.write()
    (folder / "journal.jsonl").rename(folder / "journal-slave1.jsonl")
    assert build(folder).word == "pass", summary(folder).missing
    hosts = summary(folder).hosts
    counts = ("users", "sent", "in_tree", "in_samples", "shown")
    assert {row.host: [getattr(row, name) for name in counts] for row in hosts} == {
        "slave1": [2, 10, 10, 10, 10],
        "slave2": [2, 10, 10, 10, 10],
    }
    assert [row.p50.value for row in hosts] == [80.0, 40.0]


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(ReportError, match="is not the folder of a run"):
        build(tmp_path)


@pytest.mark.parametrize("state", ["running", "failed"])
def test_nothing_measured_is_no_pass(tmp_path: Path, state: str) -> None:
    (tmp_path / "run.json").write_text(json.dumps({"format": 2, "state": state, "reason": "port 8080 is taken"}))
    outcome = build(tmp_path)
    assert (outcome.word, outcome.exit_status) == ("unjudged", 1)
    assert "port 8080 is taken" in outcome.text
    assert (tmp_path / "index.html").exists()


def test_a_failed_write_leaves_the_old_report(fake_run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_run.user([{}])
    folder = fake_run.write()
    build(folder)
    before = {name: (folder / name).read_bytes() for name in MADE}

    def full(self: Path, *args: Any, **named: Any) -> int:
        raise OSError(28, "No space left on device", os.fspath(self))

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(ReportError, match="No space left"):
        build(folder, ["frame p95 > 1 ms"])
    assert {name: (folder / name).read_bytes() for name in MADE} == before
    assert not list(folder.glob(".*"))
