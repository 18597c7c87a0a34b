"""A service that is slow, gone or refuses costs the run nothing, is said once, and what it did not get is counted."""

import socket
from collections.abc import Callable

import pytest

from framestorm.machine import wait_until
from framestorm.model.run import Record
from framestorm.model.sink import SinkOutcome, parse_sink
from framestorm.sinks import pushed
from framestorm.sinks.pushed import PushedSink
from framestorm.sinks.services import open_sinks
from framestorm.sinks.sink import finish
from tests.framestorm.sinks.updates import BEGAN_S, interval_of, update
from tests.stand_in import StandIn, serving

PATHS = {"influxdb": "/write?db=a", "prometheus": "/api/v1/write", "otlp": "/v1/metrics"}
RECORD = Record(plan="jmx/requests.jmx", started_ms=BEGAN_S * 1000)


def delivered_to(
    origin: str, kind: str, seconds: int = 5, each: Callable[[int, PushedSink], object] | None = None
) -> SinkOutcome:
    """What becomes of a run with one interval each second."""
    (sink,) = open_sinks([parse_sink(f"{kind}:{origin}{PATHS[kind]}")], "a run", RECORD)
    for second in range(seconds):
        sink.put(update(second + 1, interval_of(second, 20.0, 30.0)))
        if each is not None:
            each(second, sink)
    finish([sink])
    return sink.outcome()


def test_a_service_that_answers_gets_all_on_one_connection() -> None:
    for kind, path in PATHS.items():
        with serving({"status": 204, "body": b""}) as service:
            outcome = delivered_to(service.origin, kind)
            assert outcome == SinkOutcome(f"{kind}:{service.origin}{path.partition('?')[0]}", 5, 0)
            assert {sent.path for sent in service.received} == {path}
            assert len({sent.port for sent in service.received}) == 1 and len(service.received) >= 5


