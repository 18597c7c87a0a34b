"""OpenFaaS as a platform: the local one, started if a study needs it and restored at the end, or one elsewhere."""

import copy
import io
import os
import re
import urllib.parse
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Literal, Self, TypedDict

from pydantic import Field
from ruamel.yaml import YAML

from framestorm.endpoint import check_reachable
from framestorm.errors import FramestormError
from framestorm.machine import LOOPBACK, answers, last_lines, own_addresses, wait_until
from framestorm.model import files
from framestorm.model.study import Flag, Meaning, Text
from framestorm.platform.base import (
    DEPLOYED,
    MARK,
    Check,
    Count,
    CountOrNone,
    Platform,
    Reading,
    SettingError,
    Site,
    TargetSettings,
    attempt,
)
from framestorm.platform.openfaas import balancers, config, gateway, metrics, parts, services, stack
from framestorm.platform.openfaas.layout import GATEWAY_PORT, GATEWAY_URL, LOGS, PROVIDER_PORT, PROVIDER_URL, STACK
from framestorm.platform.openfaas.services import Service, StartedServices
from framestorm.platform.quantities import Bytes, Cores
from framestorm.setup.pieces import Piece

BACKEND = "process"
ANSWERS_WITHIN_S = 30.0
HEALTH_WITHIN_S = 5.0
# The alert uses the last 10 s of metrics that are scraped every 2 s.
QUIET_WITHIN_S = 40.0
ALERT_ENDS_AFTER_S = 15.0  # about: it is by the requests of 10 s
# These routes also reach functions of a gateway elsewhere, which are used as they are there: other settings than the
# route and the function's name are only for the local OpenFaaS.
GATEWAY_ROUTES = ("gateway", "queue")
OF_ANY_GATEWAY = ("kind", "function", "route", "autoscale_max")


class OpenFaasSettings(TargetSettings):
    """Settings of a function of the local OpenFaaS, or of one elsewhere, which stays unchanged."""

    kind: Literal["openfaas"] = "openfaas"
    function: Text = Field(description="A function of function/stack.yml.")
    replicas: Count = Field(1, description="How many replicas there are at the start of a run.")
    route: Literal["gateway", "queue", "provider", "direct", "redirect", "nginx", "haproxy"] = Field(
        "gateway",
        description="The path to the function: through the gateway, its queue, the provider without the gateway, the "
        "one replica directly (direct), or a balancer over the replicas.",
    )
    policy: Literal["round-robin", "least-connections"] = Field(
        "round-robin", description="How a balancer chooses a replica."
    )
    autoscale: Flag = Field(
        False,
        description="true: OpenFaaS's alert adds replicas up to autoscale_max; false: the number of replicas stays.",
    )
    autoscale_max: Count = Field(5, description="Maximum number of replicas for autoscaling.")
    concurrency_limit: CountOrNone = Field(
        0, description="Maximum number of requests in flight in a replica; others get status 429; 0: no limit."
    )
    cpu: Cores | None = Field(None, description="CPU limit of a replica: cores or thousandths (250m).")
    memory: Bytes | None = Field(None, description="Memory limit of a replica (512Mi).")
    environment: Annotated[dict[str, str], Meaning("a mapping")] = Field(
        {}, description="Environment variables of the function."
    )
    queue_at_once: Count | None = Field(None, description="Maximum number of requests in flight from the queue-worker.")

    @property
    def settle_s(self) -> float:
        return ALERT_ENDS_AFTER_S if self.autoscale else 0.0

    def check(self) -> None:
        functions = tuple(stack_functions())
        if self.function not in functions:
            what = f"unknown function {self.function!r}: function/stack.yml does not have it"
            raise SettingError("function", what, functions, self.function)
        if self.route == "direct" and self.replicas != 1:
            raise SettingError("route", f"route direct is the address of one replica, but replicas is {self.replicas}")
        if self.autoscale and self.route not in GATEWAY_ROUTES:
            what = f"autoscale with route {self.route}: OpenFaaS scales by the requests that its gateway counts"
            raise SettingError("autoscale", what)
        if self.autoscale and self.replicas > self.autoscale_max:
            what = f"{self.replicas} replicas are more than autoscale_max, {self.autoscale_max}"
            raise SettingError("replicas", what)
        if self.route in balancers.KINDS and self.policy not in balancers.KINDS[self.route].policies:
            policies = tuple(balancers.KINDS[self.route].policies)
            raise SettingError("policy", f"{self.route} has no policy {self.policy!r}", policies, self.policy)

    def refused_by_gateway_elsewhere(self, usual: Mapping[str, object]) -> str | None:
        """Return which of the settings cannot be applied at a gateway elsewhere, in words; None if all can.

        Args:
            usual: the study's own target: settings that are the same in all points are used as they are there.
        """
        if self.route not in GATEWAY_ROUTES:
            return f"route {self.route}"
        for name, field in type(self).model_fields.items():
            expected = usual.get(name, field.default)
            if isinstance(expected, str) and expected.startswith("="):
                expected = field.default
            value = getattr(self, name)
            if name not in OF_ANY_GATEWAY and value != expected:
                return f"{name} {value}"
        return None

    def stack_file(self) -> str:
        """function/stack.yml with only this function and these settings."""
        yaml = YAML(typ="safe", pure=True)
        content = yaml.load(STACK)
        entry = copy.deepcopy(stack_functions()[self.function])
        entry["environment"] = {**entry.get("environment", {}), **self.environment}
        if self.concurrency_limit:
            entry["environment"]["max_inflight"] = str(self.concurrency_limit)
        limits = {name: value for name, value in (("cpu", self.cpu), ("memory", self.memory)) if value is not None}
        if limits:
            entry["limits"] = limits
        most = self.autoscale_max if self.autoscale else self.replicas
        entry["labels"] = {"com.openfaas.scale.min": str(self.replicas), "com.openfaas.scale.max": str(most)}
        out = io.StringIO()
        yaml.dump({**content, "functions": {self.function: entry}}, out)
        return out.getvalue()


