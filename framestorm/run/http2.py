"""Servers that speak HTTP/2 only, which look to a client of HTTP/1.1 as if they broke every connection."""

import contextlib
import csv
import itertools
import re
import ssl
from collections.abc import Iterator, Sequence
from pathlib import Path

from framestorm.connections import connection
from framestorm.endpoint import host_and_port
from framestorm.errors import UsageError
from framestorm.model.cause import request_cause
from framestorm.plain import note
from framestorm.results.jtl_samples import OF_SERVER
from framestorm.run.needs import Address
from framestorm.run.proxy import Proxies

# https://www.rfc-editor.org/rfc/rfc9113#section-3.4: what a client begins with, here with no settings of its own.
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))
_HEAD_BYTES, _SETTINGS = 9, 4
MOST_ROWS, MOST_SERVERS = 1000, 3


def note_agreed(called: Sequence[Address], proxies: Proxies) -> None:
    """Note the servers with TLS that agree to HTTP/2 and not to HTTP/1.1, by handshakes without a request."""
    urls = [each.url for each in called if not (each.way(proxies) or each.hosts or each.is_of_resolver)]
    for url in dict.fromkeys(url for url in urls if url.startswith("https://")):
        if _speaks(url, proxies):
            note(
                f"{url} agrees to HTTP/2 only in the TLS handshake, and the HTTP clients here speak HTTP/1.1: "
                "requests will fail unless it takes those without an agreement"
            )


def servers(run_dir: Path, proxies: Proxies) -> tuple[str, ...]:
    """Return the servers, as scheme://host:port, that broke every connection of a run, and speak HTTP/2.

    Asked after the load: a server without TLS can only be asked by a request, which one of HTTP/1.1 would not like.
    """
    is_broken: dict[str, bool] = {}
    with contextlib.suppress(OSError, csv.Error, KeyError, TypeError):
        for row in itertools.islice(_rows(run_dir / "samples.jtl"), MOST_ROWS):
            server = next(iter(re.findall(OF_SERVER, row["URL"])), "")
            is_reset = (
                row["success"] != "true" and request_cause(row["responseCode"], row["responseMessage"], "") == "reset"
            )
            is_broken[server] = is_broken.get(server, True) and is_reset
    broken = [server for server, is_one in is_broken.items() if is_one]
    return tuple(filter(lambda server: _speaks(server, proxies), broken[:MOST_SERVERS]))


def _rows(path: Path) -> Iterator[dict[str, str]]:
    with path.open(newline="", encoding="utf-8", errors="replace") as file:
        yield from csv.DictReader(file)


def _speaks(server: str, proxies: Proxies) -> bool:
    """Return whether a server that does not speak HTTP/1.1 speaks HTTP/2; no if only a proxy can reach it."""
    try:
        if proxies.way_to(server):
            return False
        return _is_agreed_alone(server) if server.startswith("https://") else _answers(server)
    except UsageError:  # no URL: JMeter says so
        return False


def _is_agreed_alone(url: str) -> bool:
    host, port = host_and_port(url)
    return _agreed(host, port, "http/1.1") is None and _agreed(host, port, "h2") == "h2"


def _answers(url: str) -> bool:
    """Return whether a server without TLS answers a client that begins with HTTP/2."""
    answer = b""
    host, port = host_and_port(url)
    with contextlib.suppress(OSError, ValueError), connection((host,), port) as connected:
        connected.sendall(_PREFACE)
        while len(answer) < _HEAD_BYTES and (more := connected.recv(_HEAD_BYTES)):
            answer += more
    return len(answer) >= _HEAD_BYTES and answer[3] == _SETTINGS and not any(answer[5:_HEAD_BYTES])


def _agreed(host: str, port: int, protocol: str) -> str | None:
    """What a server agrees to if it is offered this protocol; None if that is nothing, or if it ends the handshake."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols([protocol])
    try:
        with (
            connection((host,), port) as plain,
            context.wrap_socket(plain, server_hostname=host.partition("%")[0]) as encrypted,
        ):
            return encrypted.selected_alpn_protocol()
    except (OSError, ValueError):  # the latter of a name such as a..b
        return None
