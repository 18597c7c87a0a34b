"""The page and the sentences of an audit."""

import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from framestorm.audit import page
from framestorm.judge.accuracy import judge_accuracy
from framestorm.judge.caching import judge_caching
from framestorm.model.function_audit import FunctionAudit, RepeatedInput


def audited(hits: int = 0, ratio: float = 1.0, lost: int = 0, answered: int = 100) -> FunctionAudit:
    """An audit of 100 inputs: repeats take `ratio` of the time, `hits` a tenth; `lost` are wrong under load."""
    pairs = [
        RepeatedInput(
            n + 1, n % 2 * 5, 100 + n, (100 + n) * (0.1 if n < hits else ratio) * (1.01 if n % 4 > 1 else 0.99)
        )
        for n in range(100)
    ]
    load = {n: "expect-not-met" if n < lost else "" if n < answered else "timeout" for n in range(100)}
    return FunctionAudit(
        "jmx/requests.jmx", ("./run.sh", "audit"), "body=@x.jsonl", [*range(1, 101)], 0, [], 5, 1, 8, 0.0,
        state="complete", caching=judge_caching(pairs),
        accuracy=judge_accuracy(dict.fromkeys(range(100), ""), load, is_status_only=False),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("record", "status", "words"),
    [
        (audited(), 0, ["No cache was seen: 100 repeated inputs", "as many are right with 8 users as with one"]),
        (audited(ratio=0.5), 3, ["It caches: the second answer to the same input takes 50", "No loss of accuracy"]),
        (audited(hits=12), 3, ["It caches some answers: 12 of 100 inputs were answered more than 2 times as fast"]),
        (audited(lost=20), 3, ["It is less accurate under load.", "20 fewer are right", "of -20.0 percentage"]),
        (audited(answered=10), 4, ["Accuracy under load was not judged: with 8 users only 10 inputs", "(timeout: 90)"]),
    ],
)  # fmt: skip
def test_the_outcome_in_words_and_as_exit_status(record: FunctionAudit, status: int, words: list[str]) -> None:
    text = page.sentence(record).replace("\N{NO-BREAK SPACE}", " ")
    assert [each for each in words if each not in text] == [], text
    assert page.exit_status(record) == status


@pytest.mark.parametrize(
    ("record", "skipped"),
    [
        (audited(), []),
        (audited(answered=10), ["no loss of accuracy under load"]),
        (replace(audited(), accuracy=None), ["no loss of accuracy under load"]),
        (
            replace(audited(), caching=None, accuracy=None, state="stopped"),
            ["no cache is seen", "no loss of accuracy under load"],
        ),
    ],
)
def test_what_was_not_judged_is_no_case_that_passed(record: FunctionAudit, skipped: list[str]) -> None:
    cases = ET.fromstring(page.junit_xml(record)).iter("testcase")  # noqa: S314 - made by ourselves
    assert [case.get("name") for case in cases if case.find("skipped") is not None] == skipped


def test_each_cause_stands_beside_what_it_is_alone(tmp_path: Path, draws: Callable[[Path, int], None]) -> None:
    page.write(tmp_path, audited(lost=20, answered=90))
    html = (tmp_path / "index.html").read_text()
    assert "Less accurate under load" in html
    for cause, n, word in (("expect-not-met", 20, "wrong"), ("timeout", 10, "no answer, counted apart")):
        row = html.partition(f'<th scope="row">{cause}</th>')[2].partition("</tr>")[0]
        assert f'<td class="number">0</td><td class="number">{n}</td><td>{word}</td>' in row
    draws(tmp_path, 1)
