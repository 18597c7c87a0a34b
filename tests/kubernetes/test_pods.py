"""Slaves as pods, as far as an API server tells it: what is asked of the cluster, and what its answers mean."""

import json
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from framestorm.errors import FramestormError, UsageError
from framestorm.hosts import pods
from framestorm.hosts.inventory import Hosts
from framestorm.hosts.pods import Pod, Pods, find_slaves
from framestorm.machine import wait_until
from framestorm.platform.kubernetes.cluster import Cluster
from tests.kubernetes.objects import event

WITHIN_S = 60
READY = {"podIP": "198.18.64.9", "conditions": [{"type": "Ready", "status": "True"}]}


@pytest.fixture
def asked(cluster: Cluster) -> Pods:
    return Pods.asked("k8s:2", cluster, "framestorm:test")


@pytest.fixture
def background() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as pool:
        yield pool


def names(cluster: Cluster, namespace: str) -> set[str]:
    return {pod["metadata"]["name"] for pod in cluster.get("pods", namespace=namespace)["items"]}


def tell(pod: Pod, status: dict[str, Any]) -> None:
    """Set a pod's status, as a kubelet does."""
    words = (
        "--namespace",
        pod.namespace,
        "--subresource=status",
        "--type=merge",
        "--patch",
        json.dumps({"status": status}),
    )
    pod.cluster.call("patch", "pod", pod.name, *words)


def begun(asked: Pods, background: ThreadPoolExecutor) -> Future[tuple[Hosts, dict[str, Any]]]:
    """Begin to make the pods; returns, later, the hosts, and the namespace's objects as they are then."""
    cluster, namespace = asked.master.cluster, asked.master.namespace

    def make() -> tuple[Hosts, dict[str, Any]]:
        with asked.up() as hosts:
            return hosts, cluster.get("pods,networkpolicies", namespace=namespace)

    future = background.submit(make)
    everyone = {"master", "slave1", "slave2"}
    assert wait_until(lambda: future.done() or names(cluster, namespace) == everyone, WITHIN_S)
    return future


def test_pods_are_hosts_once_they_are_ready_and_nothing_of_them_stays(
    asked: Pods, background: ThreadPoolExecutor
) -> None:
    future = begun(asked, background)
    for number, pod in enumerate((asked.master, *asked.slaves)):
        assert not future.done()
        tell(pod, READY | {"podIP": f"198.18.64.{number}"})
    hosts, objects = future.result(WITHIN_S)
    assert [(each.name, each.address) for each in hosts.slaves] == [
        ("slave1", "198.18.64.1"),
        ("slave2", "198.18.64.2"),
    ]
    assert hosts.master is not None and hosts.master.address == "198.18.64.0"
    command = hosts.slaves[0].command("python3 -c 'a b'")
    assert command[-4:] == ["--", "/bin/sh", "-c", "exec python3 -c 'a b'"] and asked.master.namespace in command
    *all_pods, policy = sorted(objects["items"], key=lambda each: str(each["kind"] == "NetworkPolicy"))
    for pod in all_pods:
        (container,) = pod["spec"]["containers"]
        assert container["image"] == "framestorm:test" and container["securityContext"]["readOnlyRootFilesystem"]
        assert pod["spec"]["securityContext"]["runAsNonRoot"] and pod["spec"]["restartPolicy"] == "Never"
    (rule,) = policy["spec"]["ingress"]
    assert [(port["port"], port["endPort"]) for port in rule["ports"]] == [(8001, 8003)]
    there = asked.master.cluster.find("namespace", asked.master.namespace)
    assert there is None or there["status"]["phase"] == "Terminating"


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        (
            {"waiting": {"reason": "ErrImagePull", "message": "not found"}},
            "pod slave1 .*: ErrImagePull: not found; check",
        ),
        ({"waiting": {"reason": "InvalidImageName"}}, "InvalidImageName"),
        ({"terminated": {"reason": "OOMKilled", "exitCode": 137}}, "OOMKilled.*more memory"),
        ({"terminated": {"reason": "Odd", "exitCode": 9, "finishedAt": "2026-01-01T00:00:00Z"}}, "Odd, exit status 9"),
    ],
)
def test_a_pod_that_cannot_start_ends_the_wait_with_its_reason(
    state: dict[str, Any], reason: str, asked: Pods, background: ThreadPoolExecutor
) -> None:
    future = begun(asked, background)
    one = {"name": "framestorm", "image": "framestorm:test", "imageID": "", "ready": False, "restartCount": 0}
    tell(asked.slaves[0], {"containerStatuses": [one | {"state": state}]})
    with pytest.raises(FramestormError, match=reason):
        future.result(WITHIN_S)
    there = asked.master.cluster.find("namespace", asked.master.namespace)
    assert there is None or there["status"]["phase"] == "Terminating"


