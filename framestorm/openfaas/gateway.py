"""What this kit asks of the gateway and the provider itself; for everything else there is faas-cli."""

import base64
import json
import time
import urllib.error
import urllib.request
from typing import Any

from framestorm.errors import FramestormError
from framestorm.openfaas import config
from framestorm.openfaas.layout import GATEWAY_URL, PROVIDER_URL, USER

TIMEOUT_S = 30.0
POLL_S = 0.02


def call(method: str, url: str, content: Any = None) -> Any:
    """Send a request with the gateway's credentials; the JSON of the answer, None for an empty one.

    Raises:
        FramestormError: it was refused, with the reason given, or nothing answered.
    """
    body = None if content is None else json.dumps(content).encode()
    request = urllib.request.Request(url, data=body, method=method)  # noqa: S310 - an address of our own
    word = base64.b64encode(f"{USER}:{config.password()}".encode()).decode()
    request.add_header("Authorization", f"Basic {word}")
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:  # noqa: S310
            text = answer.read()
    except urllib.error.HTTPError as error:
        reason = error.read().decode(errors="replace").strip()
        raise FramestormError(f"{method} {url}: status {error.code}: {reason}") from None
    except OSError as error:
        raise FramestormError(f"{method} {url}: {error}; is it running? see ./run.sh target status") from None
    return json.loads(text) if text.strip() else None


def functions() -> list[dict[str, Any]]:
    """All functions, asked of the provider: the gateway cannot list them while Prometheus is down."""
    found = call("GET", f"{PROVIDER_URL}/system/functions")
    return list(found or [])


def scale(name: str, replicas: int) -> None:
    """Set a function's number of replicas, through the gateway."""
    call("POST", f"{GATEWAY_URL}/system/scale-function/{name}", {"serviceName": name, "replicas": replicas})


def replicas(name: str = "") -> list[dict[str, Any]]:
    """Every replica (of one function) with state and address, as the provider sees it."""
    return list(call("GET", f"{PROVIDER_URL}/system/replicas?function={name}"))


def wait_for_replicas(name: str, count: int, timeout_s: float = TIMEOUT_S) -> list[dict[str, Any]]:
    """The function's replicas once exactly so many are there, all of them ready.

    Raises:
        FramestormError: it took too long.
    """
    deadline_s = time.monotonic() + timeout_s
    while True:
        seen = replicas(name)
        if len(seen) == count and all(replica["state"] == "ready" for replica in seen):
            return seen
        if time.monotonic() > deadline_s:
            states = ", ".join(f"{replica['name']} {replica['state']}" for replica in seen) or "none"
            raise FramestormError(f"{name} has not {count} ready replicas after {timeout_s:.0f} s, but: {states}")
        time.sleep(POLL_S)
