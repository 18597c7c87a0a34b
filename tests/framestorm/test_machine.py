"""Requests to parts on this machine, which no proxy gets."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from framestorm import machine
from framestorm.errors import FramestormError


@contextmanager
def serving() -> Iterator[tuple[str, list[str]]]:
    """A server: its address, and the credentials of the requests that it got."""
    credentials: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            credentials.append(self.headers.get("Authorization", ""))
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}).start()
        yield f"http://127.0.0.1:{server.server_port}", credentials
        server.shutdown()


def test_a_proxy_gets_no_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("no_proxy", raising=False)
    with serving() as (part, of_part), serving() as (proxy, of_proxy):
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy)
        assert machine.request("GET", f"{part}/system/functions", auth=("admin", "secret")).json() == {}
        assert machine.answers(f"{part}/healthz")
    assert of_proxy == []
    assert of_part[0].startswith("Basic ")


def test_what_does_not_answer_is_named() -> None:
    assert not machine.answers("http://127.0.0.1:1/healthz")
    with pytest.raises(FramestormError, match=r"GET http://127\.0\.0\.1:1/"):
        machine.request("GET", "http://127.0.0.1:1/")
