"""Send one request and take its time, and nothing else inside that time."""

import contextlib
import signal
import ssl
import time
from collections.abc import Mapping
from types import FrameType
from typing import Any, ClassVar, NamedTuple, Protocol

import requests
import urllib3
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection

import authorities
from coding import codings, is_readable
from connections import connect_cause, is_connected, tls_cause
from final import FinalResponse, TimedResponse, breaks_http, stamp_options
from headers import given, server_name
from traceparent import Traceparent

# An answer is a frame and a few faces; one that never ends must not fill the memory of all users. The same picture may
# take more bytes than as it was sent, but not that many times as many.
MAX_ANSWER_BYTES = 256 * 1024 * 1024
ANSWER_BYTES, ANSWER_BYTES_PER_SENT = 8 * 1024 * 1024, 16
_CHUNK_BYTES = 64 * 1024
_ALARM_AGAIN_S = 0.05
_SOON_S = 1e-6  # an alarm in 0 s is none


class _OverdueError(Exception):
    """The request's total time is over, or the time for the next piece of its answer."""


class Receiver(Protocol):
    """Takes an answer while it arrives.

    stall_s: the longest time from one piece to the next.
    piece_ns: when the last piece arrived from which stall_s counts; None if none has.
    """

    stall_s: float
    piece_ns: int | None

    @property
    def whole_ns(self) -> int | None:
        """When the last that belongs to the answer arrived (time.perf_counter_ns); None if more has to come."""

    def begin(self, status: int, headers: Mapping[str, str]) -> bool:
        """Return whether to take the answer that begins like this; any other is read as a whole."""

    def take(self, data: bytes, at_ns: int) -> bool:
        """Take bytes that had arrived at that time (time.perf_counter_ns); return whether to go on."""


class Reply(NamedTuple):
    """What came back for one request. `cause` is None when an answer was read to its end, whatever its status."""

    start_ms: float  # epoch
    rtt_ms: float  # until the last byte, or until it was given up
    status: int | None
    headers: Mapping[str, str]  # by any case of their names
    body: bytes
    sent_bytes: int
    received_bytes: int
    cause: str | None
    censored: bool
    started_ns: int = 0  # time.perf_counter_ns


