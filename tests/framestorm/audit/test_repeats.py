"""The order in which an audit repeats inputs."""

from framestorm.audit.repeats import repeated_order


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
