"""A server of the Open Inference Protocol by gRPC whose models answer in every right and wrong way."""

import contextlib
import struct
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc

import messages

INPUTS: dict[str, list[tuple[str, str, list[int]]]] = {
    "typed": [("x", "FP32", [-1, 4]), ("flags", "BOOL", [2, 2]), ("text", "BYTES", [1])],
    "half": [("x", "FP16", [2]), ("y", "BF16", [2])],
    "scalar": [("x", "INT64", [])],
    "odd": [("x", "TEXT", [1])],
    "huge": [("x", "FP64", [1000, 1000, 1000])],
    "nothing": [],
}
MOST_BYTES = 4 * 1024 * 1024


class ModelServer:
    """Answers by the model's name, and keeps the requests and what came with them."""

    def __init__(self, credentials: Any = None) -> None:
        self.received: list[Any] = []
        self.metadata: list[dict[str, Any]] = []
        self.released = threading.Event()
        # 4 MiB is also the limit that servers have by default.
        self._server = grpc.server(ThreadPoolExecutor(8), options=[("grpc.max_receive_message_length", MOST_BYTES)])
        calls = {"ModelInfer": self._infer, "ModelMetadata": self._metadata}
        handlers = {name: grpc.unary_unary_rpc_method_handler(call) for name, call in calls.items()}
        self._server.add_generic_rpc_handlers(
            [grpc.method_handlers_generic_handler("inference.GRPCInferenceService", handlers)]
        )
        place = "127.0.0.1:0"
        self.port = (
            self._server.add_secure_port(place, credentials) if credentials else self._server.add_insecure_port(place)
        )
        self._server.start()

    def stop(self) -> None:
        self.released.set()
        self._server.stop(None).wait()

    def _metadata(self, body: bytes, context: Any) -> bytes:
        name = messages.MetadataRequest.FromString(body).name
        if name == "no-metadata":
            context.abort(grpc.StatusCode.UNIMPLEMENTED, "no such call")
        if name == "unknown":
            context.abort(grpc.StatusCode.NOT_FOUND, "no model unknown")
        answer = messages.MetadataResponse(name=name)
        for tensor, datatype, shape in INPUTS.get(name, [("x", "FP32", [-1, 4])]):
            answer.inputs.add(name=tensor, datatype=datatype, shape=shape)
        return bytes(answer.SerializeToString())

    def _infer(self, body: bytes, context: Any) -> bytes:
        request = messages.InferRequest.FromString(body)
        self.received.append(request)
        self.metadata.append(dict(context.invocation_metadata()))
        if refusal := REFUSALS.get(request.model_name):
            context.abort(*refusal)
        if request.model_name == "silent":
            self.released.wait(30)
        answer = messages.InferResponse(model_name=request.model_name, model_version=request.model_version or "1")
        return ANSWERS.get(request.model_name, with_bytes)(answer)


def with_bytes(answer: Any) -> bytes:
    answer.outputs.add(name="class", datatype="INT64", shape=[1])
    answer.raw.append(struct.pack("<q", 2))
    return bytes(answer.SerializeToString())


def with_values(answer: Any) -> bytes:
    output = answer.outputs.add(name="class", datatype="BYTES", shape=[2])
    output.contents.bytes.extend([b"cat", b"dog"])
    return bytes(answer.SerializeToString())


def cut_short(answer: Any) -> bytes:
    answer.outputs.add(name="class", datatype="INT64", shape=[1])
    answer.raw.append(b"\x02\x00\x00")
    return bytes(answer.SerializeToString())


def cut_text(answer: Any) -> bytes:
    answer.outputs.add(name="class", datatype="BYTES", shape=[1])
    answer.raw.append(b"\x09\x00\x00\x00cat")
    return bytes(answer.SerializeToString())


def half_empty(answer: Any) -> bytes:
    answer.outputs.add(name="score", datatype="FP32", shape=[1])
    with_bytes(answer)
    return bytes(answer.SerializeToString())


def of_odd_type(answer: Any) -> bytes:
    answer.outputs.add(name="class", datatype="TEXT", shape=[1])
    answer.raw.append(b"cat")
    return bytes(answer.SerializeToString())


ANSWERS: dict[str, Callable[[Any], bytes]] = {
    "text": with_values,
    "no-outputs": lambda answer: bytes(answer.SerializeToString()),
    "garbage": lambda _: b"\xff\xff",
    "large": lambda answer: with_bytes(answer) + b"\x1a" + b"\x80\x80\x80\x03" + b"i" * (6 * 1024 * 1024),
    "cut-short": cut_short,
    "cut-text": cut_text,
    "half-empty": half_empty,
    "odd-type": of_odd_type,
    "no-text": lambda answer: with_bytes(answer) + b"\x12\x02\xff\xfe",  # a version that is no UTF-8
}
REFUSALS = {
    "not-ready": (grpc.StatusCode.UNAVAILABLE, "model not-ready is\nnot ready"),
    "gateway": (grpc.StatusCode.UNAVAILABLE, "upstream connect error. reset reason: connection timeout"),
    "picky": (grpc.StatusCode.INVALID_ARGUMENT, "expected 4 features"),
    "late": (grpc.StatusCode.DEADLINE_EXCEEDED, "the queue is full"),
    "colourful": (grpc.StatusCode.INTERNAL, "\0 is \x1b[31mred\x1b[0m"),
    "failing": (grpc.StatusCode.UNKNOWN, "x" * 1000),
}


@contextlib.contextmanager
def serving_models(credentials: Any = None) -> Iterator[ModelServer]:
    server = ModelServer(credentials)
    try:
        yield server
    finally:
        server.stop()
