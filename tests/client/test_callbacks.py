"""The receiver of the queue-worker's callbacks: each call once, however often it is told."""

import http.client
import json
import signal
import socket
import struct
import subprocess
import sys
import threading
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest

import callbacks
from callbacks import Call, CallbackReceiver
from framestorm.machine import wait_until
from tests import fuzz


class Connections:
    """Counts the threads of connections that were opened to this process since then; other tests may leave some."""

    def __init__(self) -> None:
        self._before = set(threading.enumerate())

    def count(self) -> int:
        since = set(threading.enumerate()) - self._before
        return sum("process_request" in thread.name for thread in since)


def tell(connection: http.client.HTTPConnection, path: str, **headers: str) -> int:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request("POST", path, b"ok", named)
    answer = connection.getresponse()
    answer.read()
    return answer.status


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ("X-Call-Id: a\r\nContent-Length: -1", 400),
        ("X-Call-Id: a\r\nContent-Length: 99999999999", 413),
        ("X-Call-Id: a\r\nContent-Length: \u00b2", 400),
        ("X-Call-Id: a\r\nTransfer-Encoding: chunked", 400),
        ("X-Call-Id: a\r\nX-Duration-Seconds: soon", 400),
        ("X-Call-Id: a\r\nX-Duration-Seconds: nan", 400),
        ("X-Call-Id: a\r\nX-Function-Status: -2", 400),
    ],
)
def test_what_no_queue_worker_says_is_refused(headers: str, status: int, capfd: pytest.CaptureFixture[str]) -> None:
    with CallbackReceiver() as receiver:
        url = urlsplit(receiver.url)
        with socket.create_connection((url.hostname, url.port), timeout=5) as connection:
            connection.sendall(f"POST {url.path} HTTP/1.1\r\n{headers}\r\n\r\n".encode("latin-1"))
            answer = connection.makefile("rb").read()
    assert answer.split()[1] == str(status).encode()
    assert (receiver.calls, capfd.readouterr().err) == ({}, "")


def test_a_call_told_again_counts_once(tmp_path: Path) -> None:
    told: list[Call] = []
    with CallbackReceiver(out=tmp_path / "calls.jsonl", on_call=told.append) as receiver:
        first = {"X_Call_Id": "a", "X_Function_Name": "noop", "X_Function_Status": "200", "X_Duration_Seconds": "0.25"}
        # All on one connection, which is kept.
        url = urlsplit(receiver.url)
        with closing(http.client.HTTPConnection(url.netloc)) as connection:
            assert [tell(connection, url.path, **first, X_Worker="w") for _ in range(3)] == [202] * 3
            assert tell(connection, url.path, X_Call_Id="b", X_Function_Status="500") == 202
            assert tell(connection, url.path) == 400
        assert receiver.wait(2, timeout_s=1)
        assert not receiver.wait(3, timeout_s=0.01)
    assert (receiver.repeated, [call.call_id for call in told]) == (2, ["a", "b"])
    call = told[0]
    assert (call.status, call.took_ms, call.worker, call.received_bytes) == (200, 250, "w", 2)
    assert call.done_ms - call.started_ms == 250
    lines = [json.loads(line) for line in (tmp_path / "calls.jsonl").read_text().splitlines()]
    assert [(line["call_id"], line["status"], line["received_bytes"]) for line in lines] == [
        ("a", 200, 2),
        ("b", 500, 2),
    ]


def test_a_call_that_cannot_be_written_is_refused_each_time(capfd: pytest.CaptureFixture[str]) -> None:
    told: list[Call] = []
    with CallbackReceiver(out=Path("/dev/full"), on_call=told.append) as receiver:
        url = urlsplit(receiver.url)
        with closing(http.client.HTTPConnection(url.netloc)) as connection:
            assert [tell(connection, url.path, X_Call_Id="a") for _ in range(2)] == [500, 500]
    assert (receiver.calls, receiver.repeated, told) == ({}, 0, [])
    said = "callbacks: call 'a' is not recorded: a line could not be written to /dev/full: No space left on device\n"
    assert capfd.readouterr().err == 2 * said


