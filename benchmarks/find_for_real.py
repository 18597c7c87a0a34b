"""How near real searches come to a planted capacity.

    .local/venv/bin/python -m benchmarks.find_for_real [--searches 5] [--at-once 1] [--generator 20]

Runs `./run.sh find` against servers in this process: one worker with equal service times (M/D/1), four with exponential
ones (M/M/4), a lock (one at a time, times that vary by 10 %), and a limit of concurrency (ten at a time, all others
are answered 429). Searches at the same time have a core each, because each start of JMeter takes all that it gets.
With --generator N, a function in Go that answers at once is searched N times, up to more requests than this machine can
send: no answer may take the load generator's limit for the function's.
"""

import argparse
import heapq
import json
import math
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple

import numpy as np

from benchmarks.find_coverage import OBJECTIVE, SERVERS, SERVICE_S, Draw, truth_of
from benchmarks.peers import PROGRAMS, function
from framestorm.find.command import MOST_PROBES, PROBE_S
from framestorm.paths import ROOT
from framestorm.setup import pieces as setup

RESOLUTION = 0.05
LIMIT_WORKERS, LIMIT_TAKES_S = 10, 0.2
EVEN_S = 6.0  # of a probe; what random arrivals do needs longer ones
RANGE, GENERATOR_RANGE = "10..500", "2000..200000"


class Planted(NamedTuple):
    """A server whose capacity is known.

    truth: in requests per second. workers: how many requests it serves at a time. takes_s: draws how long one takes.
    """

    truth: float
    workers: int
    takes_s: Callable[[Draw], float]
    objective: str
    arrivals: str
    probe_s: float
    is_refusing: bool = False


def kinds() -> dict[str, Planted]:
    """Return the servers by name."""
    truths = {kind: truth_of(*server) for kind, server in SERVERS.items()}
    accepted = Planted(
        LIMIT_WORKERS / LIMIT_TAKES_S,
        LIMIT_WORKERS,
        lambda _: LIMIT_TAKES_S,
        "success >= 99 %",
        "even",
        PROBE_S,  # the first requests come late, and the two that are refused then are 1 % of 6 s
        is_refusing=True,
    )
    return {
        "M/D/1": Planted(truths["M/D/1"], 1, lambda _: SERVICE_S, OBJECTIVE, "poisson", PROBE_S),
        "M/M/4": Planted(truths["M/M/4"], 4, lambda draw: draw.exponential(SERVICE_S), OBJECTIVE, "poisson", PROBE_S),
        "a lock": Planted(
            truths["a lock"], 1, lambda draw: SERVICE_S * draw.uniform(0.9, 1.1), OBJECTIVE, "even", EVEN_S
        ),
        "a limit of concurrency": accepted,
    }


@contextmanager
def served(planted: Planted, seed: int) -> Iterator[str]:
    """Serve in this process; yields the URL."""
    lock, draw = threading.Lock(), np.random.default_rng(seed)
    free_at_s = [0.0] * planted.workers

    def spend() -> bool:
        """Be served in turn; returns whether the request was accepted."""
        now_s = time.monotonic()
        with lock:  # when each worker is free is known beforehand, so the turn is exactly that of the arrivals
            if planted.is_refusing and free_at_s[0] > now_s:
                return False
            end_s = max(now_s, free_at_s[0]) + planted.takes_s(draw)
            heapq.heapreplace(free_at_s, end_s)
        time.sleep(max(0.0, end_s - time.monotonic()))
        return True

    class Served(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            self.send_response(200 if spend() else 429)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Served) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()


def find(folder: Path, url: str, *words: str, core: int | None = None) -> dict[str, Any]:
    """Run a search, on one core if one is given, and return the content of its find.json."""
    pinned = () if core is None else ("taskset", "--cpu-list", str(core))
    plan = ("-t", "jmx/request-rate.jmx", "-Jramp_s=0", "-Jmethod=GET", f"-Jurl={url}", "-o", str(folder))
    command = [*pinned, ROOT / "run.sh", "find", *words, *plan]
    with Path(f"{folder}.log").open("wb") as log:
        subprocess.run(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=False)
    record: dict[str, Any] = json.loads((folder / "find.json").read_text())
    return record


def searched(cores: SimpleQueue[int | None], folder: Path, number: int, kind: str, planted: Planted) -> bool:
    """Search once for a planted capacity, and print the answer; returns whether it is too far off."""
    words = ("--over", f"rate_per_s={RANGE}", "--probe-s", f"{planted.probe_s:g}", "--slo", planted.objective)
    # No two searches have a draw of arrivals in common.
    drawn = (f"-Jarrivals={planted.arrivals}", f"-Jseed={number * MOST_PROBES}")
    core = cores.get()
    try:
        with served(planted, number) as url:
            record = find(folder / f"search-{number}", url, *words, *drawn, core=core)
    finally:
        cores.put(core)
    answer = record["answer"] or {}
    highest = answer.get("highest") or math.nan
    is_near = abs(highest / planted.truth - 1) <= RESOLUTION
    print(
        f"{number} {kind}: truth {planted.truth:.1f}/s, {answer.get('word')} {highest:.1f}/s "
        f"({highest / planted.truth - 1:+.1%}), interval {answer.get('interval')}, "
        f"from {answer.get('low')} to {answer.get('first_fail')}, {len(record['probes'])} probes",
        flush=True,
    )
    return not is_near


def main() -> int:
    """Search; returns 1 if an answer is more than 5 % off, or takes the generator's limit for the function's."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--searches", type=int, default=5, metavar="N", help="of each kind (default: %(default)s)")
    parser.add_argument("--at-once", type=int, default=1, metavar="N", help="a core each (default: %(default)s)")
    parser.add_argument("--generator", type=int, default=0, metavar="N", help="searches beyond the load generator")
    parser.add_argument("--folder", type=Path, help="where the searches stay (default: they do not)")
    asked = parser.parse_args()
    missed = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = asked.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        planted = [(kind, each) for _ in range(asked.searches) for kind, each in kinds().items()]
        cores = SimpleQueue[int | None]()
        for core in sorted(os.sched_getaffinity(0))[: asked.at_once] if asked.at_once > 1 else [None]:
            cores.put(core)
        with ThreadPoolExecutor(asked.at_once) as pool:
            numbers = range(1, len(planted) + 1)
            missed += sum(pool.map(partial(searched, cores, folder), numbers, *zip(*planted, strict=True)))
        if asked.generator:
            setup.ensure(PROGRAMS[:1])
        for number in range(1, asked.generator + 1):
            with function(0) as url:
                words = ("--over", f"rate_per_s={GENERATOR_RANGE}", "--probe-s", "5", "--slo", "p95 < 1 s")
                record = find(folder / f"generator-{number}", url, *words)
            answer = record["answer"] or {}
            is_its_own = bool(answer.get("why")) and answer.get("word") == "at_least"
            missed += not is_its_own
            print(f"the load generator: {'its own limit' if is_its_own else 'MISTAKEN'}: {record['text']}", flush=True)
    print(f"answers that missed: {missed}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
