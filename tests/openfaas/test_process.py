"""The process backend under the real gateway, driven by the real faas-cli."""

import json
import os
import signal
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from callbacks import Receiver
from framestorm.errors import FramestormError, UsageError
from framestorm.platform.openfaas import cli as target
from framestorm.platform.openfaas import gateway, metrics, stack
from framestorm.platform.openfaas.layout import GATEWAY_URL, PROMETHEUS_URL, STACK, UPSTREAM_TIMEOUT_S

RUNTIMES = ["noop", "noop-go", "noop-python", "noop-node", "noop-java"]


def post(path: str, body: bytes = b"x", headers: dict[str, str] | None = None) -> tuple[int, bytes, dict[str, str]]:
    request = urllib.request.Request(GATEWAY_URL + path, data=body, headers=headers or {})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.read(), dict(answer.headers)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read(), dict(error.headers)


def wait_for_metric(query: str) -> None:
    """Until Prometheus has something to say to the query."""
    deadline_s = time.monotonic() + 20
    while True:
        address = f"{PROMETHEUS_URL}/api/v1/query?{urllib.parse.urlencode({'query': query})}"
        with urllib.request.urlopen(address, timeout=5) as answer:
            if json.load(answer)["data"]["result"]:
                return
        assert time.monotonic() < deadline_s, query
        time.sleep(0.1)


@pytest.fixture(scope="module")
def deploy(openfaas) -> Callable[..., str]:
    def run(name: str, *words: str) -> str:
        done = openfaas("deploy", "-f", STACK, "--filter", name, *words)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


@dataclass
class Slow:
    """What takes 25 s, going on while the other tests run."""

    given_up: Future[tuple[int, float]]
    client: Future[dict[str, Any]]
    busy: Future[list[int]]


@pytest.fixture(scope="module", autouse=True)
def slow(openfaas, send_frame) -> Iterator[Slow]:
    words = ("--label", "com.openfaas.scale.max=3", "--label", "com.openfaas.scale.factor=50")
    assert openfaas("deploy", "--name", "busy", "--image", "noop", *words).returncode == 0
    words = ("--env", "seconds=26", "--env", "exec_timeout=60s")
    assert openfaas("deploy", "--name", "slow", "--image", "sleep", *words).returncode == 0

    def given_up() -> tuple[int, float]:
        started_s = time.monotonic()
        return post("/function/slow")[0], time.monotonic() - started_s

    def busy() -> list[int]:
        statuses, end_s = [], time.monotonic() + 25
        while time.monotonic() < end_s:
            statuses.append(post("/function/busy")[0])
            time.sleep(0.05)
        return statuses

    with ThreadPoolExecutor(3) as pool:
        yield Slow(pool.submit(given_up), pool.submit(send_frame, "slow"), pool.submit(busy))


@pytest.fixture
def noop(deploy: Callable[..., str]) -> Iterator[str]:
    """A fresh no-op that is not autoscaled."""
    deploy("noop", "--label", "com.openfaas.scale.max=1")
    yield "noop"
    gateway.call("DELETE", f"{GATEWAY_URL}/system/functions", {"functionName": "noop"})


def test_a_user_s_way_through_faas_cli(openfaas, deploy):
    assert "Deployed. 202" in deploy("noop")
    assert "noop" in openfaas("list").stdout
    described = openfaas("describe", "noop").stdout
    assert "Ready" in described and "framestorm/noop:0.1" in described
    assert openfaas("invoke", "noop", stdin="hello").stdout == "ok"
    deploy("cpu-fork")
    assert "units" in openfaas("invoke", "cpu-fork", stdin="1").stdout
    assert "Forking fprocess" in openfaas("logs", "cpu-fork", "--tail=false").stdout
    gateway.scale("noop", 2)
    gateway.wait_for_replicas("noop", 2)
    assert openfaas("remove", "noop").returncode == 0
    assert post("/function/noop")[0] == 404


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
    assert post(f"/function/{runtime}{way}")[:2] == (200, b"ok")


def test_two_replicas_of_a_forking_function_have_a_network_each(deploy):
    deploy("noop-fork")
    gateway.scale("noop-fork", 2)
    replicas = gateway.wait_for_replicas("noop-fork", 2)
    assert len({replica["address"] for replica in replicas}) == 2
    assert {post("/function/noop-fork")[2]["X-Worker"] for _ in range(4)} == {r["address"] for r in replicas}
    for replica in replicas:
        with urllib.request.urlopen(f"http://{replica['metrics']}/metrics", timeout=5) as answer:
            assert b"http_requests_total" in answer.read()


