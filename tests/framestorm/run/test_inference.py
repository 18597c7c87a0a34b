"""An example request for a model, by what a server of the Open Inference Protocol says of it."""

import json
import shlex
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from framestorm import paths
from framestorm.errors import FramestormError, UsageError
from framestorm.run import new_plan
from framestorm.run.inference import curl_command, curl_command_v1
from tests.in_thread import in_thread

Serve = Callable[..., str]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """A server that says this of its model; returns its address, and keeps the headers of the request."""

    def start(said: Any, status: int = 200, seen: dict[str, str] | None = None, location: str = "") -> str:
        class MetadataHandler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                (seen if seen is not None else {}).update({"path": self.path, **self.headers})
                self.send_response(status)
                if location:
                    self.send_header("Location", location)
                self.end_headers()
                self.wfile.write(said if isinstance(said, bytes) else json.dumps(said).encode())

            def log_message(self, *_: object) -> None:
                pass

        server = servers.enter_context(in_thread(ThreadingHTTPServer(("127.0.0.1", 0), MetadataHandler)))
        return f"http://127.0.0.1:{server.server_port}"

    with ExitStack() as servers:
        yield start


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
    command, _ = curl_command(f"{host}/v2/models/iris/infer", headers)
    assert (seen["path"], seen["Host"], seen["Authorization"]) == ("/v2/models/iris", "iris.example.com", "Bearer t0")
    assert shlex.split(command)[-1] == f"{host}/v2/models/iris/infer"
    assert "t0" not in command
    assert body_of(command) == [
        {**tensor("FP32", 1, 4), "data": [0.1, 0.2, 0.3, 0.1]},
        {**tensor("BYTES", 1, name="text"), "data": ["text"]},
        {**tensor("BOOL", 2, 2, name="flags"), "data": [True, False, True, False]},
    ]


@pytest.mark.parametrize("datatype", ["FP16", "BF16"])
def test_a_type_that_json_does_not_have_is_refused(serve: Serve, datatype: str) -> None:
    host = serve({"inputs": [tensor("FP32", 1), tensor(datatype, 2, name="half")]})
    with pytest.raises(UsageError, match=f"input half is {datatype}, .*: add --binary"):
        curl_command(f"{host}/v2/models/a", [])


def test_binary_inputs_follow_the_json(serve: Serve) -> None:
    inputs = [
        tensor("FP32", 2),
        tensor("BYTES", 1, name="text"),
        tensor("BF16", 1, name="b"),
        tensor("BOOL", 2, name="f"),
    ]
    host = serve({"inputs": inputs})
    command, body = curl_command(f"{host}/v2/models/a", [], is_binary=True)
    length = int(command.partition("Inference-Header-Content-Length: ")[2].partition("'")[0])
    described = json.loads(body[:length])["inputs"]
    assert body[length:].hex(" ") == "cd cc cc 3d cd cc 4c 3e 04 00 00 00 74 65 78 74 cc 3d 01 00"
    assert [each["parameters"]["binary_data_size"] for each in described] == [8, 8, 2, 2]
    assert not any("data" in each for each in described)


@pytest.mark.parametrize(
    ("inputs", "instance"),
    [
        ([tensor("FP32", -1, 2)], [0.1, 0.2]),
        ([tensor("INT8", -1, 2, 2)], [[1, 2], [3, 1]]),
        ([tensor("FP32", -1, 1), tensor("BYTES", -1, name="text")], {"x": [0.1], "text": "text"}),
    ],
)
def test_v1_takes_an_instance_of_what_v2_says(serve: Serve, inputs: list[Any], instance: Any) -> None:
    seen: dict[str, str] = {}
    host = serve({"inputs": inputs}, seen=seen)
    *_, body, url = shlex.split(curl_command_v1(f"{host}/v1/models/iris", ["X-A: 1"]))
    assert (json.loads(body), url) == ({"instances": [instance]}, f"{host}/v1/models/iris:predict")
    assert (seen["path"], seen["X-A"]) == ("/v2/models/iris", "1")


