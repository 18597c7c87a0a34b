"""samples.jtl of any plan: its labels, parts, causes and columns as samples."""

import json
from pathlib import Path

import polars as pl
import pytest

from framestorm.report.junit import junit_xml
from framestorm.report.page import page_html
from framestorm.report.summary import summarise
from framestorm.results import table
from framestorm.results.reading import read_results
from framestorm.results.table import height, read_table, sample_group
from tests.framestorm.results.conftest import START_MS, write_rows


def test_times_by_the_microsecond_where_the_row_has_its_own(tmp_path: Path) -> None:
    row = ("request", 200, "OK", "true", "")
    times = [(0, "461"), (12, "12999"), (13, "12001"), (40, "12001"), (2, "null"), (3, "")]
    write_rows(tmp_path, ("elapsed_us",), *((START_MS, ms, *row, us) for ms, us in times))
    results = read_results(tmp_path)
    assert results.samples.collect()["rtt_ms"].to_list() == [0.461, 12.999, 12.001, 40, 2, 3]
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
    states = {"log in": "passed", "search": "failed", "whole visit": "failed"}
    assert {criterion.label: criterion.state for criterion in defaults} == states, "its samples may have no rows"
    header, *rows = (tmp_path / "samples.jtl").read_text().splitlines()
    kinds = ("sample", "sample", "transaction")
    of_kit = [f"{header},sample_kind", *(f"{row},{kind}" for row, kind in zip(rows, kinds, strict=True))]
    (tmp_path / "samples.jtl").write_text("\n".join([*of_kit, ""]))
    summary = summarise(tmp_path, read_results(tmp_path), None)
    assert {each.label: each.state for each in summary.criteria} == {"log in": "passed", "search": "failed"}
    assert "3 samples" not in summary.verdict.text and "2 samples" in summary.verdict.text
    with (tmp_path / "samples.jtl").open("a") as file:
        message = "Number of samples in transaction : 1, number of failing samples : 0"
        file.write(f'1060,90,whole visit,200,"{message}",false,The operation lasted too long,users 1-1,transaction\n')
    summary = summarise(tmp_path, read_results(tmp_path), None)
    assert {each.label: each.state for each in summary.criteria}["whole visit"] == "failed", (
        "by an assertion of its own"
    )
    assert [*summary.labels["whole visit"].checks] == ["failed-check: The operation lasted too long"]


def test_a_sample_that_never_began_does_not_stretch_the_load(tmp_path: Path) -> None:
    never = (0, 0, "absent class", "", "", "false", "")
    write_rows(tmp_path, (), never, (1000, 50, "a", 200, "OK", "true", ""), never)
    summary = summarise(tmp_path, read_results(tmp_path), None)
    assert summary.labels["absent class"].n == 2
    assert summary.load is not None and summary.load.duration_ms == 50
    write_rows(tmp_path, (), never)
    assert summarise(tmp_path, read_results(tmp_path), None).main.failed == 1, "none began"


def test_any_column_of_the_plan_is_a_further_figure(tmp_path: Path) -> None:
    figures = ("first_token_ms", "tokens", "cold", "begun_at_ms")
    good = (1000, 50, "chat", 200, "OK", "true", "", "31.5", "7", "true", "999")
    unset = (2000, 60, "chat", 200, "OK", "true", "", "null", "", "cold", "null")
    other = (3000, 5, "login", 200, "OK", "true", "", "null", "null", "null", "null")
    write_rows(tmp_path, figures, good, unset, other)
    results = read_results(tmp_path)
    assert (results.label, height(results.samples), list(results.labels)) == ("all", 3, ["chat", "login"])
    ((_, chats),) = results.by_label(["chat"])
    assert chats.select("first_token_ms", "cold").collect().rows() == [(31.5, True), (None, None)]
    assert table.figures(chats) == ["handler_ms", "model_ms", "first_token_ms", "tokens"]
    times = sample_group(chats, "chat").samples
    assert times["first_token"].mean().value == 31.5  # type: ignore[union-attr]
    assert times["rtt"].mean().value == 55.0  # type: ignore[union-attr]
    assert times["tokens"].mean().value == 7 and "begun_at" not in times  # type: ignore[union-attr]
    written = pl.read_csv(tmp_path / "samples.csv", infer_schema=False)
    assert written.columns[-4:] == ["first_token_ms", "tokens", "cold", "begun_at_ms"]
    assert read_table(tmp_path / "samples.csv").collect()["label"].to_list() == ["chat", "chat", "login"]


