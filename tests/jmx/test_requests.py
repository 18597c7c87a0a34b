"""Plans of requests to any function, run by JMeter itself."""

import json
import re
import subprocess
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from tests.jmx.conftest import RunPlan, groovy
from tests.stand_in import StandIn, StartServer


def redirect(status: int, worker: StandIn) -> dict[str, object]:
    """How a balancer by redirects answers."""
    return {"status": status, "body": b"", "headers": (("Location", worker.url), ("X-Worker", "who sent it on"))}


def test_requests_wait_for_their_answers(run_plan: RunPlan, stand_in: StartServer, tmp_path: Path) -> None:
    """By times in microseconds, from a generator that was warmed up by requests to itself."""
    headers = (("X-Worker", "replica-1"), ("Server-Timing", "total;dur=3.5"), ("X-Cold", "1"))
    server = stand_in({"content_type": "text/plain", "body": b"well" * 1000, "headers": headers, "delay_s": 0.1})
    (tmp_path / "rows.csv").write_text("\n".join(["n", *map(str, range(7))]))
    columns = ("label", "responseCode", "responseMessage", "success", "worker", "handler_ms", "cold", "faces")
    run = run_plan(
        "requests", url=server.url, body="at once, {n} things", rows=f"@{tmp_path}/rows.csv", users=3, ramp_s=0,
        hold_s=4, sleep_s=0.05, sample_variables="worker,handler_ms,cold,faces",
    )  # fmt: skip
    (only,) = run.count(*columns)
    assert only == ("request", "200", "OK", "true", "replica-1", "3.5", "true", "")
    assert len(server.requests) == len(run.rows()) > 7, "the function has had no request of the warm-up"
    assert {kind for kind, _ in server.requests} == {"text/plain; charset=utf-8"}
    in_turn = Counter(b"at once, %d things" % (number % 7) for number in range(len(server.requests)))
    assert Counter(body for _, body in server.requests) == in_turn
    by_thread: dict[str, list[tuple[int, int]]] = {}
    for row in run.rows():
        by_thread.setdefault(row["threadName"], []).append((int(row["timeStamp"]), int(row["elapsed"])))
    assert len(by_thread) == 3
    for samples in by_thread.values():
        for (start_ms, elapsed_ms), (next_ms, _) in pairwise(sorted(samples)):
            assert next_ms >= start_ms + elapsed_ms + 45, "the pause is part of no sample"
    times = [(int(row["elapsed"]), int(row["elapsed_us"])) for row in run.rows()]
    assert all(abs(us - 1000 * ms) < 1000 for ms, us in times) and any(us % 1000 for _, us in times)
    assert re.search(r"warmed up by [1-9]\d* requests to itself", run.text("jmeter.log"))
    assert run.errors() == []
    assert run.tree().find("httpSample/responseData") is None


def test_a_rate_rises_over_its_ramp(run_plan: RunPlan, stand_in: StartServer) -> None:
    server = stand_in({"body": b"ok"})
    run = run_plan("request-rate", url=server.url, rate_per_s=20, ramp_s=4, hold_s=1, concurrency_limit=50)
    due_ms = sorted(int(row["intended_ms"]) for row in run.rows())
    assert len(due_ms) == 60
    # 40 of them in the ramp, 10 of these in its first half.
    assert [due_ms[number] - due_ms[0] for number in (10, 40)] == [pytest.approx(at, abs=50) for at in (2000, 4000)]


def test_a_redirect_is_one_sample_and_stays_a_post(run_plan: RunPlan, stand_in: StartServer, tmp_path: Path) -> None:
    """By 307 and 308; one by 302 makes a GET of it, which is a failure."""
    worker = stand_in({"body": b"ok", "delay_s": 0.2})
    balancer = stand_in(*(redirect(status, worker) for status in (307, 308, 302)))
    (tmp_path / "rows.csv").write_text('n,empty\n3,\n"",\n4,\n')
    rows = {"body": "{n}{empty}", "rows": f"@{tmp_path}/rows.csv", "content_type": "text/plain"}
    run = run_plan("requests", url=balancer.url, **rows, users=1, ramp_s=0, hold_s=2)
    address = worker.url.split("/")[2]
    outcomes = run.count("label", "index", "responseMessage", "success", "worker")
    assert set(outcomes) == {
        ("request", "0", "OK", "true", address), ("request", "1", "OK", "true", address),
        ("request", "2", "redirected-as-get", "false", address),
    }  # fmt: skip
    assert all(int(row["elapsed"]) >= 200 for row in run.rows())
    assert {(sent.method, sent.headers["Content-Type"], sent.body) for sent in worker.received} == {
        ("POST", "text/plain", b"3"), ("POST", "text/plain", b""), ("GET", "text/plain", b""),
    }  # fmt: skip
    assert run.tree().findall("httpSample/httpSample") == []


