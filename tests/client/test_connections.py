"""What the clients' connections have in common: the name in the handshake, and addresses with a zone."""

import errno
import os
import signal
import socket
import ssl
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import authorities
from caller import Caller
from headers import given, server_name
from send import Sender
from tests.client.conftest import hashed
from tests.odd_server import OddServer, serving_oddly

NAME = "hello.default.example.com"
WRONG_NAME = {"Host: 127.0.0.1": "tls: IP address mismatch"}


def by_frame_client(url: str) -> tuple[int | None, str | None]:
    before = signal.getsignal(signal.SIGALRM)
    sender = Sender(url, "image/png", "image/png", timeout_s=5, connect_timeout_s=2)
    sender.begin()
    reply = sender.send(b"1")
    sender.close()
    signal.signal(signal.SIGALRM, before)
    return reply.status, reply.cause


def by_task_client(url: str) -> tuple[int | None, str | None]:
    caller = Caller(url, given(), timeout_s=5, connect_timeout_s=2)
    response = caller.post(b"1")
    caller.close()
    return response.status, response.cause


clients = pytest.mark.parametrize("send", [by_frame_client, by_task_client])
Send = Callable[[str], tuple[int | None, str | None]]


@pytest.fixture
def encrypted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[OddServer, list[str | None]]]:
    """A server whose certificate, which the clients trust, is for NAME alone; the names in its handshakes."""
    both = tmp_path / "both.pem"
    make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={NAME}"]
    make += ["-addext", f"subjectAltName=DNS:{NAME}", "-keyout", "-", "-out", "-"]
    both.write_bytes(subprocess.run(make, check=True, capture_output=True).stdout)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(both))
    names: list[str | None] = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(both)
    context.sni_callback = lambda _, name, __: names.append(name)
    with serving_oddly(OddServer(context=context)) as server:
        yield server, names


