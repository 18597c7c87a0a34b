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

from framestorm.model.files import write
from framestorm.model.run import Record
from framestorm.report.summary import summarise
from framestorm.results import clients
from framestorm.results.reading import main_label, missing, read_results, reconciliation
from framestorm.results.table import causes, height, sample_group, user_group
from tests.framestorm.results.conftest import START_MS, frame_line, write_rows


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


def test_a_figure_may_be_called_like_a_column_of_the_readers(fake_run: Any) -> None:
    names = ("place", "line", "key", "row", "bin", "timed_out", "t_s", "low", "value", "every", "end", "cut")
    frames: list[dict[str, Any]] = [dict.fromkeys(names, index) for index in (5, 3, 4)]
    frames.insert(1, {"worker": 'of "another" form', **dict.fromkeys(names, 8)})
    fake_run.user(frames)
    folder = fake_run.write()
    label = summarise(folder, read_results(folder), None).main
    assert pl.read_csv(folder / "samples.csv").select(names).rows() == [(n,) * len(names) for n in (5, 8, 3, 4)]
    means = {name: of.mean.value for name, of in label.figures.items() if name in names and of.mean}
    assert means == {name: 5 for name in names if name != "timed_out"}


def test_a_figure_that_only_a_later_file_has_is_a_column(fake_run: Any) -> None:
    fake_run.user([{}])
    fake_run.user([{"late": 7}], arrived=False)
    folder = fake_run.write()
    read_results(folder)
    assert pl.read_csv(folder / "samples.csv")["late"].to_list() == [None, 7]


@pytest.mark.parametrize("fields", [{"user": ""}, {"rtt_ms": 1e308}, {"tokens": 1e308}, {"tokens": 1e200}])
def test_what_a_slave_may_send_keeps_no_report_from_being_made(fields: dict[str, Any], fake_run: Any) -> None:
    fake_run.user([{}, {}])
    folder = fake_run.write()
    with (folder / "journal.jsonl").open("a") as journal:
        for index in range(6):
            journal.write(json.dumps(frame_line("b-2-1", index, START_MS) | fields) + "\n")
        journal.write(json.dumps({"type": "start", "user": "c-3-1", "samples": 1e308}) + "\n")
    summary = summarise(folder, read_results(folder), None)
    write(folder / "summary.json", summary)
    assert (summary.main.n, summary.verdict.word) == (8, "partial")
    assert len(summary.verdict.text) < 300


@pytest.mark.parametrize(("message", "cause"), [("OK", "reset"), ("not-json-lines", "not-json-lines")])
def test_the_plans_word_goes_before_the_clients(fake_run: Any, message: str, cause: str) -> None:
    user = fake_run.user([{}, {"cause": "reset"}])
    user.code, user.message = "1", message
    assert causes(read_results(fake_run.write()).users.lazy()) == ({cause: 1}, {})


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
        assert height(results.samples) == 111, (name, place)
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
    assert height(results.samples) == 111
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
    assert any(
        "1 user started and never ended; 32 frames that they should have sent never arrived" in text
        for text in sentences
    )
    assert causes(results.users.lazy())[0]["never-ended"] == 1
    assert results.samples.collect()["source"].value_counts().sort("count").rows() == [("journal", 5), ("tree", 111)]


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
    assert causes(results.users.lazy())[0] == {"user-timeout": 1}
    assert user_group(results.users).samples["duration"].percentile("50").bound == "lower"  # type: ignore[union-attr]
    assert causes(results.samples) == ({"stopped": 1}, {})
    assert not results.samples.collect()["timed_out"].any(), "a frame cut off by the stop is in no time"
    assert results.clients.from_killed_users == 1


def test_a_killed_user_makes_a_run_partial(fake_run: Any) -> None:
    """Whether the function got the request that it had in progress, nobody knows."""
    user = fake_run.user([{} for _ in range(6)], end=False)
    user.start["samples"] = 9
    user.code, user.message = "137", "exit-137"
    fake_run.user([{} for _ in range(6)])
    sentence = "1 user killed; a request in progress has no row; 3 frames that they should have sent never arrived"
    assert missing(read_results(fake_run.write())) == [sentence]