@pytest.mark.parametrize(
    ("stack_file", "words"),
    [
        ("functions:\n  a:\n    image: [x\n", "line 3"),
        ("functions:\n  a:\n    image: x\n    labels: 3\n", "line 4"),
        ("functions:\n  a:\n    image: framestorm/nope:1\n", 'image "framestorm/nope:1" is unknown'),
        ("functions:\n  a:\n    image: noop\n    limits: {cpu: lots}\n", 'cpu limit "lots"'),
        ("functions:\n  a_B:\n    image: noop\n", 'function name "a_B"'),
    ],
)
def test_a_bad_stack_file_is_refused(openfaas, tmp_path, stack_file, words):
    file = tmp_path / "stack.yml"
    file.write_text(stack_file + "provider:\n  name: openfaas\n")
    done = openfaas("deploy", "-f", file)
    assert done.returncode != 0
    assert words in done.stdout + done.stderr


def test_deploy_refuses_by_its_line_what_faas_cli_leaves_out(openfaas, tmp_path, capfd):
    file = tmp_path / "stack.yml"
    file.write_text("provider:\n  name: openfaas\nfunctions:\n  typo:\n    image: noop\n    lables: {a: b}\n")
    with pytest.raises(UsageError, match=r'stack\.yml: line 6: a function has no key "lables"'):
        target.main(["deploy", "-f", str(file)])
    file.write_text("provider:\n  name: openfaas\nfunctions:\n  much:\n    image: noop\n    limits: {cpu: lots}\n")
    with pytest.raises(UsageError, match=r'stack\.yml: line 6: much: cpu "lots" is no amount'):
        target.main(["deploy", "-f", str(file)])
    with pytest.raises(UsageError, match="there is no stack file /nope"):
        target.main(["deploy", "-f", "/nope"])
    file.write_text("provider:\n  name: openfaas\nfunctions:\n  typo:\n    image: noop\n    labels: {a: b}\n")
    assert target.main(["deploy", "-f", str(file), "--filter", "ty*", "--env", "x=y"]) == 0
    assert "Deployed. 202" in capfd.readouterr().out
    described = gateway.call("GET", f"{GATEWAY_URL}/system/function/typo")
    assert (described["labels"], described["envVars"]) == ({"a": "b"}, {"x": "y"})
    file.write_text(file.read_text().replace("noop", "nope"))
    with pytest.raises(FramestormError, match="faas-cli deploy failed"):
        target.main(["deploy", "-f", str(file)])
    assert 'image "nope:latest" is unknown' in capfd.readouterr().out
    with pytest.raises(SystemExit):
        target.main(["down", "--filter"])


def test_a_crash_at_start_is_told_with_the_function_s_last_words(openfaas):
    done = openfaas("deploy", "--name", "bad", "--image", "noop", "--env", "max_inflight=many")
    assert "status: 400" in done.stdout and 'max_inflight="many"' in done.stdout
    assert post("/function/bad")[0] == 404


def test_a_cpu_limit_holds_the_function_back():
    limits = {"service": "cpu-limited", "image": "cpu", "limits": {"cpu": "100m", "memory": "64Mi"}}
    gateway.call("POST", f"{GATEWAY_URL}/system/functions", limits)
    assert post("/function/cpu-limited", b"20")[0] == 200
    with urllib.request.urlopen("http://127.0.0.1:8083/metrics", timeout=5) as answer:
        lines = answer.read().decode().splitlines()
    assert value_of("framestorm_replica_cpu_throttled_seconds_total", lines) > 0
    assert 0 < value_of("framestorm_replica_memory_bytes", lines) < 64 << 20
    assert 0 < value_of("framestorm_replica_network_receive_bytes_total", lines) < 64 << 10
    assert 0 < value_of("framestorm_replica_network_transmit_bytes_total", lines) < 64 << 10


def value_of(metric: str, lines: list[str]) -> float:
    line = next(line for line in lines if line.startswith(metric) and '"cpu-limited"' in line)
    return float(line.split()[-1])


def test_scale_from_zero_holds_the_request(noop):
    gateway.scale(noop, 0)
    gateway.wait_for_replicas(noop, 0)
    assert post(f"/function/{noop}")[:2] == (200, b"ok")


def test_no_request_is_lost_while_scaling(deploy):
    deploy("sleep", "--label", "com.openfaas.scale.max=1")
    stop = threading.Event()

    def send() -> list[int]:
        statuses = []
        while not stop.is_set():
            statuses.append(post("/function/sleep", b"0.05")[0])
        return statuses

    with ThreadPoolExecutor(8) as pool:
        senders = [pool.submit(send) for _ in range(8)]
        try:
            for count in (5, 2, 4, 1):
                gateway.scale("sleep", count)
                gateway.wait_for_replicas("sleep", count)
        finally:
            stop.set()
    statuses = [status for sender in senders for status in sender.result()]
    assert set(statuses) == {200} and len(statuses) > 20


