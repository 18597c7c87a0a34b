"""The process backend under the real gateway, driven by the real faas-cli."""

import json
import os
import re
import signal
import subprocess
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from framestorm import paths
from framestorm.errors import FramestormError, UsageError
from framestorm.machine import wait_until
from framestorm.platform import cli as target
from framestorm.platform.openfaas import config, gateway, metrics, stack
from framestorm.platform.openfaas.layout import (
    FIRST_USER,
    GATEWAY_PORT,
    GATEWAY_URL,
    LOGS,
    PROMETHEUS_URL,
    PROVIDER_PORT,
    STACK,
    UPSTREAM_TIMEOUT_S,
)
from tests.openfaas.conftest import get, listening, post, replicas

RUNTIMES = ["noop", "noop-go", "noop-python", "noop-node", "noop-java"]


def wait_for_metric(query: str) -> None:
    """Until Prometheus has something to say to the query."""
    address = f"{PROMETHEUS_URL}/api/v1/query?{urllib.parse.urlencode({'query': query})}"
    assert wait_until(lambda: json.loads(get(address))["data"]["result"], 20), query


@contextmanager
def load(function: str, body: bytes, senders: int) -> Iterator[list[int]]:
    """Senders that call a function one request after the other; the statuses of all, complete at the end."""
    stop, statuses = threading.Event(), []

    def send() -> None:
        while not stop.is_set():
            statuses.append(post(function, body).status_code)

    with ThreadPoolExecutor(senders) as pool:
        under_way = [pool.submit(send) for _ in range(senders)]
        try:
            yield statuses
        finally:
            stop.set()
    for sender in under_way:
        sender.result()


@pytest.fixture(scope="module", autouse=True)
def slow(openfaas, send_frame) -> Iterator[dict[str, Future[Any]]]:
    """What takes 25 s, going on while the other tests run."""
    words = ("--label", "com.openfaas.scale.max=3", "--label", "com.openfaas.scale.factor=50")
    assert openfaas("deploy", "--name", "busy", "--image", "noop", *words).returncode == 0
    words = ("--env", "seconds=26", "--env", "exec_timeout=60s")
    assert openfaas("deploy", "--name", "slow", "--image", "sleep", *words).returncode == 0

    def given_up() -> tuple[int, float]:
        started_s = time.monotonic()
        return post("slow").status_code, time.monotonic() - started_s

    def busy() -> tuple[set[int], int]:
        """Statuses, and the number of replicas, under load until there is more than one."""
        statuses, end_s = {post("busy").status_code}, time.monotonic() + 90
        while (n := len(gateway.replicas("busy"))) < 2 and time.monotonic() < end_s:
            statuses.add(post("busy").status_code)
            time.sleep(0.05)
        return statuses, n

    with ThreadPoolExecutor(3) as pool:
        yield {"gateway": pool.submit(given_up), "client": pool.submit(send_frame, "slow"), "busy": pool.submit(busy)}


def test_a_user_s_way_through_faas_cli(openfaas, deploy):
    deploy("noop")
    assert "noop" in openfaas("list").stdout
    described = openfaas("describe", "noop").stdout
    assert "Ready" in described and "framestorm/noop:0.1" in described
    assert openfaas("invoke", "noop", stdin="hello").stdout == "ok"
    deploy("cpu-fork")
    assert "units" in openfaas("invoke", "cpu-fork", stdin="1").stdout
    assert "Forking fprocess" in openfaas("logs", "cpu-fork", "--tail=false").stdout
    for count in (2, 0):
        gateway.scale("noop", count)
        gateway.wait_for_replicas("noop", count)
    assert post("noop").content == b"ok", "a request to no replica starts the first"
    assert openfaas("remove", "noop").returncode == 0
    assert post("noop").status_code == 404


def test_secrets_reach_the_function_that_asked(openfaas, deploy):
    refused = openfaas("deploy", "-f", STACK, "--filter", "noop", "--secret", "token")
    assert refused.returncode != 0 and 'secret "token" does not exist' in refused.stdout
    assert openfaas("secret", "create", "token", "--from-literal", "hush").returncode == 0
    deploy("noop", "--secret", "token")
    replica = gateway.wait_for_replicas("noop", 1)[0]
    folder = psutil.Process(replica["pid"]).environ()["secret_mount_path"]
    assert Path(folder, "token").read_text() == "hush"
    assert "token" in openfaas("secret", "list").stdout
    assert openfaas("secret", "remove", "token").returncode == 0


@pytest.mark.parametrize("way", ["", "-fork"])
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_every_runtime_in_both_ways(deploy, runtime, way):
    deploy(runtime + way)
    assert post(runtime + way).content == b"ok"
    users = [psutil.Process(replica["pid"]).uids() for replica in gateway.replicas(runtime + way)]
    assert all(min(user) >= FIRST_USER for user in users), users


