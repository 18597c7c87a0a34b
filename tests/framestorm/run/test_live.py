"""The live view's figures are those of the raw files so far."""

import csv
import io
import json
import re
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from framestorm.model.run import Loss
from framestorm.model.units import plural
from framestorm.results.interval import Interval, Key, kept
from framestorm.run.live.tally import Counted, Tally
from framestorm.run.live.view import LiveView
from framestorm.sinks.sink import Sink, Update, finish
from framestorm.stats.percentiles import Sample

HOSTS = [
    {"name": "vm-7", "inventory_name": "slave1", "role": "slave", "cores": 2},
    {"name": "vm-8", "inventory_name": "slave2", "role": "slave", "cores": 4},
    {"name": "vm-9", "inventory_name": "function1", "role": "target", "cores": 8},
]
SAMPLE = {"type": "sample", "label": "frame", "user": "a-1-2", "index": 0, "rtt_ms": 20.0, "ok": True, "cause": None}
JTL = ("timeStamp", "elapsed", "responseCode", "responseMessage", "success", "allThreads", "Hostname")


def open_load(rate_per_s: float, ramp_s: float, hold_s: float, name: str = "arrivals") -> dict[str, Any]:
    """A thread group whose requests arrive by a schedule."""
    curve = {"x": [0, ramp_s, ramp_s + hold_s], "y": [0 if ramp_s else rate_per_s, rate_per_s, rate_per_s]}
    return {"name": name, "kind": "ArrivalsThreadGroup", "model": "arrivals", "curve": curve, "groups": [name]}


def closed_load(users: int, lasts_s: float | None, name: str = "users") -> dict[str, Any]:
    """A thread group whose users wait for their answers, for a time or until their loops end."""
    curve = {"x": [0, lasts_s or 0], "y": [users, users]}
    return {"name": name, "kind": "ThreadGroup", "model": "users", "total": users, "curve": curve, "groups": [name],
            "has_end": lasts_s is not None}  # fmt: skip


def write_samples(folder: Path, *rows: tuple[Any, ...], columns: tuple[str, ...] = JTL) -> None:
    with (folder / "samples.jtl").open("w", newline="") as file:
        csv.writer(file).writerows([columns, *rows])


def write_run(folder: Path, **fields: Any) -> None:
    (folder / "run.json").write_text(json.dumps(fields))


def shown(view: LiveView, width: int = 200, height: int = 24) -> str:
    """What a terminal gets."""
    console = Console(file=io.StringIO(), width=width, force_terminal=True, color_system=None)
    console.print(view.screen(width, height))
    text: str = console.file.getvalue()  # type: ignore[attr-defined]
    return text


def view_of(folder: Path, now_s: float | None = None, *, has_journal: bool = False, label: str = "request") -> LiveView:
    """The view of a run's folder after it has read what is there."""
    view = LiveView(folder, has_journal=has_journal, label=label)
    view.read(now_s)
    return view


def answered(n: int, at_s: float, *, ok: bool = True, rtt_ms: int = 50) -> list[tuple[Any, ...]]:
    """Rows of n answers that all end at that time, to the ms."""
    start_ms = round(at_s * 1000) - rtt_ms
    return [(start_ms, rtt_ms, 200 if ok else 503, "OK" if ok else "status-503", str(ok).lower(), 20, "vm-7")] * n


def add(tally: Tally, end_s: float, ms: float, cause: str | None = None) -> None:
    """Count a sample that ended then."""
    interval = Interval(Key(int(end_s), "request", "sampler", ""))
    interval.add(end_s - ms / 1000, ms, cause)
    tally.take(interval)


def log_line(at_s: float, text: str) -> str:
    """A line of jmeter.log."""
    local = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at_s))
    return f"{local},{int(at_s % 1 * 1000):03} INFO o.a.j.e.StandardJMeterEngine: {text}\n"


@pytest.mark.parametrize(
    ("times", "p50", "p95"), [(range(1, 101), 50, 95), (range(1, 21), 10, 19), (range(1, 4), 2, 3), ([7], 7, 7)]
)
def test_recent_percentiles_are_nearest_ranks_as_in_the_report(times: Any, p50: float, p95: float) -> None:
    tally = Tally()
    for rtt_ms in times:
        add(tally, 1000.0, rtt_ms)
    assert tally.recent_times(1005.0, "50", "95") == [p50, p95]


