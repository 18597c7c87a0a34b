"""Runs over slaves and replicas: what was lost, which machine was saturated, and how the page says and draws it."""

import json
import re
from collections.abc import Callable
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from framestorm.hosts import orders
from framestorm.hosts.messages import Description
from framestorm.model.files import read
from framestorm.model.load import Load
from framestorm.model.run import Record
from framestorm.model.summary import Facts, Part, Span, Stall, Summary, Unreplaced
from framestorm.report import build
from framestorm.report.charts import charts
from framestorm.report.figure import Chart
from framestorm.report.summary import _marks
from framestorm.report.trust import elements, machines
from tests.framestorm.conftest import summary_of
from tests.framestorm.results.conftest import START_MS, write_jtl, write_metrics, write_resources

SHARES, LOST_S = {"slave1": "2", "slave2": "2"}, {"slave2": 41.0}
OVER_TIME = {"response-time-over-time", "success-over-time", "throughput", "users-over-time", "processor-use"}


def summary_and_page(folder: Path, status: int | None = None) -> tuple[Summary, str]:
    """The summary of a run and its page, with blanks for non-breaking ones."""
    verdict = build(folder)
    assert status in (None, verdict.exit_status)
    page = (folder / "index.html").read_text().replace("\u00a0", " ")
    return read(folder / "summary.json", Summary), page


def charts_of(summary: Summary) -> dict[str, Chart]:
    return {chart.name: chart for chart in charts(summary)}


def warning_text(summary: Summary) -> str:
    return "\n".join([*summary.warnings, *summary.notes]).replace("\u00a0", " ")


def change_run(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    run = json.loads((folder / "run.json").read_text())
    change(run)
    (folder / "run.json").write_text(json.dumps(run))


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda run: run["hosts"][0].update(clock_offset_ms=-5000.0), "The clock of slave1 was off by"),
        (lambda run: run["hosts"][0].update(clock_offset_ms=machines.CLOCK_OFFSET_MS), None),
        (lambda run: run.update(started_ms=run["started_ms"] + 60_000), "a clock was set or is wrong"),
        (lambda run: run.update(clock_step_ms=-3000.0), "was set by -3.00 s meanwhile"),
        (lambda run: run.update(clock_step_ms=-3.0), None),
        (lambda run: None, None),
    ],
)
def test_a_clock_that_was_wrong(slave_lost: Any, change: Callable[[dict[str, Any]], object], word: str | None) -> None:
    folder = slave_lost.write_slaves(SHARES, {})
    change_run(folder, change)
    summary, _ = summary_and_page(folder)
    assert ("clock" in summary.doubts) == (word is not None)
    assert word is None or word in warning_text(summary)


@pytest.mark.parametrize(("slower_ms", "is_said"), [(0, False), (20, False), (400, True)])
def test_a_slave_that_is_further_from_the_function(fake_run: Any, slower_ms: int, is_said: bool) -> None:
    properties = {"users": "2", "ramp_s": "0"}
    folder = fake_run.write(has_users=False, label="request", properties=properties, ended_ms=START_MS + 60_000)
    rows = [
        {"timeStamp": START_MS + 100 * n, "elapsed": 100 + n % 10 + slower_ms * (n % 2), "label": "request",
         "responseCode": "200", "success": "true", "Hostname": f"slave{2 - n % 2}"}
        for n in range(60)
    ]  # fmt: skip
    write_jtl(folder / "samples.jtl", rows)
    (folder / "tree.xml").unlink()
    summary, page = summary_and_page(folder)
    said = [warning for warning in warning_text(summary).splitlines() if "on slave1 and" in warning]
    assert [warning in page for warning in said] == [True] * is_said
    assert ("hosts_differ" in summary.doubts) == is_said


