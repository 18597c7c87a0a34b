"""JMeter's Backend Listener, switched on for one run."""

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest


class _Database(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.server.written.append((self.path, self.headers["Authorization"], body))  # type: ignore[attr-defined]
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def database() -> Iterator[Any]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Database)
    server.written = []  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_figures_reach_the_database(run_sh: Callable[..., Any], database: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INFLUXDB_TOKEN", "a-token")
    url = f"http://127.0.0.1:{database.server_address[1]}/api/v2/write?org=o&bucket=b"
    done = run_sh("-t", "jmx/video-per-user.jmx", "-Jusers=2", "-Jramp_s=0", "-Jframes=3", "--influxdb", url)
    assert done.status == 0, done.stderr
    assert {(path, token) for path, token, _ in database.written} == {("/api/v2/write?org=o&bucket=b", "Token a-token")}
    lines = [line for _, _, body in database.written for line in body.splitlines()]
    assert any(line.startswith("jmeter,") and "transaction=user" in line for line in lines)
    assert any(line.startswith("events,") and "video-per-user started" in line for line in lines)
    assert done.json("run.json")["plan"] == "jmx/video-per-user.jmx"
    assert done.json("summary.json")["labels"]["frame"]["ok"] == 6


@pytest.mark.parametrize("url", ["influx:8086", "http://influx:8086/", "ftp://influx/write"])
def test_an_address_that_cannot_be_written_to(run_sh: Callable[..., Any], url: str) -> None:
    done = run_sh("--influxdb", url)
    assert done.status == 2
    assert f"--influxdb {url}: expected an address to write to" in done.stderr