@pytest.mark.parametrize(
    ("n", "after_s", "per_s"), [(380, 1.0, 380), (1900, 5.0, 380), (3800, 10.0, 380), (40, 0.1, 40)]
)
def test_a_rate_is_of_the_time_since_the_first_answer(n: int, after_s: float, per_s: float) -> None:
    tally = Tally()
    for number in range(n):
        add(tally, 1000.0 + after_s * number / n, 50)
    assert tally.answers_per_s(1000.0 + after_s, 1000.0) == pytest.approx(per_s, rel=0.02)


def test_a_rate_later_is_of_the_last_seconds() -> None:
    tally = Tally()
    for ms in range(0, 40_000, 10):  # 100/s, then nothing
        add(tally, 1000 + ms / 1000, 5)
    assert tally.answers_per_s(1040.0, 1000.0) == pytest.approx(100, rel=0.02)
    assert tally.answers_per_s(1040.7, 1000.0) == pytest.approx(93, rel=0.03)
    assert tally.answers_per_s(1055.0, 1000.0) == 0


def test_failed_answers_are_answers(tmp_path: Path) -> None:
    now_s = time.time()
    write_run(tmp_path, started_ms=(now_s - 20) * 1000)
    write_samples(tmp_path, *(row for tenth in range(1, 50) for row in answered(1000, now_s - tenth / 10, ok=False)))
    view = view_of(tmp_path, now_s)
    assert view.counts.whole.answers_per_s(now_s, view.counts.first_end_s) == pytest.approx(10_000, rel=0.05)
    text = shown(view)
    assert "49,000 errors (100 %)" in text and "p50 -" in text and " 0.0/s" not in text


def test_a_time_that_times_out_is_no_recent_time() -> None:
    tally = Tally()
    add(tally, 1000.0, 5)
    add(tally, 1000.0, 25_000, "timeout")
    assert (tally.recent_times(1009.9, "50", "95"), tally.recent_times(1010.0, "50")) == ([5, 5], [None])
    assert (tally.samples, tally.errors, tally.causes) == (2, 1, {"timeout": 1})


def test_so_many_different_messages_are_counted_by_their_first_word() -> None:
    tally = Tally()
    for number in range(5000):
        add(tally, 1000.0, 5, f"failed-check: {number} expected")
    assert len(tally.causes) <= 1001 and tally.causes["failed-check"] == 4000


@pytest.mark.parametrize("ms", [0.004, 0.123, 9.994, 12.34, 99.96, 100.4, 999.5, 9999.4, 12_345, 250_000])
def test_kept_times_are_exact_to_three_digits(ms: float) -> None:
    assert kept(ms) == pytest.approx(ms, rel=0.005, abs=0.005)


@pytest.mark.parametrize("cut", [[], [50.0, 60.0], [5.0]])
def test_figures_so_far_are_those_of_the_report(cut: list[float]) -> None:
    import numpy as np

    full = [float(each * each % 97) for each in range(200)]
    counted, sample = Counted(Counter(full), Counter(cut)), Sample(np.array(full), np.array(cut))
    for percent in ("50", "95", "99"):
        so_far, at_the_end = counted.percentile(percent), sample.percentile(percent)
        assert so_far and at_the_end and (so_far.value, so_far.bound) == (at_the_end.value, at_the_end.bound)
    for own, other in ((counted.mean(), sample.mean()), (counted.extreme(largest=True), sample.extreme(largest=True))):
        assert own and other and (own.value, own.bound) == (pytest.approx(other.value), other.bound)


def test_progress_counts_from_the_start_of_the_load(tmp_path: Path) -> None:
    now_s = time.time()
    write_run(tmp_path, loads=[closed_load(20, 32)], started_ms=(now_s - 20) * 1000)
    view = view_of(tmp_path, now_s)
    assert view.line() == "starting JMeter, 20 s" and shown(view).strip() == "starting JMeter, 20 s"
    (tmp_path / "jmeter.log").write_text(
        log_line(now_s - 15, "Starting setUp ThreadGroup: 1 : set-up")
        + log_line(now_s - 12, "Starting ThreadGroup: 1 : users")
    )
    view.read(now_s)
    assert view.line().startswith("12 s of 32 s, 20 s left  | 0 requests  0.0/s answered  0 of 20 users now  ")
    assert "\N{BOX DRAWINGS HEAVY HORIZONTAL}" in shown(view, width=80).splitlines()[0]


