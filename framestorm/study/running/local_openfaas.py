"""The local OpenFaaS while a study runs: started if it does not run, brought to each point, left as it was found."""

import copy
import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import yaml

from framestorm.errors import FramestormError
from framestorm.openfaas import balancers, deployment, gateway, metrics, routes, services, stack, state
from framestorm.openfaas.layout import STACK
from framestorm.study.design.target import Target, stack_functions

BACKEND = "process"
MARK = "openfaas.json"
STACK_FILE = "stack.yml"
POLL_S = 0.1
ANSWERS_WITHIN_S = 30.0
# The alert looks back over 10 s, at what is scraped every 2 s.
QUIET_WITHIN_S = 40.0


@dataclass(frozen=True)
class Deployed:
    """What a function was deployed as; another deployment is needed for anything else."""

    limits: tuple[str | None, str | None]
    environment: tuple[tuple[str, str], ...]
    scale: tuple[int, int]

    @classmethod
    def of(cls, target: Target) -> "Deployed":
        environment = dict(target.environment)
        if target.concurrency_limit:
            environment["max_inflight"] = str(target.concurrency_limit)
        most = target.autoscale_max if target.autoscale else target.replicas
        return cls((target.cpu, target.memory), tuple(sorted(environment.items())), (target.replicas, most))


class LocalOpenFaas:
    """Made at a study's beginning, closed at its end; `prepare` changes only what differs from the point before."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._deployed: dict[str, Deployed] = {}
        self._balancer: tuple[Any, ...] | None = None
        self._queue_before: int | None = None
        self._parts: state.State | None = None

    def prepare(self, target: Target) -> str:
        """Bring everything to what a point wants; the URL of its function, which is ready to answer.

        Raises:
            FramestormError: something does not start, deploy, scale or answer.
        """
        self._up()
        function = str(target.function)
        if target.autoscale:
            # The load of a run before keeps the alert on for seconds; it would scale up at once in this one.
            _wait(lambda: not metrics.is_alerting(function), QUIET_WITHIN_S, f"the scaling alert of {function} to end")
        self._deploy(function, target)
        self._scale(function, target.replicas)
        self._queue(target.queue_at_once or services.QUEUE_AT_ONCE)
        url = self._route(function, target)
        _wait(lambda: routes.answers(url), ANSWERS_WITHIN_S, f"{function} to answer at {url}")
        return url

    def close(self) -> str | None:
        """Leave it as it was found; what is to be said of that, if it goes on running."""
        started = state.read()
        if started is None or self._parts is None:
            return None
        if self._is_ours(started):
            stack.down()
            (self._folder / MARK).unlink(missing_ok=True)
            return None
        if self._balancer is not None:
            balancers.stop(self._balancer[0])
        if self._queue_before is not None:
            self._queue(self._queue_before)
        return "the local OpenFaaS ran before the study, and runs on; its functions are as the last runs had them"

    def _up(self) -> None:
        before = state.read()
        is_ours = before is None or self._is_ours(before)
        started = stack.up(before.backend if before else BACKEND)
        if is_ours:
            (self._folder / MARK).write_text(json.dumps(asdict(started.services["provider"])))
        if self._parts is None or started.services["provider"] != self._parts.services["provider"]:
            self._deployed.clear()
            self._balancer = None
        self._parts = started

    def _is_ours(self, started: state.State) -> bool:
        """Whether this study started it, perhaps before it was killed and resumed."""
        try:
            mark = state.Service(**json.loads((self._folder / MARK).read_text()))
        except FileNotFoundError:
            return False
        return started.services.get("provider") == mark

    def _deploy(self, function: str, target: Target) -> None:
        wanted = Deployed.of(target)
        if self._deployed.get(function) == wanted:
            return
        there = gateway.replicas(function) if any(f["name"] == function for f in gateway.functions()) else []
        if len(there) > target.replicas:
            # A new deployment starts with as many as the one before has.
            self._scale(function, target.replicas)
        self._deployed.pop(function, None)
        file = self._folder / STACK_FILE
        file.write_text(stack_file(function, wanted))
        deployment.deploy(file, quiet=True)
        self._deployed[function] = wanted

    def _scale(self, function: str, replicas: int) -> None:
        there = gateway.replicas(function)
        if len(there) != replicas:
            gateway.scale(function, replicas)
        gateway.wait_for_replicas(function, replicas)

    def _queue(self, at_once: int) -> None:
        now = stack.queue_at_once()
        if now != at_once:
            self._queue_before = now if self._queue_before is None else self._queue_before
            stack.restart("queue-worker", at_once)
            self._parts = state.read()

    def _route(self, function: str, target: Target) -> str:
        is_balancer = target.route in balancers.KINDS
        workers = sorted(replica["address"] for replica in gateway.replicas(function)) if is_balancer else []
        wanted = (target.route, function, target.policy, *workers)
        if is_balancer and self._balancer == wanted and balancers.running()[target.route].process() is not None:
            return balancers.KINDS[target.route].url
        if self._balancer is not None:
            balancers.stop(self._balancer[0])
            self._balancer = None
        url = routes.url(target.route, function, target.policy)
        self._balancer = wanted if is_balancer else None
        return url


def stack_file(function: str, wanted: Deployed) -> str:
    """function/stack.yml with just this function, as a point wants it."""
    content = yaml.safe_load(STACK.read_text())
    entry = copy.deepcopy(stack_functions()[function])
    entry["environment"] = {**entry.get("environment", {}), **dict(wanted.environment)}
    limits = {name: value for name, value in zip(("cpu", "memory"), wanted.limits, strict=True) if value is not None}
    if limits:
        entry["limits"] = limits
    least, most = wanted.scale
    entry["labels"] = {"com.openfaas.scale.min": str(least), "com.openfaas.scale.max": str(most)}
    return yaml.safe_dump({**content, "functions": {function: entry}}, sort_keys=False)


def _wait(condition: Any, within_s: float, what: str) -> None:
    deadline_s = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > deadline_s:
            raise FramestormError(f"waited {within_s:.0f} s in vain for {what}")
        time.sleep(POLL_S)
