"""The ways to a function of the local OpenFaaS: their addresses, and what of it an address leads to."""

import json
import urllib.error
import urllib.request
from urllib.parse import urlsplit

from framestorm.errors import FramestormError
from framestorm.openfaas import balancers, gateway, stack, state
from framestorm.openfaas.layout import GATEWAY_PORT, GATEWAY_URL, HOST, PROVIDER_PORT, PROVIDER_URL

LOOPBACK = (HOST, "localhost")
PROBE_TIMEOUT_S = 5.0


def url(route: str, function: str, policy: str = balancers.POLICIES[0]) -> str:
    """The address of a function by a route; a balancer is started over the ready replicas that there are now.

    Args:
        route: gateway, queue, provider, direct (the one replica), or a kind of balancer.
        function: its name.
        policy: of a balancer.

    Raises:
        FramestormError: there is not the one replica, or the balancer does not start.
    """
    if route == "gateway":
        return f"{GATEWAY_URL}/function/{function}"
    if route == "queue":
        return f"{GATEWAY_URL}/async-function/{function}"
    if route == "provider":
        return f"{PROVIDER_URL}/function/{function}"
    if route != "direct":
        return balancers.start(route, function, policy)
    ready = [replica["address"] for replica in gateway.replicas(function) if replica["state"] == "ready"]
    if len(ready) != 1:
        raise FramestormError(f"{function} has {len(ready)} ready replicas; direct is the address of the one")
    return f"http://{ready[0]}/"


def answers(address: str) -> bool:
    """Whether a function can be reached by an address of `url`: its replica's health is asked, no request is made."""
    health = f"{address.replace('/async-function/', '/function/').rstrip('/')}/_/health"
    try:
        with urllib.request.urlopen(health, timeout=PROBE_TIMEOUT_S) as answer:  # noqa: S310 - an address of our own
            return bool(answer.status // 100 == 2)
    except (urllib.error.URLError, OSError):
        return False


def leads_here(address: str) -> bool:
    """Whether an address leads to a function of the local OpenFaaS, by whichever route."""
    parts = urlsplit(address)
    if state.read() is None or parts.hostname is None:
        return False
    if parts.hostname in LOOPBACK and parts.port in (GATEWAY_PORT, PROVIDER_PORT):
        return True
    return past_gateway(address) is not None


def past_gateway(address: str) -> str | None:
    """The function behind the address of a balancer or of a replica, which does not name it; None of any other."""
    parts = urlsplit(address)
    kind = _balancer(address)
    if kind is not None:
        content = json.loads(balancers.workers_file(kind).read_text())
        return str(content["function"])
    try:
        return next((each["function"] for each in gateway.replicas() if each.get("address") == parts.netloc), None)
    except FramestormError:
        return None


def trouble(address: str) -> str | None:
    """Why a run by an address cannot be trusted any more: a part, or the balancer on its way, has ended."""
    kind = _balancer(address)
    if kind is not None and balancers.running()[kind].process() is None:
        return f"the balancer {kind} ended during the run; {balancers.last_words(kind)}"
    return stack.ended_parts()


def _balancer(address: str) -> str | None:
    parts = urlsplit(address)
    started = balancers.running() if parts.hostname in LOOPBACK else {}
    return next((kind for kind in started if balancers.KINDS[kind].port == parts.port), None)
