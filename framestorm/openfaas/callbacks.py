"""Receiver of what the queue-worker sends when a queued request is done: each call once, however often it is told.

    python -m framestorm.openfaas.callbacks --port 8095 --out calls.jsonl

The queue delivers at least once: after a crash of the worker a call may be done and told again. The first answer
counts, later ones are counted as repeated.
"""

import argparse
import json
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Self


@dataclass(frozen=True)
class Call:
    """One finished call; times in ms since the epoch, `started_ms` as the worker's own measure of its time says."""

    call_id: str
    function: str
    status: int
    started_ms: float
    done_ms: float
    body: bytes

    def as_json(self) -> str:
        """The call as a line; of the body just its size."""
        return json.dumps({**asdict(self), "body": len(self.body)})


class Receiver:
    """An HTTP server in a thread of its own; its `url` is what goes into X-Callback-Url."""

    def __init__(self, host: str = "127.0.0.1", port: int = 0, out: Path | None = None) -> None:
        self.calls: dict[str, Call] = {}
        self.repeated = 0
        self._changed = threading.Condition()
        self._out = out
        self._server = ThreadingHTTPServer((host, port), self._handler())
        self._server.daemon_threads = True
        self.url = f"http://{host}:{self._server.server_address[1]}/"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, name="callbacks", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def wait(self, count: int, timeout_s: float) -> bool:
        """Whether so many different calls are done, at the latest after `timeout_s`."""
        with self._changed:
            return self._changed.wait_for(lambda: len(self.calls) >= count, timeout_s)

    def serve(self) -> None:
        """Receive in this thread until interrupted."""
        self._server.serve_forever()

    def take(self, call: Call) -> None:
        """Note a call, or that it was told once more."""
        with self._changed:
            if call.call_id in self.calls:
                self.repeated += 1
                return
            self.calls[call.call_id] = call
            if self._out is not None:
                with self._out.open("a") as file:
                    file.write(call.as_json() + "\n")
            self._changed.notify_all()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                done_ms = time.time() * 1000
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                call_id = self.headers.get("X-Call-Id", "")
                if not call_id:
                    self.send_error(400, "no X-Call-Id: this takes callbacks of OpenFaaS's queue-worker only")
                    return
                took_s = float(self.headers.get("X-Duration-Seconds") or 0)
                function, status = self.headers.get("X-Function-Name", ""), self.headers.get("X-Function-Status", "0")
                receiver.take(Call(call_id, function, int(status), done_ms - took_s * 1000, done_ms, body))
                self.send_response(202)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                return

        return Handler


def main(argv: Sequence[str] | None = None) -> int:
    """Receive until interrupted, a line a call into a file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=int, default=8095, help="port to listen on (default: %(default)s)")
    parser.add_argument("--out", type=Path, required=True, help="file that gets a JSON line for each call")
    asked = parser.parse_args(argv)
    receiver = Receiver(asked.host, asked.port, asked.out)
    print(f"X-Callback-Url: {receiver.url}", flush=True)
    try:
        receiver.serve()
    except KeyboardInterrupt:
        print(f"{len(receiver.calls)} calls done, {receiver.repeated} told more than once")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
