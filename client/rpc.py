"""Send one request to a model by gRPC and take its time, and nothing else inside that time."""

import os
import re
import time
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

import grpc

import authorities
import messages
from headers import given, server_name
from send import MAX_ANSWER_BYTES, Reply
from tensors import NamedModel
from traceparent import NAME, NEW, Traceparent

SECURE, PLAIN = "grpcs", "grpc"
_DETAIL_CHARACTERS = 120
# What gRPC says of a connection that could not be made, where the status is only UNAVAILABLE.
_CAUSES_OF_UNAVAILABLE = {
    "tls": re.compile("handshake|certificate|ssl|tls", re.IGNORECASE),
    "not-grpc": re.compile(
        r"failed to connect.*(?:socket closed|connection reset|http1\.x|parsing http/2)", re.IGNORECASE
    ),
    "connect-timeout": re.compile("connect.*(?:timed? ?out|timeout)", re.IGNORECASE),
    "connect": re.compile("failed to connect|connection refused|name resolution|dns|unreachable", re.IGNORECASE),
    "reset": re.compile("socket closed|connection reset|broken pipe|goaway|stream removed", re.IGNORECASE),
}
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
        self._metadata: tuple[tuple[str, str | bytes], ...] = ()
        self._channel: grpc.Channel | None = None
        self.traceparent = Traceparent({})

    def begin(self) -> None:
        """Open the channel of this process, with the headers and authorities of its environment.

        Raises:
            ValueError: a header cannot be sent, or the authorities cannot be used.
            OSError: the file of authorities cannot be read.
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
            certificates = None
            if bundle := os.environ.get(authorities.VARIABLE):
                authorities.tls_context()  # gRPC would blame the handshake of each request for wrong ones
                certificates = Path(bundle).read_bytes()
            self._channel = grpc.secure_channel(place, grpc.ssl_channel_credentials(certificates), options)
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
        body, cause = b"", None
        metadata = (*self._metadata, *self.traceparent.renewed().items())
        start_ms = time.time() * 1000
        started_ns = time.perf_counter_ns()
        try:
            body = call(request, self._timeout_s, metadata)
            ended_ns = time.perf_counter_ns()
        except grpc.RpcError as error:
            ended_ns = time.perf_counter_ns()
            cause = _cause(error, (ended_ns - started_ns) / 1e9 >= self._timeout_s)
        return Reply(
            start_ms=start_ms,
            rtt_ms=(ended_ns - started_ns) / 1e6,
            status=None,
            headers=_NO_HEADERS,
            body=body,
            sent_bytes=0 if cause in _NOT_SENT else len(request),
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
_NOT_SENT = {"connect", "connect-timeout", "tls"}


def _cause(error: grpc.RpcError, is_time_over: bool) -> str:
    """Return the cause of an error: how the connection failed, or the status of gRPC with the server's message."""
    code, detail = error.code(), " ".join((error.details() or "").split())
    if code is grpc.StatusCode.DEADLINE_EXCEEDED and is_time_over:
        return "timeout"
    if code is grpc.StatusCode.UNAVAILABLE:
        for cause, pattern in _CAUSES_OF_UNAVAILABLE.items():
            if pattern.search(detail):
                return cause
    word = f"grpc-{code.name.lower().replace('_', '-')}"
    return f"{word}: {detail[:_DETAIL_CHARACTERS]}" if detail else word
