"""Servers that answer in ways that HTTP allows, or only just, and that the usual servers of tests cannot."""

import contextlib
import socket
import socketserver
import ssl
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tests.in_thread import in_thread

TEXT = b'{"ok": true}'
SETTINGS_FRAME = bytes((0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 100))


def gzipped(text: bytes) -> bytes:
    packer = zlib.compressobj(wbits=31)
    return packer.compress(text) + packer.flush()


def chunked(*parts: bytes) -> bytes:
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (*parts, b""))


def answer(body: bytes = TEXT, *headers: str, status: str = "200 OK", length: int | None = None) -> bytes:
    lines = [f"HTTP/1.1 {status}", *headers, f"Content-Length: {len(body) if length is None else length}"]
    return "\r\n".join((*lines, "", "")).encode() + body


def compressed(body: bytes, coding: str = "gzip", status: str = "200 OK") -> bytes:
    """An answer in chunks, with any bytes as its compressed body."""
    head = f"HTTP/1.1 {status}\r\nContent-Encoding: {coding}\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head.encode() + (chunked(body) if body else chunked())


TOO_LARGE = answer(b"too large", status="413 Content Too Large")


class Connection(socketserver.BaseRequestHandler):
    """One connection; each request's head is read, its body only as far as the path of the URL says."""

    server: "OddServer"
    request: socket.socket

    def handle(self) -> None:
        with contextlib.suppress(OSError):
            if self.server.context is not None:
                self.request = self.server.context.wrap_socket(self.request, server_side=True)
            if self.server.greeting:
                self.request.sendall(self.server.greeting)
            self.request.settimeout(self.server.idle_s)
            if self.server.is_http2_only:
                self._close_unless_http2()
            else:
                while self._answer():
                    pass
        with contextlib.suppress(OSError):
            self.request.close()

    def _close_unless_http2(self) -> None:
        start = self.request.recv(3)
        if start == b"PRI":
            self.request.sendall(SETTINGS_FRAME)
            self.request.recv(1 << 16)
            return
        while b"\r\n\r\n" not in start:
            start += self.request.recv(1 << 16) or self._ended()

    def _head(self) -> tuple[str, dict[str, str], bytes]:
        head = b""
        while b"\r\n\r\n" not in head:
            head += self.request.recv(1 << 16) or self._ended()
        lines, _, rest = head.partition(b"\r\n\r\n")
        first, *others = lines.decode("latin1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in others)}
        return first.split()[1].split("?")[0], headers, rest

    def _ended(self) -> bytes:
        raise ConnectionError("the client has closed")

    def _read_body(self, headers: dict[str, str], rest: bytes) -> None:
        left = int(headers.get("content-length", 0)) - len(rest)
        while left > 0:
            left -= len(self.request.recv(min(left, 1 << 16)) or self._ended())

    def _answer(self) -> bool:
        path, headers, rest = self._head()
        with self.server.lock:
            self.server.received.append((path, headers))
        if self.server.tunnel is not None and not path.startswith("/"):
            self.request.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            self.request = self.server.tunnel.wrap_socket(self.request, server_side=True)
            return True
        match path:
            case "/413/close":  # with unread data: the kernel resets the connection
                self.request.sendall(TOO_LARGE)
                return False
            case "/413/linger":  # as Go's servers do: half a second, then a reset
                self.request.sendall(TOO_LARGE)
                self.request.shutdown(socket.SHUT_WR)
                self.server.released.wait(0.5)
                return False
            case "/413/stay":  # neither reads nor closes
                self.request.sendall(TOO_LARGE)
                self.server.released.wait(30)
                return False
            case "/413/read":
                self.request.sendall(TOO_LARGE)
                self._read_body(headers, rest)
                return True
            case "/413/some":  # after a part of the body
                self.request.recv(1 << 20)
                self.request.sendall(TOO_LARGE)
                return False
            case "/413/none":  # closed without a word
                return False
            case (
                "/early/200"
            ):  # an answer that begins before the body has been read, as those of streaming functions do
                body = TEXT * 1000
                self.request.sendall(answer(body)[:-1])
                self.server.released.wait(0.4)
                self._read_body(headers, rest)
                self.request.sendall(body[-1:])
                return True
            case "/early/102":
                self.request.sendall(b"HTTP/1.1 102 Processing\r\n\r\n")
                self.server.released.wait(0.4)
        self._read_body(headers, rest)
        reply = self.server.replies(path)
        self.request.sendall(reply)
        return b"Content-Length" in reply or b"chunked" in reply or b" 204 " in reply or b" 304 " in reply


class OddServer(socketserver.ThreadingTCPServer):
    """replies: what answers a path; greeting: what a client gets first; idle_s: until an idle connection is closed.

    is_http2_only: a connection on which HTTP/1.1 is spoken is closed.
    tunnel: what a CONNECT leads to; it ends in this server.
    """

    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 64

    def __init__(
        self,
        replies: Callable[[str], bytes] = lambda _: answer(),
        *,
        port: int = 0,
        greeting: bytes = b"",
        is_http2_only: bool = False,
        idle_s: float | None = None,
        context: ssl.SSLContext | None = None,
        tunnel: ssl.SSLContext | None = None,
        family: socket.AddressFamily = socket.AF_INET,
        host: str = "127.0.0.1",
    ) -> None:
        self.address_family = family
        super().__init__((host, port), Connection)
        self.replies, self.greeting, self.idle_s, self.context = replies, greeting, idle_s, context
        self.is_http2_only, self.tunnel = is_http2_only, tunnel
        self.received: list[tuple[str, dict[str, str]]] = []
        self.lock = threading.Lock()
        self.released = threading.Event()

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def handle_error(self, request: object, client_address: object) -> None:
        """Connections that break are what is tested."""


@contextmanager
def serving_oddly(server: OddServer) -> Iterator[OddServer]:
    """Have a server answer until the end."""
    with in_thread(server):
        try:
            yield server
        finally:
            server.released.set()


def compressed_answers(path: str) -> bytes:
    """The answers of the plans about compressed ones, by path."""
    plain, packed = TEXT, gzipped(TEXT)
    match path:
        case "/gz-chunked-empty" | "/gz-empty":
            return compressed(b"")
        case "/gz-cl0":
            return answer(b"", "Content-Encoding: gzip")
        case "/df-cl0":
            return answer(b"", "Content-Encoding: deflate")
        case "/br-cl0":
            return answer(b"", "Content-Encoding: br")
        case "/gz-204" | "/gz-304":
            status = "204 No Content" if path == "/gz-204" else "304 Not Modified"
            return f"HTTP/1.1 {status}\r\nContent-Encoding: gzip\r\n\r\n".encode()
        case "/gz-two":
            return compressed(gzipped(plain) + gzipped(plain))
        case "/gz-junk":
            return compressed(packed + b"junk")
        case "/gz-zeros":
            return compressed(packed + bytes(20))
        case "/gz-close":
            return b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nConnection: close\r\n\r\n"
        case "/df-chunked":
            return compressed(b"", "deflate")
        case "/br-chunked":
            return compressed(b"", "br")
        case "/xgz-empty":
            return compressed(b"", "x-gzip")
        case "/id-empty":
            return compressed(b"", "identity")
        case "/ce-blank":
            return compressed(b"", "")
        case "/gz-gz":
            return compressed(b"", "gzip, gzip")
        case "/gz-emptystream":
            return compressed(gzipped(b""))
        case "/gz-500":
            return compressed(b"", status="500 Internal Server Error")
        case "/gz-head-only":
            return compressed(packed[:10])
        case "/gz-cut":
            return compressed(packed[:-12])
        case "/gz-cut-500":
            return compressed(packed[:-12], status="500 Internal Server Error")
        case "/df-cut":
            return compressed(zlib.compress(plain)[:-8], "deflate")
        case "/br-cut":
            return compressed(b"\x8b\x05\x80\x7b", "br")
        case "/gz-plain":  # not compressed at all
            return compressed(plain)
    return compressed(packed)
