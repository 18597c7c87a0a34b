"""A function behind HTTP, kept alive: routes, health, the limit of requests at once, the exec time-out.

Which function it is comes as a handler, bytes to answer; nothing here knows what it does.
"""

from __future__ import annotations

import os
import sys
import threading
import traceback
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from typing import Any, NoReturn, Protocol

from function.exchange import Answer, Handler, RefusalError, refusal
from function.http_server import HEALTH, READINESS, HttpServer, ServerError
from function.limits import FunctionLimits

# Of all requests under way together: what they hold of the memory does not grow with their number.
BODIES_BYTES_MAX = 256 * 2**20

StartResponse = Callable[[str, list[tuple[str, str]]], Any]


class Application:
    """The WSGI application around one function.

    `workers` handlers run at once; further requests wait in line, their time-out running. A request past its
    time-out is answered, but keeps its place among the requests at once until its handler returns.
    """

    def __init__(self, name: str, limits: FunctionLimits, workers: int) -> None:
        self.handler: Handler | None = None
        self.stopping: Callable[[], bool] = lambda: False
        self._paths = {"/", f"/function/{name}"}
        self._limits = limits
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix=name)
        self._lock = threading.Lock()
        self._inflight = 0
        self._bodies_bytes = 0

    def busy(self) -> bool:
        """Return whether a handler still runs or waits in line."""
        return self._inflight > 0

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        answer = self._route(environ)
        headers = [("Content-Type", answer.content_type), ("Content-Length", str(len(answer.body))), *answer.headers]
        start_response(f"{answer.status} {HTTPStatus(answer.status).phrase}", headers)
        # What came after the headers would be taken for the next answer.
        return [] if environ["REQUEST_METHOD"] == "HEAD" else [answer.body]

    def _route(self, environ: dict[str, Any]) -> Answer:
        path = environ["PATH_INFO"].rstrip("/") or "/"
        method = environ["REQUEST_METHOD"]
        if path in (HEALTH, READINESS):
            if method not in ("GET", "HEAD"):
                return refusal(405, f"{method} {path}: only GET is served here", (("Allow", "GET, HEAD"),))
            if path == READINESS and not self._ready():
                return refusal(503, "not ready: starting or stopping")
            return Answer(b'{"status":"ok"}')
        if path not in self._paths:
            return refusal(404, f"no such path: {path}; the function is at {' and '.join(sorted(self._paths))}")
        if method != "POST":
            return refusal(405, f"{method} {path}: only POST is served here", (("Allow", "POST"),))
        if not self._ready():
            return refusal(503, "not ready: starting or stopping", (("Retry-After", "1"),))
        return self._limited(environ)

    def _ready(self) -> bool:
        return self.handler is not None and not self.stopping()

    def _limited(self, environ: dict[str, Any]) -> Answer:
        """Run the handler within the limits."""
        # The server has read the body, and so knows its length.
        size = int(environ.get("CONTENT_LENGTH") or 0)
        if full := self._enter(size):
            return refusal(429, full, (("Retry-After", "1"),))
        try:
            body = environ["wsgi.input"].read()
            future = self._pool.submit(self._handle, body, environ.get("HTTP_ACCEPT", ""))
        except BaseException:
            self._leave(size)
            raise
        # Also when it was cancelled in line; a running one cannot be, and leaves when its handler returns.
        future.add_done_callback(lambda _: self._leave(size))
        try:
            return future.result(self._limits.exec_timeout_s)
        except TimeoutError:
            future.cancel()
            return refusal(504, f"no result within exec_timeout, {self._limits.exec_timeout_s:g} s")

    def _handle(self, body: bytes, accept: str) -> Answer:
        assert self.handler is not None  # noqa: S101 (checked by _route)
        try:
            return self.handler(body, accept)
        except RefusalError as error:
            return refusal(error.status, str(error))
        except Exception:
            # The process stays; what happened is for its log, not for whoever sent the request.
            traceback.print_exc()
            return refusal(500, "the function failed; its log says why")

    def _enter(self, size: int) -> str | None:
        """Take a place for a body of so many bytes; None, or which limit is reached."""
        most, bytes_most = self._limits.max_inflight, max(BODIES_BYTES_MAX, self._limits.max_body_bytes)
        with self._lock:
            if most and self._inflight >= most:
                return f"{most} requests are under way, as many as max_inflight allows"
            if self._bodies_bytes + size > bytes_most:
                return f"the bodies of requests under way have {self._bodies_bytes} bytes; {bytes_most} are the most"
            self._inflight += 1
            self._bodies_bytes += size
            return None

    def _leave(self, size: int) -> None:
        with self._lock:
            self._inflight -= 1
            self._bodies_bytes -= size


def serve(
    name: str, load: Callable[[], Handler], limits: FunctionLimits, *, workers: int, host: str, port: int
) -> NoReturn:
    """Serve the function until SIGTERM, as `serve_application` does; `load` makes its handler."""
    serve_application(name, Application(name, limits, workers), load, limits, host=host, port=port)


class ServedApplication(Protocol):
    """What is served: it gets its handler when that is made, and asks whether the server is about to stop."""

    handler: Any
    stopping: Callable[[], bool]

    def busy(self) -> bool:
        """Return whether a request is not finished."""

    def __call__(self, environ: dict[str, Any], start_response: StartResponse, /) -> Iterable[bytes]:
        """Answer a request, by WSGI."""


def serve_application(
    name: str,
    application: ServedApplication,
    load: Callable[[], object],
    limits: FunctionLimits,
    *,
    host: str,
    port: int,
) -> NoReturn:
    """Serve until SIGTERM, then end the process: 0 when all requests were finished, else 1.

    `load` makes the handler while health is already answered; readiness follows it. When it fails the server ends.
    """
    try:
        server = HttpServer(application, limits, host, port)
    except ServerError as error:
        sys.exit(f"{name}: {error}")
    application.stopping = lambda: server.stopping
    failures: list[BaseException] = []

    def start() -> None:
        try:
            application.handler = load()
        except BaseException as error:  # of any kind: the process has nothing to serve
            failures.append(error)
            server.stop()
        else:
            print(f"ready {server.url}", file=sys.stderr, flush=True)

    threading.Thread(target=start, daemon=True, name="load").start()
    finished = server.run(application.busy)
    for failure in failures:
        print(f"{name}: {failure or type(failure).__name__}", file=sys.stderr)
    if not finished:
        print(f"{name}: stopped with requests still under way", file=sys.stderr)
    sys.stderr.flush()
    # Not sys.exit: that would wait for a handler that is stuck.
    os._exit(1 if failures or not finished else 0)
