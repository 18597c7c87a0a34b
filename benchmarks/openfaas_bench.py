"""What the OpenFaaS benchmarks share: a running local OpenFaaS, functions on it, requests over one kept connection."""

import http.client
import statistics
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from framestorm.platform.openfaas import gateway, stack
from framestorm.platform.openfaas.layout import GATEWAY_URL

# More replicas only where the benchmark asks for them.
NO_AUTOSCALING = {"com.openfaas.scale.max": "1"}


@contextmanager
def openfaas() -> Iterator[None]:
    """The local OpenFaaS on the process backend, ended afterwards."""
    stack.up("process")
    try:
        yield
    finally:
        stack.down()


def deploy(name: str, replicas: int = 1, **more: Any) -> list[str]:
    """Deploy an image under its own name and wait for its replicas; their addresses."""
    spec = {"service": name, "image": name, "labels": NO_AUTOSCALING, **more}
    gateway.call("POST", f"{GATEWAY_URL}/system/functions", spec)
    gateway.scale(name, replicas)
    return [replica["address"] for replica in gateway.wait_for_replicas(name, replicas, timeout_s=60)]


class Caller:
    """One connection, kept alive."""

    def __init__(self, url: str, headers: Mapping[str, str] | None = None) -> None:
        parts = urlsplit(url)
        self._path = parts.path or "/"
        self._headers = dict(headers or {})
        self._connection = http.client.HTTPConnection(parts.netloc, timeout=60)

    def post(self, body: bytes = b"x") -> tuple[int, float, http.client.HTTPResponse]:
        """Send a request; returns its status, its response time in ms, and the answer, body included."""
        started_s = time.perf_counter()
        self._connection.request("POST", self._path, body, self._headers)
        answer = self._connection.getresponse()
        answer.read()
        return answer.status, (time.perf_counter() - started_s) * 1000, answer


def p50(values: list[float]) -> float:
    """The median."""
    return statistics.median(values)
