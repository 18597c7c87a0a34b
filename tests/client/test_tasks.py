"""The task client as a process: with a pool of its own, and against a gateway and a queue that behave in all ways."""

import http.client
import signal
import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import ClassVar
from urllib.parse import urlsplit

import psutil
import pytest

import tasks
from arguments import statuses
from caller import Caller
from dispatch import Dispatcher, DispatchError, Handover, TaskOutcome
from headers import VARIABLE
from pull import queue_url
from tests.client.conftest import ANSWERS as FRAME_ANSWERS
from tests.client.conftest import CLIENT, Done, lines_of, start, wait_until
from tests.stand_in import Answer, Received, StandIn, serving

ANSWERS = {
    "hang": FRAME_ANSWERS["hang"],
    "drip": FRAME_ANSWERS["drip"],
    "cut": Answer(body=b"begun" + bytes(995), sent_bytes=5),
    "endless": Answer(raw=b"HTTP/1.1 200 OK\r\n\r\n", again=b"x" * 2**24),
    "early": FRAME_ANSWERS["early"],
    "wrong": Answer(500, body=b""),
    "created": Answer(201, body=b""),
    **{name: FRAME_ANSWERS[name] for name in ("negative-chunk", "no-chunk-size", "cut-chunk", "two-lengths")},
    "no-http": Answer(raw=b"how do you do\r\n\r\n"),
    "not-a-number": Answer(body=b"", headers=(("X-Duration-Seconds", "nan"),)),
    "infinite": Answer(body=b"", headers=(("X-Duration-Seconds", "1e999"),)),
}
CALLED_BACK_AFTER_S = {"right": [0.06], "twice": [0.06, 0.07], "late": [0.6], "failing": [0.0], "called-created": [0.0]}


class Gateway(StandIn):
    """Calls and a queue; how a function behaves is its name."""

    def next_answer(self, request: Received) -> Answer:
        with self.lock:
            self.received.append(request)
        name = request.path.rpartition("/")[2]
        if request.path.startswith("/async-function/"):
            return Answer(429, body=b"") if name == "full" else self._queue(name, request)
        headers = (("X-Worker", "replica-1"), ("X-Duration-Seconds", "0.05"))
        return ANSWERS.get(name) or Answer(body=b"slept", headers=headers, delay_s=float(request.body))

    def _queue(self, name: str, request: Received) -> Answer:
        call_id = f"call-{request.port}-{time.perf_counter_ns()}"
        status = {"failing": "500", "called-created": "201"}.get(name, "200")
        if name == "early":
            call_back(request.headers["X-Callback-Url"], call_id, status)
        # One after the other: the client ends with the last, and would not hear that the first is told again.
        later_s = 0.06 * len(self.received) if name == "twice" else 0
        for after_s in CALLED_BACK_AFTER_S.get(name, ()):
            threading.Timer(later_s + after_s, call_back, (request.headers["X-Callback-Url"], call_id, status)).start()
        return Answer(202, body=b"", headers=(("X-Call-Id", call_id),))


def call_back(url: str, call_id: str, status: str) -> None:
    parts = urlsplit(url)
    headers = {"X-Call-Id": call_id, "X-Function-Status": status, "X-Duration-Seconds": "0.05"}
    # A client that has all it waited for may have ended before it is told again.
    with suppress(OSError), closing(http.client.HTTPConnection(parts.hostname or "", parts.port)) as connection:
        headers |= {"X-Function-Name": "f", "X-Worker": "replica-1"}
        connection.request("POST", parts.path, b"slept", headers)
        connection.getresponse().read()


@pytest.fixture
def gateway() -> Iterator[StandIn]:
    with serving(server=Gateway([])) as server:
        yield server


def run_tasks(mode: str, *words: object, tasks: int = 6) -> Done:
    with start("tasks.py", "--mode", mode, "--tasks", tasks, *words) as process:
        return Done(process)


