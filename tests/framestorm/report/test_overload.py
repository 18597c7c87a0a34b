"""Whether a function kept up with the rate that it was asked: no miss, and no false alarm."""

import heapq
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from framestorm.load.fields import curve
from framestorm.load.text import parse as parse_load
from framestorm.model.criteria import parse
from framestorm.model.files import read, write
from framestorm.model.judgement import LoadFigures, judge
from framestorm.model.load import Load
from framestorm.model.overload import Overload
from framestorm.model.run import Record
from framestorm.model.series import Curves
from framestorm.model.summary import Summary
from framestorm.report import build
from framestorm.report.asked import Asked, read_asked
from framestorm.report.overload import Arrivals, overload
from framestorm.report.rates import asked_rates, rates
from framestorm.report.series import in_flight
from framestorm.results.table import users_table
from framestorm.stats.checks import Flags, Floats
from tests.framestorm.results.conftest import START_MS, write_jtl

Random = np.random.Generator


def even(rate: float, length_s: float) -> Floats:
    return np.arange(round(rate * length_s)) / rate


def poisson(rate: float, length_s: float, random: Random) -> Floats:
    return np.sort(random.random(random.poisson(rate * length_s)) * length_s)


def queued(starts: Floats, takes_s: Floats, workers: int = 1, ready_s: float = 0.0) -> Floats:
    """When requests are answered that wait in turn for one of the workers."""
    free = [ready_s] * workers
    ends = np.empty_like(starts)
    for number, (start, take) in enumerate(zip(starts, takes_s, strict=True)):
        ends[number] = max(start, heapq.heappop(free)) + take
        heapq.heappush(free, ends[number])
    return ends


def around(mean_s: float, n: int, random: Random) -> Floats:
    return mean_s * (0.8 + 0.4 * random.random(n))


def judged(
    starts: Floats, ends: Floats, asked: Curves | None = None, failed: Flags | None = None, cause: str | None = None,
    arrivals: Arrivals | None = None, limit: int | None = None, is_paced: bool = False, late_s: float = 0.0,
    generator: str = "",
) -> Overload | None:  # fmt: skip
    wrong = np.zeros(starts.size, bool) if failed is None else failed
    table = pl.DataFrame(
        {
            "start_ms": np.round(START_MS + 1000 * starts), "rtt_ms": 1000 * (ends - starts), "ok": ~wrong,
            "timed_out": wrong & (cause == "timeout"), "intended_ms": np.round(START_MS + 1000 * (starts - late_s)),
            "cause": pl.Series([cause if each else None for each in wrong], dtype=pl.String), "host": "a",
        }
    ).lazy()  # fmt: skip
    flight = in_flight(table, users_table([]).lazy(), [], START_MS, "request", {})
    schedule = Asked(asked or {}, limit, is_paced)
    per_s = rates(table, flight, schedule.per_s)
    return overload(table, schedule, per_s, arrivals or Arrivals(), START_MS, generator)


def steady(rate: float, length_s: float) -> Curves:
    return {"x": [0.0, length_s], "y": [rate, rate]}


def signs(found: Overload | None) -> list[str]:
    return [] if found is None else list(found.signs)


def constant(random: Random) -> Overload | None:
    """Answers that take 20 s each of a load of 30 s: two thirds of them come after it."""
    starts = even(80, 30)
    return judged(starts, starts + 20 + 0.2 * random.random(starts.size), steady(80, 30))


def longer_than_the_load(random: Random) -> Overload | None:
    starts = poisson(80, 30, random)
    return judged(starts, starts + 60 + 5 * random.standard_normal(starts.size), steady(80, 30))


def few(random: Random) -> Overload | None:
    starts = even(1, 11)
    return judged(starts, starts + random.lognormal(0, 1, starts.size), steady(1, 11))


def near_its_capacity(random: Random) -> Overload | None:
    """At 80 % of what it can, with arrivals and times at random."""
    starts = poisson(48, 30, random)
    return judged(starts, queued(starts, random.exponential(1 / 60, starts.size)), steady(48, 30))


def cold(random: Random) -> Overload | None:
    """Ready after 8 s, and then fast enough to answer what has waited."""
    starts = even(80, 30)
    return judged(starts, queued(starts, around(0.01, starts.size, random), ready_s=8.0), steady(80, 30))


def pause(random: Random) -> Overload | None:
    """The generator sends nothing for 3 s, and then all of it at once, shortly before the end."""
    starts = even(80, 30)
    starts = np.where((starts > 26) & (starts < 29), 29.0, starts)
    return judged(starts, queued(starts, around(0.011, starts.size, random)), steady(80, 30))


def single_timeouts(random: Random) -> Overload | None:
    starts = even(80, 30)
    hang = random.random(starts.size) < 0.03
    return judged(starts, np.where(hang, starts + 5, starts + 0.05), steady(80, 30), hang, "timeout")


