"""Plans of requests to any function, run by JMeter itself."""

import re
from itertools import pairwise
from pathlib import Path

import pytest

from tests.jmx.conftest import RunPlan
from tests.stand_in import StandIn, StartServer


def redirect(status: int, worker: StandIn) -> dict[str, object]:
    """How a balancer by redirects answers."""
    return {"status": status, "body": b"", "headers": (("Location", worker.url), ("X-Worker", "who sent it on"))}


def test_requests_wait_for_their_answers(run_plan: RunPlan, stand_in: StartServer) -> None:
    headers = (("X-Worker", "replica-1"), ("Server-Timing", "total;dur=3.5"), ("X-Cold", "1"))
    server = stand_in({"content_type": "text/plain", "body": b"well" * 1000, "headers": headers, "delay_s": 0.1})
    run = run_plan("requests", url=server.url, body="2 things, at once", users=3, ramp_s=0, hold_s=4, sleep_s=0.05)
    columns = ("label", "responseCode", "responseMessage", "success", "worker", "handler_ms", "cold", "index", "faces")
    (only,) = run.count(*columns)
    assert only == ("request", "200", "OK", "true", "replica-1", "3.5", "true", "", "")
    assert set(server.requests) == {("text/plain; charset=utf-8", b"2 things, at once")}
    assert len(server.requests) == len(run.rows()) > 3
    by_thread: dict[str, list[tuple[int, int]]] = {}
    for row in run.rows():
        by_thread.setdefault(row["threadName"], []).append((int(row["timeStamp"]), int(row["elapsed"])))
    assert len(by_thread) == 3
    for samples in by_thread.values():
        for (start_ms, elapsed_ms), (next_ms, _) in pairwise(sorted(samples)):
            assert next_ms >= start_ms + elapsed_ms + 45, "the pause is part of no sample"
    assert run.errors() == []
    assert run.tree().find("httpSample/responseData") is None


def test_times_in_microseconds_from_a_warm_generator(run_plan: RunPlan, stand_in: StartServer, tmp_path: Path) -> None:
    server = stand_in({"body": b"ok", "delay_s": 0.02})
    (tmp_path / "rows.csv").write_text("\n".join(["n", *map(str, range(7))]))
    rows = {"body": "{n}", "rows": f"@{tmp_path}/rows.csv"}
    run = run_plan("requests", url=server.url, **rows, users=2, ramp_s=0, hold_s=1, sample_variables="elapsed_us")
    times = [(int(row["elapsed"]), int(row["elapsed_us"])) for row in run.rows()]
    assert all(abs(us - 1000 * ms) < 1000 for ms, us in times) and any(us % 1000 for _, us in times)
    assert re.search(r"warmed up by [1-9]\d* requests to itself", run.text("jmeter.log"))
    assert len(server.requests) == len(times), "the function has had no request of the warm-up"
    assert {body for _, body in server.requests[:2]} == {b"0", b"1"}, "and each row comes in its turn"


def test_a_rate_rises_over_its_ramp(run_plan: RunPlan, stand_in: StartServer) -> None:
    server = stand_in({"body": b"ok"})
    run = run_plan("request-rate", url=server.url, rate_per_s=20, ramp_s=4, hold_s=1, concurrency_limit=50)
    due_ms = sorted(int(row["intended_ms"]) for row in run.rows())
    assert len(due_ms) == 60
    # 40 of them in the ramp, 10 of these in its first half.
    assert [due_ms[number] - due_ms[0] for number in (10, 40)] == [pytest.approx(at, abs=50) for at in (2000, 4000)]


@pytest.mark.parametrize(("status", "body"), [(307, "3"), (308, "")])
def test_a_redirect_is_one_sample_and_stays_a_post(
    status: int, body: str, run_plan: RunPlan, stand_in: StartServer
) -> None:
    worker = stand_in({"body": b"ok", "delay_s": 0.2})
    balancer = stand_in(redirect(status, worker))
    run = run_plan("requests", url=balancer.url, body=body, users=1, ramp_s=0, hold_s=1)
    address = worker.url.split("/")[2]
    assert set(run.count("label", "responseMessage", "worker")) == {("request", "OK", address)}
    assert all(int(row["elapsed"]) >= 200 for row in run.rows())
    assert set(worker.requests) == {("text/plain; charset=utf-8", body.encode())}
    assert run.tree().findall("httpSample/httpSample") == []


def test_a_redirect_that_makes_a_get_of_it_is_a_failure(run_plan: RunPlan, stand_in: StartServer) -> None:
    worker = stand_in()
    run = run_plan("requests", url=stand_in(redirect(302, worker)).url, users=1, ramp_s=0, hold_s=0.5)
    assert set(run.count("responseMessage", "success")) == {("redirected-as-get", "false")}
    assert {sent.method for sent in worker.received} == {"GET"}
