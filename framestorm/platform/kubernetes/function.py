"""Functions on a cluster: what the platforms on Kubernetes have in common, from a point's settings to the metrics."""

import hashlib
import time
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar

from pydantic import Field

from framestorm.connections import why_unreached
from framestorm.endpoint import host_and_port
from framestorm.errors import FramestormError
from framestorm.machine import wait_until
from framestorm.model.facets import is_model_by_grpc
from framestorm.model.study import Meaning
from framestorm.model.units import plural
from framestorm.platform.base import (
    Check,
    Count,
    Platform,
    Reading,
    SettingError,
    Site,
    attempt,
)
from framestorm.platform.container import ContainerSettings
from framestorm.platform.deployment import Deployment, usual_max_scale
from framestorm.platform.kubernetes import calibration, event, needs, pod, watch
from framestorm.platform.kubernetes.calibration import Found, Leg
from framestorm.platform.kubernetes.claim import ClusterClaim
from framestorm.platform.kubernetes.cluster import MANAGED, NAMESPACE, Cluster, ClusterError, Object
from framestorm.platform.kubernetes.needs import Need
from framestorm.platform.kubernetes.observation import Observation, Workload
from framestorm.platform.kubernetes.pod import PASSING, Trouble
from framestorm.platform.kubernetes.usage import Kubelets
from framestorm.platform.quantities import Bytes, Cores, amount, of_kubernetes

NO_OP = "framestorm-noop"
READY_WITHIN_S = 180.0
# What often passes by itself does so soon.
PASSES_WITHIN_S = 20.0
REACHED_WITHIN_S = 10.0
# By this label the pods of the newest settings are told from those of the settings before.
VERSION = "app.kubernetes.io/version"

UrlPath = Annotated[str, Field(pattern="^/"), Meaning("a path that begins with /")]


class FunctionSettings(ContainerSettings):
    """Settings of a function on a cluster, which the kit makes in a namespace of its own and removes at the end."""

    path: UrlPath = Field("/", description="The path of its address.")
    protocol: Literal["http", "grpc"] = Field(
        "http",
        description="How it is called; grpc is for the plans of models (infer.jmx), whose path is the model's name, as "
        "in /iris.",
    )
    cpu_request: Cores = Field("100m", description="CPU that each replica is promised.")
    memory: Bytes | None = Field(None, description="Memory that each replica is promised, and its limit (512Mi).")
    max_scale: Count | None = Field(
        None,
        description="Maximum number of replicas; without it, twice as many as the nodes hold by cpu_request.",
    )

    def check(self) -> None:
        super().check()
        if amount(self.cpu_request) == 0:
            raise SettingError("cpu_request", "cpu_request 0: without a request, nothing bounds the number of replicas")
        if self.cpu and amount(self.cpu) < amount(self.cpu_request):
            raise SettingError("cpu", f"cpu {self.cpu} is less than cpu_request, {self.cpu_request}")
        if self.protocol == "grpc" and not is_model_by_grpc(f"grpc://host{self.path}"):
            raise SettingError("path", f"path {self.path}: by gRPC, it is the model's name, as in /iris or /iris/2")

    @property
    def most(self) -> int | None:
        """The largest number of replicas that is asked for; None if that is worked out from the nodes' cores."""
        return self.max_scale

    @property
    def needed(self) -> tuple[Need, ...]:
        """What the cluster has to have for them, beside Kubernetes itself."""
        return ()

    @property
    @abstractmethod
    def begins_with(self) -> range:
        """The numbers of replicas with which a run may begin: not those that an autoscaler added in the run before."""

    def container(self, name: str) -> Object:
        """Return the container of a replica."""
        requests, limits = {"cpu": self.cpu_request}, {}
        if self.cpu:
            limits["cpu"] = self.cpu
        if self.memory:
            requests["memory"] = limits["memory"] = of_kubernetes(self.memory)
        return {
            "name": name,
            "image": self.image_name,
            # By this name Knative knows a program that speaks HTTP/2 without TLS.
            "ports": [{"containerPort": self.port, **({"name": "h2c"} if self.protocol == "grpc" else {})}],
            "env": [{"name": key, "value": value} for key, value in self.variables.items()],
            "resources": {"requests": requests, **({"limits": limits} if limits else {})},
        }

    # What changes nothing on the cluster.
    of_requests: ClassVar[frozenset[str]] = frozenset({"path"})

    @property
    def version(self) -> str:
        """A short name of what they make on the cluster."""
        text = self.model_dump_json(exclude=set(self.of_requests))
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    @property
    def labels(self) -> dict[str, str]:
        """The labels of its objects."""
        return {**MANAGED, "app.kubernetes.io/name": self.function, VERSION: self.version}


S = TypeVar("S", bound=FunctionSettings)