@clients
@pytest.mark.parametrize("header", [f"Host: {NAME}", f"hOST:{NAME}:8443"])
def test_the_name_of_a_host_header_begins_the_handshake_and_is_the_certificates(
    send: Send, header: str, encrypted: tuple[OddServer, list[str | None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    server, names = encrypted
    monkeypatch.setenv("FRAMESTORM_HEADERS", header)
    assert send(f"https://127.0.0.1:{server.port}/") == (200, None)
    assert names == [NAME]
    assert [headers["host"] for _, headers in server.received] == [header.partition(":")[2].strip()]


@clients
@pytest.mark.parametrize("header", ["", "Host: other.example.com", "Host: 127.0.0.1"])
def test_a_certificate_for_another_name_is_not_accepted(
    send: Send, header: str, encrypted: tuple[OddServer, list[str | None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    server, _ = encrypted
    monkeypatch.setenv("FRAMESTORM_HEADERS", header)
    status, cause = send(f"https://localhost:{server.port}/")
    assert (status, str(cause).split(",")[0]) == (None, WRONG_NAME.get(header, "tls: Hostname mismatch"))
    assert server.received == []


@clients
def test_no_tls_where_it_is_called_for_is_told_from_no_connection(send: Send) -> None:
    with serving_oddly(OddServer(greeting=b"220 ready\r\n")) as server:
        assert send(f"https://127.0.0.1:{server.port}/") == (None, "tls: wrong version number")


@clients
@pytest.mark.parametrize("place", ["SSL_CERT_FILE", "SSL_CERT_DIR"])
def test_the_authorities_of_the_system_count(
    send: Send,
    place: str,
    encrypted: tuple[OddServer, list[str | None]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server, _ = encrypted
    certificate = Path(os.environ["REQUESTS_CA_BUNDLE"])
    monkeypatch.delenv("REQUESTS_CA_BUNDLE")
    monkeypatch.setenv("FRAMESTORM_HEADERS", f"Host: {NAME}")
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere")
    monkeypatch.setenv("SSL_CERT_DIR", "/nowhere")
    assert send(f"https://127.0.0.1:{server.port}/") == (None, "tls: self-signed certificate")
    where = {"SSL_CERT_FILE": certificate, "SSL_CERT_DIR": hashed(certificate, tmp_path / "authorities")}[place]
    monkeypatch.setenv(place, str(where))
    assert send(f"https://127.0.0.1:{server.port}/") == (200, None)


def test_authorities_are_read_once_for_all_users_that_are_forked(
    encrypted: tuple[OddServer, list[str | None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    server, _ = encrypted
    monkeypatch.setenv("FRAMESTORM_HEADERS", f"Host: {NAME}")
    sender = Sender(f"https://127.0.0.1:{server.port}/", "image/png", "image/png", timeout_s=5, connect_timeout_s=2)
    monkeypatch.setattr(ssl, "create_default_context", None)
    before = signal.getsignal(signal.SIGALRM)
    sender.begin()  # in the process of the user
    reply = sender.send(b"1")
    sender.close()
    signal.signal(signal.SIGALRM, before)
    assert (reply.status, reply.cause) == (200, None)


def test_usual_authorities_count_where_the_system_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REQUESTS_CA_BUNDLE", raising=False)
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere")
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))
    assert len(authorities.tls_context().get_ca_certs()) > 50


@clients
def test_authorities_may_be_a_folder(
    send: Send, encrypted: tuple[OddServer, list[str | None]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, _ = encrypted
    folder = hashed(Path(os.environ["REQUESTS_CA_BUNDLE"]), tmp_path / "authorities")
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(folder))
    monkeypatch.setenv("FRAMESTORM_HEADERS", f"Host: {NAME}")
    assert send(f"https://127.0.0.1:{server.port}/") == (200, None)


@clients
@pytest.mark.parametrize("text", [None, "", "no certificate", "a folder"])
def test_authorities_that_cannot_be_used_are_named_at_the_start(
    send: Send, text: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = tmp_path / "bundle.pem"
    if text == "a folder":
        bundle.mkdir()
    elif text is not None:
        bundle.write_text(text)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(bundle))
    with pytest.raises(ValueError, match=f"REQUESTS_CA_BUNDLE {bundle} cannot be used: "):
        send("https://127.0.0.1:9/")
    assert send("http://127.0.0.1:9/") == (None, "connect")


@clients
@pytest.mark.parametrize(
    ("number", "cause"),
    [(errno.EADDRNOTAVAIL, "generator-limit"), (errno.EMFILE, "generator-limit"), (errno.EHOSTUNREACH, "connect")],
)
def test_a_connection_that_the_generator_has_no_room_for_is_its_own_limit(
    send: Send, number: int, cause: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def connect(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(socket.socket, "connect", connect)
    assert send("http://127.0.0.1:9/") == (None, cause)


@clients
def test_a_handshake_without_an_answer_is_no_connection(send: Send) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        assert send(f"https://127.0.0.1:{silent.getsockname()[1]}/") == (None, "connect-timeout")


@pytest.mark.parametrize(
    ("headers", "name"),
    [({}, None), ({"Host": ""}, None), ({"host": "a:80"}, "a"), ({"Host": "[::1]:80"}, "::1"), ({"X": "a"}, None)],
)
def test_the_name_in_a_host_header(headers: dict[str, str], name: str | None) -> None:
    assert server_name(headers) == name


@pytest.mark.parametrize(
    ("url", "address"), [("http://[::1]/", ("::1", 80)), ("https://[fe80::1%25eth0]/", ("fe80::1%eth0", 443))]
)
def test_an_address_without_a_port_has_that_of_its_scheme(
    url: str, address: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    called = []
    monkeypatch.setattr(socket, "create_connection", lambda place, *_: called.append(place) or socket.socket())
    by_task_client(url)
    assert called == [address]


def test_a_host_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="URL 'http://a b:80/' cannot be used: its host has a blank"):
        by_task_client("http://a b:80/")


@clients
@pytest.mark.parametrize("host", ["[::1]", "[::1%251]", "[::1%1]"])
def test_the_zone_of_an_address_is_for_the_connection_only(send: Send, host: str) -> None:
    """Zone 1 is the loopback; names of interfaces, such as [fe80::1%25eth0], are zones of link-local addresses only."""
    with serving_oddly(OddServer(family=socket.AF_INET6, host="::1")) as server:
        assert send(f"http://{host}:{server.port}/") == (200, None)
    assert [headers["host"].partition("]")[2] for _, headers in server.received] == [f":{server.port}"]
