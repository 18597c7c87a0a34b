"""What a platform needs of a cluster, and the command that brings what is missing."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from framestorm.model.units import listed, plural
from framestorm.platform.base import Check
from framestorm.platform.kubernetes.cluster import Cluster, ClusterError, Object

NAMESPACE = "framestorm"
LEAST = (1, 28)
# What the kit creates, changes and watches in its namespace, with the verbs.
_MADE = ("create", "patch", "delete", "watch")
RIGHTS: dict[str, tuple[str, ...]] = {
    "namespaces": ("create", "delete"),
    "configmaps": ("create", "get"),
    "deployments.apps": _MADE,
    "services": ("create", "patch", "delete"),
    "pods": ("watch",),
}
# By the platform's name, what it needs beside.
_OF_KNATIVE = {
    "podautoscalers.autoscaling.internal.knative.dev": ("watch",),
    "serverlessservices.networking.internal.knative.dev": ("watch",),
}
MORE_RIGHTS: dict[str, dict[str, tuple[str, ...]]] = {
    "kubernetes": {"horizontalpodautoscalers.autoscaling": _MADE},
    "knative": {"services.serving.knative.dev": _MADE, **_OF_KNATIVE},
    "kserve": {
        "inferenceservices.serving.kserve.io": _MADE,
        "horizontalpodautoscalers.autoscaling": ("watch",),
        **_OF_KNATIVE,
    },
}
KNATIVE = "https://github.com/knative/serving/releases/download/knative-v1.15.2"
KOURIER = "https://github.com/knative/net-kourier/releases/download/knative-v1.15.1/kourier.yaml"
KSERVE_YAML = "https://github.com/kserve/kserve/releases/download/v0.14.0/kserve.yaml"
CERT_MANAGER = "https://github.com/cert-manager/cert-manager/releases/download/v1.15.3/cert-manager.yaml"
METRICS = "https://github.com/kubernetes-sigs/metrics-server/releases/download/v0.8.0/components.yaml"


@dataclass(frozen=True)
class Need:
    """Something that has to be installed in a cluster.

    kinds: names of its CustomResourceDefinitions. deployments: namespace and name of each that has to run. api: an API
    that it serves. brings: the commands that install it. example: an object that its webhooks have to take.
    """

    name: str
    kinds: tuple[str, ...] = ()
    deployments: tuple[tuple[str, str], ...] = ()
    api: str | None = None
    brings: tuple[str, ...] = ()
    example: Object | None = None


def _apply(*urls: str) -> tuple[str, ...]:
    return tuple(f"kubectl apply --server-side -f {url}" for url in urls)


METRICS_SERVER = Need(
    "metrics-server",
    deployments=(("kube-system", "metrics-server"),),
    api="v1beta1.metrics.k8s.io",
    brings=_apply(METRICS),
)
KNATIVE_SERVING = Need(
    "Knative Serving",
    kinds=("services.serving.knative.dev", "podautoscalers.autoscaling.internal.knative.dev"),
    deployments=tuple(("knative-serving", name) for name in ("activator", "autoscaler", "controller", "webhook")),
    brings=_apply(f"{KNATIVE}/serving-crds.yaml", f"{KNATIVE}/serving-core.yaml", KOURIER),
    example={
        "apiVersion": "serving.knative.dev/v1",
        "kind": "Service",
        "metadata": {"name": "framestorm-check", "namespace": "default"},
        "spec": {"template": {"spec": {"containers": [{"image": "example.com/check:1"}]}}},
    },
)
KSERVE = Need(
    "KServe",
    kinds=("inferenceservices.serving.kserve.io", "servingruntimes.serving.kserve.io"),
    deployments=(("kserve", "kserve-controller-manager"),),
    brings=_apply(CERT_MANAGER, KSERVE_YAML),
    example={
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": "framestorm-check", "namespace": "default"},
        "spec": {"predictor": {"containers": [{"name": "kserve-container", "image": "example.com/check:1"}]}},
    },
)
# By the platform's name: what functions there need if nothing else is known of them.
NEEDS: dict[str, tuple[Need, ...]] = {
    "kubernetes": (METRICS_SERVER,),  # which a HorizontalPodAutoscaler asks
    "knative": (KNATIVE_SERVING,),
    "kserve": (KSERVE,),
}
TITLES = {"kubernetes": "plain Kubernetes", "knative": "Knative", "kserve": "KServe"}


def checks(cluster: Cluster, platform: str, needed: Iterable[Need] | None = None) -> Iterator[Check]:
    """Check whether a cluster has what a platform needs; nothing is installed or changed.

    needed: what its functions need, where that is known.
    """
    try:
        version = cluster.version()
    except ClusterError as error:
        yield Check("cluster", False, str(error))
        return
    yield _version(version)
    yield from _nodes(cluster)
    yield _rights(cluster, RIGHTS | MORE_RIGHTS[platform])
    for need in NEEDS[platform] if needed is None else needed:
        yield _need(cluster, need)


def _version(version: str) -> Check:
    number = tuple(int(each) for each in re.findall(r"\d+", version)[:2])
    least = ".".join(map(str, LEAST))
    words = f"Kubernetes {version}" + ("" if number >= LEAST else f" is older than {least}, the oldest that is served")
    return Check("cluster", number >= LEAST, words)


def _nodes(cluster: Cluster) -> Iterator[Check]:
    try:
        nodes = cluster.get("nodes")["items"]
    except ClusterError as error:
        # Users of a shared cluster often may not see its nodes; nothing depends on them.
        yield Check("nodes", True, f"not shown: {error}")
        return
    ready = [node for node in nodes if _condition(node, "Ready") == "True"]
    words = f"{len(ready)} of {plural(len(nodes), 'node')} ready"
    yield Check("nodes", bool(ready), words if ready else f"{words}: no pod can start")


def _rights(cluster: Cluster, rights: Mapping[str, Sequence[str]]) -> Check:
    asked = [(verb, resource) for resource, verbs in rights.items() for verb in verbs]
    try:
        lacking = [" ".join(right) for right in cluster.lacking(asked, NAMESPACE)]
    except ClusterError as error:
        return Check("rights", False, str(error))
    if not lacking:
        return Check("rights", True, f"in namespace {NAMESPACE}: all that the kit does there")
    role = f"kubectl create rolebinding framestorm --clusterrole=admin --user=YOU --namespace={NAMESPACE}"
    return Check("rights", False, f"this user may not {listed(lacking)} in namespace {NAMESPACE}; ask for `{role}`")


def _need(cluster: Cluster, need: Need) -> Check:
    try:
        problem = next(_problems(cluster, need), None)
    except ClusterError as error:
        problem = str(error)
    if problem is None:
        return Check(need.name, True, "installed, and ready")
    return Check(need.name, False, f"{problem}; to install it: `{' && '.join(need.brings)}`")


def _problems(cluster: Cluster, need: Need) -> Iterator[str]:
    lacking = [kind for kind in need.kinds if cluster.find("customresourcedefinition", kind) is None]
    if lacking:
        yield f"the cluster has no {listed(lacking)}"
    for namespace, name in need.deployments:
        deployment = cluster.find("deployment", name, namespace)
        if deployment is None:
            yield f"there is no deployment {name} in namespace {namespace}"
        elif not is_available(deployment):
            yield f"deployment {name} in namespace {namespace} is not available: {why(deployment)}"
    if need.api:
        service = cluster.find("apiservice", need.api)
        if service is None or _condition(service, "Available") != "True":
            yield f"the API {need.api} is not available" + (f": {why(service)}" if service else "")
    if need.example and (refusal := cluster.would_take(need.example)):
        yield f"it takes no {need.example['kind']}: {refusal}"


def is_available(deployment: Object) -> bool:
    """Return whether a deployment has the replicas that it has to have."""
    return _condition(deployment, "Available") == "True"


def _condition(item: Object, kind: str) -> str | None:
    conditions = item.get("status", {}).get("conditions") or ()
    return next((each["status"] for each in conditions if each["type"] == kind), None)


def why(item: Object) -> str:
    """Return what an object's conditions say about what is not so."""
    conditions = item.get("status", {}).get("conditions") or ()
    messages = [each.get("message") or each.get("reason") for each in conditions if each["status"] != "True"]
    return listed([each for each in messages if each] or ["its status does not say why"])
