"""Stop rules are judged on the seconds of a run that goes on."""

import math

import numpy as np
import pytest

from framestorm.model.run import Decision
from framestorm.model.stop_rule import STOP_IF, STOP_WHEN, parse
from framestorm.results.interval import Interval, Key
from framestorm.run.live.stop_rules import StopRules


def second(
    at: int, times_ms: list[float], errors: int = 0, label: str = "request", kind: str = "sampler", slave: str = ""
) -> Interval:
    """What ended in a second."""
    interval = Interval(Key._make((at, label, kind, slave)))
    for ms in times_ms:
        interval.add(at + 0.5 - ms / 1000, ms, None)
    for _ in range(errors):
        interval.add(at + 0.4, 100, "status-503")
    return interval


def ended(rule: str, *intervals: Interval) -> Decision | None:
    """What a rule decides, asked after each second."""
    rules = StopRules([parse(STOP_IF, rule, "request")])
    for at in range(max(each.key.second for each in intervals) + 1):
        for interval in intervals:
            if interval.key.second == at:
                rules.take(interval)
        if decision := rules.decision(at + 1.6):
            return decision
    return None


@pytest.mark.parametrize(
    ("rule", "slow", "at"),
    [
        ("p95 > 1 s for 3 s", {3, 4, 5}, 5),
        ("p95 > 1 s for 3 s", {3, 4, 6, 7, 9}, None),
        ("p95 > 1 s for 3 s", {3, 4, 6, 7, 8}, 8),
        ("p95 > 1 s for 1 s", {2}, 2),
        ("p95 > 1 s over 4 s", {0, 1}, 3),
        ("median > 1 s over 4 s", {0}, None),
        ("median > 1 s over 4 s", {4, 5, 6}, 6),
        ("median > 1 s over 4 s for 2 s", {4, 5, 6}, 7),
    ],
)
def test_times_of_windows(rule: str, slow: set[int], at: int | None) -> None:
    decision = ended(rule, *(second(each, [2000 if each in slow else 100] * 10) for each in range(12)))
    assert (None if decision is None else decision.at_ms) == (None if at is None else (at + 1.6) * 1000)


def test_a_window_has_the_exact_percentile_of_its_samples() -> None:
    random = np.random.default_rng(1)
    seconds = [np.round(random.uniform(100, 900, 37)) for _ in range(6)]
    decision = ended("p90 > 1 ms over 5 s", *(second(at, [*times]) for at, times in enumerate(seconds)))
    first = np.sort(np.concatenate(seconds[:5]))
    assert decision is not None
    assert decision.value == first[math.ceil(0.9 * first.size) - 1]


def test_a_second_in_which_nothing_ends_neither_breaks_nor_adds() -> None:
    slow = [second(at, [6000.0]) for at in (10, 13, 16, 19)]
    assert ended("p95 > 5 s for 10 s", *slow[:3]) is None
    decision = ended("p95 > 5 s for 10 s", *slow)
    assert decision is not None and decision.at_ms == 20_600


def test_a_share_of_errors_needs_its_whole_time() -> None:
    assert ended("errors > 10 % over 5 s", *(second(at, [], errors=3) for at in range(4))) is None
    decision = ended("errors > 10 % over 5 s", *(second(at, [50.0] * 8, errors=1) for at in range(9)))
    assert decision is not None and (decision.at_ms, decision.measured) == (5600, "11.1\N{NO-BREAK SPACE}%")


def test_a_count_is_of_the_whole_run() -> None:
    decision = ended("errors > 5", *(second(at, [50.0] * 8, errors=2) for at in range(9)))
    assert decision is not None and (decision.at_ms, decision.value) == (3600, 6)


def test_a_rate_falls_to_0_where_nothing_ends() -> None:
    busy = [second(at, [50.0] * 8) for at in range(5)]
    assert ended("rate < 5/s for 3 s", *busy) is None
    rules = StopRules([parse(STOP_IF, "rate < 5/s for 3 s", "request")])
    for each in busy:
        rules.take(each)
    assert rules.decision(7.6) is None
    decision = rules.decision(8.6)
    assert decision is not None and decision.value == 0


@pytest.mark.parametrize("rule", ["rate < 11/s for 3 s", "rate < 11/s over 3 s"])
def test_the_whole_load_is_judged_once_all_slaves_have_begun(rule: str) -> None:
    rules = StopRules([parse(STOP_IF, rule, "request")], ["slave1", "slave2"])
    for at in range(12):
        rules.take(second(at, [50.0] * 10, slave="slave1"))
        if at > 6:
            rules.take(second(at, [50.0] * 10, slave="slave2"))
        assert rules.decision(at + 1.6) is None
    for at in range(12, 15):
        assert rules.decision(at + 0.6) is None
        rules.take(second(at, [50.0] * 10, slave="slave1"))
    decision = rules.decision(15.6)
    assert decision is not None and decision.value == pytest.approx(10)


@pytest.mark.parametrize(("lost", "at_ms"), [([], 10_600), (["slave2"], 3600)])
def test_a_slave_that_stays_silent_holds_no_rule_up(lost: list[str], at_ms: float) -> None:
    rules = StopRules([parse(STOP_IF, "p95 > 1 ms for 3 s", "request")], ["slave1", "slave2"])
    for at in range(20):
        rules.take(second(at, [50.0] * 10, slave="slave1"))
        if decision := rules.decision(at + 1.6, lost):
            assert decision.at_ms == at_ms
            return
    pytest.fail("no decision")


@pytest.mark.parametrize(("label", "ends"), [("b", True), ("*", True), ("all", False), ("a", False), ("c", False)])
def test_the_label_of_a_rule(label: str, *, ends: bool) -> None:
    quick, slow = (
        [second(at, [ms] * n, label=name) for at in range(9)] for name, ms, n in (("a", 50, 9), ("b", 5e3, 1))
    )
    decision = ended(f"{label} p90 > 1 s for 3 s", *quick, *slow)
    assert (decision is not None) == ends
    if decision:
        assert decision.label == "b"


def long_enough(figure: str, seconds: list[Interval]) -> float | None:
    """After how many seconds a rule of --stop-when ends the load."""
    rules = StopRules([parse(STOP_WHEN, figure, "request")])
    assert rules.decision(1.7e9) is None
    for each in seconds:
        rules.take(each)
        if rules.decision(each.key.second + 1.6):
            return each.key.second + 1
    return None


@pytest.mark.parametrize("figure", ["mean within 5 %", "p90 within 5 %"])
def test_a_narrower_interval_takes_longer(figure: str) -> None:
    random = np.random.default_rng(7)
    seconds = [second(at, [*(100 * random.lognormal(0, 0.5, 50))]) for at in range(900)]
    wide, narrow = long_enough(figure, seconds), long_enough(figure.replace("5", "1"), seconds)
    assert wide is not None and narrow is not None
    assert 40 <= wide < narrow < 900


def test_a_figure_that_still_changes_is_not_known() -> None:
    random = np.random.default_rng(7)
    seconds = [second(at, [*((100 + at) * random.lognormal(0, 0.1, 50))]) for at in range(400)]
    assert long_enough("mean within 20 %", seconds) is None


def test_a_percentile_needs_samples_above_it() -> None:
    assert long_enough("p99 within 50 %", [second(at, [100.0] * 10) for at in range(300)]) is None
    assert long_enough("mean within 50 %", [second(at, [100.0] * 10) for at in range(300)]) == 40
