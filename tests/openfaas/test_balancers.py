"""Balancers over the same three replicas: the same answers, each worker its share, a dead one left out."""

import os
import signal
from collections import Counter
from urllib.parse import urlsplit

import pytest
import requests

from framestorm.errors import FramestormError, UsageError
from framestorm.machine import wait_until
from framestorm.platform import cli
from framestorm.platform.openfaas import balancers, gateway
from tests.openfaas.conftest import listening, post, replicas

WORKERS = 3
CHOICES = [(kind, policy) for kind, balancer in balancers.KINDS.items() for policy in balancer.policies]


def ask(address):
    """The answer and the worker that gave it; a redirect is followed with method and body, as 307 asks for."""
    reply = post(address)
    if reply.status_code == 307:
        target = reply.headers["Location"]
        return post(target).content, urlsplit(target).netloc
    assert reply.status_code == 200
    return reply.content, reply.headers["X-Worker"]


@pytest.fixture(scope="module")
def workers(deploy) -> list[str]:
    deploy("noop", *replicas(WORKERS))
    return [replica["address"] for replica in gateway.wait_for_replicas("noop", WORKERS)]


@pytest.mark.parametrize(("kind", "policy"), CHOICES)
def test_every_worker_answers_its_share(workers, kind, policy):
    url = balancers.start(kind, "noop", policy)
    assert listening()[urlsplit(url).port] == {"127.0.0.1"}
    answers = [ask(url) for _ in range(10 * WORKERS)]
    assert {answer for answer, _ in answers} == {b"ok"}
    counts = Counter(worker for _, worker in answers)
    assert set(counts) == set(workers)
    assert all(abs(count - 10) <= (1 if policy == "round-robin" else 9) for count in counts.values()), counts
    assert balancers.balanced(kind).policy == policy
    balancers.stop(kind)
    assert kind not in balancers.running()


def test_the_gateway_s_own_way_shares_too(workers):
    counts = Counter(ask("noop")[1] for _ in range(10 * WORKERS))
    assert set(counts) == set(workers) and max(counts.values()) <= 11


def leaves_out(url, worker):
    """Whether each of a dozen requests is answered, and none of them by that worker."""
    try:
        replies = [ask(url) for _ in range(12)]
    except (AssertionError, requests.ConnectionError):
        return False
    return worker not in {address for _, address in replies}


@pytest.mark.parametrize("kind", list(balancers.KINDS))
def test_a_dead_worker_is_left_out(workers, kind):
    url = balancers.start(kind, "noop")
    victim = gateway.wait_for_replicas("noop", WORKERS)[0]
    os.kill(victim["pid"], signal.SIGKILL)
    # The provider starts the replacement on another port.
    assert wait_until(lambda: leaves_out(url, victim["address"]), 20)
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
