"""Send one request to a model by gRPC and take its time, and nothing else inside that time."""

import re
import time
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

import grpc

import authorities
import messages
from connections import is_connected
from headers import given, masked, server_name
from send import MAX_ANSWER_BYTES, Reply
from tensors import NamedModel
from traceparent import NAME, NEW, Traceparent

SECURE, PLAIN = "grpcs", "grpc"
_DETAIL_CHARACTERS = 120
# To the server's first word, or this share of a shorter timeout, as a connection that takes all of it is not told from
# an answer that does.
_CONNECT_WITHIN_S, _CONNECT_WITHIN_SHARE = 5.0, 0.9
_CONNECT_AGAIN_MS = 100  # the least that gRPC allows
# What gRPC itself says of a connection, where the status is only UNAVAILABLE, by how it begins: a gateway's own message
# may well be `upstream connect error ... connection timeout`.
_UNCONNECTED = r"failed to connect to all addresses\b.*"
_CAUSES_OF_UNAVAILABLE = {
    "generator-limit": re.compile(
        _UNCONNECTED + "(?:too many open files|cannot assign requested address|no buffer space|cannot allocate)",
        re.IGNORECASE,
    ),
    "tls": re.compile(_UNCONNECTED + r"(?:handshake failed|verification check|\bssl|\btsi)", re.IGNORECASE),
    "not-grpc": re.compile(
        _UNCONNECTED + r"(?:socket closed|connection reset|http1\.x|parsing http/2|\balpn\b)", re.IGNORECASE
    ),
    "connect-timeout": re.compile(_UNCONNECTED + "(?:timed out|endpoint closing)", re.IGNORECASE),
    "connect": re.compile(_UNCONNECTED + "|errors resolving|dns resolution failed", re.IGNORECASE),
    "reset": re.compile("stream removed|socket closed|connection reset|broken pipe|goaway|recvmsg", re.IGNORECASE),
}
_WHY_NO_TLS = re.compile(r"(?:OPENSSL_internal:(?:CERTIFICATE_VERIFY_FAILED: )?|UNAUTHENTICATED: )([\w ]+)")
# A page of a gateway, in place of an answer of gRPC.
_HTTP_STATUS = re.compile(r"received http2 header with status: (\d{3})", re.IGNORECASE)
# Of the protocol itself, and so no metadata of a request.
_NOT_METADATA = {"host", "content-type", "te", "content-length", "connection"}
# What gRPC can send; a name that ends in -bin may have any value.
_METADATA_NAME, _METADATA_VALUE = re.compile("[a-z0-9._-]+"), re.compile("[ -~]*")


def model_of(url: str) -> NamedModel:
    """Return the model that a URL names: grpc://host:port/model, or grpc://host:port/model/version.

    Raises:
        ValueError: it names none.
    """
    try:
        parts = urlsplit(url)
        is_place = bool(parts.hostname) and parts.port != 0
    except ValueError as error:
        raise ValueError(f"{url!r} is not the address of a model: {error}") from error
    name, _, version = parts.path.strip("/").partition("/")
    if parts.scheme not in {PLAIN, SECURE} or not is_place or not name or "/" in version or parts.query:
        raise ValueError(f"{url!r} is not the address of a model such as grpc://host:8001/iris, or grpcs:// for TLS")
    return NamedModel(unquote(name), unquote(version))


