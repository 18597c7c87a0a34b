"""Balancers of the replicas of one function, without the gateway: HTTP redirect, nginx, HAProxy, with health checks."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Template

from framestorm.errors import FramestormError, UsageError
from framestorm.machine import last_lines
from framestorm.platform import http
from framestorm.platform.openfaas import gateway, services, state
from framestorm.platform.openfaas.layout import BIN, FUNCTIONS, HOME, HOST, LOGS
from framestorm.platform.openfaas.services import Program
from framestorm.platform.openfaas.state import State

TEMPLATES = FUNCTIONS / "balancers"
STATE = HOME / "balancers.json"
POLICIES = ("round-robin", "least-connections")


@dataclass(frozen=True)
class Balancer:
    """One kind of balancer: its port, its policies by the word its configuration has for them, how it is started."""

    port: int
    policies: dict[str, str]
    command: Callable[[str, Path, Sequence[str]], list[str | Path]]

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}/"


def _redirect(_word: str, _folder: Path, workers: Sequence[str]) -> list[str | Path]:
    return [BIN / "redirect", "-listen", f"{HOST}:{KINDS['redirect'].port}", "-workers", ",".join(workers)]


def _nginx(word: str, folder: Path, workers: Sequence[str]) -> list[str | Path]:
    # A worker that refuses is left alone for a second: open-source nginx checks by the requests themselves.
    servers = "\n".join(f"        server {worker} max_fails=1 fail_timeout=1s;" for worker in workers)
    path = _fill("nginx.conf", folder, word, servers, KINDS["nginx"].port)
    return ["/usr/sbin/nginx", "-c", path, "-p", folder, "-e", folder / "error.log"]


def _haproxy(word: str, folder: Path, workers: Sequence[str]) -> list[str | Path]:
    servers = "\n".join(f"    server worker{n} {worker} check" for n, worker in enumerate(workers, start=1))
    return ["/usr/sbin/haproxy", "-db", "-f", _fill("haproxy.cfg", folder, word, servers, KINDS["haproxy"].port)]


KINDS = {
    "redirect": Balancer(8091, {"round-robin": ""}, _redirect),
    "nginx": Balancer(8092, {"round-robin": "", "least-connections": "least_conn;"}, _nginx),
    "haproxy": Balancer(8093, {"round-robin": "roundrobin", "least-connections": "leastconn"}, _haproxy),
}


def _fill(name: str, folder: Path, policy: str, servers: str, port: int) -> Path:
    text = Template((TEMPLATES / name).read_text()).substitute(
        policy=policy, servers=servers, listen=f"{HOST}:{port}", folder=folder
    )
    path = folder / name
    path.write_text(text)
    return path


def start(kind: str, function: str, policy: str = "round-robin") -> str:
    """Start a balancer over the function's ready replicas, in place of one of its kind; its URL.

    Raises:
        UsageError: no such balancer or policy.
        FramestormError: the function has no ready replica, or the balancer did not start.
    """
    if kind not in KINDS:
        raise UsageError(f"balancer {kind!r}: there are {', '.join(KINDS)}")
    balancer = KINDS[kind]
    if policy not in balancer.policies:
        raise UsageError(f"policy {policy!r}: {kind} has {', '.join(balancer.policies)}")
    workers = [replica["address"] for replica in gateway.replicas(function) if replica["state"] == "ready"]
    if not workers:
        raise FramestormError(f"{function} has no ready replica; deploy it, or scale it up")
    stop(kind)
    folder = HOME / "balancers" / kind
    folder.mkdir(parents=True, exist_ok=True)
    program = Program(
        f"balancer-{kind}",
        balancer.command(balancer.policies[policy], folder, workers),
        lambda: http.answers(f"{balancer.url}_/ready" if kind != "redirect" else f"{balancer.url}_/status"),
        (balancer.port,),
    )
    services.check_ports_free([program])
    pid = services.start(program)
    before = running()
    state.write(State("balancers", {**before, kind: state.of(pid)}), STATE)
    workers_file(kind).write_text(json.dumps({"function": function, "policy": policy, "workers": workers}))
    return balancer.url


def running() -> dict[str, state.Service]:
    """The balancers that were started, dead or alive."""
    started = state.read(STATE)
    return dict(started.services) if started else {}


def workers_file(kind: str) -> Path:
    """The file that says what a started balancer balances: function, policy, workers."""
    return HOME / "balancers" / kind / "workers.json"


def last_words(kind: str) -> str:
    """The end of a balancer's log, to be shown in an error."""
    return last_lines(LOGS / f"balancer-{kind}.log")


def describe(kind: str) -> str:
    """What a started balancer balances, in words."""
    content = json.loads(workers_file(kind).read_text())
    workers = content["workers"]
    return f"{KINDS[kind].url} {content['policy']} over {len(workers)} of {content['function']}: {', '.join(workers)}"


def stop(kind: str) -> None:
    """End a balancer, if it was started."""
    left = running()
    service = left.pop(kind, None)
    if service is not None:
        state.end([service], grace_s=3.0)
        state.write(State("balancers", left), STATE)


def stop_all() -> None:
    """End every balancer."""
    for kind in running():
        stop(kind)
    STATE.unlink(missing_ok=True)