def run_changed(change: str, *words: object, tasks: int = 3) -> Done:
    """Run tasks with a local pool after a change to the modules of the client."""
    script = f"import os, signal, sys\n{change}\nimport tasks\nsys.exit(tasks.main())"
    command = [sys.executable, "-c", script, "--mode", "local", "--tasks", tasks, *words]
    pipe = subprocess.PIPE
    with subprocess.Popen([*map(str, command)], cwd=CLIENT, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            return Done(process)
        finally:
            process.kill()


@pytest.mark.parametrize("mode", ["local", "push", "pull"])
def test_every_task_is_told_once(gateway: StandIn, tmp_path: Path, mode: str) -> None:
    journal = tmp_path / "journal.jsonl"
    done = run_tasks(
        mode, "--url", f"{gateway.origin}/function/right", "--workers", 3, "--task-s", 0.05, "--journal", journal
    )
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
    begin = {"type": "start", "user": user["user"], "start_ms": user["start_ms"], "samples": 6}
    assert lines_of(journal) == [begin, *done.lines]


def test_a_pool_works_on_so_many_at_a_time() -> None:
    done = run_tasks("local", "--workers", 2, "--task-s", 0.2, tasks=4)
    assert len({task["worker"] for task in done.samples}) == 2
    # Handed over at once, so that the last has waited for the first in the pool.
    assert max(task["start_ms"] for task in done.samples) - min(task["start_ms"] for task in done.samples) < 150
    assert max(task["rtt_ms"] for task in done.samples) >= 400
    begun = sorted(task["begun_at_ms"] for task in done.samples)
    assert begun[2] - begun[0] >= 199


@pytest.mark.parametrize("mode", ["push", "pull"])
def test_each_task_has_a_trace_id_of_its_own(gateway: StandIn, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "traceparent: new")
    done = run_tasks(mode, "--url", f"{gateway.origin}/function/right", "--workers", 2)
    sent = [each.headers["traceparent"].split("-")[1] for each in gateway.received]
    assert len(set(sent)) == 6
    assert sorted(task["trace_id"] for task in done.samples) == sorted(sent)


@pytest.mark.parametrize("mode", ["push", "pull"])
def test_a_secret_in_the_name_of_a_replica_is_masked(
    mode: str, gateway: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FRAMESTORM_HEADERS", "X-Key: ${env:KEY}")
    monkeypatch.setenv("KEY", "replica")
    done = run_tasks(mode, "--url", f"{gateway.origin}/function/right", tasks=1)
    assert [task["worker"] for task in done.samples] == ["${env:KEY}-1"]


def test_push_keeps_a_connection_for_each_worker(gateway: StandIn) -> None:
    done = run_tasks("push", "--url", f"{gateway.origin}/function/right", "--workers", 2, "--task-s", 0.1)
    assert len({each.port for each in gateway.received}) == 2
    assert {each.body for each in gateway.received} == {b"0.1"}
    assert {(task["status"], task["worker"], task["sent_bytes"], task["received_bytes"]) for task in done.samples} == {
        (200, "replica-1", 3, 5)
    }
    # A worker takes its next task when the last is answered.
    starts = sorted(task["start_ms"] for task in done.samples)
    assert starts[4] - starts[0] >= 195


def test_pull_says_when_a_task_was_accepted_and_begun(gateway: StandIn) -> None:
    done = run_tasks("pull", "--url", f"{gateway.origin}/function/right", "--workers", 2)
    assert {each.path for each in gateway.received} == {"/async-function/right"}
    for task in done.samples:
        assert task["start_ms"] <= task["accepted_at_ms"]
        assert task["begun_at_ms"] == pytest.approx(task["start_ms"] + task["rtt_ms"] - 50, abs=5)
        assert (task["handler_ms"], task["worker"], task["received_bytes"]) == (50, "replica-1", 5)


@pytest.mark.parametrize(("function", "repeated"), [("twice", range(1, 7)), ("early", range(1))])
def test_callbacks_in_any_order_count_once(gateway: StandIn, function: str, repeated: range) -> None:
    done = run_tasks("pull", "--url", f"{gateway.origin}/function/{function}", "--workers", 3)
    assert done.status == 0
    assert sorted(task["index"] for task in done.samples) == list(range(6))
    assert done.user["repeated"] in repeated


@pytest.mark.parametrize(
    ("mode", "function", "cause", "censored", "status"),
    [
        ("push", "nobody", "connect", False, None),
        ("push", "wrong", "status-500", False, 500),
        ("push", "hang", "timeout", True, None),
        ("push", "drip", "timeout", True, 200),
        ("push", "negative-chunk", "not-http", False, 200),
        ("push", "no-chunk-size", "not-http", False, 200),
        ("push", "cut-chunk", "reset", False, 200),
        ("push", "two-lengths", "not-http", False, None),
        ("push", "no-http", "not-http", False, None),
        ("pull", "full", "status-429", False, 429),
        ("pull", "failing", "status-500", False, 500),
        ("pull", "never", "timeout", True, None),
        ("pull", "late", "timeout", True, None),
    ],
)
def test_what_goes_wrong_is_a_cause(
    gateway: StandIn, mode: str, function: str, cause: str, censored: bool, status: int | None
) -> None:
    address = "http://127.0.0.1:9" if function == "nobody" else gateway.origin
    done = run_tasks(mode, "--url", f"{address}/function/{function}", "--timeout-s", 0.4, "--workers", 2, tasks=2)
    assert (done.status, done.stderr) == (1, "")
    assert [(task["cause"], task["censored"], task["status"]) for task in done.samples] == [
        (cause, censored, status)
    ] * 2
    assert all(task["rtt_ms"] >= 400 for task in done.samples if censored)
    assert all(task["sent_bytes"] == (0 if cause == "connect" else 1) for task in done.samples)
    assert (done.user["ok"], done.user["causes"]) == (False, {cause: 2})


@pytest.mark.parametrize(("mode", "function"), [("push", "created"), ("pull", "called-created")])
@pytest.mark.parametrize(
    ("words", "cause"),
    [((), None), (("--expect-status", "204, 2X1"), None), (("--expect-status", "200"), "status-201")],
)
def test_the_statuses_of_a_correct_answer(
    gateway: StandIn, mode: str, function: str, words: tuple[str, ...], cause: str | None
) -> None:
    done = run_tasks(mode, "--url", f"{gateway.origin}/function/{function}", *words, tasks=2)
    assert [(task["status"], task["cause"]) for task in done.samples] == [(201, cause)] * 2


@pytest.mark.parametrize(
    ("words", "some"),
    [("2xx", {200, 204, 299}), ("404,200-204", {404, 200, 202, 204}), ("20x", {200, 209}), ("304", {304})],
)
def test_a_list_of_statuses(words: str, some: set[int]) -> None:
    chosen = statuses(words)
    assert some <= chosen and not {100, 300, 403, 500} & chosen


@pytest.mark.parametrize("function", ["not-a-number", "infinite"])
def test_a_time_that_is_no_number_ends_no_user(gateway: StandIn, function: str) -> None:
    done = run_tasks("push", "--url", f"{gateway.origin}/function/{function}")
    assert (done.status, done.stderr) == (0, "")
    assert [task["handler_ms"] for task in done.samples] == [None] * 6


def test_a_pool_too_slow_for_the_time_out() -> None:
    done = run_tasks("local", "--task-s", 1, "--timeout-s", 1.7, tasks=2)
    assert {(task["index"], task["cause"], task["censored"]) for task in done.samples} == {
        (0, None, False), (1, "timeout", True),
    }  # fmt: skip


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_signals_to_the_processes_of_a_pool(tmp_path: Path, number: int) -> None:
    # `timeout`, under which JMeter starts users, sends SIGTERM to all of them. Idle ones hold the lock of their queue.
    journal = tmp_path / "journal.jsonl"
    words = ("--mode", "local", "--workers", 3, "--tasks", 1, "--task-s", 20, "--journal", journal)
    with start("tasks.py", *words) as process:
        wait_until(lambda: journal.exists() and journal.stat().st_size)
        time.sleep(0.1)  # for the task to begin
        children = psutil.Process(process.pid).children()
        for child in children:
            with suppress(psutil.NoSuchProcess):  # the pool ends the others once one is killed
                child.send_signal(number)
        time.sleep(0.5)
        process.send_signal(signal.SIGTERM)
        done = Done(process)
    cause = "stopped" if number == signal.SIGTERM else "worker-ended"
    assert [(task["cause"], task["ok"]) for task in done.samples] == [(cause, False)]
    assert (len(children), psutil.wait_procs(children, timeout=20)[1]) == (3, [])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize(
    ("mode", "function", "under_way"), [("local", "", 5), ("push", "hang", 2), ("pull", "never", 5)]
)
def test_stopped(gateway: StandIn, tmp_path: Path, mode: str, function: str, under_way: int, number: int) -> None:
    journal = tmp_path / "journal.jsonl"
    words = ("--mode", mode, "--url", f"{gateway.origin}/function/{function}", "--workers", 2, "--task-s", 20)
    with start("tasks.py", "--tasks", 5, *words, "--journal", journal) as process:
        wait_until(lambda: journal.exists() and journal.stat().st_size)
        wait_until(lambda: mode == "local" or len(gateway.received) >= under_way)
        children = psutil.Process(process.pid).children()
        time.sleep(0.1)  # for the answers of the queue to be read
        process.send_signal(number)
        done = Done(process)
    assert (done.status, done.stderr) == (1, "")
    assert [(task["cause"], task["censored"]) for task in done.samples] == [("stopped", True)] * under_way
    assert (done.user["cause"], done.user["ok"], done.user["samples"]) == ("stopped", False, under_way)
    assert len(children) == (2 if mode == "local" else 0)
    assert not any(child.is_running() for child in children)


THIRD_FORK = """
fork, asked = os.fork, []
def third_fork():
    asked.append(1)
    if len(asked) == 3:
        {instead}
    return fork()
os.fork = third_fork
"""


@pytest.mark.parametrize(
    ("instead", "status", "why"),
    [
        ("raise BlockingIOError('no process is left')", 2, "3 processes cannot be started: no process is left"),
        ("os.kill(os.getpid(), signal.SIGTERM)", 1, ""),
    ],
)
def test_a_pool_that_does_not_start_leaves_no_process(instead: str, status: int, why: str) -> None:
    done = run_changed(THIRD_FORK.format(instead=instead), "--workers", 3)
    assert (done.status, done.samples) == (status, [])
    assert why in done.stderr and "Traceback" not in done.stderr
    assert (done.user and done.user["cause"]) == (None if why else "stopped")


STOPPED_WITH_A_RESULT = """
import dispatch
take = dispatch.Dispatcher._take
def take_and_stop(self, wait_s):
    result = take(self, wait_s)
    if result is not None:
        os.kill(os.getpid(), signal.SIGTERM)
    return result
dispatch.Dispatcher._take = take_and_stop
"""


def test_a_task_that_is_done_at_the_moment_of_a_signal_is_told() -> None:
    done = run_changed(STOPPED_WITH_A_RESULT, "--task-s", 1)
    assert [(task["index"], task["cause"]) for task in done.samples] == [(0, None), (1, "stopped"), (2, "stopped")]
    assert (done.status, done.user["cause"], done.stderr) == (1, "stopped", "")


def test_the_next_task_of_a_worker_is_not_cut_for_an_earlier_one() -> None:
    """A client that got its turn late finds what happened since in its queue."""

    class Fixed(Dispatcher):
        def start(self, count: int) -> None:
            now_s = time.perf_counter()
            for task, started_s in enumerate((now_s - 60, now_s)):
                self._events.put(Handover(task, 0, started_s, caller))
                self._events.put(TaskOutcome(task, started_s + 1, None))

        def halt(self) -> None:
            pass

    class CutCaller(Caller):
        causes: ClassVar[list[str]] = []

        def cut(self, cause: str) -> None:
            self.causes.append(cause)

    caller = CutCaller("http://127.0.0.1:9/", {}, timeout_s=5, connect_timeout_s=5)
    dispatcher = Fixed(timeout_s=5)
    dispatcher.start(2)
    assert [dispatcher.next().outcome.cause for _ in range(2)] == [None, None]
    assert caller.causes == []


@pytest.mark.parametrize("gateway", ["http://gateway:8080", "https://host/faas"])
def test_the_queue_of_a_function(gateway: str) -> None:
    for path in ("function", "async-function"):
        assert queue_url(f"{gateway}/{path}/sleep?a=b") == f"{gateway}/async-function/sleep?a=b"
    with pytest.raises(DispatchError, match="has no queue"):
        queue_url(f"{gateway}/sleep")


def test_informational_answers_come_before_the_one_that_counts(gateway: StandIn) -> None:
    caller = Caller(f"{gateway.origin}/function/early", {}, timeout_s=5, connect_timeout_s=1)
    answer = caller.post(b"0")
    caller.close()
    assert (answer.status, answer.received_bytes, answer.cause) == (201, 2, None)


def test_a_url_is_sent_as_browsers_send_it(gateway: StandIn) -> None:
    caller = Caller(f"{gateway.origin}/function/a b?q=é&p=%20+", {}, timeout_s=5, connect_timeout_s=1)
    assert caller.post(b"0").status == 200
    caller.close()
    assert gateway.received[0].path == "/function/a%20b?q=%C3%A9&p=%20+"


@pytest.mark.parametrize(
    "words",
    [
        "--timeout-s 0",
        "--connect-timeout-s 0",
        "--task-s -1",
        "--tasks 0",
        "--expect-status 2yy",
        "--expect-status 200-2xx",
        "--mode push",
        "--mode pull --url x",
    ],
)
def test_options_out_of_range_are_refused(words: str) -> None:
    with pytest.raises(SystemExit, match="2"):
        tasks.parse_options(["--mode", "local", "--tasks", "1", *words.split()])
    assert tasks.parse_options(["--mode", "local", "--tasks", "1", "--task-s", "0"]).task_s == 0


def test_an_answer_without_end_is_not_kept(gateway: StandIn) -> None:
    caller = Caller(f"{gateway.origin}/function/endless", {}, timeout_s=5, connect_timeout_s=1)
    timer = threading.Timer(1.5, caller.cut, ["timeout"])
    timer.start()
    tracemalloc.start()
    try:
        answer = caller.post(b"0")
        most_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        timer.join()
    assert answer.cause == "timeout"
    assert most_bytes < 50_000_000


def test_an_answer_that_breaks_off_is_an_error(gateway: StandIn) -> None:
    assert Caller(f"{gateway.origin}/function/cut", {}, timeout_s=5, connect_timeout_s=1).post(b"0").cause == "reset"