class StackFunction(TypedDict, total=False):
    """The parts of an entry of stack.yml that are changed here."""

    image: str
    environment: dict[str, str]
    limits: dict[str, str]
    labels: dict[str, str]


@cache
def stack_functions() -> dict[str, StackFunction]:
    """Return the entries of function/stack.yml by name."""
    return dict(YAML(typ="safe", pure=True).load(STACK)["functions"])


# As faas-cli reads a stack file: a variable, and what stands for it where it is not set.
_VARIABLE = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")


def with_variables(text: str) -> str:
    """Return a text of a stack file with the values of its variables, or their defaults there."""
    return _VARIABLE.sub(lambda match: os.environ.get(match[1]) or match[2] or "", text)


def stack_image(name: str) -> str:
    """Return the image of a function of stack.yml."""
    return with_variables(stack_functions()[name]["image"])


class OpenFaas(Platform[OpenFaasSettings]):
    """The local OpenFaaS, of which `prepare` changes only what differs from before; elsewhere it changes nothing."""

    kind = "openfaas"
    settings = OpenFaasSettings
    takes_gateway = True

    def __init__(self, site: Site, folder: Path | None = None) -> None:
        super().__init__(site, folder)
        # The function whose metrics are saved, if the address does not go through the gateway.
        self._only: str | None = None
        self._is_here = site.gateway is None
        # For each function, the stack file with which it was deployed on this provider.
        self._deployed: dict[str, str] = {}
        self._provider: Service | None = None
        # The kind of balancer that was started here, and the queue as it was before.
        self._balancer: str | None = None
        self._queue_before: int | None = None

    @classmethod
    def at(cls, url: str, site: Site, host: str = "") -> Self | None:
        local = _on_loopback(url)
        if not leads_here(local):
            return None
        platform = cls(Site())
        platform.url = url
        # Looked up now, because the replica may be gone at the end of a run.
        platform._only = past_gateway(local)
        return platform

    @property
    def is_address_only(self) -> bool:
        return self.site.gateway is not None and self.site.context is not None

    # Before a study

    def pieces(self, settings: Sequence[OpenFaasSettings] = ()) -> Sequence[Piece]:
        return parts.PIECES if self.site.gateway is None else ()

    def checks(self, points: Mapping[str, OpenFaasSettings], usual: Mapping[str, object]) -> Iterator[Check]:
        if self.site.gateway is not None:
            yield from _checks_of_gateway(self.site.gateway, points, usual)
            return
        if self.site.over_slaves:
            words = "slaves cannot reach the local one, which is on loopback; test one that they reach by --gateway URL"
            yield Check("OpenFaaS", False, words)
            return
        started = services.read()
        if started is None:
            words = "is started for the study; its ports are free"
            yield attempt("OpenFaaS", words, lambda: services.check_ports_free(config.programs(BACKEND)))
        else:
            dead = ", ".join(started.dead())
            words = f"runs here with the {started.backend} backend, and the study uses it"
            yield Check("OpenFaaS", True, f"{dead} of it has ended; it is started again" if dead else words)
        if os.geteuid() != 0 and (started.backend if started else BACKEND) == "process":
            names = {settings.function for settings in points.values()}
            forking = sorted(name for name in names if "-fork:" in str(stack_functions()[name]["image"]))
            if forking or any(settings.cpu or settings.memory for settings in points.values()):
                why = f"{', '.join(forking)} needs network namespaces" if forking else "limits need cgroups"
                yield Check("rights", False, f"{why}, for which root is needed; run as root, or use the docker backend")

    # Applying the settings of a point

    def _bring_to(self, settings: OpenFaasSettings) -> str:
        function = settings.function
        if self.site.gateway is not None:
            way = "async-function" if settings.route == "queue" else "function"
            url = f"{self.site.gateway.rstrip('/')}/{way}/{function}"
            self._is_here = leads_here(_on_loopback(url))
            return url
        self._up()
        if settings.autoscale:
            # The load of the previous run keeps the alert on for seconds, which would scale up this run at once.
            _wait(lambda: not metrics.is_alerting(function), QUIET_WITHIN_S, f"the scaling alert of {function} to end")
        self._deploy(settings)
        _scale(function, settings.replicas)
        self._queue(settings.queue_at_once or config.QUEUE_AT_ONCE)
        url = self._route(settings)
        # This calls the replica's health check, not the function.
        health = f"{url.replace('/async-function/', '/function/').rstrip('/')}/_/health"
        _wait(lambda: answers(health, HEALTH_WITHIN_S), ANSWERS_WITHIN_S, f"{function} to answer at {url}")
        self._only = past_gateway(url)
        return url

    def _up(self) -> None:
        before = services.read()
        is_ours = before is None or self._is_ours(before)
        provider = stack.up(before.backend if before else BACKEND).services["provider"]
        if is_ours:
            files.write(self._study / MARK, provider)
        if provider != self._provider:
            self._deployed.clear()
        self._provider = provider

    @property
    def _study(self) -> Path:
        if self.folder is None:
            raise FramestormError("a function is deployed for a study only, whose folder keeps its stack file")
        return self.folder

    def _is_ours(self, started: StartedServices) -> bool:
        """Return whether this study started it, perhaps before it was killed and resumed."""
        mark = self._study / MARK
        return mark.exists() and files.read(mark, Service) == started.services.get("provider")

    def _deploy(self, settings: OpenFaasSettings) -> None:
        function, text = settings.function, settings.stack_file()
        if self._deployed.get(function) == text:
            return
        is_deployed = any(each["name"] == function for each in gateway.functions())
        if is_deployed and len(gateway.replicas(function)) > settings.replicas:
            # A new deployment starts with as many replicas as the previous one has.
            _scale(function, settings.replicas)
        self._deployed.pop(function, None)
        file = self._study / DEPLOYED
        file.write_text(text)
        gateway.deploy(file, quiet=True)
        self._deployed[function] = text

    def _queue(self, at_once: int) -> None:
        now = stack.queue_at_once()
        if now != at_once:
            self._queue_before = self._queue_before or now
            stack.restart("queue-worker", at_once)

    def _route(self, settings: OpenFaasSettings) -> str:
        """The address of the function on its route; a balancer, if needed, is started over the ready replicas."""
        route, function = settings.route, settings.function
        if self._balancer not in (None, route):
            balancers.stop(str(self._balancer))
            self._balancer = None
        if route in balancers.KINDS:
            self._balancer = route
            return balancers.start(route, function, settings.policy)
        if route == "direct":
            (replica,) = gateway.wait_for_replicas(function, 1)
            return f"http://{replica['address']}/"
        return {
            "gateway": f"{GATEWAY_URL}/function/{function}",
            "queue": f"{GATEWAY_URL}/async-function/{function}",
            "provider": f"{PROVIDER_URL}/function/{function}",
        }[route]

    def settings_as_text(self) -> dict[str, str]:
        texts = super().settings_as_text()
        # No settings were applied elsewhere.
        return texts if self.site.gateway is None else {name: texts[name] for name in texts if name == "function"}

    # Under load, and after it

    def trouble(self) -> str | None:
        if not self._is_here:
            return None
        kind = _balancer_at(_on_loopback(self.url))
        if kind is not None and balancers.running()[kind].process() is None:
            return f"the balancer {kind} ended during the run; {last_lines(LOGS / f'{kind}.log')}"
        return stack.ended_parts()

    def metrics(self, start_ms: float, end_ms: float) -> list[Reading] | None:
        return metrics.readings(start_ms, end_ms, self._only) if self._is_here else None

    def close(self) -> str | None:
        started = services.read()
        if started is None or self._provider is None:
            return None
        if self._is_ours(started):
            stack.down()
            (self._study / MARK).unlink(missing_ok=True)
            return None
        if self._balancer is not None:
            balancers.stop(self._balancer)
        if self._queue_before is not None:
            self._queue(self._queue_before)
        return (
            "the local OpenFaaS was running before the study and keeps running; its functions are as the last runs "
            "left them"
        )