def test_a_figure_may_be_called_like_a_column_of_the_readers(tmp_path: Path) -> None:
    figures = ("key", "place", "bin", "timed_out", "is_stopped", "good", "line", "t_s", "len")
    rows = [(START_MS + 1000 * n, 50, "a", 200, "OK", "true", "", *[str(n)] * len(figures)) for n in range(3)]
    failed = (START_MS, 50, "a", 500, "no", "false", "", *["9"] * len(figures))
    write_rows(tmp_path, figures, *rows, failed)
    (tmp_path / "run.json").write_text(json.dumps({"format": 2, "state": "stopped", "stopping_ms": START_MS + 9000}))
    label = summarise(tmp_path, read_results(tmp_path), None).main
    means = {name: times.mean.value for name, times in label.figures.items() if times.mean}
    assert means == {name: 1 for name in figures if name != "timed_out"}
    assert label.causes == {"status-500": 1}
    written = pl.read_csv(tmp_path / "samples.csv").select(figures)
    assert written.rows() == [(n,) * len(figures) for n in (0, 1, 2, 9)]


def test_a_label_user_without_processes_is_told_from_users(tmp_path: Path) -> None:
    write_rows(tmp_path, (), (1000, 50, "user", 200, "OK", "true", ""))
    (tmp_path / "run.json").write_text('{"format": 2, "plan": "mine.jmx", "has_users": false}')
    results = read_results(tmp_path)
    assert (results.label, height(results.samples), results.users.height) == ("user (label)", 1, 0)


def test_a_label_all_is_told_from_all_labels(tmp_path: Path) -> None:
    write_rows(tmp_path, (), *((1000, 50, name, 200, "OK", "true", "") for name in ("all", "all", "cart")))
    summary = summarise(tmp_path, read_results(tmp_path), ['"all (label)" n > 2', "all n > 2"])
    assert {name: of.n for name, of in summary.labels.items()} == {"all": 3, "all (label)": 2, "cart": 1}
    assert [each.state for each in summary.criteria] == ["passed", "failed"]


def test_samples_of_jmeters_own_sampler(tmp_path: Path) -> None:
    figures = ("index", "intended_ms", "worker", "handler_ms", "cold", "faces")
    rows = [
        (START_MS, 50, "frame", "200", "OK", "true", "", 0, START_MS, "r1", "40.5", "true", 1),
        (START_MS + 100, 51, "frame", "504", "GATEWAY TIMEOUT", "false", "", 1, START_MS + 90, "", "null", "null", ""),
        (START_MS + 200, 52, "frame", "java.net.SocketTimeoutException", "-", "false", "", 2, "", "r2", "", "", ""),
        (START_MS + 300, 53, "frame", "200", "OK", "false", 'said "no",\nthen more', "", "", "r1", "30", "false", 1),
    ]
    write_rows(tmp_path, figures, *rows)
    samples = read_results(tmp_path).samples.collect()
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
    write_rows(tmp_path, (), (1, 5, "a", 200, "OK", "true", ""), (2, 6, "a", 500, 'a "x",\nb', "false", "c\n\n d"))
    content = (tmp_path / "samples.jtl").read_bytes()
    (tmp_path / "samples.jtl").write_bytes(content[: min(place, len(content) - 1)])
    results = read_results(tmp_path)
    assert results.samples.collect()["rtt_ms"].to_list() == [5.0]
    assert results.jtl.problem == "samples.jtl ends in the middle of a row; the row was left out"


COLUMNS = "timeStamp,elapsed,label,responseCode,responseMessage,threadName,success,failureMessage,bytes,sentBytes"


CLOSED = "exception: SocketException: Socket closed"
WITH_URL = f"{COLUMNS},URL,Latency,Connect"


