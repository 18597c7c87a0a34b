"""A model of KServe's own server, called in each way that `./run.sh new` has a plan for."""

import json
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from framestorm import paths
from framestorm.errors import FramestormError
from framestorm.machine import request, wait_until
from tests.runs import RunSh

SHORT = ("-Jusers=2", "-Jramp_s=0", "-Jhold_s=1")
FIRST, LAST = [5.1, 3.5, 1.4, 0.2], [5.9, 3.0, 5.1, 1.8]


class Served(NamedTuple):
    http: str
    grpc: str


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The server of tests/kserve/serve.py."""
    log = tmp_path_factory.mktemp("kserve") / "server.log"
    with socket.socket() as http, socket.socket() as grpc:
        for each in (http, grpc):
            each.bind(("127.0.0.1", 0))
        ports = [str(each.getsockname()[1]) for each in (http, grpc)]
    command = [paths.LOCAL / "kserve-venv/bin/python", Path(__file__).with_name("serve.py"), *ports]
    with log.open("w") as output, subprocess.Popen(command, stdout=output, stderr=output) as server:
        try:
            url = f"http://127.0.0.1:{ports[0]}"
            assert wait_until(lambda: server.poll() is not None or is_ready(url), within_s=60), "not ready within 60 s"
            assert server.poll() is None, log.read_text()
            yield Served(url, f"127.0.0.1:{ports[1]}")
        finally:
            server.kill()


def is_ready(url: str) -> bool:
    try:
        return request("GET", f"{url}/v2/models/flowers/ready").status_code == 200
    except FramestormError:
        return False


@pytest.mark.parametrize(
    ("words", "files"),
    [
        (["--kserve-v2", "{http}/v2/models/flowers"], {"headers", "body.json"}),
        (["--kserve-v2", "{http}/v2/models/flowers", "--binary"], {"headers", "body.bin"}),
        (["--kserve-v1", "{http}/v1/models/flowers"], {"headers", "body.json"}),
        (["--kserve-v2", "grpc://{grpc}/flowers"], set()),
    ],
    ids=["V2", "V2 binary", "V1", "gRPC"],
)
def test_the_example_of_each_way_is_answered(
    run_sh: RunSh, served: Served, tmp_path: Path, words: list[str], files: set[str]
) -> None:
    plan = tmp_path / "flowers.jmx"
    run_sh("new", str(plan), *(word.format(**served._asdict()) for word in words), out="")
    assert {path.name.partition(".")[2] for path in tmp_path.glob("flowers.*")} == {"jmx", *files}
    rows = run_sh("-t", str(plan), *SHORT).rows("samples.csv")
    assert {(row["label"], row["ok"]) for row in rows} == {("request", "true")}
    assert len(rows) > 2


@pytest.mark.parametrize("is_raw", ["true", "false"])
def test_the_model_gets_what_was_sent_by_grpc(run_sh: RunSh, served: Served, tmp_path: Path, is_raw: str) -> None:
    file = tmp_path / "flowers.json"
    tensor = {"name": "x", "shape": [2, 4], "datatype": "FP32", "data": [FIRST, LAST]}
    file.write_text(json.dumps({"inputs": [tensor]}))
    words = ("-t", "jmx/infer.jmx", f"-Jurl=grpc://{served.grpc}/flowers", f"-Jinputs=@{file}", f"-Jraw={is_raw}")
    right = run_sh(*words, "-Jexpect=$.outputs[0].data[1] == 2", *SHORT, out="right")
    assert {row["ok"] for row in right.rows("samples.csv")} == {"true"}
    wrong = run_sh(*words, "-Jexpect=$.outputs[0].data[0] == 2", *SHORT, out="wrong", status=3)
    assert {row["cause"] for row in wrong.rows("samples.csv")} == {"expect-not-met"}


def test_a_model_that_is_missing_is_told(run_sh: RunSh, served: Served, tmp_path: Path) -> None:
    rows = run_sh("-t", "jmx/infer.jmx", f"-Jurl=grpc://{served.grpc}/roses", *SHORT, status=3).rows("samples.csv")
    assert {row["cause"] for row in rows} == {"grpc-not-found: Model with name roses does not exist."}
    refused = run_sh("new", str(tmp_path / "a.jmx"), "--kserve-v1", f"{served.http}/v1/models/roses", out="", status=1)
    assert "V1 does not tell the inputs of a model" in refused.stderr and "instances" in refused.stderr
    assert not list(tmp_path.glob("a.*"))
