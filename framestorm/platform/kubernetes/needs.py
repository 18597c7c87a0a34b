"""What a platform needs of a cluster, and the command that brings what is missing."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from framestorm.model.units import listed, plural
from framestorm.platform.base import Check
from framestorm.platform.kubernetes.cluster import MANAGED, NAMESPACE, Cluster, ClusterError, ForbiddenError, Object

LEAST = (1, 28)
# What the kit creates, changes and watches in its namespace, with the verbs.
_WATCHED = ("list", "watch")
_MADE = ("create", "patch", "delete", "get", *_WATCHED)
RIGHTS: dict[str, tuple[str, ...]] = {
    "configmaps": ("create", "get", "list", "delete"),
    "deployments.apps": _MADE,
    "services": ("create", "patch", "delete", "get", "list"),
    "pods": _WATCHED,
    "horizontalpodautoscalers.autoscaling": ("list", "delete"),
}
# By the platform's name, what it needs beside.
_OF_KNATIVE = {
    "podautoscalers.autoscaling.internal.knative.dev": _WATCHED,
    "serverlessservices.networking.internal.knative.dev": _WATCHED,
}
MORE_RIGHTS: dict[str, dict[str, tuple[str, ...]]] = {
    "kubernetes": {"horizontalpodautoscalers.autoscaling": _MADE},
    "knative": {"services.serving.knative.dev": _MADE, **_OF_KNATIVE},
    "kserve": {
        "inferenceservices.serving.kserve.io": _MADE,
        "horizontalpodautoscalers.autoscaling": (*_WATCHED, "delete"),
        **_OF_KNATIVE,
    },
}
KNATIVE = "https://github.com/knative/serving/releases/download/knative-v1.15.2"
KOURIER = "https://github.com/knative/net-kourier/releases/download/knative-v1.15.1/kourier.yaml"
KSERVE_YAML = "https://github.com/kserve/kserve/releases/download/v0.14.0/kserve.yaml"
CERT_MANAGER = "https://github.com/cert-manager/cert-manager/releases/download/v1.15.3/cert-manager.yaml"
METRICS = "https://github.com/kubernetes-sigs/metrics-server/releases/download/v0.8.0/components.yaml"
# Knative's own default is Istio's, which Kourier does not listen to; KServe would ask for Istio's VirtualServices.
USE_KOURIER = (
    "kubectl patch configmap config-network --namespace knative-serving --type merge --patch "
    """'{"data": {"ingress-class": "kourier.ingress.networking.knative.dev"}}'"""
)
WITHOUT_ISTIO = (
    "kubectl get configmap inferenceservice-config --namespace kserve --output yaml | "
    """sed 's/"disableIstioVirtualHost": *false/"disableIstioVirtualHost": true/' | kubectl replace -f -"""
)
ISTIO_CLASS = "istio.ingress.networking.knative.dev"
VIRTUAL_SERVICES = "virtualservices.networking.istio.io"


@dataclass(frozen=True)
class Need:
    """Something that has to be installed in a cluster.

    kinds: of its objects, that of the example first. deployments: namespace and name of each that has to run; the
    namespace is empty where it may be in any. brings: the commands that install it. example: an object that its
    webhooks have to take, without its namespace. misfit: what in its configuration keeps functions from becoming ready,
    and the command that mends it.
    """

    name: str
    kinds: tuple[str, ...] = ()
    deployments: tuple[tuple[str, str], ...] = ()
    brings: tuple[str, ...] = ()
    example: Object | None = None
    misfit: Callable[[Cluster], tuple[str, str] | None] = lambda cluster: None


def _apply(*urls: str) -> tuple[str, ...]:
    return tuple(f"kubectl apply --server-side -f {url}" for url in urls)


def _without_ingress(cluster: Cluster) -> tuple[str, str] | None:
    """Return why nothing makes routes to Services of Knative, by the usual names of its ingresses' controllers."""
    network = cluster.find("configmap", "config-network", "knative-serving") or {}
    of_ingress = (network.get("data") or {}).get("ingress-class") or ISTIO_CLASS
    known = re.fullmatch(r"(istio|kourier|contour|gateway-api)\.ingress\.networking\.knative\.dev", of_ingress)
    if known is None:
        return None
    controller = f"net-{known[1]}-controller"
    if controller in {item["metadata"]["name"] for item in cluster.every("deployments.apps")}:
        return None
    words = f"its ConfigMap config-network has the ingress class {of_ingress}, and no deployment {controller} serves it"
    return words, USE_KOURIER


def _asks_for_istio(cluster: Cluster) -> tuple[str, str] | None:
    """Return why no InferenceService that Knative runs becomes ready, if that is for want of Istio."""
    configured = cluster.find("configmap", "inferenceservice-config", "kserve") or {}
    ingress = (configured.get("data") or {}).get("ingress")
    if not ingress or json.loads(ingress).get("disableIstioVirtualHost") or cluster.serves(VIRTUAL_SERVICES):
        return None
    if not all(map(cluster.serves, KNATIVE_SERVING.kinds)):
        return None
    return "its ConfigMap inferenceservice-config asks for VirtualServices of Istio, which is not there", WITHOUT_ISTIO


