"""The next load of a search, and its answer, by servers whose capacity is known."""

import math
import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from framestorm.judge.search import Search
from framestorm.model.search import LoadRange, Outcome, Probe

RATES = LoadRange("rate_per_s", 1, 1000)
Server = Callable[[float], Probe]


def probe(load: float, *, is_met: bool, value: float = 1.0, generator: str = "") -> Probe:
    return Probe(load, "", [Outcome("p95 < 500 ms", is_met, f"{value:g} ms", value)], generator=generator)


def rising(
    load: float, capacity: float, noise: float = 0.0, draw: random.Random | None = None, power: float = 8
) -> Probe:
    """Return a probe whose figure grows as a power of the load, with random noise."""
    margin = power * math.log(load / capacity) + (draw.gauss(0, noise) if draw else 0.0)
    value = 500 * math.exp(margin)
    outcome = Outcome(
        "p95 < 500 ms", margin < 0, f"{value:g} ms", value, is_sure=abs(margin) > 2 * noise, margin=margin
    )
    return Probe(load, "", [outcome])


def up_to(capacity: float) -> Server:
    return lambda load: probe(load, is_met=load <= capacity, value=100 if load <= capacity else 2000)


def searched(server: Server, over: LoadRange = RATES) -> Search:
    """The search over a server that answers each probe, at its end."""
    search, probes = Search(over), list[Probe]()
    while (load := search.next_load()) is not None:
        probes.append(server(load))
        assert len(probes) <= 30
        search = Search(over, probes)
    return search


@pytest.mark.parametrize("capacity", [1.0, 1.7, 12.3, 16.0, 49.0, 130.0, 499.0, 990.0])
def test_it_finds_a_capacity_within_5_percent_in_15_probes(capacity: float) -> None:
    tried: list[float] = []

    def server(load: float) -> Probe:
        tried.append(load)
        return up_to(capacity)(load)

    answer = searched(server).answer()
    assert answer is not None
    assert answer.word == "found"
    assert answer.highest is not None
    assert answer.first_fail is not None
    assert answer.highest <= capacity < answer.first_fail <= answer.highest * 1.055
    assert len(tried) <= 15
    assert tried.count(answer.highest) >= 2
    assert tried.count(answer.first_fail) >= 2
    assert max(tried) <= max(4.1 * capacity, 4)
    assert (answer.binding, answer.is_cliff) == ("p95 < 500 ms", True)


def test_after_a_load_with_no_answer_the_highest_that_passed_shows_whether_it_recovers() -> None:
    """One that did not would fail at every load from there on."""
    passed = [replace(probe(load, is_met=True), answered_per_s=load) for load in (1, 4, 16)]
    silent = replace(probe(64, is_met=False), answered_per_s=0.0)
    assert Search(RATES, [*passed, silent]).next_load() == 16
    assert Search(RATES, [*passed, replace(silent, answered_per_s=3.0)]).next_load() == 32, "there are some answers"
    recovered = [*passed, silent, passed[-1]]
    assert Search(RATES, recovered).next_load() == 32
    assert Search(RATES, [*recovered, replace(silent, load=32)]).next_load() == 22.6, "it is known to recover"


@pytest.mark.parametrize("falls_behind_from", [130, math.inf])
def test_an_objective_without_a_margin_hides_no_crossing(falls_behind_from: float) -> None:
    """That an open load is kept up with is one of each search: it has no figure that could be fitted."""
    draw = random.Random(7)  # noqa: S311

    def server(load: float) -> Probe:
        response_time = rising(load, 100, 0.1, draw)
        keeps_up = Outcome("it keeps up with the rate", load < falls_behind_from, "")
        return replace(response_time, outcomes=[*response_time.outcomes, keeps_up])

    answer = searched(server).answer()
    assert answer is not None and answer.interval is not None
    assert answer.interval[0] <= 100 <= answer.interval[1]
    assert (answer.low or 0) <= answer.interval[0] and (answer.high or math.inf) >= answer.interval[1]
    assert answer.highest == pytest.approx(100, rel=0.05)


def test_where_an_objective_without_a_margin_decides_no_line_is_drawn() -> None:
    def server(load: float) -> Probe:
        response_time = rising(load, 100)
        return replace(response_time, outcomes=[*response_time.outcomes, Outcome("it keeps up", load <= 70, "")])

    answer = searched(server).answer()
    assert answer is not None and answer.highest is not None and answer.first_fail is not None
    assert (answer.interval, answer.binding) == (None, "it keeps up")
    assert answer.highest <= 70 < answer.first_fail <= answer.highest * 1.055