def _checks_of_gateway(
    address: str, points: Mapping[str, OpenFaasSettings], usual: Mapping[str, object]
) -> Iterator[Check]:
    words = "answers; its functions, replicas and limits are used unchanged"
    yield attempt(address, words, lambda: check_reachable(address))
    refused: dict[str, list[str]] = {}
    for point, settings in points.items():
        if (what := settings.refused_by_gateway_elsewhere(usual)) is not None:
            refused.setdefault(what, []).append(point)
    for what, names in refused.items():
        some = "; ".join(names[:5])
        words = f"a gateway elsewhere cannot be configured for these {len(names)} points; leave them out by --only"
        yield Check(what, False, f"{words}: {some}{'; …' if len(names) > 5 else ''}")


def _scale(function: str, replicas: int) -> None:
    if len(gateway.replicas(function)) != replicas:
        gateway.scale(function, replicas)
    gateway.wait_for_replicas(function, replicas)


def leads_here(url: str) -> bool:
    """Return whether an address on loopback leads to a function of the local OpenFaaS, by whichever route."""
    address = urllib.parse.urlsplit(url)
    part = {GATEWAY_PORT: "gateway", PROVIDER_PORT: "provider"}.get(address.port or 0)
    if address.hostname == LOOPBACK and part is not None:
        return _runs(part)
    return past_gateway(url) is not None


