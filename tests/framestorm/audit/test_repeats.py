"""The order of an audit, and its pairs."""

from typing import Any

import polars as pl

from framestorm.audit.repeats import pairs_of, repeated_order


def test_each_input_comes_twice_half_of_them_at_once() -> None:
    order = repeated_order(100, seed=1)
    assert sorted(order) == sorted([*range(100), *range(100)])
    first = [order.index(number) for number in range(100)]
    assert first == sorted(first)
    gaps = [len(order) - 1 - order[::-1].index(number) - at - 1 for number, at in enumerate(first)]
    assert sum(gap == 0 for gap in gaps) in (50, 51)  # the last one may have no others left
    assert all(gap == 0 or gap >= 5 for gap in gaps[:90])


def test_the_seed_draws_the_order() -> None:
    assert repeated_order(50, 1) == repeated_order(50, 1) != repeated_order(50, 2)


def answers(*rows: tuple[int, float, bool, str | None]) -> Any:
    return pl.DataFrame(rows, schema=["index", "rtt_ms", "is_answer", "cause"], orient="row")


def test_pairs_are_by_input_with_the_requests_between() -> None:
    back = answers(*((place, 10.0 + place, True, None) for place in range(6)))
    pairs, left_out = pairs_of([0, 0, 1, 2, 2, 1], back, 1)
    assert [(each.number, each.others, each.first_ms, each.second_ms) for each in pairs] == [
        (1, 2, 12.0, 15.0),
        (2, 0, 13.0, 14.0),
    ]
    assert left_out == {"warm-up": 1}


def test_only_inputs_answered_twice_in_the_same_way_are_compared() -> None:
    back = answers(
        (0, 1, True, None), (1, 1, True, "expect-not-met"),
        (2, 1, False, "timeout"), (3, 1, True, None),
        (4, 1, True, "expect-not-met"), (5, 1, True, "expect-not-met"),
        (6, 1, True, None),
    )  # fmt: skip
    pairs, left_out = pairs_of([0, 0, 1, 1, 2, 2, 3, 3], back, 0)
    assert [each.number for each in pairs] == [2]
    assert left_out == {"answered in two ways": 1, "without an answer": 1}