def test_a_sample_of_1970_has_no_times(fake_run: Any) -> None:
    """As a script may make one, which would have lasted until now, and stretched the run by as much."""
    folder = fake_run.write(has_users=False, label="request", properties={"users": "1", "ramp_s": "0"})
    rows = [
        {"timeStamp": START_MS + 100 * n, "elapsed": 100, "label": "request", "responseCode": "200", "success": "true"}
        for n in range(4)
    ]
    rows.append(rows[0] | {"timeStamp": 20_000, "elapsed": START_MS})
    write_jtl(folder / "samples.jtl", rows)
    (folder / "tree.xml").unlink()
    summary, _ = summary_and_page(folder)
    assert (summary.main.n, summary.main.times["rtt"].n, summary.main.times["rtt"].max.value) == (5, 4, 100)
    assert summary.load.duration_ms == 400
    assert "1 sample has a time that cannot be" in warning_text(summary)


def test_texts_in_place_of_values_that_are_left_out_are_counted() -> None:
    sent = [Unreplaced("pay", f"${{item{n}}}", 1) for n in range(elements.MOST_NAMED + 2)]
    *named, more = elements.unreplaced(summary_of(1, facts=replace(summary_of(1).facts, unreplaced=sent)))
    assert len(named) == elements.MOST_NAMED and more.startswith("2 further texts had no value either")


def test_a_slave_that_was_lost_before_the_load_has_no_negative_time(slave_lost: Any) -> None:
    """JMeter takes seconds until it sends anything, and a slave may be lost meanwhile."""
    summary, page = summary_and_page(slave_lost.write_slaves(SHARES, {"slave2": -3.0}), status=4)
    before_s = summary.load_start_s + 3
    assert f"slave2 was lost {before_s:.2f} s before the start of the load" in warning_text(summary)
    assert f'<td class="number bad">{before_s:.2f} s before</td>' in page
    assert f"Marked: slave2 lost {before_s:.3g} s before the load" in page
    assert not re.search(r"lost(</th>| at)? -\d|>-\d[\d.]* m?s<", page)


def test_a_lost_slave_is_said_with_its_share(slave_lost: Any) -> None:
    summary, page = summary_and_page(slave_lost.write_slaves(SHARES | {"slave3": "1"}, LOST_S), status=4)
    (loss,) = summary.losses
    assert (loss.host, loss.at_s, loss.share) == ("slave2", 41.0, {"users": Part(2, 5)})
    assert 25 < loss.last_sample_s < 31
    first = warning_text(summary).splitlines()[0]
    assert first.startswith(
        "slave2 was lost 40.9 s after the start of the load (no sign of life for 11 s): its share of it, 2 of 5"
    )
    assert first in page
    rows = {row.host: row for row in summary.hosts}
    assert {name: row.lost_s for name, row in rows.items()} == {"slave1": None, "slave2": 41.0, "slave3": None}
    assert [row.clock_offset_ms for row in rows.values()] == [0.125, 0.25, 0.375]
    assert rows["slave3"].shown == 0, "a slave that sent nothing has a row"
    assert rows["slave1"].rate_per_s > 3
    assert rows["slave1"].p50.value != rows["slave2"].p50.value
    for text in ("2 of 5 users", "0.250 ms", ">40.9 s<"):
        assert text in page
    # What slave2 never said that it ended counts until it was lost, not to the end of the run.
    assert summary.series.in_flight
    users = dict(zip(summary.series.in_flight.x, summary.series.in_flight.y, strict=True))
    assert max(n for at, n in users.items() if 35 < at < 41) == 4
    assert max(n for at, n in users.items() if at >= 41) == 2
    paths = {file.path for file in summary.files}
    assert {"journal-slave1.jsonl", "journal-slave2.jsonl", "client-slave1.log", "client-slave2.log"} <= paths
    assert "journal.jsonl" not in paths
    for name, chart in charts_of(summary).items():
        layout = chart.figure()["layout"]
        labels = [label["text"] for label in layout.get("annotations", ())]
        assert labels == (["slave2 lost"] if name in OVER_TIME else []), name
        if name in OVER_TIME:
            marks = [(shape["type"], shape["x0"]) for shape in layout["shapes"] if shape["xref"] == "x"]
            assert marks == [("line", 40.9), ("rect", 40.9)]
            assert "slave2 lost at 40.9 s" in chart.caption


