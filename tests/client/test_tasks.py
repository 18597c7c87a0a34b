"""The task client as a process: with a pool of its own, and against a gateway and a queue that behave in all ways."""

import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil
import pytest

from pull import queue_url
from tasks import parse_options

CLIENT = Path(__file__).parents[2] / "client"


class Gateway(ThreadingHTTPServer):
    """Calls and a queue; how a function behaves is its name."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), GatewayHandler)
        self.asked: list[tuple[str, bytes, int]] = []  # path, body, client's port
        self.callbacks: list[tuple[str, str]] = []  # address, call id
        self.released = threading.Event()
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def url(self, function: str) -> str:
        return f"http://127.0.0.1:{self.server_port}/function/{function}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Connections broken by either side are what is tested here."""

    def call_back(self, address: str, call_id: str, status: int = 200) -> None:
        self.callbacks.append((address, call_id))
        parts = urlsplit(address)
        headers = {"X-Call-Id": call_id, "X-Function-Status": str(status), "X-Duration-Seconds": "0.05"}
        # A client that has all it waited for may have ended before it is told again.
        with closing(http.client.HTTPConnection(parts.hostname or "", parts.port)) as connection:
            connection.request("POST", "/", b"slept", {**headers, "X-Function-Name": "f", "X-Worker": "replica-1"})
            connection.getresponse().read()


class GatewayHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Gateway

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.asked.append((self.path, body, self.client_address[1]))
        way, function = self.path.strip("/").split("/")
        if way == "async-function":
            self.queued(function)
        elif function == "hang":
            self.server.released.wait(30)
            self.close_connection = True
        elif function == "drip":
            self.drip()
        elif function == "wrong":
            self.answer(500)
        else:
            time.sleep(float(body))
            self.answer(200, b"slept", X_Worker="replica-1", X_Duration_Seconds="0.05")

    def drip(self) -> None:
        self.close_connection = True
        self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        while not self.server.released.wait(0.05):
            self.wfile.write(b".")

    def queued(self, function: str) -> None:
        number = len(self.server.asked)
        call_id, address = f"call-{number}", self.headers["X-Callback-Url"]
        if function == "full":
            self.answer(429)
            return
        if function == "early":
            self.server.call_back(address, call_id)
        self.answer(202, X_Call_Id=call_id)
        if function in {"right", "twice", "late"}:
            time.sleep(0.6 if function == "late" else 0.06)
            self.server.call_back(address, call_id)
        if function == "twice":
            self.server.call_back(address, call_id)
        if function == "failing":
            self.server.call_back(address, call_id, 500)


@pytest.fixture
def gateway() -> Iterator[Gateway]:
    with Gateway() as server:
        yield server
        server.released.set()
        server.shutdown()


def start(mode: str, *words: object, tasks: int = 6) -> "subprocess.Popen[str]":
    command = [sys.executable, CLIENT / "tasks.py", "--mode", mode, "--tasks", tasks, *words]
    environment = {**os.environ, "PYTHONWARNINGS": "error"}
    pipe = subprocess.PIPE
    return subprocess.Popen([str(word) for word in command], stdout=pipe, stderr=pipe, text=True, env=environment)


@pytest.fixture
def run_tasks(finished: Any) -> Callable[..., Any]:
    def run(mode: str, *words: object, tasks: int = 6) -> Any:
        with start(mode, *words, tasks=tasks) as process:
            return finished(process)

    return run


@pytest.mark.parametrize("mode", ["local", "push", "pull"])
def test_every_task_is_told_once(run_tasks: Any, gateway: Gateway, tmp_path: Path, mode: str) -> None:
    journal = tmp_path / "journal.jsonl"
    done = run_tasks(mode, "--url", gateway.url("right"), "--workers", 3, "--task-s", 0.05, "--journal", journal)
    assert (done.status, done.stderr) == (0, "")
    assert {task["label"] for task in done.samples} == {"task"}
    assert sorted(task["index"] for task in done.samples) == list(range(6))
    assert {(task["ok"], task["cause"], task["censored"]) for task in done.samples} == {(True, None, False)}
    # One common start, and nothing begins before it.
    (intended_ms,) = {task["intended_ms"] for task in done.samples}
    assert all(task["start_ms"] >= intended_ms - 1 for task in done.samples)
    assert all(task["rtt_ms"] >= task["handler_ms"] >= 50 for task in done.samples)
    user = done.user
    assert (user["samples"], user["samples_ok"], user["ok"], user["repeated"]) == (6, 6, True, 0)
    assert (user["mode"], user["workers"], user["tasks"], user["task_s"]) == (mode, 3, 6, 0.05)
    assert user["start_ms"] + user["setup_ms"] <= intended_ms + 1
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    assert lines[0] == {"type": "start", "user": user["user"], "start_ms": user["start_ms"], "samples": 6}
    assert lines[1:] == done.lines


def test_a_pool_works_on_so_many_at_a_time(run_tasks: Any) -> None:
    done = run_tasks("local", "--workers", 2, "--task-s", 0.2, tasks=4)
    assert len({task["worker"] for task in done.samples}) == 2
    # Handed over at once, so that the last has waited for the first in the pool.
    assert max(task["start_ms"] for task in done.samples) - min(task["start_ms"] for task in done.samples) < 150
    assert max(task["rtt_ms"] for task in done.samples) >= 400
    begun = sorted(task["begun_at_ms"] for task in done.samples)
    assert begun[2] - begun[0] >= 199


def test_nothing_to_do_is_done_at_once(run_tasks: Any) -> None:
    done = run_tasks("local", "--workers", 2)
    assert done.status == 0
    assert all(task["handler_ms"] < 100 for task in done.samples)


