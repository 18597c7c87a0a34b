"""The whole report of a run: verdict, figures, criteria, files."""

import json
import os
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from framestorm.model.criteria import CriteriaError
from framestorm.model.files import read
from framestorm.model.summary import Summary
from framestorm.report import build
from framestorm.results.reading import ReportError
from tests.framestorm.results.conftest import START_MS, write_jtl

MADE = ("samples.csv", "summary.json", "junit.xml", "index.html")


def summary(folder: Path) -> Summary:
    return read(folder / "summary.json", Summary)


def test_a_good_run_passes(fake_run: Any) -> None:
    for _ in range(2):
        fake_run.user([{"rtt_ms": 40.0 + index} for index in range(10)])
    outcome = build(fake_run.write())
    assert (outcome.word, outcome.exit_status) == ("pass", 0)
    assert outcome.line == "Passed: both criteria passed, on 20 frames of 2 users."
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


@pytest.mark.parametrize("given", [None, ["frame p95 > 10 ms"], ["frame p95 > 10 s", "n < 5"]])
def test_criteria_come_from_the_call_or_from_the_run(fake_run: Any, given: list[str] | None) -> None:
    fake_run.user([{}] * 10)
    folder = fake_run.write(criteria=["frame p50 > 39 ms"])
    assert build(folder, given).exit_status == (3 if given is None or "10 ms" in given[0] else 0)
    expected = given or ["frame p50 > 39 ms"]
    assert [criterion.text for criterion in summary(folder).criteria] == expected


@pytest.mark.parametrize(
    ("name", "rows"),
    {
        "resources.csv": "time_ms,host,part,cpu_percent,rss_bytes\n1,h,host,50.0,1000\n1,h,host,50.0,10",
        "metrics.csv": "time_ms,metric,function,detail,value\n1,replicas_ready,f,,1\n1,replicas_rea\n",
        "scrapes.csv": "time_ms,url,kind,series,value\n1,http://h,up,up,1\n1,http://h,gauge,queue\n",
        "calibration.csv": "part,round,route,without,time_us,error\nfunction,1,a,,50,\nfunction,2,a\n",
    }.items(),
)
def test_a_torn_row_beside_the_samples_is_said_and_a_report_is_made(name: str, rows: str, fake_run: Any) -> None:
    fake_run.user([{}] * 10)
    folder = fake_run.write()
    (folder / name).write_text(rows)
    assert build(folder).word == "pass"
    assert f"{name} is damaged: 1 row of it cannot be read." in summary(folder).warnings


@pytest.mark.parametrize("started_ms", [1e18, -5.0])
def test_a_start_that_cannot_be_is_not_known(fake_run: Any, started_ms: float) -> None:
    fake_run.user([{}])
    folder = fake_run.write(started_ms=started_ms)
    build(folder)
    assert "not known to " in (folder / "index.html").read_text()
    assert "timestamp" not in (folder / "junit.xml").read_text()


@pytest.mark.parametrize("name", ["jmeter.log", "samples.jtl", "index.html"])
def test_a_file_that_cannot_be_read_or_written_is_named(fake_run: Any, name: str) -> None:
    fake_run.user([{}])
    folder = fake_run.write()
    (folder / name).unlink(missing_ok=True)
    (folder / name).mkdir()
    with pytest.raises(ReportError, match=f"cannot be made: .*{name}"):
        build(folder)


def test_a_wrong_criterion_writes_nothing(fake_run: Any) -> None:
    fake_run.user([{}])
    with pytest.raises(CriteriaError):
        build(fake_run.write(), ["frame p95 > 2 parsecs"])
    assert not any((fake_run.folder / name).exists() for name in MADE)


@pytest.mark.parametrize(
    ("due", "dropped", "rate_per_s", "lost"),
    [(10, 0, 10.0, 0), (10, None, 10 / 5.9, 0), (100, 90, 10 / 5.9, 0), (100, 87, 10 / 5.9, 3)],
)
def test_throughput_at_a_rate(tmp_path: Path, due: int, dropped: int | None, rate_per_s: float, lost: int) -> None:
    """Ten answers, each after 5 s, to requests 100 ms apart: the rate of arrivals only if none of these was dropped."""
    rows = [
        {"timeStamp": START_MS + 100 * i, "elapsed": 5000, "label": "request", "responseCode": "200",
         "responseMessage": "OK", "success": "true", "threadName": "arrivals 1-1"}
        for i in range(10)
    ]  # fmt: skip
    write_jtl(tmp_path / "samples.jtl", rows)
    run = {"format": 2, "state": "complete", "plan": "jmx/request-rate.jmx", "label": "request"}
    (tmp_path / "run.json").write_text(json.dumps(run | {"properties": {"rate_per_s": "10"}}))
    if dropped is not None:
        (tmp_path / "jmeter.log").write_text(f'INFO arrival: {{"type":"arrivals","due":{due},"dropped":{dropped}}}\n')
    build(tmp_path)
    main = summary(tmp_path).main
    assert (main.rate_per_s, main.completed_per_s) == pytest.approx((rate_per_s, rate_per_s))
    missing = [f"{lost} requests of {due} that were due have no row"] if lost else []
    assert summary(tmp_path).missing == missing


