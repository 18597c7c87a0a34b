"""Requests that are nearly HTTP, and messages that are nearly those of an agent, from a seed.

For what must outlive whatever reaches it.
"""

import json
import random
import socket
from collections.abc import Iterator, Sequence
from typing import Any

COUNT = 2000
METHODS = (b"POST", b"GET", b"HEAD", b"PUT", b"OPTIONS", b"PO ST", b"", b"\xff\xfe")
VERSIONS = (b"HTTP/1.1", b"HTTP/1.0", b"HTTP/9.9", b"HTTP/x", b"")
VALUES = (
    *(b"0", b"4", b"-1", b"+5", b"99999999999999999999", b"1e9", b"", b"chunked", b"gzip, chunked", b"\xb2", b"nan"),
    *(b"a" * 5000, b"\x00", b"\x1b[2J", b"<b>", b"=1+1", b"close", b"keep-alive", b"100-continue", b"websocket"),
)
NAMES = (b"Content-Length", b"Transfer-Encoding", b"Connection", b"Expect", b"Upgrade", b"Host", b"Accept", b" X", b"")
BODIES = (b"", b"ping", b"4\r\nping\r\n0\r\n\r\n", b"zz\r\n", b"\x00" * 3000, b'{"a": [', b"\x89PNG\r\n\x1a\n")


def requests(seed: int, paths: Sequence[bytes], names: Sequence[bytes] = (), count: int = COUNT) -> Iterator[bytes]:
    """`count` requests, the same for the same seed; `names` are headers that mean something to the server."""
    choice = random.Random(seed)  # noqa: S311
    for _ in range(count):
        lines = [b" ".join([choice.choice(METHODS[:3]), choice.choice(paths), VERSIONS[0]]), b"Host: x"]
        if choice.random() < 0.3:
            lines[0] = b" ".join([choice.choice(METHODS), choice.choice(paths), choice.choice(VERSIONS)])
        for _ in range(choice.randrange(6)):
            lines.append(choice.choice((*NAMES, *names)) + b": " + choice.choice(VALUES))
        body = choice.choice(BODIES)
        if choice.random() < 0.5:
            lines.append(b"Content-Length: %d" % len(body))
        request = bytearray(b"\r\n".join(lines) + b"\r\n\r\n" + body)
        for _ in range(choice.choice((0, 0, 1, 3))):
            request[choice.randrange(len(request))] = choice.randrange(256)
        yield bytes(request[: choice.choice((len(request), len(request), choice.randrange(len(request) + 1)))])


FIELDS = (None, True, -1, 0, 1e308, "", "x" * 9000, "\0", "../x", "\ud800", "YQ==", [], ["x"], {}, {"x": "y"}, {"x": 1})


def messages(seed: int, whole: Sequence[dict[str, Any]], count: int = COUNT) -> Iterator[bytes]:
    """`count` lines of JSON, the same for the same seed, with changed fields, changed bytes, or cut off."""
    choice = random.Random(seed)  # noqa: S311
    for _ in range(count):
        fields = dict(choice.choice(whole))
        for name in choice.sample(sorted(fields), choice.choice((0, 1, 1, 2)) % len(fields)):
            fields[name] = choice.choice(FIELDS)
        if choice.random() < 0.1:
            fields.pop(choice.choice(sorted(fields)))
        if choice.random() < 0.1:
            fields[choice.choice(("", "x", "self"))] = choice.choice(FIELDS)
        line = bytearray(choice.choice((json.dumps(fields).encode(), json.dumps(fields).encode(), b"[" * 5000)))
        for _ in range(choice.choice((0, 0, 0, 1, 3))):
            line[choice.randrange(len(line))] = choice.choice((*range(10), *range(11, 256)))
        yield bytes(line[: choice.choice((len(line), len(line), len(line), choice.randrange(len(line) + 1)))])


def send(port: int, request: bytes) -> None:
    """Send a request to a port of this machine, and read the answer to its end, if there is one."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        try:
            connection.sendall(request)
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(2**16):
                pass
        except (ConnectionError, OSError) as error:
            assert not isinstance(error, TimeoutError), request
