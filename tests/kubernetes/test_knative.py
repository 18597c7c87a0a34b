"""Functions on Knative, against the real schemas: what is created, waited for, found, refused and removed."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from framestorm.errors import FramestormError, UsageError
from framestorm.machine import wait_until
from framestorm.model import files
from framestorm.model.run import Record
from framestorm.platform import registry
from framestorm.platform.base import Site
from framestorm.platform.kubernetes.cluster import MANAGED, NAMESPACE, Cluster, ClusterError
from framestorm.platform.kubernetes.knative import REVISION, SERVICE, Knative, KnativeSettings
from tests.kubernetes import objects
from tests.kubernetes.conftest import CONTEXT, remove_namespace
from tests.kubernetes.knative_controllers import controllers, ingress, reconcile
from tests.runs import RunSh
from tests.stand_in import StartServer

SITE = Site(context=CONTEXT)
NODE_PORT = 31080


def settings(**values: Any) -> KnativeSettings:
    return KnativeSettings.read({"kind": "knative", "function": "echo", "image": "example.com/echo:1", **values})


@pytest.fixture
def cluster(serving: Cluster) -> Cluster:
    ingress(serving, NODE_PORT)
    return serving


def service(cluster: Cluster) -> dict[str, Any]:
    return cluster.get("services.serving.knative.dev", "echo", NAMESPACE)


def test_a_function_is_made_called_by_its_ingress_and_removed(cluster: Cluster, tmp_path: Path) -> None:
    platform = Knative(SITE, tmp_path)
    asked = settings(cpu="500m", memory="64Mi", concurrency_limit=2, window_s=10, path="/invoke")
    with controllers(cluster, NAMESPACE):
        assert platform.prepare(asked) == f"http://127.0.0.1:{NODE_PORT}/invoke"
    assert platform.headers() == {"Host": f"echo.{NAMESPACE}.example.test"}
    made = service(cluster)
    assert MANAGED.items() <= made["metadata"]["labels"].items()
    template = made["spec"]["template"]
    # Twice what 4 cores hold by 100m.
    assert template["metadata"]["annotations"]["autoscaling.knative.dev/max-scale"] == "80"
    assert template["metadata"]["annotations"]["autoscaling.knative.dev/window"] == "10s"
    assert template["spec"]["containerConcurrency"] == 2
    (container,) = template["spec"]["containers"]
    assert container["resources"] == {
        "requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"cpu": "500m", "memory": "64Mi"},
    }  # fmt: skip
    texts = platform.settings_as_text()
    assert (texts["revision"], texts["max_scale"], texts["memory_limit"]) == ("echo-00001", "80", "64Mi")
    platform.close()
    assert "deletionTimestamp" in cluster.get("namespace", NAMESPACE)["metadata"]


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (objects.waiting("ErrImagePull", "not found"), "pod echo-00001-pod .*ErrImagePull: not found; check the image"),
        (
            objects.waiting("CrashLoopBackOff", restarts=2, lastState=objects.ended("Error", 3)),
            "CrashLoopBackOff: Error: its program ended with status 3; 2 restarts; .*kubectl logs --previous",
        ),
        (
            objects.waiting("CrashLoopBackOff", restarts=1, lastState=objects.ended("OOMKilled", 137)),
            "OOMKilled: .*status 137.*more memory",
        ),
    ],
    ids=["image", "crash", "memory"],
)
def test_a_pod_that_will_not_run_ends_the_wait_with_the_reason(
    cluster: Cluster, tmp_path: Path, status: dict[str, Any], words: str
) -> None:
    platform = Knative(SITE, tmp_path)
    with controllers(cluster, NAMESPACE, lambda: status), pytest.raises(FramestormError, match=words):
        platform.prepare(settings())
    platform.close()


def test_what_passes_by_itself_is_waited_for_a_while(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("framestorm.platform.kubernetes.function.PASSES_WITHIN_S", 1.0)
    full = objects.condition("PodScheduled", status=False, reason="Unschedulable", message="0/1 nodes: too few cpu")
    with (
        controllers(cluster, NAMESPACE, lambda: {"phase": "Pending", "conditions": [full]}),
        pytest.raises(FramestormError, match=r"Unschedulable: 0/1 nodes: too few cpu; ask for less"),
    ):
        Knative(SITE, tmp_path).prepare(settings())


def test_a_function_that_does_not_scale_to_zero_is_waited_for_as_long_as_its_window(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("framestorm.platform.kubernetes.function.READY_WITHIN_S", 6.0)
    with (
        controllers(cluster, NAMESPACE),
        pytest.raises(
            FramestormError, match="not ready in 12 s: it has 1 replica, and a run begins with 0; see kubectl"
        ),
    ):
        Knative(SITE, tmp_path).prepare(settings(from_zero=True, window_s=6))


def test_each_route_leads_to_the_newest_settings_by_http_and_by_grpc(cluster: Cluster, tmp_path: Path) -> None:
    """The one of the settings before lets its last requests end, in most of a minute."""
    one = {"route": "handler", "min_scale": 1, "max_scale": 1}
    status = {**objects.running(), "podIP": "198.18.64.9", "podIPs": [{"ip": "198.18.64.9"}]}
    ending = objects.pod(NAMESPACE, "an-old-pod", {SERVICE: "echo", REVISION: "echo-00000"})
    ending["metadata"]["finalizers"] = ["example.com/ending"]
    cluster.apply([objects.namespace(NAMESPACE), ending])
    cluster.delete("pod", "an-old-pod", NAMESPACE)
    try:
        platform = Knative(SITE, tmp_path)
        with controllers(cluster, NAMESPACE, lambda: status):
            assert platform.prepare(settings(**one)) == "http://198.18.64.9:8080/"
            by_grpc = {**one, "protocol": "grpc", "path": "/iris"}
            assert platform.prepare(settings(**by_grpc)) == "grpc://198.18.64.9:8080/iris"
            assert platform.prepare(settings(**by_grpc | {"route": "queue-proxy"})) == "grpc://198.18.64.9:8013/iris"
            url = platform.prepare(settings(**by_grpc | {"route": "ingress"}))
        assert url == f"grpc://127.0.0.1:{NODE_PORT}/iris"
        assert platform.headers() == {"Host": f"echo.{NAMESPACE}.example.test"}
        (container,) = service(cluster)["spec"]["template"]["spec"]["containers"]
        assert container["ports"][0]["name"] == "h2c"
    finally:
        gone = json.dumps({"metadata": {"finalizers": []}})
        cluster.call("patch", "pod", "an-old-pod", "--namespace", NAMESPACE, "--type=merge", "--patch", gone)


def test_a_run_begins_without_the_replicas_that_the_run_before_needed(cluster: Cluster, tmp_path: Path) -> None:
    platform = Knative(SITE, tmp_path)
    with controllers(cluster, NAMESPACE), ThreadPoolExecutor(1) as pool:
        platform.prepare(settings())
        (first,) = cluster.get("pods", namespace=NAMESPACE)["items"]
        cluster.apply([objects.pod(NAMESPACE, name, first["metadata"]["labels"]) for name in ("second", "third")])
        again = pool.submit(platform.prepare, settings())
        assert not wait_until(again.done, 3)
        cluster.call("delete", "pods", "second", "third", "--namespace", NAMESPACE, "--force", "--grace-period=0")
        again.result(30)


def test_two_studies_do_not_share_a_cluster(cluster: Cluster, tmp_path: Path) -> None:
    first, second = (Knative(SITE, tmp_path / name) for name in ("first", "second"))
    with controllers(cluster, NAMESPACE):
        first.prepare(settings())
        with pytest.raises(FramestormError, match=r"/first uses namespace framestorm .*kubectl .*delete namespace"):
            second.prepare(settings())
        # A study that was killed goes on.
        Knative(SITE, tmp_path / "first").prepare(settings())


def test_a_namespace_of_others_stays_with_what_is_theirs(cluster: Cluster, tmp_path: Path) -> None:
    theirs = objects.deployment(NAMESPACE, "theirs", {"app": "theirs"})
    cluster.apply([objects.namespace(NAMESPACE), theirs])
    platform = Knative(SITE, tmp_path)
    with controllers(cluster, NAMESPACE):
        platform.prepare(settings())
        platform.close()
    assert "deletionTimestamp" not in cluster.get("namespace", NAMESPACE)["metadata"]
    assert cluster.find("deployment", "theirs", NAMESPACE)
    assert cluster.find("configmap", "framestorm-study", NAMESPACE) is None
    assert cluster.find("services.serving.knative.dev", "echo", NAMESPACE) is None


def test_a_refusal_names_the_object_and_the_reason(cluster: Cluster, tmp_path: Path) -> None:
    guest = Knative(Site(context="guest"), tmp_path)
    with pytest.raises(ClusterError, match=r'guest: .*[Ff]orbidden.*"guest" cannot get resource "namespaces"'):
        guest.prepare(settings())
    with pytest.raises(UsageError, match="no context 'gone'"):
        Knative(Site(context="gone"), tmp_path).prepare(settings())


def existing(cluster: Cluster, **annotations: str) -> None:
    """A Service `echo` of somebody else in namespace theirs, which serves."""
    scaled = {f"autoscaling.knative.dev/{name}": value for name, value in annotations.items()}
    template = {"metadata": {"annotations": scaled}, "spec": {"containers": [{"image": "example.com/echo:1"}]}}
    service = {
        "apiVersion": "serving.knative.dev/v1",
        "kind": "Service",
        "metadata": {"name": "echo", "namespace": "theirs"},
        "spec": {"template": template},
    }
    cluster.apply([objects.namespace("theirs"), service])
    reconcile(cluster, cluster.get("services.serving.knative.dev", "echo", "theirs"), objects.running())


@pytest.fixture
def theirs(cluster: Cluster) -> Any:
    existing(cluster, **{"max-scale": "5"})
    yield cluster
    remove_namespace(cluster, "theirs")


HOST = "echo.theirs.example.test"


def test_a_service_is_found_by_its_address_and_bounded(theirs: Cluster) -> None:
    platform = registry.at(f"http://{HOST}/x?y=1", SITE)
    assert (platform.kind, platform.url) == ("knative", f"http://127.0.0.1:{NODE_PORT}/x?y=1")
    assert platform.headers() == {"Host": HOST}
    assert platform.settings_as_text()["max_scale"] == "5"
    assert registry.at(f"grpc://{HOST}/", SITE).url == f"grpc://127.0.0.1:{NODE_PORT}/"
    by_header = registry.at("http://127.0.0.1:9/x", SITE, HOST)
    assert (by_header.kind, by_header.url) == ("knative", "http://127.0.0.1:9/x")
    with_ingress = registry.at(f"http://{HOST}/x", Site(context=CONTEXT, ingress="http://127.0.0.1:8/"))
    assert with_ingress.url == "http://127.0.0.1:8/x"
    for ingress_url, url in {
        "http://127.0.0.1:8": "grpc://127.0.0.1:8/iris",
        "https://a.test": "grpcs://a.test/iris",
    }.items():
        by_grpc = registry.at(f"grpc://{HOST}/iris", Site(context=CONTEXT, ingress=ingress_url))
        assert (by_grpc.url, by_grpc.headers()) == (url, {"Host": HOST})
    assert registry.at(f"http://{HOST}/x", Site()).kind == "url", "no cluster was named"
    with pytest.raises(UsageError, match=r"no function of this cluster has the address http://other\.example/"):
        registry.at("http://other.example/", SITE)


def test_the_record_has_the_revision_that_serves(theirs: Cluster) -> None:
    kind = "services.serving.knative.dev"
    first = theirs.get("revisions.serving.knative.dev", "echo-00001", "theirs")
    container = {"image": "example.com/echo:2"}
    metadata = {**first["metadata"], "name": "echo-00002"}
    metadata = {key: metadata[key] for key in ("name", "namespace", "labels", "annotations")}
    theirs.apply([{**first, "metadata": metadata, "spec": {"containers": [container]}, "status": {}}])
    status = theirs.get(kind, "echo", "theirs")["status"] | {"latestReadyRevisionName": "echo-00002"}

    def settings(url: str, *traffic: dict[str, Any]) -> tuple[str, str]:
        objects.set_status(theirs, kind, "echo", "theirs", {**status, "traffic": list(traffic)})
        texts = registry.at(url, SITE).settings_as_text()
        return texts["revision"], texts["image"]

    old, new = {"revisionName": "echo-00001"}, {"revisionName": "echo-00002"}
    assert settings(f"http://{HOST}/", {**old, "percent": 100}) == ("echo-00001", "example.com/echo:1")
    both = ({**old, "percent": 90}, {**new, "percent": 10, "tag": "next", "url": f"http://next-{HOST}"})
    assert settings(f"http://{HOST}/", *both) == ("echo-00001 90 %, echo-00002 10 %", "example.com/echo:1")
    assert settings(f"http://next-{HOST}/", *both) == ("echo-00002", "example.com/echo:2")


def test_pods_call_a_service_by_the_address_that_it_has_in_the_cluster(theirs: Cluster) -> None:
    inside = "http://echo.theirs.svc.cluster.local"
    status = theirs.get("services.serving.knative.dev", "echo", "theirs")["status"]
    objects.set_status(theirs, "services.serving.knative.dev", "echo", "theirs", {**status, "address": {"url": inside}})
    platform = registry.at(f"{inside}/x", Site(context=CONTEXT, by_pods=True))
    assert (platform.kind, platform.url, platform.headers()) == ("knative", f"{inside}/x", {})


def test_a_bound_may_have_the_older_name(cluster: Cluster) -> None:
    existing(cluster, maxScale="7", minScale="2")
    try:
        settings = registry.at(f"http://{HOST}/", SITE).settings_as_text()
    finally:
        remove_namespace(cluster, "theirs")
    assert (settings["min_scale"], settings["max_scale"]) == ("2", "7")


def test_a_service_without_a_bound_is_refused(cluster: Cluster) -> None:
    existing(cluster)
    try:
        with pytest.raises(FramestormError, match=r"nothing bounds the number of replicas of echo: .*max-scale"):
            registry.at(f"http://{HOST}/", SITE)
    finally:
        remove_namespace(cluster, "theirs")


def test_a_run_against_a_service_has_its_replicas_on_the_page(
    theirs: Cluster, serving_config: Path, stand_in: StartServer, run_sh: RunSh
) -> None:
    server = stand_in({})
    run = run_sh(
        "./run.sh", "-t", "jmx/requests.jmx", "-Jusers=1", "-Jramp_s=0", "-Jhold_s=3", f"-Jurl=http://{HOST}/",
        f"--context={CONTEXT}", f"--ingress={server.origin}",
    )  # fmt: skip
    record = files.read(run.folder / "run.json", Record)
    assert (record.target.kind, record.target.settings["revision"]) == ("knative", "echo-00001")
    assert {request.headers["Host"] for request in server.received} == {HOST}
    (function,) = json.loads((run.folder / "summary.json").read_text())["functions"]
    assert (function["function"], function["ready"]) == ("echo", {"min": 1, "max": 1})
    metrics = {row["metric"] for row in run.rows("metrics.csv")}
    assert {"activator_in_path", "autoscaler_wanted", "replicas_wanted", "replica_ready"} <= metrics
