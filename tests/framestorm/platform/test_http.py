"""Requests to parts on this machine: whatever proxy the environment names, it gets neither them nor their passwords."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from framestorm.errors import FramestormError
from framestorm.platform import http

Server = tuple[str, list[str]]


@pytest.fixture
def servers() -> Iterator[tuple[Server, Server]]:
    """A part and a proxy: the address of each, and the credentials of the requests that it got."""
    with ExitStack() as stack:

        def start() -> Server:
            credentials: list[str] = []

            class Handler(BaseHTTPRequestHandler):
                def do_GET(self) -> None:
                    credentials.append(self.headers.get("Authorization", ""))
                    self.send_response(200)
                    self.send_header("Content-Length", "2")
                    self.end_headers()
                    self.wfile.write(b"{}")

                def log_message(self, *words: object) -> None:
                    pass

            server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
            stack.callback(server.server_close)
            stack.callback(server.shutdown)
            threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}).start()
            return f"http://127.0.0.1:{server.server_port}", credentials

        yield start(), start()


@pytest.mark.parametrize("name", ["http_proxy", "HTTP_PROXY", "all_proxy"])
def test_a_proxy_gets_no_password(name: str, servers: tuple[Server, Server], monkeypatch: pytest.MonkeyPatch) -> None:
    (part, of_part), (proxy, of_proxy) = servers
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.setenv(name, proxy)
    assert http.request("GET", f"{part}/system/functions", auth=("admin", "secret")).json() == {}
    assert http.answers(f"{part}/healthz")
    assert of_proxy == []
    assert of_part[0].startswith("Basic ")


def test_what_does_not_answer_is_named() -> None:
    assert not http.answers("http://127.0.0.1:1/healthz")
    with pytest.raises(FramestormError, match=r"GET http://127\.0\.0\.1:1/"):
        http.request("GET", "http://127.0.0.1:1/")