def _runs(part: str) -> bool:
    """Return whether a part of the local OpenFaaS runs; one that a restart of the machine ended was started, too."""
    started = services.read()
    service = started.services.get(part) if started else None
    return service is not None and service.process() is not None


def past_gateway(url: str) -> str | None:
    """The function behind the address of a balancer or replica, which does not name it; None for other addresses."""
    kind = _balancer_at(url)
    if kind is not None and balancers.running()[kind].process() is not None:
        return balancers.balanced(kind).function
    if not _runs("provider"):
        return None
    address = urllib.parse.urlsplit(url).netloc
    try:
        return next((each["function"] for each in gateway.replicas() if each.get("address") == address), None)
    except FramestormError:
        return None


def _balancer_at(url: str) -> str | None:
    address = urllib.parse.urlsplit(url)
    started = balancers.running() if address.hostname == LOOPBACK else {}
    return next((kind for kind in started if balancers.KINDS[kind].port == address.port), None)


def _on_loopback(url: str) -> str:
    """Return the same address on this machine's loopback, if it belongs to this machine."""
    address = urllib.parse.urlsplit(url)
    if address.hostname == "localhost" or address.hostname in own_addresses():
        return address._replace(netloc=f"{LOOPBACK}:{address.port or 80}").geturl()
    return url


def _wait(condition: Callable[[], bool], within_s: float, what: str) -> None:
    if not wait_until(condition, within_s):
        raise FramestormError(f"gave up after {within_s:.0f} s of waiting for {what}")