@pytest.mark.parametrize(
    ("users", "host", "reason"),
    [
        ("3", "host,95.0,2000000000,,3.25", None),
        ("4", "host,95.0,2000000000,,3.25", "per second were started"),
        ("4", "host,199.0,2000000000,,3.25", "master had no core left"),
        ("4", "host,95.0,7900000000,,3.25", "the memory of master was full"),
    ],
)
def test_users_that_were_not_reached(three_users: Any, users: str, host: str, reason: str | None) -> None:
    properties = {"users": users, "ramp_s": "2", "hold_s": "8"}
    folder = three_users.write(properties=properties)
    last_ms = three_users.users[-1].start["start_ms"] + 9000
    generator = host.replace("host,", "generator,")
    write_resources(folder / "resources.csv", {"master": last_ms}, generator, host)
    summary, _ = summary_and_page(folder)
    chart = charts_of(summary)["users-over-time"]
    asked = next(trace for trace in chart.traces if trace["name"] == "asked for")
    assert asked["y"] == [0, int(users), int(users)]
    assert [round(b - a) for a, b in pairwise(asked["x"])] == [2, 8]
    assert ("not_offered" in summary.doubts) == (reason is not None)
    if reason:
        assert f"{users} users at the same time were asked for, and at most 3 were" in warning_text(summary)
        assert warning_text(summary).count(reason) == 1


PEAK = Load("peak", "UltimateThreadGroup", "users", curve={"x": [0, 2, 2, 6, 6], "y": [0, 0, 6, 6, 0]})
BASE = Load("base", "ConcurrencyThreadGroup", "users", curve={"x": [0, 1, 4.5, 5], "y": [0, 4, 4, 9]}, start_s=1.0)
LOOPS = Load("loops", "ThreadGroup", "users", curve={"x": [0, 1], "y": [0, 40]}, has_end=False)


@pytest.mark.parametrize(
    ("loads", "threads", "asked"),
    [
        ([PEAK], 6, None),
        ([PEAK], 5, 6),
        ([PEAK, BASE], 10, None),  # 15 for less than a second
        ([PEAK, BASE], 9, 10),
        ([replace(BASE, start_s=None)], 3, 4),
        ([PEAK, replace(LOOPS, is_aside=True)], 5, 6),
        ([replace(PEAK, unknown="its end: that of its loops")], 2, None),
        ([PEAK, LOOPS], 5, None),  # those of the other group may have ended
        ([PEAK, replace(BASE, start_s=None)], 5, None),
    ],
)
def test_users_of_thread_groups_that_keep_them(
    loads: list[Load], threads: int, asked: int | None, fake_run: Any
) -> None:
    folder = fake_run.write(has_users=False, label="call", properties={}, ended_ms=START_MS + 60_000)
    change_run(folder, lambda run: run.update(loads=[asdict(load) for load in loads]))
    row = {"elapsed": 10, "label": "call", "responseCode": "200", "success": "true", "Hostname": "slave1"}
    rows = [{**row, "timeStamp": START_MS + 1000 * second, "allThreads": threads} for second in range(3, 9)]
    write_jtl(folder / "samples.jtl", rows)
    (folder / "tree.xml").unlink()
    summary, _ = summary_and_page(folder)
    said = f"{asked} users at the same time were asked for, and at most {threads} were reached"
    assert (said in warning_text(summary)) is (asked is not None)
    assert ("not_offered" in summary.doubts) is (asked is not None)
    if loads == [PEAK]:
        assert summary.series.threads is not None
        # From the first sample on, with which its delay is over.
        assert summary.series.threads.asked == {"x": [1.0, 3.0, 3.0, 7.0], "y": [0, 0, 6, 6]}


