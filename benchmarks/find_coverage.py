"""How near searches come to a planted capacity: `.local/venv/bin/python -m benchmarks.find_coverage [--searches N]`.

Simulates searches over 1 to 1,000 requests per second by the rule of framestorm/judge/search.py, each probe a run that
begins with an idle server, as long as the command makes it. Servers: one worker with equal service times (M/D/1), four
with exponential ones (M/M/4), and a lock (even arrivals, one at a time, times that vary by 10 %), whose figure jumps at
its capacity. The truth is the load at which the 95th percentile of a run of 4,000 s meets the objective; that of the
lock is its capacity.
"""

import argparse
import heapq
import math
import sys
from collections.abc import Callable
from functools import partial

import numpy as np

from framestorm.find.command import PROBE_S, REFINED
from framestorm.find.objectives import KEEPS_UP, needed_samples
from framestorm.judge.search import Search
from framestorm.model.search import Highest, LoadRange, Outcome, Probe
from framestorm.stats.checks import Floats
from framestorm.stats.percentiles import Sample

Draw = np.random.Generator
# The 95th percentile of a run at a rate, for some seconds, of which the first are left out.
Server = Callable[[float, float, float, Draw], float]
RANGE = LoadRange("rate_per_s", 1, 1000)
OBJECTIVE, LIMIT_S, SERVICE_S = "p95 < 100 ms", 0.1, 0.02
LEAST_WITHIN, LEAST_HELD, MOST_PROBES = 0.95, 0.93, 15


def waits(starts: Floats, takes_s: Floats, workers: int) -> Floats:
    """Return how long requests are in a system that serves them in turn by so many workers."""
    free = [0.0] * workers
    spent = np.empty_like(starts)
    for number, (start, take_s) in enumerate(zip(starts, takes_s, strict=True)):
        end = max(start, heapq.heappop(free)) + take_s
        spent[number] = end - start
        heapq.heappush(free, end)
    return spent


def queue(workers: int, *, is_random: bool, rate: float, length_s: float, without_s: float, draw: Draw) -> float:
    """Return the 95th percentile of a queue with random arrivals, in seconds."""
    n = max(1, draw.poisson(rate * length_s))
    starts = np.sort(draw.uniform(0, length_s, n))
    takes_s = draw.exponential(SERVICE_S, n) if is_random else np.full(n, SERVICE_S)
    return p95(waits(starts, takes_s, workers)[starts >= without_s])


def lock(rate: float, length_s: float, without_s: float, draw: Draw) -> float:
    """Return the 95th percentile of a lock, in seconds."""
    starts = np.arange(max(1, round(rate * length_s))) / rate
    takes_s = SERVICE_S * draw.uniform(0.9, 1.1, starts.size)
    return p95(waits(starts, takes_s, 1)[starts >= without_s])


def p95(times: Floats) -> float:
    return Sample(times).percentile("95").value


def of_queue(workers: int, *, is_random: bool) -> Server:
    def server(rate: float, length_s: float, without_s: float, draw: Draw) -> float:
        return queue(workers, is_random=is_random, rate=rate, length_s=length_s, without_s=without_s, draw=draw)

    return server


SERVERS: dict[str, tuple[Server, float | None]] = {
    "M/D/1": (of_queue(1, is_random=False), None),
    "M/M/4": (of_queue(4, is_random=True), None),
    "a lock": (lock, 1 / SERVICE_S),
}


def truth_of(server: Server, known: float | None) -> float:
    """Return the load that meets the objective exactly."""
    low, high = RANGE.low, RANGE.high
    while known is None and high > low * 1.001:
        middle = math.sqrt(low * high)
        is_met = middle < 4 / SERVICE_S and server(middle, 4000, 50, np.random.default_rng(1)) < LIMIT_S
        low, high = (middle, high) if is_met else (low, middle)
    return low if known is None else known


def searched(server: Server, seed: int) -> tuple[Highest | None, int]:
    """Return the answer of one search, and its number of probes."""
    draw, probes = np.random.default_rng(seed), list[Probe]()
    search = Search(RANGE)
    while (load := search.next_load()) is not None and len(probes) < 2 * MOST_PROBES:
        length_s = max((REFINED if search.is_refining else 1) * PROBE_S, needed_samples([OBJECTIVE]) / load)
        value = server(load, length_s, 0.0, draw)
        margin = math.log(value / LIMIT_S)
        outcome = Outcome(OBJECTIVE, margin < 0, "", value, is_sure=abs(margin) > 0.3, margin=margin)
        probes.append(Probe(load, "", [outcome, Outcome(KEEPS_UP, True, "")]))  # as each search for a rate has it
        search = Search(RANGE, probes)
    return search.answer(), len(probes)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--searches", type=int, default=100, metavar="N", help="of each kind (default: %(default)s)")
    searches = parser.parse_args().searches
    is_missed = False
    for name, (server, known) in SERVERS.items():
        truth, within, held, numbers = truth_of(server, known), 0, 0, []
        for answer, n in map(partial(searched, server), range(searches)):
            numbers.append(n)
            if answer is None or answer.highest is None:
                continue
            ends = answer.interval or (answer.highest, answer.first_fail or math.inf)
            within += abs(answer.highest / truth - 1) <= RANGE.resolution
            held += ends[0] <= truth <= ends[1]
        print(
            f"{name}: truth {truth:.1f}/s, within 5 %: {within / searches:.0%}, interval or bracket holds it: "
            f"{held / searches:.0%}, probes: median {np.median(numbers):g}, most {max(numbers)}",
            flush=True,
        )
        is_missed |= within < LEAST_WITHIN * searches or held < LEAST_HELD * searches or max(numbers) > MOST_PROBES
    print(
        f"wanted: within 5 % at least {LEAST_WITHIN:.0%}, held at least {LEAST_HELD:.0%}, probes at most {MOST_PROBES}"
    )
    return 1 if is_missed else 0


if __name__ == "__main__":
    sys.exit(main())