@pytest.mark.parametrize("noise", [0.05, 0.3])
def test_an_answer_never_contradicts_itself_or_leaves_the_range(noise: float) -> None:
    for seed in range(200):
        draw = random.Random(seed)  # noqa: S311
        capacity = draw.uniform(95, 135)

        def server(load: float, capacity: float = capacity, draw: random.Random = draw) -> Probe:
            return rising(load, capacity, noise, draw, power=2)

        answer = searched(server, LoadRange("rate_per_s", 100, 130)).answer()
        assert answer is not None
        assert answer.highest is None or 100 <= answer.highest <= 130
        assert answer.highest is None or answer.first_fail is None or answer.highest < answer.first_fail


def test_users_are_whole_numbers() -> None:
    answer = searched(up_to(7.5), LoadRange("users", 1, 64, is_whole=True)).answer()
    assert answer is not None
    assert (answer.highest, answer.first_fail) == (7, 8)


def test_the_end_of_the_range_is_only_a_lower_bound() -> None:
    answer = searched(up_to(5000)).answer()
    assert answer is not None
    assert (answer.word, answer.highest, answer.first_fail) == ("at_least", 1000, None)
    assert "range" in answer.why


def test_a_range_above_the_capacity_is_said_after_two_probes() -> None:
    tried = []

    def server(load: float) -> Probe:
        tried.append(load)
        return up_to(0.5)(load)

    answer = searched(server).answer()
    assert answer is not None
    assert (answer.word, answer.highest, answer.first_fail, tried) == ("below_range", None, 1, [1, 1])


@pytest.mark.parametrize("limit", [3.0, 33.0, 320.0, 700.0])
def test_the_limit_of_the_generator_is_never_that_of_the_function(limit: float) -> None:
    answer = searched(
        lambda load: probe(load, is_met=True) if load <= limit else probe(load, is_met=False, generator="it is slow")
    ).answer()
    assert answer is not None
    assert (answer.word, answer.first_fail) == ("at_least", None)
    assert answer.highest is not None
    assert limit / 1.06 <= answer.highest <= limit
    assert "it is slow" in answer.why


@pytest.mark.parametrize("disturbed", [1, 2])
def test_a_generator_that_was_disturbed_once_at_a_load_that_it_can_make_is_no_limit(disturbed: int) -> None:
    """Other work takes up the machine during one probe at a load, or during every probe there."""
    left = {32.0: disturbed}

    def server(load: float) -> Probe:
        if left.get(load):
            left[load] -= 1
            return probe(load, is_met=False, generator="it was saturated")
        return probe(load, is_met=load <= 40)

    answer = searched(server, LoadRange("users", 8, 128, is_whole=True)).answer()
    assert answer is not None
    assert not left[32]
    if disturbed == 1:
        assert (answer.word, answer.highest, answer.why) == ("found", 40, "")
    else:
        assert answer.word == "at_least" and answer.why == "with 32 users, it was saturated"


def test_a_load_that_failed_once_by_chance_is_decided_by_the_majority() -> None:
    results = {1: [True], 2: [False, True, True], 4: [True]}
    probes = [probe(load, is_met=is_met) for load, each in results.items() for is_met in each]
    over = LoadRange("users", 1, 4, is_whole=True)
    assert Search(over, probes).next_load() == 4
    tie = [*probes, probe(4, is_met=False)]
    assert Search(over, tie).next_load() == 4


def test_an_answer_near_the_limit_is_within_5_percent_although_probes_vary() -> None:
    within = 0
    for seed in range(100):
        draw = random.Random(seed)  # noqa: S311 - a fixed seed

        def server(load: float, draw: random.Random = draw) -> Probe:
            measured = 500 * (load / 80) ** 8 * math.exp(draw.gauss(0, 0.1))
            return probe(load, is_met=measured < 500, value=measured)

        answer = searched(server).answer()
        within += answer is not None and answer.highest is not None and abs(answer.highest / 80 - 1) <= 0.05
    assert within >= 90


@pytest.mark.parametrize("capacity", [3.3, 12.3, 49.0, 130.0, 499.0, 900.0])
def test_where_the_figure_rises_the_answer_is_where_it_crosses_its_limit(capacity: float) -> None:
    within, held = 0, 0
    for seed in range(50):
        draw, tried = random.Random(seed), list[float]()  # noqa: S311 - a fixed seed

        def server(load: float, draw: random.Random = draw, tried: list[float] = tried) -> Probe:
            tried.append(load)
            return rising(load, capacity, 0.15, draw)

        answer = searched(server).answer()
        assert answer is not None and answer.highest is not None and answer.first_fail is not None
        assert len(tried) <= 15 and answer.is_cliff is False and answer.first_fail > answer.highest
        within += abs(answer.highest / capacity - 1) <= 0.05
        low, high = answer.interval or (math.inf, 0)
        held += low <= capacity <= high
    assert within >= 48 and held >= 43


