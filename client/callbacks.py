"""Receiver of the queue worker's callbacks for finished requests: each call counts once, however often it is reported.

    python client/callbacks.py --port 8095 --out calls.jsonl

The queue delivers at least once: after a crash of the worker a call may be done and reported again. The first answer
counts; later ones are counted as repeated.
"""

import argparse
import contextlib
import re
import secrets
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

from interrupt import Interrupts, Stopped
from lines import LineError, Lines, complain


@dataclass(frozen=True)
class Call:
    """One finished call, reported at `done_ms` (epoch); `took_ms` is its duration as the queue worker measured it."""

    call_id: str
    function: str
    status: int
    took_ms: float
    done_ms: float
    done_s: float  # the same moment as time.perf_counter
    worker: str | None
    received_bytes: int

    @property
    def started_ms(self) -> float:
        """When the worker started the call, as epoch ms."""
        return self.done_ms - self.took_ms

    def fields(self) -> dict[str, Any]:
        """Return what its line has."""
        fields = {name: value for name, value in asdict(self).items() if name != "done_s"}
        return {**fields, "started_ms": self.started_ms}


# Above what a function's answer is; one without an end must not fill the memory.
BODY_BYTES_MAX = 64 * 2**20
# A connection that brings no whole call for so long is closed, however slowly it goes on sending.
WAITS_AT_MOST_S = 60.0
# Past it the one that has waited for longest goes: each has a thread and a descriptor.
CONNECTIONS_MAX = 256
_WHOLE = re.compile(r"[0-9]{1,18}", re.ASCII)
SECONDS = re.compile(r"[0-9]{1,9}(\.[0-9]{1,18})?(e-?[0-9]{1,2})?", re.ASCII)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128  # callbacks come in bursts

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        self._since_s: dict[socket.socket, float] = {}
        self._lock = threading.Lock()
        super().__init__(address, handler)

    def waits(self, connection: socket.socket) -> None:
        """Note that a connection is waited for from now on."""
        with self._lock:
            self._since_s[connection] = time.monotonic()

    def process_request(self, request: Any, client_address: Any) -> None:
        self.waits(request)
        self._close_waiting(time.monotonic())
        super().process_request(request, client_address)

    def service_actions(self) -> None:
        self._close_waiting(time.monotonic())

    def _close_waiting(self, now_s: float) -> None:
        with self._lock:
            by_age = sorted(self._since_s, key=self._since_s.__getitem__)
            for number, connection in enumerate(by_age):
                if number < len(by_age) - CONNECTIONS_MAX or now_s - self._since_s[connection] > WAITS_AT_MOST_S:
                    with contextlib.suppress(OSError):
                        connection.shutdown(socket.SHUT_RD)  # its thread sees the end, and answers

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._since_s.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), OSError):  # of a sender that went away
            super().handle_error(request, client_address)


class CallbackReceiver:
    """An HTTP server in a thread of its own; its `url` is what goes into X-Callback-Url.

    Only who was told that URL is heard: its path is random.
    """

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 0,
        out: Path | None = None,
        on_call: Callable[[Call], None] | None = None,
    ) -> None:
        """Listen on `host`; `on_call` gets each call once, in a thread of the server.

        Raises:
            LineError: the file `out` cannot be written.
            OSError, OverflowError: this process cannot listen there.
        """
        self.calls: dict[str, Call] = {}
        self.repeated = 0
        self._changed = threading.Condition()
        self._lines = Lines(out)
        self._on_call = on_call
        self._path = f"/{secrets.token_urlsafe(16)}"
        self._server = _Server((host, port), self._handler())
        self.url = f"http://{host}:{self._server.server_address[1]}{self._path}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, name="callbacks", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def wait(self, count: int, timeout_s: float) -> bool:
        """Wait up to `timeout_s` until `count` different calls are done; returns whether they are."""
        with self._changed:
            return self._changed.wait_for(lambda: len(self.calls) >= count, timeout_s)

    def serve(self) -> None:
        """Receive in this thread until interrupted."""
        self._server.serve_forever()

    def take(self, call: Call) -> None:
        """Record a call, or that it was reported again.

        Raises:
            LineError: its line could not be written, so it is not recorded.
        """
        with self._changed:
            if call.call_id in self.calls:
                self.repeated += 1
                return
            self._lines.write(call.fields(), only_journal=True)
            self.calls[call.call_id] = call
            self._changed.notify_all()
        if self._on_call is not None:
            self._on_call(call)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        receiver = self

        class CallbackHandler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"  # keeps connections alive

            def do_POST(self) -> None:
                done_ms, done_s = time.time() * 1000, time.perf_counter()
                header = self.headers.get
                if self.path != receiver._path:
                    return self._refuse(404, "not the X-Callback-Url of this receiver")
                length = header("Content-Length") or "0"
                if not _WHOLE.fullmatch(length) or header("Transfer-Encoding"):
                    return self._refuse(400, "a Content-Length with the length of the body is needed")
                if int(length) > BODY_BYTES_MAX:
                    return self._refuse(413, f"the body has more than {BODY_BYTES_MAX} bytes")
                body = self.rfile.read(int(length))
                if len(body) < int(length):
                    return self._refuse(400, "the body ends before its length")
                call_id = header("X-Call-Id", "")
                if not call_id:
                    return self._refuse(400, "no X-Call-Id: only callbacks of OpenFaaS's queue-worker are accepted")
                took_s, status_text = header("X-Duration-Seconds") or "0", header("X-Function-Status") or "0"
                if not SECONDS.fullmatch(took_s) or not _WHOLE.fullmatch(status_text):
                    return self._refuse(400, "X-Duration-Seconds and X-Function-Status have to be numbers")
                took_ms, status, name = float(took_s) * 1000, int(status_text), header("X-Function-Name", "")
                call = Call(call_id, name, status, took_ms, done_ms, done_s, header("X-Worker"), len(body))
                try:
                    receiver.take(call)
                except LineError as error:
                    complain(f"callbacks: call {call_id!r} is not recorded: {error}")
                    return self._refuse(500, "the call could not be recorded")
                self.send_response(202)
                self.send_header("Content-Length", "0")
                self.end_headers()
                receiver._server.waits(self.connection)

            def _refuse(self, status: int, why: str) -> None:
                # Where the next request begins is not known.
                self.close_connection = True
                self.send_error(status, why)

            def log_message(self, format: str, *args: object) -> None:
                return

        return CallbackHandler


def main(argv: Sequence[str] | None = None) -> int:
    """Receive until interrupted, and write one line per call to a file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=int, default=8095, help="port to listen on (default: %(default)s)")
    parser.add_argument("--out", type=Path, required=True, help="file that gets a JSON line for each call")
    options = parser.parse_args(argv)
    interrupts = Interrupts()
    try:
        receiver = CallbackReceiver(options.host, options.port, options.out)
    except LineError as error:
        parser.error(f"argument --out: {error}")
    except (OSError, OverflowError) as error:
        parser.error(f"{options.host}, port {options.port}, cannot be listened on: {error}")
    try:
        with interrupts.allowed():
            print(f"X-Callback-Url: {receiver.url}", flush=True)
            receiver.serve()
    except Stopped:
        print(f"{len(receiver.calls)} calls done, {receiver.repeated} received more than once")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
