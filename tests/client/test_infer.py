"""Users of a model by gRPC: what is sent, the cause of each bad answer, and what they are stopped by."""

import json
import os
import resource
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import certifi
import grpc
import pytest

from rpc import GrpcSender
from tests.client.conftest import CLIENT, Done, Forked, hashed, lines_of, wait_until
from tests.model_server import ModelServer, serving_models
from tests.odd_server import OddServer, serving_oddly

FOUR = {"name": "x", "shape": [1, 4], "datatype": "FP32", "data": [[1, 2, 3, 4]]}


@pytest.fixture(scope="module")
def models() -> Iterator[ModelServer]:
    with serving_models() as server:
        yield server


def start_infer(url: str, *words: object, **environment: str) -> "subprocess.Popen[str]":
    command = [sys.executable, CLIENT / "infer.py", "--url", url, *words]
    pipe = subprocess.PIPE
    environ = {**os.environ, **environment}
    return subprocess.Popen(list(map(str, command)), stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=environ)


def ask(models: ModelServer, name: str, *words: object, **environment: str) -> Done:
    models.received.clear()
    models.metadata.clear()
    with start_infer(f"grpc://127.0.0.1:{models.port}/{name}", *words, **environment) as user:
        return Done(user)


def inputs(*tensors: dict[str, Any], **more: Any) -> str:
    return json.dumps({"inputs": list(tensors), **more})


