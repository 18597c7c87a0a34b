"""What is read from the objects of a cluster while they change, and through every end of a connection."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from framestorm.machine import now_ms, wait_until
from framestorm.model.activation import Activation
from framestorm.platform.base import Reading
from framestorm.platform.kubernetes import pod as pods
from framestorm.platform.kubernetes import watch
from framestorm.platform.kubernetes.cluster import Cluster
from framestorm.platform.kubernetes.observation import Observation, Workload, values_of
from framestorm.platform.timeline import Timeline
from tests.kubernetes import objects
from tests.kubernetes.conftest import CONTEXT, ApiServer

SEEN_WITHIN_S = 30
LABELS = {"app": "echo"}


@contextmanager
def observed(cluster: Cluster, namespace: str) -> Iterator[Observation]:
    """A Deployment `echo` with two replicas wanted, and what is seen of it."""
    cluster.apply([objects.namespace(namespace), objects.deployment(namespace, "echo", LABELS, 2)])
    workload = Workload("echo", namespace, "app=echo", watch.DEPLOYMENTS, "echo")
    with closing(Observation(cluster, workload).begin()) as observation:
        yield observation


def values(observation: Observation, metric: str) -> list[float]:
    """The values that a metric had, one after the other."""
    rows = [row for row in observation.readings(0, now_ms()) if row.metric == metric]
    ordered = sorted(rows, key=lambda row: row.time_ms)
    return [row.value for n, row in enumerate(ordered) if n == 0 or row.value != ordered[n - 1].value]


def seen(what: Callable[[], object]) -> None:
    assert wait_until(what, SEEN_WITHIN_S)


def rows(observation: Observation, metric: str) -> list[Reading]:
    return [row for row in observation.readings(0, now_ms()) if row.metric == metric]


def known_now(observation: Observation) -> set[str]:
    """The metrics that have a value at this time."""
    at_ms = now_ms()
    return {row.metric for row in observation.readings(at_ms, at_ms)}


@pytest.fixture(autouse=True)
def few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spans from 1970 on have few steps."""
    monkeypatch.setattr("framestorm.platform.timeline.STEPS_AT_MOST", 3)


def test_the_start_of_a_replica_has_its_times(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objects, "T0", "2100-01-02T03:04:05Z")  # after the API server has made the pod
    with observed(cluster, "starts") as observation:
        cluster.apply([objects.pod("starts", "echo-1", LABELS)])
        objects.set_status(cluster, "pod", "echo-1", "starts", objects.scheduled())
        objects.set_status(cluster, "pod", "echo-1", "starts", objects.running())
        objects.set_status(cluster, "deployment", "echo", "starts", {"replicas": 1, "readyReplicas": 1})
        seen(lambda: values(observation, "replicas_ready") == [0, 1])
        (activation,) = observation.activations()
        # A time of the cluster counts, however late it is seen here.
        assert activation.replica == "echo-1"
        told = pods.time_ms(objects.T0, 0)
        assert (activation.scheduled_ms, activation.started_ms, activation.ready_ms) == (told, told, told)
        assert now_ms() - 60_000 < activation.asked_ms <= now_ms() + 1000
        assert values(observation, "replicas_wanted") == [2]
        assert {row.detail for row in rows(observation, "activation_ready_s")} == {"echo-1"}
        cluster.call("delete", "pod", "echo-1", "--namespace", "starts", "--wait=false", "--grace-period=30")
        seen(lambda: values(observation, "replicas_terminating")[-1:] in ([1], [0]))


def test_a_time_of_the_cluster_stays_in_its_second() -> None:
    whole = pods.time_ms("2026-01-02T03:04:05Z", 0)
    assert whole % 1000 == 0
    assert pods.time_ms("2026-01-02T03:04:05Z", whole + 400) == whole + 400
    assert pods.time_ms("2026-01-02T03:04:05Z", whole + 1700) == whole + 999
    assert pods.time_ms("2026-01-02T03:04:05Z", whole + 60_000) == whole, "of a list, long after"
    assert pods.time_ms("2026-01-02T03:04:05Z", whole - 60_000) == whole, "of a clock that is behind"
    assert pods.time_ms("2026-01-02T03:04:05.250000Z", whole + 400) == whole + 250


def test_no_step_of_a_start_comes_before_the_one_before_it() -> None:
    """Whole seconds that were seen late, or the clock of a node, say so."""
    steps = {"asked_ms": 12_600.0, "scheduled_ms": 12_000.0, "started_ms": 13_000.0, "ready_ms": 12_900.0}
    start = Activation.of("echo", "echo-1", steps)
    assert (start.scheduled_ms, start.started_ms, start.ready_ms) == (12_600, 13_000, 13_000)
    assert Activation.of("echo", "echo-1", {"asked_ms": 1.0, "ready_ms": 2.0}).started_ms is None


