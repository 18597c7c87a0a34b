"""The same workers behind each balancer: 1, 3 and 5 of them, each held to a quarter of a core.

    .local/venv/bin/python -m benchmarks.openfaas_balancers [--threads 6] [--requests 60]

A request is one unit of the function cpu. A redirect is followed by the caller, so its time is that of both requests.
"""

import argparse
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from statistics import fmean
from urllib.parse import urlsplit

from benchmarks.openfaas_bench import Caller, deploy, openfaas
from framestorm.platform.openfaas import balancers
from framestorm.platform.openfaas.layout import GATEWAY_URL, PROVIDER_URL

WORKERS = (1, 3, 5)
CPU_LIMIT = "250m"


class Route:
    """A way to the workers, used by one thread: keeps a connection to the balancer and to each worker it is sent to."""

    def __init__(self, url: str) -> None:
        self._first = Caller(url)
        self._workers: dict[str, Caller] = {}

    def post(self) -> tuple[float, str]:
        """Response time in ms, and the worker that answered."""
        started_s = time.perf_counter()
        status, _, answer = self._first.post(b"1")
        worker = answer.headers["X-Worker"]
        if status == 307:
            location = answer.headers["Location"]
            worker = urlsplit(location).netloc
            caller = self._workers.setdefault(worker, Caller(location))
            status, _, _ = caller.post(b"1")
        assert status == 200, status
        return (time.perf_counter() - started_s) * 1000, worker


def measure(url: str, threads: int, requests: int) -> tuple[float, Counter[str]]:
    """Mean response time, ms, and requests by worker: a throttled worker answers at once or 0.1 s late."""

    def user(_number: int) -> list[tuple[float, str]]:
        route = Route(url)
        return [route.post() for _ in range(requests // threads)]

    with ThreadPoolExecutor(threads) as pool:
        seen = [answer for answers in pool.map(user, range(threads)) for answer in answers]
    return fmean(took_ms for took_ms, _ in seen), Counter(worker for _, worker in seen)


def routes(name: str) -> dict[str, Callable[[], str]]:
    """Each way by its name; calling one starts what it needs and gives its URL."""

    def starts(kind: str, policy: str) -> Callable[[], str]:
        return lambda: balancers.start(kind, name, policy)

    ways = {
        f"{kind} {policy}": starts(kind, policy)
        for kind, balancer in balancers.KINDS.items()
        for policy in balancer.policies
    }
    ways["provider"] = lambda: f"{PROVIDER_URL}/function/{name}"
    ways["gateway"] = lambda: f"{GATEWAY_URL}/function/{name}"
    return ways


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--threads", type=int, default=6, help="users at once (default: %(default)s)")
    parser.add_argument("--requests", type=int, default=60, help="requests a point (default: %(default)s)")
    asked = parser.parse_args()
    with openfaas():
        means: dict[tuple[str, int], float] = {}
        for workers in WORKERS:
            deploy("cpu", workers, limits={"cpu": CPU_LIMIT})
            for way, start in routes("cpu").items():
                means[way, workers], counts = measure(start(), asked.threads, asked.requests)
                shares = " ".join(str(count) for count in sorted(counts.values(), reverse=True))
                print(f"{workers} workers, {way:<27} mean {means[way, workers]:6.1f} ms   by worker: {shares}")
        for way in routes("cpu"):
            ratios = ", ".join(
                f"{workers} workers {means[way, 1] / means[way, workers]:.1f}x" for workers in WORKERS[1:]
            )
            print(f"{way}: quicker than with 1 worker: {ratios}")


if __name__ == "__main__":
    main()
