"""What JMeter counted by itself against the rows: those that are lost, doubled or timed wrongly, or agree."""

from collections.abc import Callable
from typing import Any

import pytest

from framestorm.model.files import read
from framestorm.model.summary import Facts, SelfCheck, Summary
from framestorm.report import build
from framestorm.report.trust.self_check import agreement
from tests.framestorm.conftest import summary_of
from tests.framestorm.results.conftest import START_MS, write_jtl

Rows = list[dict[str, Any]]
# Two users, who wait for their answer all the time.
N, ELAPSED_MS = 200, 100


def rows_of(host: str = "slave1") -> Rows:
    return [
        {"timeStamp": at_ms, "elapsed": ELAPSED_MS, "label": "request", "success": "true", "Hostname": host}
        for at_ms in range(START_MS, START_MS + ELAPSED_MS * N // 2, ELAPSED_MS)
        for _ in range(2)
    ]


def line(busy_ms: float = N * ELAPSED_MS, span_ms: float = N * ELAPSED_MS / 2, unknown: int = 0) -> str:
    message = f'"samples":{N},"busy_us":{busy_ms * 1000:.0f},"span_us":{span_ms * 1000:.0f},"unknown":{unknown}'
    return f'2026-09-20 12:00:10,000 INFO f.SelfCheck: {{"type":"self_check",{message}}}\n'


def summary_of_rows(fake_run: Any, rows: Rows, *logs: str) -> Summary:
    folder = fake_run.write(has_users=False, label="request", properties={}, ended_ms=START_MS + 60_000)
    write_jtl(folder / "samples.jtl", rows)
    for number, log in enumerate(logs, 1):
        (folder / f"jmeter-server-slave{number}.log").write_text(log)
    build(folder)
    return read(folder / "summary.json", Summary)


def shifted(rows: Rows, by_ms: int) -> Rows:
    """Return the rows of a run in whose middle the clock was set."""
    return [*rows[: N // 2], *({**row, "timeStamp": row["timeStamp"] + by_ms} for row in rows[N // 2 :])]


def stretched(rows: Rows, factor: float) -> Rows:
    return [{**row, "elapsed": round(factor * row["elapsed"])} for row in rows]


@pytest.mark.parametrize(
    ("change", "missing", "is_wrong"),
    [
        (lambda rows: rows, "", False),
        (lambda rows: rows[:-20], "JMeter counted 200 samples, and samples.jtl has 20 rows less", False),
        (lambda rows: [*rows, rows[-1]], "JMeter counted 200 samples, and samples.jtl has 1 row more", False),
        (lambda rows: shifted(rows, 2000), "", True),
        (lambda rows: shifted(rows, -2000), "", True),
        (lambda rows: stretched(rows, 0.9), "", True),
        (lambda rows: stretched(rows, 1.1), "", True),
        (lambda rows: stretched(rows, 0.97), "", False),
    ],
)
def test_rows_that_are_not_those_of_what_was_sent(
    fake_run: Any, change: Callable[[Rows], Rows], missing: str, is_wrong: bool
) -> None:
    summary = summary_of_rows(fake_run, change(rows_of()), line())
    self_check = summary.facts.self_check
    assert self_check is not None and self_check.in_progress == 2
    said = [sentence for sentence in summary.missing if sentence.startswith("JMeter counted")]
    assert len(said) == bool(missing) and (not missing or said[0].startswith(missing))
    assert ("self_check" in summary.doubts) == is_wrong
    assert any(note.startswith("Self-check: all 200 samples") for note in summary.notes) == (
        not missing and not is_wrong
    )


def test_samples_that_could_not_be_written_are_told_with_the_error(fake_run: Any) -> None:
    head = "2026-09-20 12:00:09,000 ERROR f.Rows: cannot write to /run/samples.jtl\njava.io.IOException: "
    log = f"{head}Disk quota exceeded\n\tat a.B(B:7)\n" * 2 + f"{head}Stale file handle\n"
    missing = summary_of_rows(fake_run, rows_of()[:-3], log + line()).missing
    assert "2 samples could not be written to samples.jtl: Disk quota exceeded" in missing
    assert "1 sample could not be written to samples.jtl: Stale file handle" in missing


@pytest.mark.parametrize(("elapsed_ms", "is_wrong"), [(0, False), (2, False), (40, True)])
def test_a_few_samples_are_not_wrong_because_the_first_ones_load_classes(
    fake_run: Any, elapsed_ms: int, is_wrong: bool
) -> None:
    rows = [{**row, "elapsed": elapsed_ms} for row in rows_of()[:6]]
    # By its row, each sample took 1 ms less than by JMeter's clock, or half of it.
    log = line(busy_ms=6 * max(elapsed_ms + 1, 2 * elapsed_ms), span_ms=3 * ELAPSED_MS)
    summary = summary_of_rows(fake_run, rows, log.replace(f'"samples":{N}', '"samples":6'))
    self_check = summary.facts.self_check
    assert self_check is not None and (self_check.counted, self_check.rows) == (6, 6)
    assert ("self_check" in summary.doubts) == is_wrong


def test_a_short_answer_is_not_wrong_because_a_sampler_works_beside(fake_run: Any) -> None:
    rows = [{**row, "elapsed": 1} for row in rows_of()]
    summary = summary_of_rows(fake_run, rows, line(busy_ms=N * 1.3))
    self_check = summary.facts.self_check
    assert self_check is not None and self_check.residual is not None and self_check.residual > 0.2
    assert self_check.apart_ms == pytest.approx(0.3, abs=0.05)
    assert "self_check" not in summary.doubts


def test_slaves_are_added_up_each_in_its_own_time(fake_run: Any) -> None:
    later = [{**row, "timeStamp": row["timeStamp"] + 30_000} for row in rows_of("slave2")]
    self_check = summary_of_rows(fake_run, [*rows_of(), *later], line(), line()).facts.self_check
    assert self_check is not None and (self_check.counted, self_check.rows) == (2 * N, 2 * N)
    assert (self_check.in_progress, self_check.of_rows) == (4, pytest.approx(4))


def test_without_the_count_of_each_host_nothing_is_compared(fake_run: Any) -> None:
    rows = [*rows_of(), *rows_of("slave2")]
    summary = summary_of_rows(fake_run, rows, line())
    assert summary.facts.self_check is None and not summary.missing


@pytest.mark.parametrize(
    ("n", "text"),
    [(1, "the 1 sample that JMeter counted has a row"), (2, "all 2 samples that JMeter counted have a row")],
)
def test_one_sample_is_told_as_one(n: int, text: str) -> None:
    summary = summary_of(facts=Facts(0, 0, None, self_check=SelfCheck(n, n)))
    assert agreement(summary) == [f"Self-check: {text}; how long they took cannot be checked."]


def test_times_that_are_not_known_are_not_compared(fake_run: Any) -> None:
    self_check = summary_of_rows(fake_run, rows_of(), line(unknown=3)).facts.self_check
    assert self_check is not None and (self_check.counted, self_check.residual) == (N, None)
