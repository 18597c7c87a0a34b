"""The order in which inputs are sent twice: half of them again at once, the others after some others."""

import random
from collections import deque

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
