"""Functions on Knative Serving: a Service, called through the ingress, or without it."""

from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from framestorm.errors import FramestormError
from framestorm.model.study import Flag, Meaning
from framestorm.platform.base import Count, CountOrNone, SettingError, Site
from framestorm.platform.deployment import Deployment
from framestorm.platform.kubernetes import address, plain, pod, watch
from framestorm.platform.kubernetes.calibration import Found, Leg
from framestorm.platform.kubernetes.cluster import NAMESPACE, Cluster, ClusterError, Object
from framestorm.platform.kubernetes.function import ClusterPlatform, FunctionSettings
from framestorm.platform.kubernetes.needs import KNATIVE_SERVING, METRICS_SERVER, Need
from framestorm.platform.kubernetes.observation import Observation, Workload
from framestorm.platform.kubernetes.pod import Trouble

AUTOSCALING = "autoscaling.knative.dev"
SERVICES = "services.serving.knative.dev"
SERVICE = "serving.knative.dev/service"
REVISION = "serving.knative.dev/revision"
SYSTEM = "knative-serving"
# Of the activator and of queue-proxy, for HTTP/1 and for HTTP/2.
PROXY_PORTS = {"http": 8012, "grpc": 8013}
KINDS = (watch.DEPLOYMENTS, watch.POD_AUTOSCALERS, watch.SERVERLESS_SERVICES)

# Over which Knative's own autoscaler takes its mean, unless the cluster is set otherwise.
USUAL_WINDOW_S = 60

Seconds = Annotated[int, Field(ge=6, le=3600), Meaning("a whole number of seconds from 6 to 3600")]


class KnativeSettings(FunctionSettings):
    """Settings of a function as a Service of Knative."""

    kind: Literal["knative"] = "knative"
    route: Literal["ingress", "activator", "queue-proxy", "handler"] = Field(
        "ingress",
        description="The path to the function: through the ingress, or straight to the activator, to the queue-proxy "
        "of the one replica, or to its program, at their addresses in the cluster.",
    )
    min_scale: CountOrNone = Field(0, description="Minimum number of replicas; 0: it scales to zero.")
    from_zero: Flag = Field(False, description="true: a run begins when no replica is left.")
    concurrency_limit: CountOrNone = Field(
        0, description="Maximum number of requests in a replica at a time; others wait; 0: no limit."
    )
    autoscaler: Literal["kpa", "hpa"] = Field("kpa", description="Knative's own autoscaler, or Kubernetes' by CPU.")
    target: Count | None = Field(
        None, description="What the autoscaler keeps in each replica: requests at a time, or percent of cpu_request."
    )
    window_s: Seconds | None = Field(None, description="Over how many seconds the autoscaler takes its mean.")
    burst_capacity: Annotated[int, Field(ge=-1), Meaning("a whole number of at least -1")] | None = Field(
        None,
        description="Requests that the activator holds back; 0: it is on the path at zero replicas, -1: always.",
    )

    of_requests = FunctionSettings.of_requests | {"route", "from_zero"}

    def check(self) -> None:
        super().check()
        if self.max_scale is not None and self.min_scale > self.max_scale:
            raise SettingError("min_scale", f"min_scale {self.min_scale} is more than max_scale, {self.max_scale}")
        if self.route in ("queue-proxy", "handler") and (self.min_scale, self.max_scale) != (1, 1):
            what = f"route {self.route} is the address of one replica: it needs min_scale 1 and max_scale 1"
            raise SettingError("route", what)
        if self.from_zero and (self.min_scale or self.autoscaler == "hpa"):
            raise SettingError("from_zero", "from_zero needs min_scale 0 and autoscaler kpa: it would wait for ever")
        if self.autoscaler == "hpa" and self.min_scale == 0:
            raise SettingError("min_scale", "autoscaler hpa does not scale to zero: min_scale has to be at least 1")

    @property
    def needed(self) -> tuple[Need, ...]:
        is_by_cpu = self.autoscaler == "hpa" and self.max_scale != self.min_scale
        return (KNATIVE_SERVING, METRICS_SERVER) if is_by_cpu else (KNATIVE_SERVING,)

    @property
    def begins_with(self) -> range:
        return begins_with(self.min_scale, from_zero=self.from_zero)

    @property
    def settle_s(self) -> float:
        if self.max_scale == self.begins_with[-1]:
            return 0.0
        return float(self.window_s or (USUAL_WINDOW_S if self.autoscaler == "kpa" else plain.USUAL_WINDOW_S))

    def annotations(self, max_scale: int) -> dict[str, str]:
        """Return how it is scaled, as annotations of a revision."""
        is_by_cpu = self.autoscaler == "hpa"
        values = {
            "class": f"{self.autoscaler}.{AUTOSCALING}",
            "metric": "cpu" if is_by_cpu else "concurrency",
            "min-scale": str(self.min_scale),
            "max-scale": str(max_scale),
            "target": self.target,
            "window": f"{self.window_s}s" if self.window_s else None,
            "target-burst-capacity": self.burst_capacity,
        }
        return {f"{AUTOSCALING}/{name}": str(value) for name, value in values.items() if value is not None}


