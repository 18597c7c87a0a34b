"""What a cluster tells of one function while a run goes on: watches, read into what metrics.csv has."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import Self

from framestorm.model.activation import Activation
from framestorm.platform.base import Reading
from framestorm.platform.kubernetes import pod, watch
from framestorm.platform.kubernetes.cluster import Cluster, Object
from framestorm.platform.kubernetes.event import Warnings
from framestorm.platform.kubernetes.pod import End, Trouble
from framestorm.platform.kubernetes.watch import Kind, ObjectChange, Watch
from framestorm.platform.timeline import READY, WANTED, Timeline

# By metric; None if it is not known.
Values = dict[str, float | None]


@dataclass(frozen=True)
class Workload:
    """The objects of one function: where they are, and the labels that they have in common.

    name: of the object that stands for the function, and `kind` its kind. What is watched beside that and the pods:
    kinds with these labels, and single objects by `named`, their kind and name.
    """

    function: str
    namespace: str
    selector: str
    kind: Kind
    name: str
    kinds: tuple[Kind, ...] = ()
    named: tuple[tuple[Kind, str], ...] = ()


def values_of(kind: Kind, item: Object) -> Values:
    """Return the metrics of an object that is no pod."""
    spec, status = item.get("spec", {}), item.get("status", {})
    if kind == watch.DEPLOYMENTS:
        return {WANTED: spec.get("replicas", 1), READY: status.get("readyReplicas", 0)}
    if kind == watch.AUTOSCALERS:
        used = [each.get("resource", {}).get("current", {}) for each in status.get("currentMetrics") or ()]
        percents = [each["averageUtilization"] for each in used if "averageUtilization" in each]
        return {
            "autoscaler_wanted": status.get("desiredReplicas"),
            "autoscaler_use_percent": max(percents) if percents else None,
        }
    if kind == watch.POD_AUTOSCALERS:
        # -1 until it has seen a request, or an end of them.
        wanted = status.get("desiredScale", -1)
        return {"autoscaler_wanted": wanted if wanted >= 0 else None}
    if kind == watch.SERVERLESS_SERVICES:
        return {"activator_in_path": float(spec.get("mode") == "Proxy")}
    return {}


# A value of several objects (revisions) is their sum, except for these.
LARGEST = {"activator_in_path", "autoscaler_use_percent"}
# What is not known any more when a watch of a kind is interrupted, beside what each pod tells.
METRICS_OF = {
    watch.PODS: ("replicas_terminating",),
    watch.DEPLOYMENTS: (WANTED, READY),
    watch.AUTOSCALERS: ("autoscaler_wanted", "autoscaler_use_percent"),
    watch.POD_AUTOSCALERS: ("autoscaler_wanted",),
    watch.SERVERLESS_SERVICES: ("activator_in_path",),
}
# Those of each object of a kind, by its name.
METRICS_OF_EACH = {watch.PODS: ("restarts", "replica_ready"), watch.NODES: ("node_ready",)}


class Observation:
    """Watches the objects of a workload from `begin` to `close`; what it saw stays."""

    def __init__(self, cluster: Cluster, workload: Workload) -> None:
        self.workload = workload
        self._cluster = cluster
        self._timeline = Timeline(workload.function)
        self._changed = threading.Condition()
        # By kind and uid: as they are; and of pods that are gone, what is asked of them later.
        self._items: dict[Kind, dict[str, Object]] = {}
        self._steps: dict[str, dict[str, float]] = {}
        self._ends: dict[tuple[str, float], End] = {}
        self._warnings = Warnings()
        # Of all objects that were there at some time, but for the cluster's own; and the names of the Deployments.
        self._uids: set[str] = set()
        self._deployments: set[str] = set()
        # The nodes that had a pod at some time.
        self._nodes: set[str] = set()
        self._blind: set[Kind] = set()
        self.watches: list[Watch] = []
        self._stack = ExitStack()

    def begin(self) -> Self:
        """Take what is there, and follow it.

        Raises:
            ClusterError: the cluster does not show it.
        """
        workload = self.workload
        try:
            for kind in (watch.PODS, *workload.kinds):
                self._watch(kind, selector=workload.selector)
            for kind, name in ((workload.kind, workload.name), *workload.named):
                self._watch(kind, name=name)
            for kind in (watch.NODES, watch.WARNINGS):
                if self._cluster.may("watch", kind.plural, "" if kind.is_of_cluster else workload.namespace):
                    self._watch(kind)
        except BaseException:
            self.close()
            raise
        return self

    def _watch(self, kind: Kind, selector: str = "", name: str = "") -> None:
        each = Watch(self._cluster, kind, self.workload.namespace, self._take, self._mark, selector, name)
        each.begin()
        self._stack.enter_context(closing(each))
        self.watches.append(each)

    def close(self) -> None:
        """End its watches."""
        self._stack.close()

    # What is there now

    def items(self, kind: Kind) -> list[Object]:
        """Return the objects of a kind as they are now."""
        with self._changed:
            return list(self._items.get(kind, {}).values())

    def pods_by_node(self) -> dict[str, set[str]]:
        """Return the names of the pods as they are now, by their node."""
        by_node: dict[str, set[str]] = {}
        for each in self.items(watch.PODS):
            if node := each["spec"].get("nodeName"):
                by_node.setdefault(node, set()).add(pod.name_of(each))
        return by_node

    def item(self) -> Object | None:
        """Return the object that stands for the function; None if it is not there."""
        return next((each for each in self.items(self.workload.kind) if pod.name_of(each) == self.workload.name), None)

    def wait(self, condition: Callable[[], bool], within_s: float) -> bool:
        """Wait until a condition holds, which is looked at after each change; returns whether it does."""
        with self._changed:
            return self._changed.wait_for(condition, within_s)

    @property
    def is_blind(self) -> bool:
        """Whether the cluster does not answer now, or what there is has not been listed again."""
        return bool(self._blind)

    def trouble(self, labels: Mapping[str, str]) -> Trouble | None:
        """Return why pods with these labels do not become ready, by themselves, their node, or what makes them.

        None if there is no reason, or it is not known.
        """
        pods = [each for each in pod.staying(self.items(watch.PODS)) if pod.has_labels(each, labels)]
        if (of_pod := next(filter(None, map(pod.trouble, pods)), None)) is not None:
            return of_pod
        used = {each.get("spec", {}).get("nodeName") for each in pods if not pod.is_ready(each)}
        nodes = (each for each in self.items(watch.NODES) if pod.name_of(each) in used)
        # A refusal of the settings before stays in a status until the controllers have seen the new ones.
        makers = [each for each in self.items(watch.DEPLOYMENTS) if pod.has_labels(each["spec"]["template"], labels)]
        refused = map(pod.refusal_of_pods, filter(pod.is_current, makers))
        return next(filter(None, (*map(pod.node_trouble, nodes), *refused)), None)

    # What was there

    def readings(self, start_ms: float, end_ms: float) -> Iterator[Reading]:
        """Yield what was seen in a span of time."""
        with self._changed:
            yield from self._timeline.readings(start_ms, end_ms)
            for each in sorted(self._ends.values()):
                if start_ms <= each.time_ms <= end_ms:
                    what = f"{each.pod}: {each.reason}"
                    function = self.workload.function
                    yield Reading(round(each.time_ms), "replica_ended", function, what, each.exit_status)
            for warning in self._warnings.about(self._uids, self._deployments):
                if start_ms <= warning.time_ms <= end_ms:
                    function, times = self.workload.function, warning.times
                    yield Reading(round(warning.time_ms), "warning", function, str(warning), times)
            for activation in self.activations():
                if activation.asked_ms >= start_ms:
                    for time_ms, metric, name, replica, value in activation.rows():
                        yield Reading(round(time_ms), metric, name, replica, value)

    def activations(self) -> list[Activation]:
        """Return the start of each replica that was seen."""
        function = self.workload.function
        return [Activation.of(function, replica, steps) for replica, steps in self._steps.items()]

    def _take(self, change: ObjectChange) -> None:
        with self._changed:
            items = self._items.setdefault(change.kind, {})
            uid = change.item["metadata"]["uid"]
            if change.is_gone:
                items.pop(uid, None)
            else:
                items[uid] = change.item
            if change.kind not in {watch.NODES, watch.WARNINGS}:
                self._uids.add(uid)
            if change.kind == watch.DEPLOYMENTS:
                self._deployments.add(pod.name_of(change.item))
            if change.kind == watch.PODS:
                self._note_pods(change)
            elif change.kind == watch.NODES:
                self._note_nodes(change.at_ms)
            elif change.kind == watch.WARNINGS:
                self._warnings.take(change.item, change.at_ms)
            else:
                for name in values_of(change.kind, change.item):
                    self._note_sum(name, change)
            self._changed.notify_all()

    def _note_sum(self, name: str, change: ObjectChange) -> None:
        of_each = [values_of(change.kind, each).get(name) for each in self._items[change.kind].values()]
        values = [each for each in of_each if each is not None]
        whole = max if name in LARGEST else sum
        self._timeline.set(name, change.at_ms, float(whole(values)) if values else None)

    def _note_pods(self, change: ObjectChange) -> None:
        name, items = pod.name_of(change.item), self._items[watch.PODS]
        steps = self._steps.setdefault(name, {})
        for step, time_ms in pod.step_times(change.item, change.at_ms).items():
            # Ready again after a time of not being so is no second start.
            steps.setdefault(step, time_ms)
        for end in pod.ends(change.item, change.at_ms):
            self._note_end(end)
        set_value = self._timeline.set
        set_value("replicas_terminating", change.at_ms, sum(map(pod.is_terminating, items.values())))
        set_value("restarts", change.at_ms, None if change.is_gone else pod.restarts(change.item), name)
        set_value("replica_ready", change.at_ms, None if change.is_gone else float(pod.is_ready(change.item)), name)
        set_value("replicas_lost", change.at_ms, len(self._ends))
        if (node := change.item["spec"].get("nodeName")) and node not in self._nodes:
            self._nodes.add(node)
            self._note_nodes(change.at_ms)

    def _note_nodes(self, at_ms: float) -> None:
        for node in self._items.get(watch.NODES, {}).values():
            if pod.name_of(node) in self._nodes:
                self._timeline.set("node_ready", at_ms, float(pod.is_ready(node)), pod.name_of(node))

    def _note_end(self, end: End) -> None:
        """Note how a container ended, once: its pod goes on telling it, with the second but not its part."""
        self._ends.setdefault((end.pod, end.time_ms // 1000), end)

    def _mark(self, kind: Kind, at_ms: float, is_known: bool) -> None:
        """Note that nothing is known of a kind any more, or that all of it is known again."""
        with self._changed:
            self._changed.notify_all()
            if is_known:
                self._blind.discard(kind)
                return
            self._blind.add(kind)
            for metric in METRICS_OF.get(kind, ()):
                self._timeline.set(metric, at_ms, None)
            for metric in METRICS_OF_EACH.get(kind, ()):
                for name in map(pod.name_of, self._items.get(kind, {}).values()):
                    self._timeline.set(metric, at_ms, None, name)
