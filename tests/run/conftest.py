"""run.sh as its user calls it, and functions that answer wrongly."""

import base64
import io
import json
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import psutil
import pytest
from PIL import Image

ROOT = Path(__file__).parents[2]
RUN_WITHIN_S = 180


@dataclass(frozen=True)
class Done:
    """A call of run.sh that has ended."""

    status: int
    stdout: str
    stderr: str
    run_dir: Path

    def json(self, name: str) -> Any:
        return json.loads((self.run_dir / name).read_text())


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def start(tmp_path: Path, port: int) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start run.sh with a port and a run's folder of its own; nothing of it outlives the test."""
    started: list[subprocess.Popen[str]] = []

    def start(*words: str, output: bool = True) -> subprocess.Popen[str]:
        own = ["--port", str(port), "-o", str(tmp_path / "run")] if output else []
        command = [str(ROOT / "run.sh"), *words, *own]
        pipe = subprocess.PIPE
        started.append(
            subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True, cwd=ROOT)
        )
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def run_sh(start: Callable[..., subprocess.Popen[str]], tmp_path: Path) -> Callable[..., Done]:
    """Call run.sh to its end."""

    def run_sh(*words: str, output: bool = True) -> Done:
        process = start(*words, output=output)
        stdout, stderr = process.communicate(timeout=RUN_WITHIN_S)
        return Done(process.returncode, stdout, stderr, tmp_path / "run")

    return run_sh


@pytest.fixture
def left_running(tmp_path: Path) -> Callable[[], list[str]]:
    """What still runs with the test's own folder or the run's target on its command line."""

    def left_running() -> list[str]:
        lines = []
        for process in psutil.process_iter(["cmdline", "status"]):
            line = " ".join(process.info["cmdline"] or ())
            if str(tmp_path) in line and process.info["status"] != psutil.STATUS_ZOMBIE:
                lines.append(line)
        return lines

    return left_running


@pytest.fixture
def wait_for() -> Callable[..., None]:
    def wait_for(condition: Callable[[], object], timeout_s: float = 60, what: str = "") -> None:
        deadline_s = time.monotonic() + timeout_s
        while not condition():
            assert time.monotonic() < deadline_s, f"waited {timeout_s} s in vain {what}"
            time.sleep(0.1)

    return wait_for


class _Faulty(BaseHTTPRequestHandler):
    """Answers every frame in one wrong way."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        fault = self.server.fault  # type: ignore[attr-defined]
        if fault == "hang":
            self.server.released.wait(60)  # type: ignore[attr-defined]
            self.close_connection = True
            return
        status, content = 200, b"all is well"
        if fault == "error":
            status, content = 500, b'{"error": "crashed"}'
        elif fault == "unblurred":
            with Image.open(io.BytesIO(base64.b64decode(body))) as image:
                width, height = image.size
            face = {"x": 0, "y": 0, "width": width, "height": height, "score": 0.9}
            timings_ms = {"decode": 1, "model": 1, "blur": 1, "encode": 1, "total": 4}
            content = json.dumps(
                {"image": body.decode(), "faces": [face], "timings_ms": timings_ms, "cold": False}
            ).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def faulty() -> Iterator[Callable[[str], str]]:
    """Start a function with one fault; its URL."""
    servers: list[ThreadingHTTPServer] = []

    def faulty(fault: str) -> str:
        server = ThreadingHTTPServer(("127.0.0.1", 0), _Faulty)
        server.fault = fault  # type: ignore[attr-defined]
        server.released = threading.Event()  # type: ignore[attr-defined]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_port}/function/face-blur"

    yield faulty
    for server in servers:
        server.released.set()  # type: ignore[attr-defined]
        server.shutdown()
        server.server_close()
