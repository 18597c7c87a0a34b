"""One keep-alive connection that sends a small text and reads a small answer; several are used from threads.

send.py measures a single frame in more detail; here a call costs only 0.1 ms of CPU, because many workers share one
process.
"""

import contextlib
import http.client
import socket
import ssl
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import quote, urlsplit

from authorities import tls_context
from connections import connect_cause, tls_cause
from final import FinalResponse, breaks_http
from headers import server_name, with_given
from traceparent import Traceparent

_PIECE_BYTES = 1 << 16


class Response(NamedTuple):
    """The response; `cause` is why there is no complete answer, or None if there is one, whatever its status."""

    status: int | None
    headers: Mapping[str, str]  # names in lower case
    received_bytes: int
    cause: str | None


class _SniConnection(http.client.HTTPSConnection):
    """A connection whose handshake has a name of its own, for which the certificate has to be."""

    def __init__(self, server_name: str, host: str, port: int | None, *, timeout: float, context: ssl.SSLContext):
        super().__init__(host, port, timeout=timeout, context=context)
        self._server_name, self._tls = server_name, context

    def connect(self) -> None:
        http.client.HTTPConnection.connect(self)
        self.sock = self._tls.wrap_socket(self.sock, server_hostname=self._server_name)


class Caller:
    """A connection to one URL, opened at the first call and again after it broke."""

    def __init__(self, url: str, headers: Mapping[str, str], timeout_s: float, connect_timeout_s: float) -> None:
        """Raise ValueError if the URL cannot be called, or its authorities cannot be read."""
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as error:
            raise ValueError(f"URL {url!r} cannot be used: {error}") from error
        if not parts.hostname:
            raise ValueError(f"URL {url!r} cannot be used: it has no host")
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._path = quote(path, safe="!#$%&'()*+,/:;=?@[]~")  # as requests does for frames
        self._headers = with_given({"User-Agent": "framestorm", "Content-Type": "text/plain"}, headers)
        self.traceparent = Traceparent(headers)
        self._timeout_s = timeout_s
        self._cut_by: str | None = None
        self._socket: socket.socket | None = None
        host = parts.hostname.replace("%25", "%", 1)  # the zone of an address, as RFC 6874 writes it
        within_s = min(connect_timeout_s, timeout_s)
        self._connection: http.client.HTTPConnection
        # One that is not named is not left to http.client, which takes the last number of an IPv6 address for it.
        port = (443 if parts.scheme == "https" else 80) if port is None else port
        if not host.isprintable() or " " in host:  # http.client's own error is no ValueError
            raise ValueError(f"URL {url!r} cannot be used: its host has a blank or another character that no host has")
        if parts.scheme == "https":
            name = server_name(headers) or host.partition("%")[0]
            self._connection = _SniConnection(name, host, port, timeout=within_s, context=tls_context())
        else:
            self._connection = http.client.HTTPConnection(host, port, timeout=within_s)
        self._connection.response_class = FinalResponse

    def renew_trace(self) -> str | None:
        """Return the trace id of the next call, a new one if the headers ask for that."""
        if header := self.traceparent.renewed():
            self._headers = with_given(self._headers, header)
        return self.traceparent.trace_id

    def post(self, body: bytes) -> Response:
        """Send a body and read the answer; any failure is reported in the Response."""
        status: int | None = None
        headers: Mapping[str, str] = {}
        cause: str | None
        self._cut_by = None
        try:
            if self._connection.sock is None:
                cause = "connect"
                self._connect()
            cause = "reset"
            self._connection.request("POST", self._path, body, self._headers)
            response = self._connection.getresponse()
            status, headers = response.status, {name.lower(): value for name, value in response.headers.items()}
            received_bytes = 0
            while piece := response.read(_PIECE_BYTES):  # not all at once: it may have no end
                received_bytes += len(piece)
            if response.length:
                raise http.client.IncompleteRead(b"", response.length)
            return Response(status, headers, received_bytes, self._cut_by)
        except TimeoutError:
            cause = "connect-timeout" if cause == "connect" else "timeout"
        except ssl.SSLError as error:
            is_broken = cause == "reset" and isinstance(error, ssl.SSLEOFError)
            cause = self._cut_by or ("reset" if is_broken else tls_cause(error))
        except (OSError, http.client.HTTPException, ValueError) as error:  # the last by a chunk of -5 bytes
            cause = connect_cause(error) if cause == "connect" else cause
            cause = self._cut_by or ("not-http" if breaks_http(error) else cause)
        self.close()
        return Response(status, headers, 0, cause)

    def _connect(self) -> None:
        self._connection.connect()
        # The connection forgets it as soon as an answer says that it will be closed at its end.
        self._socket = self._connection.sock
        self._socket.settimeout(self._timeout_s)  # between two packets; cut() ends slow answers

    def close(self) -> None:
        self._connection.close()

    def cut(self, cause: str) -> None:
        """End a running call of another thread at once; `cause` becomes the cause of its error."""
        self._cut_by = cause
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