def test_whoever_was_not_told_the_url_cannot_report_a_call() -> None:
    with CallbackReceiver() as receiver, CallbackReceiver() as other:
        for path in ("/", urlsplit(other.url).path):
            with closing(http.client.HTTPConnection(urlsplit(receiver.url).netloc)) as connection:
                assert tell(connection, path, X_Call_Id="a", X_Function_Status="200") == 404
    assert receiver.calls == {}


@pytest.mark.parametrize(
    "begun", [b"", b"POST / HTTP/1.1\r\nX-Call-Id: a", b"POST / HTTP/1.1\r\nContent-Length: 99\r\n\r\n"]
)
def test_senders_that_never_end_hold_nothing(
    begun: bytes, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(callbacks, "CONNECTIONS_MAX", 8)
    connections = Connections()
    with CallbackReceiver() as receiver, ExitStack() as stack:
        url = urlsplit(receiver.url)
        held = [stack.enter_context(socket.create_connection((url.hostname, url.port), timeout=20)) for _ in range(40)]
        for connection in held:
            connection.sendall(begun)
        assert wait_until(lambda: connections.count() < 12, 10)
        with closing(http.client.HTTPConnection(url.netloc)) as connection:
            assert tell(connection, url.path, X_Call_Id="b") == 202
        held[-1].setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        held.pop().close()  # by a reset
        monkeypatch.setattr(callbacks, "WAITS_AT_MOST_S", 0.5)
        done = threading.Event()

        def send_on() -> None:
            while not done.wait(0.1):
                for connection in held:
                    with suppress(OSError):
                        connection.sendall(begun and b"x")

        sending = threading.Thread(target=send_on)
        sending.start()
        try:
            assert wait_until(lambda: connections.count() == 0, 10)
        finally:
            done.set()
            sending.join()
    assert capfd.readouterr().err == ""


def test_the_receiver_outlives_whatever_reaches_its_port(capfd: pytest.CaptureFixture[str]) -> None:
    names = (b"X-Call-Id", b"X-Duration-Seconds", b"X-Function-Status", b"X-Worker")
    connections = Connections()
    with CallbackReceiver() as receiver:
        url = urlsplit(receiver.url)
        before_bytes = psutil.Process().memory_info().rss
        for request in fuzz.requests(11, (url.path.encode(), b"/x?y"), names):
            fuzz.send(url.port or 0, request)
        assert psutil.Process().memory_info().rss - before_bytes < 30e6
        with closing(http.client.HTTPConnection(url.netloc)) as connection:
            assert tell(connection, url.path, X_Call_Id="last") == 202
        assert connections.count() < 20
    assert receiver.calls["last"].received_bytes == 2
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_receives_until_it_is_told_to_end(tmp_path: Path, number: signal.Signals) -> None:
    """Also where its parent ignores SIGINT, as a shell's background jobs do."""
    command = [sys.executable, callbacks.__file__, "--port", "0", "--out", str(tmp_path / "calls")]
    ignored = ["env", "--ignore-signal=INT", *command]
    with subprocess.Popen(ignored, stdout=subprocess.PIPE, text=True) as receiver:
        assert receiver.stdout is not None
        told = receiver.stdout.readline()
        receiver.send_signal(number)
        rest = receiver.stdout.read()
    assert told.startswith("X-Callback-Url: http://127.0.0.1:")
    assert (receiver.returncode, rest) == (0, "0 calls done, 0 received more than once\n")


@pytest.mark.parametrize(
    ("out", "port", "why"),
    [
        ("calls", None, "Address already in use"),
        ("calls", 99999, "port must be 0-65535"),
        ("calls", -1, "port must be 0-65535"),
        ("/proc/framestorm/calls", 0, "/proc/framestorm/calls cannot be written"),
    ],
)
def test_a_receiver_that_cannot_begin_says_why(tmp_path: Path, out: str, port: int | None, why: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1] if port is None else port
        command = [sys.executable, callbacks.__file__, f"--port={port}", "--out", str(tmp_path / out)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert why in done.stderr and "Traceback" not in done.stderr
