"""Functions as Deployments of Kubernetes, against the real schemas: what is created, waited for, found and removed."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Any

import pytest

from framestorm.errors import FramestormError
from framestorm.machine import wait_until
from framestorm.platform import registry
from framestorm.platform.base import Site
from framestorm.platform.kubernetes import watch
from framestorm.platform.kubernetes.cluster import MANAGED, NAMESPACE, Cluster, ClusterError
from framestorm.platform.kubernetes.plain import Plain, PlainSettings
from framestorm.platform.kubernetes.watch import ObjectChange, Watch
from tests.kubernetes import objects, webhook
from tests.kubernetes.conftest import CONTEXT

SITE = Site(context=CONTEXT)
Status = dict[str, Any]


def settings(**values: Any) -> PlainSettings:
    return PlainSettings.read({"kind": "kubernetes", "function": "echo", "image": "example.com/echo:1", **values})


@pytest.fixture
def cluster(one_node: Cluster) -> Cluster:
    return one_node


def controllers(cluster: Cluster, of_pod: Callable[[], Status] = objects.running) -> AbstractContextManager[None]:
    """Act on each new generation of each Deployment, as Kubernetes does; each pod gets the status `of_pod`."""
    return objects.controlling(
        cluster, watch.DEPLOYMENTS, NAMESPACE, lambda deployment: reconcile(cluster, deployment, of_pod())
    )


def reconcile(cluster: Cluster, deployment: dict[str, Any], of_pod: Status) -> None:
    metadata, template = deployment["metadata"], deployment["spec"]["template"]
    name, namespace, labels = metadata["name"], metadata["namespace"], template["metadata"]["labels"]
    replicas = deployment["spec"].get("replicas", 1)
    cluster.call("delete", "pods", "--all", "--namespace", namespace, "--force", "--grace-period=0")
    for number in range(replicas):
        cluster.apply([objects.pod(namespace, f"{name}-{metadata['generation']}-{number}", labels)])
        objects.set_status(cluster, "pod", f"{name}-{metadata['generation']}-{number}", namespace, of_pod)
    ready = replicas if of_pod.get("phase") == "Running" else 0
    status = {"observedGeneration": metadata["generation"], "replicas": replicas, "readyReplicas": ready}
    objects.set_status(cluster, "deployment", name, namespace, status)


def test_a_function_is_made_called_by_its_service_and_removed(cluster: Cluster, tmp_path: Path) -> None:
    platform = Plain(SITE, tmp_path)
    with controllers(cluster):
        url = platform.prepare(settings(cpu="500m", memory="64Mi", min_scale=2, path="/invoke"))
    (port,) = cluster.get("service", "echo", NAMESPACE)["spec"]["ports"]
    assert url == f"http://127.0.0.1:{port['nodePort']}/invoke"
    deployment = cluster.get("deployment", "echo", NAMESPACE)["spec"]
    assert (deployment["replicas"], deployment["strategy"]["type"]) == (2, "Recreate")
    (container,) = deployment["template"]["spec"]["containers"]
    assert container["resources"]["limits"] == {"cpu": "500m", "memory": "64Mi"}
    assert cluster.find("hpa", "echo", NAMESPACE) is None
    texts = platform.settings_as_text()
    assert (texts["min_scale"], texts["max_scale"], texts["memory_limit"]) == ("2", "2", "64Mi")
    platform.close()
    assert "deletionTimestamp" in cluster.get("namespace", NAMESPACE)["metadata"]


def test_an_autoscaler_comes_and_goes_with_the_settings(cluster: Cluster, tmp_path: Path) -> None:
    platform = Plain(SITE, tmp_path)
    with controllers(cluster):
        platform.prepare(settings(autoscaler="hpa", target=50, window_s=15))
        spec = cluster.get("hpa", "echo", NAMESPACE)["spec"]
        # Twice what 4 cores hold by 100m.
        assert (spec["minReplicas"], spec["maxReplicas"]) == (1, 80)
        assert spec["metrics"][0]["resource"]["target"]["averageUtilization"] == 50
        assert spec["behavior"]["scaleDown"]["stabilizationWindowSeconds"] == 15
        assert platform.settings_as_text()["max_scale"] == "80"
        platform.prepare(settings())
    assert cluster.find("hpa", "echo", NAMESPACE) is None
    assert platform.settings_as_text()["max_scale"] == "1"


def test_a_run_begins_when_the_autoscaler_has_removed_the_replicas_of_the_run_before(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("framestorm.platform.kubernetes.function.READY_WITHIN_S", 10.0)
    monkeypatch.setattr("framestorm.platform.kubernetes.function.PASSES_WITHIN_S", 1.0)
    platform = Plain(SITE, tmp_path)

    def scale(replicas: int) -> None:
        cluster.call("scale", "deployment", "echo", "--namespace", NAMESPACE, f"--replicas={replicas}")

    scaled = settings(autoscaler="hpa", window_s=2)
    with controllers(cluster), ThreadPoolExecutor(1) as pool:
        platform.prepare(scaled)
        scale(3)
        assert wait_until(lambda: _ready(cluster) == 3, 30)
        with pytest.raises(FramestormError, match="not ready in 12 s: it has 3 replicas, and a run begins with 1; see"):
            platform.prepare(scaled)
        # One for which there is no room need not get any.
        full = objects.condition("PodScheduled", status=False, reason="Unschedulable", message="0/1 nodes: too few cpu")
        (*_, last) = cluster.get("pods", namespace=NAMESPACE)["items"]
        objects.set_status(cluster, "pod", last["metadata"]["name"], NAMESPACE, {"conditions": [full]})
        second = pool.submit(platform.prepare, scaled)
        assert not wait_until(second.done, 4)
        scale(1)
        second.result(30)
    assert _ready(cluster) == 1


def _ready(cluster: Cluster) -> int:
    return int(cluster.get("deployment", "echo", NAMESPACE)["status"].get("readyReplicas", 0))


def test_a_study_that_was_killed_goes_on_without_what_it_had_made(cluster: Cluster, tmp_path: Path) -> None:
    with controllers(cluster):
        Plain(SITE, tmp_path).prepare(settings(autoscaler="hpa"))
        # Of a point on another platform.
        container = {"image": "example.com/echo:1"}
        left = {
            "apiVersion": "serving.knative.dev/v1",
            "kind": "Service",
            "metadata": {"name": "other", "namespace": NAMESPACE, "labels": MANAGED},
            "spec": {"template": {"spec": {"containers": [container]}}},
        }
        cluster.apply([left, objects.deployment(NAMESPACE, "theirs", {"app": "theirs"}, replicas=0)])
        platform = Plain(SITE, tmp_path)
        platform.prepare(settings())
    assert cluster.find("hpa", "echo", NAMESPACE) is None
    assert cluster.find("services.serving.knative.dev", "other", NAMESPACE) is None
    assert cluster.find("deployment", "theirs", NAMESPACE), "the kit did not make it"
    with pytest.raises(FramestormError, match="uses namespace framestorm"):
        Plain(SITE, tmp_path / "another").prepare(settings())
    platform.close()


def test_the_one_replica_is_called_by_its_own_address(cluster: Cluster, tmp_path: Path) -> None:
    status = {**objects.running(), "podIP": "198.18.64.9", "podIPs": [{"ip": "198.18.64.9"}]}
    platform, by_grpc = Plain(SITE, tmp_path), {"protocol": "grpc", "path": "/iris"}
    with controllers(cluster, lambda: status):
        assert platform.prepare(settings(route="pod", port=9000)) == "http://198.18.64.9:9000/"
        assert platform.prepare(settings(route="pod", port=9000, **by_grpc)) == "grpc://198.18.64.9:9000/iris"
        url = platform.prepare(settings(**by_grpc))
    (port,) = cluster.get("service", "echo", NAMESPACE)["spec"]["ports"]
    assert url == f"grpc://127.0.0.1:{port['nodePort']}/iris"


def test_pods_call_a_function_of_a_study_by_its_name_in_the_cluster(cluster: Cluster, tmp_path: Path) -> None:
    with controllers(cluster):
        platform = Plain(Site(context=CONTEXT, over_slaves=True, by_pods=True), tmp_path)
        assert platform.prepare(settings(path="/invoke")) == f"http://echo.{NAMESPACE}.svc/invoke"


def test_a_pod_that_will_not_run_ends_the_wait_with_the_reason(cluster: Cluster, tmp_path: Path) -> None:
    status = objects.waiting("ErrImagePull", "not found")
    with (
        controllers(cluster, lambda: status),
        pytest.raises(FramestormError, match=r"pod echo-1-0 .*ErrImagePull: not found; check the image"),
    ):
        Plain(SITE, tmp_path).prepare(settings())


def test_a_pod_for_which_a_node_is_being_added_is_waited_for(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("framestorm.platform.kubernetes.function.PASSES_WITHIN_S", 10.0)
    full = objects.condition("PodScheduled", status=False, reason="Unschedulable", message="0/1 nodes: too few cpu")
    with controllers(cluster, lambda: {"phase": "Pending", "conditions": [full]}), ThreadPoolExecutor(1) as pool:
        made = pool.submit(Plain(SITE, tmp_path).prepare, settings())
        assert wait_until(lambda: cluster.find("pod", "echo-1-0", NAMESPACE), 30)
        uid = cluster.get("pod", "echo-1-0", NAMESPACE)["metadata"]["uid"]
        cluster.apply([objects.event(NAMESPACE, "up", "Pod", "echo-1-0", uid, "TriggeredScaleUp", type="Normal")])
        assert not wait_until(made.done, 14)
        reconcile(cluster, cluster.get("deployment", "echo", NAMESPACE), objects.running())
        made.result(30)


def test_a_pod_that_found_room_has_the_time_to_start(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("framestorm.platform.kubernetes.function.PASSES_WITHIN_S", 8.0)
    full = objects.condition("PodScheduled", status=False, reason="Unschedulable", message="0/1 nodes: too few cpu")
    with controllers(cluster, lambda: {"phase": "Pending", "conditions": [full]}), ThreadPoolExecutor(1) as pool:
        made = pool.submit(Plain(SITE, tmp_path).prepare, settings())
        none: dict[str, Any] = {"status": {}}
        assert wait_until(lambda: "conditions" in (cluster.find("pod", "echo-1-0", NAMESPACE) or none)["status"], 30)
        objects.set_status(cluster, "pod", "echo-1-0", NAMESPACE, objects.waiting("ContainerCreating"))
        assert not wait_until(made.done, 12)
        reconcile(cluster, cluster.get("deployment", "echo", NAMESPACE), objects.running())
        made.result(30)


def refused_pods(reason: str) -> Status:
    """The status of a Deployment whose pods a webhook refuses, as Kubernetes' controllers set it."""
    failure = objects.condition("ReplicaFailure", reason="FailedCreate", message=f"denied the request: {reason}")
    return {"observedGeneration": 1, "conditions": [failure]}


