"""What this kit asks of the gateway and the provider: by their API, and deployments by the real faas-cli."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NotRequired, TypedDict

from framestorm.errors import FramestormError, UsageError
from framestorm.machine import request, wait_until
from framestorm.platform.openfaas import config, services
from framestorm.platform.openfaas.layout import (
    FAAS_CLI,
    FAAS_CLI_CONFIG,
    GATEWAY_URL,
    PROVIDER_URL,
    STACK_CHECK,
    USER,
)

READY_WITHIN_S = 30.0
POLL_S = 0.02


class Function(TypedDict):
    """A deployed function, as the provider lists it."""

    name: str
    image: str
    replicas: int
    availableReplicas: int


class Replica(TypedDict):
    """A replica of a function, as the provider lists it; it has an address and a process once it has started."""

    function: str
    name: str
    state: str
    in_flight: int
    address: NotRequired[str]
    pid: NotRequired[int]


def call(method: str, url: str, content: Any = None) -> Any:
    """Send a request with the gateway's credentials; the JSON of the answer, None for an empty one.

    Raises:
        FramestormError: it was refused, with the reason given, or nothing answered.
    """
    answer = request(method, url, content=content, auth=(USER, config.password()))
    if not answer.ok:
        raise FramestormError(f"{method} {url}: status {answer.status_code}: {answer.text.strip()}")
    return answer.json() if answer.text.strip() else None


def functions() -> list[Function]:
    """Return all functions, asked of the provider: the gateway cannot list them while Prometheus is down."""
    listed: list[Any] = call("GET", f"{PROVIDER_URL}/system/functions") or []
    # A number that is 0 is left out.
    return [{"replicas": 0, "availableReplicas": 0} | each for each in listed]


def scale(name: str, replicas: int) -> None:
    """Set a function's number of replicas, through the gateway."""
    call("POST", f"{GATEWAY_URL}/system/scale-function/{name}", {"serviceName": name, "replicas": replicas})


def replicas(name: str = "") -> list[Replica]:
    """Return every replica (of one function) with state and address, as the provider sees it."""
    return list(call("GET", f"{PROVIDER_URL}/system/replicas?function={name}"))


def wait_for_replicas(name: str, count: int, timeout_s: float = READY_WITHIN_S) -> list[Replica]:
    """Wait until the function has exactly `count` replicas, all of them ready; returns them."""
    latest: list[Replica] = []

    def is_done() -> bool:
        latest[:] = replicas(name)
        return len(latest) == count and all(replica["state"] == "ready" for replica in latest)

    if not wait_until(is_done, timeout_s, POLL_S):
        states = ", ".join(f"{replica['name']} {replica['state']}" for replica in latest) or "none"
        raise FramestormError(f"{name} does not have {count} ready replicas after {timeout_s:.0f} s; found: {states}")
    return latest


def check(stack_file: Path) -> None:
    """Check a stack file, of which faas-cli leaves out in silence what it does not know.

    Raises:
        UsageError: the file is wrong.
    """
    checked = subprocess.run([STACK_CHECK, stack_file], capture_output=True, text=True, check=False)
    if checked.returncode != 0:
        raise UsageError(f"nothing was deployed:\n{checked.stderr.rstrip()}")


def deploy(stack_file: Path, words: Sequence[str] = (), quiet: bool = False) -> None:
    """Check a stack file, then deploy it by faas-cli on the local OpenFaaS.

    Args:
        stack_file: a file in the format of faas-cli.
        words: further options of `faas-cli deploy`.
        quiet: print the output of faas-cli only if it fails.

    Raises:
        UsageError: the file is wrong; nothing was deployed.
        FramestormError: there is no OpenFaaS, or it refused.
    """
    if services.read() is None:
        raise FramestormError("the local OpenFaaS was not started; start it by: ./run.sh target openfaas")
    check(stack_file)
    login = ["login", "-g", GATEWAY_URL, "--username", USER, "--password-stdin"]
    faas_cli(login, config.password(), quiet=True)
    faas_cli(["deploy", "-f", str(stack_file), "-g", GATEWAY_URL, *words], "", quiet)


def faas_cli(words: Sequence[str], stdin: str = "", quiet: bool = False) -> None:
    """Call faas-cli, with logins that are kept apart from the user's own."""
    sys.stdout.flush()
    done = subprocess.run(
        [FAAS_CLI, *words],
        input=stdin,
        text=True,
        env={**os.environ, "OPENFAAS_CONFIG": str(FAAS_CLI_CONFIG)},
        stdout=subprocess.PIPE if quiet else None,
        stderr=subprocess.STDOUT if quiet else None,
        check=False,
    )
    if done.returncode != 0:
        output = f":\n{done.stdout.strip()}" if quiet else ", see above"
        raise FramestormError(f"faas-cli {words[0]} failed: status {done.returncode}{output}")
