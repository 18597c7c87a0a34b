from pathlib import Path
from typing import Any

import pytest

from framestorm.model.files import read
from framestorm.model.summary import Summary
from framestorm.report import build
from tests.framestorm.results.conftest import START_MS, write_jtl, write_resources

FIGURES = ("ttft_ms", "itl_mean_ms", "pieces")
# An answer of 1 s: the first piece, the mean gap, the pieces.
STREAMED, AS_A_WHOLE = (100, 9.1, 100), (999, 0.01, 100)


def summary_of(folder: Path, answers: list[tuple[float, ...]], figures: tuple[str, ...] = FIGURES) -> Summary:
    row = {"elapsed": 1000, "label": "request", "responseCode": "200", "success": "true"}
    rows = [
        {"timeStamp": START_MS + number, **row, **dict(zip(figures, answer, strict=True))}
        for number, answer in enumerate(answers)
    ]
    write_jtl(folder / "samples.jtl", rows, figures)
    (folder / "tree.xml").unlink()
    build(folder)
    return read(folder / "summary.json", Summary)


@pytest.mark.parametrize(
    ("answers", "is_buffered"),
    [
        ([AS_A_WHOLE] * 5, True),
        ([AS_A_WHOLE] * 5 + [STREAMED] * 5, True),
        ([AS_A_WHOLE] * 5 + [STREAMED] * 6, False),
        ([AS_A_WHOLE] * 4, False),  # too few to say so
        ([(999, 0.01, 9)] * 5, False),  # too few pieces
        ([(985, 1.5, 10)] * 5, False),  # a long prompt, and ten tokens one by one
        ([(930, 0.0, 100)] * 5, True),  # a user who ends its time late
        ([(930, 0.5, 100)] * 5, False),  # quick tokens, one by one
        ([(850, 0.01, 100)] * 5, False),  # quick tokens, but the end of the answer came later
        ([STREAMED] * 5, False),
    ],
)
def test_answers_that_come_at_once(fake_run: Any, answers: list[tuple[float, ...]], is_buffered: bool) -> None:
    summary = summary_of(fake_run.write(has_users=False, label="request"), answers)
    assert ("buffered" in summary.doubts) is is_buffered
    assert any("The answers came at once" in each for each in summary.warnings) is is_buffered


def test_the_warning_counts_the_answers(fake_run: Any) -> None:
    folder = fake_run.write(has_users=False, label="request")
    summary = summary_of(folder, [AS_A_WHOLE] * 6 + [STREAMED] * 2 + [(999, 0.01, 2)] * 2)
    (sentence,) = (each for each in summary.warnings if "came at once" in each)
    assert "in 75.0 % of 8 answers of 10 pieces or more" in sentence.replace("\u00a0", " ")


# Beside the others, the pieces that came with the first one. Through a buffer of 40 pieces, and from a function.
IN_PARTS, ALONE = (400, 5.0, 100, 40), (100, 9.1, 100, 1)


@pytest.mark.parametrize(
    ("answers", "is_buffered"),
    [
        ([IN_PARTS] * 5, True),
        ([IN_PARTS] * 5 + [ALONE] * 5, True),
        ([IN_PARTS] * 5 + [ALONE] * 6, False),
        ([IN_PARTS] * 4, False),  # too few to say so
        ([(800, 0.3, 50, 40)] * 5, True),  # the last 10 after 15 ms
        ([(100, 2.0, 100, 10)] * 5, True),
        ([(100, 2.0, 100, 9)] * 5, False),  # a user or a function that got its turn late
        ([(100, 0.1, 100, 12)] * 5, False),  # quick tokens, one by one
        ([(850, 0.01, 100, 100)] * 5, False),  # quick tokens, all within 1 ms
        ([(999, 0.01, 100, 100)] * 3 + [IN_PARTS] * 3 + [ALONE] * 4, True),  # short and long ones
    ],
)
def test_answers_that_come_in_large_parts(fake_run: Any, answers: list[tuple[float, ...]], is_buffered: bool) -> None:
    summary = summary_of(fake_run.write(has_users=False, label="request"), answers, (*FIGURES, "first_pieces"))
    assert ("buffered" in summary.doubts) is is_buffered
    assert any("The answers came in large parts" in each for each in summary.warnings) is is_buffered


def test_the_warning_of_parts_says_how_large_they_were(fake_run: Any) -> None:
    folder = fake_run.write(has_users=False, label="request")
    answers = [IN_PARTS] * 4 + [(400, 5.0, 100, 30)] * 2 + [ALONE] * 2
    (sentence,) = (
        each for each in summary_of(folder, answers, (*FIGURES, "first_pieces")).warnings if "large parts" in each
    )
    shown = sentence.replace("\u00a0", " ")
    assert "in 75.0 % of 8 answers of 10 pieces or more" in shown and "together with others, 40 at a time" in shown
    assert "or the function itself" in shown


def test_where_a_machine_was_saturated_nobody_can_tell(fake_run: Any) -> None:
    folder = fake_run.write(has_users=False, label="request")
    parts = ("generator,45.0,700000000,3,", "host,199.0,700000000,3,")
    write_resources(folder / "resources.csv", {"master": START_MS + 1000}, *parts)
    summary = summary_of(folder, [IN_PARTS] * 5, (*FIGURES, "first_pieces"))
    assert "saturated" in summary.doubts and "buffered" not in summary.doubts


def test_times_to_the_first_token_alone_say_nothing_of_it(fake_run: Any) -> None:
    folder = fake_run.write(has_users=False, label="request")
    assert "buffered" not in summary_of(folder, [(999,)] * 9, ("ttft_ms",)).doubts
