"""What is under test: the embedded function on loopback, or any function by its URL."""

import json
import os
import socket
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

import psutil

from framestorm import paths
from framestorm.errors import FramestormError, UsageError
from framestorm.guarded import Guarded

HOST = "127.0.0.1"
DEFAULT_PORT = 8080
READY_WITHIN_S = 90.0
POLL_S = 0.1


def embedded_url(port: int) -> str:
    """The address of the embedded target's function, shaped like one behind OpenFaaS's gateway."""
    return f"http://{HOST}:{port}/function/face-blur"


def check_port_free(port: int, instead: str = "-Jurl=") -> None:
    """Refuse a port that something listens on; `instead` is how to test that.

    Raises:
        UsageError: there is no such port.
        FramestormError: names the port, who has it as far as this user may see, and the way out.
    """
    if not 0 < port < 2**16:
        raise UsageError(f"--port {port}: a port is a number from 1 to {2**16 - 1}")
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except PermissionError:
            raise FramestormError(
                f"port {port} may not be used by this user; choose one above 1023 by --port"
            ) from None
        except OSError:
            raise FramestormError(
                f"port {port} for the embedded target is taken by {_holder(port)}; "
                f"end that, choose another port by --port, or test what is there by {instead}"
            ) from None


def _holder(port: int) -> str:
    try:
        for connection in psutil.net_connections("tcp"):
            if connection.status == psutil.CONN_LISTEN and connection.pid and connection.laddr[1:] == (port,):
                process = psutil.Process(connection.pid)
                return f"{process.name()} (pid {connection.pid}, user {process.username()})"
    except psutil.Error:
        pass
    return f"a process of another user (see it by `sudo ss -ltnp sport = :{port}`)"


def check_reachable(url: str, timeout_s: float = 5.0) -> None:
    """See that something accepts connections where a URL points; no request is made, a function may be costly.

    Raises:
        UsageError: the URL has no http(s) scheme or no host.
        FramestormError: nothing answers there.
    """
    parts = urllib.parse.urlsplit(url)
    try:
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError as error:
        raise UsageError(f"-Jurl={url}: {error}") from None
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise UsageError(f"-Jurl={url}: a URL starts with http:// or https:// and a host")
    try:
        socket.create_connection((parts.hostname, port), timeout=timeout_s).close()
    except OSError as error:
        raise FramestormError(
            f"nothing answers at {parts.hostname}:{port} ({error}); does the gateway run, is the url right?"
        ) from None


def start_embedded(port: int, log_path: Path) -> Guarded:
    """Start the function's own HTTP app, kept alive, on loopback."""
    environment = {"FACE_MODEL": str(paths.FACE_GRAPH), **os.environ}
    command: list[str | Path] = [paths.FUNCTION_PYTHON, paths.FACE_BLUR / "app.py", "--host", HOST, "--port", str(port)]
    return Guarded(command, log_path, environment)


def wait_until_ready(target: Guarded, port: int, log_path: Path) -> dict[str, Any]:
    """Wait for the embedded target's model to be loaded and warmed up.

    Returns:
        What the target says of itself on its readiness page.

    Raises:
        FramestormError: it ended, or was not ready in time; the message holds its last words.
    """
    deadline_s = time.monotonic() + READY_WITHIN_S
    last_seen = "no answer"
    while time.monotonic() < deadline_s:
        if (status := target.exit_status()) is not None:
            raise FramestormError(
                f"the embedded target ended with status {status} before it was ready; {_last_words(log_path)}"
            )
        try:
            with urllib.request.urlopen(f"http://{HOST}:{port}/_/ready", timeout=2) as answer:
                body = json.load(answer)
                return body if isinstance(body, dict) else {}
        except (OSError, ValueError) as error:
            last_seen = str(error)
        time.sleep(POLL_S)
    raise FramestormError(
        f"the embedded target was not ready in {READY_WITHIN_S:.0f} s (last seen: {last_seen}); {_last_words(log_path)}"
    )


def _last_words(log_path: Path) -> str:
    lines = log_path.read_text(errors="replace").splitlines()[-8:]
    return f"the end of {paths.shown(log_path)}:\n" + "\n".join(f"  {line}" for line in lines)
