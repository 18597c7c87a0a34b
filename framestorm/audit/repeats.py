"""The order in which inputs are sent twice: half of them again at once, the others after some others."""

import random
from collections import deque
from collections.abc import Sequence

import polars as pl

from framestorm.model.function_audit import RepeatedInput

OTHERS = 5


def repeated_order(n: int, seed: int) -> list[int]:
    """Return the numbers of n inputs, from 0, in an order in which each is there twice.

    Half of them, drawn by the seed, come again at once: what a function keeps of its last request shows there. The
    others come again after at least five other requests, or at the end: a cache that holds more shows there, too.
    """
    at_once = {*random.Random(seed).sample(range(n), n // 2)}  # noqa: S311 - no secret
    order: list[int] = []
    waiting = deque[tuple[int, int]]()  # input, and from which request on it may come again
    for number in range(n):
        while waiting and waiting[0][1] <= len(order):
            order.append(waiting.popleft()[0])
        order.append(number)
        if number in at_once:
            order.append(number)
        else:
            waiting.append((number, len(order) + OTHERS))
    return [*order, *(number for number, _ in waiting)]


def pairs_of(order: Sequence[int], answers: pl.DataFrame, warm_up: int) -> tuple[list[RepeatedInput], dict[str, int]]:
    """Return the inputs that were answered twice in the same way, and why how many others are left out.

    Args:
        order: the input of each request.
        answers: `index`, the place in this order, `rtt_ms`, `is_answer` and `cause` of each request that came back.
        warm_up: how many of the first inputs do not count.
    """
    by_place = {row["index"]: row for row in answers.iter_rows(named=True)}
    places: dict[int, list[int]] = {}
    for place, number in enumerate(order):
        places.setdefault(number, []).append(place)
    pairs, left_out = list[RepeatedInput](), dict[str, int]()
    for number, (first, second) in places.items():
        rows = [by_place[each] for each in (first, second) if each in by_place]
        if len(rows) < 2:
            continue
        if number < warm_up:
            reason = "warm-up"
        elif not all(row["is_answer"] and row["rtt_ms"] for row in rows):
            reason = "without an answer"
        elif rows[0]["cause"] != rows[1]["cause"]:
            reason = "answered in two ways"
        else:
            pairs.append(RepeatedInput(number, second - first - 1, rows[0]["rtt_ms"], rows[1]["rtt_ms"]))
            continue
        left_out[reason] = left_out.get(reason, 0) + 1
    return pairs, left_out