def short_outage(random: Random) -> Overload | None:
    starts = even(80, 60)
    out = (starts > 45) & (starts < 47)
    return judged(starts, starts + 0.05 + 0.01 * random.random(starts.size), steady(80, 60), out, "status-503")


def wrong_answers(random: Random) -> Overload | None:
    starts = even(80, 30)
    return judged(starts, starts + 0.05, steady(80, 30), random.random(starts.size) < 0.2, "status-500")


def ramp(random: Random) -> Overload | None:
    """More and more in flight, because more and more is asked for."""
    starts = 30 * np.sqrt(np.arange(1200) / 1200)
    return judged(starts, starts + random.exponential(1.0, 1200), {"x": [0.0, 30.0], "y": [0.0, 80.0]})


@pytest.mark.parametrize(
    "keeps_up",
    [constant, longer_than_the_load, few, near_its_capacity, cold, pause, single_timeouts, short_outage, wrong_answers,
     ramp],
)  # fmt: skip
def test_a_function_that_keeps_up_is_not_blamed(keeps_up: Callable[[Random], Overload | None]) -> None:
    wrong = [seed for seed in range(12) if signs(keeps_up(np.random.default_rng(seed)))]
    assert wrong == []


def fast_growth(random: Random) -> Overload | None:
    starts = even(80, 10)
    return judged(starts, queued(starts, around(1 / 60, starts.size, random)), steady(80, 10))


def slow_growth(random: Random) -> Overload | None:
    starts = even(62, 60)
    return judged(starts, queued(starts, around(6 / 60, starts.size, random), workers=6), steady(62, 60))


def very_slow_growth(random: Random) -> Overload | None:
    starts = even(20.2, 600)
    return judged(starts, queued(starts, around(1 / 20, starts.size, random)), steady(20.2, 600))


def few_and_slow(random: Random) -> Overload | None:
    starts = even(1, 20)
    return judged(starts, queued(starts, around(2.0, starts.size, random)), steady(1, 20))


def in_any_order(random: Random) -> Overload | None:
    """Whoever waits may be next."""
    starts, ends, waiting, at_s, number = even(80, 20), np.empty(1600), list[int](), 0.0, 0
    while number < starts.size or waiting:
        while number < starts.size and starts[number] <= at_s:
            waiting.append(number)
            number += 1
        if not waiting:
            at_s = float(starts[number])
            continue
        at_s += 1 / 60
        ends[waiting.pop(int(random.integers(len(waiting))))] = at_s
    return judged(starts, ends, steady(80, 20))


def only_at_the_peak(random: Random) -> Overload | None:
    """Twice its capacity for 20 s of 100, after which the queue is worked off."""
    starts = np.concatenate([even(20, 20), 20 + even(100, 20), 40 + even(10, 60)])
    asked: Curves = {"x": [0.0, 20.0, 20.0, 40.0, 40.0, 100.0], "y": [20.0, 20.0, 100.0, 100.0, 10.0, 10.0]}
    return judged(starts, queued(starts, around(1 / 60, starts.size, random)), asked)


def without_a_known_schedule(random: Random) -> Overload | None:
    starts = poisson(80, 20, random)
    return judged(starts, queued(starts, around(1 / 60, starts.size, random)))


@pytest.mark.parametrize(
    "falls_behind",
    [
        fast_growth,
        slow_growth,
        very_slow_growth,
        few_and_slow,
        in_any_order,
        only_at_the_peak,
        without_a_known_schedule,
    ],
)
def test_a_queue_that_grows_is_noticed(falls_behind: Callable[[Random], Overload | None]) -> None:
    assert all(signs(falls_behind(np.random.default_rng(seed))) == ["backlog"] for seed in range(3))


@pytest.mark.parametrize(("rate", "length_s"), [(80, 30), (62, 180)])
def test_a_timeout_that_caps_the_wait_is_noticed(rate: float, length_s: float) -> None:
    """Sixty a second, and nobody waits for more than 2 s: in flight does not grow any more."""
    starts, free = even(rate, length_s), 0.0
    ends, cut = np.empty_like(starts), np.zeros(starts.size, bool)
    for number, start in enumerate(starts):
        cut[number] = free - start > 2
        ends[number] = start + 2 if cut[number] else max(start, free) + 1 / 60
        free = free if cut[number] else ends[number]
    found = judged(starts, ends, steady(rate, length_s), cut, "timeout")
    assert signs(found) == ["timed_out"]