@pytest.mark.parametrize("late", [0, 1])
def test_requests_that_a_stop_rule_cut_off_are_no_lost_ones(tmp_path: Path, late: int) -> None:
    """The last three of twenty, and one that came after the end of the test, and so has no row."""
    interrupted = "Non HTTP response code: java.net.SocketException"
    rows = [
        {"timeStamp": START_MS + 100 * i, "elapsed": 50 if i < 17 else 600, "label": "request",
         "responseCode": "200" if i < 17 else interrupted, "responseMessage": "OK" if i < 17 else "Socket closed",
         "success": str(i < 17).lower(), "threadName": "arrivals 1-1"}
        for i in range(20)
    ]  # fmt: skip
    write_jtl(tmp_path / "samples.jtl", rows)
    decision = ("option", "text", "at_ms", "measured", "label", "value")
    values = ("--stop-when", "p95 within 5 %", START_MS + 2000, "50 ms", "request", 50.0)
    run = {"format": 2, "state": "complete", "plan": "jmx/request-rate.jmx", "label": "request"}
    run |= {"stopping_ms": START_MS + 2000, "decision": dict(zip(decision, values, strict=True))}
    (tmp_path / "run.json").write_text(json.dumps(run | {"properties": {"rate_per_s": "10"}}))
    lost = "WARN f.Rows: a sample came after the end of the test and is lost: request\n"
    arrivals = f'INFO arrival: {{"type":"arrivals","due":{20 + late},"dropped":0}}\n'
    (tmp_path / "jmeter.log").write_text(arrivals + late * lost)
    assert build(tmp_path).word == "pass"
    made = summary(tmp_path)
    assert (made.main.n, made.facts.cut_off, made.missing) == (17, 3, [])


@pytest.mark.parametrize("other", ["request", "set up"])
def test_all_are_the_samples_of_every_label_of_one_or_more(tmp_path: Path, other: str) -> None:
    rows = [
        {"timeStamp": START_MS + 100 * i, "elapsed": 50, "label": other if i % 2 else "request", "responseCode": "200",
         "responseMessage": "OK", "success": "true"}
        for i in range(10)
    ]  # fmt: skip
    write_jtl(tmp_path / "samples.jtl", rows)
    run = {"format": 2, "state": "complete", "plan": "own.jmx", "label": "request"}
    (tmp_path / "run.json").write_text(json.dumps(run))
    assert build(tmp_path, ["all p95 > 1 s", "all n < 10"]).word == "pass"
    assert [each.value for each in summary(tmp_path).criteria] == [50, 10]
    assert set(summary(tmp_path).labels) == {"request", other}


def test_without_a_cold_start_all_samples_are_warm(fake_run: Any) -> None:
    fake_run.user([{"rtt_ms": 40.0}] * 10)
    folder = fake_run.write()
    assert build(folder, ["frame warm p95 > 1 s", "frame warm max < 40 ms"]).word == "pass"
    assert "warm" not in summary(folder).main.times, "they would be shown twice"
    assert build(folder, ["frame cold p95 > 1 s"]).word == "fail"