@pytest.mark.parametrize(
    ("name", "edit", "sentence"),
    [
        ("journal.jsonl", lambda rows: rows[:5] + rows[6:], "1 frame of tree.xml is not in the journal"),
        (
            "samples.jtl",
            lambda rows: rows[:5] + rows[6:],
            "samples.jtl has 110 rows labelled frame, but tree.xml has 111 frames",
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
    assert height(results.samples) == len(user.frames)
    assert missing(results) == ["samples.jtl has 0 rows labelled frame, but tree.xml has 4 frames"]


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


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("\x07", "?"),
        ("&amp;", "&"),
        ("&#65;", "A"),
        ("&#x0;", "?"),
        ("&#0;", "????"),
        (">", ">"),
        ("é", "é"),
        ("\x7f", "?"),
    ],
)
def test_a_text_in_the_tree_is_read_as_xml(fake_run: Any, written: str, read: str) -> None:
    fake_run.user([{}, {"worker": "a-b"}, {}])
    folder = fake_run.write()
    (folder / "journal.jsonl").unlink()
    edit_lines(folder / "tree.xml", lambda rows: [row.replace("a-b", f"a{written}b") for row in rows])
    read_results(folder)
    assert pl.read_csv(folder / "samples.csv")["worker"][1] == f"a{read}b"


@pytest.mark.parametrize("sign", ["<", "&", "\x00<"])
def test_a_sample_that_is_no_xml_ends_the_tree(fake_run: Any, sign: str) -> None:
    fake_run.user([{}, {}, {}])
    folder = fake_run.write()
    (folder / "journal.jsonl").unlink()
    tree = (folder / "tree.xml").read_text()
    second = tree.index('rm="OK"', tree.index('"index":0'))
    (folder / "tree.xml").write_text(tree[:second] + f'rm="O{sign}K"' + tree[second + len('rm="OK"') :])
    results = read_results(folder)
    assert "damaged" in missing(results)[0]
    assert results.clients.from_tree == 1


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
        ("\x1b[31mred\u009b0m", "?[31mred?0m"),
        ("=\x1b[2J", "'=?[2J"),
    ],
)
def test_what_a_function_answers_is_no_formula_and_no_command(
    fake_run: Any, tmp_path: Path, is_jtl: bool, answered: str, kept: str
) -> None:
    if is_jtl:
        folder = tmp_path
        write_rows(folder, ("worker",), (START_MS, 50, "=label", "200", "OK", "true", "", answered))
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
    assert height(results.samples) == 111
    assert results.clients.bad_lines == Counter({"the journal": 1})


def test_a_line_of_the_journal_is_checked_although_the_tree_has_its_sample(three_users: Any) -> None:
    """A line that is the tree's to the last byte is known; one that only begins like it is not."""
    folder = three_users.write()

    def spoilt(rows: list[str]) -> list[str]:
        samples = [number for number, row in enumerate(rows) if "sample" in row.split(",")[0]]
        broken, repeated = samples[3], samples[5]
        rows[broken] = rows[broken].replace("true", "True")
        return [*rows, rows[repeated]]

    edit_lines(folder / "journal.jsonl", spoilt)
    results = read_results(folder)
    assert height(results.samples) == 111
    assert results.clients.bad_lines == results.clients.twice == Counter({"the journal": 1})
    assert "1 frame of tree.xml is not in the journal" in missing(results)


def test_entities_are_refused(fake_run: Any) -> None:
    fake_run.user([{}])
    folder = fake_run.write()
    bomb = '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;&a;">]>\n'
    edit_lines(folder / "tree.xml", lambda rows: [rows[0], bomb, *rows[1:]])
    results = read_results(folder)
    assert "damaged" in missing(results)[0]
    assert height(results.samples) == 1, "the journal has it"