@pytest.mark.parametrize(("power", "is_cliff"), [(13, False), (16, True)])
def test_a_cliff_of_a_fitted_figure_is_where_it_doubles_within_5_percent_of_load(power: float, is_cliff: bool) -> None:
    answer = searched(lambda load: rising(load, 100, power=power)).answer()
    assert answer is not None and answer.interval is not None
    assert answer.is_cliff is is_cliff


def test_a_failure_in_the_rise_that_may_be_chance_is_repeated() -> None:
    by_chance = Probe(4, "", [Outcome("p95 < 500 ms", False, "510 ms", 510, is_sure=False, margin=0.02)])
    probes = [rising(1, 80), by_chance]
    assert Search(RATES, probes).next_load() == 4
    assert Search(RATES, [*probes, rising(4, 80)]).next_load() == 4, "one against one is not decided"
    assert Search(RATES, [*probes, rising(4, 80), rising(4, 80)]).next_load() == 16


@pytest.mark.parametrize(("contrary", "low"), [(True, 1), (False, 4)])
def test_a_load_at_which_a_probe_surely_failed_does_not_surely_pass(contrary: bool, low: float) -> None:
    fails = [probe(4.1, is_met=False)] * 2
    seen = [replace(probe(4, is_met=False).outcomes[0], is_sure=contrary)]
    probes = [probe(1, is_met=True), Probe(4, "", seen), *[probe(4, is_met=True)] * 2, *fails]
    answer = Search(RATES, probes).answer()
    assert answer is not None and (answer.highest, answer.low, answer.high) == (4, low, 4.1)


@pytest.mark.parametrize(
    ("objective", "below", "above", "is_cliff"),
    [
        ("p95 < 500 ms", 300.0, 550.0, False),
        ("p95 < 500 ms", 300.0, 650.0, True),
        ("success >= 99 %", 1.0, 0.985, False),
        ("success >= 99 %", 1.0, 0.4, True),
        ("goodput >= 90 %", 0.95, 0.7, True),
        ("errors < 1 %", 0.0, 0.015, False),
        ("errors < 1 %", 0.0, 0.3, True),
        ("success >= 100 %", 1.0, 0.99, None),
        ("answered rate >= 50/s", 60.0, 40.0, False),
        ("answered rate >= 50/s", 60.0, 0.0, True),
    ],
)
def test_a_cliff_is_where_the_figure_gets_much_worse_at_once(
    objective: str, below: float, above: float, is_cliff: bool | None
) -> None:
    def server(load: float) -> Probe:
        is_met = load <= 49
        return Probe(load, "", [Outcome(objective, is_met, "", below if is_met else above)])

    answer = searched(server).answer()
    assert answer is not None and answer.binding == objective
    assert answer.is_cliff is is_cliff


def test_users_are_whole_numbers_where_the_figure_rises_too() -> None:
    over = LoadRange("users", 1, 64, is_whole=True)
    answer = searched(lambda load: rising(load, 21.6), over).answer()
    assert answer is not None and answer.highest == 21


def test_between_neighbours_there_is_no_line() -> None:
    """A function that computes two answers at a time: the time of 9 users is that of 10, and just above the limit."""

    def server(users: float) -> Probe:
        value = 100 * math.ceil(users / 2) + 2.5
        return Probe(users, "", [Outcome("p95 < 500 ms", value < 500, "", value, margin=math.log(value / 500))])

    search = searched(server, LoadRange("users", 1, 64, is_whole=True))
    answer = search.answer()
    assert answer is not None and answer.interval is None
    assert (answer.highest, answer.low, answer.first_fail, answer.high, answer.is_cliff) == (8, 8, 9, 9, False)


def test_resuming_gives_the_same_answer() -> None:
    search, probes = Search(RATES), list[Probe]()
    for _ in range(5):
        load = search.next_load()
        assert load is not None
        probes.append(up_to(40)(load))
        search = Search(RATES, probes)
    while (load := search.next_load()) is not None:
        probes.append(up_to(40)(load))
        search = Search(RATES, probes)
    assert search.answer() == searched(up_to(40)).answer()
