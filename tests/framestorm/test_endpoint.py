"""Where a URL leads, and the certificate of what answers there."""

import contextlib
import socket
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from socketserver import BaseRequestHandler, ThreadingTCPServer

import certifi
import pytest

from framestorm import endpoint
from framestorm.errors import FramestormError, UsageError
from tests.in_thread import in_thread
from tests.stand_in import serving


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key and a certificate for localhost that it signed itself."""
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    make += ["-addext", "subjectAltName=DNS:localhost", "-keyout", "-", "-out", "-"]
    path.write_bytes(subprocess.run(make, check=True, capture_output=True).stdout)
    return path


@contextmanager
def shaking_hands(certificate: Path) -> Iterator[tuple[int, list[bytes]]]:
    """A TLS server and a proxy on one port: the port, and the requests that the proxy got."""
    asked: list[bytes] = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)

    class HandshakeHandler(BaseRequestHandler):
        def handle(self) -> None:
            if self.request.recv(1, socket.MSG_PEEK) == b"C":
                asked.append(self.request.recv(4096))
                self.request.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            # Where the other side does not like the certificate, that is an error here too.
            with contextlib.suppress(OSError), context.wrap_socket(self.request, server_side=True) as connection:
                connection.recv(1)

    with in_thread(ThreadingTCPServer(("127.0.0.1", 0), HandshakeHandler)) as server:
        yield server.server_address[1], asked


@pytest.mark.parametrize(
    ("host", "authorities", "error"),
    [
        ("localhost", "@{}", None),
        ("127.0.0.1", "none", None),
        ("127.0.0.1", "@{}", FramestormError),
        ("localhost", "", FramestormError),
        ("localhost", "@{}.missing", UsageError),
        ("localhost", f"@{__file__}", UsageError),
    ],
)
def test_a_servers_certificate(host: str, authorities: str, error: type[Exception] | None, certificate: Path) -> None:
    with shaking_hands(certificate) as (port, asked):
        for proxy in ("", f"http://me:p%40w@127.0.0.1:{port}"):
            with pytest.raises(error) if error else contextlib.nullcontext():
                endpoint.check_certificate(f"https://{host}:{port}/f", "-Jca", authorities.format(certificate), proxy)
    if error is None and authorities != "none":
        assert len(asked) == 1 and asked[0].startswith(f"CONNECT localhost:{port}".encode())
        assert b"Proxy-Authorization: Basic bWU6cEB3" in asked[0]


@pytest.mark.parametrize(
    ("host", "authorities", "days", "trouble", "advice"),
    [
        ("localhost", "@{}", -1, "expired", "renew"),
        ("127.0.0.1", "@{}", 2, "mismatch", "in its certificate"),
        ("localhost", "", 2, "self-signed", "-Jca=@file"),
    ],
)
def test_what_is_wrong_with_a_certificate_is_named(
    host: str, authorities: str, days: int, trouble: str, advice: str, certificate: Path, tmp_path: Path
) -> None:
    path = tmp_path / "both.pem"
    make = ["openssl", "x509", "-in", certificate, "-signkey", certificate, "-days", str(days)]
    made = subprocess.run(make, check=True, capture_output=True).stdout
    path.write_bytes(certificate.read_bytes().partition(b"-----BEGIN CERT")[0] + made)
    with shaking_hands(path) as (port, _), pytest.raises(FramestormError, match=f"{trouble}.*{advice}"):
        endpoint.check_certificate(f"https://{host}:{port}/f", "-Jca", authorities.format(path))


def test_authorities_of_clients_come_by_their_variable(
    certificate: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "authorities"
    folder.mkdir()
    _, _, end = certificate.read_text().partition("-----BEGIN CERTIFICATE")
    (folder / "ca.pem").write_text(f"-----BEGIN CERTIFICATE{end}")
    subprocess.run(["openssl", "rehash", folder], check=True)
    with shaking_hands(certificate) as (port, _):
        url = f"https://localhost:{port}/f"
        for authorities in (certificate, folder):
            endpoint.check_certificate(url, endpoint.CLIENTS_AUTHORITIES, str(authorities))
        monkeypatch.setenv("SSL_CERT_FILE", certifi.where())
        with pytest.raises(FramestormError, match=r"give its file by REQUESTS_CA_BUNDLE=file$"):
            endpoint.check_certificate(url, endpoint.CLIENTS_AUTHORITIES, "")
        for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
            monkeypatch.setenv(name, str(tmp_path / "nothing"))
        endpoint.check_certificate(url, endpoint.CLIENTS_AUTHORITIES, "")  # those that the client brings count


def test_what_is_no_server_or_has_no_tls() -> None:
    with pytest.raises(FramestormError):
        endpoint.check_reachable("http://a..b/")
    with serving() as server:
        address = f"http://127.0.0.1:{server.server_port}"
        for proxy in ("", address):
            with pytest.raises(FramestormError, match="TLS"):
                endpoint.check_certificate(address.replace("http:", "https:"), "-Jca", "", proxy)


@pytest.mark.parametrize(
    "url", ["localhost:80/f", "http://", "http://h:0/", "http://h:65536/", "http://[::1/", "http://h/f\n", " http://h/"]
)
def test_what_is_no_url(url: str) -> None:
    with pytest.raises(UsageError):
        endpoint.host_and_port(url)


def test_a_chain_without_its_intermediate_authority_is_told_from_an_unknown_one(tmp_path: Path) -> None:
    def make(name: str, signer: str, more: str) -> None:
        words = f"req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN={name} -addext {more}"
        words += f" -keyout {name}.key -out {name}.pem" + (f" -CA {signer}.pem -CAkey {signer}.key" if signer else "")
        subprocess.run(["openssl", *words.split()], check=True, capture_output=True, cwd=tmp_path)

    make("root", "", "keyUsage=critical,keyCertSign")
    make("between", "root", "basicConstraints=critical,CA:TRUE")
    make("localhost", "between", "subjectAltName=DNS:localhost")
    texts = {path.name: path.read_text() for path in tmp_path.iterdir()}
    alone, both = tmp_path / "alone.pem", tmp_path / "both.pem"
    alone.write_text(texts["localhost.key"] + texts["localhost.pem"])
    both.write_text(alone.read_text() + texts["between.pem"])
    root = f"@{tmp_path / 'root.pem'}"
    with shaking_hands(both) as (port, _):
        endpoint.check_certificate(f"https://localhost:{port}/", "-Jca", root)
        with pytest.raises(FramestormError) as unknown:
            endpoint.check_certificate(f"https://localhost:{port}/", "-Jca", "")
    assert "alone" not in str(unknown.value)
    with (
        shaking_hands(alone) as (port, _),
        pytest.raises(FramestormError, match=r"sends this certificate alone, signed by between: .* its whole chain"),
    ):
        endpoint.check_certificate(f"https://localhost:{port}/", "-Jca", root)


def test_the_zone_of_an_address_is_read_as_urls_write_it() -> None:
    assert endpoint.host_and_port("http://[fe80::1%25eth0]:8080/f") == ("fe80::1%eth0", 8080)


def test_a_certificate_is_checked_for_the_name_in_the_host_header(certificate: Path) -> None:
    with shaking_hands(certificate) as (port, _):
        url = f"https://127.0.0.1:{port}/f"
        endpoint.check_certificate(url, "-Jca", f"@{certificate}", server_name="localhost")
        with pytest.raises(FramestormError, match=r"for the Host header's name other\.example is not valid"):
            endpoint.check_certificate(url, "-Jca", f"@{certificate}", server_name="other.example")
        with pytest.raises(FramestormError, match="no TLS connection to 127"):
            endpoint.check_certificate(url, "-Jca", f"@{certificate}", server_name="a..b")
