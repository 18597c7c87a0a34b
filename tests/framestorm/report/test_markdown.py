"""The outcome as Markdown: the figures of the summary, and texts that cannot break out of their cells."""

import re
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt

from framestorm.model.files import read
from framestorm.model.summary import Summary
from framestorm.report import build
from framestorm.report.markdown import MAX_WARNINGS, markdown_text
from tests.framestorm.results.conftest import START_MS, write_jtl


def summary_of_rows(fake_run: Any, label: str, criteria: list[str], errors: int = 0, **run: Any) -> Summary:
    folder: Path = fake_run.write(has_users=False, label=label, properties={}, ended_ms=START_MS + 60_000, **run)
    rows = [
        {"timeStamp": START_MS + 100 * n, "elapsed": 100 + n % 20, "label": label, "success": str(n >= errors).lower()}
        for n in range(200)
    ]
    write_jtl(folder / "samples.jtl", rows)
    build(folder, criteria)
    return read(folder / "summary.json", Summary)


def rows(text: str) -> list[list[str]]:
    """The cells of each row, as Markdown separates them."""
    return [line.strip("|").replace("\\|", "¦").split("|") for line in text.splitlines() if line.startswith("|")]


def test_it_has_the_verdict_the_criteria_and_a_row_for_each_label(fake_run: Any) -> None:
    summary = summary_of_rows(fake_run, "request", ["p95 > 100 ms", "success < 90 %"], errors=2, title="OCR, nightly")
    text = markdown_text(summary).replace("\u00a0", " ")
    assert text.startswith("## OCR, nightly: failed\n\nFailed: 1 of 2 criteria failed, on 200 requests.")
    assert "| **failed** | p95 \\> 100 ms | 119 ms" in text and "| passed | success \\< 90 % | 99.0 %" in text
    assert "| label | n | errors | median | p95 | p99 | successful |" in text
    (row,) = (each for each in rows(text) if each[0].strip() == "request")
    assert [cell.strip() for cell in row[1:3]] == ["200", "2 (1.0 %)"]
    assert row[3].strip().startswith("110 ms \\[108 ms")
    assert "- warning: " in text


def test_what_is_not_judged_has_its_reason(fake_run: Any) -> None:
    (criterion,) = (summary := summary_of_rows(fake_run, "request", ["ttft_ms p95 > 1 s"])).criteria
    assert criterion.state == "unjudged"
    assert criterion.why.replace("_", "\\_") in markdown_text(summary).partition("not judged")[2]


def test_a_text_shows_just_its_characters(fake_run: Any) -> None:
    label = "a|b <img src=x> [c](d) `e` *f* $x$ ~g~ &lt;"
    text = markdown_text(summary_of_rows(fake_run, label, []))
    widths = {len(each) for each in rows(text) if "¦" in each[0]}
    assert widths == {7}, "the label stays in its cell"
    assert "<img" not in text.replace("\\<", "") and "[c](" not in text.replace("\\[", "").replace("\\]", "")
    assert "\\`e\\` \\*f\\* \\$x\\$ \\~g\\~ \\&lt;" in text


def test_an_address_is_no_link_which_would_show_backslashes(fake_run: Any) -> None:
    """GitHub makes a link of what looks like an address, before it reads the backslashes in it."""
    addresses = "http://198.18.0.7:8080/function/face_blur?a=1&b=~x and www.shop.example/a_b"
    summary = replace(summary_of_rows(fake_run, "request", []), warnings=[f"{addresses} failed."])
    line = markdown_text(summary).splitlines()[-1]
    assert not re.search(r"\w://|www\.", line)
    (paragraph,) = re.findall("<li>(.*)</li>", MarkdownIt("commonmark").render(line))
    assert unescape(paragraph) == f"warning: {addresses} failed."


def test_warnings_that_are_left_out_are_counted(fake_run: Any) -> None:
    summary = summary_of_rows(fake_run, "request", [])
    warnings = [f"w{n}" for n in range(MAX_WARNINGS + 2)]
    *_, last, more = markdown_text(replace(summary, warnings=warnings)).replace("\u00a0", " ").splitlines()
    assert (last, more) == (f"- warning: w{MAX_WARNINGS - 1}", "- … 2 more warnings on the page")


def test_line_ends_do_not_end_a_row(fake_run: Any) -> None:
    text = markdown_text(summary_of_rows(fake_run, "request", [], title="one\ntwo\n# three"))
    assert text.splitlines()[0] == "## one two \\# three: passed"
