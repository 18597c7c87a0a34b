"""What Kubernetes tells by events: its warnings, each time that they happen, and that a pod will get a new node."""

import re
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from framestorm.platform.kubernetes.cluster import Cluster, ClusterError, Object
from framestorm.platform.kubernetes.pod import time_ms

# What autoscalers of nodes tell of a pod without room that they make room for: Kubernetes' own, and Karpenter.
_ADDS_NODE = ("TriggeredScaleUp", "Nominated")
NODE_ADDED_WITHIN_S = 300.0


class Occurrence(NamedTuple):
    """A warning about one object, `times` since it was told last; of an object that is no more, too."""

    time_ms: float
    kind: str
    name: str
    uid: str
    reason: str
    message: str
    times: int

    def __str__(self) -> str:
        return f"{self.kind} {self.name}: {self.reason}: {self.message}"


class Warnings:
    """The warnings of a namespace. One that happens again is the same event with a higher count."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._occurrences: list[Occurrence] = []

    def take(self, event: Object, seen_ms: float) -> None:
        """Note how often an event happened since it was seen last."""
        series, uid = event.get("series") or {}, event["metadata"]["uid"]
        count = int(series.get("count") or event.get("count") or 1)
        times = count - self._counts.get(uid, 0)
        if times <= 0:
            return
        self._counts[uid] = count
        told = series.get("lastObservedTime") or event.get("lastTimestamp") or event.get("eventTime")
        last_ms = time_ms(told or event["metadata"]["creationTimestamp"], seen_ms)
        of, message = event["involvedObject"], re.sub(r"\s+", " ", event.get("message", "")).strip()
        words = (str(event.get("reason", "")), message)
        self._occurrences.append(
            Occurrence(last_ms, of.get("kind", ""), of.get("name", ""), of.get("uid", ""), *words, times)
        )

    def about(self, uids: Collection[str], deployments: Collection[str]) -> Iterator[Occurrence]:
        """Yield those about some objects, or about the ReplicaSets of some deployments."""
        made = re.compile(rf"({'|'.join(map(re.escape, deployments))})-[a-z0-9]+")
        for each in self._occurrences:
            if each.uid in uids or (each.kind == "ReplicaSet" and made.fullmatch(each.name)):
                yield each


def gets_node(cluster: Cluster, namespace: str, pods: Iterable[Object]) -> bool:
    """Return whether a node is being added for one of these pods, as far as the cluster shows its events."""
    uids = {each["metadata"]["uid"] for each in pods}
    path = f"/api/v1/namespaces/{namespace}/events?fieldSelector=reason%3D"
    try:
        events = [each for reason in _ADDS_NODE for each in cluster.read(f"{path}{reason}").get("items") or ()]
    except ClusterError:
        return False
    return any(each["involvedObject"].get("uid") in uids for each in events)
