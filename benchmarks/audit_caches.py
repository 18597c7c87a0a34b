"""How often audits see a planted cache, or none: `.local/venv/bin/python -m benchmarks.audit_caches`.

Simulates audits of 200 different inputs by the order and the tests of `./run.sh audit`. Response times are log-normal
around a mean of each input's own, follow each other (first-order correlation 0.5), drift by 30 % over the audit in half
of the cases up and in half down, and 1 in 100 takes 5 times as long. Caches: of whole answers, of 1 in 10 of them, and
of a prefix, which saves 30 % of the time.
"""

import argparse
import sys

import numpy as np

from framestorm.audit.command import WARM_UP
from framestorm.audit.repeats import repeated_order
from framestorm.judge.caching import judge_caching
from framestorm.model.function_audit import RepeatedInput

INPUTS, CORRELATION, DRIFT = 200, 0.5, 0.3
# Of the logarithms of times, within an input; inputs differ more.
NOISES, BETWEEN = (0.05, 0.2, 0.5), 0.5
# Share of the answers that a cache holds, and share of the time that it saves.
CACHES = {"whole answers": (1.0, 0.9), "1 of 10": (0.1, 0.9), "prefix": (1.0, 0.3), "none": (0.0, 0.0)}
LEAST_FOUND, MOST_ALARMS = 0.95, 0.05


def times_of(order: list[int], cache: tuple[float, float], noise: float, draw: np.random.Generator) -> list[float]:
    """Return the response time of each request in ms."""
    share, saved = cache
    held = {*draw.permutation(INPUTS)[: round(share * INPUTS)].tolist()}
    base = 100 * np.exp(draw.normal(0, BETWEEN, INPUTS))
    slope = float(draw.choice([-1.0, 1.0])) * DRIFT
    state, times, answered = float(draw.normal(0, noise)), list[float](), set[int]()
    for place, number in enumerate(order):
        state = CORRELATION * state + float(draw.normal(0, noise * np.sqrt(1 - CORRELATION**2)))
        ms = base[number] * np.exp(state) * (1 + slope * place / len(order)) * (5 if draw.random() < 0.01 else 1)
        times.append(float(ms) * (1 - saved if number in held and number in answered else 1))
        answered.add(number)
    return times


def is_found(cache: tuple[float, float], noise: float, seed: int) -> bool:
    """Return whether one simulated audit sees a cache."""
    order = repeated_order(INPUTS, seed)
    times = times_of(order, cache, noise, np.random.default_rng(seed))
    places: dict[int, list[int]] = {}
    for place, number in enumerate(order):
        places.setdefault(number, []).append(place)
    return judge_caching(
        [
            RepeatedInput(number, second - first - 1, times[first], times[second])
            for number, (first, second) in places.items()
            if number >= WARM_UP
        ]
    ).is_found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--audits", type=int, default=400, metavar="N", help="of each kind (default: %(default)s)")
    audits = parser.parse_args().audits
    is_missed = False
    for name, cache in CACHES.items():
        for noise in NOISES:
            share = sum(is_found(cache, noise, seed) for seed in range(audits)) / audits
            print(f"{name}, times vary by {noise:.0%}: seen in {share:.1%}", flush=True)
            is_missed |= share > MOST_ALARMS if name == "none" else share < LEAST_FOUND
    print(f"wanted: caches seen in at least {LEAST_FOUND:.0%}, none in at most {MOST_ALARMS:.0%}")
    return 1 if is_missed else 0


if __name__ == "__main__":
    sys.exit(main())