def test_a_pod_that_was_evicted_has_one_end_and_is_no_replica_any_more() -> None:
    pod = objects.pod("ends", "echo-1", LABELS)
    status = {"phase": "Failed", "reason": "Evicted", "conditions": [objects.condition("Ready", status=False)]}
    named = {**pod, "status": {**status, "containerStatuses": [objects.container(state=objects.ended("Error", 137))]}}
    bare = {**pod, "status": status}
    assert [end.reason for end in pods.ends(named, 0)] == ["Error"]
    assert [end.reason for end in pods.ends(bare, 0)] == ["Evicted"]
    # Each list of the pods tells it again.
    assert {end.time_ms for seen_ms in (0, 10, 1e15) for end in pods.ends(bare, seen_ms)} == {
        pods.time_ms(objects.T0, 0)
    }
    assert pods.is_over(bare) and not pods.is_over({**pod, "status": objects.running()})


def test_an_end_is_counted_once_with_its_reason(cluster: Cluster) -> None:
    with observed(cluster, "ends") as observation:
        cluster.apply([objects.pod("ends", "echo-1", LABELS)])
        killed = objects.ended("OOMKilled", 137)
        objects.set_status(cluster, "pod", "echo-1", "ends", objects.running())
        objects.set_status(cluster, "pod", "echo-1", "ends", {
            "containerStatuses": [objects.container(state=killed)],
        })  # fmt: skip
        objects.set_status(cluster, "pod", "echo-1", "ends", objects.running(1, lastState=killed))
        seen(lambda: values(observation, "restarts") == [0, 1])
        (end,) = rows(observation, "replica_ended")
        assert (end.detail, end.value) == ("echo-1: OOMKilled", 137)
        assert end.time_ms == pods.time_ms(objects.T0, 0)
        assert values(observation, "replicas_lost") == [0, 1]


def test_a_node_that_is_not_ready_is_why_its_replicas_are_not(cluster: Cluster) -> None:
    objects.set_node(cluster, "far", is_ready=True)
    with observed(cluster, "nodes") as observation:
        cluster.apply([objects.pod("nodes", "echo-1", LABELS, "far")])
        objects.set_status(cluster, "pod", "echo-1", "nodes", objects.running())
        seen(lambda: values(observation, "replica_ready")[-1:] == [1])
        objects.set_node(cluster, "far", is_ready=False)
        silent = {"conditions": [objects.condition("PodScheduled"), objects.condition("Ready", status=False)]}
        objects.set_status(cluster, "pod", "echo-1", "nodes", silent)
        words = "node far: NotReady: Kubelet stopped posting node status.; see kubectl describe node far; "
        # The nodes and the pods are two watches: either may be first.
        seen(lambda: str(observation.trouble(LABELS)).startswith(words))
        assert values(observation, "replica_ready")[-1:] == [0]
        objects.set_node(cluster, "far", is_ready=True)
        objects.set_status(cluster, "pod", "echo-1", "nodes", objects.running())
        seen(lambda: observation.trouble(LABELS) is None and values(observation, "replica_ready")[-2:] == [0, 1])
        assert values(observation, "node_ready") == [1, 0, 1]
        # Its first start is the only one.
        assert len(observation.activations()) == 1 and not rows(observation, "replica_ended")
    cluster.delete("node", "far")


def test_warnings_about_the_function_alone_count_each_time_they_happen(cluster: Cluster) -> None:
    with observed(cluster, "warns") as observation:
        cluster.apply([objects.pod("warns", f"{name}-1", {"app": name}) for name in ("echo", "other")])
        seen(lambda: observation.items(watch.PODS))
        uids = {
            name: json.loads(cluster.call("get", "pod", name, "--namespace", "warns", "--output=json"))["metadata"][
                "uid"
            ]
            for name in ("echo-1", "other-1")
        }
        about_echo = ("Pod", "echo-1", uids["echo-1"])
        told = [
            objects.event("warns", "probe", *about_echo, "Unhealthy", count=1, message="probe failed:\n HTTP 503"),
            objects.event("warns", "pulled", *about_echo, "Pulled", type="Normal"),
            objects.event("warns", "others", "Pod", "other-1", uids["other-1"], "Unhealthy"),
            objects.event("warns", "quota", "ReplicaSet", "echo-5d8f", "", "FailedCreate"),
            objects.event("warns", "others-quota", "ReplicaSet", "echo-proxy-5d8f", "", "FailedCreate"),
        ]
        cluster.apply(told)
        seen(lambda: len(rows(observation, "warning")) == 2)
        # Its pod is gone before it is told again.
        cluster.call("delete", "pod", "echo-1", "--namespace", "warns", "--force", "--grace-period=0")
        cluster.apply([told[0] | {"count": 4}])
        seen(lambda: len(rows(observation, "warning")) == 3)
        cluster.call("delete", "deployment", "echo", "--namespace", "warns")
        seen(lambda: not observation.items(watch.DEPLOYMENTS))
        assert [(each.detail, each.value) for each in rows(observation, "warning")] == [
            ("Pod echo-1: Unhealthy: probe failed: HTTP 503", 1),
            ("ReplicaSet echo-5d8f: FailedCreate: ", 1),
            ("Pod echo-1: Unhealthy: probe failed: HTTP 503", 3),
        ]