@pytest.mark.parametrize(("rate", "length_s"), [(80, 20), (62, 60)])
def test_requests_that_are_refused_are_noticed(rate: float, length_s: float) -> None:
    starts, free = even(rate, length_s), 0.0
    ends, refused = np.empty_like(starts), np.zeros(starts.size, bool)
    for number, start in enumerate(starts):
        refused[number] = free - start > 0.2
        ends[number] = start + 0.001 if refused[number] else max(start, free) + 1 / 60
        free = free if refused[number] else ends[number]
    found = judged(starts, ends, steady(rate, length_s), refused, "status-503")
    assert found is not None and found.signs == ["refused"] and found.answered_per_s == pytest.approx(60, rel=0.02)


@pytest.mark.parametrize(("is_refused", "blamed"), [(True, ""), (False, "vm was saturated")])
def test_a_saturated_generator_that_sends_late_is_not_to_blame_for_what_the_function_refuses(
    is_refused: bool, blamed: str
) -> None:
    starts, random = even(80, 30), np.random.default_rng(3)
    refused = random.random(starts.size) < 0.3 * is_refused
    ends = np.where(refused, starts + 0.001, starts + 0.02 + 0.05 * starts)
    found = judged(starts, ends, steady(80, 30), refused, "status-429", late_s=0.5, generator="vm was saturated")
    assert found is not None and found.generator == blamed
    assert ("refused" in found.signs) == is_refused


@pytest.mark.parametrize("is_paced", [False, True])
def test_requests_that_are_not_sent_are_noticed(is_paced: bool) -> None:
    """Each of 20 threads waits for an answer: of 80/s that are due, 60/s can be sent."""
    starts, limit = even(60, 30), 20
    ends = starts + limit / 60
    sent = Arrivals() if is_paced else Arrivals(2400, 600)
    schedule, saturated = steady(80, 30), "vm was saturated"
    found = judged(starts, ends, schedule, arrivals=sent, limit=limit, is_paced=is_paced, generator=saturated)
    assert found is not None and (found.signs, found.generator) == (["unsent"], "")
    # Threads that do not wait are no sign of a slow function.
    free = judged(starts, starts + 0.01, steady(80, 30), arrivals=sent, limit=limit, is_paced=is_paced)
    assert signs(free) == []


def test_arrivals_dropped_in_a_pause_of_a_saturated_generator_are_its_own() -> None:
    """For a second, all 20 threads wait."""
    due = even(80, 30)
    waits = (due >= 10) & (due < 11)
    has_thread = ~waits | (due < 10.25)
    starts = due[has_thread]
    ends = np.where(waits[has_thread], 11, starts + 0.01)
    arrivals = Arrivals(due.size, due.size - starts.size)
    found = judged(starts, ends, steady(80, 30), arrivals=arrivals, limit=20, generator="vm was saturated")
    assert found is not None and "unsent" in found.signs
    assert found.generator == "vm was saturated"


def rows(starts: Floats, ends: Floats, thread: str = "arrivals 1-1") -> list[dict[str, object]]:
    return [
        {"timeStamp": int(START_MS + 1000 * start), "elapsed": round(1000 * (end - start)), "label": "request",
         "responseCode": "200", "responseMessage": "OK", "success": "true", "threadName": thread}
        for start, end in zip(starts, ends, strict=True)
    ]  # fmt: skip


def run_of(folder: Path, capacity: float, **record: object) -> Path:
    starts = even(80, 10)
    write_jtl(folder / "samples.jtl", rows(starts, queued(starts, np.full(starts.size, 1 / capacity))))
    properties = {"rate_per_s": "80", "ramp_s": "0", "hold_s": "10"}
    run = {"format": 2, "state": "complete", "plan": "jmx/request-rate.jmx", "label": "request", "started_ms": START_MS}
    (folder / "run.json").write_text(json.dumps(run | {"properties": properties} | record))
    (folder / "jmeter.log").write_text('INFO arrival: {"type":"arrivals","due":800,"dropped":0}\n')
    return folder


def criteria(folder: Path) -> dict[str, str]:
    return {each.text: each.state for each in read(folder / "summary.json", Summary).criteria}


@pytest.mark.parametrize("given", [[], ["success < 99 %"]])
def test_a_run_that_falls_behind_fails_whatever_its_criteria(tmp_path: Path, given: list[str]) -> None:
    folder = run_of(tmp_path, 60, criteria=given)
    assert build(folder).exit_status == 3
    made = read(folder / "summary.json", Summary)
    assert [each.state for each in made.criteria] == ["passed", "failed"]
    assert made.doubts[0] == "overloaded"
    text = made.warnings[0].replace("\u00a0", " ")
    assert text.startswith("The function did not keep up: asked 80.0/s, answered 60.")
    assert "up to 201 requests waited, and response times grow with the length of the run" in text
    assert "--accept-overload" in text
    assert made.criteria[-1].text == "overload" and made.criteria[-1].measured.startswith("asked 80.0/s, answered 60.")


