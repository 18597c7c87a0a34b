"""The local OpenFaaS for the tests: started once for a module, with the real faas-cli logged in."""

import json
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
import requests

from framestorm import paths
from framestorm.platform.openfaas import config, stack
from framestorm.platform.openfaas.layout import FAAS_CLI, GATEWAY_URL, HOME, STACK

FaasCli = Callable[..., subprocess.CompletedProcess[str]]


def post(address: str, body: bytes = b"x", headers: Mapping[str, str] | None = None) -> requests.Response:
    """Call a function by its name, or an address, by the gateway unless it says otherwise."""
    if not address.startswith("http"):
        address = GATEWAY_URL + (address if address.startswith("/") else f"/function/{address}")
    return requests.post(address, data=body, headers=headers, timeout=60, allow_redirects=False)


def get(address: str) -> str:
    return requests.get(address, timeout=5).text


def listening() -> dict[int, set[str]]:
    """Of each port that a process of the local OpenFaaS has open, whoever started it, the addresses of this machine."""
    ports: dict[int, set[str]] = {}
    for each in psutil.net_connections("inet"):
        with suppress(psutil.Error):
            # Its parts, balancers and replicas work in folders of its own.
            if each.pid and not each.raddr and Path(psutil.Process(each.pid).cwd()).is_relative_to(HOME.resolve()):
                ports.setdefault(each.laddr.port, set()).add(each.laddr.ip)
    return ports


@pytest.fixture(scope="session")
def send_frame(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], dict[str, Any]]:
    """The frame client, sending the first frame of the sample video to a function: what it says of that frame."""
    cache = tmp_path_factory.mktemp("frames")

    def send(function: str) -> dict[str, Any]:
        command: list[str | Path] = [paths.CLIENT_PYTHON, paths.CLIENT / "client.py", "--frames", "1", "--cache", cache]
        command += ["--url", f"{GATEWAY_URL}/function/{function}", "--video", paths.SAMPLE_VIDEO]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        return next(line for line in lines if line["type"] == "sample")

    return send


@pytest.fixture(scope="module")
def openfaas(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaasCli]:
    """The backend that the module names, running; faas-cli as a user calls it, with a configuration of its own."""
    home = tmp_path_factory.mktemp("faas-cli")
    environment = {**os.environ, "OPENFAAS_CONFIG": str(home), "OPENFAAS_URL": GATEWAY_URL}

    def run(*words: str | Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
        # In the current folder it would look for, and take, a stack.yml.
        return subprocess.run(
            [FAAS_CLI, *words], input=stdin, capture_output=True, text=True, check=False, timeout=60, cwd=home,
            env=environment,
        )  # fmt: skip

    stack.up(getattr(request.module, "BACKEND", "process"))
    try:
        assert run("login", "--password-stdin", stdin=config.password()).returncode == 0
        yield run
    finally:
        stack.down()


@pytest.fixture(scope="module")
def deploy(openfaas: FaasCli) -> Callable[..., None]:
    """Deploy a function of the stack."""

    def run(name: str, *words: str) -> None:
        done = openfaas("deploy", "-f", STACK, "--filter", name, *words)
        assert done.returncode == 0 and "Deployed. 202" in done.stdout, done.stdout + done.stderr

    return run


def replicas(count: int) -> tuple[str, ...]:
    """Words that deploy a function with so many replicas, which are not scaled."""
    return tuple(word for end in ("min", "max") for word in ("--label", f"com.openfaas.scale.{end}={count}"))
