"""Functions on plain Kubernetes: a Deployment behind a Service, scaled by a HorizontalPodAutoscaler or not at all."""

import re
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from framestorm.errors import FramestormError
from framestorm.model.study import Meaning
from framestorm.platform.base import Count, SettingError, Site
from framestorm.platform.deployment import Deployment
from framestorm.platform.kubernetes import address, pod, watch
from framestorm.platform.kubernetes.calibration import Found, Leg
from framestorm.platform.kubernetes.cluster import NAMESPACE, Cluster, ClusterError, Object
from framestorm.platform.kubernetes.function import VERSION, ClusterPlatform, FunctionSettings
from framestorm.platform.kubernetes.needs import METRICS_SERVER, Need
from framestorm.platform.kubernetes.observation import Observation, Workload

NAME = "app.kubernetes.io/name"
# A Service's name within the cluster, as its pods may write it.
_IN_CLUSTER = re.compile(r"(?P<name>[a-z0-9-]+)\.(?P<namespace>[a-z0-9-]+)(\.svc(\.cluster\.local)?)?\.?")
# OpenFaaS on a cluster: all functions are behind its gateway, which its Helm chart publishes by a second Service, and
# each is a Deployment in a namespace of its own.
_GATEWAYS, _FUNCTIONS = ("gateway", "gateway-external"), "openfaas-fn"
# Of a HorizontalPodAutoscaler that does not say for how long it keeps replicas, unless the cluster is set otherwise.
USUAL_WINDOW_S = 300
_OF_GATEWAY = re.compile(r"/(?:async-)?function/(?P<name>[a-z0-9-]+)(?:\.(?P<namespace>[a-z0-9-]+))?(?:/|$)")


class PlainSettings(FunctionSettings):
    """Settings of a function as a Deployment behind a Service."""

    kind: Literal["kubernetes"] = "kubernetes"
    route: Literal["service", "pod"] = Field(
        "service",
        description="The path to the function: through its Service, or straight to its one replica, at the address "
        "that this has in the cluster.",
    )
    min_scale: Count = Field(1, description="Number of replicas; with an autoscaler the smallest.")
    autoscaler: Literal["none", "hpa"] = Field(
        "none", description="none: the number of replicas stays; hpa: Kubernetes' HorizontalPodAutoscaler, by CPU."
    )
    target: Annotated[int, Field(ge=1, le=1000), Meaning("a whole number of percent")] = Field(
        80, description="Percent of cpu_request that the autoscaler keeps each replica at."
    )
    window_s: Annotated[int, Field(ge=0, le=3600), Meaning("a whole number of seconds, at most 3600")] = Field(
        60, description="For how many seconds the autoscaler waits before it removes replicas."
    )

    of_requests = FunctionSettings.of_requests | {"route"}

    def check(self) -> None:
        super().check()
        if self.max_scale is not None and self.min_scale > self.max_scale:
            raise SettingError("min_scale", f"min_scale {self.min_scale} is more than max_scale, {self.max_scale}")
        if self.autoscaler == "none" and self.max_scale not in (None, self.min_scale):
            raise SettingError("max_scale", "max_scale needs autoscaler hpa: without one, min_scale replicas stay")
        if self.route == "pod" and (self.min_scale, self.most) != (1, 1):
            raise SettingError(
                "route", "route pod is the address of one replica: it needs min_scale 1 and no autoscaler"
            )

    @property
    def most(self) -> int | None:
        return self.min_scale if self.autoscaler == "none" else self.max_scale

    @property
    def needed(self) -> tuple[Need, ...]:
        return (METRICS_SERVER,) if self.autoscaler == "hpa" and self.max_scale != self.min_scale else ()

    @property
    def begins_with(self) -> range:
        return range(self.min_scale, self.min_scale + 1)

    @property
    def settle_s(self) -> float:
        return float(self.window_s) if self.autoscaler == "hpa" and self.most != self.min_scale else 0.0

    def autoscaling(self, name: str, max_scale: int) -> Object:
        """Return the autoscaler of a Deployment of this name."""
        cpu = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": self.target}}
        return {
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": name, "namespace": NAMESPACE, "labels": self.labels},
            "spec": {
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
                "minReplicas": self.min_scale,
                "maxReplicas": max_scale,
                "metrics": [{"type": "Resource", "resource": cpu}],
                "behavior": {"scaleDown": {"stabilizationWindowSeconds": self.window_s}},
            },
        }


