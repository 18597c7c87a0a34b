"""Waitress, with this project's ways: JSON errors, large bodies read to their end, a stop that finishes its work."""

from __future__ import annotations

import errno
import logging
import resource
import select
import signal
import socket
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

from waitress.adjustments import Adjustments  # type: ignore[import-untyped]
from waitress.buffers import OverflowableBuffer  # type: ignore[import-untyped]
from waitress.channel import HTTPChannel  # type: ignore[import-untyped]
from waitress.parser import HTTPRequestParser, ParsingError  # type: ignore[import-untyped]
from waitress.server import TcpWSGIServer  # type: ignore[import-untyped]
from waitress.task import ErrorTask, ThreadedTaskDispatcher, WSGITask  # type: ignore[import-untyped]
from waitress.utilities import Error, RequestEntityTooLarge  # type: ignore[import-untyped]
from waitress.wasyncore import dispatcher  # type: ignore[import-untyped]

from function.exchange import refusal
from function.limits import INFLIGHT_MAX, FunctionLimits

# Threads beside those that wait for a result: refusals are answered at once however busy the function is. As many more
# are for health and broken requests alone: without max_inflight, each of the others may have a request that waits.
SPARE_THREADS = 4
HEALTH, READINESS = "/_/health", "/_/ready"
CONNECTIONS_MAX = 1024
# Descriptors for all but connections: libraries, the model, the pool's files.
DESCRIPTORS_BESIDE = 128
# At the limit, a client that lets the server wait for longer makes room for another, however slowly it goes on sending.
WAITS_AT_MOST_S = 10.0
# After the system had no descriptor for a connection: as long none is taken, so that those there are get answered.
ACCEPT_PAUSE_S = 0.1
# Requests and answers up to here stay in memory while they are received and sent, larger ones go to a temporary file.
BUFFERED_BYTES = 2**20
RECEIVE_BYTES = 64 * 2**10
# A body over the limit is read and thrown away up to this size, so that its sender gets to see the 413.
DISCARDED_BYTES_MAX = 2**30


class ServerError(Exception):
    """The server cannot listen; the message says where and why."""


class _NoRoomError(Error):  # type: ignore[misc]
    code = 507
    reason = "Insufficient Storage"


class _Body(OverflowableBuffer):  # type: ignore[misc]
    """A body as it is received; it says so if the system has no room for it."""

    no_room = ""

    def append(self, data: bytes) -> None:
        """Keep `data` too."""
        try:
            super().append(data)
        except OSError as error:
            self.no_room = f"no room for the body: {error.strerror}"


class _Nowhere:
    """Takes the place of a request's buffer when its body is not wanted."""

    no_room = ""

    def append(self, data: bytes) -> None:
        """Drop `data`."""

    def close(self) -> None:
        """Nothing is open."""

    def __len__(self) -> int:
        return 0


class _Parser(HTTPRequestParser):  # type: ignore[misc]
    """Reads a body over the limit, or one that there is no room for, to its end without keeping it.

    Waitress closes the connection at once; the kernel then resets it while the client still sends, and the client
    sees a broken connection in place of the answer.
    """

    expect_continue: bool

    def parse_header(self, header_plus: bytes) -> None:
        """Refuse a length that is told twice: a proxy may go by the other one, and see other requests than this."""
        super().parse_header(header_plus)
        if self.body_rcv is not None:
            self.body_rcv.buf = _Body(self.adj.inbuf_overflow)
        if "CONTENT_LENGTH" in self.headers and (self.chunked or "TRANSFER_ENCODING" in self.headers):
            raise ParsingError("Content-Length and Transfer-Encoding exclude one another")

    def received(self, data: bytes) -> int:
        consumed: int = super().received(data)
        if self.body_rcv is not None and self.body_rcv.buf.no_room:
            self.error = _NoRoomError(self.body_rcv.buf.no_room)
        if isinstance(self.error, RequestEntityTooLarge | _NoRoomError) and self.body_rcv is not None:
            if self.expect_continue:
                # Asked before it is sent: the answer is 413 and not 100 Continue.
                self.expect_continue = False
                return consumed
            if not isinstance(self.body_rcv.buf, _Nowhere):
                self.body_rcv.buf.close()
                self.body_rcv.buf = _Nowhere()
            enough = self.body_bytes_received >= DISCARDED_BYTES_MAX
            self.completed = bool(self.body_rcv.completed or self.body_rcv.error or enough)
        return consumed


class _ErrorTask(ErrorTask):  # type: ignore[misc]
    """What the server itself refuses (a broken request line, a body over the limit) gets the same JSON as the rest."""

    def execute(self) -> None:
        error = self.request.error
        message = f"{error.reason}: {error.body}"
        if isinstance(error, RequestEntityTooLarge):
            most = self.channel.adj.max_request_body_size - 1
            message = f"the body has more than {most} bytes, the most that max_body_bytes allows"
        body = refusal(error.code, message).body
        self.status = f"{error.code} {error.reason}"
        self.response_headers.append(("Content-Type", "application/json"))
        self.set_close_on_finish()
        self.content_length = len(body)
        self.write(body)