@pytest.mark.parametrize(("limit", "too_slow"), [("10", False), ("50", True)])
def test_requests_are_spoken_of_by_their_own_word(tmp_path: Path, limit: str, too_slow: bool) -> None:
    """80 slow, then 20 fast ones at a fixed rate, of which JMeter's own default reports a median of 10 ms."""
    rows = [
        {"timeStamp": START_MS + 100 * i, "elapsed": 1000 if i < 80 else 10, "label": "request",
         "responseCode": "500" if i == 7 else "200", "responseMessage": "status-500" if i == 7 else "OK",
         "success": str(i != 7).lower(), "threadName": "arrivals 1-1"}
        for i in range(100)
    ]  # fmt: skip
    write_jtl(tmp_path / "samples.jtl", rows)
    run = {"format": 2, "state": "complete", "plan": "jmx/request-rate.jmx", "label": "request"}
    properties = {"rate_per_s": "10", "concurrency_limit": limit, "url": "http://127.0.0.1:1/"}
    (tmp_path / "run.json").write_text(json.dumps(run | {"properties": properties}))
    (tmp_path / "jmeter.log").write_text(
        'INFO next arrival: {"type":"arrivals","due":103,"dropped":3}\n'
        'INFO f.Stalls: {"type":"stalls","noticed_from_ms":10}\n'
        f'INFO f.Stalls: {{"type":"stall","start_ms":{START_MS + 9500},"longest_ms":400,"gc_ms":2,"compiler_ms":1}}\n'
    )
    assert build(tmp_path).exit_status == 3
    made = summary(tmp_path)
    assert (made.users, made.main.n, made.main.causes) == (None, 100, {"status-500": 1})
    assert made.main.times["rtt"].p50.value == 1000.0
    states = {criterion.text: criterion.state for criterion in made.criteria}
    # Threads that do not wait for answers are no sign of a slow function.
    assert states == {"request success < 100 %": "failed", "overload": "passed" if too_slow else "failed"}
    assert made.verdict.text.endswith("on 100 requests")
    (dropped,) = (warning for warning in made.warnings if warning.startswith("3 of 103 arrivals were dropped"))
    assert ("the load generator, not the function, was too slow" in dropped) == too_slow
    assert made.missing == []
    assert ([stall.at_s for stall in made.facts.stalls], made.facts.during_stalls) == ([9], 10)
    (stalled,) = (warning for warning in made.warnings if "JMeter paused during 1 of the " in warning)
    assert "10 requests (10.0\u00a0%) were in progress then" in stalled
    assert any("with only 99 request times, p99 is just the largest" in warning for warning in made.warnings)
    assert [mark.at_s for mark in made.series.marks] == [9]
    page = (tmp_path / "index.html").read_text()
    assert "<dt>Median response time</dt><dd>1.00\u00a0s<" in page
    text = re.sub(r"<(script|style).*?</\1>|<[^>]*>", " ", page, flags=re.DOTALL)
    assert "frame" not in text.lower().replace("framestorm", "")
    # Nothing that the run has none of is ever passed.
    for criteria, words in (
        (["p95 > 2 s", "request success < 98 %"], "both criteria"),
        (["p95 > 2 s"], "the criterion"),
    ):
        assert build(tmp_path, criteria, accepts_overload=True).exit_status == 0
        assert summary(tmp_path).verdict.text.startswith(f"{words} passed")
    assert build(tmp_path, ["frame p95 > 1 s"]).exit_status == 3
    assert summary(tmp_path).criteria[0].why.startswith("there is no sample of frame")


def test_stopped_run_tells_its_criteria_too(three_users: Any) -> None:
    folder = three_users.write(state="stopped", reason="Ctrl-C", criteria=["frame p95 > 1 ms"])
    outcome = build(folder)
    assert (outcome.word, outcome.exit_status) == ("partial", 4)
    assert "stopped early: Ctrl-C" in outcome.text
    assert "the criterion failed" in outcome.text
    page = (folder / "index.html").read_text()
    assert 'class="verdict partial"' in page
    assert page.count("stopped early: Ctrl-C") == 1


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(ReportError, match="is not the folder of a run"):
        build(tmp_path)


def test_nothing_measured_is_no_pass(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(json.dumps({"format": 2, "state": "failed", "reason": "port 8080 is taken"}))
    outcome = build(tmp_path)
    assert (outcome.word, outcome.exit_status) == ("unjudged", 1)
    assert "port 8080 is taken" in outcome.text and outcome.text.count("was measured") == 1
    assert "no sample was measured" in (tmp_path / "junit.xml").read_text()
    assert (tmp_path / "index.html").exists()


def full(self: Path, *args: Any, **named: Any) -> int:
    raise OSError(28, "No space left on device", os.fspath(self))


@pytest.mark.parametrize(
    ("module", "name", "stand_in"),
    [(Path, "write_text", full), (tempfile, "TemporaryFile", lambda: Path("/dev/full").open("r+b"))],  # noqa: SIM115
    ids=["of the report", "of temporary files"],
)
def test_a_full_disk_leaves_the_old_report(
    fake_run: Any, monkeypatch: pytest.MonkeyPatch, module: object, name: str, stand_in: Callable[..., object]
) -> None:
    fake_run.user([{}])
    folder = fake_run.write()
    build(folder)
    before = {name: (folder / name).read_bytes() for name in MADE}
    monkeypatch.setattr(module, name, stand_in)
    with pytest.raises(ReportError, match="No space left"):
        build(folder, ["frame p95 > 1 ms"])
    assert {name: (folder / name).read_bytes() for name in MADE} == before
    assert not list(folder.glob(".*"))


@pytest.mark.parametrize("start_ms", ["9" * 400, "-1e18", "1e300"])
def test_a_start_that_no_calendar_has_is_not_known(fake_run: Any, start_ms: str) -> None:
    fake_run.user([{}, {}, {}])
    folder = fake_run.write()
    for name in ("tree.xml", "journal.jsonl"):
        path = folder / name
        path.write_text(re.sub(r'("index": ?1,.*?"start_ms": ?)[0-9.]+', rf"\g<1>{start_ms}", path.read_text()))
    build(folder)
    assert summary(folder).main.n == 3
    assert any("1 sample has a time that cannot be" in warning for warning in summary(folder).warnings)
