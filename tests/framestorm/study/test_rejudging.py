"""A study's folder whose study.yml was edited after the runs."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from framestorm.errors import UsageError
from framestorm.study.page.page import build
from tests.framestorm.study.conftest import FakeResult, frames_of

CLAIM = "hypotheses:\n- {name: quick, text: It is quick., claims: [{metric: mean_ms, expect: '< 100'}]}\n"


@pytest.fixture
def edit(fake_study: Any) -> Callable[[Callable[[str], str]], Path]:
    """Make a study, and change its study.yml by a function of the text."""
    folder: Path = fake_study.make(lambda point, repetition: FakeResult(frames_of([10.0, 11.0])), quick=False)

    def edit(change: Callable[[str], str]) -> Path:
        file = folder / "study.yml"
        file.write_text(change(file.read_text()))
        return folder

    return edit


def test_hypotheses_may_be_changed(edit: Callable[..., Path]) -> None:
    folder = edit(lambda text: text)
    settings = (folder / "study.json").read_text()
    build(folder)
    before = json.loads((folder / "summary.json").read_text())
    assert (before["hypotheses"], before["study"]["rejudged"]) == ([], [])
    build(edit(lambda text: text + CLAIM))
    after = json.loads((folder / "summary.json").read_text())
    assert [(hypothesis["name"], hypothesis["verdict"]) for hypothesis in after["hypotheses"]] == [
        ("quick", "confirmed")
    ]
    assert after["study"]["rejudged"] == ["hypotheses"]
    assert after["points"] == before["points"]
    assert "changed after the runs" in (folder / "index.html").read_text()
    assert (folder / "study.json").read_text() == settings, "how the runs were made stays as it was written down"


def test_a_change_of_words_alone_is_none(edit: Callable[..., Path]) -> None:
    folder = edit(lambda text: f"# A remark.\n{text}")
    build(folder)
    assert json.loads((folder / "summary.json").read_text())["study"]["rejudged"] == []


@pytest.mark.parametrize(
    ("was", "becomes", "words"),
    [
        ("run_s: 1", "run_s: 2", r"study\.yml: the existing runs were made before changes in run_s\. Undo them"),
        ("run_s: 1\n", "run_s: 1\n" + CLAIM.replace("mean_ms", "mean_mss"), r"study\.yml:\d+: .*mean_mss"),
        ("run_s: 1\n", "run_s: 1\npublished: theirs.csv\n", r"theirs\.csv is missing"),
    ],
)
def test_what_cannot_be_changed(edit: Callable[..., Path], was: str, becomes: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        build(edit(lambda text: text.replace(was, becomes)))


def test_published_results_that_cannot_be_read_are_said(edit: Callable[..., Path]) -> None:
    folder = edit(lambda text: text + "published: theirs.csv\n")
    (folder / "theirs.csv").write_bytes("users,mean_ms\n1,9 # \N{MICRO SIGN}\n".encode("latin-1"))
    with pytest.raises(UsageError, match=r"theirs\.csv cannot be read: .* save it as CSV in UTF-8"):
        build(folder)
    (folder / "theirs.csv").write_text("users,mean_ms\n1,9\n")
    build(folder)
    assert [row["factors"] for row in json.loads((folder / "summary.json").read_text())["published"]] == [{"users": 1}]
    build(edit(lambda text: text.replace("published: theirs.csv\n", "")))
