"""Slaves as pods of a user's cluster, and a master among them: `-R k8s:6`.

The conductor stays here and reaches each pod by `kubectl exec`; JMeter's controller and servers, which connect to each
other, are all in the cluster.
"""

import re
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from framestorm import __version__
from framestorm.errors import FramestormError, UsageError
from framestorm.hosts.inventory import Hosts, find_hosts
from framestorm.machine import wait_until
from framestorm.platform.kubernetes.cluster import MANAGER, Cluster, Object
from framestorm.run.options import PODS

MASTER = "master"
IMAGE = f"framestorm:{__version__}"
READY_WITHIN_S = 120
USER = 10001
RMI = (8001, 8003)
# What each pod asks for: JMeter's server has a heap of 1 GiB, and its users come beside it.
REQUESTS = {"cpu": "100m", "memory": "1280Mi"}
# Where the image writes; its own files are read-only.
VOLUMES = {
    "tmp": "/tmp",  # noqa: S108 - the pod's own
    "settings": "/etc/framestorm",
    "state": "/var/lib/framestorm",
    "results": "/opt/framestorm/dashboards",
    "frames": "/opt/framestorm/.local/frames",
}
# Why a container waits when waiting is of no use.
HOPELESS = ("ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "CrashLoopBackOff")


@dataclass(frozen=True)
class Pod:
    """A pod of a run by its name, and how kubectl reaches it; it has an address once it is ready."""

    cluster: Cluster
    namespace: str
    name: str
    address: str = ""

    @property
    def place(self) -> str:
        """Return where it is, for messages."""
        return f"pod {self.namespace}/{self.name}"

    @property
    def by(self) -> str:
        """Return the program that reaches it."""
        return "kubectl"

    @property
    def set_up(self) -> str:
        """Return what sets it up again."""
        return "build the image from this checkout, and bring it to the cluster (docs/containers.md)"

    def command(self, remote: str) -> list[str]:
        """Return the command that runs another in it, as the user of the image."""
        words = ("exec", "--stdin", "--namespace", self.namespace, self.name, "--", "/bin/sh", "-c", f"exec {remote}")
        return self.cluster.command(*words)


@dataclass(frozen=True)
class Pods(Hosts):
    """The pods of one run, as `-R k8s:COUNT` asks for them; they are there within `up`."""

    slaves: Sequence[Pod]
    master: Pod
    image: str

    @classmethod
    def asked(cls, pattern: str, cluster: Cluster, image: str) -> "Pods":
        """Return the pods that the words after -R ask for.

        Raises:
            UsageError: they name no number of pods.
        """
        number = pattern.removeprefix(PODS)
        if not re.fullmatch("[1-9][0-9]{0,3}", number):
            raise UsageError(f"-R {pattern}: how many pods send the load? As in -R {PODS}6")
        master = Pod(cluster, f"framestorm-load-{secrets.token_hex(3)}", MASTER)
        slaves = [replace(master, name=f"slave{count}") for count in range(1, int(number) + 1)]
        return cls(slaves, master, (), image)

    @contextmanager
    def up(self) -> Iterator[Hosts]:
        """Make the pods, yield them with their addresses when all are ready, and remove all of it.

        Raises:
            FramestormError: the cluster refuses them, or they do not become ready; it has the reason that it gives.
        """
        cluster, namespace = self.master.cluster, self.master.namespace
        cluster.apply([_namespace(namespace)])
        try:
            cluster.apply([_policy(namespace), *(self._object(pod) for pod in (self.master, *self.slaves))])
            addresses = self._addresses()
            master, *slaves = (replace(pod, address=addresses[pod.name]) for pod in (self.master, *self.slaves))
            yield Hosts(slaves, master, ())
        finally:
            cluster.delete("namespace", namespace)

    def _addresses(self) -> dict[str, str]:
        """Wait until all pods are ready; returns their addresses by their names."""
        found: dict[str, str] = {}
        pods = len(self.slaves) + 1

        def are_ready() -> bool:
            items = self.master.cluster.get("pods", namespace=self.master.namespace)["items"]
            for item in items:
                if why := _why_hopeless(item):
                    raise FramestormError(f"{self.master.cluster.context}: pod {item['metadata']['name']}: {why}")
            found.update({item["metadata"]["name"]: item["status"]["podIP"] for item in items if _is_ready(item)})
            return len(found) == pods

        if not wait_until(are_ready, READY_WITHIN_S, 0.5):
            raise FramestormError(
                f"{pods - len(found)} of {pods} pods were not ready in {READY_WITHIN_S} s; see "
                f"kubectl describe pods --namespace {self.master.namespace}, or ask for fewer pods"
            )
        return found

    def _object(self, pod: Pod) -> Object:
        container: dict[str, Any] = {
            "name": "framestorm",
            "image": self.image,
            "args": ["slave", "--by-exec"],
            "resources": {"requests": REQUESTS},
            "securityContext": {
                "readOnlyRootFilesystem": True,
                "allowPrivilegeEscalation": False,
                "capabilities": {"drop": ["ALL"]},
            },
            "volumeMounts": [{"name": volume, "mountPath": path} for volume, path in VOLUMES.items()],
            "readinessProbe": {"exec": {"command": ["test", "-s", "/etc/framestorm/host.json"]}, "periodSeconds": 1},
        }
        spread = {
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": _LABELS},
        }
        spec = {
            "containers": [container],
            "volumes": [{"name": volume, "emptyDir": {}} for volume in VOLUMES],
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": USER,
                "runAsGroup": USER,
                "fsGroup": USER,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "topologySpreadConstraints": [spread],
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            # A pod that ends has lost its users: another in its place would be no help to the run.
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 5,
        }
        metadata = {"name": pod.name, "namespace": pod.namespace, "labels": _LABELS}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def find_slaves(pattern: str, inventory: Path, image: str | None = None) -> Hosts:
    """Return who takes part, as the words after -R say it: pods, or hosts of the inventory.

    Raises:
        UsageError: the inventory or the cluster has none such.
    """
    if pattern.startswith(PODS):
        return Pods.asked(pattern, Cluster.of(None), image or IMAGE)
    if image is not None:
        raise UsageError(f"--image {image} is for pods, as in -R {PODS}6")
    return find_hosts(inventory, pattern)


_LABELS = {"app.kubernetes.io/managed-by": MANAGER, "app.kubernetes.io/component": "load"}


def _namespace(name: str) -> Object:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": _LABELS}}


def _policy(namespace: str) -> Object:
    """Return what ufw is on hosts: RMI executes what it receives, so only these pods connect to each other."""
    allowed = {
        "from": [{"podSelector": {"matchLabels": _LABELS}}],
        "ports": [{"protocol": "TCP", "port": RMI[0], "endPort": RMI[1]}],
    }
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": "framestorm-rmi", "namespace": namespace, "labels": _LABELS},
        "spec": {"podSelector": {}, "policyTypes": ["Ingress"], "ingress": [allowed]},
    }


def _is_ready(pod: Object) -> bool:
    conditions: Sequence[Object] = pod.get("status", {}).get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _why_hopeless(pod: Object) -> str | None:
    """Return why a pod will not become ready; None if it may."""
    status = pod.get("status", {})
    for container in status.get("containerStatuses") or ():
        state = container["state"]
        waiting = state.get("waiting", {})
        if waiting.get("reason") in HOPELESS:
            return f"{waiting['reason']}: {waiting.get('message', '')}; is the image {container['image']} on its node?"
        if "terminated" in state:
            return f"{state['terminated'].get('reason', 'ended')} (exit status {state['terminated']['exitCode']})"
    return None
