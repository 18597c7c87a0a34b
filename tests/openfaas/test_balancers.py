"""Balancers over the same three replicas: the same answers, each worker its share, a dead one left out."""

import os
import signal
import time
import urllib.error
import urllib.request
from collections import Counter
from urllib.parse import urlsplit

import pytest

from framestorm.errors import FramestormError, UsageError
from framestorm.platform.openfaas import balancers, cli, gateway
from framestorm.platform.openfaas.layout import GATEWAY_URL, STACK

WORKERS = 3
CHOICES = [(kind, policy) for kind, balancer in balancers.KINDS.items() for policy in balancer.policies]


def ask(url: str) -> tuple[bytes, str]:
    """The answer and the worker that gave it; a redirect is followed with method and body, as 307 asks for."""
    request = urllib.request.Request(url, data=b"x")
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.read(), answer.headers["X-Worker"]
    except urllib.error.HTTPError as error:
        with error:
            assert error.code == 307
            target = error.headers["Location"]
    with urllib.request.urlopen(urllib.request.Request(target, data=b"x"), timeout=10) as answer:
        return answer.read(), urlsplit(target).netloc


@pytest.fixture(scope="module")
def workers(openfaas) -> list[str]:
    words = ("--label", "com.openfaas.scale.max=3", "--label", "com.openfaas.scale.min=3")
    assert openfaas("deploy", "-f", STACK, "--filter", "noop", *words).returncode == 0
    return [replica["address"] for replica in gateway.wait_for_replicas("noop", WORKERS)]


@pytest.mark.parametrize(("kind", "policy"), CHOICES)
def test_every_worker_answers_its_share(workers, kind, policy):
    url = balancers.start(kind, "noop", policy)
    seen = [ask(url) for _ in range(10 * WORKERS)]
    assert {answer for answer, _ in seen} == {b"ok"}
    counts = Counter(worker for _, worker in seen)
    assert set(counts) == set(workers)
    assert all(abs(count - 10) <= (1 if policy == "round-robin" else 9) for count in counts.values()), counts
    assert balancers.balanced(kind).policy == policy
    balancers.stop(kind)
    assert kind not in balancers.running()


def test_the_gateway_s_own_way_shares_too(workers):
    counts = Counter(ask(f"{GATEWAY_URL}/function/noop")[1] for _ in range(10 * WORKERS))
    assert set(counts) == set(workers) and max(counts.values()) <= 11


@pytest.mark.parametrize("kind", list(balancers.KINDS))
def test_a_dead_worker_is_left_out(workers, kind):
    url = balancers.start(kind, "noop")
    victim = gateway.wait_for_replicas("noop", WORKERS)[0]
    os.kill(victim["pid"], signal.SIGKILL)
    time.sleep(1.5)  # Two rounds of health checks; the provider starts the replacement on another port.
    counts = Counter(ask(url)[1] for _ in range(12))
    assert victim["address"] not in counts and sum(counts.values()) == 12
    balancers.stop(kind)


def test_status_lists_a_balancer_and_its_workers(workers, capsys):
    assert cli.main(["scale", "noop", str(WORKERS)]) == 0
    assert cli.main(["balance", "haproxy", "noop", "--policy", "least-connections"]) == 0
    assert cli.main(["status"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert any(line.startswith("balancer haproxy: ") and f"over {WORKERS} of noop" in line for line in shown)


def test_what_cannot_be_balanced_is_said(workers):
    with pytest.raises(FramestormError, match="nope has no ready replica"):
        balancers.start("nginx", "nope")
    with pytest.raises(UsageError, match="redirect has round-robin"):
        balancers.start("redirect", "noop", "least-connections")