def test_pods_are_called_by_their_ipv4_address(asked: Pods, background: ThreadPoolExecutor) -> None:
    future = begun(asked, background)
    for number, pod in enumerate((asked.master, *asked.slaves)):
        both = [{"ip": f"fd00::{number}"}, {"ip": f"198.18.64.{number}"}]
        tell(pod, READY | {"podIP": both[0]["ip"], "podIPs": both})
    hosts, _ = future.result(WITHIN_S)
    assert [each.address for each in hosts.slaves] == ["198.18.64.1", "198.18.64.2"]


def test_pods_without_ipv4_are_refused(asked: Pods, background: ThreadPoolExecutor) -> None:
    future = begun(asked, background)
    for number, pod in enumerate((asked.master, *asked.slaves)):
        tell(pod, READY | {"podIP": f"fd00::{number}", "podIPs": [{"ip": f"fd00::{number}"}]})
    with pytest.raises(FramestormError, match="pod master has no IPv4 address, which JMeter needs"):
        future.result(WITHIN_S)


def test_a_pod_that_finds_no_room_for_a_moment_is_waited_for(
    asked: Pods, background: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pods, "READY_WITHIN_S", 12)
    future = begun(asked, background)
    full = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes are available"}
    tell(asked.slaves[0], {"conditions": [full]})
    with pytest.raises(TimeoutError):
        future.result(2)
    with pytest.raises(FramestormError, match="Unschedulable: 0/1 nodes are available; ask for fewer pods"):
        future.result(WITHIN_S)


def test_pods_for_which_a_node_is_being_added_are_waited_for(
    asked: Pods, background: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pods, "READY_WITHIN_S", 12)
    future, everyone = begun(asked, background), (asked.master, *asked.slaves)
    cluster, namespace = asked.master.cluster, asked.master.namespace
    full = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes are available"}
    for pod in everyone:
        tell(pod, {"conditions": [full]})
    uid = cluster.get("pod", "slave1", namespace)["metadata"]["uid"]
    cluster.apply([event(namespace, "up", "Pod", "slave1", uid, "TriggeredScaleUp", type="Normal")])
    with pytest.raises(TimeoutError):
        future.result(16)
    for pod in everyone:
        tell(pod, READY)
    assert len(future.result(WITHIN_S)[0].slaves) == 2


def test_pods_that_do_not_become_ready_are_counted(
    asked: Pods, background: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pods, "READY_WITHIN_S", 0.1)
    with pytest.raises(FramestormError, match="3 of 3 pods were not ready"):
        begun(asked, background).result(WITHIN_S)


def test_who_may_make_no_pods_is_told_so(kubeconfig: Path) -> None:
    guest = Pods.asked("k8s:1", Cluster("guest", kubeconfig), "framestorm:test")
    with pytest.raises(FramestormError, match=r"guest.*cannot"), guest.up():
        pytest.fail("there are pods")


@pytest.mark.parametrize("pattern", ["k8s:", "k8s:0", "k8s:many", "k8s:99999"])
def test_a_number_that_is_none_is_refused(
    pattern: str, kubeconfig: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
    with pytest.raises(UsageError, match="how many pods"):
        find_slaves(pattern, tmp_path)


def test_an_image_is_for_pods(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is for pods"):
        find_slaves("slaves", tmp_path, "framestorm:test")


def test_what_a_killed_conductor_left_goes_though_its_pods_went_with_their_node(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    namespace = "framestorm-load-old"
    cluster.apply([pods._namespace(namespace)])
    pods._remove_left(cluster)
    assert cluster.get("namespace", namespace)["status"]["phase"] == "Active"
    monkeypatch.setattr(pods, "BEGINS_WITHIN_S", 0)
    pods._remove_left(cluster)
    assert cluster.get("namespace", namespace)["status"]["phase"] == "Terminating"


def test_what_a_killed_conductor_left_goes_once_its_pods_have_ended(
    asked: Pods, background: ThreadPoolExecutor, cluster: Cluster
) -> None:
    left = {name: f"framestorm-load-{name}" for name in ("ended", "half", "empty")}
    cluster.apply(pods._namespace(name) for name in left.values())
    for namespace, phases in ((left["ended"], ("Failed", "Succeeded")), (left["half"], ("Failed", "Running"))):
        for number, phase in enumerate(phases):
            made = Pod(cluster, namespace, f"slave{number}")
            cluster.apply([asked._object(made)])
            tell(made, {"phase": phase})
    future = begun(asked, background)
    # This API server has no controllers: what is deleted stays in phase Terminating.
    phases = {name: cluster.get("namespace", name)["status"]["phase"] for name in left.values()}
    assert phases == {left["ended"]: "Terminating", left["half"]: "Active", left["empty"]: "Active"}
    for pod in (asked.master, *asked.slaves):
        tell(pod, READY)
    future.result(WITHIN_S)