def test_an_example_is_sent_by_what_the_server_says(models: ModelServer, tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    user = ask(models, "typed/7", "--requests", 2, "--journal", journal)
    assert (user.status, user.stderr) == (0, "")
    assert len(models.received) == 2
    request = models.received[0]
    assert (request.model_name, request.model_version) == ("typed", "7")
    assert [(each.name, each.datatype, list(each.shape)) for each in request.inputs] == [
        ("x", "FP32", [1, 4]), ("flags", "BOOL", [2, 2]), ("text", "BYTES", [1]),
    ]  # fmt: skip
    assert list(request.raw) == [
        struct.pack("<4f", 0.1, 0.2, 0.3, 0.1), b"\x01\x00\x01\x00", b"\x04\x00\x00\x00text",
    ]  # fmt: skip
    start, *samples, end = lines_of(journal)
    assert (start["samples"], end["samples_ok"], end["ok"]) == (2, 2, True)
    for index, sample in enumerate(samples):
        assert (sample["index"], sample["ok"], sample["model_version"]) == (index, True, "7")
        assert sample["sent_bytes"] == request.ByteSize() and sample["received_bytes"] > 8
        assert sample["rtt_ms"] > 0


def test_values_are_sent_if_bytes_are_not_wanted(models: ModelServer) -> None:
    assert ask(models, "typed", "--raw", "false").status == 0
    (request,) = models.received
    assert not request.raw
    assert [list(each.contents.bool) for each in request.inputs] == [[], [True, False, True, False], []]
    assert list(request.inputs[0].contents.fp32) == pytest.approx([0.1, 0.2, 0.3, 0.1])
    assert list(request.inputs[2].contents.bytes) == [b"text"]


def test_each_user_goes_on_with_the_inputs_where_the_last_ended(models: ModelServer, tmp_path: Path) -> None:
    file = tmp_path / "inputs.jsonl"
    file.write_text("".join(inputs(FOUR, id=str(number)) + "\n" for number in range(3)))
    user = ask(models, "iris", "--inputs", f"@{file}", "--requests", 2, FRAMESTORM_USER="2")
    assert user.status == 0
    assert [request.id for request in models.received] == ["2", "0"]
    assert list(models.received[0].raw) == [struct.pack("<4f", 1, 2, 3, 4)]


def test_inputs_need_no_metadata(models: ModelServer) -> None:
    text = inputs(FOUR, parameters={"sequence_id": 0, "sequence_start": True}, outputs=[{"name": "class"}])
    assert ask(models, "no-metadata", "--inputs", text).status == 0
    (request,) = models.received
    assert {each.key: (each.value.HasField("int"), each.value.bool) for each in request.parameters} == {
        "sequence_id": (True, False), "sequence_start": (False, True),
    }  # fmt: skip
    assert [each.name for each in request.outputs] == ["class"]


@pytest.mark.parametrize(
    ("model", "words", "cause"),
    [
        ("iris", ["--expect", "$.outputs[0].data[0] == 3"], "expect-not-met"),
        ("cut-short", ["--expect", "$.outputs[0].data[0] == 2"], "not-inference"),
        ("cut-short", [], "not-inference"),
        ("cut-text", [], "not-inference"),
        ("half-empty", [], "not-inference"),
        ("odd-type", [], "not-inference"),
        ("no-outputs", [], "no-outputs"),
        ("garbage", [], "not-inference"),
        ("no-text", [], "not-inference"),
        ("cut-text", ["--expect", "$.outputs[0].data[0] == cat"], "not-inference"),
        ("unknown", [], "grpc-not-found: no model unknown"),
        ("no-metadata", [], "grpc-unimplemented: no such call"),
        ("not-ready", [], "grpc-unavailable: model not-ready is not ready"),
        ("picky", [], "grpc-invalid-argument: expected 4 features"),
        ("gateway", [], "grpc-unavailable: upstream connect error. reset reason: connection timeout"),
        ("late", [], "grpc-deadline-exceeded: the queue is full"),
        ("colourful", [], "grpc-internal: ? is ?[31mred?[0m"),
        ("failing", [], f"grpc-unknown: {'x' * 120}"),
        ("silent", ["--timeout-s", "0.3"], "timeout"),
    ],
)
def test_a_wrong_answer_is_told_by_its_cause(models: ModelServer, model: str, words: list[str], cause: str) -> None:
    user = ask(models, model, *words)
    sample, end = user.lines
    assert (sample["ok"], sample["cause"], end["cause"], user.status) == (False, cause, cause, 1)
    assert sample["censored"] == (cause == "timeout")


@pytest.mark.parametrize("expected", ["$.outputs[0].data[-1] == dog", "$.outputs[0].shape[0] >= 2", "$.model_version"])
def test_an_answer_that_meets_what_is_expected_is_right(models: ModelServer, expected: str) -> None:
    assert ask(models, "text", "--expect", expected).status == 0


def test_messages_of_more_than_4_mb_reach_the_server_if_it_takes_them_and_always_the_user(
    models: ModelServer, tmp_path: Path
) -> None:
    large = {**FOUR, "shape": [1200000], "data": [0.5] * 1200000}
    file = tmp_path / "inputs.json"
    file.write_text(inputs(large))
    (sample,) = ask(models, "iris", "--inputs", f"@{file}").samples
    assert sample["cause"].startswith("grpc-resource-exhausted: ") and "4194304" in sample["cause"]
    user = ask(models, "large")
    assert (user.status, user.samples[0]["received_bytes"] > 6_000_000) == (0, True)


@pytest.mark.parametrize(
    ("url", "words", "why"),
    [
        ("grpc://127.0.0.1:1", [], "not the address of a model"),
        ("http://127.0.0.1:1/iris", [], "not the address of a model"),
        ("grpc://127.0.0.1:0/iris", [], "not the address of a model"),
        ("grpc://127.0.0.1:x/iris", [], "'grpc://127.0.0.1:x/iris' is not the address of a model: Port"),
        ("grpc://127.0.0.1:65536/iris", [], "'grpc://127.0.0.1:65536/iris' is not the address of a model: Port"),
        ("grpc://[::1/iris", [], "'grpc://[::1/iris' is not the address of a model"),
        ("grpc://127.0.0.1:1/iris", ["--expect", "x > 1"], "is not a path such as"),
        ("grpc://127.0.0.1:1/iris", ["--requests", "0"], "below 1"),
    ],
)
def test_what_cannot_be_sent_is_refused_at_the_start(url: str, words: list[str], why: str) -> None:
    with start_infer(url, *words) as process:
        user = Done(process)
    assert (user.status, user.lines) == (2, [])
    assert why in user.stderr and "Traceback" not in user.stderr


@pytest.mark.parametrize(
    ("model", "words", "why"),
    [
        ("iris", ["--inputs", "@/nowhere.json"], "/nowhere.json cannot be read"),
        ("iris", ["--inputs", "{"], "inputs: Expecting"),
        ("iris", ["--inputs", inputs({**FOUR, "data": [1]})], "data has 1 elements, and shape"),
        ("odd", [], "type TEXT, which is none of the protocol's"),
        ("huge", [], "1,000,000,000 elements: give it by -Jinputs"),
        ("nothing", [], "names no inputs"),
        ("half", ["--raw", "false"], "FP16 is sent as bytes only"),
    ],
)
def test_a_user_without_inputs_says_so(models: ModelServer, model: str, words: list[str], why: str) -> None:
    user = ask(models, model, *words)
    (line,) = user.lines
    assert (user.status, line["type"], line["cause"], line["samples"]) == (2, "user", "no-inputs", 0)
    assert why in user.stderr and not models.received


@pytest.mark.parametrize("url", ["grpc://127.0.0.1:1", "grpc://ssl.nowhere.invalid", "grpcs://nowhere.invalid"])
def test_a_server_that_cannot_be_reached_or_has_no_address(url: str) -> None:
    with start_infer(f"{url}/iris") as process:
        (sample,) = Done(process).samples
    assert (sample["cause"], sample["sent_bytes"]) == ("connect", 0)


def test_a_connection_for_which_the_generator_has_no_descriptor_is_its_own_limit() -> None:
    sender = GrpcSender("grpc://127.0.0.1:1/iris", timeout_s=5)
    sender.begin()
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    with open(os.devnull) as next_file:  # noqa: PTH123
        next_descriptor = next_file.fileno()
    resource.setrlimit(resource.RLIMIT_NOFILE, (next_descriptor, limits[1]))
    try:
        reply = sender.infer(b"")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        sender.close()
    assert (reply.cause, reply.sent_bytes) == ("generator-limit", 0)


@pytest.mark.parametrize("scheme", ["grpc", "grpcs"])
def test_a_server_that_accepts_and_says_nothing_is_no_connection(scheme: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"{scheme}://127.0.0.1:{silent.getsockname()[1]}/iris"
        with start_infer(url, "--inputs", inputs(FOUR), "--timeout-s", "0.5") as process:
            (sample,) = Done(process).samples
    assert (sample["cause"], sample["censored"], sample["sent_bytes"]) == ("connect-timeout", True, 0)


def test_a_connection_is_tried_again_soon_after_it_failed() -> None:
    """After failures gRPC by itself makes none for a time that grows to 2 min, and an outage lasts for longer."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        sender = GrpcSender(f"grpc://127.0.0.1:{listener.getsockname()[1]}/iris", timeout_s=5)
        sender.begin()
        n_connections = 0
        for _ in range(10):
            with ThreadPoolExecutor(1) as pool:
                asked = pool.submit(sender.infer, b"")
                while not asked.done():
                    with suppress(BlockingIOError):
                        listener.accept()[0].close()
                        n_connections += 1
                    time.sleep(0.01)
            assert asked.result().cause == "not-grpc"
            time.sleep(0.3)
            with suppress(BlockingIOError):
                listener.accept()[0].close()
                n_connections += 1
        sender.close()
    assert n_connections > 5


def frame(kind: int, flags: int, stream: int, body: bytes = b"") -> bytes:
    """Return a frame of HTTP/2 (RFC 9113, section 4.1)."""
    return len(body).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + body


def answer_with_page(listener: socket.socket, status: bytes) -> None:
    """Answer the first request as a gateway that has no answer of gRPC: by a page of HTTP."""
    connection = listener.accept()[0]
    with connection, connection.makefile("rb") as file:
        connection.sendall(frame(4, 0, 0))  # SETTINGS
        file.read(24)  # the preface
        kind, flags = 0, 0
        while (kind, flags & 1) != (0, 1):  # the end of the request's DATA
            head = file.read(9)
            kind, flags, stream = head[3], head[4], int.from_bytes(head[5:], "big")
            file.read(int.from_bytes(head[:3], "big"))
        fields = bytes([8, len(status)]) + status  # :status, by its number in HPACK's table
        connection.sendall(frame(1, 4, stream, fields) + frame(0, 1, stream, b"<html>"))  # HEADERS, DATA
        file.read()


@pytest.mark.parametrize("status", [502, 503, 504, 404, 429])
def test_a_page_of_a_gateway_is_an_error_by_its_status(status: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=answer_with_page, args=(listener, str(status).encode()))
        thread.start()
        with start_infer(f"grpc://127.0.0.1:{listener.getsockname()[1]}/iris", "--inputs", inputs(FOUR)) as process:
            (sample,) = Done(process).samples
        thread.join()
    assert (sample["cause"], sample["status"], sample["sent_bytes"] > 0) == (f"status-{status}", status, True)


def test_headers_reach_the_server_and_host_is_the_authority(models: ModelServer) -> None:
    headers = r"Host: iris.example.com\nAuthorization: Bearer ${env:TOKEN}"
    assert ask(models, "iris", FRAMESTORM_HEADERS=headers, TOKEN="t0").status == 0
    (metadata,) = models.metadata
    assert metadata["authorization"] == "Bearer t0"
    assert "host" not in metadata


def test_a_secret_that_a_server_repeats_is_in_no_line(models: ModelServer) -> None:
    key = "x" * 200  # longer than what is kept of a message
    user = ask(models, "failing", FRAMESTORM_HEADERS="X-Key: ${env:KEY}", KEY=key)
    assert user.samples[0]["cause"] == f"grpc-unknown: {'${env:KEY}' * 5}"
    user = ask(models, "iris/v1", FRAMESTORM_HEADERS="X-Key: ${env:KEY}", KEY="v1")
    assert user.samples[0]["model_version"] == "${env:KEY}"


@pytest.mark.parametrize("header", ["X-A: caf\u00e9", "X-A: tab\tstop", "a*b: caf", "X~: caf"])
def test_a_header_that_grpc_cannot_send_is_named_without_its_value(models: ModelServer, header: str) -> None:
    user = ask(models, "iris", FRAMESTORM_HEADERS=header)
    name, _, value = header.partition(": ")
    assert (user.status, user.samples, models.received) == (2, [], [])
    assert f"headers: {name}: gRPC cannot send" in user.stderr and value not in user.stderr


def test_each_request_has_a_trace_of_its_own(models: ModelServer) -> None:
    user = ask(models, "iris", "--requests", 2, FRAMESTORM_HEADERS="traceparent: new")
    assert [metadata["traceparent"].split("-")[1] for metadata in models.metadata] == [
        sample["trace_id"] for sample in user.samples
    ]
    assert len({sample["trace_id"] for sample in user.samples}) == 2


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("tls")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out", "cert.pem",
         "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"],
        cwd=folder, check=True, capture_output=True,
    )  # fmt: skip
    return folder / "cert.pem", folder / "key.pem"


def test_tls_and_what_does_not_fit_it(models: ModelServer, certificate: tuple[Path, Path], tmp_path: Path) -> None:
    public, key = certificate
    credentials = grpc.ssl_server_credentials([(key.read_bytes(), public.read_bytes())])
    other = certifi.where()
    unknown = {"SSL_CERT_FILE": "/nowhere", "SSL_CERT_DIR": "/nowhere", "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH": ""}
    of_system = {**unknown, "REQUESTS_CA_BUNDLE": ""}
    causes = {}
    with serving_models(credentials) as secure, serving_oddly(OddServer(context=server_context(*certificate))) as http:
        for name, url, environment in (
            ("right", f"grpcs://localhost:{secure.port}/iris", {"REQUESTS_CA_BUNDLE": str(public)}),
            ("a folder", f"grpcs://localhost:{secure.port}/iris",
             {"REQUESTS_CA_BUNDLE": str(hashed(public, tmp_path / "authorities"))}),
            ("of the system", f"grpcs://localhost:{secure.port}/iris", {**of_system, "SSL_CERT_FILE": str(public)}),
            ("of gRPC", f"grpcs://localhost:{secure.port}/iris",
             {**of_system, "SSL_CERT_FILE": other, "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH": str(public)}),
            ("not trusted", f"grpcs://localhost:{secure.port}/iris", {"REQUESTS_CA_BUNDLE": other}),
            ("not of a system", f"grpcs://localhost:{secure.port}/iris", of_system),
            ("another name", f"grpcs://127.0.0.1:{secure.port}/iris", {"REQUESTS_CA_BUNDLE": str(public)}),
            ("plain to TLS", f"grpc://localhost:{secure.port}/iris", {}),
            ("TLS to plain", f"grpcs://localhost:{models.port}/iris", {"REQUESTS_CA_BUNDLE": str(public)}),
            ("TLS without HTTP/2", f"grpcs://localhost:{http.port}/iris", {"REQUESTS_CA_BUNDLE": str(public)}),
        ):  # fmt: skip
            with start_infer(url, **environment) as process:
                causes[name] = Done(process).samples[0]["cause"]
    assert causes == {
        **dict.fromkeys(("right", "a folder", "of the system", "of gRPC")),
        **dict.fromkeys(("not trusted", "not of a system"), "tls: self signed certificate"),
        "another name": "tls: hostname verification check failed",
        "TLS to plain": "tls: wrong version number",
        **dict.fromkeys(("plain to TLS", "TLS without HTTP/2"), "not-grpc"),
    }


def server_context(public: Path, key: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(public, key)
    return context


@pytest.mark.parametrize("text", [None, "no certificate", "a folder"])
def test_authorities_that_cannot_be_used_are_named_at_the_start(tmp_path: Path, text: str | None) -> None:
    bundle = tmp_path / "bundle.pem"
    if text == "a folder":
        bundle.mkdir()
    elif text is not None:
        bundle.write_text(text)
    with start_infer("grpcs://127.0.0.1:1/iris", REQUESTS_CA_BUNDLE=str(bundle)) as process:
        user = Done(process)
    assert (user.status, user.lines) == (2, [])
    assert f"REQUESTS_CA_BUNDLE {bundle} cannot be used: " in user.stderr


def test_a_user_that_is_stopped_says_so(models: ModelServer, tmp_path: Path) -> None:
    models.received.clear()
    journal = tmp_path / "journal.jsonl"
    with start_infer(f"grpc://127.0.0.1:{models.port}/silent", "--journal", journal) as process:
        wait_until(lambda: models.received)
        process.terminate()
        user = Done(process)
    sample, end = user.lines
    assert (sample["cause"], sample["censored"], end["cause"], user.status) == ("stopped", True, "stopped", 1)


def test_users_of_the_client_server_share_what_was_read(models: ModelServer, forked: Forked, tmp_path: Path) -> None:
    file = tmp_path / "inputs.json"
    file.write_text(inputs(FOUR))
    models.received.clear()
    url = f"grpc://127.0.0.1:{models.port}/iris"
    program = (sys.executable, CLIENT / "infer.py", "--url", url, "--requests", 2)
    for more in ((), ("--inputs", f"@{file}")):
        with forked.launch(*program, *more) as first, forked.launch(*program, *more) as second:
            users = Done(first), Done(second)
        assert [(user.status, user.stderr, len(user.lines)) for user in users] == [(0, "", 3)] * 2
    assert len(models.received) == 8
    # None of them has left a thread in the server: its users are forked of one that has none.
    assert len(os.listdir(f"/proc/{forked.server}/task")) == 1  # noqa: PTH208