def test_a_webhook_that_refuses_names_the_reason_and_leaves_nothing(cluster: Cluster, tmp_path: Path) -> None:
    platform = Plain(SITE, tmp_path)
    words = rf'{CONTEXT}: .*webhook "{webhook.NAME}" denied the request: no team is named'
    with webhook.refusing(cluster, "apps", "deployments", "no team is named", tmp_path):
        with pytest.raises(ClusterError, match=words):
            platform.prepare(settings())
        assert cluster.find("service", "echo", NAMESPACE), "the webhook takes this one"
        platform.leave()
    assert cluster.find("service", "echo", NAMESPACE) is None
    with controllers(cluster):
        platform.prepare(settings())
    assert cluster.get("deployment", "echo", NAMESPACE)["status"]["readyReplicas"] == 1
    platform.close()


def test_a_webhook_that_refuses_pods_ends_the_wait_of_this_point_only(cluster: Cluster, tmp_path: Path) -> None:
    platform = Plain(SITE, tmp_path)

    def refuse(change: ObjectChange) -> None:
        if change.item["metadata"]["generation"] == 1 and "status" in change.item:
            objects.set_status(cluster, "deployment", "echo", NAMESPACE, refused_pods("no team is named"))

    with closing(Watch(cluster, watch.DEPLOYMENTS, NAMESPACE, refuse, lambda *_: None)) as each:
        each.begin()
        words = r"echo does not become ready: deployment echo .*: FailedCreate: denied the request: no team is named"
        with pytest.raises(FramestormError, match=words):
            platform.prepare(settings())
    with ThreadPoolExecutor(1) as pool:
        second = pool.submit(platform.prepare, settings(cpu="500m"))
        assert wait_until(lambda: second.done() or _generation(cluster) == 2, 30)
        # Kubernetes' controllers have not seen the second settings yet, and their status is of the first.
        assert not wait_until(second.done, 2), second.exception()
        reconcile(cluster, cluster.get("deployment", "echo", NAMESPACE), objects.running())
        second.result(30)
    platform.close()


def _generation(cluster: Cluster) -> int:
    return int(cluster.get("deployment", "echo", NAMESPACE)["metadata"]["generation"])


def test_a_point_on_another_platform_finds_the_cluster_empty(cluster: Cluster, tmp_path: Path) -> None:
    platforms = registry.Platforms(SITE, tmp_path)
    with controllers(cluster):
        platforms.prepare(settings())
        platforms.prepare(registry.read({"kind": "url", "url": "http://127.0.0.1:1/"}))
        assert cluster.find("deployment", "echo", NAMESPACE) is None
        assert cluster.find("service", "echo", NAMESPACE) is None
        platforms.prepare(settings())
    assert cluster.find("deployment", "echo", NAMESPACE)
    platforms.close()