def test_groups_that_run_one_after_the_other_add_up(tmp_path: Path) -> None:
    now_s = time.time()
    loads = [
        closed_load(1, 30, "first"),
        closed_load(1, 20, "second"),
        {**closed_load(1, None, "set-up"), "is_aside": True},
    ]
    write_run(tmp_path, loads=loads, started_ms=(now_s - 20) * 1000)
    log = tmp_path / "jmeter.log"
    log.write_text(log_line(now_s - 10, "Starting ThreadGroup: 1 : first"))
    view = view_of(tmp_path, now_s)
    assert view.line().startswith("10 s of 50 s, 40 s left")
    with log.open("a") as file:
        file.write(log_line(now_s - 3, "Starting ThreadGroup: 2 : second"))
    view.read(now_s)
    assert view.line().startswith("10 s of 30 s, 20 s left")  # the first ended early, or both run together


def test_a_startup_delay_is_no_part_of_the_load(tmp_path: Path) -> None:
    now_s = time.time()
    loads = [{**closed_load(20, 60), "start_s": 90.0, "delay_s": 90.0}]
    write_run(tmp_path, loads=loads, label="request", stop_if=["errors > 5"], started_ms=(now_s - 85) * 1000)
    (tmp_path / "jmeter.log").write_text(log_line(now_s - 80, "Starting ThreadGroup: 1 : users"))
    view = view_of(tmp_path, now_s)
    assert view.line() == "starting JMeter, 85 s"
    rows = [(*row, "request") for row in answered(10, now_s + 35, ok=False)]
    write_samples(tmp_path, *rows, columns=(*JTL, "label"))
    view.read(now_s + 40)
    assert view.line().startswith("30 s of 60 s, 30 s left") and view.decision is not None


def test_groups_of_one_name_have_no_end_that_is_known(tmp_path: Path) -> None:
    now_s = time.time()
    loads = [closed_load(1, lasts_s, "Thread Group") for lasts_s in (600, 60)]
    write_run(tmp_path, loads=loads, started_ms=(now_s - 100) * 1000)
    starts = [log_line(now_s - 90, f"Starting ThreadGroup: {number} : Thread Group") for number in (1, 2)]
    (tmp_path / "jmeter.log").write_text("".join(starts))
    assert view_of(tmp_path, now_s).line().startswith("90 s  |")


@pytest.mark.parametrize(
    ("starts", "words"),
    [
        ([0.0, None], "70 s of 2 min 00 s, 50 s left"),  # one after the other
        ([5.0, 25.0], "70 s of 80 s, 10 s left"),
        ([None], "70 s: the 60 s of the plan are over"),
        ([None, None], "70 s  |"),  # after a group that sets up: together, or one after the other
    ],
)
def test_over_slaves_the_first_group_starts_with_the_first_sample(
    starts: list[float | None], words: str, tmp_path: Path
) -> None:
    now_s = time.time()
    loads = [{**closed_load(1, 60, f"group {n}"), "start_s": start_s} for n, start_s in enumerate(starts)]
    write_run(tmp_path, loads=loads, hosts=HOSTS, started_ms=(now_s - 80) * 1000)
    write_samples(tmp_path, *answered(5, now_s - 70))
    assert view_of(tmp_path, now_s).line().startswith(words)


@pytest.mark.parametrize(("start_s", "users"), [(0.0, "1 of 7 users now"), (None, "1 user now")])
def test_users_of_groups_that_may_not_run_together_are_not_added_up(
    tmp_path: Path, start_s: float | None, users: str
) -> None:
    now_s = time.time()
    loads = [closed_load(3, 30, "first"), {**closed_load(4, 30, "second"), "start_s": start_s}]
    write_run(tmp_path, loads=loads, started_ms=(now_s - 20) * 1000)
    write_samples(tmp_path, *[(*row[:5], 1, "vm-7") for row in answered(5, now_s - 1)])
    assert f"  {users}  " in view_of(tmp_path, now_s).line()


@pytest.mark.parametrize("loads", [[closed_load(1, None)], [closed_load(1, 30), closed_load(1, None, "other")], []])
def test_a_load_that_ends_by_itself_has_no_remaining_time(tmp_path: Path, loads: list[Any]) -> None:
    now_s = time.time()
    write_run(tmp_path, loads=loads, started_ms=(now_s - 20) * 1000)
    (tmp_path / "jmeter.log").write_text(log_line(now_s - 10, "Starting ThreadGroup: 1 : users"))
    assert view_of(tmp_path, now_s).line().startswith("10 s  | 0 requests")


