"""A run's raw files as one typed table."""

import csv
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from framestorm.model.run import Record
from framestorm.results.jtl import request_cause, user_cause
from framestorm.results.reading import main_label, read_results
from framestorm.results.table import lengths, read_table, sample_group

HEADER = ("timeStamp", "elapsed", "label", "responseCode", "responseMessage", "success", "failureMessage")


def write_jtl(folder: Path, figures: tuple[str, ...], *rows: tuple[Any, ...]) -> None:
    with (folder / "samples.jtl").open("w", newline="") as file:
        csv.writer(file).writerows([(*HEADER, *figures), *rows])


@pytest.mark.parametrize(
    ("record", "counts", "label"),
    [
        ({}, {}, "sample"),
        ({"label": "task"}, {}, "task"),
        ({"label": "task"}, {"task": 1}, "task"),
        ({"label": "login"}, {"login": 1, "search": 9}, "login"),
        ({"label": "frame"}, {"request": 2, "other": 1}, "request"),
        ({}, {"request": 1, "frame": 5}, "frame"),
        ({}, {"b": 1, "a": 1}, "a"),
    ],
)
def test_the_label_of_the_main_samples(record: dict[str, Any], counts: dict[str, int], label: str) -> None:
    assert main_label(Record(**record), counts) == label


def test_any_column_of_the_plan_is_a_further_figure(tmp_path: Path) -> None:
    figures = ("first_token_ms", "tokens", "cold", "begun_at_ms")
    good = (1000, 50, "chat", 200, "OK", "true", "", "31.5", "7", "true", "999")
    unset = (2000, 60, "chat", 200, "OK", "true", "", "null", "", "cold", "null")
    other = (3000, 5, "login", 200, "OK", "true", "", "null", "null", "null", "null")
    write_jtl(tmp_path, figures, good, unset, other)
    results = read_results(tmp_path)
    assert (results.label, results.samples.height, results.other_labels) == ("chat", 2, {"login": 1})
    assert results.samples["first_token_ms"].to_list() == [31.5, None]
    assert results.samples["cold"].to_list() == [True, None]
    assert lengths(results.samples) == ["handler_ms", "model_ms", "first_token_ms"]
    times = sample_group(results.samples, "chat").samples
    assert times["first_token"].mean().value == 31.5  # type: ignore[union-attr]
    assert times["rtt"].mean().value == 55.0  # type: ignore[union-attr]
    assert not {"tokens", "begun_at"} & set(times)
    written = pl.read_csv(tmp_path / "samples.csv", infer_schema=False)
    assert written.columns[-4:] == ["first_token_ms", "tokens", "cold", "begun_at_ms"]
    assert written["label"].to_list() == ["chat", "chat", "login"]
    assert read_table(tmp_path / "samples.csv")["label"].to_list() == ["chat", "chat", "login"]


def test_a_label_user_without_processes_is_a_label_like_others(tmp_path: Path) -> None:
    write_jtl(tmp_path, (), (1000, 50, "user", 200, "OK", "true", ""))
    (tmp_path / "run.json").write_text('{"format": 2, "plan": "mine.jmx", "has_users": false}')
    results = read_results(tmp_path)
    assert (results.label, results.samples.height, results.users.height) == ("user", 1, 0)


def test_columns_grow_with_the_figures(three_users: Any) -> None:
    """A figure that only some samples have, and late ones, is a column of samples.csv all the same."""
    three_users.users[1].frames[5] |= {"first_token_ms": 12.5, "model_name": 'a,"b"'}
    three_users.users[2].frames[0] |= {"late": True}
    folder = three_users.write()
    results = read_results(folder)
    with (folder / "samples.csv").open(newline="") as file:
        header, *rows = list(csv.reader(file))
    assert header[-3:] == ["first_token_ms", "model_name", "late"]
    assert {len(row) for row in rows} == {len(header)}
    assert [row[-3:] for row in rows if any(row[-3:])] == [["12.5", 'a,"b"', ""], ["", "", "true"]]
    assert results.samples["first_token_ms"].drop_nulls().to_list() == [12.5]
    assert "first_token" in sample_group(results.samples, "frame").samples


@pytest.mark.parametrize(
    ("code", "message", "failure", "cause"),
    [
        ("200", "too-few-faces", "", "too-few-faces"),
        ("200", "OK", "not-json", "not-json"),
        ("status-201", "status-201", "", "status-201"),
        ("201", "status-201", "", "status-201"),
        ("Non HTTP response code: org.apache.http.conn.ConnectTimeoutException", "x", "", "connect-timeout"),
        ("Non HTTP response code: java.net.SocketTimeoutException", "Read timed out", "", "timeout"),
        ("Non HTTP response code: java.net.UnknownHostException", "nowhere", "", "connect"),
        ("Non HTTP response code: java.net.SocketException", "Connection reset", "", "reset"),
        ("503", "Service Unavailable", "", "status-503"),
        ("503", "oops", "", "status-503"),
        ("200", "OK", "Test failed: text expected", "failed-check"),
        ("200", "OK", "", "unknown"),
    ],
)
def test_why_a_request_failed(code: str, message: str, failure: str, cause: str) -> None:
    assert request_cause(code, message, failure) == cause


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