class Plain(ClusterPlatform[PlainSettings]):
    """Functions as Deployments."""

    kind = "kubernetes"
    settings = PlainSettings
    no_op: ClassVar[Mapping[str, object]] = {"kind": "kubernetes"}
    parts: ClassVar[Mapping[str, Leg]] = {"function": Leg("pod"), "Service": Leg("service", "pod")}
    bound = "give its HorizontalPodAutoscaler spec.maxReplicas"

    def _objects(self, settings: PlainSettings, max_scale: int) -> Sequence[Object]:
        name, labels = settings.function, settings.labels
        # Which do not change, as those of a Deployment cannot.
        selector = {key: value for key, value in labels.items() if key != VERSION}
        container = settings.container("function")
        # As Knative does without being asked.
        container["readinessProbe"] = {"tcpSocket": {"port": settings.port}, "periodSeconds": 1}
        deployment: Object = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels},
            "spec": {
                "selector": {"matchLabels": selector},
                "strategy": {"type": "Recreate"},  # those of the point before would take cores
                "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
            },
        }
        objects = [deployment, published(name, selector, settings.port, labels)]
        if settings.autoscaler == "none":
            deployment["spec"] |= {"replicas": settings.min_scale}
        else:
            objects.append(settings.autoscaling(name, max_scale))
        return objects

    def _workload(self, settings: PlainSettings) -> Workload:
        named = ((watch.AUTOSCALERS, settings.function),) if settings.autoscaler == "hpa" else ()
        return _workload(settings.function, NAMESPACE, f"{NAME}={settings.function}", named)

    def _is_ready(self, observation: Observation, settings: PlainSettings) -> bool:
        deployment = observation.item()
        return deployment is not None and is_rolled_out(deployment, observation, settings.version, settings.begins_with)

    def _reach(self, observation: Observation, settings: PlainSettings) -> Found:
        workload = observation.workload
        if settings.route == "pod":
            (replica, *_) = pod.staying(observation.items(watch.PODS))
            place = f"{replica['status']['podIP']}:{settings.port}"
            return Found(workload, f"{settings.protocol}://{place}{settings.path}")
        base = base_of(self.cluster, self.site, settings.function, scheme=settings.protocol)
        return Found(workload, f"{base}{settings.path}")

    def _find(self, url: str, host: str) -> Found | None:
        return self._by_ingress(url, host) or self._by_service(url)

    def _by_ingress(self, url: str, host: str) -> Found | None:
        """Return the function that an Ingress leads to; of several paths that fit, the longest counts."""
        named, path = host or address.host_of(url), urllib.parse.urlsplit(url).path or "/"
        for item, backend in address.backends(self.cluster.visible("ingresses.networking.k8s.io"), named, path):
            namespace = item["metadata"]["namespace"]
            service = self.cluster.find("service", backend, namespace)
            workload = self._behind(service, path) if service else None
            if workload is None:
                continue
            if host or (self.site.ingress is None and address.leads_somewhere(named)):
                return Found(workload, url)
            base = self.site.ingress or address.of_ingress(item, url.partition(":")[0])
            return Found(workload, address.at(url, base), named)
        return None

    def _by_service(self, url: str) -> Found | None:
        parts = urllib.parse.urlsplit(url)
        in_cluster = _IN_CLUSTER.fullmatch(address.host_of(url))
        for service in self.cluster.visible("services"):
            name, namespace = pod.name_of(service), service["metadata"]["namespace"]
            is_named = in_cluster is not None and (in_cluster["name"], in_cluster["namespace"]) == (name, namespace)
            if not is_named and not address.is_of(service, parts):
                continue
            workload = self._behind(service, parts.path)
            if workload is None or not is_named or self.site.by_pods or address.leads_somewhere(parts.hostname or ""):
                return Found(workload, url) if workload else None
            base = self.site.ingress or address.of_service(self.cluster, name, namespace, parts.scheme, parts.port)
            return Found(workload, address.at(url, base))
        return None

    def _behind(self, service: Object, path: str) -> Workload | None:
        """Return the Deployment that a Service leads to, for this path; None if there is none."""
        namespace = service["metadata"]["namespace"]
        of_gateway = _OF_GATEWAY.match(path) if pod.name_of(service) in _GATEWAYS else None
        if of_gateway:
            namespace = of_gateway["namespace"] or _FUNCTIONS
        for deployment in self.cluster.get("deployments", namespace=namespace)["items"]:
            labels = deployment["spec"]["template"]["metadata"].get("labels", {})
            selected = service["spec"].get("selector") or {"": ""}
            if of_gateway and pod.name_of(deployment) == of_gateway["name"]:
                return self._of(deployment)
            if not of_gateway and selected.items() <= labels.items():
                return self._of(deployment)
        return None

    def _of(self, deployment: Object) -> Workload:
        name, namespace = pod.name_of(deployment), deployment["metadata"]["namespace"]
        labels = deployment["spec"]["selector"].get("matchLabels", {})
        if not labels:
            raise FramestormError(f"deployment {name} in namespace {namespace} selects its pods without matchLabels")
        named = tuple((watch.AUTOSCALERS, pod.name_of(each)) for each in autoscalers(self.cluster, name, namespace))
        return _workload(name, namespace, _selector(labels), named)

    def _deployment(self, workload: Workload) -> Deployment:
        return deployment_of(self.cluster, workload.function, workload.name, workload.namespace)


