"""Slaves as pods of a user's cluster, and a master among them: `-R k8s:6`.

The conductor stays here and reaches each pod by `kubectl exec`; JMeter's controller and servers, which connect to each
other, are all in the cluster.
"""

import contextlib
import re
import secrets
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from framestorm import __version__
from framestorm.errors import FramestormError, UsageError
from framestorm.hosts.inventory import Hosts, find_hosts
from framestorm.machine import now_ms
from framestorm.platform.base import PODS
from framestorm.platform.kubernetes import event, pod, watch
from framestorm.platform.kubernetes.cluster import MANAGED, Cluster, ClusterError, Object
from framestorm.platform.kubernetes.pod import Trouble

MASTER = "master"
IMAGE = f"framestorm:{__version__}"
READY_WITHIN_S = 120
BEGINS_WITHIN_S = 3600  # a run has pods by then, whatever the difference of clocks
USER = 10001
RMI = (8001, 8003)
# What each pod asks for: JMeter's server has a heap of 1 GiB, and its users come beside it.
REQUESTS = {"cpu": "100m", "memory": "1280Mi"}
# Of a pod that will not become ready, and what to do where the usual advice is about functions.
LINES = 5
_ADVICE = {
    "Unschedulable": "ask for fewer pods, or add a node",
    "OOMKilled": f"it needs more memory, {REQUESTS['memory']} at least: see limits of new namespaces, and the nodes",
}
# Where the image writes; its own files are read-only.
VOLUMES = {
    "tmp": "/tmp",  # noqa: S108 - the pod's own
    "settings": "/etc/framestorm",
    "state": "/var/lib/framestorm",
    "results": "/opt/framestorm/dashboards",
    "frames": "/opt/framestorm/.local/frames",
}


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
    """The pods of one run, as `-R k8s:COUNT` asks for them; they exist within `up`."""

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
        _remove_left(cluster)
        cluster.apply([_namespace(namespace)])
        try:
            cluster.apply([_policy(namespace), *(self._object(each) for each in (self.master, *self.slaves))])
            addresses = self._addresses()
            master, *slaves = (replace(each, address=addresses[each.name]) for each in (self.master, *self.slaves))
            yield Hosts(slaves, master, ())
        finally:
            cluster.delete("namespace", namespace)

    def _addresses(self) -> dict[str, str]:
        """Wait until all pods are ready; returns their addresses by their names."""
        addresses: dict[str, str] = {}
        items: dict[str, Object] = {}
        troubles: dict[str, Trouble | None] = {}
        changed = threading.Condition()

        def take(change: watch.ObjectChange) -> None:
            name = pod.name_of(change.item)
            with changed:
                items[name], troubles[name] = change.item, _trouble(change.item)
                if pod.is_ready(change.item):
                    addresses[name] = _address(change.item)
                changed.notify()

        def is_decided() -> bool:
            # A pod that finds no room gets some as soon as others have ended.
            lasting = (each for each in troubles.values() if each and each.reason not in pod.PASSING)
            return any(lasting) or len(addresses) == pods

        pods = len(self.slaves) + 1
        cluster, namespace = self.master.cluster, self.master.namespace
        following = watch.Watch(cluster, watch.PODS, namespace, take, lambda *_: None)
        with closing(following), changed:
            following.begin()
            if not changed.wait_for(is_decided, READY_WITHIN_S) and event.gets_node(cluster, namespace, items.values()):
                changed.wait_for(is_decided, event.NODE_ADDED_WITHIN_S)
        if found := next(((name, each) for name, each in troubles.items() if each), None):
            raise FramestormError(f"{cluster.context}: {found[1]}{self._said_last(found[0])}")
        if len(addresses) < pods:
            raise FramestormError(
                f"{pods - len(addresses)} of {pods} pods were not ready in {READY_WITHIN_S} s; ask for fewer pods, or "
                f"see what the nodes do: kubectl --context {cluster.context} describe nodes"
            )
        if alone := [name for name, address in addresses.items() if not address]:
            raise FramestormError(f"{cluster.context}: pod {alone[0]} has no IPv4 address, which JMeter needs")
        return addresses

    def _said_last(self, name: str) -> str:
        """Return the last lines of a pod, which is removed with the others."""
        with contextlib.suppress(ClusterError):
            words = ("logs", name, "--namespace", self.master.namespace, f"--tail={LINES}")
            if text := self.master.cluster.call(*words).strip():
                return f"; it said last: {text}"
        return ""

    def _object(self, made: Pod) -> Object:
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
        metadata = {"name": made.name, "namespace": made.namespace, "labels": _LABELS}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def find_slaves(pattern: str, inventory: Path, image: str | None = None, context: str | None = None) -> Hosts:
    """Return who takes part, as the words after -R say it: pods, or hosts of the inventory.

    Raises:
        UsageError: the inventory or the cluster has none such.
    """
    if pattern.startswith(PODS):
        return Pods.asked(pattern, Cluster.of(context), image or IMAGE)
    if image is not None:
        raise UsageError(f"--image {image} is for pods, as in -R {PODS}6")
    return find_hosts(inventory, pattern)


_LABELS = MANAGED | {"app.kubernetes.io/component": "load"}


def _namespace(name: str) -> Object:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": _LABELS}}


def _remove_left(cluster: Cluster) -> None:
    """Remove the namespaces of runs whose conductor was killed: their pods have all ended by themselves."""
    if not cluster.may("list", "namespaces", ""):
        return
    selector = ",".join(f"{name}={value}" for name, value in _LABELS.items())
    for namespace in cluster.get("namespaces", selector=selector)["items"]:
        name, at_ms = pod.name_of(namespace), now_ms()
        phases = {each["status"].get("phase") for each in cluster.get("pods", namespace=name)["items"]}
        # One without a pod may be another run's that begins now; or its pods went with their node.
        is_old = at_ms - pod.time_ms(namespace["metadata"]["creationTimestamp"], at_ms) >= 1000 * BEGINS_WITHIN_S
        if phases <= {"Succeeded", "Failed"} and (phases or is_old):
            cluster.delete("namespace", name)


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


def _trouble(item: Object) -> Trouble | None:
    """Return why a pod will not become ready; None if it may. It is not started again, so its end is one."""
    if found := pod.trouble(item):
        # A look at the pod would come too late: it is removed.
        usual = "check the image" if "kubectl" in found.advice else found.advice
        return replace(found, advice=_ADVICE.get(found.reason, usual))
    name, namespace = pod.name_of(item), item["metadata"]["namespace"]
    for end in pod.ends(item, now_ms()):
        ended = f"{end.reason}, exit status {end.exit_status}"
        return Trouble(f"pod {name} in namespace {namespace}", "ended", ended, "check the image")
    return None


def _address(item: Object) -> str:
    """Return the IPv4 address of a pod, by which JMeter is called; empty if it has none."""
    addresses = [each["ip"] for each in item["status"].get("podIPs") or ()] or [item["status"]["podIP"]]
    return next((address for address in addresses if ":" not in address), "")