def test_a_redirect_of_a_deletion_is_not_followed(run_plan: RunPlan, stand_in: StartServer) -> None:
    worker = stand_in({"body": b"ok"})
    first = stand_in(*(redirect(status, worker) for status in (302, 307)))
    run = run_plan("requests", url=first.url, method="DELETE", users=1, ramp_s=0, hold_s=1, sleep_s=0.1)
    assert [row["responseMessage"] for row in run.rows()][:2] == ["status-302", "status-307"]
    assert worker.received == []


def test_a_redirect_takes_no_secret_to_another_host(
    run_plan: RunPlan, stand_in: StartServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("API_KEY", "k3y")
    again = {"status": 307, "body": b"", "headers": (("Location", "/again"),)}
    elsewhere = stand_in(again, {"body": b"ok"})
    first = stand_in(again, redirect(307, elsewhere), again, redirect(302, elsewhere))
    headers = r"Authorization: t0k\nCookie: a=b\nX-Key: of ${env:API_KEY}\nX-Plain: stays"
    load = {"users": 1, "ramp_s": 0, "hold_s": 2}
    run = run_plan("requests", url=first.url, method="GET", headers=headers, **load)
    assert set(run.count("responseMessage")) == {("OK",)} and len(first.received) >= 4
    names = ("Authorization", "Cookie", "X-Key", "X-Plain")
    assert {tuple(sent.headers[name] for name in names) for sent in first.received} == {
        ("t0k", "a=b", "of k3y", "stays")
    }
    assert {tuple(sent.headers[name] for name in names) for sent in elsewhere.received} == {(None, None, None, "stays")}


def test_each_request_has_a_trace_id_of_its_own(run_plan: RunPlan, stand_in: StartServer) -> None:
    """By the header that --trace adds; a redirect takes it along."""
    worker = stand_in({"body": b"ok"})
    first = stand_in(redirect(307, worker), {"status": 500, "body": b"no"})
    load = {"users": 1, "ramp_s": 0, "hold_s": 1}
    run = run_plan("requests", url=first.url, headers="X-Plain: stays\\ntraceparent: new", **load)
    sent = [request.headers["traceparent"] for request in first.received]
    ids = [match[1] for each in sent if (match := re.fullmatch(r"00-([0-9a-f]{32})-[0-9a-f]{16}-01", each))]
    assert len(set(ids)) == len(sent) >= 2
    assert [json.loads(row["further_figures"])["trace_id"] for row in run.rows()] == ids
    assert {request.headers["traceparent"] for request in worker.received} == {*sent[::2]}


OWN = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
WITH_MANAGER = """
import framestorm.plan.Traceparent
import org.apache.jmeter.protocol.http.control.Header
import org.apache.jmeter.protocol.http.control.HeaderManager
import org.apache.jmeter.protocol.http.sampler.HTTPSamplerProxy
import org.apache.jmeter.threads.JMeterVariables

def headers = new HeaderManager(), ofPlan = new HeaderManager(), sampler = new HTTPSamplerProxy()
headers.add(new Header('traceparent', 'new'))
ofPlan.add(new Header('Traceparent', args[0]))
sampler.headerManager = ofPlan
def vars = new JMeterVariables()
Traceparent.fillIn(headers, sampler, vars)
sampler.headerManager = headers
println((0..<sampler.headerManager.size()).collect { sampler.headerManager.get(it).value }.join(' '))
println vars.get(Traceparent.TRACE_ID)
"""


def test_a_traceparent_of_the_plan_counts_before_that_of_the_kit() -> None:
    done = subprocess.run(groovy("-e", WITH_MANAGER, OWN), capture_output=True, text=True, check=False)
    assert done.stdout.split() == [OWN, OWN.split("-")[1]], done.stderr


ORIGINS = """
import framestorm.Redirects
import org.apache.http.client.methods.HttpGet
import org.apache.jmeter.threads.JMeterContextService
import org.apache.jmeter.threads.JMeterVariables

JMeterContextService.context.variables = new JMeterVariables()
JMeterContextService.context.variables.putObject('secrets', [:])
args.toList().collate(2).each { from, to ->
    def before = new HttpGet(from), next = new HttpGet(to)
    before.setHeader('Authorization', 't0k')
    Redirects.setHeaders(before, next)
    println next.containsHeader('Authorization')
}
"""


def test_a_secret_stays_at_its_address_whatever_the_host_is_called() -> None:
    addresses = {
        ("http://a_b:8080/", "http://c_d:8080/"): "false",
        ("http://a_b/", "http://a_b:80/again"): "true",
        ("http://a_b/", "https://a_b/"): "false",
        ("https://a/", "https://A:443/"): "true",
        ("http://a/", "http:///b"): "false",
    }
    command = groovy("-e", ORIGINS, *(each for pair in addresses for each in pair))
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.split() == list(addresses.values()), done.stderr
