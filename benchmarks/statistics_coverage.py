"""How often 95 % intervals hold the truth: `.local/venv/bin/python -m benchmarks.statistics_coverage [--studies N]`.

Simulates 2,000 studies of known truth for each interval the kit draws, with times as a run has them: log-normal, each
depending on the one before (AR(1), 0.5) where samples are successive, runs of one setting differing by 5 %. An interval
is to hold the truth in 93 to 97 % of them. Those of counts and ranks move in steps and cannot be of 95 % sharp: their
exact coverage follows from the binomial distribution, and the simulated one is to lie within 2 points of that. A study
whose interval lacks an end counts as held if the other end holds; where neither is known it counts as missed.
"""

import argparse
import math
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import signal, stats

from framestorm.compare import questions
from framestorm.compare.runs import Run, RunSide
from framestorm.judge import differences
from framestorm.model.run import Record
from framestorm.results.samples import Samples
from framestorm.stats.bootstrap import draw
from framestorm.stats.evidence import of_shares, over_repetitions
from framestorm.stats.means import is_enough, student, welch, without_repetition
from framestorm.stats.percentiles import Sample, interval_ranks
from framestorm.stats.scalability import fit_usl
from framestorm.stats.shares import design_effect, wilson

Floats = NDArray[np.float64]
Ends = tuple[float | None, float | None]
NOMINAL, TOLERATED = 0.95, 0.02
MEDIAN_MS, SIGMA, RUN_SIGMA = 40.0, 0.5, 0.05
MEAN_MS = MEDIAN_MS * math.exp(SIGMA**2 / 2)
SLOWER = 1.1
SLOPE = 0.1
RESAMPLES = 2_000


@dataclass(frozen=True)
class Case:
    """One interval: `study` makes a study's data and its interval; `truth` is what it should hold."""

    name: str
    truth: float
    study: Callable[[np.random.Generator], Ends]
    expected: float = NOMINAL


def times_ms(noise: np.random.Generator, n: int, rho: float = 0.5) -> Floats:
    """Successive times of one run."""
    innovations = noise.standard_normal(n + 30) * math.sqrt(1 - rho**2)
    made: Floats = MEDIAN_MS * np.exp(SIGMA * signal.lfilter([1], [1, -rho], innovations)[30:])
    return made


def run_means(noise: np.random.Generator, runs: int, samples: int = 37) -> Floats:
    """The mean of each of some runs of 37 frames; its own mean over all runs is MEAN_MS."""
    of_runs = noise.lognormal(-(RUN_SIGMA**2) / 2, RUN_SIGMA, runs)
    return np.array([times_ms(noise, samples).mean() for _ in range(runs)]) * of_runs


def ends(interval: object) -> Ends:
    return interval.low, interval.high  # type: ignore[attr-defined]


def settings_run_once(noise: np.random.Generator) -> Ends:
    logs = np.log(SLOWER * run_means(noise, 6) / run_means(noise, 6))
    return ends(without_repetition(logs, np.full(6, 1 / 6), np.ones((6, 1))))


def trend_run_once(noise: np.random.Generator) -> Ends:
    x = np.arange(9.0)
    centred = x - x.mean()
    logs = SLOPE * x + np.log(run_means(noise, 9))
    return ends(without_repetition(logs, centred / (centred @ centred), np.column_stack([np.ones(9), x])))


def until_narrow(noise: np.random.Generator, least: int, most: int, within: float) -> Ends:
    means = [*run_means(noise, least)]
    while len(means) < most and not is_enough(means, least, within):
        means += [*run_means(noise, 1)]
    return ends(student(means))


def of_repetitions() -> Iterator[Case]:
    for n in (3, 5, 10):
        yield Case(f"Student, mean of {n} runs", MEAN_MS, lambda noise, n=n: ends(student(run_means(noise, n))))
    for n in (2, 3, 5):
        for percent in (8, 15):
            yield Case(
                f"stop rule, {n} to 30 runs, within {percent} %",
                MEAN_MS,
                lambda noise, n=n, percent=percent: until_narrow(noise, n, 30, percent / 100),
            )
    yield Case("mean ratio of 6 pairs run once", math.log(SLOWER), settings_run_once)
    yield Case("trend over 9 settings run once", SLOPE, trend_run_once)
    for n in (3, 5):

        def pairs(noise: np.random.Generator, n: int = n) -> Ends:
            shared = noise.lognormal(0, 0.3, n)
            new, old = SLOWER * shared * run_means(noise, n), shared * run_means(noise, n)
            return over_repetitions(old, new, paired=True)["ratio"].interval()

        yield Case(f"paired ratio, {n} repetitions", SLOWER, pairs)
        yield Case(
            f"Welch ratio, {n} against {n} runs",
            SLOWER,
            lambda noise, n=n: over_repetitions(run_means(noise, n), SLOWER * run_means(noise, n))["ratio"].interval(),
        )
    yield Case(
        "Welch difference, 5 against 3 runs",
        (SLOWER - 1) * MEAN_MS,
        lambda noise: ends(welch(SLOWER * run_means(noise, 5), run_means(noise, 3))),
    )