class Knative(ClusterPlatform[KnativeSettings]):
    """Functions as Services of Knative."""

    kind = "knative"
    settings = KnativeSettings
    # Without a burst capacity, the ingress leads to the replicas themselves, once there is one.
    no_op: ClassVar[Mapping[str, object]] = {"kind": "knative", "min_scale": 1, "max_scale": 1, "burst_capacity": 0}
    parts: ClassVar[Mapping[str, Leg]] = {
        "function": Leg("handler"),
        "queue-proxy": Leg("queue-proxy", "handler"),
        "activator": Leg("activator", "queue-proxy"),
        "ingress": Leg("ingress", "queue-proxy"),
    }
    bound = (
        "set the annotation autoscaling.knative.dev/max-scale in spec.template.metadata of the Service, or max-scale "
        "in the ConfigMap config-autoscaler"
    )

    def _objects(self, settings: KnativeSettings, max_scale: int) -> Sequence[Object]:
        template = {
            "metadata": {"labels": settings.labels, "annotations": settings.annotations(max_scale)},
            "spec": {
                "containerConcurrency": settings.concurrency_limit,
                "containers": [settings.container("user-container")],
            },
        }
        service = {
            "apiVersion": "serving.knative.dev/v1",
            "kind": "Service",
            "metadata": {"name": settings.function, "namespace": NAMESPACE, "labels": settings.labels},
            "spec": {"template": template},
        }
        return [service]

    def _workload(self, settings: KnativeSettings) -> Workload:
        return _workload(settings.function, NAMESPACE)

    def _is_ready(self, observation: Observation, settings: KnativeSettings) -> bool:
        service = observation.item()
        if service is None or not _is_ready(service):
            return False
        return has_settled(observation, service["status"]["latestReadyRevisionName"], settings.begins_with)

    def _has_routes(self, observation: Observation) -> bool:
        return all(each["spec"]["mode"] == "Serve" for each in observation.items(watch.SERVERLESS_SERVICES))

    def _trouble(self, observation: Observation, settings: KnativeSettings) -> Trouble | None:
        if (of_pods := super()._trouble(observation, settings)) is not None:
            return of_pods
        service = observation.item()
        if service is None or not pod.is_current(service):
            return None
        configuration = pod.condition(service, "ConfigurationsReady")
        if configuration is None or configuration["status"] != "False":
            return None
        words = f"see kubectl describe revisions --selector {SERVICE}={settings.function} --namespace {NAMESPACE}"
        what = f"service {settings.function} in namespace {NAMESPACE}"
        return Trouble(what, configuration.get("reason", ""), configuration.get("message", ""), words)

    def _reach(self, observation: Observation, settings: KnativeSettings) -> Found:
        service = observation.item()
        if service is None:
            raise FramestormError(f"service {settings.function} in namespace {NAMESPACE} was deleted")
        url = url_of(service, settings.protocol, settings.path)
        if settings.route == "ingress":
            return by_ingress(self.cluster, self.site, observation.workload, settings.function, url)
        found = _workload(settings.function, NAMESPACE)
        if settings.route == "activator":
            headers = {
                "Knative-Serving-Namespace": NAMESPACE,
                "Knative-Serving-Revision": service["status"]["latestReadyRevisionName"],
            }
            activators = self.cluster.get("pods", namespace=SYSTEM, selector="app=activator")["items"]
            # One that is being replaced ends soon, and its successor has no address at first.
            (activator, *_) = sorted(pod.staying(activators), key=pod.is_ready, reverse=True)
            proxy = _address(activator, settings.protocol)
            return Found(found, f"{proxy}{settings.path}", address.host_of(url), headers)
        # That of the settings before may still be there, and end during the run.
        (replica, *_) = pod.staying(observation.items(watch.PODS))
        if settings.route == "handler":
            place = f"{replica['status']['podIP']}:{settings.port}"
            return Found(found, f"{settings.protocol}://{place}{settings.path}")
        return Found(found, f"{_address(replica, settings.protocol)}{settings.path}", address.host_of(url))

    def _find(self, url: str, host: str) -> Found | None:
        named = host or address.host_of(url)
        for service in self.cluster.visible(SERVICES):
            status = service.get("status", {})
            outside = {address.host_of(each["url"]) for each in (status, *_traffic(status)) if each.get("url")}
            inside = address.host_of((status.get("address") or {}).get("url", ""))
            if named not in {*outside, inside}:
                continue
            if not _is_ready(service):
                trouble = pod.condition(service, "Ready") or {}
                raise FramestormError(
                    f"service {pod.name_of(service)} in namespace {service['metadata']['namespace']} is not ready: "
                    f"{trouble.get('reason', '')}: {trouble.get('message', '')}; see kubectl describe ksvc"
                )
            workload = _workload(pod.name_of(service), service["metadata"]["namespace"])
            # The user says where its requests go, or they come from where that address leads to it.
            if host or (named == inside and self.site.by_pods):
                return Found(workload, url)
            return by_ingress(self.cluster, self.site, workload, workload.name, url)
        return None

    def _deployment(self, workload: Workload) -> Deployment:
        host = self._found and (self._found.host or address.host_of(self._found.url))
        return deployment_of(self.cluster, workload.function, workload.name, workload.namespace, host or "")


