"""What a pod tells of itself: the steps of its start, how its containers ended, and why it does not become ready."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from framestorm.platform.kubernetes.cluster import Object

# After a time of the cluster, which mostly are whole seconds: as long as it may take until a change is seen here.
SEEN_WITHIN_MS = 2000.0
SECOND_MS = 999.0
# Reasons for which a pod waits that do not pass by themselves, and what to do.
_LOGS = "see what it printed: kubectl logs --previous {pod} --container {container} --namespace {namespace}"
_IMAGE = (
    "check the image's name, and that the nodes can pull it (imagePullSecrets); an image that is in no registry has to "
    "be brought to each node, as by `kind load docker-image`, with a tag that is not latest: that is always pulled"
)
ADVICE = {
    "ErrImagePull": _IMAGE,
    "ImagePullBackOff": _IMAGE,
    "ErrImageNeverPull": _IMAGE,
    "InvalidImageName": _IMAGE,
    "CrashLoopBackOff": _LOGS,
    "Error": _LOGS,
    "Completed": _LOGS,
    "ContainerCannotRun": _LOGS,
    "StartError": _LOGS,
    "RunContainerError": _LOGS,
    "OOMKilled": "give it more memory (target.memory)",
    "CreateContainerConfigError": "see kubectl describe pod {pod} --namespace {namespace}",
    "CreateContainerError": "see kubectl describe pod {pod} --namespace {namespace}",
    "Unschedulable": "ask for less (target.cpu, target.memory), or add a node",
    "NodeNotReady": "see kubectl describe node {node}; a node that is back takes part again by itself",
}
# What often passes by itself: other pods make room, a node comes back.
PASSING = ("Unschedulable", "NotReady")


class End(NamedTuple):
    """A container that ended without being asked to: when, why (OOMKilled), and its exit status."""

    time_ms: float
    pod: str
    reason: str
    exit_status: int


@dataclass(frozen=True)
class Trouble:
    """Why something does not become ready: the object, the reason that Kubernetes gives, and the next step."""

    what: str
    reason: str
    message: str
    advice: str

    def __str__(self) -> str:
        words = ": ".join(each for each in (self.what, self.reason, self.message) if each)
        return f"{words}; {self.advice}"


def time_ms(text: str, seen_ms: float) -> float:
    """Return a time of the cluster in epoch ms; of one in whole seconds the part is taken from when it was seen here.

    The result lies always in the second that the cluster names.
    """
    whole_ms = datetime.fromisoformat(text).timestamp() * 1000
    if "." in text or not whole_ms <= seen_ms <= whole_ms + SEEN_WITHIN_MS:
        return whole_ms
    return min(seen_ms, whole_ms + SECOND_MS)


def name_of(item: Object) -> str:
    return str(item["metadata"]["name"])


def has_labels(item: Object, labels: Mapping[str, str]) -> bool:
    """Return whether an object, or the template of pods, has all of some labels."""
    return labels.items() <= (item["metadata"].get("labels") or {}).items()


def is_current(item: Object) -> bool:
    """Return whether the status of an object is of its newest settings."""
    return bool(item.get("status", {}).get("observedGeneration") == item["metadata"]["generation"])


def condition(item: Object, kind: str) -> Object | None:
    """Return a condition of an object; None if it has none of that kind."""
    conditions = item.get("status", {}).get("conditions") or ()
    return next((each for each in conditions if each["type"] == kind), None)


def is_ready(item: Object) -> bool:
    """Return whether a pod, or a node, is ready."""
    ready = condition(item, "Ready")
    return ready is not None and ready["status"] == "True"


def is_terminating(pod: Object) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def is_over(pod: Object) -> bool:
    """Return whether a pod has ended for good; Kubernetes keeps an evicted pod, for example, for some time."""
    return pod.get("status", {}).get("phase") in ("Failed", "Succeeded")


def staying(pods: Iterable[Object]) -> list[Object]:
    """Return the pods that have not ended, and were not told to."""
    return [each for each in pods if not (is_terminating(each) or is_over(each))]


def restarts(pod: Object) -> int:
    """Return how often its containers were started again."""
    return sum(each.get("restartCount", 0) for each in _containers(pod))


def step_times(pod: Object, seen_ms: float) -> dict[str, float]:
    """Return the steps of its start that it has come to, by their name in `Activation`, with the time of each."""
    times = {"asked_ms": time_ms(pod["metadata"]["creationTimestamp"], seen_ms)}
    for step, kind in (("scheduled_ms", "PodScheduled"), ("ready_ms", "Ready")):
        reached = condition(pod, kind)
        if reached is not None and reached["status"] == "True" and reached.get("lastTransitionTime"):
            times[step] = time_ms(reached["lastTransitionTime"], seen_ms)
    begun = [each["state"]["running"]["startedAt"] for each in _containers(pod) if "running" in each.get("state", {})]
    if begun and len(begun) == len(_containers(pod)):
        times["started_ms"] = time_ms(max(begun), seen_ms)
    return times


def ends(pod: Object, seen_ms: float) -> Iterator[End]:
    """Yield how its containers ended, as far as it tells; not those of a pod that was told to end."""
    name, n = name_of(pod), 0
    for container in _containers(pod):
        terminated = container.get("lastState", {}).get("terminated")
        now = container.get("state", {}).get("terminated")
        for each in (terminated, None if is_terminating(pod) else now):
            if each and each.get("finishedAt"):
                when_ms, n = time_ms(each["finishedAt"], seen_ms), n + 1
                yield End(when_ms, name, str(each.get("reason", "Error")), int(each.get("exitCode", 0)))
    status = pod.get("status", {})
    if status.get("phase") == "Failed" and status.get("reason") and not n and not is_terminating(pod):
        changed = (condition(pod, "Ready") or {}).get("lastTransitionTime")
        yield End(time_ms(changed, seen_ms) if changed else seen_ms, name, str(status["reason"]), 0)


def trouble(pod: Object) -> Trouble | None:
    """Return why a pod will not become ready by itself; None if it may."""
    name, namespace = name_of(pod), pod["metadata"]["namespace"]
    for container in _containers(pod):
        state, last = container.get("state", {}), container.get("lastState", {}).get("terminated", {})
        stuck = state.get("waiting") or state.get("terminated") or {}
        reason, message = stuck.get("reason", ""), stuck.get("message", "")
        if reason == "CrashLoopBackOff" and last:
            # The back-off is what Kubernetes does about it; why is how it ended last.
            ended = last.get("reason", "Error")
            reason = "OOMKilled" if ended == "OOMKilled" else f"{reason}: {ended}"
            message = f"its program ended with status {last.get('exitCode')}; {container['restartCount']} restarts"
        if advice := ADVICE.get(reason.partition(":")[0]):
            words = advice.format(pod=name, container=container["name"], namespace=namespace)
            what = f"pod {name} in namespace {namespace}"
            return Trouble(what, reason, re.sub(r"\s+", " ", message), words)
    scheduled = condition(pod, "PodScheduled")
    if scheduled and scheduled["status"] == "False" and scheduled.get("reason") in ADVICE:
        what = f"pod {name} in namespace {namespace}"
        return Trouble(what, scheduled["reason"], scheduled.get("message", ""), ADVICE[scheduled["reason"]])
    return None


def node_trouble(node: Object) -> Trouble | None:
    """Return why a node runs nothing; None if it is ready."""
    ready = condition(node, "Ready")
    if ready is None or ready["status"] == "True":
        return None
    words = ADVICE["NodeNotReady"].format(node=name_of(node))
    return Trouble(f"node {name_of(node)}", "NotReady", str(ready.get("message", "")), words)


def refusal_of_pods(deployment: Object) -> Trouble | None:
    """Return why a deployment gets no pods, such as a quota or a webhook; None if it gets them."""
    failure = condition(deployment, "ReplicaFailure")
    if failure is None or failure["status"] != "True":
        return None
    namespace = deployment["metadata"]["namespace"]
    words = f"see kubectl describe replicasets --namespace {namespace}; quotas and admission webhooks refuse pods"
    what = f"deployment {name_of(deployment)} in namespace {namespace}"
    return Trouble(what, str(failure.get("reason", "")), str(failure.get("message", "")), words)


def _containers(pod: Object) -> list[Object]:
    return list(pod.get("status", {}).get("containerStatuses") or ())
