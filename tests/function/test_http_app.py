import io
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from framestorm.machine import wait_until
from framestorm.paths import ROOT
from function.exchange import Answer
from function.http_app import BODIES_BYTES_MAX, Application
from function.limits import FunctionLimits
from tests.function.conftest import Client, start

SCRIPT = Path(__file__).with_name("slow_function.py")


class HeldHandler:
    """Answers once it may."""

    def __init__(self) -> None:
        self.is_running, self.may_end = threading.Event(), threading.Event()

    def __call__(self, body: bytes, accept: str) -> Answer:
        self.is_running.set()
        self.may_end.wait(5)
        return Answer(body)


@pytest.fixture(scope="module")
def slow() -> Iterator[Any]:
    with start(SCRIPT, "0", MAX_BODY_BYTES="100000") as client:
        yield client


@pytest.mark.parametrize("path", ["/", "/function/slow", "/function/slow/", "/function/slow?a=b"])
def test_both_paths_lead_to_the_function(slow: Any, path: str) -> None:
    reply = slow("POST", path, b"ping", Accept="image/png")
    assert (reply.status_code, reply.content, reply.headers["X-Accept"]) == (200, b"ping", "image/png")


@pytest.mark.parametrize("path", ["/_/health", "/_/ready"])
def test_health_and_readiness(slow: Any, path: str) -> None:
    assert slow("GET", path).json() == {"status": "ok"}


@pytest.mark.parametrize(
    ("method", "path", "status", "allow"),
    [
        ("GET", "/", 405, "POST"),
        ("PUT", "/function/slow", 405, "POST"),
        ("POST", "/_/health", 405, "GET, HEAD"),
        ("POST", "/function/other", 404, None),
        ("GET", "/favicon.ico", 404, None),
    ],
)
def test_wrong_method_and_wrong_path(slow: Any, method: str, path: str, status: int, allow: str | None) -> None:
    reply = slow(method, path)
    assert reply.status_code == reply.json()["status"] == status
    assert (reply.headers["Content-Type"], reply.headers.get("Allow")) == ("application/json", allow)


@pytest.mark.parametrize(("size", "status"), [(100_000, 200), (100_001, 413)])
def test_the_largest_body_passes_and_one_byte_more_does_not(slow: Any, size: int, status: int) -> None:
    assert slow("POST", "/", bytes(size)).status_code == status


@pytest.mark.parametrize("chunked", [False, True])
def test_a_huge_body_is_refused_and_not_kept(slow: Any, chunked: bool) -> None:
    before_mb = slow.rss_mb
    body: Any = (bytes(2**20) for _ in range(100)) if chunked else bytes(100 * 2**20)
    reply = slow("POST", "/", body)
    assert reply.status_code == reply.json()["status"] == 413
    assert reply.json()["error"] == "the body has more than 100000 bytes, the most that max_body_bytes allows"
    assert slow.rss_mb - before_mb < 20


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_that_the_disk_has_no_room_for_is_refused(chunked: bool) -> None:
    code = "import resource, runpy, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (2**16, 2**16)); "
    code += f"sys.argv = ['', '0']; runpy.run_path({str(SCRIPT)!r}, run_name='__main__')"
    with start("-c", code) as client:
        body: Any = (bytes(2**20) for _ in range(5)) if chunked else bytes(5 * 2**20)
        reply = client("POST", "/", body)
        assert reply.status_code == reply.json()["status"] == 507
        assert "no room for the body" in reply.json()["error"]
        assert client("POST", "/", b"ping").content == b"ping"


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 99999999999\r\n\r\n", b"413"),
        (b"nonsense\r\n\r\n", b"400"),
        (b"POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nA:" + b"b" * 300_000, b"431"),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n0\r\n\r\n", b"400"),
        (b"POST / HTTP/1.1\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", b"400"),
        (b"POST / HTTP/1.0\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", b"400"),
        (b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", b"400"),
    ],
    ids=[
        *("announced as huge", "nonsense", "no length", "huge header", "broken chunk"),
        *("two lengths", "two lengths in 1.0", "negative length"),
    ],
)
def test_what_is_no_http_or_too_much_gets_json_at_once(slow: Any, request_bytes: bytes, status: bytes) -> None:
    with socket.create_connection(("127.0.0.1", slow.port), timeout=5) as connection:
        connection.sendall(request_bytes)
        answer = b""
        while not answer.endswith(b"}") and (more := connection.recv(1000)):
            answer += more
    assert answer.split(b" ")[1] == status
    assert b'{"error": "' in answer