@pytest.mark.parametrize("ramp_s", ["30s", "", "nothing"])
def test_users_of_a_plan_with_a_ramp_up_of_its_own(ramp_s: str, fake_run: Any) -> None:
    """What a plan from elsewhere makes of a property of this name is not known."""
    folder = fake_run.write(has_users=False, label="call", properties={"ramp_s": ramp_s}, loads=[asdict(PEAK)])
    row = {"timeStamp": START_MS, "elapsed": 9, "label": "call", "success": "true", "allThreads": 1}
    write_jtl(folder / "samples.jtl", [row])
    (folder / "tree.xml").unlink()
    assert "6 users at the same time were asked for, and at most 1" in warning_text(summary_and_page(folder)[0])


def test_users_that_are_threads(fake_run: Any) -> None:
    """JMeter counts them by host, and no host counts after it was lost."""
    folder = fake_run.write(
        has_users=False, label="request", properties={"users": "10", "ramp_s": "0", "hold_s": "10"},
        losses=[{"host": "slave2", "time_ms": START_MS + 5000, "reason": None, "share": {}}],
        ended_ms=START_MS + 60_000,
    )  # fmt: skip
    rows = [
        {"timeStamp": START_MS + 1000 * second, "elapsed": 10, "label": "request", "responseCode": "200",
         "success": "true", "Hostname": host, "allThreads": threads}
        for second in range(8)
        for host, threads in (("slave1", 4), *([("slave2", min(second, 3))] if second < 5 else []))
    ]  # fmt: skip
    write_jtl(folder / "samples.jtl", rows)
    (folder / "tree.xml").unlink()
    summary, _ = summary_and_page(folder)
    assert summary.series.threads is not None
    assert summary.series.threads.y == [4, 5, 6, 7, 7, 7, 4, 4]
    assert "10 users at the same time were asked for, and at most 7 were reached: slave2 was lost" in warning_text(
        summary
    )


def test_a_figure_that_no_response_gave_is_named(fake_run: Any) -> None:
    asked = {"figures": "cost=$.c,wait_ms=$.w,sent_at_ms=$.at,tokens = $.usage.tokens"}
    folder = fake_run.write(has_users=False, label="request", properties=asked)
    row = {
        "timeStamp": START_MS,
        "elapsed": 10,
        "label": "request",
        "responseCode": "200",
        "success": "true",
        "cost": 2,
        "wait_ms": 5,
        "sent_at_ms": START_MS,
    }
    write_jtl(folder / "samples.jtl", [row], ("cost", "wait_ms", "sent_at_ms"))
    (folder / "tree.xml").unlink()
    summary, _ = summary_and_page(folder)
    assert set(summary.labels["request"].figures) == {"cost"}
    (warning,) = (each for each in summary.warnings if "-Jfigures" in each)
    assert warning.startswith("-Jfigures found no figure for tokens:")


def test_jmeter_out_of_threads_is_a_reason(three_users: Any) -> None:
    folder = three_users.write(properties={"users": "9", "ramp_s": "2", "hold_s": "8"})
    (folder / "jmeter.log").write_text(
        "Uncaught exception: java.lang.OutOfMemoryError: unable to create native thread: possibly out of memory\n"
    )
    assert "OutOfMemoryError: unable to create native thread" in warning_text(summary_and_page(folder)[0])
    (folder / "jmeter.log").write_text(
        "WARN o.a.j.m.J.client output: user failed: 1 lines of its client cannot be used: line 1, Exception in thread "
        '"main" java.lang.OutOfMemoryError: Java heap space: is not JSON\n'
    )
    assert "OutOfMemoryError" not in warning_text(summary_and_page(folder)[0])