def test_no_row_is_lost_or_made_up_when_a_watch_breaks(cluster: Cluster) -> None:
    with observed(cluster, "breaks") as observation:
        cluster.apply([objects.pod("breaks", f"echo-{n}", LABELS) for n in (1, 2)])
        seen(lambda: len(observation.items(watch.PODS)) == 2)
        for each in observation.watches:
            each.break_off()
        # While nobody watches, one is gone and one is changed.
        cluster.call("delete", "pod", "echo-1", "--namespace", "breaks", "--force", "--grace-period=0")
        objects.set_status(cluster, "pod", "echo-2", "breaks", objects.running(3))
        seen(lambda: [pods.name_of(each) for each in observation.items(watch.PODS)] == ["echo-2"])
        seen(lambda: values(observation, "restarts")[-1] == 3)
        seen(lambda: not observation.is_blind)


def test_a_version_that_is_gone_begins_a_new_list(cluster: Cluster) -> None:
    """As API servers answer 410 to a version that they have compacted."""
    gone = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired"}}
    lists, streams = [], []

    class Compacted(Cluster):
        def read(self, path: str) -> dict[str, object]:
            lists.append(path)
            return super().read(path)

        def stream(self, path: str) -> subprocess.Popen[str]:
            streams.append(path)
            if len(streams) > 1:
                return super().stream(path)
            command = [sys.executable, "-c", f"print({json.dumps(json.dumps(gone))})"]
            return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    cluster.apply([objects.namespace("compacted")])
    changes: list[watch.ObjectChange] = []
    lost: list[tuple[watch.Kind, bool]] = []
    one = Compacted(cluster.context, cluster.kubeconfig)

    def mark(kind: watch.Kind, _: float, is_known: bool) -> None:
        lost.append((kind, is_known))

    each = watch.Watch(one, watch.PODS, "compacted", changes.append, mark)
    with closing(each):
        each.begin()
        seen(lambda: len(streams) > 1)
        assert (len(lists), lost) == (2, [(watch.PODS, False), (watch.PODS, True)])
        cluster.apply([objects.pod("compacted", "echo-1", LABELS)])
        seen(lambda: changes)
    assert pods.name_of(changes[0].item) == "echo-1"


def test_an_api_server_that_comes_back_is_watched_again(own_server: ApiServer) -> None:
    cluster = Cluster(CONTEXT, own_server.config)
    with observed(cluster, "back") as observation:
        seen(lambda: values(observation, "replicas_wanted") == [2])
        own_server.stop(is_crash=True)
        # Each kind has a watch of its own, which notices it for itself.
        seen(lambda: observation.is_blind and "replicas_wanted" not in known_now(observation))
        assert observation.trouble({}) is None
        own_server.start()
        cluster.call("scale", "deployment", "echo", "--namespace", "back", "--replicas=5")
        seen(lambda: values(observation, "replicas_wanted")[-1] == 5)
        seen(lambda: not observation.is_blind)


def test_what_autoscalers_tell() -> None:
    assert values_of(watch.SERVERLESS_SERVICES, {"spec": {"mode": "Proxy"}}) == {"activator_in_path": 1.0}
    assert values_of(watch.SERVERLESS_SERVICES, {"spec": {"mode": "Serve"}}) == {"activator_in_path": 0.0}
    assert values_of(watch.POD_AUTOSCALERS, {"status": {"desiredScale": 3}}) == {"autoscaler_wanted": 3}
    assert values_of(watch.POD_AUTOSCALERS, {"status": {"desiredScale": -1}}) == {"autoscaler_wanted": None}
    used = [{"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 158}}}]
    of_hpa = values_of(watch.AUTOSCALERS, {"status": {"desiredReplicas": 3, "currentMetrics": used}})
    assert of_hpa == {"autoscaler_wanted": 3, "autoscaler_use_percent": 158}


def test_rows_are_at_equal_steps_and_at_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("framestorm.platform.timeline.STEPS_AT_MOST", 10)
    timeline = Timeline("echo")
    timeline.set("replicas_wanted", 500, 2)
    timeline.set("replicas_ready", 500, 1)
    timeline.set("replicas_ready", 2200, 2)
    timeline.set("replicas_ready", 3100, None)
    by_metric: dict[str, list[tuple[int, float]]] = {}
    for row in timeline.readings(1000, 4000):
        by_metric.setdefault(row.metric, []).append((row.time_ms, row.value))
    assert by_metric["replicas_ready"] == [(1000, 1), (2000, 1), (2200, 2), (3000, 2)]
    assert by_metric["replicas_wanted"] == [(each, 2) for each in (1000, 2000, 2200, 3000, 3100, 4000)]
    assert by_metric["replicas_short_s"] == [(1000, 0), (2000, 1), (2200, 1.2), (3000, 1.2), (3100, 1.2)]


def test_a_kubectl_that_nobody_reads_ends(cluster: Cluster, tmp_path: Path) -> None:
    cluster.apply([objects.namespace("unread")])
    each = watch.Watch(cluster, watch.PODS, "unread", lambda _: None, lambda *_: None)
    each.begin()
    each.close()
    process = each._process
    assert process is None or process.poll() is not None
