"""How often warm parts, steps and drifts are found: `.local/venv/bin/python -m benchmarks.steadiness [--runs N]`.

Simulates the bins of runs by the rule of framestorm/stats/steadiness.py: means of logarithms that vary by 2 to 5 % from
bin to bin, independent or correlated with the bin before, without a change, or with one: a warm part that begins 50 %
longer and is over after a fifth of the run, a step of 20 % at any time between a fifth and four fifths, and a drift by
20 % over the whole run.
"""

import argparse
import sys
from collections.abc import Callable
from itertools import product

import numpy as np

from framestorm.stats.checks import Floats
from framestorm.stats.steadiness import BINS, steadiness

NOISES, CORRELATIONS = (0.02, 0.05), (0.0, 0.3)
MOST_ALARMS, LEAST_FOUND = 0.05, 0.95
AT = np.arange(BINS) / BINS
CHANGES: dict[str, Callable[[np.random.Generator], Floats]] = {
    "none": lambda _: np.zeros(BINS),
    "warm part": lambda _: np.log1p(0.5 * np.exp(-AT / 0.06)),
    "step": lambda noise: np.where(noise.uniform(0.2, 0.8) < AT, np.log(1.2), 0.0),
    "drift": lambda _: np.log1p(0.2 * AT),
}


def correlated(noise: np.random.Generator, spread: float, correlation: float) -> Floats:
    """Return values around 0, each correlated with the one before."""
    values = noise.normal(0, spread, BINS)
    for number in range(1, BINS):
        values[number] = correlation * values[number - 1] + np.sqrt(1 - correlation**2) * values[number]
    return values


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=1000, metavar="N", help="of each kind (default: %(default)s)")
    runs = parser.parse_args().runs
    is_missed = False
    for spread, correlation in product(NOISES, CORRELATIONS):
        shares = {}
        for name, change in CHANGES.items():
            noise = np.random.default_rng(1)
            judged = [steadiness(change(noise) + correlated(noise, spread, correlation)) for _ in range(runs)]
            shares[name] = sum(each.since != 0 for each in judged) / runs
            is_missed |= shares[name] > MOST_ALARMS if name == "none" else shares[name] < LEAST_FOUND
        each = ", ".join(f"{name} {share:.1%}" for name, share in shares.items())
        print(f"bins vary by {spread:.0%}, correlation {correlation:g}: not steady from the beginning: {each}")
    print(f"wanted: none at most {MOST_ALARMS:.0%}, the others at least {LEAST_FOUND:.0%}")
    return 1 if is_missed else 0


if __name__ == "__main__":
    sys.exit(main())
