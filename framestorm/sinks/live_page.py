"""--live: a page on this machine's loopback, with the charts of the report while the run goes on.

It answers requests for its own name only: a page of another site whose name leads to this machine gets nothing.
"""

import sys
import time
from contextlib import AbstractContextManager, closing, nullcontext
from http import HTTPStatus
from http.client import HTTP_PORT
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socket import socket
from threading import BoundedSemaphore, Lock, Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

from framestorm.errors import UsageError
from framestorm.machine import LOOPBACK, port_holder, wait_until
from framestorm.model import files
from framestorm.model.glance import Glance
from framestorm.model.run import Record
from framestorm.model.series import Mark
from framestorm.model.summary import Summary, Verdict
from framestorm.plain import note
from framestorm.report.live import live_html, live_json
from framestorm.report.live_series import LiveSeries
from framestorm.sinks.sink import Sink, Update, yield_cores

NAMES = (LOOPBACK, "localhost")
MAX_CONNECTIONS = 32
REQUEST_WITHIN_S = 5.0
# Whoever asked for news within this time still looks at the page: it asks once a second.
VIEWER_LEAVES_AFTER_S = 3.0
MAX_VIEWERS = 64
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class LivePage(Sink):
    """The page of a run, or of several in turn; `url` is its address.

    Raises:
        UsageError: something else has the port.
    """

    def __init__(self, port: int) -> None:
        self._lock = Lock()
        self._record, self._series = Record(), LiveSeries(Record(), "sample")
        self._run_name = ""
        self._glance: Glance | None = None
        self._is_ended = False
        self._report: Path | None = None
        self._verdict: Verdict | None = None
        self._content = ""
        self._viewers: dict[str, float] = {}
        try:
            self._server = _PageServer((LOOPBACK, port), self)
        except (OSError, OverflowError) as error:
            holder = port_holder(port)
            why = f"the port is taken by {holder}" if holder else str(error)
            raise UsageError(f"--live {port}: {why}; give another port, or 0 for any that is free") from None
        self.url = f"http://{LOOPBACK}:{self._server.server_port}/"
        super().__init__("--live")
        Thread(target=self._serve, daemon=True).start()

    def begin(self, run: str, record: Record, label: str) -> None:
        """Show the run of that name, whose load has begun."""
        is_first = not self._run_name
        with self._lock:
            self._run_name, self._record = run, record
            self._series = LiveSeries(self._record, label)
            self._glance, self._is_ended, self._content = None, False, ""
        self.begin_again()
        if is_first:
            note(f"live page: {self.url}")

    def take(self, update: Update) -> None:
        with self._lock:
            self._series.take(update.now_s, update.intervals, update.users_now, update.busy_cores)
            begin_s = (self._record.started_ms or 0) / 1000
            self._series.mark(
                Mark(loss.time_ms / 1000 - begin_s, f"{loss.host} lost", is_shaded=True) for loss in update.losses
            )
            self._glance = update.glance
            self._content = ""

    def end(self) -> None:
        with self._lock:
            self._series.finish()
            self._is_ended, self._content = True, ""

    def show_report(self, run_dir: Path) -> None:
        """Hand the run's page to whoever looks at this one, and wait until they have it."""
        verdict = files.read(run_dir / "summary.json", Summary).verdict
        with self._lock:
            self._report, self._verdict, self._content = run_dir / "index.html", verdict, ""
        wait_until(lambda: not self._has_viewers(), VIEWER_LEAVES_AFTER_S + REQUEST_WITHIN_S)

    def close(self) -> None:
        """Free the port."""
        self._server.shutdown()
        self._server.server_close()

    def content(self) -> str:
        """Return what the page shows now, as JSON; made once for all who ask before something changes."""
        with self._lock:
            if not self._content:
                report = str(self._report or "")
                self._content = live_json(
                    self._run_name,
                    self._record,
                    self._series,
                    self._glance,
                    is_over=self._is_ended,
                    verdict=self._verdict,
                    where=report,
                )
            return self._content

    def report(self) -> bytes | None:
        """Return the run's page; None if it is not made yet."""
        return self._report.read_bytes() if self._report else None

    def looks(self, viewer: str, *, has_report: bool) -> None:
        """Note that a viewer asked for news, or got the report, after which it asks no more."""
        with self._lock:
            self._viewers.pop(viewer, None)
            if not has_report and len(self._viewers) < MAX_VIEWERS:
                self._viewers[viewer] = time.monotonic()

    def _has_viewers(self) -> bool:
        with self._lock:
            return any(time.monotonic() - at_s < VIEWER_LEAVES_AFTER_S for at_s in self._viewers.values())

    def _serve(self) -> None:
        yield_cores()
        self._server.serve_forever()


def live_page(port: int | None) -> AbstractContextManager[LivePage | None]:
    """Return the page of --live for as long as the context lasts; None without the option."""
    return nullcontext() if port is None else closing(LivePage(port))


class _PageServer(ThreadingHTTPServer):
    """Answers a bounded number of connections at once; a further one is closed."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, address: tuple[str, int], page: LivePage) -> None:
        self.page = page
        self.html = live_html().encode()
        self._free = BoundedSemaphore(MAX_CONNECTIONS)
        super().__init__(address, _PageHandler)

    def process_request(self, request: socket | tuple[bytes, socket], client_address: Any) -> None:
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: socket | tuple[bytes, socket], client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: socket | tuple[bytes, socket], client_address: Any) -> None:
        """Say what is wrong with the page; a browser that closes its connection is no fault."""
        error = sys.exception()
        if not isinstance(error, OSError):
            self.page.say(f"{type(error).__name__}: {error}")


class _PageHandler(BaseHTTPRequestHandler):
    timeout = REQUEST_WITHIN_S
    server: _PageServer

    def do_GET(self) -> None:
        page, parts = self.server.page, urlsplit(self.path)
        port = self.server.server_port
        # Browsers leave out the usual port.
        endings = {f":{port}", ""} if port == HTTP_PORT else {f":{port}"}
        if self.headers.get("Host") not in {name + ending for name in NAMES for ending in endings}:
            self._answer(HTTPStatus.MISDIRECTED_REQUEST, "text/plain", b"not the name of this page\n")
            return
        viewer = parse_qs(parts.query).get("viewer", [""])[0]
        if parts.path == "/":
            self._answer(HTTPStatus.OK, "text/html", self.server.html)
        elif parts.path == "/state":
            content = page.content().encode()
            page.looks(viewer, has_report=False)
            self._answer(HTTPStatus.OK, "application/json", content)
        elif parts.path == "/report" and (report := page.report()) is not None:
            self._answer(HTTPStatus.OK, "text/html", report)
            page.looks(viewer, has_report=True)
        else:
            self._answer(HTTPStatus.NOT_FOUND, "text/plain", b"nothing is there\n")

    def version_string(self) -> str:
        return "framestorm"

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: the terminal is the run's."""

    def _answer(self, status: HTTPStatus, kind: str, content: bytes) -> None:
        self.send_response(status)
        for name, value in HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