METRICS_SERVER = Need(
    "metrics-server",
    # Each provider runs it, or its like, under a name of its own: what counts is that the API is served.
    kinds=("pods.metrics.k8s.io",),
    brings=_apply(METRICS),
)
KNATIVE_SERVING = Need(
    "Knative Serving",
    kinds=("services.serving.knative.dev", "podautoscalers.autoscaling.internal.knative.dev"),
    deployments=tuple(("knative-serving", name) for name in ("activator", "autoscaler", "controller", "webhook")),
    brings=(*_apply(f"{KNATIVE}/serving-crds.yaml", f"{KNATIVE}/serving-core.yaml", KOURIER), USE_KOURIER),
    misfit=_without_ingress,
    example={
        "apiVersion": "serving.knative.dev/v1",
        "kind": "Service",
        "metadata": {"name": "framestorm-check"},
        "spec": {"template": {"spec": {"containers": [{"image": "example.com/check:1"}]}}},
    },
)
KSERVE = Need(
    "KServe",
    kinds=("inferenceservices.serving.kserve.io", "servingruntimes.serving.kserve.io"),
    deployments=(("", "kserve-controller-manager"),),  # that of Kubeflow is in namespace kubeflow
    brings=(*_apply(CERT_MANAGER, KSERVE_YAML), WITHOUT_ISTIO),
    misfit=_asks_for_istio,
    example={
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": "framestorm-check"},
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


def _rights(cluster: Cluster, rights: Mapping[str, Iterable[str]]) -> Check:
    try:
        rights = {"namespaces": _of_namespace(cluster), **rights}
        asked = [(verb, resource) for resource, verbs in rights.items() for verb in verbs]
        lacking = [" ".join(right) for right in cluster.lacking(asked, NAMESPACE)]
    except ClusterError as error:
        return Check("rights", False, str(error))
    if not lacking:
        return Check("rights", True, f"in namespace {NAMESPACE}: all that the kit does there")
    role = f"kubectl create rolebinding framestorm --clusterrole=admin --user=YOU --namespace={NAMESPACE}"
    if rights["namespaces"]:
        role = f"kubectl create namespace {NAMESPACE} && {role}"
    return Check("rights", False, f"this user may not {listed(lacking)} in namespace {NAMESPACE}; ask for `{role}`")


def _of_namespace(cluster: Cluster) -> tuple[str, ...]:
    """Return what the kit does to its namespace: nothing to one that others made."""
    try:
        namespace = cluster.find("namespace", NAMESPACE)
    except ForbiddenError:
        namespace = None
    is_of_others = namespace and not MANAGED.items() <= (namespace["metadata"].get("labels") or {}).items()
    return () if is_of_others else ("create", "delete")


def _need(cluster: Cluster, need: Need) -> Check:
    try:
        problem, mend = next(_problems(cluster, need), (None, ""))
    except ForbiddenError as error:
        # Users of a shared cluster often may not see what serves them.
        return Check(need.name, True, f"its kinds are there, and whether it is ready is not shown: {error}")
    except ClusterError as error:
        problem, mend = str(error), "see `kubectl get apiservices`, and what serves it"
    return Check(need.name, problem is None, "installed, and ready" if problem is None else f"{problem}; {mend}")


def _to_install(need: Need) -> str:
    return f"to install it: `{' && '.join(need.brings)}`"


def _problems(cluster: Cluster, need: Need) -> Iterator[tuple[str, str]]:
    """Yield what a cluster lacks, and how to mend it; what all users may see first."""
    lacking = [kind for kind in need.kinds if not cluster.serves(kind)]
    if lacking:
        yield f"the cluster has no {listed(lacking)}", _to_install(need)
    for namespace, name in need.deployments:
        deployment = _deployment(cluster, namespace, name)
        if deployment is None:
            where = f" in namespace {namespace}" if namespace else ""
            yield f"there is no deployment {name}{where}", _to_install(need)
        elif not is_available(deployment):
            # To install it again might replace it by another version.
            place = deployment["metadata"]["namespace"]
            words = f"deployment {name} in namespace {place} is not available: {why(deployment)}"
            yield words, f"see `kubectl describe deployment {name} --namespace {place}`"
    if need.example and (refusal := _refusal(cluster, need.kinds[0], need.example)):
        words = "see `kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations`"
        yield f"it takes no {need.example['kind']}: {refusal}", words
    if misfit := need.misfit(cluster):
        yield misfit[0], f"to mend it: `{misfit[1]}`"


def _deployment(cluster: Cluster, namespace: str, name: str) -> Object | None:
    if namespace:
        return cluster.find("deployment", name, namespace)
    return next((each for each in cluster.every("deployments") if each["metadata"]["name"] == name), None)


def _refusal(cluster: Cluster, kind: str, example: Object) -> str | None:
    """Return why the cluster would refuse an object that the user has the right to create; None if it would take it."""
    namespace = NAMESPACE if cluster.find("namespace", NAMESPACE) else "default"
    if not cluster.may("create", kind, namespace):
        return None
    return cluster.would_take({**example, "metadata": {**example["metadata"], "namespace": namespace}})


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
