"""Load balancers over replicas of one function, without the gateway: redirect, nginx, HAProxy, with health checks."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Template

from framestorm.errors import FramestormError, UsageError
from framestorm.machine import answers
from framestorm.model import files
from framestorm.platform.openfaas import gateway, services
from framestorm.platform.openfaas.layout import BIN, FUNCTIONS, HOME, HOST
from framestorm.platform.openfaas.services import Program, Service, StartedServices

FOLDER = HOME / "balancers"
STATE = HOME / "balancers.json"
POLICIES = ("round-robin", "least-connections")


@dataclass(frozen=True)
class BalancerKind:
    """One kind of balancer; `policies` maps each policy to the word for it in the balancer's configuration."""

    port: int
    ready_path: str
    policies: dict[str, str]

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}/"


KINDS = {
    "redirect": BalancerKind(8091, "_/status", {"round-robin": ""}),
    "nginx": BalancerKind(8092, "_/ready", {"round-robin": "", "least-connections": "least_conn;"}),
    "haproxy": BalancerKind(8093, "_/ready", {"round-robin": "roundrobin", "least-connections": "leastconn"}),
}


@dataclass(frozen=True)
class Balanced:
    """What a started balancer balances."""

    function: str
    policy: str
    workers: tuple[str, ...]


def start(kind: str, function: str, policy: str = POLICIES[0]) -> str:
    """Have a balancer over the function's ready replicas, in place of one of its kind over others; its URL.

    Raises:
        UsageError: the kind does not have the policy.
        FramestormError: the function has no ready replica, or the balancer did not start.
    """
    balancer = KINDS[kind]
    if policy not in balancer.policies:
        raise UsageError(f"policy {policy!r}: {kind} has {', '.join(balancer.policies)}")
    ready = sorted(replica["address"] for replica in gateway.replicas(function) if replica["state"] == "ready")
    if not ready:
        raise FramestormError(f"{function} has no ready replica; deploy it, or scale it up")
    wanted = Balanced(function, policy, tuple(ready))
    before = running().get(kind)
    if before is not None and before.process() is not None and balanced(kind) == wanted:
        return balancer.url
    stop(kind)
    (FOLDER / kind).mkdir(parents=True, exist_ok=True)
    command = _command(kind, balancer.policies[policy], ready)
    program = Program(kind, command, lambda: answers(f"{balancer.url}{balancer.ready_path}"), (balancer.port,))
    services.check_ports_free([program])
    files.write(_file(kind), wanted)
    services.start(program, StartedServices("none", running()), STATE)
    return balancer.url


def _command(kind: str, policy: str, workers: Sequence[str]) -> list[str | Path]:
    """Return how to start a balancer; its configuration is filled in."""
    listen = f"{HOST}:{KINDS[kind].port}"
    if kind == "redirect":
        return [BIN / "redirect", "-listen", listen, "-workers", ",".join(workers)]
    folder = FOLDER / kind
    if kind == "nginx":
        # A worker that refuses is left alone for a second: open-source nginx checks by the requests themselves.
        name, server = "nginx.conf", "server {worker} max_fails=1 fail_timeout=1s;"
        command: list[str | Path] = ["/usr/sbin/nginx", "-p", folder, "-e", folder / "error.log", "-c"]
    else:
        name, server = "haproxy.cfg", "server worker{number} {worker} check"
        command = ["/usr/sbin/haproxy", "-db", "-f"]
    servers = "\n".join(f"    {server.format(number=n, worker=worker)}" for n, worker in enumerate(workers, start=1))
    template = Template((FUNCTIONS / "balancers" / name).read_text())
    (folder / name).write_text(
        template.substitute(policy=policy, servers=servers, listen=listen, folder=folder),
    )
    return [*command, folder / name]


def running() -> dict[str, Service]:
    """Return the balancers that were started, dead or alive, by their kind."""
    started = services.read(STATE)
    return dict(started.services) if started else {}


def balanced(kind: str) -> Balanced:
    """Return what a started balancer balances."""
    return files.read(_file(kind), Balanced)


def _file(kind: str) -> Path:
    return FOLDER / kind / "workers.json"


def stop(*kinds: str) -> None:
    """End balancers, as far as they were started."""
    before = running()
    services.end([service for kind, service in before.items() if kind in kinds], grace_s=3.0)
    left = {kind: service for kind, service in before.items() if kind not in kinds}
    if left != before:
        files.write(STATE, StartedServices("none", left))