class Sender:
    """A user's connection to the function: kept alive between requests, no retries, no redirects."""

    def __init__(
        self,
        url: str,
        content_type: str,
        accept: str,
        timeout_s: float,
        connect_timeout_s: float,
        *,
        is_timed: bool = False,
    ) -> None:
        """Raise ValueError for a URL that cannot be asked. Opens nothing yet: a fork may take the sender along.

        is_timed: answers may go to a Receiver.
        """
        self._timeout_s = timeout_s
        # Any: requests documents that it takes one of urllib3's, and does not declare it.
        self._timeout: Any = urllib3.Timeout(connect=min(connect_timeout_s, timeout_s), read=timeout_s)
        # Not a session, which adds what the environment and earlier answers say: proxies, passwords, cookies.
        self._adapter = _TimedAdapter() if is_timed else _Adapter()
        self.traceparent = Traceparent({})
        headers = {
            "Accept": accept,
            "Accept-Encoding": "identity",  # unpacking, if a server compresses anyway, is in the timed path
            "Content-Type": content_type,
            "User-Agent": "framestorm",
        }
        try:
            self._request = requests.Request("POST", url, headers=headers).prepare()
        except ValueError as error:  # as requests' own are
            raise ValueError(f"URL {url!r} cannot be used: {error}") from error
        if self._is_encrypted:
            with contextlib.suppress(ValueError):  # `begin` says so: that process may have other authorities
                authorities.tls_context()

    @property
    def _is_encrypted(self) -> bool:
        return str(self._request.url).startswith("https:")

    def begin(self) -> None:
        """Set up what belongs to the sending process: its alarm, and what its environment says.

        That is authorities, and headers beside the usual ones or in their place; raise ValueError for wrong ones.
        """
        headers = given()
        self._request.headers.update(headers)
        self.traceparent = Traceparent(headers)
        if name := server_name(headers):
            self._adapter.poolmanager.connection_pool_kw["server_hostname"] = name
        if self._is_encrypted:
            self._adapter.poolmanager.connection_pool_kw["ssl_context"] = authorities.tls_context()
        signal.signal(signal.SIGALRM, _raise_overdue)

    def send(self, body: bytes | memoryview, receiver: Receiver | None = None) -> Reply:
        """Send the request. Whatever goes wrong with it is in the Reply; only interrupt.Stopped gets out."""
        self._request.body = body  # type: ignore[assignment] # any buffer is sent as it is
        self._request.headers["Content-Length"] = str(len(body))
        self._request.headers.update(self.traceparent.renewed())
        exchange = _Exchange(len(body), receiver)
        cause: str | None = None
        start_ms = time.time() * 1000
        started_ns = time.perf_counter_ns()
        exchange.due_ns = started_ns + int(1e9 * self._timeout_s)
        try:
            # The alarm holds the whole exchange to its time; requests' own read time-out is for each recv only.
            try:
                signal.setitimer(signal.ITIMER_REAL, self._timeout_s, _ALARM_AGAIN_S)
                self._exchange(exchange)
                ended_ns = time.perf_counter_ns()
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
        except _OverdueError:
            signal.setitimer(signal.ITIMER_REAL, 0)
            ended_ns, exchange.is_left = time.perf_counter_ns(), True
            cause = "stalled" if ended_ns < exchange.due_ns else "timeout"
        except urllib3.exceptions.DecodeError:
            # An error whose text cannot be read stays that error.
            ended_ns, cause = time.perf_counter_ns(), None if (exchange.status or 0) >= 400 else "not-http"
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:  # the last by a chunk of -1 bytes
            ended_ns, cause = time.perf_counter_ns(), _cause(error)
        self._request.body = None
        is_ended = exchange.is_left or cause == "reset"
        if is_ended and receiver is not None and receiver.whole_ns is not None:
            ended_ns, cause = receiver.whole_ns, None
        if not is_connected(cause):
            exchange.sent_bytes = 0
        return Reply(
            start_ms=start_ms,
            rtt_ms=(ended_ns - started_ns) / 1e6,
            status=exchange.status,
            headers=exchange.headers,
            body=bytes(exchange.body),
            sent_bytes=exchange.sent_bytes,
            received_bytes=exchange.received_bytes,
            cause=cause,
            censored=cause in {"timeout", "connect-timeout", "stalled"},
            started_ns=started_ns,
        )

    def close(self) -> None:
        """Close the connection."""
        self._adapter.close()

    def _exchange(self, exchange: "_Exchange") -> None:
        # Any: see _Adapter.build_response
        response: Any = self._adapter.send(self._request, stream=True, timeout=self._timeout)
        with contextlib.closing(response):
            exchange.status, exchange.headers = response.status, response.headers
            if exchange.receiver is not None and exchange.receiver.begin(response.status, response.headers):
                self._receive(exchange, exchange.receiver, response)
                return
            most_bytes = min(ANSWER_BYTES + ANSWER_BYTES_PER_SENT * exchange.sent_bytes, MAX_ANSWER_BYTES)
            for chunk in response.stream(_CHUNK_BYTES, decode_content=_is_coded(response)):
                exchange.received_bytes += len(chunk)
                if exchange.received_bytes <= most_bytes:
                    exchange.body += chunk
                else:
                    exchange.body.clear()
                    return
            response.release_conn()  # an answer without a body does not do so itself

    @staticmethod
    def _receive(exchange: "_Exchange", receiver: Receiver, response: Any) -> None:
        """Hand an answer over as it arrives, each part before the next is waited for."""
        timed: TimedResponse = response._fp  # of which urllib3's own is made
        is_coded = _is_coded(response)
        piece_ns = receiver.piece_ns
        while data := response.read1(_CHUNK_BYTES, decode_content=is_coded):
            exchange.received_bytes += len(data)
            if not receiver.take(data, timed.arrived_ns):
                exchange.is_left = True
                return
            if receiver.piece_ns == piece_ns:  # only a part of one, or what keeps a connection alive
                continue
            # Counted from now: a process that the machine runs late finds the next piece there.
            piece_ns, now_ns = receiver.piece_ns, time.perf_counter_ns()
            due_ns = min(now_ns + int(1e9 * receiver.stall_s), exchange.due_ns)
            signal.setitimer(signal.ITIMER_REAL, max((due_ns - now_ns) / 1e9, _SOON_S), _ALARM_AGAIN_S)
        response.release_conn()


def _is_coded(response: Any) -> bool:
    """Return whether the answer has to be decoded, and leave urllib3 the codings that it knows."""
    names = codings(response.headers)
    if not names or not is_readable(response.headers):
        return False
    response.headers["Content-Encoding"] = ", ".join(names)  # urllib3 would take `identity` in a list for `deflate`
    return True