def test_push_keeps_a_connection_for_each_worker(run_tasks: Any, gateway: Gateway) -> None:
    done = run_tasks("push", "--url", gateway.url("right"), "--workers", 2, "--task-s", 0.1)
    assert len({port for _, _, port in gateway.asked}) == 2
    assert {body for _, body, _ in gateway.asked} == {b"0.1"}
    assert {(task["status"], task["worker"], task["sent_bytes"], task["received_bytes"]) for task in done.samples} == {
        (200, "replica-1", 3, 5)
    }
    # A worker takes its next task when the last is answered.
    starts = sorted(task["start_ms"] for task in done.samples)
    assert starts[4] - starts[0] >= 195


def test_pull_says_when_a_task_was_accepted_and_begun(run_tasks: Any, gateway: Gateway) -> None:
    done = run_tasks("pull", "--url", gateway.url("right"), "--workers", 2)
    assert {path for path, _, _ in gateway.asked} == {"/async-function/right"}
    for task in done.samples:
        assert task["start_ms"] <= task["accepted_at_ms"]
        assert task["begun_at_ms"] == pytest.approx(task["start_ms"] + task["rtt_ms"] - 50, abs=5)
        assert (task["handler_ms"], task["worker"], task["received_bytes"]) == (50, "replica-1", 5)


@pytest.mark.parametrize(("function", "repeated"), [("twice", range(1, 7)), ("early", range(1))])
def test_callbacks_in_any_order_count_once(run_tasks: Any, gateway: Gateway, function: str, repeated: range) -> None:
    done = run_tasks("pull", "--url", gateway.url(function), "--workers", 3)
    assert done.status == 0
    assert sorted(task["index"] for task in done.samples) == list(range(6))
    assert done.user["repeated"] in repeated


@pytest.mark.parametrize(
    ("mode", "function", "cause", "censored", "status"),
    [
        ("push", "wrong", "status-500", False, 500),
        ("push", "hang", "timeout", True, None),
        ("push", "drip", "timeout", True, 200),
        ("pull", "full", "status-429", False, 429),
        ("pull", "failing", "status-500", False, 500),
        ("pull", "never", "timeout", True, None),
        ("pull", "late", "timeout", True, None),
    ],
)
def test_what_goes_wrong_is_a_cause(
    run_tasks: Any, gateway: Gateway, mode: str, function: str, cause: str, censored: bool, status: int | None
) -> None:
    done = run_tasks(mode, "--url", gateway.url(function), "--timeout-s", 0.4, "--workers", 2, tasks=2)
    assert (done.status, done.stderr) == (1, "")
    assert [(task["cause"], task["censored"], task["status"]) for task in done.samples] == [
        (cause, censored, status)
    ] * 2
    assert all(task["rtt_ms"] >= 400 for task in done.samples if censored)
    assert (done.user["ok"], done.user["causes"]) == (False, {cause: 2})


def test_a_pool_too_slow_for_the_time_out(run_tasks: Any) -> None:
    done = run_tasks("local", "--task-s", 0.3, "--timeout-s", 0.4, tasks=2)
    assert {(task["index"], task["cause"], task["censored"]) for task in done.samples} == {
        (0, None, False), (1, "timeout", True),
    }  # fmt: skip


def test_nobody_listens(run_tasks: Any) -> None:
    done = run_tasks("push", "--url", "http://127.0.0.1:9/function/f", "--workers", 2, tasks=3)
    assert (done.status, done.user["causes"]) == (1, {"connect": 3})
    assert {task["sent_bytes"] for task in done.samples} == {0}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize(
    ("mode", "function", "under_way"), [("local", "", 5), ("push", "hang", 2), ("pull", "never", 5)]
)
def test_stopped(
    gateway: Gateway, finished: Any, until: Any, tmp_path: Path, mode: str, function: str, under_way: int, number: int
) -> None:
    journal = tmp_path / "journal.jsonl"
    words = ("--url", gateway.url(function), "--workers", 2, "--task-s", 20, "--journal", journal)
    with start(mode, *words, tasks=5) as process:
        until(
            lambda: journal.exists() and journal.stat().st_size and (mode == "local" or len(gateway.asked) >= under_way)
        )
        children = psutil.Process(process.pid).children()
        time.sleep(0.1)  # for the answers of the queue to be read
        process.send_signal(number)
        done = finished(process)
    assert (done.status, done.stderr) == (1, "")
    assert [(task["cause"], task["censored"]) for task in done.samples] == [("stopped", True)] * under_way
    assert (done.user["cause"], done.user["ok"], done.user["samples"]) == ("stopped", False, under_way)
    assert len(children) == (2 if mode == "local" else 0)
    assert not any(child.is_running() for child in children)


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--mode", "sideways"], "sideways"),
        (["--workers", "0"], "below 1"),
        (["--tasks", "0"], "below 1"),
        (["--task-s", "-1"], "at least 0"),
        (["--timeout-s", "0"], "above 0"),
        (["--mode", "push"], "http://"),
        (["--mode", "push", "--url", "http:///f"], "no host"),
        (["--mode", "pull", "--url", "http://127.0.0.1:9/f"], "/function/NAME"),
        (["--journal", "/proc/framestorm/journal"], "/proc/framestorm"),
    ],
)
def test_bad_use_is_named_and_leaves_no_line(run_tasks: Any, words: list[str], named: str) -> None:
    done = run_tasks("local", *words)
    assert (done.status, done.lines) == (2, [])
    assert named in done.stderr and "Traceback" not in done.stderr


def test_help_names_the_defaults(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse_options(["--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    assert "120.0" in text and "local: a pool" in text


def test_the_queue_of_a_function() -> None:
    for path in ("function", "async-function"):
        assert queue_url(f"http://gateway:8080/{path}/sleep?a=b") == "http://gateway:8080/async-function/sleep?a=b"