class _Task(WSGITask):  # type: ignore[misc]
    """Tells clients that keep their connection when it will be closed."""

    def build_response_header(self) -> bytes:
        if self.channel.server.stopping:
            self.set_close_on_finish()
        header: bytes = super().build_response_header()
        return header


class _Channel(HTTPChannel):  # type: ignore[misc]
    parser_class = _Parser
    task_class = _Task
    error_task_class = _ErrorTask

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.waiting_since_s = time.monotonic()

    def service(self) -> None:
        """Answer one request."""
        super().service()
        self.waiting_since_s = time.monotonic()


class HttpServer(TcpWSGIServer):  # type: ignore[misc]
    """One listening socket; `run` serves until SIGTERM, SIGINT or `stop`, and then answers the requests in progress."""

    channel_class = _Channel

    def __init__(self, application: Callable[..., Any], limits: FunctionLimits, host: str, port: int) -> None:
        """Bind and listen; raises ServerError."""
        for name in ("waitress", "waitress.queue"):
            logging.getLogger(name).setLevel(logging.ERROR)
        try:
            adjustments = Adjustments(
                host=host,
                port=port,
                ident=None,
                threads=(limits.max_inflight or INFLIGHT_MAX) + SPARE_THREADS,
                backlog=CONNECTIONS_MAX,
                connection_limit=_connections_most(),
                asyncore_use_poll=True,
                # Waitress refuses what reaches its limit; ours may be reached.
                max_request_body_size=limits.max_body_bytes + 1,
                recv_bytes=RECEIVE_BYTES,
                inbuf_overflow=BUFFERED_BYTES,
                outbuf_overflow=BUFFERED_BYTES,
            )
            super().__init__(application, adj=adjustments)
        except (OSError, ValueError) as error:
            raise ServerError(f"cannot listen on {host} port {port}: {error}; give another --host or --port") from error
        self.stopping = False
        self._spare = ThreadedTaskDispatcher()
        self._spare.set_thread_count(SPARE_THREADS)
        self._accept_again_s = 0.0
        self._stop_asked = 0
        self._limits = limits

    @property
    def url(self) -> str:
        """Where it listens; with port 0 the port that the system chose."""
        host = f"[{self.effective_host}]" if self.family == socket.AF_INET6 else self.effective_host
        return f"http://{host}:{self.effective_port}"

    def accept(self) -> tuple[socket.socket, Any] | None:
        """Take a connection; without a descriptor for it none for a while, instead of asking without a pause."""
        try:
            connection: tuple[socket.socket, Any] | None = super().accept()
            return connection
        except OSError as error:
            if error.errno not in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
                raise
            print(f"no connection was taken: {error.strerror}", file=sys.stderr, flush=True)
            self._accept_again_s = time.monotonic() + ACCEPT_PAUSE_S
            return None

    def readable(self) -> bool:
        """Return whether connections are taken now."""
        is_open: bool = super().readable()
        if self.in_connection_overflow:
            self._make_room()
        return is_open and time.monotonic() >= self._accept_again_s

    def add_task(self, task: HTTPChannel) -> None:
        """Give a connection's next request to a thread."""
        request = task.requests[0]
        # A request that is broken may have no path.
        is_quick = request.error or request.path.rstrip("/").endswith((HEALTH, READINESS))
        (self._spare if is_quick else self.task_dispatcher).add_task(task)

    def _make_room(self) -> None:
        """Close the connection that has gone longest without a complete request, if a new connection is pending."""
        pending = select.poll()
        pending.register(self.socket, select.POLLIN)
        waiting = [each for each in self.active_channels.values() if not each.requests]
        longest = min(waiting, key=lambda each: each.waiting_since_s, default=None)
        if longest and time.monotonic() - longest.waiting_since_s > WAITS_AT_MOST_S and pending.poll(0):
            longest.will_close = True

    def stop(self) -> None:
        """Take no new requests, finish those under way, then return from `run`; called twice it does not wait."""
        self._stop_asked += 1
        self.pull_trigger()

    def run(self, busy: Callable[[], bool]) -> bool:
        """Serve until stopped. Returns whether all was finished; `busy` says whether the function still works."""

        def on_signal(_number: int, _frame: FrameType | None) -> None:
            self.stop()

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, on_signal)
        while not self._stop_asked:
            self._turn(timeout_s=1.0)
        self.stopping = True
        dispatcher.close(self)  # the listening socket only
        # By then each request has been answered, if only with a 504.
        deadline = time.monotonic() + self._limits.exec_timeout_s + 1.0
        while self._unanswered() or busy():
            if self._stop_asked > 1 or time.monotonic() > deadline:
                return False
            self._turn(timeout_s=0.05)
        return True

    def _turn(self, timeout_s: float) -> None:
        self.asyncore.loop(timeout=timeout_s, map=self._map, use_poll=True, count=1)

    def _unanswered(self) -> bool:
        return any(channel.requests or channel.total_outbufs_len for channel in self.active_channels.values())


def _connections_most() -> int:
    """How many connections there may be: each needs a descriptor, and two more while large bodies are in files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 3 * CONNECTIONS_MAX + DESCRIPTORS_BESIDE
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft == resource.RLIM_INFINITY:
        return CONNECTIONS_MAX
    return max(min(CONNECTIONS_MAX, (soft - DESCRIPTORS_BESIDE) // 3), 8)
