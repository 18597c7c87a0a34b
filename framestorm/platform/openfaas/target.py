"""What a study may set of a function on OpenFaaS, and the stack file that deploys it so."""

import copy
import io
import re
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Literal, TypedDict

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_core import PydanticCustomError
from ruamel.yaml import YAML

from framestorm.platform.base import Count, CountOrNone, SettingError, Settings
from framestorm.platform.openfaas import balancers
from framestorm.platform.openfaas.layout import STACK

# By these, functions of a gateway elsewhere are reached too. They are taken as they are there: what can be set but
# these and the function's name is for the local OpenFaaS.
GATEWAY_ROUTES = ("gateway", "queue")
OF_ANY_GATEWAY = ("kind", "function", "route", "autoscale_max")


def _matching(pattern: str, words: str) -> AfterValidator:
    def check(value: str) -> str:
        if not re.fullmatch(pattern, value):
            raise PydanticCustomError("setting", words)
        return value

    return AfterValidator(check)


def _number_as_text(value: object) -> object:
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


Cores = Annotated[
    str,
    BeforeValidator(_number_as_text),
    _matching(r"[0-9]*\.?[0-9]+m?", "cores, or thousandths of one (250m)"),
]
Bytes = Annotated[str, _matching(r"[0-9]*\.?[0-9]+([KMG]i|[kKMGmg])?", "a number of bytes (512Mi)")]


class OpenFaasSettings(Settings):
    """A function of the local OpenFaaS, or of one elsewhere, which stays unchanged."""

    kind: Literal["openfaas"] = "openfaas"
    function: str = Field(min_length=1, description="A function of function/stack.yml.")
    replicas: Count = Field(1, description="How many replicas there are at the start of a run.")
    route: Literal["gateway", "queue", "provider", "direct", "redirect", "nginx", "haproxy"] = Field(
        "gateway",
        description="The path to the function: through the gateway, its queue, the provider without the gateway, the "
        "one replica directly (direct), or a balancer over the replicas.",
    )
    policy: Literal["round-robin", "least-connections"] = Field(
        "round-robin", description="How a balancer chooses a replica."
    )
    autoscale: bool = Field(
        False,
        description="true: OpenFaaS's alert adds replicas up to autoscale_max; false: the number of replicas stays.",
    )
    autoscale_max: Count = Field(5, description="Maximum number of replicas for autoscaling.")
    concurrency_limit: CountOrNone = Field(
        0, description="Maximum number of requests in flight in a replica; others get status 429; 0: no limit."
    )
    cpu: Cores | None = Field(None, description="CPU limit of a replica: cores or thousandths (250m).")
    memory: Bytes | None = Field(None, description="Memory limit of a replica (512Mi).")
    environment: dict[str, str] = Field({}, description="Environment variables of the function.")
    queue_at_once: Count | None = Field(None, description="Maximum number of requests in flight from the queue-worker.")

    def check(self) -> None:
        functions = tuple(stack_functions())
        if self.function not in functions:
            what = f"unknown function {self.function!r}: function/stack.yml does not have it"
            raise SettingError("function", what, functions, self.function)
        if self.route == "direct" and self.replicas != 1:
            raise SettingError("route", f"route direct is the address of one replica, and there are {self.replicas}")
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
        """What of it a gateway elsewhere cannot be made to do, in words.

        Args:
            usual: the study's own target: what is the same in all points is taken as it is there.
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
        """function/stack.yml with just this function, deployed as it is set here."""
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
    """An entry of stack.yml, as far as it is changed here."""

    image: str
    environment: dict[str, str]
    limits: dict[str, str]
    labels: dict[str, str]


@cache
def stack_functions() -> dict[str, StackFunction]:
    """The entries of function/stack.yml by name."""
    return dict(YAML(typ="safe", pure=True).load(STACK)["functions"])
