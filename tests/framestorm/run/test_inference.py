"""An example request for a model, by what a server of the Open Inference Protocol says of it."""

import json
import shlex
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from framestorm.errors import FramestormError, UsageError
from framestorm.run.inference import curl_command

Serve = Callable[..., str]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """A server that says this of its model; returns its address, and keeps the headers of the request."""
    servers: list[ThreadingHTTPServer] = []

    def start(said: Any, status: int = 200, seen: dict[str, str] | None = None) -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                (seen if seen is not None else {}).update({"path": self.path, **self.headers})
                self.send_response(status)
                self.end_headers()
                self.wfile.write(said if isinstance(said, bytes) else json.dumps(said).encode())

            def log_message(self, *_: object) -> None:
                pass

        servers.append(ThreadingHTTPServer(("127.0.0.1", 0), Handler))
        threading.Thread(target=servers[-1].serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{servers[-1].server_port}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def tensor(datatype: str, *shape: object, name: str = "x") -> dict[str, Any]:
    return {"name": name, "datatype": datatype, "shape": list(shape)}


def body_of(command: str) -> list[dict[str, Any]]:
    words = shlex.split(command)
    return list(json.loads(words[words.index("--json") + 1])["inputs"])


def test_every_input_has_an_example(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "t0")
    seen: dict[str, str] = {}
    inputs = [tensor("FP32", -1, 4), tensor("BYTES", 1, name="text"), tensor("BOOL", 2, 2, name="flags")]
    host = serve({"name": "iris", "inputs": inputs, "outputs": []}, seen=seen)
    headers = ["Host: iris.example.com", "Authorization: Bearer ${env:TOKEN}"]
    command = curl_command(f"{host}/v2/models/iris/infer", headers)
    assert (seen["path"], seen["Host"], seen["Authorization"]) == ("/v2/models/iris", "iris.example.com", "Bearer t0")
    assert shlex.split(command)[-1] == f"{host}/v2/models/iris/infer"
    assert "t0" not in command
    assert body_of(command) == [
        {**tensor("FP32", 1, 4), "data": [0.1, 0.2, 0.3, 0.1]},
        {**tensor("BYTES", 1, name="text"), "data": ["text"]},
        {**tensor("BOOL", 2, 2, name="flags"), "data": [True, False, True, False]},
    ]


def test_a_version_of_a_model_is_asked_itself(serve: Serve) -> None:
    seen: dict[str, str] = {}
    host = serve({"inputs": [tensor("INT64", 3)]}, seen=seen)
    assert curl_command(f"{host}/v2/models/a/versions/2", []).endswith("/v2/models/a/versions/2/infer")
    assert seen["path"] == "/v2/models/a/versions/2"


@pytest.mark.parametrize("url", ["http://h:1/", "http://h:1/v1/models/iris:predict", "http://h:1/v2/models/"])
def test_what_is_no_address_of_a_model_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="expected the URL of a model"):
        curl_command(url, [])


@pytest.mark.parametrize(
    ("said", "status", "why"),
    [
        ({"error": "model iris is not ready"}, 503, "status 503, and no inputs.*not ready"),
        (b"<html>", 200, "no inputs of a model: '<html>'"),
        ({"inputs": []}, 200, "no inputs of a model"),
        ({"inputs": [{"name": "x"}]}, 200, "no inputs of a model"),
        (["x"], 200, "no inputs of a model"),
        ({"inputs": [tensor("TEXT", 1)]}, 200, "type TEXT, which is none of V2's"),
        ({"inputs": [tensor("FP32", 3, 4000, 4000)]}, 200, "48,000,000 elements"),
        ({"inputs": [tensor("FP32", "a")]}, 200, "no inputs of a model"),
    ],
)
def test_what_says_no_inputs_is_told(serve: Serve, said: Any, status: int, why: str) -> None:
    with pytest.raises(FramestormError, match=why):
        curl_command(f"{serve(said, status)}/v2/models/iris", [])
