"""Each schedule of a plan against what was sent of it, and the reason that a warning gives."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from framestorm.model import files
from framestorm.model.load import Load
from framestorm.model.run import Host, Record
from framestorm.model.summary import Summary
from framestorm.report import build
from framestorm.results.reading import read_results
from framestorm.results.samples import read_samples

START_MS = 1_700_000_000_000
USERS = Load("g", "ThreadGroup", "users", total=4, limit=4, groups=("g",))
OPEN = Load("g", "OpenModelThreadGroup", "arrivals", 100, {"x": [0, 10], "y": [10, 10]}, groups=("g",))
SHAPED = Load("tst", "VariableThroughputTimer", "arrivals", 100, {"x": [0, 10], "y": [10, 10]}, groups=("g",))
PACED = Load("pace", "ConstantThroughputTimer", "arrivals", None, {"x": [0], "y": [10]}, has_end=False, groups=("g",))
PRECISE = Load("pace", "PreciseThroughputTimer", "arrivals", 100, {"x": [0, 10], "y": [10, 10]}, groups=("g",))
GROUP_END = '2023-11-14 22:13:20,000 INFO f.Schedules: {"type":"group_end","at_ms":%d,"group":"g","thread":""}\n'
HEADER = "timeStamp,elapsed,label,responseCode,success,threadName,Hostname"


def at_rate(rate: float, length_s: float, delay_s: float = 0) -> list[float]:
    return [delay_s + n / rate for n in range(round(rate * length_s))]


def summarised(
    folder: Path, loads: Sequence[Load], starts_s: Sequence[float], *, rtt_ms: int = 50, thread: str = "g 1-{}",
    state: str = "complete", log: str = "", ok: str = "true", address: str = "198.18.0.7",
) -> Summary:  # fmt: skip
    """The summary of a run with these loads and samples."""
    folder.mkdir(exist_ok=True)
    end_ms = START_MS + 1000 * max(starts_s, default=0) + rtt_ms
    stopping_ms = end_ms if state == "stopped" else None
    files.write(
        folder / "run.json",
        Record(state=state, started_ms=START_MS, ended_ms=end_ms, stopping_ms=stopping_ms, loads=tuple(loads),
               hosts=(Host("here", "slave", address),)),
    )  # fmt: skip
    rows = [
        f"{START_MS + round(1000 * start_s)},{rtt_ms},call,200,{ok},{thread.format(n % 4 + 1)},here"
        for n, start_s in enumerate(starts_s)
    ]
    (folder / "samples.jtl").write_text("\n".join([HEADER, *rows]) + "\n")
    (folder / "jmeter.log").write_text(log)
    build(folder)
    return files.read(folder / "summary.json", Summary)


def said(summary: Summary) -> str:
    return " ".join(each for each in summary.warnings if " asked for " in each).replace("\u00a0", " ")


@pytest.mark.parametrize(
    ("load", "starts_s"),
    [
        (OPEN, at_rate(10, 10)),
        (OPEN, [*at_rate(10, 9.5), *[10.02] * 5]),  # a busy machine started the last ones after the schedule's end
        (SHAPED, at_rate(10, 10)),
        (SHAPED, at_rate(9.7, 10)),
        (PACED, at_rate(10, 7)),
        (PRECISE, at_rate(10, 10)),
    ],
)
def test_a_schedule_that_is_kept_is_no_warning(load: Load, starts_s: list[float], tmp_path: Path) -> None:
    summary = summarised(tmp_path, (USERS, load), starts_s)
    (reached,) = summary.reached
    assert (reached.is_kept, reached.sent, said(summary)) == (True, len(starts_s), "")


@pytest.mark.parametrize(
    ("load", "starts_s", "rtt_ms", "words"),
    [
        (OPEN, at_rate(10, 9), 50, "100 arrivals in 10.0 s, and 90 were sent (10/s and 9/s): the last was sent 8.90 s"),
        (OPEN, at_rate(100, 1), 50, "100 were sent (10/s and 10/s), of them 100 within a second in which 10 were due"),
        (SHAPED, at_rate(4, 10), 1000, "its 4 threads can send 4/s at most, as a thread waits 1.00 s (mean)"),
        (SHAPED, at_rate(4, 10), 1000, "for 10/s it needs about 11 threads"),
        (SHAPED, at_rate(10, 3), 50, "the thread group ended before the schedule did"),
        (SHAPED, [*at_rate(10, 6.9, 3.1), 0.0], 50, "too few were sent in the first 3 s only, while threads were"),
        (SHAPED, at_rate(13, 10), 50, "130 were sent (10/s and 13/s): the timer sends whole samples in each second"),
        (PACED, at_rate(5, 10), 800, "its 4 threads can send 5/s at most"),
        (PACED, at_rate(5, 10), 50, "the reason is not known"),
        (PRECISE, at_rate(29, 10), 50, "and 290 were sent"),
    ],
)  # fmt: skip
def test_a_schedule_that_is_not_kept_is_said_with_the_reason(
    load: Load, starts_s: list[float], rtt_ms: int, words: str, tmp_path: Path
) -> None:
    summary = summarised(tmp_path, (USERS, load), sorted(starts_s), rtt_ms=rtt_ms)
    assert words in said(summary)
    assert "not_offered" in summary.doubts


def test_threads_that_failed_samples_hold_need_no_others(tmp_path: Path) -> None:
    text = said(summarised(tmp_path, (USERS, SHAPED), at_rate(4, 10), rtt_ms=1000, ok="false"))
    assert "its 4 threads can send 4/s at most, as a thread waits 1.00 s (mean) for its answers" in text
    assert "100 % of that time for samples that failed" in text and "it needs about" not in text


@pytest.mark.parametrize(("timer", "fails"), [(SHAPED, True), (PRECISE, True), (PACED, False)])
def test_a_rate_that_may_be_an_upper_limit_is_a_warning_and_no_failure(
    timer: Load, fails: bool, tmp_path: Path
) -> None:
    summary = summarised(tmp_path, [USERS, timer], at_rate(8, 10), rtt_ms=490)
    assert summary.facts.overload is not None
    assert summary.facts.overload.signs == ["unsent"]
    assert said(summary)
    assert [each.text for each in summary.criteria if each.state == "failed"] == ["overload"] * fails


def test_a_pool_with_fewer_threads_than_it_may_have_is_the_reason(tmp_path: Path) -> None:
    """As of one that follows a timer which is not there."""
    pool = Load("g", "ConcurrencyThreadGroup", "users", limit=40, groups=("g",))
    summary = summarised(tmp_path, (pool, SHAPED), at_rate(2, 10), rtt_ms=500, thread="g 1-1")
    assert "its 1 thread can send 2/s at most" in said(summary)


def test_of_a_run_that_was_stopped_the_rest_was_not_due(tmp_path: Path) -> None:
    summary = summarised(tmp_path, (OPEN,), at_rate(10, 4), state="stopped")
    assert (summary.reached[0].is_kept, round(summary.reached[0].asked)) == (True, 40)


def test_a_group_that_sent_nothing_is_said_and_so_is_one_that_failed(tmp_path: Path) -> None:
    other = Load("h", "ArrivalsThreadGroup", "arrivals", 9, {"x": [0, 9], "y": [1, 1]}, groups=("h",))
    assert "'h' (ArrivalsThreadGroup) asked for 9 arrivals, and none was sent" in said(
        summarised(tmp_path / "none", (OPEN, other), at_rate(10, 10))
    )
    assert "50 samples of its thread group failed" in said(
        summarised(tmp_path / "failed", (OPEN,), at_rate(10, 5), ok="false")
    )


@pytest.mark.parametrize(
    ("address", "thread"),
    [
        ("198.18.0.7", "198.18.0.7-g 1-{}"),
        ("slave-1", "slave-1:8001-g 1-{}"),
        ("slave-1", "g-ThreadStarter 1-{}"),
        ("198.18.0.7", "198.18.0.7:8001-g-ThreadStarter 1-{}"),
    ],
)
def test_samples_are_of_the_group_that_their_thread_is_named_after(address: str, thread: str, tmp_path: Path) -> None:
    summary = summarised(tmp_path, (OPEN,), at_rate(10, 10), thread=thread, address=address)
    assert [reached.sent for reached in summary.reached] == [100]


@pytest.mark.parametrize("thread", ["peak-g 1-{}", "198.18.0.7:8001-peak-g 1-{}"])
def test_the_end_of_a_group_cuts_off_no_other_whose_name_ends_like_its_own(thread: str, tmp_path: Path) -> None:
    log = GROUP_END % (START_MS + 252)
    summary = summarised(tmp_path, (), [0.0, 0.1, 0.2], thread=thread, log=log, ok="false")
    assert (summary.main.n, summary.main.failed, summary.facts.cut_off) == (3, 3, 0)


@pytest.mark.parametrize(
    "message", [GROUP_END, "INFO o.a.j.e.StandardJMeterEngine: Stop Test Now asked for at %d by thread: g 1-1\n"]
)
def test_an_end_on_one_slave_cuts_off_nothing_on_the_others(message: str, tmp_path: Path) -> None:
    hosts = tuple(Host(f"vm-{n}", "slave", f"198.18.0.{n}", inventory_name=f"slave{n}") for n in (1, 2))
    files.write(tmp_path / "run.json", Record(state="complete", started_ms=START_MS, hosts=hosts))
    rows = [f"{START_MS},500,call,,false,198.18.0.{n}:8001-g 1-1,vm-{n}" for n in (1, 2)]
    (tmp_path / "samples.jtl").write_text("\n".join([HEADER, *rows, ""]))
    (tmp_path / "jmeter-server-slave2.log").write_text(message % (START_MS + 100))
    samples = read_results(tmp_path).started.select("host", "cause").sort("host").collect()
    assert samples.rows() == [("vm-1", "unknown"), ("vm-2", "stopped")]


@pytest.mark.parametrize("thread", ["198.18.0.7:8001-g 2-1", ""], ids=["the one that says it", "the last one begun"])
def test_the_end_of_a_group_cuts_off_no_other_of_the_same_name(thread: str, tmp_path: Path) -> None:
    """As of two groups that were never named, one after the other."""
    begins = "".join(f"INFO o.a.j.e.StandardJMeterEngine: Starting ThreadGroup: {n} : g\n" for n in (1, 2))
    log = begins + GROUP_END.replace('"thread":""', f'"thread":"{thread}"') % START_MS
    summary = summarised(tmp_path, (), [0.0, 0.1], thread="g {}-1", log=log, ok="false")
    assert (summary.main.n, summary.main.failed, summary.facts.cut_off) == (1, 1, 1)


def test_groups_of_one_name_have_the_samples_of_their_own_threads(tmp_path: Path) -> None:
    loads = [replace(OPEN, numbers=(number,)) for number in (1, 2)]
    summary = summarised(tmp_path, loads, at_rate(20, 10), thread="g {}-1")
    # Of the four groups that the threads are of, two are asked for.
    assert [(reached.sent, reached.asked) for reached in summary.reached] == [(50, 100), (50, 100)]


def test_samples_that_a_schedules_end_cut_off_are_no_failures(tmp_path: Path) -> None:
    summary = summarised(tmp_path, (OPEN,), [0.0, 0.1, 0.2], log=GROUP_END % (START_MS + 252), ok="false")
    # The last ended after the group's threads were told to, by a clock that is 2 ms late.
    assert (summary.main.n, summary.main.causes, summary.facts.cut_off) == (2, {"unknown": 2}, 1)
    assert read_samples(tmp_path).sent == 2, "nor are they for a comparison"


def test_each_slave_counts_from_its_own_start(tmp_path: Path) -> None:
    summary = summarised(tmp_path, (OPEN,), at_rate(10, 10))
    header, *rows = (tmp_path / "samples.jtl").read_text().splitlines()
    # Every other sample is of a slave that began 3 s later.
    late = [row.replace(",here", ",there").replace(row[:13], str(int(row[:13]) + 3000)) for row in rows[1::2]]
    (tmp_path / "samples.jtl").write_text("\n".join([header, *rows[::2], *late]) + "\n")
    build(tmp_path)
    assert files.read(tmp_path / "summary.json", Summary).reached[0].is_kept
    assert summary.reached[0].is_kept