class _Exchange:
    """What is known of an exchange so far, also when it is broken off."""

    def __init__(self, sent_bytes: int, receiver: Receiver | None) -> None:
        self.receiver = receiver
        self.due_ns = 0
        self.is_left = False  # before the end of the answer, as HTTP has it
        self.sent_bytes = sent_bytes
        self.received_bytes = 0
        self.status: int | None = None
        self.headers: Mapping[str, str] = {}
        self.body = bytearray()  # not a list of chunks: the function chooses how small they are


class _Connection(HTTPConnection):
    response_class = FinalResponse

    def request(self, *arguments: Any, **options: Any) -> None:
        if self.sock is None:
            self.connect()
        self.timeout = None  # urllib3 would send the body within that of connecting; the alarm holds it to its time
        super().request(*arguments, **options)


class _TlsConnection(_Connection, HTTPSConnection):
    def connect(self) -> None:
        try:
            super().connect()
        except TimeoutError as error:  # which urllib3 takes for that of an answer
            raise urllib3.exceptions.ConnectTimeoutError(self, "handshake") from error
        except ssl.SSLError as error:  # told from those of a connection that stood
            raise urllib3.exceptions.SSLError(tls_cause(error)) from error


class _TimedConnection(_Connection):
    response_class = TimedResponse


class _TimedTlsConnection(_TlsConnection):
    response_class = TimedResponse


class _Pool(urllib3.HTTPConnectionPool):
    ConnectionCls = _Connection


class _TlsPool(urllib3.HTTPSConnectionPool):
    ConnectionCls = _TlsConnection


class _TimedPool(urllib3.HTTPConnectionPool):
    ConnectionCls = _TimedConnection


class _TimedTlsPool(urllib3.HTTPSConnectionPool):
    ConnectionCls = _TimedTlsConnection


class _Adapter(HTTPAdapter):
    """Opens connections that skip informational responses, such as 103 Early Hints."""

    pools: ClassVar[Mapping[str, type]] = {"http": _Pool, "https": _TlsPool}

    def init_poolmanager(self, *arguments: Any, **options: Any) -> None:
        super().init_poolmanager(*arguments, **options)
        self.poolmanager.pool_classes_by_scheme = dict(self.pools)

    def cert_verify(self, *_: Any) -> None:
        """Leave the authorities to the connections' own TLS context; requests would have its own ones count."""

    def build_connection_pool_key_attributes(self, *arguments: Any, **options: Any) -> Any:
        """Return where a request goes, with the zone of an IPv6 address (`[fe80::1%25eth0]`) as urllib3 takes it."""
        place, tls = super().build_connection_pool_key_attributes(*arguments, **options)
        if "%" in (host := place["host"]):
            place["host"] = f"[{host.replace('%25', '%', 1)}]"
        return place, tls

    def build_response(self, _: requests.PreparedRequest, response: Any) -> Any:
        """Return urllib3's response as it is: to make one of requests' takes time, and reads cookies from it."""
        return response


class _TimedAdapter(_Adapter):
    """Opens connections whose answers know when they arrived."""

    pools: ClassVar[Mapping[str, type]] = {"http": _TimedPool, "https": _TimedTlsPool}

    def init_poolmanager(self, *arguments: Any, **options: Any) -> None:
        usual = HTTPConnection.default_socket_options
        super().init_poolmanager(*arguments, **options, socket_options=[*usual, *stamp_options()])


def _raise_overdue(_signal: int, _frame: FrameType | None) -> None:
    raise _OverdueError


def _cause(error: Exception) -> str:
    if isinstance(error, requests.ConnectTimeout):
        return "connect-timeout"
    if isinstance(error, requests.Timeout | urllib3.exceptions.ReadTimeoutError | TimeoutError):
        return "timeout"
    # requests wraps urllib3's MaxRetryError, whose reason tells a connection refused from one that broke.
    wrapped = error.args[0] if isinstance(error, requests.RequestException) and error.args else error
    reason = getattr(wrapped, "reason", wrapped)
    if isinstance(reason, urllib3.exceptions.NewConnectionError | urllib3.exceptions.NameResolutionError):
        return connect_cause(reason.__cause__)
    if isinstance(reason, urllib3.exceptions.SSLError) and not isinstance(why := reason.args[0], ssl.SSLEOFError):
        return tls_cause(why) if isinstance(why, ssl.SSLError) else str(why)
    if isinstance(reason, urllib3.exceptions.ReadTimeoutError | TimeoutError):
        return "timeout"
    told = reason.args[-1] if isinstance(reason, urllib3.exceptions.ProtocolError) else error
    # A chunk of -1 bytes is a ValueError.
    if isinstance(told, urllib3.exceptions.InvalidChunkLength | ValueError) or breaks_http(told):
        return "not-http"
    return "reset"
