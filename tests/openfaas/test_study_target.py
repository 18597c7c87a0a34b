"""The local OpenFaaS under a study: brought to each point, changed only where points differ, left as it was found."""

import csv
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from framestorm import conductor, paths
from framestorm.platform import registry
from framestorm.platform.base import Site
from framestorm.platform.openfaas import balancers, config, gateway, platform, services, stack
from framestorm.platform.openfaas.layout import GATEWAY_URL, PROVIDER_URL
from framestorm.platform.openfaas.platform import OpenFaas, OpenFaasSettings
from framestorm.run.options import Output, RunOptions, What
from tests.openfaas.conftest import post


def target(**values) -> OpenFaasSettings:
    return OpenFaasSettings.read({"function": "noop", **values})


def pids(function: str) -> set[int]:
    return {replica["pid"] for replica in gateway.replicas(function)}


@pytest.fixture(scope="module")
def local(openfaas, tmp_path_factory):
    """A study's hold on the OpenFaaS that ran before it."""
    return OpenFaas(Site(), tmp_path_factory.mktemp("study"))


def test_only_what_differs_is_changed(local):
    url = local.prepare(target())
    assert url == f"{GATEWAY_URL}/function/noop"
    assert post(url).content == b"ok"
    before = pids("noop")
    assert local.prepare(target()) == url
    assert local.prepare(target(route="provider")) == f"{PROVIDER_URL}/function/noop"
    local.prepare(target(function="cpu", cpu="250m"))
    local.prepare(target())
    assert pids("noop") == before
    local.prepare(target(concurrency_limit=1))
    assert pids("noop") != before


@pytest.mark.parametrize("route", ["gateway", "provider", "direct", "redirect", "nginx", "haproxy"])
def test_every_route_leads_to_the_function(local, route):
    url = local.prepare(target(route=route))
    reply = post(url)
    assert reply.content == b"ok" or (route == "redirect" and reply.status_code == 307)
    assert isinstance(registry.at(url, Site()), OpenFaas)
    assert platform.past_gateway(url) == (None if route in ("gateway", "provider") else "noop")
    assert registry.at(url, Site()).trouble() is None


def test_addresses_elsewhere_do_not_lead_here(local):
    local.prepare(target())
    for url in ("http://127.0.0.1:8099/function/noop", "http://192.0.2.1:8080/function/noop"):
        assert registry.at(url, Site()).kind == "url"


def test_a_balancer_is_over_all_replicas_and_its_end_is_trouble(local):
    url = local.prepare(target(route="nginx", replicas=3, policy="least-connections"))
    assert len(balancers.balanced("nginx").workers) == 3
    pid = balancers.running()["nginx"].pid
    assert local.prepare(target(route="nginx", replicas=3, policy="least-connections")) == url
    assert balancers.running()["nginx"].pid == pid
    services.end([balancers.running()["nginx"]])
    assert "the balancer nginx ended" in local.trouble()
    local.prepare(target(route="haproxy", replicas=3))
    assert list(balancers.running()) == ["haproxy"]
    local.prepare(target())
    assert balancers.running() == {} and len(gateway.replicas("noop")) == 1


def test_a_concurrency_limit_is_the_function_s(local):
    url = local.prepare(target(function="sleep", concurrency_limit=1))
    with ThreadPoolExecutor(3) as pool:
        statuses = sorted(reply.status_code for reply in pool.map(lambda _: post(url, b"1"), range(3)))
    assert statuses == [200, 429, 429]


def test_replicas_are_brought_back_after_scaling(local):
    local.prepare(target(replicas=1, autoscale=True))
    gateway.scale("noop", 4)
    gateway.wait_for_replicas("noop", 4)
    local.prepare(target(replicas=1, autoscale=True))
    assert len(gateway.replicas("noop")) == 1
    local.prepare(target(replicas=2))
    assert len(gateway.replicas("noop")) == 2


def test_the_queue_takes_as_many_at_once_as_is_wanted(local):
    local.prepare(target(queue_at_once=9))
    assert stack.queue_at_once() == 9
    local.prepare(target())
    assert stack.queue_at_once() == config.QUEUE_AT_ONCE


def test_a_run_past_the_gateway_keeps_the_metrics_of_its_function(local, tmp_path):
    local.prepare(target(function="cpu", cpu="250m"))
    url = local.prepare(target(route="haproxy", replicas=2))
    plan = paths.JMX / "requests.jmx"
    what = What(plan, {"url": url, "users": "1", "hold_s": "4"})
    run_dir: Path = conductor.run(RunOptions(what, output=Output(tmp_path / "run")))
    with (run_dir / "metrics.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["function"] for row in rows} == {"noop"}
    assert len({row["detail"] for row in rows if row["metric"] == "memory_bytes"}) == 2


def test_what_ran_before_the_study_is_left_as_it_was_found(local):
    local.prepare(target(route="nginx", queue_at_once=9))
    assert "keeps running" in local.close()
    assert stack.queue_at_once() == config.QUEUE_AT_ONCE
    assert balancers.running() == {}
    assert services.read() is not None


def test_what_the_study_started_is_ended_with_it_also_after_a_kill(openfaas, tmp_path):
    stack.down()
    OpenFaas(Site(), tmp_path).prepare(target())
    # The process that started it is gone; another goes on with the study.
    resumed = OpenFaas(Site(), tmp_path)
    resumed.prepare(target())
    assert resumed.close() is None
    assert services.read() is None
