"""What Knative's controllers and a kubelet do about a Service, as far as the kit looks at it."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from framestorm.platform.kubernetes import watch
from framestorm.platform.kubernetes.cluster import Cluster
from tests.kubernetes import objects

SERVICE = "serving.knative.dev/service"
DOMAIN = "example.test"
# The ingress of the cluster, on a port of a node.
INGRESS, INGRESS_NAMESPACE = "small", "ingress-system"
Status = dict[str, Any]


def ingress(cluster: Cluster, node_port: int) -> None:
    """Publish an ingress on a port of a node that is this machine."""
    ports = [{"name": "http2", "port": 80, "nodePort": node_port}]
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": INGRESS, "namespace": INGRESS_NAMESPACE},
        "spec": {"type": "NodePort", "ports": ports, "selector": {"app": INGRESS}},
    }
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "here"}}
    cluster.apply([objects.namespace(INGRESS_NAMESPACE), service, node])
    addresses = [{"type": "InternalIP", "address": "127.0.0.1"}]
    objects.set_status(
        cluster,
        "node",
        "here",
        "",
        {"addresses": addresses, "allocatable": {"cpu": "4"}, "conditions": [objects.condition("Ready")]},
    )


def controllers(
    cluster: Cluster, namespace: str, of_pod: Callable[[], Status] = objects.running
) -> AbstractContextManager[None]:
    """Act on each new generation of each Service; its one pod gets the status `of_pod`."""
    return objects.controlling(
        cluster, watch.KNATIVE_SERVICES, namespace, lambda service: reconcile(cluster, service, of_pod())
    )


def reconcile(cluster: Cluster, service: dict[str, Any], of_pod: Status) -> None:
    metadata, template = service["metadata"], service["spec"]["template"]
    name, namespace = metadata["name"], metadata["namespace"]
    revision = f"{name}-{metadata['generation']:05}"
    labels = {SERVICE: name, "serving.knative.dev/revision": revision, **template["metadata"].get("labels", {})}
    where = {"namespace": namespace, "labels": labels}
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": revision}
    scaler = {
        "apiVersion": "autoscaling.internal.knative.dev/v1alpha1",
        "kind": "PodAutoscaler",
        "metadata": {"name": revision, **where},
        "spec": {"scaleTargetRef": target, "protocolType": "http1"},
    }
    endpoints = {
        "apiVersion": "networking.internal.knative.dev/v1alpha1",
        "kind": "ServerlessService",
        "metadata": {"name": revision, **where},
        "spec": {"mode": "Proxy", "objectRef": target, "protocolType": "http1"},
    }
    for old in cluster.get("pods", namespace=namespace, selector=f"{SERVICE}={name}")["items"]:
        cluster.call(
            "delete",
            "pod",
            old["metadata"]["name"],
            "--namespace",
            namespace,
            "--force",
            "--grace-period=0",
            "--wait=false",
        )
    cluster.apply(
        [
            {
                "apiVersion": "serving.knative.dev/v1",
                "kind": "Revision",
                "metadata": {"name": revision, "annotations": template["metadata"].get("annotations", {}), **where},
                "spec": template["spec"],
            },
            {
                "apiVersion": "networking.internal.knative.dev/v1alpha1",
                "kind": "Ingress",
                "metadata": {"name": name, **where},
                "spec": {"httpOption": "Enabled", "rules": []},
            },
            objects.deployment(namespace, revision, labels),
            scaler,
            endpoints,
            objects.pod(namespace, f"{revision}-pod", labels),
        ]
    )
    here = [{"domainInternal": f"{INGRESS}.{INGRESS_NAMESPACE}.svc.cluster.local"}]
    of_ingress = {"publicLoadBalancer": {"ingress": here}, "privateLoadBalancer": {"ingress": here}}
    objects.set_status(cluster, "ingresses.networking.internal.knative.dev", name, namespace, of_ingress)
    scale = {"desiredScale": 1, "actualScale": 1, "serviceName": revision, "metricsServiceName": revision}
    objects.set_status(cluster, "podautoscalers", revision, namespace, scale)
    objects.set_status(cluster, "pod", f"{revision}-pod", namespace, of_pod)
    if of_pod.get("phase") != "Running":
        return
    objects.set_status(cluster, "deployment", revision, namespace, {"replicas": 1, "readyReplicas": 1})
    url = f"http://{name}.{namespace}.{DOMAIN}"
    ready = {
        "observedGeneration": metadata["generation"],
        "url": url,
        "latestReadyRevisionName": revision,
        "latestCreatedRevisionName": revision,
        "conditions": [objects.condition("Ready")],
        "traffic": [{"revisionName": revision, "percent": 100, "latestRevision": True}],
    }
    objects.set_status(cluster, "services.serving.knative.dev", name, namespace, ready)
