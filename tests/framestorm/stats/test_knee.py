import pytest

from framestorm.stats.knee import knee

RATES = [5, 50, 500]
AROUND = (0.99, 1.0, 1.01)


def served(*shares: float) -> list[list[float]]:
    return [[share * load * around for around in AROUND] for load, share in zip(RATES, shares, strict=True)]


@pytest.mark.parametrize(
    ("shares", "follows_to", "at"),
    [
        ((1, 1, 1), 500, None),
        ((1, 1, 0.5), 50, 500),
        ((1, 0.5, 0.1), 5, 50),
        ((0.8, 0.5, 0.1), 0, 5),
        ((1, 0.5, 1), 500, None),  # falls short once, but follows again
        ((1, 0.95, 0.5), 5, 500),  # not sure at 50
        ((1, 1, 0.95), 50, None),  # not sure at the largest load
        ((0.5, 0.95, 0.5), 0, 500),
    ],
)
def test_open_loop(shares: tuple[float, ...], follows_to: float, at: float | None) -> None:
    seen = knee(RATES, served(*shares), 0.05)
    assert (seen.follows_to, seen.at) == (follows_to, at)
    assert seen.shares == pytest.approx(shares)


def test_closed_loop_follows_in_proportion_to_the_smallest_load() -> None:
    rates = [[70, 71, 69], [140, 141, 142], [280, 279, 275], [300, 310, 305]]
    seen = knee([1, 2, 4, 8], rates, 0.05, closed=True)
    assert (seen.follows_to, seen.at) == (4, 8)
    assert seen.shares == pytest.approx((1, 141 / 140, 278 / 280, 305 / 560))
    assert knee([1, 2, 4], rates[:3], 0.05, closed=True).follows_to == 4


def test_closed_loop_knows_the_spread_of_its_base() -> None:
    sure = knee([1, 4], [[70, 71, 69], [250, 251, 249]], 0.05, closed=True)
    vague = knee([1, 4], [[50, 70, 90], [250, 251, 249]], 0.05, closed=True)
    assert (sure.at, vague.at, vague.follows_to) == (4, None, 1)


def test_order_of_loads_does_not_matter() -> None:
    rates = served(1, 0.9, 0.1)
    assert knee([500, 5, 50], [rates[2], rates[0], rates[1]], 0.05) == knee(RATES, rates, 0.05)


def test_what_is_tolerated_moves_the_knee() -> None:
    rates = served(1, 0.9, 0.6)
    found = [knee(RATES, rates, within).at for within in (0.05, 0.2, 0.5)]
    assert found == [50, 500, None]


def test_one_repetition_decides_nothing() -> None:
    seen = knee([1, 2], [[1.0], [0.1]], 0.05)
    assert (seen.follows_to, seen.at) == (0, None)


@pytest.mark.parametrize(
    ("loads", "rates", "within", "closed", "said"),
    [
        ([], [], 0.05, False, "loads: there are none"),
        ([1, 2], [[1.0]], 0.05, False, "2 loads but rates served at 1"),
        ([1, 1], [[1.0], [1.0]], 0.05, False, "each is wanted once"),
        ([0, 1], [[1.0], [1.0]], 0.05, False, r"loads: 0\.0 is among them"),
        ([1, 2], [[1.0], []], 0.05, False, "rates served at 2: there are none"),
        ([1, 2], [[1.0], [float("nan")]], 0.05, False, "rates served at 2: number 1 of 1 is nan"),
        ([1, 2], [[1.0], [1.0]], 5, False, "within 5"),
        ([1, 2], [[0.0], [1.0]], 0.05, True, "at the smallest load, 1, nothing was served"),
    ],
)
def test_refusals(loads: list[float], rates: list[list[float]], within: float, closed: bool, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        knee(loads, rates, within, closed=closed)