class GrpcSender:
    """A user's channel to a model: kept open between requests, no retries, no proxies of the environment."""

    def __init__(self, url: str, timeout_s: float) -> None:
        """Raise ValueError for a URL of no model. Opens nothing yet: a fork may take the sender along."""
        self.model = model_of(url)
        self._url = urlsplit(url)
        self._timeout_s = timeout_s
        self._connect_within_ms = round(1000 * min(_CONNECT_WITHIN_S, _CONNECT_WITHIN_SHARE * timeout_s))
        self._metadata: tuple[tuple[str, str | bytes], ...] = ()
        self._channel: grpc.Channel | None = None
        self.traceparent = Traceparent({})

    def begin(self) -> None:
        """Open the channel of this process, with the headers and authorities of its environment.

        Raises:
            ValueError: a header cannot be sent, or the authorities cannot be used.
            OSError: a file of authorities cannot be read.
        """
        headers = given()
        self.traceparent = Traceparent(headers)
        self._metadata = tuple(
            _metadata_of(name, value)
            for name, value in headers.items()
            if name.lower() not in _NOT_METADATA and (name.lower(), value) != (NAME, NEW)
        )
        options: list[tuple[str, str | int]] = [
            ("grpc.enable_retries", 0),
            ("grpc.enable_http_proxy", 0),
            # gRPC would wait 20 s for a connection; after some that failed it makes none for up to 2 min, in which each
            # request has the error of the last one.
            ("grpc.min_reconnect_backoff_ms", self._connect_within_ms),
            ("grpc.initial_reconnect_backoff_ms", _CONNECT_AGAIN_MS),
            ("grpc.max_reconnect_backoff_ms", _CONNECT_AGAIN_MS),
            ("grpc.service_config_disable_resolution", 1),
            ("grpc.max_receive_message_length", MAX_ANSWER_BYTES),
            ("grpc.max_send_message_length", -1),
            ("grpc.primary_user_agent", "framestorm"),
        ]
        host = self._url.hostname or ""
        host = f"[{host}]" if ":" in host else host
        place = f"{host}:{self._url.port or (443 if self._url.scheme == SECURE else 80)}"
        if authority := next((value for name, value in headers.items() if name.lower() == "host"), None):
            options.append(("grpc.default_authority", authority))
        if self._url.scheme == PLAIN:
            self._channel = grpc.insecure_channel(place, options)
        else:
            if name := server_name(headers):
                options.append(("grpc.ssl_target_name_override", name))
            credentials = grpc.ssl_channel_credentials(authorities.in_pem())
            self._channel = grpc.secure_channel(place, credentials, options)
        self._calls = {name: self._channel.unary_unary(method) for name, method in messages.METHODS.items()}

    def ask_metadata(self) -> Reply:
        """Ask what the server knows of the model."""
        request = messages.MetadataRequest(name=self.model.name, version=self.model.version)
        return self._send("metadata", request.SerializeToString())

    def infer(self, request: bytes) -> Reply:
        """Send a request. Whatever goes wrong with it is in the Reply; only interrupt.Stopped gets out."""
        return self._send("infer", request)

    def close(self) -> None:
        """Close the connection."""
        if self._channel is not None:
            self._channel.close()

    def _send(self, method: str, request: bytes) -> Reply:
        call = self._calls[method]
        body, cause, status = b"", None, None
        metadata = (*self._metadata, *self.traceparent.renewed().items())
        start_ms = time.time() * 1000
        started_ns = time.perf_counter_ns()
        try:
            body = call(request, self._timeout_s, metadata)
            ended_ns = time.perf_counter_ns()
        except grpc.RpcError as error:
            ended_ns = time.perf_counter_ns()
            cause = _cause(error, (ended_ns - started_ns) / 1e9 >= self._timeout_s)
            status = _http_status(error)
        return Reply(
            start_ms=start_ms,
            rtt_ms=(ended_ns - started_ns) / 1e6,
            status=status,
            headers=_NO_HEADERS,
            body=body,
            sent_bytes=len(request) if is_connected(cause) else 0,
            received_bytes=len(body),
            cause=cause,
            censored=cause in {"timeout", "connect-timeout"},
            started_ns=started_ns,
        )


def _metadata_of(name: str, value: str) -> tuple[str, str | bytes]:
    key = name.lower()
    is_binary = key.endswith("-bin")
    if not _METADATA_NAME.fullmatch(key) or not (is_binary or _METADATA_VALUE.fullmatch(value)):
        raise ValueError(f"headers: {name}: gRPC cannot send this name, or its value")  # which may be a secret
    return key, value.encode() if is_binary else value


_NO_HEADERS: Mapping[str, str] = {}


def _cause(error: grpc.RpcError, is_time_over: bool) -> str:
    """Return the cause of an error: how the connection failed, or the status of gRPC with the server's message."""
    if status := _http_status(error):
        return f"status-{status}"
    code, detail = error.code(), " ".join(masked(error.details() or "").split())
    if code is grpc.StatusCode.DEADLINE_EXCEEDED and is_time_over:
        return "timeout"
    if code is grpc.StatusCode.UNAVAILABLE:
        for cause, pattern in _CAUSES_OF_UNAVAILABLE.items():
            if pattern.match(detail):
                why = _WHY_NO_TLS.search(detail) if cause == "tls" else None
                return f"tls: {why[1].replace('_', ' ').lower()}" if why else cause
    word = f"grpc-{code.name.lower().replace('_', '-')}"
    return f"{word}: {detail[:_DETAIL_CHARACTERS]}" if detail else word


def _http_status(error: grpc.RpcError) -> int | None:
    """Return the status of the page that came in place of an answer of gRPC; None if none did."""
    page = _HTTP_STATUS.fullmatch(error.details() or "")
    return int(page[1]) if page else None