def published(name: str, selector: Mapping[str, str], port: int, labels: Mapping[str, str]) -> Object:
    """Return a Service by which pods are called from outside of the cluster."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": dict(labels)},
        "spec": {
            "type": "NodePort",
            "selector": dict(selector),
            "ports": [{"name": "http", "port": 80, "targetPort": port}],
        },
    }


def base_of(cluster: Cluster, site: Site, name: str, namespace: str = NAMESPACE, scheme: str = "http") -> str:
    """Return the URL of a Service, as it is called from where the load comes from: to pods, a node may be closed."""
    if site.by_pods:
        return f"{scheme}://{name}.{namespace}.svc"
    return address.of_service(cluster, name, namespace, scheme)


def is_rolled_out(deployment: Object, observation: Observation, version: str, replicas: range) -> bool:
    """Return whether a Deployment has one of these numbers of replicas, all ready and of this version."""
    status, wanted = deployment.get("status", {}), deployment["spec"].get("replicas", 1)
    pods = [each for each in observation.items(watch.PODS) if not pod.is_over(each)]
    are_new = all(each["metadata"]["labels"].get(VERSION) == version for each in pods)
    is_whole = wanted == status.get("readyReplicas", 0) == len(pods) and wanted in replicas
    return pod.is_current(deployment) and are_new and is_whole


def autoscalers(cluster: Cluster, name: str, namespace: str) -> Iterator[Object]:
    """Yield the HorizontalPodAutoscalers of a Deployment; none if the cluster does not show them."""
    try:
        items = cluster.get("horizontalpodautoscalers", namespace=namespace)["items"]
    except ClusterError:
        return
    for item in items:
        target = item["spec"]["scaleTargetRef"]
        if (target["kind"], target["name"]) == ("Deployment", name):
            yield item


def deployment_of(cluster: Cluster, function: str, name: str, namespace: str) -> Deployment:
    """Return what a Deployment of Kubernetes runs, and between which numbers of replicas it is scaled."""
    item = cluster.get("deployment", name, namespace)
    containers = item["spec"]["template"]["spec"]["containers"]
    container = next((each for each in containers if each.get("ports")), containers[0])
    scaler = next(autoscalers(cluster, name, namespace), None)
    replicas = item["spec"].get("replicas", 1)
    return Deployment(
        function,
        container["image"],
        item["metadata"].get("annotations", {}).get("deployment.kubernetes.io/revision", ""),
        container.get("resources", {}).get("requests", {}),
        container.get("resources", {}).get("limits", {}),
        min_scale=scaler["spec"].get("minReplicas", 1) if scaler else replicas,
        max_scale=scaler["spec"]["maxReplicas"] if scaler else replicas,
    )


def _workload(name: str, namespace: str, selector: str, named: tuple[tuple[watch.Kind, str], ...]) -> Workload:
    return Workload(name, namespace, selector, watch.DEPLOYMENTS, name, named=named)


def _selector(labels: Mapping[str, str]) -> str:
    return ",".join(f"{key}={value}" for key, value in labels.items())