def test_threads_of_jmeter_that_an_error_ended_make_a_run_partial(three_users: Any) -> None:
    folder = three_users.write()
    ended = "ERROR o.a.j.JMeter: Uncaught exception in thread Thread[users 1-{},5,main]\n{}: {}\n\tat java.x\n"
    (folder / "jmeter.log").write_text(
        ended.format(1, "java.lang.StackOverflowError", "null")
        + ended.format(2, "java.lang.StackOverflowError", "null")
    )
    (folder / "jmeter-server-b.log").write_text(ended.format(1, "java.lang.OutOfMemoryError", "Java heap space"))
    summary, _ = summary_and_page(folder)
    assert summary.verdict.word == "partial"
    assert [each.partition(" of JMeter")[0] for each in summary.missing] == ["2 threads", "1 thread"]
    assert "java.lang.StackOverflowError: what" in summary.missing[0]


def test_a_thread_group_that_jmeter_did_not_start_makes_a_run_partial(three_users: Any) -> None:
    folder = three_users.write()
    (folder / "jmeter.log").write_text(
        "ERROR o.a.j.u.JMeterUtils: Error occurred starting thread group :late, error message:Invalid duration 0 set "
        "in Thread Group:late, \r\nsee log file for more details\n"
    )
    summary, _ = summary_and_page(folder)
    assert summary.verdict.word == "partial"
    assert summary.missing == ["JMeter did not start thread group 'late': Invalid duration 0 set in Thread Group:late"]


def test_no_loss_no_mark(slave_lost: Any) -> None:
    summary, page = summary_and_page(slave_lost.write_slaves(SHARES, {}))
    assert (summary.losses, summary.doubts) == ([], [])
    assert "lost at" not in page
    assert not any(chart.layout.get("annotations") for chart in charts_of(summary).values())


@pytest.mark.parametrize(
    ("role", "cores", "cpu", "sentence"),
    [
        ("slave", 2, "199.0", "slave2 was saturated: at least 90 % of its 2 cores were busy"),
        ("slave", 0.5, "49.9", "slave2 was saturated: at least 90 % of its 0.5 cores were busy"),
        ("slave", 1.0, "99.9", "slave2 was saturated: at least 90 % of its 1 core were busy"),
        ("target", 2, "199.0", "The function had to wait for a core"),
        ("slave", 2, "120.0", None),
    ],
)
def test_saturation_of_one_host(slave_lost: Any, role: str, cores: float, cpu: str, sentence: str | None) -> None:
    folder = slave_lost.write_slaves(SHARES, {})
    change_run(folder, lambda run: run["hosts"][1].update(role=role, cores=cores))
    lines = (folder / "resources.csv").read_text()
    (folder / "resources.csv").write_text(lines.replace("slave2,host,95.0", f"slave2,host,{cpu}"))
    summary, _ = summary_and_page(folder)
    text = warning_text(summary)
    assert sentence in text if sentence else "saturated" not in text
    assert summary.doubts == (["saturated"] if sentence else [])
    assert "slave1 was saturated" not in text
    assert "Generator and target" not in text, "they are apart in a run over slaves"


@pytest.mark.parametrize(
    ("generator", "advice"),
    [
        ("190.0", "than the function. Use fewer users or more machines."),
        ("150.0", "than the function. Stop the other processes, use fewer users or more machines."),
        ("60.0", "than the function. Stop the other processes."),
    ],
)
def test_the_advice_about_a_saturated_machine_is_by_who_took_its_cores(
    slave_lost: Any, generator: str, advice: str
) -> None:
    folder = slave_lost.write_slaves(SHARES, {})
    lines = (folder / "resources.csv").read_text().replace("slave2,host,95.0", "slave2,host,199.0")
    (folder / "resources.csv").write_text(lines.replace("slave2,generator,60.0", f"slave2,generator,{generator}"))
    (warning,) = [each for each in summary_and_page(folder)[0].warnings if "slave2 was saturated" in each]
    assert warning.endswith(advice)
    assert ("other processes" in warning) == (generator != "190.0")


