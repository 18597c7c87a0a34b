"""A function that answers as a test asks for."""

import json
import socket
import ssl
import struct
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.in_thread import in_thread

# Informational answers, which come before the final one.
EARLY = b"HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n"
FACE = {"x": 1, "y": 1, "width": 9, "height": 9, "score": 0.9}


@dataclass(frozen=True)
class Answer:
    status: int = 200
    content_type: str = "application/json"
    body: bytes | None = None  # None: the image as it came, with one face
    headers: tuple[tuple[str, str], ...] = (("Server-Timing", "model;dur=9.5, total;dur=11.5"),)
    repeats: bool = False  # the request's headers and body
    delay_s: float = 0
    sent_bytes: int | None = None  # of the body, then the connection is closed
    pause_s: float = 0  # after each line of the body
    authorization: str | None = None  # that a request has to carry, or its answer is 401
    raw: bytes | None = None  # instead of all this, then the connection is closed
    again: bytes = b""  # after `raw` every 50 ms: each piece comes soon, the whole never ends
    resets: bool = False  # the connection, instead of an answer


@dataclass(frozen=True)
class Received:
    method: str
    path: str
    headers: Message
    body: bytes
    port: int


class StandIn(ThreadingHTTPServer):
    """Gives the answers listed, in turn, and keeps what it was sent."""

    request_queue_size = 64
    daemon_threads = True

    def __init__(self, answers: list[Answer], host: str = "127.0.0.1") -> None:
        super().__init__((host, 0), _Handler)
        self.idle_s: float | None = None  # after which a connection is closed
        self.answers = answers
        self.received: list[Received] = []
        self.lock = threading.Lock()
        self.released = threading.Event()

    @property
    def origin(self) -> str:
        scheme = "https" if isinstance(self.socket, ssl.SSLSocket) else "http"
        return f"{scheme}://{self.server_address[0]!s}:{self.server_port}"

    @property
    def url(self) -> str:
        return f"{self.origin}/function/face-blur"

    @property
    def requests(self) -> list[tuple[str | None, bytes]]:
        """Content type and body of each."""
        return [(request.headers["Content-Type"], request.body) for request in self.received]

    def next_answer(self, request: Received) -> Answer:
        with self.lock:
            self.received.append(request)
            return self.answers[(len(self.received) - 1) % len(self.answers)]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Connections that break are part of what is tested."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # the body would wait 40 ms for the headers' acknowledgement
    server: StandIn

    def setup(self) -> None:
        self.timeout = self.server.idle_s
        super().setup()

    def log_message(self, *_: object) -> None:
        pass

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        request = Received(self.command, self.path, self.headers, body, self.client_address[1])
        answer = self.server.next_answer(request)
        if answer.resets:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
            self.close_connection = True
            return
        if answer.raw is not None:
            self.close_connection = True
            self.wfile.write(answer.raw)
            while answer.again and not self.server.released.wait(0.05):
                self.wfile.write(answer.again)
            return
        answered = str(self.headers).encode() + body if answer.repeats else answer.body
        if answered is None:
            answered = json.dumps({"image": body.decode(), "faces": [FACE], "cold": False}).encode()
        self.server.released.wait(answer.delay_s)
        try:
            is_allowed = answer.authorization in (None, self.headers["Authorization"])
            self.send_response(answer.status if is_allowed else 401)
            for name, value in (*answer.headers, ("Content-Type", answer.content_type)):
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answered)))
            self.end_headers()
            sent = answered[: answer.sent_bytes]
            for line in sent.splitlines(keepends=True) if answer.pause_s else [sent]:
                self.wfile.write(line)
                self.server.released.wait(answer.pause_s)
        except OSError:  # the other side has given up
            self.close_connection = True
        if answer.sent_bytes is not None:
            self.close_connection = True

    do_GET = do_PUT = do_DELETE = do_POST  # noqa: N815


def make_certificate(folder: Path, name: str = "DNS:localhost") -> Path:
    """Make a certificate of this machine, by this name; returns a PEM file with it and its key."""
    make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    make += ["-addext", f"subjectAltName={name}"]
    names = (folder / "key.pem", folder / "crt.pem")
    subprocess.run([*make, "-keyout", names[0], "-out", names[1]], check=True, capture_output=True)
    both = folder / "both.pem"
    both.write_text("".join(name.read_text() for name in names))
    return both


def ask_for_certificate(server: StandIn, folder: Path) -> Path:
    """Make a server use TLS and require a client certificate; returns a PEM file with that certificate and its key."""
    both = make_certificate(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(both)
    context.load_verify_locations(folder / "crt.pem")
    context.verify_mode = ssl.CERT_REQUIRED
    server.socket = context.wrap_socket(server.socket, server_side=True)
    return both


@contextmanager
def serving(*answers: dict[str, Any], server: StandIn | None = None) -> Iterator[StandIn]:
    """A server with the answers given, each the fields of an Answer that differ; or one that is given."""
    server = server or StandIn([Answer(**answer) for answer in answers or ({},)])
    with in_thread(server):
        try:
            yield server
        finally:
            server.released.set()


StartServer = Callable[..., StandIn]
