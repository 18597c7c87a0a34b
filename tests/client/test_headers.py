"""The headers that the user adds to each request of a client."""

import re
from pathlib import Path

import pytest

import headers
from headers import given, with_given
from tests.client.conftest import Client
from tests.stand_in import Received


def test_a_client_sends_the_headers_of_its_environment(
    each_client: Client, requests_seen: list[Received], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEY", "s3cr3t")
    monkeypatch.setenv(headers.VARIABLE, "Host: blur.example.com\nX-Key: ${env:KEY}\naccept: application/json")
    assert each_client.run("right", "--frames", 1).status == 0
    (request,) = requests_seen
    assert request.headers.get_all("Accept") == ["application/json"]
    assert (request.headers["Host"], request.headers["X-Key"]) == ("blur.example.com", "s3cr3t")


def test_a_client_that_cannot_send_the_headers_says_so(
    each_client: Client, requests_seen: list[Received], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(headers.VARIABLE, "X-Key: ${env:NOT_SET_HERE}")
    done = each_client.run("right", "--frames", 1)
    assert (done.status, requests_seen) == (2, [])
    assert "no variable NOT_SET_HERE" in done.stderr


def test_each_request_has_a_trace_id_of_its_own(
    each_client: Client, requests_seen: list[Received], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(headers.VARIABLE, "Traceparent: new")
    done = each_client.run("right", "--frames", 3)
    sent = [request.headers.get_all("traceparent") for request in requests_seen]
    matches = [re.fullmatch(r"00-([0-9a-f]{32})-[0-9a-f]{16}-01", one) for (one,) in sent]
    ids = [match[1] for match in matches if match]
    assert len(set(ids)) == 3
    assert [sample["trace_id"] for sample in done.samples] == ids


def test_a_traceparent_of_the_user_is_sent_as_it_is(
    each_client: Client, requests_seen: list[Received], monkeypatch: pytest.MonkeyPatch
) -> None:
    own = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
    monkeypatch.setenv(headers.VARIABLE, f"traceparent: {own}")
    done = each_client.run("right", "--frames", 2)
    assert [request.headers["traceparent"] for request in requests_seen] == [own, own]
    assert [sample["trace_id"] for sample in done.samples] == ["0af7651916cd43dd8448eb211c80319c"] * 2
    monkeypatch.delenv(headers.VARIABLE)
    assert all("trace_id" not in sample for sample in each_client.run("right", "--frames", 1).samples)


def test_a_file_and_lines_are_read_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "Cookie: a=1\r\n\n cookie : b=2\nX-Tag: one\nX-Tag: t:wo\nContent-Length: 5\nEmpty:\n"
    (tmp_path / "headers").write_text(f"\ufeff{text}")
    for words in (text, text.replace("\n", r"\n"), f"@{tmp_path}/headers"):
        monkeypatch.setenv(headers.VARIABLE, words)
        assert given() == {"Cookie": "a=1; b=2", "X-Tag": "one, t:wo", "Empty": ""}
    (tmp_path / "headers").write_text(r"X-Path: C:\new")
    assert given() == {"X-Path": r"C:\new"}, "only in a property does it end a line"
    monkeypatch.delenv(headers.VARIABLE)
    assert given() == {}


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("no colon", "'no colon' is not of the form Name: value"),
        ("X Y: 1", "'X Y: 1' is not of the form Name: value"),
        ("Transfer-encoding: chunked", "leave Transfer-Encoding out"),
        ("X-Key: ${env:CJK}", r"X-Key: its value has the character U\+65E5"),
    ],
)
def test_what_no_request_can_carry_is_refused(line: str, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CJK", "\N{CJK UNIFIED IDEOGRAPH-65E5}")
    monkeypatch.setenv(headers.VARIABLE, line)
    with pytest.raises(ValueError, match=why):
        given()


def test_a_header_takes_the_place_of_the_usual_one() -> None:
    assert with_given({"Content-Type": "text/plain", "Accept": "*/*"}, {"content-type": "a/b"}) == {
        "Accept": "*/*",
        "content-type": "a/b",
    }


def test_a_secret_that_a_server_repeats_is_masked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(headers.VARIABLE, "Authorization: ${env:AUTH}\nX-Key: ${env:KEY}\nX-No: ${env:NONE}")
    for name, value in (("AUTH", "Bearer sk-12345678"), ("KEY", 'a"b'), ("NONE", "")):
        monkeypatch.setenv(name, value)
    given()
    assert headers.masked("wrong key sk-12345678 in Bearer sk-12345678") == "wrong key ${env:AUTH} in ${env:AUTH}"
    assert headers.masked(r'{"key": "a\"b"} a"b Bearer') == '{"key": "${env:KEY}"} ${env:KEY} Bearer'
    monkeypatch.delenv(headers.VARIABLE)
    given()
    assert headers.masked("sk-12345678") == "sk-12345678"


def test_a_frame_client_masks_the_name_of_the_replica(
    each_client: Client, requests_seen: list[Received], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEY", "replica")
    monkeypatch.setenv(headers.VARIABLE, "X-Key: ${env:KEY}")
    (sample,) = each_client.run("right", "--frames", 1).samples
    assert sample["worker"] == "${env:KEY}-1"