def test_an_overload_can_be_accepted(tmp_path: Path) -> None:
    folder = run_of(tmp_path, 60)
    assert build(folder, accepts_overload=True).exit_status == 0
    assert criteria(folder) == {"request success < 100 %": "passed"}
    assert read(folder / "summary.json", Summary).warnings[0].startswith("The function did not keep up")
    run_of(tmp_path, 60, accepts_overload=True)
    assert build(folder).exit_status == 0
    assert build(folder, ["overload"]).exit_status == 3


def test_a_run_that_keeps_up_passes(tmp_path: Path) -> None:
    folder = run_of(tmp_path, 100)
    assert build(folder).exit_status == 0
    assert criteria(folder) == {"request success < 100 %": "passed", "overload": "passed"}


@pytest.mark.parametrize(
    ("criterion", "state"),
    [
        ("answered rate < 79/s", "failed"),
        ("answered < 55/s", "passed"),
        ("asked rate < 80/s", "passed"),
        ("in_flight > 100", "failed"),
        ("in_flight > 300", "passed"),
        ("dropped > 0", "passed"),
        ("dropped >= 0 %", "failed"),
    ],
)
def test_the_load_has_metrics(tmp_path: Path, criterion: str, state: str) -> None:
    build(run_of(tmp_path, 60), [criterion], accepts_overload=True)
    assert criteria(tmp_path) == {criterion: state}


@pytest.mark.parametrize("criterion", ["asked rate < 80/s", "dropped > 0", "overload"])
def test_without_a_schedule_it_is_not_judged(tmp_path: Path, criterion: str) -> None:
    run_of(tmp_path, 60, properties={})
    (tmp_path / "jmeter.log").unlink()
    assert build(tmp_path, [criterion]).exit_status == 3
    (judgement,) = read(tmp_path / "summary.json", Summary).criteria
    assert judgement.state == "unjudged" and "no schedule" in judgement.why


@pytest.mark.parametrize("rate", ["100/min", "200/min", "7/min", "50/s"])
def test_a_rate_at_its_limit_is_neither_above_nor_below(rate: str) -> None:
    points = curve(parse_load(f"{rate} for 10 min", "arrivals"))
    load = Load("a", "OpenModelThreadGroup", "arrivals", curve=points, has_end=True)
    asked = read_asked(Record(loads=(load,)), 0.0)
    assert asked is not None
    figures = LoadFigures(asked_per_s=asked_rates(asked.per_s)[0], due=9)
    assert [judge(parse(f"asked rate {op} {rate}"), {}, figures).state for op in "<>"] == ["passed", "passed"]


def test_what_several_groups_ask_for_is_added() -> None:
    first = Load("a", "OpenModelThreadGroup", "arrivals", curve={"x": [0, 0, 10], "y": [0, 5, 5]})
    second = Load("b", "ArrivalsThreadGroup", "arrivals", curve={"x": [0, 10], "y": [0, 10]}, start_s=5.0)
    users = Load("c", "ThreadGroup", "users", total=3)
    found = read_asked(Record(loads=(first, second, users)), 2.0)
    assert found is not None and found.groups == ("a", "b")
    x, y = found.per_s["x"], found.per_s["y"]
    assert [float(np.interp(at, x, y)) for at in (3.0, 9.0, 14.5)] == pytest.approx([5.0, 7.0, 7.5], abs=1e-3)  # type: ignore[arg-type]
    assert read_asked(Record(loads=(users,)), 0.0) is None


@pytest.mark.parametrize(
    "other",
    [
        Load("quick", "OpenModelThreadGroup", "arrivals", 1000, steady(100, 10), groups=("quick",)),
        Load("quick", "ThreadGroup", "users", 3, groups=("quick",)),
    ],
    ids=["open", "users"],
)
def test_each_schedule_of_a_plan_is_judged(other: Load, tmp_path: Path) -> None:
    """Also one that is a small part of what is asked."""
    slow = Load("slow", "ArrivalsThreadGroup", "arrivals", 80, steady(8, 10), groups=("slow",))
    starts, many = even(8, 10), even(100, 10)
    of_slow = rows(starts, queued(starts, np.full(starts.size, 1 / 5)), "slow-ThreadStarter 1-1")
    write_jtl(tmp_path / "samples.jtl", rows(many, many + 0.01, "quick 1-1") + of_slow)
    record = Record(state="complete", plan="theirs.jmx", started_ms=START_MS, loads=(other, slow))
    write(tmp_path / "run.json", record)
    assert build(tmp_path).exit_status == 3
    summary = read(tmp_path / "summary.json", Summary)
    assert [(each.text, each.measured) for each in summary.criteria if each.state == "failed"] == [
        ("overload", "asked 8.00/s, answered 5.00/s")
    ]
    names = " with 'slow'" if other.is_open else ""
    assert summary.warnings[0].startswith(f"The function did not keep up{names}: asked 8.00/s, answered 5.00/s")
