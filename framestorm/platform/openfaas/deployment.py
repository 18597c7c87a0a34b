"""Deploying to the local OpenFaaS by the real faas-cli."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from framestorm.errors import FramestormError, UsageError
from framestorm.platform.openfaas import config, state
from framestorm.platform.openfaas.layout import FAAS_CLI, FAAS_CLI_CONFIG, GATEWAY_URL, STACK_CHECK, USER


def deploy(stack_file: Path, words: Sequence[str] = (), quiet: bool = False) -> None:
    """Check a stack file, then deploy it.

    Args:
        stack_file: as faas-cli reads it.
        words: further options of `faas-cli deploy`.
        quiet: its output only where it fails.

    Raises:
        UsageError: the file is wrong; nothing was deployed.
        FramestormError: there is no OpenFaaS, or it refused.
    """
    if state.read() is None:
        raise FramestormError("the local OpenFaaS was not started; start it by: ./run.sh target openfaas")
    # faas-cli leaves out in silence what it does not know.
    checked = subprocess.run([STACK_CHECK, stack_file], capture_output=True, text=True, check=False)
    if checked.returncode != 0:
        raise UsageError(f"nothing was deployed:\n{checked.stderr.rstrip()}")
    _call(["login", "-g", GATEWAY_URL, "--username", USER, "--password-stdin"], config.password(), quiet=True)
    _call(["deploy", "-f", str(stack_file), "-g", GATEWAY_URL, *words], "", quiet)


def _call(words: Sequence[str], stdin: str, quiet: bool) -> None:
    sys.stdout.flush()
    environment = {**os.environ, "OPENFAAS_CONFIG": str(FAAS_CLI_CONFIG)}
    done = subprocess.run(
        [FAAS_CLI, *words],
        input=stdin,
        text=True,
        env=environment,
        stdout=subprocess.PIPE if quiet else None,
        stderr=subprocess.STDOUT if quiet else None,
        check=False,
    )
    if done.returncode != 0:
        output = f":\n{done.stdout.strip()}" if quiet else ", see above"
        raise FramestormError(f"faas-cli {words[0]} failed: status {done.returncode}{output}")
