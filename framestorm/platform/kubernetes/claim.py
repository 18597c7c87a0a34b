"""A study's claim on a cluster: one study at a time, in a namespace of the kit's own that is removed at the end."""

import socket
from pathlib import Path

from framestorm.errors import FramestormError
from framestorm.machine import wait_until
from framestorm.platform.kubernetes.cluster import MANAGED, Cluster, ClusterError
from framestorm.platform.kubernetes.needs import NAMESPACE

NAME = "framestorm-study"
# Replicas of Knative let requests end for three quarters of a minute.
REMOVED_WITHIN_S = 180.0
POLL_S = 1.0
# What the kit may have made in a namespace that it did not make.
KINDS = "deployments,services,horizontalpodautoscalers,configmaps"


class ClusterClaim:
    """The right of one study to make objects in the kit's namespace, from `take` to `release`.

    A ConfigMap stands for it, which only one can create. A study that was killed keeps it until it is resumed.
    """

    def __init__(self, cluster: Cluster, study: Path) -> None:
        self._cluster = cluster
        self._holder = f"{socket.gethostname()}:{study.absolute()}"

    def refusal(self) -> str | None:
        """Return why the study cannot have it, as far as that can be told now; None if it can."""
        there = self._cluster.find("configmap", NAME, NAMESPACE)
        if there is None or there["data"]["holder"] == self._holder:
            return None
        return (
            f"the study {there['data']['holder']} uses namespace {NAMESPACE} of {self._cluster.context} since "
            f"{there['metadata']['creationTimestamp']}; wait for its end, resume it there, or, if it is gone for good: "
            f"kubectl --context {self._cluster.context} delete namespace {NAMESPACE}"
        )

    def take(self) -> None:
        """Make the namespace if it is not there, and the claim.

        Raises:
            FramestormError: another study has it, or the cluster refuses it.
        """
        namespace = self._cluster.find("namespace", NAMESPACE)
        if namespace is not None and "deletionTimestamp" in namespace["metadata"]:
            if not wait_until(lambda: self._cluster.find("namespace", NAMESPACE) is None, REMOVED_WITHIN_S, POLL_S):
                raise FramestormError(
                    f"namespace {NAMESPACE} of {self._cluster.context} is still being removed after "
                    f"{REMOVED_WITHIN_S:.0f} s; see kubectl get all --namespace {NAMESPACE}"
                )
            namespace = None
        if namespace is None:
            labelled = {"name": NAMESPACE, "labels": MANAGED}
            self._cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": labelled})
        claim = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": NAME, "namespace": NAMESPACE, "labels": MANAGED},
            "data": {"holder": self._holder},
        }
        try:
            self._cluster.create(claim)
        except ClusterError as error:
            if "AlreadyExists" not in str(error):
                raise
            if (why := self.refusal()) is not None:
                raise FramestormError(why) from None

    def release(self, also: str = "") -> None:
        """Remove all that was made, `also` objects of these kinds; a namespace that others made stays."""
        namespace = self._cluster.find("namespace", NAMESPACE)
        if namespace is None:
            return
        if MANAGED.items() <= namespace["metadata"].get("labels", {}).items():
            self._cluster.delete("namespace", NAMESPACE)
            return
        kinds = ",".join(filter(None, (also, KINDS)))
        selector = ",".join(f"{name}={value}" for name, value in MANAGED.items())
        self._cluster.call("delete", kinds, "--namespace", NAMESPACE, "--selector", selector, "--wait=false")
