"""A study's claim on a cluster: one study at a time, in a namespace of the kit's own that is removed at the end."""

import socket
from pathlib import Path

from framestorm.errors import FramestormError
from framestorm.machine import wait_until
from framestorm.platform.kubernetes.cluster import MANAGED, NAMESPACE, Cluster, ClusterError
from framestorm.platform.kubernetes.needs import KNATIVE_SERVING, KSERVE

NAME = "framestorm-study"
# Replicas of Knative let requests end for three quarters of a minute.
REMOVED_WITHIN_S = 180.0
POLL_S = 1.0
# What functions are made of: first that of which other controllers would make the rest again.
KINDS = (KSERVE.kinds[0], KNATIVE_SERVING.kinds[0], "deployments", "services", "horizontalpodautoscalers")


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

    def take(self) -> bool:
        """Make the namespace and the claim if they are not there; returns whether the claim was.

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
            return True
        return False

    def clear(self) -> None:
        """Remove what the study made its functions of, and wait until it is gone."""
        self._remove(waits=True)

    def release(self) -> None:
        """Remove all that was made; a namespace that others made stays."""
        namespace = self._cluster.find("namespace", NAMESPACE)
        if namespace is None:
            return
        if MANAGED.items() <= namespace["metadata"].get("labels", {}).items():
            self._cluster.delete("namespace", NAMESPACE)
            return
        self._remove("configmaps", waits=False)

    def _remove(self, *also: str, waits: bool) -> None:
        """Remove objects of the study, `also` of these kinds."""
        there = [kind for kind in KINDS if "." not in kind or self._makes(kind)]
        selector = ",".join(f"{name}={value}" for name, value in MANAGED.items())
        options = ("--namespace", NAMESPACE, "--selector", selector, f"--wait={str(waits).lower()}")
        self._cluster.call("delete", ",".join((*there, *also)), *options)

    def _makes(self, kind: str) -> bool:
        """Return whether the study may have made objects of a kind that not every cluster has."""
        return self._cluster.serves(kind) and self._cluster.may("delete", kind, NAMESPACE)
