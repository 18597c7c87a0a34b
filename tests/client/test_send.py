"""What the process tests of test_client.py cannot reach: limits and broken exchanges seen from inside."""

import gzip
import http.client
import signal
import ssl
import tracemalloc
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
import urllib3.connection

import send
from send import Sender
from tests.odd_server import OddServer, serving_oddly
from tests.stand_in import Answer, StandIn, make_certificate, serving

BODY = b"iVBORw0KGgo="
LARGE_BODY = bytes(32 * 2**20)  # more than the kernel keeps for a server that does not read


@pytest.fixture
def sender(function: StandIn) -> Iterator[Sender]:
    before = signal.getsignal(signal.SIGALRM)
    sender = Sender(f"{function.url}/500", "text/plain", "application/json", timeout_s=5, connect_timeout_s=1)
    sender.begin()
    yield sender
    signal.signal(signal.SIGALRM, before)


def test_an_answer_without_end_is_not_kept(sender: Sender, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(send, "ANSWER_BYTES", -len(BODY) + 16)
    monkeypatch.setattr(send, "ANSWER_BYTES_PER_SENT", 1)
    reply = sender.send(BODY)
    assert (reply.status, reply.body, reply.cause) == (500, b"", None)
    assert reply.received_bytes > 16


def test_informational_answers_come_before_the_one_that_counts(function: StandIn) -> None:
    sender = Sender(f"{function.url}/early", "image/png", "image/png", timeout_s=5, connect_timeout_s=1)
    sender.begin()
    reply = sender.send(BODY)
    sender.close()
    assert (reply.status, reply.body, reply.cause) == (201, b"ok", None)


def test_other_connections_of_the_process_stay_as_they_are() -> None:
    for connection in (urllib3.connection.HTTPConnection, urllib3.connection.HTTPSConnection):
        assert connection.response_class is http.client.HTTPResponse


def test_a_function_sets_no_cookies(function: StandIn) -> None:
    sender = Sender(f"{function.url}/cookie", "text/plain", "application/json", timeout_s=5, connect_timeout_s=1)
    sender.begin()
    assert "Set-Cookie" in sender.send(BODY).headers
    sender.send(BODY)
    assert "Cookie" not in function.received[-1].headers


def test_a_connection_is_kept_after_an_answer_without_a_body(function: StandIn) -> None:
    sender = Sender(f"{function.url}/moved", "image/png", "image/png", timeout_s=5, connect_timeout_s=1)
    sender.begin()
    assert [sender.send(BODY).status for _ in range(3)] == [302, 302, 302]
    assert len({request.port for request in function.received[-3:]}) == 1


def test_an_answer_in_tiny_pieces_takes_no_more_memory(function: StandIn) -> None:
    sender = Sender(f"{function.url}/pieces", "text/plain", "application/json", timeout_s=25, connect_timeout_s=1)
    sender.begin()
    tracemalloc.start()
    try:
        reply = sender.send(BODY)
        most_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (reply.cause, reply.body) == (None, b"xy" * 30_000)
    assert most_bytes < 600_000


def test_no_alarm_is_left_behind(sender: Sender) -> None:
    assert sender.send(BODY).status == 500
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


@pytest.mark.parametrize("url", ["http://", "http:///path", "http://[::1", "http://host:port/"])
def test_an_url_that_cannot_be_asked(url: str) -> None:
    with pytest.raises(ValueError, match="cannot be used"):
        Sender(url, "image/png", "image/png", timeout_s=1, connect_timeout_s=1)


def test_an_answer_is_unpacked_although_that_was_not_asked_for() -> None:
    packed = gzip.compress(BODY)
    for codings, body, unpacked in (
        (("gzip",), packed, BODY),
        (("deflate",), zlib.compress(BODY), BODY),
        (("gzip",), b"", b""),
        (("identity",), BODY, BODY),
        (("identity, gzip",), packed, BODY),
        (("Gzip", "identity"), packed, BODY),
        (("deflate, x-gzip",), gzip.compress(zlib.compress(BODY)), BODY),
        (("gzip, zstd",), b"(\xb5/\xfd", b"(\xb5/\xfd"),
    ):
        headers = tuple(("Content-Encoding", coding) for coding in codings)
        answer = Answer(content_type="text/plain", body=body, headers=headers)
        with serving(server=StandIn([answer])) as server:
            sender = Sender(server.url, "text/plain", "text/plain", timeout_s=5, connect_timeout_s=1)
            sender.begin()
            reply = sender.send(BODY)
        assert (reply.status, reply.cause, reply.body) == (200, None, unpacked), codings


def test_the_environments_proxy_is_not_used(
    sender: Sender, requests_seen: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    assert sender.send(BODY).status == 500
    assert len(requests_seen) == 1


def test_a_body_may_take_longer_to_send_than_a_connection_to_make() -> None:
    with serving_oddly(OddServer()) as server:  # which reads after 0.4 s
        url = f"http://127.0.0.1:{server.port}/early/200"
        sender = Sender(url, "text/plain", "text/plain", timeout_s=20, connect_timeout_s=0.2)
        sender.begin()
        reply = sender.send(LARGE_BODY)
        sender.close()
    assert (reply.status, reply.cause) == (200, None)


@pytest.mark.parametrize("is_timed", [False, True])
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_body_that_is_never_read_ends_with_the_timeout(
    scheme: str, is_timed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = None
    if scheme == "https":
        both = make_certificate(tmp_path)
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(both))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(both)
    with serving_oddly(OddServer(context=context)) as server:
        url = f"{scheme}://localhost:{server.port}/413/stay"
        sender = Sender(url, "text/plain", "text/plain", timeout_s=2, connect_timeout_s=1, is_timed=is_timed)
        sender.begin()
        reply = sender.send(LARGE_BODY)
        sender.close()
    assert (reply.status, reply.cause, reply.censored) == (None, "timeout", True)
