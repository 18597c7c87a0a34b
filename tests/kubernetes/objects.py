"""Objects of a cluster as its controllers would make them, and the statuses that a kubelet would set."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any

from framestorm.platform.kubernetes.cluster import Cluster
from framestorm.platform.kubernetes.watch import Kind, ObjectChange, Watch

T0 = "2026-01-02T03:04:05Z"


def namespace(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def rights(namespace: str, user: str = "guest") -> list[dict[str, Any]]:
    """All rights of a user in one namespace."""
    rbac, metadata = "rbac.authorization.k8s.io", {"name": user, "namespace": namespace}
    everything = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
    return [
        {"apiVersion": f"{rbac}/v1", "kind": "Role", "metadata": metadata, "rules": [everything]},
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "RoleBinding",
            "metadata": metadata,
            "roleRef": {"apiGroup": rbac, "kind": "Role", "name": user},
            "subjects": [{"apiGroup": rbac, "kind": "User", "name": user}],
        },
    ]


def pod(namespace: str, name: str, labels: Mapping[str, str], node: str = "") -> dict[str, Any]:
    spec: dict[str, Any] = {"containers": [{"name": "user-container", "image": "example.com/x:1"}]}
    if node:
        spec["nodeName"] = node
    metadata = {"name": name, "namespace": namespace, "labels": dict(labels)}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def deployment(namespace: str, name: str, labels: Mapping[str, str], replicas: int = 1) -> dict[str, Any]:
    template = {"metadata": {"labels": dict(labels)}, "spec": pod("", "", {})["spec"]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace, "labels": dict(labels)},
        "spec": {"replicas": replicas, "selector": {"matchLabels": dict(labels)}, "template": template},
    }


def set_status(cluster: Cluster, kind: str, name: str, namespace: str, status: Mapping[str, Any]) -> None:
    place = ("--namespace", namespace) if namespace else ()
    patch = json.dumps({"status": status})
    cluster.call("patch", kind, name, *place, "--subresource=status", "--type=merge", "--patch", patch)


def container(**fields: Any) -> dict[str, Any]:
    """The status of a container."""
    of_all = {"name": "user-container", "image": "example.com/x:1", "imageID": "", "ready": False, "restartCount": 0}
    return {**of_all, **fields}


def condition(kind: str, status: bool = True, **fields: Any) -> dict[str, Any]:
    return {"type": kind, "status": str(status), "lastTransitionTime": T0, **fields}


def scheduled() -> dict[str, Any]:
    return {"conditions": [condition("PodScheduled")]}


def running(restarts: int = 0, **fields: Any) -> dict[str, Any]:
    """The status of a pod that serves."""
    state = {"running": {"startedAt": T0}}
    return {
        "phase": "Running",
        "conditions": [condition("PodScheduled"), condition("Ready")],
        "containerStatuses": [container(ready=True, state=state, restartCount=restarts, **fields)],
    }


def waiting(reason: str, message: str = "", restarts: int = 0, **fields: Any) -> dict[str, Any]:
    """The status of a pod whose container waits for something."""
    state = {"waiting": {"reason": reason, "message": message}}
    return {
        "phase": "Pending",
        "conditions": [condition("PodScheduled"), condition("Ready", status=False)],
        "containerStatuses": [container(state=state, restartCount=restarts, **fields)],
    }


def ended(reason: str, exit_code: int, at: str = T0) -> dict[str, Any]:
    """How a container ended last."""
    return {"terminated": {"reason": reason, "exitCode": exit_code, "finishedAt": at}}


def event(namespace: str, name: str, kind: str, about: str, uid: str, reason: str, **fields: Any) -> dict[str, Any]:
    """What a controller or a kubelet tells of an object; a warning unless `type` says something else."""
    involved = {"apiVersion": "v1", "kind": kind, "namespace": namespace, "name": about, "uid": uid}
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": namespace},
        "involvedObject": involved,
        "reason": reason,
        "type": "Warning",
        "lastTimestamp": T0,
        **fields,
    }


def set_node(cluster: Cluster, name: str, *, is_ready: bool) -> None:
    """Make a node, or change it, which is ready or whose kubelet is silent."""
    message = "" if is_ready else "Kubelet stopped posting node status."
    cluster.apply([{"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}])
    set_status(cluster, "node", name, "", {"conditions": [condition("Ready", is_ready, message=message)]})


@contextmanager
def controlling(
    cluster: Cluster, kind: Kind, namespace: str, reconcile: Callable[[dict[str, Any]], None]
) -> Iterator[None]:
    """Act on each new generation of each object of a kind, as a controller of Kubernetes does."""
    done: set[tuple[str, int]] = set()

    def take(change: ObjectChange) -> None:
        metadata = change.item["metadata"]
        if not change.is_gone and (metadata["uid"], metadata["generation"]) not in done:
            done.add((metadata["uid"], metadata["generation"]))
            reconcile(change.item)

    with closing(Watch(cluster, kind, namespace, take, lambda *_: None)) as each:
        each.begin()
        yield