def test_sub_results_are_not_counted_as_samples(tmp_path: Path) -> None:
    """Rows of redirects and embedded resources follow that of their sample; a sampler may share the label of one."""
    (tmp_path / "samples.jtl").write_text(
        f"{WITH_URL},is_sub_result\n"
        "1000,40,log in,200,OK,t 1-1,true,,300,30,http://h/home,39,2,false\n"
        "1000,10,http://h/login,302,Found,t 1-1,true,,100,10,http://h/login,10,2,true\n"
        "1000,5,search,200,OK,t 1-2,true,,100,10,http://h/search,5,0,false\n"
        "1010,30,http://h/home,200,OK,t 1-1,true,,200,20,http://h/home,29,0,true\n"
        "1040,20,page,200,OK,t 1-1,true,,100,10,http://h/page,9,0,false\n"
        "1045,10,page-0,200,OK,t 1-1,true,,50,5,http://h/logo,4,0,true\n"
        "1045,10,script,200,OK,t 1-1,true,,50,5,http://h/logo,4,0,true\n"
        "1060,20,http://h/named,200,OK,t 1-1,true,,100,10,http://h/named,5,0,false\n"
        "1090,0,search-7,200,OK,t 1-2,true,,100,10,http://h/search/7,5,0,false\n"
        "1100,7,script,200,OK,t 1-2,true,,0,0,null,0,0,false\n"
    )
    results = read_results(tmp_path)
    summary = summarise(tmp_path, results, None)
    parts = {name for name, of in summary.labels.items() if of.kind == "sub-result"}
    assert parts == {"http://h/login", "http://h/home", "page-0"}
    assert (summary.main.n, summary.labels["script"].n) == (6, 1)
    assert {criterion.label for criterion in summary.criteria}.isdisjoint(parts)
    assert summary.main.received_bytes_per_s == pytest.approx(700 / 0.107)
    assert summary.labels["log in"].completed_per_s == pytest.approx(1 / 0.04)
    assert [(of.in_samples, of.shown) for of in summary.hosts] == [(6, 6)]
    assert not any("sub-results" in sentence for sentence in summary.warnings)
    (tmp_path / "samples.jtl").unlink()
    assert [(of.in_samples, of.shown) for of in summarise(tmp_path, read_results(tmp_path), None).hosts] == [(None, 6)]
    latency, connect = (summary.main.times[name] for name in ("latency", "connect"))
    assert (latency.n, connect.n) == (5, 5), "a script has neither"
    assert latency.mean and latency.mean.value == 12.6 and latency.are_whole
    assert "13\u00a0ms" in page_html(summary) and "12.6\u00a0ms" not in page_html(summary)
    assert summary.labels["log in"].times["latency"].max.value == 39  # type: ignore[union-attr]


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
    assert any("50 other labels are counted together" in sentence for sentence in summary.notes)


def test_many_causes_are_bounded(tmp_path: Path) -> None:
    rows = [f"1000,9,page,200,OK,t 1-1,false,no {'x' * n},1,1" for n in range(50)]
    rows += ["1000,9,page,503,Sorry,t 1-1,false,,1,1"]
    (tmp_path / "samples.jtl").write_text("\n".join([COLUMNS, *rows, ""]))
    page = summarise(tmp_path, read_results(tmp_path), None).labels["page"]
    assert (len(page.causes), page.causes["status-503"], page.further_causes) == (21, 1, {"failed-check": 30})
    assert sum(page.causes.values()) + sum(page.further_causes.values()) == page.failed == 51


def test_many_causes_of_a_client_are_bounded() -> None:
    own = ["timeout", "exit-3", *(f"order {n} failed" for n in range(50)), *(f"order-{n}: no" for n in range(50))]
    shown, rest = table.causes(pl.LazyFrame({"ok": [False] * 102, "cause": own}))
    assert shown.keys() >= {"timeout", "exit-3"}
    assert (len(shown), sum(shown.values()) + sum(rest.values()), list(rest)) == (21, 102, ["other causes"])


def test_columns_that_were_not_saved_are_named(tmp_path: Path) -> None:
    (tmp_path / "samples.jtl").write_text("timeStamp,elapsed,label,success\n1000,5,page,true\n1010,5,page,false\n")
    summary = summarise(tmp_path, read_results(tmp_path), None)
    assert "Latency" in summary.facts.absent_columns and "bytes" in summary.facts.absent_columns
    assert (summary.main.received_bytes_per_s, summary.main.causes) == (None, {"unknown": 1})
    assert ["is_sub_result" in sentence for sentence in summary.warnings if "lacks" in sentence] == [False]
    assert any("sub-results" in sentence for sentence in summary.warnings)


@pytest.mark.parametrize(
    ("state", "cut", "transaction"),
    [("stopped", "stopped", "stopped"), ("complete", "stopped", "stopped"), ("failed", CLOSED, "failed-sample")],
)
def test_what_a_stop_cuts_off_is_no_error_of_the_function(
    tmp_path: Path, state: str, cut: str, transaction: str
) -> None:
    """Of a run that ends for another reason, such as a target that died, errors are what they say.

    One that is complete was stopped by its plan.
    """
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
    stopping_ms = None if state == "complete" else 2000.0
    (tmp_path / "run.json").write_text(json.dumps({"format": 2, "state": state, "stopping_ms": stopping_ms}))
    if state == "complete":
        stop = "INFO o.a.j.e.StandardJMeterEngine: Stop Test{} asked for at {} by thread: t 1-1\n"
        (tmp_path / "jmeter.log").write_text(stop.format("", 900) + stop.format(" Now", 2000))
    results = read_results(tmp_path)
    aborted = "stopped" if cut == "stopped" else "exception: RequestAbortedException: Request aborted"
    samples = {name: of.collect() for name, of in results.by_label(rows)}
    found = {name: of.select("cause", "timed_out").row(0) for name, of in samples.items()}
    assert found == {
        "before": (CLOSED, False), "cut": (cut, False), "aborted": (aborted, False),
        "flow": (transaction, False), "both": ("failed-sample", False),
        "failed": ("status-500", False), "answered": (None, False),
    }  # fmt: skip
    assert samples["cut"]["censored"].to_list() == [cut == "stopped"]