def test_nothing_is_open_to_other_machines(deploy):
    deploy("noop")
    ports = {port for program in config.programs("process") for port in program.ports}
    assert ports >= {GATEWAY_PORT, PROVIDER_PORT}
    addresses = listening()  # replicas are in networks of their own
    assert ports <= set(addresses)
    assert set().union(*addresses.values()) == {"127.0.0.1"}


def test_no_queued_request_is_dropped_for_a_limit(openfaas):
    limits = re.findall(r"(Messages|Bytes) +: +(\S+)", (LOGS / "nats.log").read_text())
    assert limits == [("Messages", "unlimited"), ("Bytes", "unlimited")]


def test_two_replicas_of_a_forking_function_have_a_network_each(deploy):
    deploy("noop-fork")
    gateway.scale("noop-fork", 2)
    both = gateway.wait_for_replicas("noop-fork", 2)
    assert len({replica["address"] for replica in both}) == 2
    assert {post("noop-fork").headers["X-Worker"] for _ in range(4)} == {replica["address"] for replica in both}
    for replica in both:
        assert "http_requests_total" in get(f"http://{replica['metrics']}/metrics")


def stack_file(folder: Path, functions: str) -> str:
    (folder / "stack.yml").write_text(f"provider:\n  name: openfaas\nfunctions:\n  {functions}\n")
    return str(folder / "stack.yml")


@pytest.mark.parametrize(
    ("functions", "words"),
    [
        ("a:\n    image: [x", "line 5"),
        ("a:\n    image: x\n    labels: 3", "line 6"),
        ("a:\n    image: framestorm/nope:1", 'image "framestorm/nope:1" is unknown'),
        ("a:\n    image: noop\n    limits: {cpu: lots}", 'cpu limit "lots"'),
        ("a_B:\n    image: noop", 'function name "a_B"'),
    ],
)
def test_a_bad_stack_file_is_refused(openfaas, tmp_path, functions, words):
    done = openfaas("deploy", "-f", stack_file(tmp_path, functions))
    assert done.returncode != 0
    assert words in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("functions", "words"),
    [
        ("typo:\n    image: noop\n    lables: {a: b}", r'stack\.yml: line 6: a function has no key "lables"'),
        ("much:\n    image: noop\n    limits: {cpu: lots}", r'stack\.yml: line 6: much: cpu "lots" is not an amount'),
        ("typo:\n    image: nope", "faas-cli deploy failed"),
    ],
)
def test_deploy_refuses_by_its_line_what_faas_cli_leaves_out(openfaas, tmp_path, functions, words):
    with pytest.raises(FramestormError, match=words):
        target.main(["deploy", "-f", stack_file(tmp_path, functions)])


def test_deploy_goes_by_faas_cli(openfaas, tmp_path):
    words = ["-f", stack_file(tmp_path, "typo:\n    image: noop\n    labels: {a: b}"), "--filter", "ty*"]
    assert target.main(["deploy", *words, "--env", "x=y"]) == 0
    described = gateway.call("GET", f"{GATEWAY_URL}/system/function/typo")
    assert (described["labels"], described["envVars"]) == ({"a": "b"}, {"x": "y"})
    with pytest.raises(UsageError, match="there is no stack file /nope"):
        target.main(["deploy", "-f", "/nope"])
    with pytest.raises(UsageError, match="--filter is not an option"):
        target.main(["down", "--filter"])


def test_a_crash_at_start_is_told_with_the_function_s_last_words(openfaas):
    done = openfaas("deploy", "--name", "bad", "--image", "noop", "--env", "max_inflight=many")
    assert "status: 400" in done.stdout and 'max_inflight="many"' in done.stdout
    assert post("bad").status_code == 404


def test_a_cpu_limit_holds_the_function_back():
    limits = {"service": "cpu-limited", "image": "cpu", "limits": {"cpu": "100m", "memory": "64Mi"}}
    gateway.call("POST", f"{GATEWAY_URL}/system/functions", limits)
    assert post("cpu-limited", b"20").status_code == 200
    lines = [line.split() for line in get("http://127.0.0.1:8083/metrics").splitlines() if '"cpu-limited"' in line]
    figures = {name.removeprefix("framestorm_replica_").partition("{")[0]: float(value) for name, *_, value in lines}
    assert figures["cpu_throttled_seconds_total"] > 0
    assert 0 < figures["memory_bytes"] < 64 << 20
    assert 0 < figures["network_receive_bytes_total"] < 64 << 10
    assert 0 < figures["network_transmit_bytes_total"] < 64 << 10


def test_no_request_is_lost_while_scaling(deploy):
    deploy("sleep", "--label", "com.openfaas.scale.max=1")
    with load("sleep", b"0.05", senders=8) as statuses:
        for count in (5, 2, 4, 1):
            gateway.scale("sleep", count)
            gateway.wait_for_replicas("sleep", count)
    assert set(statuses) == {200} and len(statuses) > 20