def test_machines_of_which_the_same_is_said_are_one_warning(slave_lost: Any) -> None:
    """As of the pods of a cluster, which share its nodes."""
    folder = slave_lost.write_slaves(SHARES, {})
    lines = (folder / "resources.csv").read_text()
    for slave, cpu in (("slave1", "190.0"), ("slave2", "199.0")):
        lines = re.sub(rf"{slave},host,[\d.]+", f"{slave},host,{cpu}", lines)
    (folder / "resources.csv").write_text(lines)
    (warning,) = [each for each in summary_and_page(folder)[0].warnings if "saturated" in each]
    assert warning.startswith("slave1 and slave2 were saturated: at least 90 % of the 2 cores of each were busy for ")
    assert re.search(r"other processes 1\.\d\d to 1\.\d\d on average", warning), warning


def test_a_slave_without_figures_of_its_machine(slave_lost: Any) -> None:
    folder = slave_lost.write_slaves(SHARES, {})
    lines = (folder / "resources.csv").read_text().splitlines()
    kept = [line for line in lines if "slave2" not in line]
    damaged = ["179,slave1,ho", f"{lines[-1].partition(',')[0]},slave1,host,1e308,inf,,"]
    (folder / "resources.csv").write_text("\n".join(kept + damaged))
    summary, _ = summary_and_page(folder)
    assert "has no figures of slave2" in warning_text(summary)
    machines = {(row.host, row.part): row for row in summary.machines}
    assert (machines["slave1", "host"].load_max, machines["slave1", "host"].rss_max_bytes) == (3.25, 2e9)
    assert machines["slave1", "generator"].load_max is None


def test_how_samples_came_is_told_with_the_reason(slave_lost: Any) -> None:
    way = orders.rmi([Description(rmi_port=8001)])
    _, page = summary_and_page(slave_lost.write_slaves(SHARES, {}, rmi=asdict(way)))
    assert re.search(r"GroupSender, ports 8001 on slaves,\s+8002 and 8003 on the controller", page)
    assert "complete rows have priority over speed" in page


@pytest.mark.parametrize("dropped", [0, 3])
def test_dropped_arrivals_of_all_slaves_are_counted(slave_lost: Any, dropped: int) -> None:
    """Whatever the plan makes of an arrival: many samples, or none."""
    folder = slave_lost.write_slaves(SHARES, {})
    for slave, (due, of_slave) in zip(SHARES, ((7, 0), (5, dropped)), strict=True):
        line = f'INFO c.b.j.t.a.ArrivalsThreadStarter: {{"type":"arrivals","due":{due},"dropped":{of_slave}}}\n'
        (folder / f"jmeter-server-{slave}.log").write_text(line)
    summary, _ = summary_and_page(folder)
    assert (summary.facts.arrivals, summary.facts.dropped) == (12, dropped)
    assert ("3 of 12 arrivals were dropped" in warning_text(summary)) == bool(dropped)
    assert ("not_offered" in summary.doubts) == bool(dropped)


@pytest.mark.parametrize(
    ("line", "by"),
    [
        ("INFO o.a.j.t.JMeterThread: Shutdown Test detected by thread: users 1-1", "thread users 1-1"),
        ("INFO o.a.j.t.JMeterThread: Stop Test Now detected by thread: users 1-1", "thread users 1-1"),
        ("INFO o.a.j.e.StandardJMeterEngine: Stop Test asked for at 17 by thread: users 1-1", "thread users 1-1"),
        ("INFO o.a.j.s.TestAction: Stopping all threads now from element halt", "element halt"),
        ("INFO o.a.j.s.TestAction: Stopping current thread from element halt", None),
        ("INFO o.a.j.e.StandardJMeterEngine: Test will stop on error", None),
    ],
)
def test_a_plan_that_stops_the_test_is_told(three_users: Any, line: str, by: str | None) -> None:
    folder = three_users.write()
    with (folder / "jmeter.log").open("a") as log:
        log.write(f"{line}\n")
    summary, _ = summary_and_page(folder)
    assert summary.facts.stopped_by == by
    assert (f"({by})" in warning_text(summary)) == (by is not None)
    assert ("stopped" in summary.doubts) == (by is not None)