def test_a_timer_asks_for_the_rate_of_its_group(tmp_path: Path) -> None:
    now_s = time.time()
    timer = {**open_load(20, 0, 30), "name": "timer", "kind": "VariableThroughputTimer", "groups": ["users"]}
    write_run(tmp_path, loads=[closed_load(5, None), timer], started_ms=(now_s - 20) * 1000)
    (tmp_path / "jmeter.log").write_text(log_line(now_s - 10, "Starting ThreadGroup: 1 : users"))
    line = view_of(tmp_path, now_s).line()
    assert line.startswith("10 s of 30 s, 20 s left") and "20.0/s asked  0 of 5 users now" in line


def test_arrivals_with_several_samples_each_are_no_rate_of_samples(tmp_path: Path) -> None:
    now_s = time.time()
    write_run(tmp_path, loads=[open_load(80, 0, 30)], started_ms=(now_s - 20) * 1000)
    rows = [(*row, ("log in", "search")[number % 2]) for number, row in enumerate(answered(80, now_s - 1))]
    write_samples(tmp_path, *rows, columns=(*JTL, "label"))
    assert "  80.0 arrivals/s asked  " in view_of(tmp_path, now_s).line()


def test_after_the_planned_time_the_last_answers_are_awaited(tmp_path: Path) -> None:
    now_s = time.time()
    write_run(tmp_path, loads=[open_load(80, 0, 10)], started_ms=(now_s - 20) * 1000)
    write_samples(tmp_path, *answered(5, now_s - 13), *answered(5, now_s - 1))
    line = view_of(tmp_path, now_s).line()
    assert line.startswith("13 s: the 10 s of the plan are over, waiting for the last answers") and "asked" not in line


def test_a_run_that_is_stopped_has_no_remaining_time(tmp_path: Path) -> None:
    now_s = time.time()
    write_run(tmp_path, loads=[closed_load(2, 30)], started_ms=(now_s - 20) * 1000)
    write_samples(tmp_path, *answered(5, now_s - 10))
    view = view_of(tmp_path, now_s)
    view.is_stopping = True
    assert view.line().startswith("10 s: stopping, waiting for the last answers  |")


@pytest.mark.parametrize(("ramp_s", "asked"), [(0, 80), (10, 70), (20, 40)])
def test_the_planned_rate_is_of_the_same_seconds(tmp_path: Path, ramp_s: int, asked: float) -> None:
    now_s = time.time()
    write_run(tmp_path, loads=[open_load(80, ramp_s, 30)], started_ms=(now_s - 20) * 1000)
    write_samples(tmp_path, *answered(1, now_s - 14.95), *answered(587, now_s - 1))
    view = view_of(tmp_path, now_s)
    assert view._asked_per_s() == pytest.approx(asked, rel=0.01)
    assert f"{asked}.0/s asked" in view.line()


def test_an_open_load_shows_requests_in_flight_and_dropped_not_threads(tmp_path: Path) -> None:
    now_s = time.time()
    criteria = ["dropped > 5", "in_flight > 500", "answered rate < 79/s"]
    write_run(tmp_path, loads=[open_load(80, 0, 30)], criteria=criteria, started_ms=(now_s - 20) * 1000)
    write_samples(tmp_path, *answered(60, now_s - 1, rtt_ms=3000))
    counts = ((10, 0, 0), (90, 0, 40), (330, 12, 218))
    (tmp_path / "jmeter.log").write_text(
        log_line(now_s - 9, "Starting ThreadGroup: 1 : arrivals")
        + "".join(
            log_line(
                now_s - 8 + second * 2,
                f'{{"type":"arrivals so far","sent":{sent},"dropped":{dropped},"in_flight":{n}}}',
            )
            for second, (sent, dropped, n) in enumerate(counts)
        )
    )
    view = view_of(tmp_path, now_s)
    assert view.line().startswith("8 s of 30 s")
    assert "  80.0/s started  80.0/s asked  218 in flight  12 dropped  " in view.line()
    assert "threads" not in shown(view) + view.line()
    assert view._criteria_so_far()[0] == "dropped > 5: 12, not ok so far"
    assert view._criteria_so_far()[2] == "in_flight > 500: 218, ok so far"
    assert view._criteria_so_far()[1].startswith("answered rate < 79/s: ")


