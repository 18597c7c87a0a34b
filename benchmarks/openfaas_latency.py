"""What gateway and provider add to a no-op, whether they hold 80 % of their capacity, and what the provider weighs.

    .local/venv/bin/python -m benchmarks.openfaas_latency [--seconds 60]

The three ways (straight to the replica, through the provider, through gateway and provider) take turns, so that
whatever else the machine does hits all of them.
"""

import argparse
import csv
import subprocess

from benchmarks.openfaas_bench import Caller, deploy, openfaas, p50
from framestorm.platform.openfaas import services
from framestorm.platform.openfaas.layout import GATEWAY_URL, PROVIDER_URL
from framestorm.setup import packages

ROUNDS = 2000
WARM_UP = 200
CONNECTIONS = 8
CAPACITY_S = 10


def added_latency() -> None:
    address = deploy("noop")[0]
    ways = {"direct": f"http://{address}/", "provider": f"{PROVIDER_URL}/function/noop"}
    ways["gateway"] = f"{GATEWAY_URL}/function/noop"
    callers = {way: Caller(url) for way, url in ways.items()}
    times_ms: dict[str, list[float]] = {way: [] for way in ways}
    for number in range(ROUNDS + WARM_UP):
        for way, caller in callers.items():
            status, took_ms, _ = caller.post()
            assert status == 200, f"{way}: {status}"
            if number >= WARM_UP:
                times_ms[way].append(took_ms)
    medians = {way: p50(times) for way, times in times_ms.items()}
    print(f"no-op, p50 of {ROUNDS}: " + ", ".join(f"{way} {took:.3f} ms" for way, took in medians.items()))
    print(f"gateway and provider add {medians['gateway'] - medians['direct']:.3f} ms (to reach: <= 1.5)")


def hey(seconds: int, per_s: float | None) -> dict[str, int]:
    """Load the gateway in a closed loop, or at a rate; answers by status, "" for none."""
    rate = [] if per_s is None else ["-q", str(per_s / CONNECTIONS)]
    url = f"{GATEWAY_URL}/function/noop"
    command = ["hey", "-z", f"{seconds}s", "-c", str(CONNECTIONS), *rate, "-m", "POST", "-d", "x", "-o", "csv", url]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    by_status: dict[str, int] = {}
    for row in csv.DictReader(done.stdout.splitlines()):
        by_status[row["status-code"]] = by_status.get(row["status-code"], 0) + 1
    return by_status


def capacity(seconds: int) -> None:
    packages.install(["hey"])
    full = hey(CAPACITY_S, None)
    per_s = full.get("200", 0) / CAPACITY_S
    held = hey(seconds, 0.8 * per_s)
    failed = sum(held.values()) - held.get("200", 0)
    achieved = sum(held.values()) / seconds
    print(f"capacity over {CONNECTIONS} connections: {per_s:.0f} requests/s, {sum(full.values()) - full['200']} failed")
    share = f"{failed} of {sum(held.values())} failed (to reach: 0)"
    print(f"at 80 % for {seconds} s: {achieved:.0f} requests/s sent, {share}")


def weight() -> None:
    started = services.read()
    process = started.services["provider"].process() if started else None
    assert process is not None
    print(f"provider: {process.memory_info().rss / 1e6:.0f} MB resident after that load (to reach: < 50)")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=int, default=60, help="time at 80 %% of the capacity (default: %(default)s)")
    asked = parser.parse_args()
    with openfaas():
        added_latency()
        capacity(asked.seconds)
        weight()


if __name__ == "__main__":
    main()
