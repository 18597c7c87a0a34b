"""The capacity of planted closed systems: how exactly it is found, in how many probes, and what is not taken for it."""

from collections.abc import Callable

import numpy as np
import pytest

from framestorm.judge.ladder import Ladder
from framestorm.model.search import Highest, LoadRange, Probe

USERS = LoadRange("users", 1, 256, is_whole=True)
Rate = Callable[[float], float]


def servers(number: int, service_s: float, think_s: float = 0.0) -> Rate:
    """Several servers that take the same time for each request, and users who think."""
    return lambda users: min(users / (service_s + think_s), number / service_s)


def one_queue(service_s: float, think_s: float) -> Rate:
    """One server with times by chance: mean value analysis of a closed system."""

    def rate(users: float) -> float:
        waiting = 0.0
        for n in range(1, int(users) + 1):
            response_s = service_s * (1 + waiting)
            waiting = n / (response_s + think_s) * response_s
        return users / (response_s + think_s)

    return rate


def by_a_lock(users: float) -> float:
    """Past its best at 16 users: what a request costs grows with those who wait."""
    return 40 * users / (1 + users / 16 * users / 16)


def searched(rate: Rate, over: LoadRange = USERS, noise: float = 0.0, seed: int = 1) -> tuple[list[Probe], Highest]:
    """Every probe of a search, and its answer."""
    draw, probes = np.random.default_rng(seed), list[Probe]()
    while (load := Ladder(over, probes).next_load()) is not None:
        seen = rate(load) * draw.normal(1, noise)
        probes.append(Probe(load, "run", [], answered_per_s=seen, answered_low=seen * 0.99, answered_high=seen * 1.01))
        assert len(probes) < 30
    answer = Ladder(over, probes).answer()
    assert answer is not None
    return probes, answer


@pytest.mark.parametrize(
    ("rate", "capacity", "users"),
    [
        (servers(4, 0.05), 80, 4),
        (servers(1, 0.02, 0.18), 50, 10),
        (servers(30, 0.1), 300, 30),
        (one_queue(0.01, 0.09), 100, 10),
    ],
)
def test_capacity_and_the_users_that_reach_it(rate: Rate, capacity: float, users: int) -> None:
    inside = 0
    for seed in range(50):
        probes, answer = searched(rate, noise=0.01, seed=seed)
        assert answer.word == "found"
        assert answer.capacity and answer.highest
        assert len(probes) <= 15
        assert answer.capacity.value == pytest.approx(capacity, rel=0.05)
        assert answer.highest == pytest.approx(users, rel=0.05, abs=1)
        inside += (answer.capacity.low or 0) <= capacity <= (answer.capacity.high or 0)
    assert rate(256) != capacity or inside >= 45


def test_the_users_that_reach_it_lie_within_their_interval() -> None:
    for rate in (lambda users: min(18 * users, 78), servers(21, 0.5), servers(4, 0.05)):
        _, answer = searched(rate)
        assert answer.highest and answer.interval
        assert answer.interval[0] <= answer.highest <= answer.interval[1]


def test_a_rate_that_falls_again_is_said() -> None:
    _, answer = searched(by_a_lock)
    assert answer.capacity and answer.capacity.value == pytest.approx(320, rel=0.05)
    assert answer.falls_to and answer.falls_to < 0.9 * 320


def test_hundreds_of_users_take_hardly_more_probes_than_doublings() -> None:
    """Each probe around the knee moves it, so that none of the loads around it is ever tried to the user."""
    for seed in range(50):
        probes, answer = searched(servers(300, 0.1), LoadRange("users", 1, 4000, is_whole=True), noise=0.03, seed=seed)
        assert answer.word == "found"
        assert answer.highest == pytest.approx(300, rel=0.2)
        assert len(probes) <= 18


def test_a_function_that_one_user_uses_up() -> None:
    probes, answer = searched(servers(1, 0.05))
    assert (answer.word, answer.highest, len(probes)) == ("found", 1, 4)


def test_the_end_of_the_range_is_only_a_lower_bound() -> None:
    probes, answer = searched(servers(1000, 0.1), LoadRange("users", 1, 20, is_whole=True))
    assert [each.load for each in probes] == [1, 2, 4, 8, 16, 20]
    assert (answer.word, answer.highest) == ("at_least", 20)
    assert answer.capacity and answer.capacity.value == pytest.approx(200, rel=0.1)


@pytest.mark.parametrize(
    ("most", "word", "users"), [(256, "found", 8), (32, "found", 8), (16, "at_least", 8)], ids=["", "near", "at-once"]
)
def test_the_capacity_before_a_collapse_is_the_answer(most: int, word: str, users: int) -> None:
    probes, answer = searched(lambda load: 10 * load if load <= 8 else 0.0, LoadRange("users", 1, most, is_whole=True))
    assert (answer.word, answer.highest) == (word, users)
    assert answer.capacity and answer.capacity.value == pytest.approx(80)
    assert answer.falls_to == (0 if word == "found" else None)
    assert len(probes) <= 10
    assert [each.load for each in probes][:6] == [1, 2, 4, 8, 16, 1], "whether it recovers shows before more users come"


def test_a_rate_of_the_generator_is_only_a_lower_bound() -> None:
    def limited(load: float) -> Probe:
        rate = min(10 * load, 55)
        return Probe(load, "run", [], answered_per_s=rate, generator="it was saturated" if load > 2 else "")

    probes = list[Probe]()
    while (load := Ladder(USERS, probes).next_load()) is not None:
        probes.append(limited(load))
    answer = Ladder(USERS, probes).answer()
    assert [each.load for each in probes] == [1, 2, 4, 8, 16], "while the rate grows, it is the function's"
    assert answer
    assert (answer.word, answer.highest) == ("at_least", 8)
    assert answer.why == "with 16 users, it was saturated"


def test_a_generator_that_is_saturated_at_the_lowest_load_is_no_limit() -> None:
    """The lowest load is tried twice: the second time, the rate cannot have grown."""
    probes = list[Probe]()
    while (load := Ladder(USERS, probes).next_load()) is not None:
        is_again = any(each.load == load for each in probes)
        probes.append(Probe(load, "run", [], answered_per_s=20.0, generator="it was saturated" if is_again else ""))
    answer = Ladder(USERS, probes).answer()
    assert probes[-1].generator and answer
    assert (answer.word, answer.highest) == ("found", 1)


def test_a_range_that_ends_too_soon_does_not_let_a_flat_rate_grow() -> None:
    _, answer = searched(servers(1, 0.1), LoadRange("users", 1, 2, is_whole=True))
    assert (answer.word, answer.why) == (
        "at_least", "the range ends with 2 users, too soon to see whether more users add to the rate",
    )  # fmt: skip
    _, answer = searched(servers(8, 0.1), LoadRange("users", 1, 2, is_whole=True))
    assert answer.why == "the rate still grows with 2 users, the end of the range"


def test_a_rate_that_drifts_gives_no_interval() -> None:
    probes = list[Probe]()
    while (load := Ladder(USERS, probes).next_load()) is not None:
        probes.append(Probe(load, "run", [], answered_per_s=100 - abs(load - 2) if load > 1 else 50.0))
    answer = Ladder(USERS, probes).answer()
    assert answer is not None and answer.capacity is not None
    assert answer.interval is None
