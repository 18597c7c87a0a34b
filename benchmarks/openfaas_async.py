"""Push against pull: the same requests straight through the gateway, and through its queue with a callback each.

    .local/venv/bin/python -m benchmarks.openfaas_async [--requests 200] [--seconds 0.05]

For the queue: when a request was accepted, when the queue-worker took it, when its answer had come back; the worker is
restarted half-way, and every request has to be answered, no answer counted twice.
"""

import argparse
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from benchmarks.openfaas_bench import Caller, deploy, openfaas, p50
from framestorm.paths import ROOT
from framestorm.platform.openfaas import stack
from framestorm.platform.openfaas.config import QUEUE_AT_ONCE
from framestorm.platform.openfaas.layout import GATEWAY_URL

sys.path.insert(0, str(ROOT / "client"))
from callbacks import CallbackReceiver

DONE_WITHIN_S = 120.0


def push(requests: int, body: bytes) -> tuple[float, float]:
    """Median response time, ms, and requests/s, by as many callers as the queue-worker sends requests at once."""

    def caller(count: int) -> list[float]:
        connection = Caller(f"{GATEWAY_URL}/function/sleep")
        return [connection.post(body)[1] for _ in range(count)]

    started_s = time.monotonic()
    with ThreadPoolExecutor(QUEUE_AT_ONCE) as pool:
        times_ms = [ms for each in pool.map(caller, [requests // QUEUE_AT_ONCE] * QUEUE_AT_ONCE) for ms in each]
    return p50(times_ms), len(times_ms) / (time.monotonic() - started_s)


def pull(requests: int, body: bytes, restart: bool) -> None:
    with CallbackReceiver() as receiver:
        connection = Caller(f"{GATEWAY_URL}/async-function/sleep", {"X-Callback-Url": receiver.url})
        sent_ms, accepted_ms = {}, []
        begun_s = time.monotonic()
        for number in range(requests):
            now_ms = time.time() * 1000
            status, took_ms, answer = connection.post(body)
            assert status == 202, status
            sent_ms[answer.headers["X-Call-Id"]] = now_ms
            accepted_ms.append(took_ms)
            if restart and number == requests // 2:
                stack.restart("queue-worker")
        receiver.wait(requests, DONE_WITHIN_S)
        per_s = len(receiver.calls) / (time.monotonic() - begun_s)
    calls = [call for call in receiver.calls.values() if call.call_id in sent_ms]
    waited_ms = p50([call.started_ms - sent_ms[call.call_id] for call in calls])
    done_ms = p50([call.done_ms - sent_ms[call.call_id] for call in calls])
    way = "queue, worker restarted" if restart else "queue"
    print(f"{way}: accepted {p50(accepted_ms):.1f} ms, started {waited_ms:.0f} ms, done {done_ms:.0f} ms; p50")
    lost = requests - len(calls)
    print(f"{way}: {per_s:.0f} requests/s, {lost} of {requests} lost, {receiver.repeated} told more than once")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--requests", type=int, default=200, help="requests each way (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=0.05, help="time a request takes (default: %(default)s)")
    asked = parser.parse_args()
    body = str(asked.seconds).encode()
    with openfaas():
        deploy("sleep")
        took_ms, per_s = push(asked.requests, body)
        print(f"push: done {took_ms:.0f} ms p50, {per_s:.0f} requests/s")
        pull(asked.requests, body, restart=False)
        pull(asked.requests, body, restart=True)


if __name__ == "__main__":
    main()