def test_rows_of_users_and_their_threads_without_a_tree(tmp_path: Path) -> None:
    """JMeter counts threads as a sample ends; the status of a process is no status of HTTP."""
    (tmp_path / "samples.jtl").write_text(
        f"{COLUMNS},allThreads\n"
        "1000,1500,user,3,,t 1-1,false,,0,0,4\n"
        "1200,1400,user,500,Process timeout,t 1-2,false,,0,0,6\n"
        "1100,950,user,0,OK,t 1-3,true,,0,0,5\n"
        "2000,1000,user,500,Cannot run program,t 1-4,false,,0,0,2\n"
    )
    results = read_results(tmp_path)
    found = results.users.select("cause", "censored", "elapsed_ms").rows()
    assert found == [
        ("exit-3", False, 1500), ("user-timeout", True, 1400), (None, False, 950), ("not-started", False, 1000)
    ]  # fmt: skip
    threads = results.jtl.threads.sort("time_s").select("time_s", "threads").rows()
    assert threads == [(2, 6), (3, 2)]


@pytest.mark.parametrize("value", ["NaN", "inf", "-1e18", "9" * 30])
@pytest.mark.parametrize("field", range(5))
def test_numbers_that_cannot_be_are_counted_or_said(tmp_path: Path, field: int, value: str) -> None:
    good: list[list[object]] = [[START_MS + each, 5, each, START_MS, 3] for each in range(12)]
    bad = [*good[0][:field], value, *good[0][field + 1 :]]
    rows = ((start_ms, ms, "a", 200, "OK", "true", "", *more) for start_ms, ms, *more in [*good, bad])
    write_rows(tmp_path, ("index", "intended_ms", "handler_ms"), *rows)
    results = read_results(tmp_path)
    summary = summarise(tmp_path, results, None)
    assert page_html(summary) and junit_xml(summary)
    assert summary.main.n + results.jtl.bad_rows == 13
    assert results.jtl.bad_rows == (field < 2 and value in ("NaN", "inf"))


OF_TWO = "Number of samples in transaction : 2, number of failing samples : "


def test_what_a_row_is_comes_from_jmeter_and_not_from_its_message(tmp_path: Path) -> None:
    """A script can write any message, and an assertion can change that of a transaction."""
    rows = [
        (1000, 10, "search", 200, f"{OF_TWO}0", "true", "", "sample"),
        (1000, 5, "part", 200, "OK", "true", "", "sub-result"),
        (1000, 20, "search", 200, f"{OF_TWO}0", "true", "", "transaction"),
        (1020, 30, "visit", 200, "mine", "false", "too slow", "transaction"),
        (1020, 30, "visit", 503, "no", "false", "", "transaction"), (1020, 30, "pay", 503, "no", "false", "", "sample"),
        (1060, 9, "visit", "", "", "true", "", "cut-transaction"), (1060, 9, "pay", 200, "OK", "true", "", "sample"),
    ]  # fmt: skip
    write_rows(tmp_path, ("sample_kind",), *rows)
    results = read_results(tmp_path)
    summary = summarise(tmp_path, results, ['"search (transaction)" p95 > 19 ms', "all n > 2"])
    assert {name: (of.n, of.failed, of.kind) for name, of in summary.labels.items()} == {
        "all": (3, 1, "sampler"), "search": (1, 0, "sampler"), "pay": (2, 1, "sampler"), "part": (1, 0, "sub-result"),
        "search (transaction)": (1, 0, "transaction"), "visit": (2, 2, "transaction"),
    }  # fmt: skip
    assert summary.labels["visit"].causes == {"failed-check: too slow": 1, "failed-sample": 1}
    assert [each.state for each in summary.criteria] == ["failed", "failed"]
    assert summary.facts.cut_transactions == {"visit": 1} and height(results.every) == 7
    assert "1 transaction (visit) was cut off" in " ".join(summary.warnings)


def test_in_a_file_of_plain_jmeter_a_transaction_has_its_message_and_no_url(tmp_path: Path) -> None:
    urls = ("http://127.0.0.1/", "null", "null")
    texts = (f"{OF_TWO}0", f"{OF_TWO}0", "Number of samples in transaction : 2")
    rows = [(1000, 10, "a", 200, text, "true", "", url) for text, url in zip(texts, urls, strict=True)]
    write_rows(tmp_path, ("URL",), *rows)
    labels = summarise(tmp_path, read_results(tmp_path), None).labels
    assert {name: (of.n, of.kind) for name, of in labels.items()} == {
        "a": (2, "sampler"), "a (transaction)": (1, "transaction")
    }  # fmt: skip
