"""How long replicas take to come, whether requests are lost meanwhile, and what the death of a replica costs.

.local/venv/bin/python -m benchmarks.openfaas_scaling [--function noop] [--rounds 5]
"""

import argparse
import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from benchmarks.openfaas_bench import Caller, deploy, openfaas, p50
from framestorm.platform.openfaas import gateway
from framestorm.platform.openfaas.layout import GATEWAY_URL

SENDERS = 4
UNDER_LOAD_S = 5.0


class GatewayCallers:
    """Requests from a few connections until stopped; each with its end, s, and its status."""

    def __init__(self, url: str, body: bytes) -> None:
        self._url, self._body = url, body
        self._stop = threading.Event()
        self._pool = ThreadPoolExecutor(SENDERS)
        self._senders = [self._pool.submit(self._send) for _ in range(SENDERS)]

    def _send(self) -> list[tuple[float, int]]:
        seen, caller = [], Caller(self._url)
        while not self._stop.is_set():
            status, _, _ = caller.post(self._body)
            seen.append((time.monotonic(), status))
        return seen

    def stop(self) -> list[tuple[float, int]]:
        self._stop.set()
        with self._pool:
            return sorted(answer for sender in self._senders for answer in sender.result())


def zero_to_one(name: str, body: bytes) -> float:
    """Response time, ms, of a request that finds no replica."""
    gateway.scale(name, 0)
    gateway.wait_for_replicas(name, 0)
    # The gateway believes what it has last seen of the replicas for 250 ms.
    time.sleep(0.5)
    status, took_ms, _ = Caller(f"{GATEWAY_URL}/function/{name}").post(body)
    assert status == 200, status
    return took_ms


def one_to_five(name: str) -> float:
    gateway.scale(name, 1)
    gateway.wait_for_replicas(name, 1)
    started_s = time.monotonic()
    gateway.scale(name, 5)
    gateway.wait_for_replicas(name, 5)
    return (time.monotonic() - started_s) * 1000


def lost_while_scaling(name: str, body: bytes) -> tuple[int, int]:
    callers = GatewayCallers(f"{GATEWAY_URL}/function/{name}", body)
    for count in (5, 1, 5, 2, 1):
        gateway.scale(name, count)
        gateway.wait_for_replicas(name, count)
    answers = callers.stop()
    return sum(status != 200 for _, status in answers), len(answers)


def killed_under_load(name: str, body: bytes) -> str:
    gateway.scale(name, 2)
    victim = gateway.wait_for_replicas(name, 2)[0]
    callers = GatewayCallers(f"{GATEWAY_URL}/function/{name}", body)
    time.sleep(UNDER_LOAD_S / 2)
    killed_s = time.monotonic()
    os.kill(victim["pid"], signal.SIGKILL)
    while victim["pid"] in [replica.get("pid") for replica in gateway.replicas(name)]:
        time.sleep(0.005)
    gateway.wait_for_replicas(name, 2)
    recovered_ms = (time.monotonic() - killed_s) * 1000
    time.sleep(UNDER_LOAD_S / 2)
    answers = callers.stop()
    failed = [(at_s, status) for at_s, status in answers if status != 200]
    last_ms = max(((at_s - killed_s) * 1000 for at_s, _ in failed), default=0.0)
    share = f"{len(failed)} of {len(answers)} requests failed ({len(failed) / len(answers):.3%})"
    return (
        f"one of two replicas killed: {share}, the last {last_ms:.0f} ms after; "
        f"two ready again after {recovered_ms:.0f} ms"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--function", default="noop", help="whose replicas (default: %(default)s)")
    parser.add_argument("--body", default="x", help="body of the requests (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="times each is measured (default: %(default)s)")
    asked = parser.parse_args()
    name, body = asked.function, asked.body.encode()
    with openfaas():
        deploy(name)
        warm_ms = p50([Caller(f"{GATEWAY_URL}/function/{name}").post(body)[1] for _ in range(20)])
        zero_ms = [zero_to_one(name, body) for _ in range(asked.rounds)]
        five_ms = [one_to_five(name) for _ in range(asked.rounds)]
        print(f"{name}: a request to no replica takes {p50(zero_ms):.0f} ms, to a warm one {warm_ms:.1f} ms; p50")
        print(f"{name}: 1 -> 5 replicas ready in {p50(five_ms):.0f} ms; p50 of {asked.rounds}")
        lost, sent = lost_while_scaling(name, body)
        print(f"{name}: {lost} of {sent} requests lost while scaling up and down (to reach: 0)")
        print(f"{name}: {killed_under_load(name, body)}")


if __name__ == "__main__":
    main()
