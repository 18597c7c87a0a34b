"""Whether `--stop-when` keeps its word: `.local/venv/bin/python -m benchmarks.stop_when [--runs N]`.

Simulates runs of 30 samples a second whose response times are log-normal, independent or each correlated with the one
before, by the engine of the live view (framestorm/run/live/stop_rules.py), which is asked after each second. The figure
at which it ends a run has to be as near to the true one as the rule says.
"""

import argparse
import math
import sys
from itertools import product

import numpy as np

from framestorm.model.stop_rule import STOP_WHEN, parse
from framestorm.results.interval import Interval, Key
from framestorm.run.live.stop_rules import StopRules

SPREAD, MEDIAN_MS, PER_S, LONGEST_S = 0.5, 100.0, 30, 1500
RULES = {
    "mean within 5 %": MEDIAN_MS * math.exp(SPREAD**2 / 2),
    "p95 within 5 %": MEDIAN_MS * math.exp(SPREAD * 1.6449),
}
CORRELATIONS = (0.0, 0.9)
LEAST_WITHIN = 0.95


def run(rule: str, correlation: float, noise: np.random.Generator) -> tuple[int, float] | None:
    """Return after how many seconds a rule ends a run, and the figure; None if it does not."""
    rules = StopRules([parse(STOP_WHEN, rule, "request")])
    level = 0.0
    for second in range(LONGEST_S):
        interval = Interval(Key(second, "request", "sampler", ""))
        for step in noise.normal(size=PER_S):
            level = correlation * level + math.sqrt(1 - correlation**2) * step
            ms = MEDIAN_MS * math.exp(SPREAD * level)
            interval.add(second + 0.5 - ms / 1000, ms, None)
        rules.take(interval)
        if decision := rules.decision(second + 1.6):
            return second + 1, decision.value
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=100, metavar="N", help="of each kind (default: %(default)s)")
    runs, is_missed = parser.parse_args().runs, False
    for (rule, true_ms), correlation in product(RULES.items(), CORRELATIONS):
        noise = np.random.default_rng(1)
        ended = [each for _ in range(runs) if (each := run(rule, correlation, noise))]
        share = sum(abs(value / true_ms - 1) <= 0.05 for _, value in ended) / len(ended)
        is_missed |= share < LEAST_WITHIN
        took_s = np.median([at for at, _ in ended])
        print(f"{rule}, correlation {correlation:g}: {len(ended)} of {runs} ended, after {took_s:.0f} s (median), "
              f"{share:.1%} of them within 5 % of the true figure", flush=True)  # fmt: skip
    print(f"wanted: at least {LEAST_WITHIN:.0%}")
    return 1 if is_missed else 0


if __name__ == "__main__":
    sys.exit(main())
