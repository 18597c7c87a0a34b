"""What the terminal says after a run."""

import os
import re
import sys
from dataclasses import replace
from typing import Any

import pytest

from framestorm.cli import main
from framestorm.model.criteria import Criterion
from framestorm.model.files import read
from framestorm.model.judgement import Judgement
from framestorm.model.summary import ElementErrors, LabelSummary, Summary, Times, Verdict
from framestorm.report import build
from framestorm.report.terminal import terminal_text
from framestorm.report.trust import elements
from framestorm.run import dashboard
from framestorm.setup import pieces
from tests.framestorm.conftest import summary_of


def blocks(summary: Summary) -> list[list[str]]:
    """The lines by what they are of: verdict and criteria, table, warnings."""
    return [block.splitlines() for block in terminal_text(summary).split("\n\n")]


def label(name: str, n: int = 5, failed: int = 0) -> LabelSummary:
    return LabelSummary(name, n, n - failed, failed, 0, {}, None, None, None, 2.5, {})


def judgement(text: str, state: Any, measured: str = "", why: str = "") -> Judgement:
    criterion = Criterion(text, "frame", "rtt", "p95", ">", 1.0, "ms")
    return Judgement(**vars(criterion), state=state, measured=measured, value=None, bound=None, why=why)


def test_a_run_is_told_by_its_figures(three_users: Any) -> None:
    folder = three_users.write(criteria=["frame p50 > 1 ms", "frame p95 > 30 s", "task n < 5", "user success < 99 %"])
    build(folder)
    summary = read(folder / "summary.json", Summary)
    verdict, table, warnings = blocks(summary)
    p50, *_, users = summary.criteria
    assert verdict[1] == f"failed: frame p50 > 1 ms: measured {p50.measured}".replace("\u00a0", " ")
    assert verdict[2] == "failed: task n < 5: measured 0"
    assert verdict[3] == f"failed: user success < 99 %: measured {users.measured}".replace("\u00a0", " ")
    assert verdict[4:] == ["passed: frame p95 > 30 s: measured 59.7 ms"], "those that passed come last"
    columns, of_users, of_frames, *causes = table
    assert columns.split() == ["label", "n", "errors", "mean", "median", "p95", "p99", "successful"]
    assert of_users.startswith("user ") and of_frames.startswith("frame ")
    assert re.split(r" {2,}", of_frames)[1:3] == ["111", "3 (2.7 %)"]
    assert causes == ["errors by cause:", "  2  status-429", "  1  timeout"]
    texts = [f"warning: {text}" for text in summary.warnings] + [f"note: {text}" for text in summary.notes]
    for line, text in zip(warnings, texts, strict=True):
        assert text.replace("\u00a0", " ").startswith(line) and line.count(". ") == 0
    assert any(line.startswith("note: 1 frame timed out") for line in warnings)


@pytest.mark.parametrize("name", ["01. Login", "Log in. Then pay", "Step A. Login"])
def test_no_sentence_ends_within_a_name(name: str) -> None:
    text = f"7 samples of {name} had the text ${{id}} in place of a value: nothing had defined that variable."
    summary = summary_of(1, labels={name: label(name)}, warnings=[f"{text} Look at the plan."], notes=[])
    assert f"warning: {text}" in terminal_text(summary).splitlines()


def test_no_sentence_ends_within_a_message_of_an_error() -> None:
    failed = ElementErrors("JSR223 PreProcessor 'sign'", 3, "Cannot read key. File is missing", "it was not signed")
    facts = replace(summary_of(1).facts, element_errors=[failed])
    (warning,) = elements.errors(summary := summary_of(1, facts=facts))
    assert f"warning: {warning}" in terminal_text(replace(summary, warnings=[warning])).splitlines()