def test_head_has_no_body_and_keeps_the_connection(slow: Any) -> None:
    with socket.create_connection(("127.0.0.1", slow.port), timeout=5) as connection:
        connection.sendall(b"HEAD /_/health HTTP/1.1\r\n\r\nGET /nope HTTP/1.1\r\nConnection: close\r\n\r\n")
        answers = b""
        while more := connection.recv(10_000):
            answers += more
    head, _, rest = answers.partition(b"\r\n\r\n")
    assert b"Content-Length: 15" in head
    assert rest.startswith(b"HTTP/1.1 404")


HEAD = b"POST / HTTP/1.1\r\nContent-Length: 100\r\n"


@pytest.mark.parametrize(
    "begun",
    [b"", b"GET /_/health HTTP/1.1\r\n\r\n", HEAD, HEAD + b"\r\n"],
    ids=["idle", "kept", "slow headers", "slow body"],
)
def test_more_connections_than_descriptors_leave_health_and_cpu(begun: bytes) -> None:
    code = "import resource, runpy, sys; resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200)); "
    code += "from function import http_server; http_server.WAITS_AT_MOST_S = 1; "
    code += f"sys.argv = ['', '0']; runpy.run_path({str(SCRIPT)!r}, run_name='__main__')"
    with start("-c", code) as client, ExitStack() as stack:
        held = [stack.enter_context(socket.create_connection(("127.0.0.1", client.port))) for _ in range(100)]
        for connection in held:
            connection.sendall(begun)
        done = threading.Event()

        def send_on() -> None:
            while begun.startswith(HEAD) and not done.wait(0.2):
                for connection in held:
                    with suppress(OSError):
                        connection.sendall(b"x")

        process = psutil.Process(client.process.pid)
        assert wait_until(lambda: process.num_fds() > 20, 20)
        with ThreadPoolExecutor(1) as pool:
            pool.submit(send_on)
            try:
                before_s, begun_s = sum(process.cpu_times()[:2]), time.monotonic()
                assert client("GET", "/_/health").status_code == 200
                time.sleep(1)
                assert sum(process.cpu_times()[:2]) - before_s < (time.monotonic() - begun_s) / 2
                assert process.num_fds() < 100
            finally:
                done.set()


def test_bodies_are_limited_in_total() -> None:
    size = BODIES_BYTES_MAX // 2 + 1
    application = Application("slow", FunctionLimits(size, 0, 5.0), workers=2)
    application.handler = slow_handler = HeldHandler()
    with ThreadPoolExecutor(2) as pool:
        environ = {"PATH_INFO": "/", "REQUEST_METHOD": "POST", "CONTENT_LENGTH": str(size), "wsgi.input": io.BytesIO()}
        first = pool.submit(application._route, environ)
        assert slow_handler.is_running.wait(5)
        assert application._route(environ).status == 429
        slow_handler.may_end.set()
        assert first.result().status == application._route(environ).status == 200


def test_a_failing_handler_is_a_500_without_details_and_the_process_stays(slow: Any) -> None:
    reply = slow("POST", "/", b"raise")
    assert reply.status_code == 500
    assert b"secret" not in reply.content
    assert slow("POST", "/", b"ping").status_code == 200


def test_over_the_limit_is_429_at_once_while_all_places_are_taken() -> None:
    with start(SCRIPT, "0", max_inflight="2") as client, ThreadPoolExecutor(6) as pool:
        requests = [pool.submit(client, "POST", "/", b"sleep 3") for _ in range(6)]
        replies = [request.result() for request in as_completed(requests)]
        assert [reply.status_code for reply in replies] == [429] * 4 + [200] * 2
        assert replies[0].json()["status"] == 429
        assert "max_inflight" in replies[0].json()["error"]
        assert client("POST", "/", b"ping").status_code == 200


def test_past_the_time_out_is_504_and_the_place_stays_taken_until_the_work_ends() -> None:
    with start(SCRIPT, "0", exec_timeout="300ms", max_inflight="1") as client:
        reply = client("POST", "/", b"sleep 3")
        assert reply.status_code == reply.json()["status"] == 504
        assert "exec_timeout, 0.3 s" in reply.json()["error"]
        assert client("POST", "/", b"ping").status_code == 429
        assert wait_until(lambda: client("POST", "/", b"ping").status_code == 200, 10)