@pytest.mark.parametrize("is_replaced", [False, True])
def test_an_input_that_was_replaced_is_told(three_users: Any, is_replaced: bool) -> None:
    three_users.users[0].end["video"] = None  # it was stopped before it opened one
    if is_replaced:
        three_users.users[2].end["video"] = "fedcba987654"
    summary, page = summary_and_page(three_users.write())
    told = [warning for warning in warning_text(summary).splitlines() if "different inputs" in warning]
    assert [warning in page for warning in told] == [True] * is_replaced
    assert all("1 user 0123456789ab…" in warning and "1 user fedcba987654…" in warning for warning in told)


@pytest.mark.parametrize(
    ("seconds", "places"), [((1, 3), "1 s and 3 s"), ((0, 1, 2, 3), "the longest 1 s, 2 s and 3 s")]
)
def test_the_seconds_in_which_jmeter_was_held_up(three_users: Any, seconds: tuple[int, ...], places: str) -> None:
    folder = three_users.write()
    with (folder / "jmeter.log").open("a") as log:
        log.write('INFO f.Stalls: {"type":"stalls","noticed_from_ms":10}\n')
        for at_s in seconds:
            stall = f'"start_ms":{START_MS + 1000 * at_s},"longest_ms":{400 + at_s},"gc_ms":0,"compiler_ms":0'
            log.write(f'INFO f.Stalls: {{"type":"stall",{stall}}}\n')
    text = warning_text(summary_and_page(folder)[0])
    assert (
        f"JMeter paused during {len(seconds)} of the 28 seconds of the load, for 403 ms at most ({places} after" in text
    )


def test_seconds_around_the_start_of_the_load_are_named_once() -> None:
    stalls = [Stall(5, 40.0, 20.0), Stall(6, 50.0, 70.0)]
    facts = Facts(0, 0, None, stalls=stalls, during_stalls=2)
    span = Span(START_MS + 5800, START_MS + 15_800, 10_000)
    (told,) = machines.stalls(summary_of(9, facts=facts, load=span, run=Record(started_ms=START_MS)))
    text = told.replace("\u00a0", " ")
    assert "for 50 ms at most (0 s after" in text and "garbage collection took 90 ms in all" in text, text
    # No chart begins before the load because of them.
    assert [mark.at_s for mark in _marks([], [], stalls, 5.8)] == [5.8, 6]


def test_lost_replicas_are_told_and_drawn(slave_lost: Any) -> None:
    folder = slave_lost.write_slaves(SHARES, {})
    replicas = {"k1-1": (0, 1e9), "k1-2": (0, 21.0), "k1-3": (0, 1e9)}
    write_metrics(folder / "metrics.csv", replicas, lambda _: 3, length_s=62)
    summary, _ = summary_and_page(folder)
    assert summary.doubts == ["replica_lost", "replicas_short"]
    vanished, short = warning_text(summary).splitlines()[:2]
    assert vanished.startswith("1 replica of face-blur (face-blur-k1-2) ended 22.0 s after the start of the load")
    assert re.search(r"fewer replicas ready than wanted for \d\d.0 s of the load, at worst 2 of 3", short)
    made = {name: chart for name, chart in charts_of(summary).items() if name.startswith("replicas")}
    assert len(made) == 5, "nothing was throttled"
    for chart in made.values():
        assert [label["text"] for label in chart.layout["annotations"]] == ["1 replica lost"]
    memory = made["replicas-memory-bytes"]
    assert [trace["name"] for trace in memory.traces] == ["k1-2", "k1-1", "k1-3", "sum of all"], "first what vanished"
    assert memory.traces[1]["y"][5] == 650.0, "MB"
    (folder / "metrics.csv").write_text("")
    assert warning_text(summary_and_page(folder)[0]).startswith("metrics.csv has no figures")