class ClusterPlatform(Platform[S]):
    """Functions on the cluster of `Site.context`: a study makes them, a run uses one that is there, unchanged."""

    takes_context = True
    # How the number of replicas of a function is bounded there, in words.
    bound: ClassVar[str]
    # The settings of a no-op that is calibrated, and the parts of its path, by their names.
    no_op: ClassVar[Mapping[str, object]] = {}
    parts: ClassVar[Mapping[str, Leg]] = {}

    def __init__(self, site: Site, folder: Any = None) -> None:
        super().__init__(site, folder)
        self._found: Found | None = None
        # The newest objects that were made, or at least may have been.
        self._deployed: tuple[Object, ...] = ()
        self._claim: ClusterClaim | None = None
        self._observation: Observation | None = None
        self._usage: Kubelets | None = None

    @classmethod
    def at(cls, url: str, site: Site, host: str = "") -> Self | None:
        if site.context is None:
            return None
        platform = cls(site)
        found = platform._find(url, host)
        if found is None:
            return None
        platform._found, platform.url = found, found.url
        bounded(platform._deployment(found.workload), cls.bound)
        return platform

    @cached_property
    def cluster(self) -> Cluster:
        """The cluster of the context that the command line names, or of the current one."""
        return Cluster.of(self.site.context)

    def headers(self) -> Mapping[str, str]:
        if self._found is None:
            return {}
        return {**({"Host": self._found.host} if self._found.host else {}), **self._found.headers}

    # What each of them does in its own way

    @abstractmethod
    def _find(self, url: str, host: str) -> Found | None:
        """Return the function that an address leads to; None if it is none of this platform's."""

    @abstractmethod
    def _objects(self, settings: S, max_scale: int) -> Sequence[Object]:
        """Return the objects that make a function."""

    @abstractmethod
    def _workload(self, settings: S) -> Workload:
        """Return where the objects of a function are."""

    @abstractmethod
    def _is_ready(self, observation: Observation, settings: S) -> bool:
        """Return whether the function is as the settings say, and answers."""

    @abstractmethod
    def _reach(self, observation: Observation, settings: S) -> Found:
        """Return how a function that is ready is reached."""

    @abstractmethod
    def _deployment(self, workload: Workload) -> Deployment:
        """Return what runs for a function, as the cluster says."""

    # Before a study

    def checks(self, points: Mapping[str, S], usual: Mapping[str, object]) -> Iterator[Check]:
        yield attempt("context", "is in the kubeconfig", lambda: self.cluster)
        try:
            cluster = self.cluster
        except FramestormError:
            return
        needed = {need.name: need for settings in points.values() for need in settings.needed}
        yield from needs.checks(cluster, self.kind, needed.values())
        yield attempt("max scale", "bounds the replicas of each point", lambda: [*map(self.max_scale, points.values())])

    def max_scale(self, settings: S) -> int:
        """Return how far a function may scale.

        Raises:
            FramestormError: nobody says, and the cores of the nodes are not known.
        """
        if settings.most is not None:
            return settings.most
        try:
            nodes = self.cluster.get("nodes")["items"]
        except ClusterError as error:
            raise FramestormError(
                f"{settings.function}: nothing bounds the number of its replicas, because the nodes' cores are not "
                f"shown ({error}); set target.max_scale"
            ) from None
        cores = sum(amount(node["status"]["allocatable"]["cpu"]) for node in nodes if pod.node_trouble(node) is None)
        return max(usual_max_scale(cores, settings.cpu_request), settings.begins_with[-1])

    # Calibrating it

    def calibrate(self, image: str, folder: Path) -> None:
        # It is measured from here, wherever the load comes from.
        here = replace(self.site, over_slaves=False, by_pods=False)
        calibrated = self._calibrated_by()(here, folder)
        settings = calibrated.settings.read({**calibrated.no_op, "function": NO_OP, "image": image})
        try:
            calibration.measure(calibrated.routes(settings), calibrated.parts, folder)
        finally:
            calibrated.close()

    def _calibrated_by(self) -> "type[ClusterPlatform[Any]]":
        """Return the platform whose path is measured."""
        return type(self)

    def routes(self, settings: S) -> dict[str, Found]:
        """Make a function, and return how it is reached by each route of its platform."""
        self.prepare(settings)
        with closing(Observation(self.cluster, self._workload(settings)).begin()) as observation:
            observation.wait(lambda: self._has_routes(observation), READY_WITHIN_S)
            routes = [part.route for part in self.parts.values()]
            return {route: self._reach(observation, settings.model_copy(update={"route": route})) for route in routes}

    def _has_routes(self, observation: Observation) -> bool:
        """Return whether each route leads through what it should."""
        return True

    # Applying the settings of a point

    def _bring_to(self, settings: S) -> str:
        if self.folder is None:
            raise FramestormError("a function is made for a study only, which removes it at the end")
        if self._claim is None:
            claim = ClusterClaim(self.cluster, self.folder)
            if claim.take():
                # A process that was killed may have left the autoscaler of its last point, for example.
                claim.clear()
            self._claim = claim
        objects = tuple(self._objects(settings, self.max_scale(settings)))
        new = {_key(each) for each in objects}
        for kind, name in [_key(each) for each in self._deployed if _key(each) not in new]:
            self.cluster.delete(kind, name, NAMESPACE)
        # Before they are there: where one is refused, such as by a webhook, the others are made.
        self._deployed = objects
        self.cluster.apply(objects)
        with closing(Observation(self.cluster, self._workload(settings)).begin()) as observation:
            self._wait_until_ready(observation, settings)
            self._found = self._reach(observation, settings)
        if not self.site.over_slaves:
            # Each node learns of a new Service by itself, and nothing tells when it has. That the function is reached
            # at all, a run checks before its load.
            target = "{}:{}".format(*host_and_port(self._found.url))
            wait_until(lambda: why_unreached(target) is None, REACHED_WITHIN_S)
        return self._found.url

    def leave(self) -> None:
        for kind, name in map(_key, self._deployed):
            self.cluster.delete(kind, name, NAMESPACE, waits=True)
        self._deployed = ()

    def _wait_until_ready(self, observation: Observation, settings: S) -> None:
        """Wait until the function is ready, or will not become so.

        Raises:
            FramestormError: it does not become ready, with the object, the reason and the next step.
        """
        most = settings.begins_with[-1]

        def replicas() -> int:
            new = {VERSION: settings.version}
            return sum(pod.has_labels(each, new) for each in pod.staying(observation.items(watch.PODS)))

        def trouble() -> Trouble | None:
            # Of those that the run before needed, and the autoscaler will remove, none has to become ready.
            return self._trouble(observation, settings) if replicas() <= max(1, most) else None

        def is_decided() -> bool:
            found = trouble()
            return self._is_ready(observation, settings) or (found is not None and found.reason not in PASSING)

        def is_decided_or_stuck() -> bool:
            return is_decided() or trouble() is not None

        def is_decided_or_free() -> bool:
            return is_decided() or trouble() is None

        within_s = READY_WITHIN_S + settings.settle_s
        ends_s = time.monotonic() + within_s
        while observation.wait(is_decided_or_stuck, ends_s - time.monotonic()) and not is_decided():
            if observation.wait(is_decided_or_free, PASSES_WITHIN_S):
                continue
            gets_node = event.gets_node(self.cluster, NAMESPACE, observation.items(watch.PODS))
            if not (gets_node and observation.wait(is_decided_or_free, event.NODE_ADDED_WITHIN_S)):
                break
            ends_s = time.monotonic() + within_s  # its pods begin to start only now
        if self._is_ready(observation, settings):
            return
        if (found := trouble()) is not None:
            raise FramestormError(f"{self.cluster.context}: {settings.function} does not become ready: {found}")
        is_left = f"it has {plural(replicas(), 'replica')}, and a run begins with {most}"
        raise FramestormError(
            f"{self.cluster.context}: {settings.function} was not ready in {within_s:.0f} s: "
            f"{is_left if replicas() > most else needs.why(observation.item() or {})}; see kubectl get events "
            f"--namespace {NAMESPACE}"
        )

    def _trouble(self, observation: Observation, settings: S) -> Trouble | None:
        """Return why the function will not become ready, by its newest pods or what makes them."""
        return observation.trouble({VERSION: settings.version})

    # During a run, and after it

    @contextmanager
    def watching(self) -> Iterator[None]:
        if self._found is None:
            yield
            return
        workload = self._found.workload
        with closing(Observation(self.cluster, workload).begin()) as observation, ExitStack() as stack:
            self._observation = observation
            if self.cluster.may("get", "nodes/proxy", ""):
                usage = Kubelets(self.cluster, workload.function, workload.namespace, observation.pods_by_node)
                self._usage = stack.enter_context(closing(usage.begin()))
            yield

    def trouble(self) -> str | None:
        observation = self._observation
        if observation is None or observation.item() is not None or observation.is_blind:
            return None
        workload = observation.workload
        return f"{workload.kind.plural} {workload.name} in namespace {workload.namespace} was deleted during the run"

    def metrics(self, start_ms: float, end_ms: float) -> list[Reading] | None:
        sources = [each for each in (self._observation, self._usage) if each is not None]
        return [row for each in sources for row in each.readings(start_ms, end_ms)] if sources else None

    def settings_as_text(self) -> dict[str, str]:
        texts = super().settings_as_text()
        if self._found is not None:
            texts |= self._deployment(self._found.workload).texts()
            texts |= {"context": self.cluster.context, "namespace": self._found.workload.namespace}
            texts |= {"host": self._found.host} if self._found.host else {}
        return texts

    def close(self) -> str | None:
        if self._claim is not None:
            self._claim.release()
            self._claim = None
        return None


def _key(item: Object) -> tuple[str, str]:
    """Return the kind of an object, as kubectl takes it, and its name."""
    group, _, version = str(item["apiVersion"]).rpartition("/")
    return f"{item['kind']}.{version}.{group}" if group else item["kind"], pod.name_of(item)


def bounded(deployment: Deployment, how: str) -> Deployment:
    """Return a deployment whose number of replicas is bounded.

    Raises:
        FramestormError: nothing bounds it; `how` says how to.
    """
    if deployment.max_scale is None:
        raise FramestormError(
            f"nothing bounds the number of replicas of {deployment.function}: under overload, an autoscaler may ask "
            f"for a thousand; {how}"
        )
    return deployment
