"""The local OpenFaaS for the tests: started once for all of them, with the real faas-cli logged in."""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from framestorm import paths
from framestorm.platform.openfaas import config, stack
from framestorm.platform.openfaas.layout import FAAS_CLI, GATEWAY_URL

FaasCli = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def faas_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("faas-cli")


@pytest.fixture(scope="session")
def run_faas_cli(faas_home: Path) -> FaasCli:
    """faas-cli as a user calls it, with a configuration of its own."""

    def run(*words: str | Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [FAAS_CLI, *words],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            # Without the second it looks for, and takes, a stack.yml in the current folder.
            cwd=faas_home,
            env={**os.environ, "OPENFAAS_CONFIG": str(faas_home), "OPENFAAS_URL": GATEWAY_URL},
        )

    return run


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
def openfaas(run_faas_cli: FaasCli) -> Iterator[FaasCli]:
    """The process backend, running and logged in to; ended after the module."""
    stack.up("process")
    try:
        assert run_faas_cli("login", "--password-stdin", stdin=config.password()).returncode == 0
        yield run_faas_cli
    finally:
        stack.down()