def of_counts() -> Iterator[Case]:
    for n, percent in ((100, "50"), (333, "95"), (2000, "99")):
        share = Fraction(percent) / 100
        low, high = interval_ranks(n, share)
        assert low is not None and high is not None
        exact = stats.binom.cdf(high - 1, n, float(share)) - stats.binom.cdf(low - 1, n, float(share))

        def percentile(noise: np.random.Generator, n: int = n, percent: str = percent) -> Ends:
            return ends(Sample(times_ms(noise, n, rho=0)).percentile(percent))

        truth = MEDIAN_MS * math.exp(SIGMA * stats.norm.ppf(float(share)))
        yield Case(f"Le Boudec, p{percent} of {n}", truth, percentile, float(exact))
    for n, success in ((37, 0.9), (333, 0.3), (333, 0.995)):
        covered = [bool(ends_ := wilson(ok, n)) and ends_[0] <= success <= ends_[1] for ok in range(n + 1)]
        exact = stats.binom.pmf(np.arange(n + 1), n, success)[covered].sum()
        yield Case(
            f"Wilson, {success:.1%} of {n}",
            success,
            lambda noise, n=n, success=success: wilson(int(noise.binomial(n, success)), n) or (None, None),
            float(exact),
        )


def within_runs() -> Iterator[Case]:
    z = stats.norm.ppf(0.95)
    for statistic, truth, n in (
        ("mean", MEAN_MS, 37),
        ("mean", MEAN_MS, 300),
        ("50", MEDIAN_MS, 300),
        ("95", MEDIAN_MS * math.exp(SIGMA * z), 1000),
        ("sd", MEAN_MS * math.sqrt(math.expm1(SIGMA**2)), 4000),
    ):

        def within(noise: np.random.Generator, statistic: str = statistic, n: int = n) -> Ends:
            seed = int(noise.integers(1 << 32))
            return ends(draw(times_ms(noise, n), statistic, seed=seed, resamples=RESAMPLES).estimate())

        yield Case(f"bootstrap, {statistic} of {n}, dependent", truth, within)


def run_of_times(times: Floats) -> RunSide:
    """A run as it is compared, its samples one after the other."""
    ended = np.cumsum(times)
    table = pl.DataFrame({"start_ms": ended - times, "rtt_ms": times, "ok": True, "timed_out": False})
    samples, summary = Samples(table, table, table.height), SimpleNamespace(is_at_rate=False)
    return RunSide("", (Run(Path(), Record(), summary, by_label={None: samples}),))  # type: ignore[arg-type]


def between_runs() -> Iterator[Case]:
    differences.RESAMPLES = RESAMPLES
    for metric, truth, n in (
        ("mean_ms", SLOWER, 100),
        ("mean_ms", SLOWER, 300),
        ("median_ms", SLOWER, 300),
        ("p95_ms", SLOWER, 1000),
        ("served_per_s", 1 / SLOWER, 300),
    ):

        def apart(noise: np.random.Generator, metric: str = metric, n: int = n) -> Ends:
            seed = int(noise.integers(1 << 32))
            old, new = run_of_times(times_ms(noise, n)), run_of_times(SLOWER * times_ms(noise, n))
            (found,) = (each for each in questions.of_runs(old, new, (seed, seed + 1)).overall if each.metric == metric)
            return found.evidence["ratio"].interval()

        yield Case(f"compare, one run a side, ratio of {metric} of {n}, dependent", truth, apart)
    for failing, clustered in ((0.1, 1), (0.1, 5)):

        def success(noise: np.random.Generator, failing: float = failing, clustered: int = clustered) -> Ends:
            sides = [np.repeat(noise.random(600 // clustered) > share, clustered) for share in (failing, 2 * failing)]
            worth = 600 / max(design_effect(side) for side in sides)
            return of_shares([(1.0, float(sides[0].mean()), worth), (-1.0, float(sides[1].mean()), worth)]).interval()

        yield Case(f"compare, difference of success of 600, in clusters of {clustered}", failing, success)


def of_scalability() -> Iterator[Case]:
    loads = np.tile([1.0, 2, 4, 8, 16], 5)
    truth = {"lambda_per_s": 100.0, "sigma": 0.1, "kappa": 0.005}
    law = 100 * loads / (1 + 0.1 * (loads - 1) + 0.005 * loads * (loads - 1))
    for kind, sizes in (("of one size", np.full(loads.size, 5.0)), ("that grow with the rate", 0.05 * law)):
        for parameter, value in truth.items():

            def fitted(noise: np.random.Generator, parameter: str = parameter, sizes: Floats = sizes) -> Ends:
                return ends(getattr(fit_usl(loads, noise.normal(law, sizes)), parameter))

            yield Case(f"scalability law of 5 loads run 5 times, {parameter}, errors {kind}", value, fitted)


def coverage(case: Case, studies: int, noise: np.random.Generator) -> float:
    held = 0
    for _ in range(studies):
        low, high = case.study(noise)
        known = low is not None or high is not None
        held += known and (low is None or low <= case.truth) and (high is None or case.truth <= high)
    return held / studies


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--studies", type=int, default=2000, help="for each interval (default: %(default)s)")
    studies, kept = parser.parse_args().studies, True
    for part in (of_repetitions, of_counts, within_runs, between_runs, of_scalability):
        for case in part():
            # A seed of its own: an interval's figure does not change when another is added.
            seen = coverage(case, studies, np.random.default_rng([2026, *case.name.encode()]))
            holds = abs(seen - case.expected) <= TOLERATED
            kept &= holds
            exact = "" if case.expected == NOMINAL else f", exactly {case.expected:.1%}"
            print(f"statistics_coverage {case.name}: {seen:.1%}{exact}{'' if holds else ' MISSED'}", flush=True)
    print(f"statistics_coverage: {studies} studies each, {time.process_time():.0f} s of CPU")
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
