"""Functions on KServe, against the real schemas: what is created, waited for, found, refused and removed."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Any

import pytest

from framestorm.errors import FramestormError
from framestorm.machine import wait_until
from framestorm.platform import registry
from framestorm.platform.base import Site
from framestorm.platform.kubernetes import watch
from framestorm.platform.kubernetes.cluster import NAMESPACE, Cluster
from framestorm.platform.kubernetes.kserve import KIND, KServe, KServeSettings
from framestorm.platform.kubernetes.watch import ObjectChange, Watch
from tests.kubernetes import knative_controllers, objects, test_plain
from tests.kubernetes.conftest import CONTEXT, remove_namespace
from tests.kubernetes.test_needs import crd

SITE = Site(context=CONTEXT)
NODE_PORT = 31080
HOST = f"echo-predictor.{NAMESPACE}.example.test"


def settings(**values: Any) -> KServeSettings:
    return KServeSettings.read({"kind": "kserve", "function": "echo", "image": "example.com/echo:1", **values})


@pytest.fixture
def cluster(serving: Cluster) -> Iterator[Cluster]:
    knative_controllers.ingress(serving, NODE_PORT)
    yield serving
    remove_namespace(serving, "theirs")


def controllers(cluster: Cluster) -> AbstractContextManager[None]:
    """Act on each new generation of each InferenceService, as KServe does with Knative or with Kubernetes alone."""
    return objects.controlling(
        cluster, watch.INFERENCE_SERVICES, NAMESPACE, lambda service: reconcile(cluster, service)
    )


def reconcile(cluster: Cluster, service: dict[str, Any]) -> None:
    metadata, predictor = service["metadata"], service["spec"]["predictor"]
    name, namespace = f"{metadata['name']}-predictor", metadata["namespace"]
    labels = {"serving.kserve.io/inferenceservice": metadata["name"], **predictor.get("labels", {})}
    status: dict[str, Any] = {"conditions": [objects.condition("Ready")], "observedGeneration": metadata["generation"]}
    if metadata["annotations"]["serving.kserve.io/deploymentMode"] == "RawDeployment":
        labels["app"] = f"isvc.{name}"
        cluster.apply([objects.deployment(namespace, name, labels, predictor["minReplicas"])])
        test_plain.reconcile(cluster, cluster.get("deployment", name, namespace), objects.running())
    else:
        scaling = {"autoscaling.knative.dev/max-scale": str(predictor["maxReplicas"])}
        template = {"metadata": {"labels": labels, "annotations": scaling}}
        template["spec"] = {"containers": predictor["containers"]}
        of_knative = {
            "apiVersion": "serving.knative.dev/v1",
            "kind": "Service",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"template": template},
        }
        cluster.apply([of_knative])
        made = cluster.get("services.serving.knative.dev", name, namespace)
        knative_controllers.reconcile(cluster, made, objects.running())
        revision = f"{name}-{made['metadata']['generation']:05}"
        part = {"latestReadyRevision": revision, "latestCreatedRevision": revision, "url": f"http://{HOST}"}
        status |= {"url": f"http://{HOST}", "components": {"predictor": part}}
    objects.set_status(cluster, KIND, metadata["name"], namespace, status)


def test_knative_runs_a_serverless_one(cluster: Cluster, tmp_path: Path) -> None:
    platform = KServe(SITE, tmp_path)
    with controllers(cluster):
        url = platform.prepare(settings(concurrency_limit=2, target=3, window_s=10, min_scale=0, cpu="500m"))
    assert url == f"http://127.0.0.1:{NODE_PORT}/v1/models/echo:predict"
    assert platform.headers() == {"Host": HOST}
    made = cluster.get(KIND, "echo", NAMESPACE)
    assert made["metadata"]["annotations"]["autoscaling.knative.dev/window"] == "10s"
    predictor = made["spec"]["predictor"]
    # Twice what 4 cores hold by 100m.
    assert (predictor["minReplicas"], predictor["maxReplicas"], predictor["containerConcurrency"]) == (0, 80, 2)
    assert (predictor["scaleMetric"], predictor["scaleTarget"]) == ("concurrency", 3)
    (container,) = predictor["containers"]
    assert (container["name"], container["resources"]["limits"]) == (
        "kserve-container",
        {"cpu": "500m", "memory": "512Mi"},
    )
    texts = platform.settings_as_text()
    assert (texts["revision"], texts["max_scale"], texts["host"]) == ("echo-predictor-00001", "80", HOST)
    platform.close()
    assert "deletionTimestamp" in cluster.get("namespace", NAMESPACE)["metadata"]


def test_kubernetes_alone_runs_a_raw_one_that_the_kit_publishes(cluster: Cluster, tmp_path: Path) -> None:
    platform = KServe(SITE, tmp_path)
    with controllers(cluster):
        url = platform.prepare(settings(mode="raw", min_scale=2, max_scale=3, path="/invoke", memory="64Mi"))
    service = cluster.get("service", "echo", NAMESPACE)
    assert service["spec"]["selector"] == {"app": "isvc.echo-raw-predictor"}
    assert url == f"http://127.0.0.1:{service['spec']['ports'][0]['nodePort']}/invoke"
    assert platform.headers() == {}
    assert cluster.get(KIND, "echo-raw", NAMESPACE)["spec"]["predictor"]["minReplicas"] == 2
    with platform.watching():
        readings = platform.metrics(0, 1e15) or []
    assert {(each.function, each.value) for each in readings if each.metric == "replicas_ready"} == {("echo", 2.0)}
    with controllers(cluster):
        platform.prepare(settings(mode="serverless"))
    assert cluster.find(KIND, "echo-raw", NAMESPACE) is None, "KServe would not take away what it made in this mode"


def test_pods_call_a_raw_one_by_its_name_in_the_cluster(cluster: Cluster, tmp_path: Path) -> None:
    site = Site(context=CONTEXT, over_slaves=True, by_pods=True)
    with controllers(cluster):
        assert KServe(site, tmp_path).prepare(settings(mode="raw", path="/x")) == f"http://echo.{NAMESPACE}.svc/x"
        KServe(SITE, tmp_path).prepare(settings())
    outside = registry.at(f"http://{HOST}/x", site)
    assert (outside.url, outside.headers()) == (f"http://127.0.0.1:{NODE_PORT}/x", {"Host": HOST}), (
        "no name leads there"
    )


def test_a_run_begins_when_kubernetes_has_removed_the_replicas_of_the_run_before(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("framestorm.platform.kubernetes.function.READY_WITHIN_S", 10.0)
    monkeypatch.setattr("framestorm.platform.kubernetes.plain.USUAL_WINDOW_S", 2)
    platform, asked = KServe(SITE, tmp_path), settings(mode="raw", max_scale=3)
    scaled = ("scale", "deployment", "echo-raw-predictor", "--namespace", NAMESPACE)
    with controllers(cluster):
        platform.prepare(asked)
        with test_plain.controllers(cluster):
            cluster.call(*scaled, "--replicas=2")
            assert wait_until(lambda: len(cluster.get("pods", namespace=NAMESPACE)["items"]) == 2, 30)
            with pytest.raises(FramestormError, match="not ready in 12 s: it has 2 replicas, and a run begins with 1"):
                platform.prepare(asked)
            cluster.call(*scaled, "--replicas=1")
            platform.prepare(asked)


def test_one_that_is_refused_names_the_reason_of_kserve(cluster: Cluster, tmp_path: Path) -> None:
    failed = objects.condition(
        "PredictorConfigurationReady", status=False, reason="RevisionFailed", message="the webhook refused it"
    )

    def refuse(change: ObjectChange) -> None:
        metadata = change.item["metadata"]
        if not change.is_gone and "conditions" not in change.item.get("status", {}):
            status = {"conditions": [failed], "observedGeneration": metadata["generation"]}
            objects.set_status(cluster, KIND, metadata["name"], NAMESPACE, status)

    with closing(Watch(cluster, watch.INFERENCE_SERVICES, NAMESPACE, refuse, lambda *_: None)) as each:
        each.begin()
        words = r"inferenceservice echo in namespace framestorm: RevisionFailed: the webhook refused it; see kubectl"
        with pytest.raises(FramestormError, match=words):
            KServe(SITE, tmp_path).prepare(settings())


def test_one_that_is_there_is_found_by_its_address(cluster: Cluster, tmp_path: Path) -> None:
    platform = KServe(SITE, tmp_path)
    with controllers(cluster):
        platform.prepare(settings(max_scale=5))
    found = registry.at(f"http://{HOST}/v1/models/echo:predict", SITE)
    assert (found.kind, found.url) == ("kserve", f"http://127.0.0.1:{NODE_PORT}/v1/models/echo:predict")
    assert found.headers() == {"Host": HOST}
    assert found.settings_as_text()["max_scale"] == "5"
    platform.close()


def test_a_raw_one_is_found_where_there_is_no_knative(kubeconfig: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
    cluster, url = Cluster(CONTEXT), "http://echo.theirs.example.test"
    cluster.apply([crd(KIND, "InferenceService", "v1beta1"), objects.namespace("theirs")])
    try:
        assert wait_until(lambda: cluster.serves(KIND), 60)
        service = {
            "apiVersion": "serving.kserve.io/v1beta1",
            "kind": "InferenceService",
            "metadata": {"name": "echo", "namespace": "theirs"},
            "status": {"url": url, "conditions": [objects.condition("Ready")]},
        }
        labels = {"app": "isvc.echo-predictor"}
        cluster.apply([service, objects.deployment("theirs", "echo-predictor", labels)], is_validated=False)
        found = registry.at(f"{url}/v1/models/echo:predict", Site(context=CONTEXT, ingress="http://127.0.0.1:8/"))
        assert (found.kind, found.url) == ("kserve", "http://127.0.0.1:8/v1/models/echo:predict")
        assert found.headers() == {"Host": "echo.theirs.example.test"}
    finally:
        cluster.delete("deployment", "echo-predictor", "theirs")
        cluster.delete("customresourcedefinition", KIND, waits=True)