def test_a_server_without_v2_is_told_what_to_do(serve: Serve) -> None:
    with pytest.raises(FramestormError, match=r"V1 does not tell.*--curl .*instances.*/v1/models/iris:predict"):
        curl_command_v1(f"{serve({}, 404)}/v1/models/iris:predict", [])
    with pytest.raises(UsageError, match="expected the URL of a model"):
        curl_command_v1("http://h:1/v2/models/iris", [])


def test_a_redirect_is_not_followed_as_headers_are_not_for_other_hosts(serve: Serve) -> None:
    seen: dict[str, str] = {}
    other = serve({"inputs": [tensor("FP32", 1)]}, seen=seen)
    host = serve({}, 302, location=f"{other}/v2/models/iris")
    with pytest.raises(FramestormError, match=f"status 302, Location '{other}/v2/models/iris'\\): give"):
        curl_command(f"{host}/v2/models/iris", ["X-Key: secret"])
    assert seen == {}


@pytest.mark.parametrize("location", ["/else", "http://[::1", "http://caf\u00e9/"])
def test_a_redirect_is_shown_as_it_came(serve: Serve, location: str) -> None:
    with pytest.raises(FramestormError) as raised:
        curl_command(f"{serve({}, 307, location=location)}/v2/models/iris", [])
    assert f"status 307, Location {location!r}" in str(raised.value)


@pytest.mark.parametrize("name", ["a,b", "it's", "${x}", "$(id)", "ü\n\\", "{a,b}", "@file", 'a"b', ""])
def test_any_name_of_an_input_arrives(serve: Serve, name: str, tmp_path: Path) -> None:
    command, _ = curl_command(f"{serve({'inputs': [tensor('INT8', 1, name=name)]})}/v2/models/iris", [])
    *_, body = new_plan.write(tmp_path / "iris.jmx", command, paths.JMX / "requests.jmx")
    assert json.loads(body.read_text())["inputs"] == [{**tensor("INT8", 1, name=name), "data": [1]}]


def test_a_version_of_a_model_is_asked_itself(serve: Serve) -> None:
    seen: dict[str, str] = {}
    host = serve({"inputs": [tensor("INT64", 3)]}, seen=seen)
    assert curl_command(f"{host}/v2/models/a/versions/2", [])[0].endswith("/v2/models/a/versions/2/infer")
    assert seen["path"] == "/v2/models/a/versions/2"


@pytest.mark.parametrize("url", ["http://h:1/", "http://h:1/v1/models/iris:predict", "http://h:1/v2/models/"])
def test_what_is_no_address_of_a_model_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="expected the URL of a model"):
        curl_command(url, [])


@pytest.mark.parametrize(
    ("said", "status", "why"),
    [
        ({"error": "model iris is not ready"}, 503, "status 503, and no inputs.*not ready"),
        (b"<html>", 200, r"no inputs of a model \(the answer: Invalid JSON.*'<html>'"),
        (b"", 200, r"no inputs of a model \(the answer: Invalid JSON.*: ''"),
        (b"[" * 100_000, 200, "no inputs of a model"),
        (b"not found", 404, "status 404, and no inputs of a model: 'not found'"),
        ({"inputs": []}, 200, "no inputs of a model"),
        ({"inputs": [{"name": "x"}]}, 200, r"no inputs of a model \(inputs.0.datatype: Field required"),
        ({"inputs": [tensor("FP32", None, 4)]}, 200, r"\(inputs.0.shape.0: Input should be a valid integer"),
        (["x"], 200, "no inputs of a model"),
        ({"inputs": [tensor("TEXT", 1)]}, 200, "type TEXT, which is none of V2's"),
        ({"inputs": [tensor("FP32", 3, 4000, 4000)]}, 200, "48,000,000 elements"),
        ({"inputs": [tensor("FP32", "a")]}, 200, "no inputs of a model"),
    ],
)
def test_what_says_no_inputs_is_told(serve: Serve, said: Any, status: int, why: str) -> None:
    with pytest.raises(FramestormError, match=why):
        curl_command(f"{serve(said, status)}/v2/models/iris", [])
