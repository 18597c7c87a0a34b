"""How often a function is taken for overloaded: `.local/venv/bin/python -m benchmarks.overload_alarms [--runs N]`.

Simulates runs of 80 requests a second at a function whose workers serve them in turn, with a capacity that is just
the rate or more, and judges each run by the rule of framestorm/stats/backlog.py. Arrivals are even and service times
vary by 20 %, or arrivals are random (Poisson) and all service times equal (M/D/c). Even arrivals with equal times
(D/D/c) leave nothing to chance: no request ever waits. At exactly its capacity a queue has no steady state, and grows
or shrinks by chance; hence the target is of 95 % of the capacity and less.
"""

import argparse
import heapq
import sys
from itertools import product

import numpy as np
import polars as pl

from framestorm.model.overload import Rates
from framestorm.report.asked import Asked
from framestorm.report.overload import Arrivals, overload
from framestorm.stats.checks import Floats

RATE, SPREAD = 80.0, 0.2
LENGTHS_S, WORKERS, UTILISATIONS = (10, 30, 120, 600), (1, 8), (1.0, 0.95, 0.9)
# Of runs at 95 % of the capacity and less.
MOST_ALARMS = 0.05


def ends(starts: Floats, takes_s: Floats, workers: int) -> Floats:
    """When requests are answered that wait in turn for one of the workers."""
    free = [0.0] * workers
    answered = np.empty_like(starts)
    for number, (start, take_s) in enumerate(zip(starts, takes_s, strict=True)):
        answered[number] = max(start, heapq.heappop(free)) + take_s
        heapq.heappush(free, answered[number])
    return answered


def is_alarm(noise: np.random.Generator, length_s: int, workers: int, utilisation: float, *, is_even: bool) -> bool:
    """Whether one simulated run is taken for overloaded."""
    n = round(RATE * length_s)
    starts = np.arange(n) / RATE if is_even else np.sort(noise.random(noise.poisson(n)) * length_s)
    mean_s = utilisation * workers / RATE
    spread = SPREAD if is_even else 0.0
    takes_s = mean_s * (1 - spread + 2 * spread * noise.random(starts.size))
    answered = ends(starts, takes_s, workers)
    samples = pl.DataFrame(
        {"start_ms": 1000 * starts, "rtt_ms": 1000 * (answered - starts), "intended_ms": 1000 * starts}
    ).lazy()
    marks = {"ok": pl.lit(value=True), "timed_out": pl.lit(value=False), "cause": pl.lit(None, pl.String)}
    asked = Asked({"x": [0.0, float(length_s)], "y": [RATE, RATE]})
    found = overload(samples.with_columns(**marks), asked, Rates(), Arrivals(), 0.0)
    return found is not None and bool(found.signs)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=400, metavar="N", help="of each kind (default: %(default)s)")
    runs = parser.parse_args().runs
    is_missed = False
    for is_even in (True, False):
        for workers, length_s in product(WORKERS, LENGTHS_S):
            shares = {}
            for utilisation in UTILISATIONS:
                noise = np.random.default_rng(1)
                alarms = sum(is_alarm(noise, length_s, workers, utilisation, is_even=is_even) for _ in range(runs))
                shares[utilisation] = alarms / runs
                is_missed |= utilisation < 1 and shares[utilisation] > MOST_ALARMS
            each = ", ".join(f"{share:.1%} at {utilisation:.0%}" for utilisation, share in shares.items())
            kind = "even arrivals, times +-20 %" if is_even else "random arrivals, equal times"
            print(f"{kind}, {workers} workers, {length_s} s: {each}", flush=True)
    return int(is_missed)


if __name__ == "__main__":
    sys.exit(main())
