"""Arrivals at random by a Poisson process, drawn as jmx/java/DueTimes.java draws them."""

import math

# Java's SplittableRandom: Steele, Lea, Flood, Fast splittable pseudorandom number generators, OOPSLA 2014.
_GAMMA, _FIRST, _SECOND, _MASK = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB, (1 << 64) - 1


def count(expected: float, seed: int) -> int:
    """Count the arrivals of which so many are expected.

    The gaps between them have a mean of 1 if time is measured in expected arrivals, so the rate may change as it likes.
    """
    state, at, n = seed, 0.0, 0
    while True:
        state = (state + _GAMMA) & _MASK
        bits = ((state ^ (state >> 30)) * _FIRST) & _MASK
        bits = ((bits ^ (bits >> 27)) * _SECOND) & _MASK
        at -= math.log(1.0 - ((bits ^ (bits >> 31)) >> 11) / (1 << 53))
        if at >= expected:
            return n
        n += 1
