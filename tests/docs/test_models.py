"""The commands of docs/models.md, run as the page shows them."""

import json
import socket
import subprocess
from pathlib import Path

from framestorm import paths
from framestorm.connections import why_unreached
from framestorm.machine import wait_until
from tests.docs.test_pages import shown
from tests.model_server import serving_models
from tests.runs import RunSh
from tests.stand_in import serving

SHORT = ("-Jusers=2", "-Jramp_s=0", "-Jhold_s=1")
METADATA = {"name": "iris", "inputs": [{"name": "x", "datatype": "FP32", "shape": [-1, 4]}], "outputs": []}


def test_a_plan_is_made_for_either_way(run_sh: RunSh, tmp_path: Path) -> None:
    by_http, *others, by_grpc = (command for command in shown("models.md") if " new " in command)
    with serving({"body": json.dumps(METADATA).encode()}) as server:
        for command in others:
            name = command.split()[2]
            run_sh(command.replace("http://127.0.0.1:8080", server.origin).replace(name, f"{tmp_path}/{name}"), out="")
    assert {path.name for path in tmp_path.glob("*.body.*")} == {"iris-binary.body.bin", "iris-v1.body.json"}
    with serving({"body": json.dumps(METADATA).encode()}) as server:
        command = by_http.replace("http://127.0.0.1:8080", server.origin).replace("iris-http.jmx", f"{tmp_path}/a.jmx")
        run_sh(command, out="")
        (request,) = server.received
    assert request.headers["Host"] == "iris.default.example.com"
    assert json.loads((tmp_path / "a.body.json").read_text())["inputs"][0]["shape"] == [1, 4]
    with serving_models() as models:
        place = f"127.0.0.1:{models.port}"
        run_sh(by_grpc.replace("127.0.0.1:8081", place).replace("new iris.jmx", f"new {tmp_path}/b.jmx"), out="")
        assert (tmp_path / "b.headers").read_text() == "Host: iris.default.example.com\n"
        rows = run_sh("./run.sh", "-t", str(tmp_path / "b.jmx"), *SHORT, "-Jrequests=2").rows("samples.csv")
        assert len(rows) == len(models.received) >= 4
    assert {(row["label"], row["ok"], row["model_version"]) for row in rows} == {("request", "true", "1")}


def test_the_commands_of_the_page(run_sh: RunSh, tmp_path: Path) -> None:
    flowers = tmp_path / "flowers.jsonl"
    tensor = {"name": "x", "shape": [1, 4], "datatype": "FP32", "data": [1, 2, 3, 4]}
    flowers.write_text("".join(json.dumps({"id": name, "inputs": [tensor]}) + "\n" for name in "ab"))
    users, of_file, at_rate, _ = (command for command in shown("models.md") if " -t " in command)
    with serving_models() as models:
        for number, (command, load) in enumerate(
            [(users, SHORT), (of_file, SHORT), (at_rate.replace("-Jhold_s=60", "-Jhold_s=2"), ("-Jramp_s=0",))]
        ):
            models.received.clear()
            words = command.replace("127.0.0.1:8081", f"127.0.0.1:{models.port}").replace(
                "@flowers", f"@{tmp_path}/flowers"
            )
            done = run_sh(words.replace("p95 > 20 ms", "p95 > 20 s"), *load, out=str(number))
            rows = done.rows("samples.csv")
            assert len(rows) == len(models.received)
            assert {row["ok"] for row in rows} == {"true"}
            sent = [(request.id, request.model_version) for request in models.received]
            if number:
                assert {identity for identity, _ in sent} == {"a", "b"}
            assert {version for _, version in sent} == {"1" if number == 1 else ""}
        assert len(sent) == 40
        summary = done.json("summary.json")
        assert (summary["label"], summary["missing"], summary["verdict"]["word"]) == ("request", [], "pass")


def test_the_no_op_is_a_model(run_sh: RunSh) -> None:
    serve, run = shown("models.md")[-2:]
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    with subprocess.Popen(serve.replace("8081", port).split(), cwd=paths.ROOT) as noop:
        try:
            assert wait_until(lambda: why_unreached(f"127.0.0.1:{port}") is None, within_s=10)
            words = run.replace("8081", port).replace("=1000", "=10")
            rows = run_sh(words, "-Jexpect=$.outputs[0].data[0] == 0", "-Jramp_s=0", "-Jhold_s=1").rows("samples.csv")
        finally:
            noop.terminate()
    assert len(rows) >= 10
    assert {(row["ok"], row["model_version"]) for row in rows} == {("true", "1")}


def test_what_is_no_address_of_a_model_is_refused_before_the_load(run_sh: RunSh) -> None:
    for plan, url, why in (
        ("infer", "http://127.0.0.1:1/iris", "url must be grpc://host:port/model or grpcs://host:port/model"),
        ("infer", "grpc://127.0.0.1:1", "url must be grpc://host:port/model or grpcs://host:port/model"),
        ("requests", "grpc://127.0.0.1:1/iris", "requests.jmx sends HTTP; jmx/infer.jmx"),
    ):
        refused = run_sh("-t", f"jmx/{plan}.jmx", f"-Jurl={url}", status=2)
        assert why in refused.stderr