def test_a_request_that_times_out_in_line_is_never_run() -> None:
    limits = {"exec_timeout": "300ms", "max_inflight": "2", "WORKERS": "1"}
    with start(SCRIPT, "0", **limits) as client, ThreadPoolExecutor(2) as pool:
        assert [r.status_code for r in pool.map(lambda _: client("POST", "/", b"sleep 8"), range(2))] == [504, 504]
        # One still sleeps; the other was taken out of the line and gave its place back.
        assert client("POST", "/", b"ping").status_code == 504
        assert client("GET", "/_/health").status_code == 200


def test_health_is_answered_while_each_thread_has_a_request() -> None:
    code = "import runpy, sys; from function import http_server; http_server.INFLIGHT_MAX = 2; "
    code += f"sys.argv = ['', '0']; runpy.run_path({str(SCRIPT)!r}, run_name='__main__')"
    with start("-c", code, exec_timeout="10m") as client, ExitStack() as stack:
        for _ in range(20):
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", client.port)))
            connection.sendall(b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\nsleep 600")
        wait_until_begun(client)
        assert [client("GET", path).status_code for path in ("/_/health", "/_/ready/")] == [200, 200]
        assert client("POST", "/", bytes(2**24 + 1)).status_code == 413


def refuses(client: Any) -> bool:
    """Whether it takes no connection."""
    try:
        client("GET", "/_/health")
    except OSError:
        return True
    return False


def wait_until_begun(client: Client) -> None:
    """Return once the function is at work on a request."""
    assert client.process.stderr is not None
    assert client.process.stderr.readline() == "begun\n"


def test_sigterm_finishes_what_is_under_way_and_takes_nothing_new() -> None:
    with start(SCRIPT, "0") as client, ThreadPoolExecutor(1) as pool:
        request = pool.submit(client, "POST", "/", b"sleep 1")
        wait_until_begun(client)
        client.process.send_signal(signal.SIGTERM)
        assert wait_until(lambda: refuses(client), 20)
        assert not request.done()
        assert request.result().status_code == 200
        assert client.process.wait(timeout=20) == 0


def test_a_stuck_request_does_not_hold_the_stop_for_ever() -> None:
    with start(SCRIPT, "0", exec_timeout="200ms") as client:
        assert client("POST", "/", b"sleep 60").status_code == 504
        client.process.send_signal(signal.SIGTERM)
        assert client.process.wait(timeout=10) == 1


def test_a_second_sigterm_does_not_wait() -> None:
    with start(SCRIPT, "0") as client, ThreadPoolExecutor(1) as pool:
        request = pool.submit(client, "POST", "/", b"sleep 60")
        wait_until_begun(client)
        client.process.send_signal(signal.SIGTERM)
        assert wait_until(lambda: refuses(client), 20), "two signals at once are one"
        client.process.send_signal(signal.SIGTERM)
        assert client.process.wait(timeout=20) == 1
        assert isinstance(request.exception(), OSError)


def run(*arguments: str, **environment: str) -> str:
    """What the server says that cannot start."""
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *arguments], capture_output=True, text=True, timeout=20, check=False,
        env={"PYTHONPATH": str(ROOT), **environment},
    )  # fmt: skip
    assert done.returncode == 1
    assert not re.search("^ready ", done.stderr, re.MULTILINE)
    return done.stderr


def test_a_port_that_is_taken_is_named() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert f"slow: cannot listen on 127.0.0.1 port {port}:" in run(str(port))


def test_a_function_that_cannot_load_ends_the_server_with_the_reason() -> None:
    assert "slow: the model is missing" in run("0", FAIL="1")


def test_until_it_is_loaded_it_is_alive_but_not_ready() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, str(SCRIPT), str(port)], stderr=subprocess.PIPE,
        env={"PYTHONPATH": str(ROOT), "LOAD_S": "3"},
    )  # fmt: skip
    client = Client(process, port)
    try:
        assert wait_until(lambda: not refuses(client), 10)
        statuses = [client(*words).status_code for words in (("GET", "/_/health"), ("GET", "/_/ready"), ("POST", "/"))]
        assert statuses == [200, 503, 503]
    finally:
        process.kill()
        process.communicate()
