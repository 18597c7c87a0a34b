"""The headers that the user adds to each request of a client."""

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


def test_a_file_and_lines_are_read_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "Cookie: a=1\r\n\n cookie : b=2\nX-Tag: one\nX-Tag: t:wo\nContent-Length: 5\nEmpty:\n"
    (tmp_path / "headers").write_text(f"\ufeff{text}")
    for words in (text, text.replace("\n", r"\n"), f"@{tmp_path}/headers"):
        monkeypatch.setenv(headers.VARIABLE, words)
        assert given() == {"Cookie": "a=1; b=2", "X-Tag": "one, t:wo", "Empty": ""}
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