def begins_with(min_scale: int, *, from_zero: bool) -> range:
    """Return the numbers of replicas with which a run may begin: one that was just made has one at first."""
    return range(1) if from_zero else range(min_scale, max(1, min_scale) + 1)


def has_settled(observation: Observation, revision: str, replicas: range) -> bool:
    """Return whether a function has one of these numbers of replicas, and all are of a revision."""
    pods = observation.items(watch.PODS)
    staying = pod.staying(pods)
    # Those of the point before still take cores.
    are_new = all(each["metadata"]["labels"][REVISION] == revision for each in staying)
    is_empty = all(map(pod.is_over, pods))
    return are_new and (len(staying) in replicas if replicas[-1] else is_empty)


def deployment_of(cluster: Cluster, function: str, service: str, namespace: str, host: str = "") -> Deployment:
    """Return what a Service of Knative runs for a host, and between which numbers of replicas it is scaled.

    Where several revisions share its requests, the settings are those of the one that gets most of them.
    """
    status = cluster.get(SERVICES, service, namespace)["status"]
    shares = [each for each in _traffic(status) if each.get("url") and address.host_of(each["url"]) == host]
    shares = shares or sorted(_traffic(status), key=lambda each: each.get("percent") or 0, reverse=True)
    revision = shares[0]["revisionName"] if shares else status["latestReadyRevisionName"]
    split = [f"{each['revisionName']} {each['percent']} %" for each in shares if each.get("percent")]
    item = cluster.get("revisions.serving.knative.dev", revision, namespace)
    annotations, spec = item["metadata"].get("annotations", {}), item["spec"]
    container = next((each for each in spec["containers"] if each.get("ports")), spec["containers"][0])
    # Knative takes both spellings.
    least, most = (
        int(annotations.get(f"{AUTOSCALING}/{end}-scale") or annotations.get(f"{AUTOSCALING}/{end}Scale") or 0)
        for end in ("min", "max")
    )
    most = most or _usual_max_scale(cluster)
    return Deployment(
        function,
        container["image"],
        ", ".join(split) if len(split) > 1 else revision,
        container.get("resources", {}).get("requests", {}),
        container.get("resources", {}).get("limits", {}),
        spec.get("containerConcurrency", 0),
        least,
        most or None,
    )


def by_ingress(cluster: Cluster, site: Site, workload: Workload, service: str, url: str) -> Found:
    """Return a Service of Knative by the name in its URL, if that leads somewhere, or else by its ingress."""
    host = address.host_of(url)
    if site.ingress is None and address.leads_somewhere(host):
        return Found(workload, url)
    base = site.ingress or ingress(cluster, service, workload.namespace, url.partition(":")[0])
    return Found(workload, address.at(url, base), host)


def ingress(cluster: Cluster, name: str, namespace: str, scheme: str) -> str:
    """Return the address of the ingress by which a Service of Knative is called.

    Raises:
        FramestormError: the cluster does not tell, or the ingress is not published.
    """
    try:
        item = cluster.get("ingresses.networking.internal.knative.dev", name, namespace)
        for each in item.get("status", {}).get("publicLoadBalancer", {}).get("ingress") or ():
            if place := each.get("ip") or each.get("domain"):
                return f"{scheme}://{place}"
            service, _, rest = each.get("domainInternal", "").partition(".")
            if rest:
                return address.of_service(cluster, service, rest.partition(".")[0], scheme)
    except ClusterError as error:
        raise FramestormError(f"{error}; give the address of the ingress by --ingress URL") from None
    raise FramestormError(
        f"the ingress of service {name} in namespace {namespace} has no address; give it by --ingress URL"
    )


def _workload(name: str, namespace: str) -> Workload:
    return Workload(name, namespace, f"{SERVICE}={name}", watch.KNATIVE_SERVICES, name, KINDS)


def _traffic(status: Object) -> list[Object]:
    """Return how a Service shares its requests among revisions."""
    return list(status.get("traffic") or ())


def _is_ready(service: Object) -> bool:
    ready = pod.condition(service, "Ready")
    return pod.is_current(service) and ready is not None and ready["status"] == "True"


def url_of(service: Object, protocol: str, path: str) -> str:
    """Return the URL of a Service of Knative by a protocol; with TLS, if that is how it is called by HTTP."""
    return f"{str(service['status']['url']).replace('http', protocol, 1)}{path}"


def _address(item: Object, protocol: str) -> str:
    return f"{protocol}://{item['status']['podIP']}:{PROXY_PORTS[protocol]}"


def _usual_max_scale(cluster: Cluster) -> int:
    """Return the bound that the cluster's own configuration has; 0 without one, or if it is not shown."""
    try:
        configured = cluster.find("configmap", "config-autoscaler", SYSTEM)
    except ClusterError:
        return 0
    return int(((configured or {}).get("data") or {}).get("max-scale", 0))