def test_a_killed_replica_is_replaced(noop):
    replica = gateway.wait_for_replicas(noop, 1)[0]
    os.kill(replica["pid"], signal.SIGKILL)
    deadline_s = time.monotonic() + 10
    while replica["name"] in [each["name"] for each in gateway.replicas(noop)]:
        assert time.monotonic() < deadline_s
        time.sleep(0.02)
    gateway.wait_for_replicas(noop, 1)
    assert post(f"/function/{noop}")[0] == 200


def test_a_kill_under_load_loses_what_was_under_way_and_is_recorded(openfaas, tmp_path):
    # Prometheus still remembers the function of a run just before this one.
    name = f"struck-{os.getpid()}"
    words = ("--label", "com.openfaas.scale.min=3", "--label", "com.openfaas.scale.max=3")
    assert openfaas("deploy", "--name", name, "--image", "sleep", *words).returncode == 0
    gateway.wait_for_replicas(name, 3)
    started_ms = time.time() * 1000
    stop = threading.Event()

    def send() -> list[int]:
        statuses = []
        while not stop.is_set():
            statuses.append(post(f"/function/{name}", b"0.5")[0])
        return statuses

    with ThreadPoolExecutor(6) as pool:
        senders = [pool.submit(send) for _ in range(6)]
        try:
            # Prometheus looks every 2 s, and begins some seconds after its start.
            wait_for_metric(f'framestorm_replicas_ready{{function="{name}"}} == 3')
            victim = max(gateway.replicas(name), key=lambda replica: replica["in_flight"])
            os.kill(victim["pid"], signal.SIGKILL)
            wait_for_metric(f'framestorm_replicas_lost_total{{function="{name}"}} == 1')
            wait_for_metric(f'framestorm_replicas_ready{{function="{name}"}} == 3')
        finally:
            stop.set()
    statuses = [status for sender in senders for status in sender.result()]
    failed = [status for status in statuses if status != 200]
    # Six senders over three replicas: each has two under way.
    assert 1 <= len(failed) <= 3 < len(statuses), failed
    seen: dict[str, list[float]] = {}
    for reading in metrics.readings(started_ms, time.time() * 1000, name):
        seen.setdefault(reading.metric.removeprefix("replicas_"), []).append(reading.value)
    assert set(seen["wanted"]) == {3} and set(seen["ready"]) == {2, 3}
    assert (seen["lost"][0], seen["lost"][-1]) == (0, 1)
    assert 0 < seen["short_s"][-1] - seen["short_s"][0] < 2


def test_the_alert_scales_up(noop, deploy):
    """What Alertmanager sends is enough here: the rule itself needs ten seconds of load."""
    deploy("noop", "--label", "com.openfaas.scale.max=3", "--label", "com.openfaas.scale.factor=50")
    alert = {"status": "firing", "labels": {"alertname": "APIHighInvocationRate", "function_name": "noop.openfaas-fn"}}
    gateway.call("POST", f"{GATEWAY_URL}/system/alert", {"status": "firing", "alerts": [alert]})
    gateway.wait_for_replicas("noop", 3)


def test_queued_requests_are_done_once_each_over_a_restart_of_the_worker(deploy):
    deploy("sleep")
    with Receiver() as receiver:
        headers = {"X-Callback-Url": receiver.url}
        accepted = []
        for number in range(200):
            status, _, answered = post("/async-function/sleep", b"0.02", headers)
            assert status == 202
            accepted.append(answered["X-Call-Id"])
            if number == 100:
                stack.restart("queue-worker")
        assert receiver.wait(200, timeout_s=60)
    assert set(receiver.calls) == set(accepted)
    assert {call.status for call in receiver.calls.values()} == {200}
    assert all(call.started_ms < call.done_ms for call in receiver.calls.values())


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
    status, took_s = slow.given_up.result()
    assert status == 502
    assert UPSTREAM_TIMEOUT_S <= took_s < UPSTREAM_TIMEOUT_S + 0.9


def test_the_frame_client_names_it_a_timeout(slow):
    frame = slow.client.result()
    assert (frame["ok"], frame["cause"], frame["censored"]) == (False, "timeout", True)


def test_more_than_5_requests_a_second_scale_up(slow):
    """Through OpenFaaS's own loop: Prometheus sees the rate, its alert reaches the gateway by Alertmanager."""
    assert set(slow.busy.result()) == {200}
    assert len(gateway.replicas("busy")) > 1
