"""A server of streamed answers that sends each piece when it is due, and records what was asked and when it sent."""

import heapq
import json
import math
import os
import re
import selectors
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

PATH = "/v1/chat/completions"
NUMBER = re.compile(rb"stream-(\d+)")
LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


@dataclass(frozen=True)
class Pace:
    """When the pieces of each answer are due: the first after `first_s`, each other `gap_s` after the one before."""

    first_s: float
    gap_s: float
    tokens: int


@dataclass
class ServedStream:
    """One request and its answer, by the clock that all processes of a machine share.

    sent_ns: of each piece, when the server began to send it and when it had: it may lose its turn between the two.
    """

    arrived_ns: int
    request: dict[str, Any]
    sent_ns: list[tuple[int, int]] = field(default_factory=list)

    @property
    def end_ns(self) -> int:
        """When its last piece was sent."""
        return self.sent_ns[-1][1]

    def gaps_ms(self) -> tuple[list[float], list[float]]:
        """Return the least and the most that each gap between two pieces was, in order of size."""
        gaps = [(after[0] - before[1], after[1] - before[0]) for before, after in pairwise(self.sent_ns)]
        low, high = (sorted(gap[end] / 1e6 for gap in gaps) for end in (0, 1))
        return low, high


@contextmanager
def stream_server(pace: Pace, log: Path, streams: float = math.inf) -> Iterator[str]:
    """Serve in a process of its own, and yield the address; `read_streams` reads its log afterwards.

    The prompt of each request has a number of its own, `stream-12`. The server ends with the context, or after so many
    streams.
    """
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    if (server := os.fork()) == 0:
        served = dict[int, ServedStream]()
        signal.signal(signal.SIGTERM, lambda *_: sys.exit())
        try:
            _serve(listener, pace, served, streams)
        finally:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            log.write_text(json.dumps({number: vars(stream) for number, stream in served.items()}))
            os._exit(0)
    listener.close()
    try:
        yield url
    finally:
        os.kill(server, signal.SIGTERM)
        os.waitpid(server, 0)


def read_streams(log: Path) -> dict[int, ServedStream]:
    """Return the streams of a server that has ended, by the numbers in their prompts."""
    return {int(number): ServedStream(**of) for number, of in json.loads(log.read_text()).items()}


def at_share(values: Sequence[float], share: float) -> float:
    """Return the percentile of values in order of size, by nearest rank."""
    return values[max(0, math.ceil(share * len(values)) - 1)]


def _serve(listener: socket.socket, pace: Pace, served: dict[int, ServedStream], streams: float) -> None:
    """Send each stream its pieces when they are due."""
    chosen = selectors.DefaultSelector()
    listener.setblocking(False)
    chosen.register(listener, selectors.EVENT_READ)
    due: list[tuple[float, int, int, socket.socket]] = []
    n_done = 0

    def begin(connection: socket.socket, body: bytes) -> None:
        number = NUMBER.search(body)
        if number is None:
            raise SystemExit(f"a request without stream-N in its prompt: {body[:200]!r}")
        served[int(number[1])] = ServedStream(time.time_ns(), json.loads(body))
        # Spread over a gap, as streams of a real server are.
        first_s = time.perf_counter() + pace.first_s + pace.gap_s * (int(number[1]) % 97) / 97
        heapq.heappush(due, (first_s, int(number[1]), 0, connection))

    while n_done < streams:
        wait_s = due[0][0] - time.perf_counter() if due else None
        if wait_s is None or wait_s > 0:
            for key, _ in chosen.select(wait_s):
                if key.fileobj is listener:
                    connection = listener.accept()[0]
                    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    chosen.register(connection, selectors.EVENT_READ, _reader(connection, begin))
                elif not key.data():
                    chosen.unregister(key.fileobj)
                    key.fileobj.close()  # type: ignore[union-attr]
        while due and due[0][0] <= time.perf_counter():
            due_s, number, index, connection = heapq.heappop(due)
            is_last = index == pace.tokens - 1
            before_ns = time.time_ns()
            connection.sendall((HEAD if index == 0 else b"") + _piece(number, index) + _end(pace) * is_last)
            served[number].sent_ns.append((before_ns, time.time_ns()))
            n_done += is_last
            if not is_last:
                heapq.heappush(due, (due_s + pace.gap_s, number, index + 1, connection))


def _reader(connection: socket.socket, begin: Callable[[socket.socket, bytes], None]) -> Callable[[], bool]:
    """Return what reads of a connection, calls `begin` with each whole body, and returns whether there may be more."""
    buffer = bytearray()

    def read() -> bool:
        data = connection.recv(65536)
        buffer.extend(data)
        head, blank, rest = bytes(buffer).partition(b"\r\n\r\n")
        length = LENGTH.search(head)
        if blank and length and len(rest) >= int(length[1]):
            buffer.clear()
            begin(connection, rest)
        return bool(data)

    return read


def _piece(number: int, index: int) -> bytes:
    return _chunk(
        b'{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"%d.%d "}}]}' % (number, index)
    )


def _end(pace: Pace) -> bytes:
    usage = {"prompt_tokens": 100, "completion_tokens": pace.tokens, "total_tokens": 100 + pace.tokens}
    return (
        _chunk(json.dumps({"object": "chat.completion.chunk", "choices": [], "usage": usage}).encode())
        + b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n"
    )


def _chunk(data: bytes) -> bytes:
    event = b"data: %b\n\n" % data
    return b"%x\r\n%b\r\n" % (len(event), event)