def test_where_jmeter_does_not_count_them_requests_in_flight_are_those_of_the_answers(tmp_path: Path) -> None:
    now_s = time.time()
    write_run(tmp_path, loads=[open_load(80, 0, 30)], started_ms=(now_s - 20) * 1000)
    rows = [row for second in range(10) for row in answered(60, now_s - second, rtt_ms=100)]
    write_samples(tmp_path, *rows)
    assert re.search("about [67] in flight", view_of(tmp_path, now_s).line())  # 60/s for 0.1 s each


def test_criteria_say_how_they_stand(tmp_path: Path) -> None:
    now_s = time.time()
    criteria = ["p95 > 200 ms", "errors > 1 %", "all n < 3", "handler p95 > 5 s", "login mean > 2 s"]
    write_run(tmp_path, criteria=criteria, label="request", started_ms=(now_s - 20) * 1000)
    rows = [(*row, "request") for row in [*answered(97, now_s - 1, rtt_ms=53), *answered(3, now_s - 1, ok=False)]]
    write_samples(tmp_path, *rows, columns=(*JTL, "label"))
    view = view_of(tmp_path, now_s)
    assert view._criteria_so_far() == [
        "errors > 1 %: 3.0\u00a0%, not ok so far",
        "handler p95 > 5 s: judged at the end",
        "login mean > 2 s: no sample yet",
        "p95 > 200 ms: 53\u00a0ms, ok so far",
        "and 1 more criterion, 0 not ok so far",
    ]
    assert "errors > 1 %: 3.0 %, not ok so far" in view.line() and "errors > 1 %: 3.0 %" in shown(view, width=60)


def test_so_many_labels_as_requests_do_not_fill_the_memory(tmp_path: Path) -> None:
    now_s = time.time()
    write_run(tmp_path, criteria=["* max > 1 s"], label="request", started_ms=(now_s - 20) * 1000)
    rows = [(*row, f"/orders/{number}") for number, row in enumerate(answered(3000, now_s - 1))]
    write_samples(tmp_path, *rows, columns=(*JTL, "label"))
    view = view_of(tmp_path, now_s)
    assert (len(view.counts.by_label), view.counts.by_label["other labels"].samples) == (1001, 2000)
    assert view._criteria_so_far()[-1] == "and 996 more criteria, 0 not ok so far"
    assert "no sample yet" not in "".join(view._criteria_so_far())


