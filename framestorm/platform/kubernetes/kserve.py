"""Functions on KServe: an InferenceService, which Knative runs (serverless), or Kubernetes alone (raw)."""

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field

from framestorm.errors import FramestormError
from framestorm.model.study import Flag
from framestorm.platform.base import Count, CountOrNone, SettingError
from framestorm.platform.deployment import Deployment
from framestorm.platform.kubernetes import address, knative, plain, pod, watch
from framestorm.platform.kubernetes.calibration import Found
from framestorm.platform.kubernetes.cluster import NAMESPACE, Object
from framestorm.platform.kubernetes.function import ClusterPlatform, FunctionSettings, UrlPath
from framestorm.platform.kubernetes.needs import KNATIVE_SERVING, KSERVE, METRICS_SERVER, Need
from framestorm.platform.kubernetes.observation import Observation, Workload
from framestorm.platform.kubernetes.pod import Trouble
from framestorm.platform.quantities import Bytes

KIND = "inferenceservices.serving.kserve.io"
SERVING = "serving.kserve.io"
# In a path, in place of the function's name.
FUNCTION = "{function}"


class KServeSettings(FunctionSettings):
    """Settings of a function as an InferenceService of KServe, which has one container of its own (V1 protocol)."""

    kind: Literal["kserve"] = "kserve"
    path: UrlPath = Field(
        f"/v1/models/{FUNCTION}:predict", description=f"The path of its address; {FUNCTION} stands for its name."
    )
    memory: Bytes | None = Field(
        "512Mi", description="Memory that each replica is promised, and its limit; KServe's own default is 2Gi."
    )
    mode: Literal["serverless", "raw"] = Field(
        "serverless", description="serverless: a Service of Knative; raw: a Deployment, scaled by Kubernetes by CPU."
    )
    min_scale: CountOrNone = Field(1, description="Minimum number of replicas; 0, if serverless: it scales to zero.")
    from_zero: Flag = Field(False, description="true: a run begins when no replica is left.")
    concurrency_limit: CountOrNone = Field(
        0, description="If serverless: maximum number of requests in a replica at a time; others wait; 0: no limit."
    )
    target: Count | None = Field(
        None,
        description="What the autoscaler keeps in each replica: requests at a time, or raw percent of cpu_request.",
    )
    window_s: knative.Seconds | None = Field(
        None, description="If serverless: over how many seconds the autoscaler takes its mean."
    )

    of_requests = FunctionSettings.of_requests | {"from_zero"}

    def check(self) -> None:
        super().check()
        if self.max_scale is not None and self.min_scale > self.max_scale:
            raise SettingError("min_scale", f"min_scale {self.min_scale} is more than max_scale, {self.max_scale}")
        if self.mode == "raw" and not self.min_scale:
            raise SettingError("min_scale", "mode raw does not scale to zero: min_scale has to be at least 1")
        if self.from_zero and self.min_scale:
            raise SettingError("from_zero", "from_zero needs min_scale 0: it would wait for ever")
        for name in ("concurrency_limit", "window_s"):
            if self.mode == "raw" and getattr(self, name):
                raise SettingError(name, f"{name} is Knative's: mode raw has none")

    @property
    def needed(self) -> tuple[Need, ...]:
        if self.mode == "serverless":
            return (KSERVE, KNATIVE_SERVING)
        return (KSERVE, METRICS_SERVER) if self.max_scale != self.min_scale else (KSERVE,)

    @property
    def begins_with(self) -> range:
        return knative.begins_with(self.min_scale, from_zero=self.from_zero)

    @property
    def settle_s(self) -> float:
        if self.max_scale == self.begins_with[-1]:
            return 0.0
        return float(self.window_s or (plain.USUAL_WINDOW_S if self.mode == "raw" else knative.USUAL_WINDOW_S))

    @property
    def service(self) -> str:
        """The name of the InferenceService: KServe does not take away what it made in the other mode."""
        return f"{self.function}-raw" if self.mode == "raw" else self.function

    @property
    def predictor(self) -> str:
        """The name of what KServe makes of it."""
        return f"{self.service}-predictor"