def test_hosts_are_told_apart(fake_run: Any) -> None:
    for number in range(4):
        fake_run.user([{}] * 5, host=f"slave{number % 2 + 1}")
    folder = fake_run.write()
    (folder / "journal.jsonl").rename(folder / "journal-slave1.jsonl")
    results = read_results(folder)
    assert missing(results) == []
    counts = {"users": 2, "sent": 10, "in_tree": 10, "in_samples": 10}
    assert reconciliation(results) == {"slave1": counts, "slave2": counts}


def test_the_journals_line_is_the_raw_form_of_a_sample(fake_run: Any) -> None:
    """The tree is counted against the journal and not read; a run without a journal has its samples from the tree."""
    fake_run.user([{"rtt_ms": 40.0}, {"rtt_ms": 50.0}])
    folder = fake_run.write()
    edit_lines(folder / "tree.xml", lambda rows: [row.replace('"rtt_ms":50.0', '"rtt_ms":60.0') for row in rows])
    for expected in ([40, 50], [40, 60]):
        results = read_results(folder)
        assert results.samples.select("rtt_ms").collect()["rtt_ms"].to_list() == expected
        (folder / "journal.jsonl").unlink(missing_ok=True)


@pytest.mark.parametrize(
    ("name", "old", "new", "sentence"),
    [
        ("tree.xml", 's="true" lb="frame"', 's="false" lb="frame"', "tree.xml and the journal count different errors"),
        ("samples.jtl", ",true,", ",false,", "samples.jtl has 2 rows labelled frame without error and 0.1 s"),
        ("samples.jtl", ",40,frame", ",1040,frame", "samples.jtl has 3 rows labelled frame without error and 1.1 s"),
    ],
)
def test_errors_and_times_are_counted_against_the_journal(
    fake_run: Any, name: str, old: str, new: str, sentence: str
) -> None:
    fake_run.user([{}, {}, {}])
    folder = fake_run.write()

    def changed(rows: list[str]) -> list[str]:
        number = next(n for n, row in enumerate(rows) if old in row and "frame" in row)
        return [row.replace(old, new) if n == number else row for n, row in enumerate(rows)]

    assert missing(read_results(folder)) == []
    edit_lines(folder / name, changed)
    (told,) = missing(read_results(folder))
    assert told.startswith(sentence)


@pytest.mark.parametrize("most", [0, 30])
def test_samples_that_wait_for_their_users_are_bounded(
    three_users: Any, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """Tree and journal lack different samples of a user: all of them are found, in a long run as in a short one."""
    for n in (4, 6):
        three_users.user([{} for _ in range(n)], end=False)
    three_users.user([{} for _ in range(3)], arrived=False)
    folder = three_users.write()

    def without_some(start: str, end: str) -> Callable[[list[str]], list[str]]:
        def edit(rows: list[str]) -> list[str]:
            text, users = "".join(rows), three_users.users
            for user, index in ((users[0], 4), (users[4], 2)):
                at = text.index(f'"user":"{user.name}","index":{index},')
                first, last = text.rindex(start, 0, at), text.index(end, at) + len(end)
                text = text[:first] + text[last:]
            return text.splitlines(keepends=True)

        return edit

    edit_lines(folder / "tree.xml", without_some("  <sample ", "  </sample>\n"))
    edit_lines(folder / "journal.jsonl", lambda rows: [row for n, row in enumerate(rows) if n not in (20, 50)])
    whole = read_results(folder)
    rows = sorted((folder / "samples.csv").read_text().splitlines())
    monkeypatch.setattr(clients, "BATCH_BYTES", 2000)
    monkeypatch.setattr(clients, "MAX_IN_ORDER", most // 2)
    monkeypatch.setattr(clients, "MAX_WAITING", most)
    results = read_results(folder)
    assert missing(results) == missing(whole)
    assert any(
        "1 frame of tree.xml is not" in text or "2 frames of tree.xml are not" in text for text in missing(whole)
    )
    assert len(rows) == 1 + 111 + 4 + 6 + 3
    assert sorted((folder / "samples.csv").read_text().splitlines()) == rows
    sources = [{name: user.sources for name, user in each.clients.users.items()} for each in (results, whole)]
    assert sources[0] == sources[1]