def test_criteria_of_users_and_of_each_label(tmp_path: Path) -> None:
    now_ms = time.time() * 1000
    write_run(tmp_path, criteria=["user success < 100 %", "* max > 1 s"], label="frame", started_ms=now_ms - 20_000)
    sample = {**SAMPLE, "start_ms": now_ms - 9000, "rtt_ms": 1500.0}
    user = {"type": "user", "user": "a-1-2", "ok": True, "start_ms": now_ms - 9000, "duration_ms": 5000, "cause": None}
    lines = [{"type": "start", "user": "a-1-2", "start_ms": now_ms - 9000}, sample, user]
    (tmp_path / "journal.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    view = view_of(tmp_path, has_journal=True, label="frame")
    assert view._criteria_so_far() == [
        "frame max > 1 s: 1.50\u00a0s, not ok so far", "user success < 100 %: 100\u00a0%, ok so far",
    ]  # fmt: skip
    assert view.line().startswith("9 s  | 1 frame ")


@pytest.mark.parametrize("start_ms", [-5, 0, 10**18], ids=["negative", "zero", "later"])
def test_a_time_that_a_script_made_up_is_counted_as_an_answer_of_now(tmp_path: Path, start_ms: int) -> None:
    now_s = time.time()
    write_run(tmp_path, started_ms=(now_s - 20) * 1000)
    made_up = [(start_ms, 7000, 200, "OK", "true", 20, "vm-7")] * 50
    write_samples(tmp_path, *answered(50, now_s - 1, rtt_ms=30), *made_up)
    view = view_of(tmp_path, now_s)
    assert view.counts.whole.answers_per_s(now_s, view.counts.first_end_s) == pytest.approx(100, rel=0.05)
    assert view.counts.whole.recent_times(now_s, "50", "99") == [30, 30]
    assert view.line().startswith("1 s  |")


def test_slaves_clocks_are_set_right(tmp_path: Path) -> None:
    now_s = time.time()
    late = [{**HOSTS[0], "clock_offset_ms": 3_600_000}]
    write_run(tmp_path, hosts=late, started_ms=(now_s - 20) * 1000)
    write_samples(tmp_path, *answered(40, now_s + 3600 - 1))
    view = view_of(tmp_path, now_s)
    assert view.counts.by_slave["slave1"].answers_per_s(now_s, view.counts.first_end_s) == pytest.approx(40, rel=0.05)


def test_a_message_of_several_lines_is_one_row(tmp_path: Path) -> None:
    now_s = time.time()
    path = tmp_path / "samples.jtl"
    first, second = answered(2, now_s, ok=False)
    text = ",".join(JTL) + "\n" + ",".join(map(str, first)).replace("status-503", '"two\n""lines"""') + "\n"
    path.write_text(text[: text.index("lines")])
    view = view_of(tmp_path, now_s)
    assert view.counts.whole.samples == 0
    path.write_text(text + ",".join(map(str, second)) + "\n")
    view.read(now_s)
    assert (view.counts.whole.samples, view.counts.whole.errors) == (2, 2)


def test_a_narrow_terminal_has_no_line_that_is_cut(tmp_path: Path) -> None:
    now_s = time.time()
    write_run(
        tmp_path,
        loads=[open_load(80, 0, 30)],
        criteria=["p95 > 200 ms"],
        label="request",
        started_ms=(now_s - 20) * 1000,
    )
    rows = [
        (*row, f"a label with words {number % 40}") for number, row in enumerate(answered(400, now_s - 1, ok=False))
    ]
    write_samples(tmp_path, *rows, columns=(*JTL, "label"))
    view = view_of(tmp_path, now_s)
    for width, height in ((40, 15), (80, 24), (132, 50)):
        lines = shown(view, width, height).splitlines()
        assert len(lines) <= height and max(map(len, lines)) <= width
        assert "400 errors (100 %)" in "\n".join(lines) and "400 requests" in "\n".join(lines)
        assert lines[-1].split()[0] == "and" or height == 50


@pytest.mark.parametrize(("width", "figures"), [(80, 6), (60, 5), (40, 2)])
def test_names_give_way_to_figures_in_a_narrow_terminal(tmp_path: Path, width: int, figures: int) -> None:
    now_s = float(int(time.time()))
    write_run(tmp_path, started_ms=(now_s - 20) * 1000)
    rows = [
        (*row, f"step {number % 2} with a name that is longer than any terminal of eighty columns would show")
        for number, row in enumerate(answered(4000, now_s - 1, rtt_ms=1234))
    ]
    write_samples(tmp_path, *rows, columns=(*JTL, "label"))
    table = shown(view_of(tmp_path, now_s), width).splitlines()[-3:]
    all_figures = ["2,000", "2,000", "0", "1.23", "1.23", "1.23"]
    assert [word for word in table[1].split("\u2026")[1].split() if word != "s"] == all_figures[:figures]


def test_a_label_that_is_empty_has_a_name(tmp_path: Path) -> None:
    rows = [(*row, "" if number % 2 else "search") for number, row in enumerate(answered(4, time.time() - 1))]
    write_samples(tmp_path, *rows, columns=(*JTL, "label"))
    assert "(empty)" in shown(view_of(tmp_path))


def test_a_journal_is_followed_as_it_grows(tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    sample = {**SAMPLE, "start_ms": time.time() * 1000}
    start = {"type": "start", "user": "a-1-2"}
    view = LiveView(tmp_path, has_journal=True, label="frame")
    view.read()
    lines = [start, start, sample, {**sample, "index": 1, "ok": False, "cause": "status-500"}]
    last = json.dumps({**sample, "index": 2})
    journal.write_text("".join(json.dumps(line) + "\n" for line in lines) + last[:20])
    view.read()
    tally = view.counts.whole
    assert (tally.users_now, tally.users_done, tally.samples, tally.errors) == (2, 0, 2, 1)
    with journal.open("a") as file:
        file.write(f'{last[20:]}\nnot json\n7\n{{"type": "user", "user": "a-1-2", "ok": false}}\n')
    view.read()
    assert (tally.users_now, tally.users_done, tally.users_failed, tally.samples) == (1, 1, 1, 3)


def test_slaves_have_a_row_of_their_own(tmp_path: Path) -> None:
    write_run(tmp_path, hosts=HOSTS)
    write_samples(
        tmp_path, (1, 10, 200, "OK", "true", 3, "vm-7"), (2, 10, 200, "OK", "true", 4, "vm-8"),
        (3, 10, 500, "Oh", "false", 5, "vm-8"),
    )  # fmt: skip
    (tmp_path / "resources.csv").write_text(
        "time_ms,host,part,cpu_percent,rss_bytes,processes,load\n"
        "1,vm-7,generator,90.0,1,1,\n1,vm-7,host,150.0,1,,2.00\n2,vm-9,host,720.0,1,,9.00\n"
    )
    view = LiveView(tmp_path, has_journal=False, label="request")
    view.read()
    assert {name: (tally.samples, tally.users_now, tally.errors) for name, tally in view.counts.by_slave.items()} == {
        "slave1": (1, 3, 0), "slave2": (2, 5, 1),
    }  # fmt: skip
    assert (view.counts.whole.samples, view.counts.whole.users_now) == (3, 8)
    assert view.counts.busy_cores == {"vm-7": 1.5, "vm-9": 7.2}
    rows = {line.split()[0]: line.split()[-3:] for line in shown(view).splitlines()}
    assert rows["slave1"] == ["1.5", "of", "2"]
    assert rows["function1"] == ["7.2", "of", "8"]


class Collecting(Sink):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.updates: list[Update] = []
        super().__init__("collecting")

    def take(self, update: Update) -> None:
        self.updates.append(update)


def test_sinks_are_told_of_each_row_once_with_its_slave(tmp_path: Path) -> None:
    now_s = time.time()
    write_run(tmp_path, hosts=HOSTS, started_ms=(now_s - 60) * 1000)
    rows = [(*row[:6], "vm-8") for row in answered(3, now_s - 2)] + answered(2, now_s - 1, ok=False)
    write_samples(tmp_path, *rows)
    (tmp_path / "resources.csv").write_text(
        "time_ms,host,part,cpu_percent,rss_bytes,processes,load\n1,vm-7,host,150.0,1,,2.00\n"
    )
    sinks = [Collecting(), Collecting()]
    view = LiveView(tmp_path, has_journal=False, label="request", sinks=sinks)
    view.read(now_s)
    with (tmp_path / "samples.jtl").open("a", newline="") as file:
        csv.writer(file).writerows(answered(1, now_s))
    view.losses = [Loss("vm-8", now_s * 1000, "no word for 10 s")]
    view.read(now_s + 1)
    finish(sinks)
    for sink in sinks:
        first, second = sink.updates
        counts = Counter[str]()
        for interval in first.intervals:
            counts[interval.key.slave] += interval.n
        assert counts == {"slave1": 2, "slave2": 3} and sum(each.errors for each in first.intervals) == 2
        assert [(each.key.slave, each.n) for each in second.intervals] == [("slave1", 1)]
        assert (first.users_now, first.busy_cores, first.losses) == (40, {"slave1": 1.5}, ())
        assert second.glance.lost == ["slave2 was lost: no word for 10 s"]
        assert second.glance.figures[0].text == "6 requests"
        assert [name for name, _ in second.glance.rows] == ["slave1", "slave2"]
        assert (sink.n_intervals, sink.n_missed) == (len(first.intervals) + 1, 0)


@pytest.mark.parametrize(
    "message", ["Connect to h:80 [/127.0.0.1] failed", "[/x] [bold]b[/bold]", "\x1b[2J\x07\r\x9b0m"]
)
def test_messages_are_shown_as_text(tmp_path: Path, message: str) -> None:
    write_samples(tmp_path, (1, 10, 200, "OK", "true", 3, "h"), (2, 10, "x", f"Too, many {message}", "false", 2, "h"))
    view = LiveView(tmp_path, has_journal=False, label="request")
    view.read()
    assert (view.counts.whole.samples, view.counts.whole.users_now, view.counts.whole.errors) == (2, 2, 1)
    visible = "".join(character if character.isprintable() else "?" for character in message.replace("\r", " "))
    for text in (view.line(), shown(view)):
        assert f"Too, many {visible} 1" in text
        assert not set("\x1b\x07\r\x9b") & set(text)


def test_a_run_whose_record_is_not_there_yet(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text('{"hosts": [')
    assert LiveView(tmp_path, has_journal=True, label="frame").counts.by_slave == {}


def test_labels_have_a_row_each_as_far_as_there_is_room(tmp_path: Path) -> None:
    header = "timeStamp,elapsed,label,responseCode,responseMessage,threadName,success,failureMessage,allThreads,URL"
    transaction = '"Number of samples in transaction : 2, number of failing samples : 1"'
    (tmp_path / "samples.jtl").write_text(
        f"{header},sample_kind\n"
        "1000,40,log in,200,OK,t 1-1,true,,1,http://h/home,sample\n"
        "1000,10,http://h/login,302,Found,t 1-1,true,,1,http://h/login,sub-result\n"
        "1010,30,http://h/home,200,OK,t 1-1,true,,1,http://h/home,sub-result\n"
        "1040,20,search,200,OK,t 1-1,false,text expected,1,http://h/search,sample\n"
        f"1000,60,whole visit,,{transaction},t 1-1,false,,1,null,transaction\n"
        "1100,20,search,200,OK,t 1-1,true,,1,http://h/search,sample\n"
    )
    view = LiveView(tmp_path, has_journal=False, label="sample")
    view.read()
    assert (view.counts.whole.samples, view.counts.whole.causes) == (3, {"failed-check: text expected": 1})
    assert {label: (of.samples, of.errors) for label, of in view.counts.by_label.items()} == {
        "log in": (1, 0), "search": (2, 1), "whole visit": (1, 1)
    }  # fmt: skip
    assert (view.table().row_count, view.table(height=3).row_count) == (4, 3)  # with the headings


@pytest.mark.parametrize("is_transaction_first", [False, True])
def test_a_transaction_named_as_its_request_has_a_row_of_its_own(tmp_path: Path, is_transaction_first: bool) -> None:
    now_s = time.time()
    sampler, transaction = answered(1, now_s - 1)[0], answered(1, now_s - 1, rtt_ms=90)[0]
    pair = [(*sampler, "/home", ""), (*transaction, "/home", "transaction")]
    rows = (pair[::-1] if is_transaction_first else pair) * 3
    write_samples(tmp_path, *rows, columns=(*JTL, "label", "sample_kind"))
    view = view_of(tmp_path, now_s)
    assert {name: of.samples for name, of in view.counts.by_label.items()} == {"/home": 3, "/home (transaction)": 3}
    assert view.counts.whole.samples == 3


def test_an_ordinary_terminal_shows_headings_and_causes_whole(tmp_path: Path) -> None:
    now_ms = int(time.time() * 1000)
    causes = ("status-503", "expect-not-met", "connect-timeout")
    write_samples(tmp_path, *((now_ms, 123, 500, cause, "false", 16, "vm-7") for cause in causes))
    write_run(tmp_path, hosts=[])
    view = LiveView(tmp_path, has_journal=False, label="request")
    view.read()
    lines = shown(view, width=80).splitlines()
    assert lines[1] == "3 requests   3.0/s answered   16 users now   3 errors (100 %)   p50 -   p95 -"
    assert len(view.counts.whole.causes) == 3 and all(f"{cause} 1" in lines[3] for cause in view.counts.whole.causes)


@pytest.mark.parametrize(
    "line",
    [
        "[" * 100_000,
        '{"type":"sample","label":"a","user":"b","index":1,"ok":true,"start_ms":1' + "0" * 400 + ',"rtt_ms":1}',
        '{"type":"user","user":"b","duration_ms":1' + "0" * 400 + "}",
        '{"type":"user","user":"b","duration_ms":"1","start_ms":[],"ok":7}',
        "1" * 5000,
        '"a"',
    ],
    ids=["deep", "late", "long", "texts", "long number", "text"],
)
def test_what_a_slave_may_send_does_not_end_the_view(line: str, tmp_path: Path) -> None:
    sample = {**SAMPLE, "start_ms": time.time() * 1000, "ok": False, "cause": "5"}
    (tmp_path / "journal-slave1.jsonl").write_text(f"{line}\n{json.dumps(sample)}\n")
    view = LiveView(tmp_path, has_journal=True, label="frame")
    view.read()
    assert view.counts.whole.causes == {"5": 1} and "errors" in shown(view)


@pytest.mark.parametrize(("length", "n"), [(1 << 18, 2), (1 << 21, 1)])
def test_a_long_row_is_read_and_one_that_is_too_long_ends_no_view(length: int, n: int, tmp_path: Path) -> None:
    csv.field_size_limit(1 << 17)  # as Python begins; other tests change it
    rows = (1, 10, 500, "x" * length, "false", 1, "vm-7"), (2, 10, 200, "OK", "true", 1, "vm-7")
    write_samples(tmp_path, *rows)
    view = LiveView(tmp_path, has_journal=False, label="sample")
    view.read()
    assert view.counts.whole.samples == n and f"{plural(n, 'sample')} " in shown(view)