def test_a_kill_under_load_loses_what_was_under_way_and_is_recorded(openfaas, tmp_path):
    # Prometheus still remembers the function of a run just before this one.
    name = f"struck-{os.getpid()}"
    assert openfaas("deploy", "--name", name, "--image", "sleep", *replicas(3)).returncode == 0
    gateway.wait_for_replicas(name, 3)
    started_ms = time.time() * 1000
    with load(name, b"0.5", senders=6) as statuses:
        # Prometheus looks every 2 s, and begins some seconds after its start; it must have looked before the kill.
        ready = f'framestorm_replicas_ready{{function="{name}"}}'
        wait_for_metric(f"{ready} == 3 and timestamp({ready}) > {started_ms / 1000}")
        victim = max(gateway.replicas(name), key=lambda replica: replica["in_flight"])
        os.kill(victim["pid"], signal.SIGKILL)
        wait_for_metric(f'framestorm_replicas_lost_total{{function="{name}"}} == 1')
        wait_for_metric(f"{ready} == 3")
    failed = [status for status in statuses if status != 200]
    # Six senders over three replicas: each has two under way.
    assert 1 <= len(failed) <= 3 < len(statuses), failed
    values: dict[str, list[float]] = {}
    for reading in metrics.readings(started_ms, time.time() * 1000, name):
        values.setdefault(reading.metric.removeprefix("replicas_"), []).append(reading.value)
    assert set(values["wanted"]) == {3} and set(values["ready"]) == {2, 3}
    assert (values["lost"][0], values["lost"][-1]) == (0, 1)
    assert values["short_s"][-1] > values["short_s"][0]


@pytest.fixture
def dispatch(deploy):
    """Dispatch tasks to the sleep function on three replicas; all that the client says."""
    deploy("sleep", *replicas(3))
    gateway.wait_for_replicas("sleep", 3)

    def run(mode: str, tasks: int, task_s: float, during: Callable[[], object] = lambda: None) -> list[dict[str, Any]]:
        command = [paths.CLIENT_PYTHON, paths.CLIENT / "tasks.py", "--mode", mode, "--workers", 3, "--tasks", tasks]
        words = [str(word) for word in (*command, "--task-s", task_s, "--url", f"{GATEWAY_URL}/function/sleep")]
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            during()
            stdout, stderr = process.communicate(timeout=120)
        assert (process.returncode, stderr) == (0, "")
        return [json.loads(line) for line in stdout.splitlines()]

    return run


@pytest.mark.parametrize("mode", ["push", "pull"])
def test_tasks_are_done_by_all_replicas(dispatch, mode):
    *tasks, user = dispatch(mode, 15, 0.1)
    assert sorted(task["index"] for task in tasks) == list(range(15))
    assert (user["ok"], user["repeated"]) == (True, 0)
    assert all(task["rtt_ms"] >= 100 for task in tasks)
    assert len({task["worker"] for task in tasks}) == 3
    if mode == "pull":
        assert all(task["rtt_ms"] >= task["handler_ms"] >= 100 for task in tasks)
        assert all(task["start_ms"] <= task["accepted_at_ms"] for task in tasks)


def test_no_task_is_lost_over_a_restart_of_the_queue_worker(dispatch):
    *tasks, user = dispatch("pull", 100, 0.05, during=lambda: stack.restart("queue-worker"))
    assert sorted(task["index"] for task in tasks) == list(range(100))
    assert user["samples_ok"] == 100


def test_prometheus_has_seen_gateway_provider_and_watchdogs(deploy, tmp_path):
    deploy("noop-fork")
    for job in ("gateway", "provider", "watchdog"):
        wait_for_metric(f'up{{job="{job}"}} == 1')
    now_ms = time.time() * 1000
    rows = metrics.readings(now_ms - 20_000, now_ms, "noop-fork")
    assert {row.detail for row in rows if row.metric == "replicas_ready"} == {""}
    assert all(row.detail.startswith("noop-fork-") for row in rows if row.metric == "memory_bytes")
    assert {"replicas_ready", "memory_bytes"} <= {row.metric for row in rows}


def test_the_gateway_gives_up_after_25_s(slow):
    status, took_s = slow["gateway"].result()
    assert status == 502
    assert UPSTREAM_TIMEOUT_S <= took_s < UPSTREAM_TIMEOUT_S + 4


def test_the_frame_client_names_it_a_timeout(slow):
    frame = slow["client"].result()
    assert (frame["ok"], frame["cause"], frame["censored"]) == (False, "timeout", True)


def test_more_than_5_requests_a_second_scale_up(slow):
    """Through OpenFaaS's own loop: Prometheus sees the rate, its alert reaches the gateway by Alertmanager."""
    statuses, n = slow["busy"].result()
    assert statuses == {200}
    assert n > 1