class KServe(ClusterPlatform[KServeSettings]):
    """Functions as InferenceServices."""

    kind = "kserve"
    settings = KServeSettings
    bound = "set spec.predictor.maxReplicas of the InferenceService"

    def _calibrated_by(self) -> type[ClusterPlatform[Any]]:
        """Return the platform below: KServe's own path is that of Knative, or of a Service."""
        return knative.Knative if self._found is None or self._found.workload.kinds else plain.Plain

    def _objects(self, settings: KServeSettings, max_scale: int) -> Sequence[Object]:
        is_raw = settings.mode == "raw"
        annotations = {f"{SERVING}/deploymentMode": "RawDeployment" if is_raw else "Serverless"}
        if settings.window_s:
            annotations[f"{knative.AUTOSCALING}/window"] = f"{settings.window_s}s"
        predictor: Object = {
            "minReplicas": settings.min_scale,
            "maxReplicas": max_scale,
            "labels": settings.labels,
            "containers": [settings.container("kserve-container")],
        }
        if settings.target:
            predictor |= {"scaleMetric": "cpu" if is_raw else "concurrency", "scaleTarget": settings.target}
        if settings.concurrency_limit:
            predictor["containerConcurrency"] = settings.concurrency_limit
        metadata = {"name": settings.service, "namespace": NAMESPACE, "labels": settings.labels}
        service = {
            "apiVersion": f"{SERVING}/v1beta1",
            "kind": "InferenceService",
            "metadata": {**metadata, "annotations": annotations},
            "spec": {"predictor": predictor},
        }
        if not is_raw:
            return [service]
        # KServe makes none that is reached from outside.
        selector = {"app": f"isvc.{settings.predictor}"}
        return [service, plain.published(settings.function, selector, settings.port, settings.labels)]

    def _workload(self, settings: KServeSettings) -> Workload:
        return _workload(settings.function, settings.service, NAMESPACE, is_raw=settings.mode == "raw")

    def _is_ready(self, observation: Observation, settings: KServeSettings) -> bool:
        service = observation.item()
        if service is None or not _is_ready(service):
            return False
        if settings.mode == "raw":
            deployment = next(iter(observation.items(watch.DEPLOYMENTS)), None)
            return deployment is not None and plain.is_rolled_out(
                deployment, observation, settings.version, settings.begins_with
            )
        revisions = service["status"]["components"]["predictor"]
        return revisions["latestReadyRevision"] == revisions["latestCreatedRevision"] and knative.has_settled(
            observation, revisions["latestReadyRevision"], settings.begins_with
        )

    def _trouble(self, observation: Observation, settings: KServeSettings) -> Trouble | None:
        if (of_pods := super()._trouble(observation, settings)) is not None:
            return of_pods
        service = observation.item()
        configuration = pod.condition(service, "PredictorConfigurationReady") if service else None
        if service is None or not _is_current(service) or configuration is None or configuration["status"] != "False":
            return None
        what = f"inferenceservice {settings.service} in namespace {NAMESPACE}"
        words = f"see kubectl describe inferenceservice {settings.service} --namespace {NAMESPACE}"
        return Trouble(what, configuration.get("reason", ""), configuration.get("message", ""), words)

    def _reach(self, observation: Observation, settings: KServeSettings) -> Found:
        path, workload = settings.path.replace(FUNCTION, settings.function), observation.workload
        if settings.mode == "raw":
            base = plain.base_of(self.cluster, self.site, settings.function, scheme=settings.protocol)
            return Found(workload, f"{base}{path}")
        service = self.cluster.get(knative.SERVICES, settings.predictor, NAMESPACE)
        url = knative.url_of(service, settings.protocol, path)
        return knative.by_ingress(self.cluster, self.site, workload, settings.predictor, url)

    def _find(self, url: str, host: str) -> Found | None:
        named = host or address.host_of(url)
        for service in self.cluster.visible(KIND):
            name, namespace, status = pod.name_of(service), service["metadata"]["namespace"], service.get("status", {})
            parts = [status, status.get("address") or {}, *(status.get("components") or {}).values()]
            if named not in {address.host_of(each["url"]) for each in parts if each.get("url")}:
                continue
            if not _is_ready(service):
                trouble = pod.condition(service, "Ready") or {}
                raise FramestormError(
                    f"inferenceservice {name} in namespace {namespace} is not ready: {trouble.get('reason', '')}: "
                    f"{trouble.get('message', '')}; see kubectl describe inferenceservice"
                )
            predictor = f"{name}-predictor"
            is_raw = (
                not self.cluster.serves(knative.SERVICES)
                or self.cluster.find(knative.SERVICES, predictor, namespace) is None
            )
            workload = _workload(name, name, namespace, is_raw=is_raw)
            inside = address.host_of((status.get("address") or {}).get("url", ""))
            if host or (named == inside and self.site.by_pods):
                return Found(workload, url)
            if is_raw:
                scheme = url.partition(":")[0]
                base = self.site.ingress or plain.base_of(self.cluster, self.site, predictor, namespace, scheme)
                return Found(workload, address.at(url, base), named if self.site.ingress else "")
            return knative.by_ingress(self.cluster, self.site, workload, predictor, url)
        return None

    def _deployment(self, workload: Workload) -> Deployment:
        predictor = f"{workload.name}-predictor"
        if workload.kinds:
            return knative.deployment_of(self.cluster, workload.function, predictor, workload.namespace)
        return plain.deployment_of(self.cluster, workload.function, predictor, workload.namespace)


def _workload(function: str, name: str, namespace: str, *, is_raw: bool) -> Workload:
    predictor = f"{name}-predictor"
    if not is_raw:
        selector = f"{knative.SERVICE}={predictor}"
        return Workload(function, namespace, selector, watch.INFERENCE_SERVICES, name, knative.KINDS)
    named = ((watch.DEPLOYMENTS, predictor), (watch.AUTOSCALERS, predictor))
    return Workload(function, namespace, f"app=isvc.{predictor}", watch.INFERENCE_SERVICES, name, named=named)


def _is_current(service: Object) -> bool:
    """Return whether its status is of the newest settings, as far as it says."""
    generation = service["metadata"]["generation"]
    return bool(service.get("status", {}).get("observedGeneration", generation) == generation)


def _is_ready(service: Object) -> bool:
    ready = pod.condition(service, "Ready")
    return _is_current(service) and ready is not None and ready["status"] == "True"
