"""Functions on Docker Swarm: made for a study or by `./run.sh target balance`."""

import hashlib
import shutil
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, Self

from pydantic import Field

from framestorm.errors import FramestormError
from framestorm.platform.base import Check, Count, Platform, Reading, Site, attempt
from framestorm.platform.container import ContainerSettings
from framestorm.platform.openfaas import docker, parts
from framestorm.platform.quantities import Bytes, amount, of_kubernetes
from framestorm.platform.swarm import services
from framestorm.platform.swarm.services import Object, SwarmService
from framestorm.setup import pieces as setup
from framestorm.setup.pieces import Piece

# `./run.sh target balance`'s own names of the routes, and who makes what it makes.
BALANCERS = {f"swarm-{route}": route for route in services.PORTS}
OWNER = "target"
FRONTS = parts.programs(*services.FRONTS)


class SwarmSettings(ContainerSettings):
    """Settings of a function as a service of Docker Swarm, which the kit makes and removes at the end."""

    kind: Literal["swarm"] = "swarm"
    replicas: Count = Field(1, description="How many replicas there are.")
    route: Literal["mesh", "dnsrr", "redirect"] = Field(
        "mesh",
        description="The path to the function: Swarm's routing mesh; a proxy that gives each connection to one of the "
        "addresses that Swarm's DNS has for the service (endpoint mode dnsrr); or a redirect (307) to the replicas in "
        "turn, at ports of their nodes. The first two balance connections, not requests.",
    )
    memory: Bytes | None = Field(None, description="Memory limit of a replica (512Mi).")

    @property
    def service(self) -> SwarmService:
        """The service that they ask for."""
        limits = [f"--limit-cpu={amount(self.cpu):g}"] if self.cpu else []
        limits += [f"--limit-memory={amount(of_kubernetes(self.memory)):.0f}"] if self.memory else []
        # The redirect knows its workers from its start.
        of_scale = {"replicas"} if self.route != "redirect" else set()
        version = hashlib.sha256(self.model_dump_json(exclude=of_scale).encode()).hexdigest()[:12]
        made = (self.function, self.image_name, self.route, self.port, self.replicas, version)
        return SwarmService(*made, limits, self.variables)


class Swarm(Platform[SwarmSettings]):
    """Functions on the swarm whose manager docker speaks to."""

    kind = "swarm"
    settings = SwarmSettings

    def __init__(self, site: Site, folder: Path | None = None) -> None:
        super().__init__(site, folder)
        self._name = ""
        self._is_made = False

    @classmethod
    def at(cls, url: str, site: Site, host: str = "") -> Self | None:
        address = urllib.parse.urlsplit(url)
        if address.port not in services.PORTS.values() or shutil.which("docker") is None:
            return None
        try:
            found = [each for each in services.made() if services.leads_to(each, address)]
        except FramestormError:
            return None  # the engine is no manager of a swarm
        if not found:
            return None
        platform = cls(site)
        platform.url, platform._name = url, found[0]["Spec"]["Name"]
        return platform

    def pieces(self, settings: Sequence[SwarmSettings] = ()) -> Sequence[Piece]:
        return FRONTS

    def checks(self, points: Mapping[str, SwarmSettings], usual: Mapping[str, object]) -> Iterator[Check]:
        yield attempt("Docker Swarm", "docker speaks to a manager of it", services.manager)

    def _bring_to(self, settings: SwarmSettings) -> str:
        service = settings.service
        self._name, self._is_made = service.name, True
        return services.bring_to(service, self._owner)

    @property
    def _owner(self) -> str:
        """Who made what a study makes: the study's folder, by which a resumed one knows it."""
        return hashlib.sha256(str(self.folder).encode()).hexdigest()[:12]

    def _service(self) -> Object | None:
        """Return the function's service as it is now; None if there is none."""
        return next((each for each in services.made() if each["Spec"]["Name"] == self._name), None)

    def metrics(self, start_ms: float, end_ms: float) -> list[Reading] | None:
        service = self._service()
        return list(services.readings(service, start_ms, end_ms)) if service else None

    def settings_as_text(self) -> dict[str, str]:
        service = self._service()
        return {**super().settings_as_text(), **(services.deployment(service).texts() if service else {})}

    def close(self) -> str | None:
        if self._is_made:
            services.remove(self._owner)
        return None


def balance(balancer: str, function: str, workers: int, image: str | None) -> str:
    """Have a function on the swarm until `down`, reached as the balancer's name says; returns its URL."""
    values = {"function": function, "replicas": workers, "route": BALANCERS[balancer]}
    settings = SwarmSettings.read({**values, **({"image": image} if image else {})})
    setup.ensure(FRONTS)
    return services.bring_to(settings.service, OWNER)


def down() -> list[str]:
    """Remove what `balance` made; returns its names."""
    if shutil.which("docker") is None or not docker.ENGINE.succeeds("service", "ls"):
        return []
    return services.remove(OWNER)