def test_who_closes_the_output_still_gets_the_exit_status(three_users: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = three_users.write(criteria=["frame p50 > 1 ms"])
    monkeypatch.setattr(pieces, "ensure", lambda _: None)
    monkeypatch.setattr(dashboard, "make_dashboard", lambda _: None)
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w", buffering=1) as closed:
        monkeypatch.setattr(sys, "stdout", closed)
        assert main(["report", str(folder)]) == build(folder).exit_status != 0


def test_one_that_cannot_be_judged_says_why() -> None:
    summary = summary_of(5, criteria=[judgement("task p95 > 1 ms", "unjudged", why="no task was measured")])
    assert blocks(summary)[0][1] == "not judged: task p95 > 1 ms: no task was measured"


def test_a_label_without_end_leaves_what_was_measured_on_the_screen() -> None:
    summary = summary_of(5, criteria=[judgement(f"{'x' * 2**20} p95 > 1 ms", "failed", "7 ms")])
    line = blocks(summary)[0][1]
    assert len(line) < 300 and line.endswith("measured 7 ms")


def test_long_lists_end_with_how_many_more_there_are() -> None:
    summary = summary_of(
        5, criteria=[judgement(f"p{n} > 1 ms", "failed", "2 ms") for n in range(1, 15)],
        labels={f"item-{n}": label(f"item-{n}") for n in range(12)}, warnings=[f"No {n}." for n in range(20)],
    )  # fmt: skip
    verdict, table, warnings = blocks(summary)
    assert (len(verdict), verdict[-1]) == (1 + 12 + 1, "… 2 more criteria on the page")
    assert (len(table), table[-1]) == (1 + 12 + 1, "… 1 more label on the page")
    assert (len(warnings), warnings[-1]) == (8 + 1, "… 12 more warnings on the page")


def test_columns_are_aligned_whatever_labels_are_called() -> None:
    long = "/orders/" + "x" * 80
    _, table = blocks(summary_of(5, labels={"": label(""), long: label(long, 12_345, 1)}))
    assert len({len(line) for line in table}) == 1
    _, (*_, first, second) = blocks(summary_of(5, labels={name: label(name) for name in ("登录", "abcdef")}))
    assert second.index("5") - first.index("5") == 2, "each character of the first takes two columns"
    _, (*_, first, second) = blocks(summary_of(5, labels={name: label(name) for name in ("pay", "pay ")}))
    assert (first.split()[:2], second.split()[:3]) == (["pay", "5"], ['"pay', '"', "5"]), "they look different"
    assert table[2].startswith("(empty) ") and "x… " in table[3]


def test_causes_are_those_of_all_samplers() -> None:
    """The main samples are those of one label here, and a setUp Thread Group failed."""
    failed = replace(label("log in", 1, 1), causes={"status-401": 1})
    parts = {name: replace(failed, label=name, kind=kind) for name, kind in (("all", "sampler"), ("x", "transaction"))}
    durations = {"duration": Times(1, 0, *[None] * 7)}
    users = replace(failed, label="user", causes={"status-401": 1, "exit-1": 1}, times=durations)
    _, table = blocks(summary_of(5, labels={"log in": failed, "user": users, **parts}))
    assert table[-3:] == ["errors by cause:", "  1  status-401", "  1  exit-1"], "a user fails with its sample"
    parts["x"] = replace(parts["x"], causes={"failed-sample": 1, "failed-check: slow": 1})
    assert blocks(summary_of(5, labels={"log in": failed, **parts}))[1][-1] == "  1  failed-check: slow"


def test_text_of_others_can_neither_command_a_terminal_nor_add_a_line() -> None:
    foreign = "\x1b[2Jred\nPass: all is well.\r\u202e"
    frames = replace(label("frame", 5, 5), causes={f"assertion: {foreign}": 5})
    summary = summary_of(
        5, verdict=Verdict("partial", 4, foreign), criteria=[judgement(foreign, "failed", "1")],
        labels={"frame": frames, foreign: label(foreign)}, warnings=[f"slave1 was lost ({foreign})."],
    )  # fmt: skip
    text = terminal_text(summary)
    assert not re.search("[\x00-\x09\x0b-\x1f\u202e]", text)
    assert "[U+001B][2Jred Pass: all is well." in text
    assert not [line for line in text.splitlines() if line.startswith("Pass")]


def test_a_run_that_measured_nothing_has_no_table() -> None:
    nothing = summary_of(0, verdict=Verdict("unjudged", 1, "nothing was measured: port 8080 is taken"))
    assert terminal_text(nothing) == "Not judged: nothing was measured: port 8080 is taken."


def test_criteria_of_many_labels_with_one_outcome_are_one_line() -> None:
    """By default each label has one: those that fail for the same reason would hide the others."""
    names = [f"step {n:02}" for n in range(30)]
    all_failed = [replace(judgement(f'"{name}" success < 100 %', "failed", "0 %"), label=name) for name in names]
    other = replace(judgement("cart success < 100 %", "failed", "97 %"), label="cart")
    unjudged = [
        replace(
            judgement(f"{name} p95 > 1 s", "unjudged", "no samples", f"there is no sample of {name}, so"), label=name
        )
        for name in ("a", "b")
    ]
    summary = summary_of(5, criteria=[*all_failed, other, *unjudged])
    assert blocks(summary)[0][1:] == [
        "failed: success < 100 % of 30 labels (step 00, step 01, step 02, …): measured 0 %",
        "failed: cart success < 100 %: measured 97 %",
        "not judged: p95 > 1 s of 2 labels (a, b): there is no sample of these, so",
    ]