@pytest.mark.parametrize("kind", PATHS)
def test_a_service_that_is_gone_is_said_once(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = delivered_to("http://127.0.0.1:1", kind)
    assert (outcome.intervals, outcome.missed, outcome.problem) == (
        5,
        5,
        "it cannot be reached (Connection refused)",
    )
    (said,) = capsys.readouterr().err.splitlines()
    assert said == f"note: --sink {outcome.sink}: it cannot be reached (Connection refused); the run goes on"


@pytest.mark.parametrize("kind", PATHS)
def test_what_could_not_be_sent_for_a_time_is_sent_later(kind: str) -> None:
    answers = ({"status": 503, "body": b"starting"}, {"resets": True}, *({"status": 204, "body": b""},) * 20)
    with serving(*answers) as service:
        outcome = delivered_to(service.origin, kind)
    assert (outcome.intervals, outcome.missed) == (5, 0)
    assert outcome.problem == "it answers with status 503 (starting)"


@pytest.mark.parametrize("status", [408, 429, 500])
def test_what_is_refused_for_a_moment_is_sent_again(status: int) -> None:
    with serving({"status": status, "body": b""}, *({"status": 204, "body": b""},) * 20) as service:
        assert delivered_to(service.origin, "influxdb").missed == 0


def test_a_service_that_refuses_does_not_get_it_again() -> None:
    refusal = {"status": 401, "body": b"unauthorized\naccess"}
    with serving(refusal) as service:
        outcome = delivered_to(service.origin, "influxdb")
        bodies = [sent.body for sent in service.received]
    assert (outcome.missed, outcome.problem) == (5, "it answers with status 401 (unauthorized access)")
    assert sum(body.count(b"transaction=request,statut=ok") for body in bodies) == 5
    with serving(refusal, *({"status": 204, "body": b""},) * 20) as service:
        assert delivered_to(service.origin, "influxdb").missed == 1
    # Totals have what was refused.
    with serving(refusal, *({"status": 204, "body": b""},) * 20) as service:
        assert delivered_to(service.origin, "prometheus").missed == 0


def test_a_redirect_gets_no_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INFLUXDB_TOKEN", "a-token")
    with serving() as other, serving({"status": 307, "body": b"", "headers": (("Location", other.origin),)}) as service:
        assert delivered_to(service.origin, "influxdb").missed == 5
        assert other.received == [] and service.received[0].headers["Authorization"] == "Token a-token"


@pytest.mark.parametrize(
    ("kind", "name", "value", "header"),
    [
        ("influxdb", "INFLUXDB_TOKEN", "a-token", ("Authorization", "Token a-token")),
        ("influxdb", "INFLUXDB_TOKEN", "a-token\n", ("Authorization", "Token a-token")),
        ("prometheus", "PROMETHEUS_TOKEN", "a-token\r\n", ("Authorization", "Bearer a-token")),
        ("otlp", "OTEL_EXPORTER_OTLP_HEADERS", "x-a=1,api-key=a%20token", ("api-key", "a token")),
    ],
)
def test_secrets_come_from_the_environment(
    kind: str, name: str, value: str, header: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for setting in (value, None):
        if setting is None:
            monkeypatch.delenv(name)
        else:
            monkeypatch.setenv(name, setting)
        with serving({"status": 204, "body": b""}) as service:
            delivered_to(service.origin, kind, seconds=1)
        assert {sent.headers[header[0]] for sent in service.received} == {header[1] if setting else None}


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        ("influxdb", "INFLUXDB_TOKEN", "s3c\nret"),
        ("prometheus", "PROMETHEUS_TOKEN", "s3c\nret"),
        ("otlp", "OTEL_EXPORTER_OTLP_HEADERS", "api-key=s3c%0Aret"),
    ],
)
def test_a_secret_that_no_header_may_have_is_not_shown(
    kind: str, name: str, value: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(name, value)
    with serving({"status": 204, "body": b""}) as service:
        outcome = delivered_to(service.origin, kind)
        assert (outcome.missed, service.received) == (5, [])
    assert outcome.problem == "the address, or a header with a secret, has a character that cannot be sent"
    (said,) = capsys.readouterr().err.splitlines()
    assert "s3c" not in said


def test_what_a_collector_leaves_out_is_said_and_missed() -> None:
    partial = {"body": b'{"partialSuccess": {"rejectedDataPoints": "3", "errorMessage": "over\\nquota"}}'}
    with serving(partial) as service:
        outcome = delivered_to(service.origin, "otlp")
    assert (outcome.missed, outcome.problem) == (5, "it left out 3 figures (over quota)")
    with serving(partial, *({"body": b'{"partialSuccess": {}}'},) * 20) as service:
        assert delivered_to(service.origin, "otlp").missed == 0, "later totals have it"


@pytest.mark.parametrize(
    "answer", [b"{}", b"ok", b"[]", b'{"partialSuccess": {"rejectedDataPoints": 0, "errorMessage": "use gRPC"}}']
)
def test_a_collector_that_leaves_out_nothing_has_all(answer: bytes) -> None:
    with serving({"body": answer}) as service:
        outcome = delivered_to(service.origin, "otlp")
    assert (outcome.missed, outcome.problem) == (0, None)


def test_a_service_that_never_answers_does_not_hold_up_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without limits the test does not come to its end."""
    monkeypatch.setattr("framestorm.sinks.sink.END_WITHIN_S", 0.1)
    with serving({"delay_s": 600}) as service:
        outcome = delivered_to(service.origin, "influxdb")
    assert (outcome.intervals, outcome.missed) == (5, 5)


def test_a_service_that_takes_no_connection_is_given_up_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pushed, "WITHIN_S", 0.2)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        outcome = delivered_to(f"http://127.0.0.1:{silent.getsockname()[1]}", "otlp", seconds=2)
    assert (outcome.missed, outcome.problem) == (2, "it does not answer within 0.2 s")


def test_what_is_kept_for_a_service_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("framestorm.sinks.influxdb.MAX_BYTES", 4000)
    services: list[StandIn] = []

    def come_back(second: int, sink: PushedSink) -> None:
        wait_until(sink._waiting.empty, 10)
        if second == 98:
            services[0].answers[:] = [type(services[0].answers[0])(status=204, body=b"")]

    with serving({"status": 503, "body": b""}) as service:
        services.append(service)
        outcome = delivered_to(service.origin, "influxdb", seconds=100, each=come_back)
        last = service.received[-1].body
        kept = sum(sent.body.count(b"transaction=request,statut=ok") for sent in service.received[-2:])
    assert len(last) <= 8000
    assert 50 < outcome.missed < 100 and kept >= 100 - outcome.missed
