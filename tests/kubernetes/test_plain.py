"""Functions as Deployments of Kubernetes, against the real schemas: what is created, waited for, found and removed."""

import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Any

import pytest

from framestorm import paths
from framestorm.errors import FramestormError, UsageError
from framestorm.machine import wait_until
from framestorm.model import plan as plans
from framestorm.platform import registry
from framestorm.platform.base import Platform, Site
from framestorm.platform.kubernetes import watch
from framestorm.platform.kubernetes.cluster import MANAGED, NAMESPACE, Cluster, ClusterError
from framestorm.platform.kubernetes.plain import NAME, Plain, PlainSettings
from framestorm.platform.kubernetes.watch import ObjectChange, Watch
from framestorm.platform.openfaas.platform import OpenFaas, OpenFaasSettings
from framestorm.run.target import find_platform
from tests.kubernetes import objects, webhook
from tests.kubernetes.conftest import CONTEXT, remove_namespace
from tests.runs import RunSh
from tests.stand_in import StartServer

SITE = Site(context=CONTEXT)
Status = dict[str, Any]


def settings(**values: Any) -> PlainSettings:
    return PlainSettings.read({"kind": "kubernetes", "function": "echo", "image": "example.com/echo:1", **values})


@pytest.fixture
def cluster(serving: Cluster) -> Iterator[Cluster]:
    serving.apply([{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "here"}}])
    addresses = [{"type": "InternalIP", "address": "127.0.0.1"}]
    ready = {"addresses": addresses, "allocatable": {"cpu": "4"}, "conditions": [objects.condition("Ready")]}
    objects.set_status(serving, "node", "here", "", ready)
    yield serving
    remove_namespace(serving, "theirs")
    serving.delete("node", "far")


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
    with controllers(cluster, lambda: status):
        assert Plain(SITE, tmp_path).prepare(settings(route="pod", port=9000)) == "http://198.18.64.9:9000/"


def test_a_pod_that_will_not_run_ends_the_wait_with_the_reason(cluster: Cluster, tmp_path: Path) -> None:
    status = objects.waiting("ErrImagePull", "not found")
    with (
        controllers(cluster, lambda: status),
        pytest.raises(FramestormError, match=r"pod echo-1-0 .*ErrImagePull: not found; check the image"),
    ):
        Plain(SITE, tmp_path).prepare(settings())


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


def theirs(
    cluster: Cluster,
    kind: str = "NodePort",
    name: str = "shop",
    deployment: str = "shop-v2",
    ports: Sequence[int] = (8080,),
) -> int:
    """A Deployment of somebody else behind a Service of another name; returns the port of the nodes for its last."""
    labels = {"app": deployment, "tier": "web"}
    published = [{"name": f"p{port}", "port": port} for port in ports]
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": "theirs"},
        "spec": {"type": kind, "selector": {"app": deployment}, "ports": published},
    }
    cluster.apply([objects.namespace("theirs"), objects.deployment("theirs", deployment, labels, replicas=3), service])
    (*_, port) = cluster.get("service", name, "theirs")["spec"]["ports"]
    return int(port.get("nodePort", 0))


def found(url: str, site: Site = SITE) -> tuple[Platform[Any], dict[str, str]]:
    platform = registry.at(url, site)
    return platform, platform.settings_as_text()


@pytest.mark.parametrize("host", ["shop.theirs", "shop.theirs.svc", "shop.theirs.svc.cluster.local"])
def test_a_deployment_is_found_by_its_service(cluster: Cluster, host: str) -> None:
    port = theirs(cluster)
    platform, texts = found(f"http://{host}:8080/x?y=1")
    assert (platform.kind, platform.url) == ("kubernetes", f"http://127.0.0.1:{port}/x?y=1")
    assert (texts["function"], texts["namespace"], texts["min_scale"], texts["max_scale"]) == (
        "shop-v2", "theirs", "3", "3",
    )  # fmt: skip
    by_port, _ = found(f"http://198.18.201.2:{port}/x")
    assert (by_port.kind, by_port.url) == ("kubernetes", f"http://198.18.201.2:{port}/x")
    from_pods, _ = found(f"http://{host}:8080/x", Site(context=CONTEXT, by_pods=True))
    assert from_pods.url == f"http://{host}:8080/x", "pods reach it by this name"


@pytest.mark.parametrize("scheme", ["http", "grpc"])
def test_the_port_of_an_address_in_the_cluster_counts(cluster: Cluster, scheme: str) -> None:
    port = theirs(cluster, ports=(80, 9090))
    platform, _ = found(f"{scheme}://shop.theirs.svc:9090/x")
    assert platform.url == f"{scheme}://127.0.0.1:{port}/x"
    with pytest.raises(FramestormError, match="service shop in namespace theirs has no port 8080; its ports: 80 and 9"):
        found(f"{scheme}://shop.theirs.svc:8080/x")


def test_the_usual_port_of_grpc_with_tls_is_known(cluster: Cluster) -> None:
    theirs(cluster, "LoadBalancer", ports=(443,))
    status = {"loadBalancer": {"ingress": [{"ip": "198.18.201.9"}]}}
    objects.set_status(cluster, "service", "shop", "theirs", status)
    assert found("grpcs://198.18.201.9/")[0].kind == "kubernetes"


def test_rights_in_the_namespace_of_a_function_are_enough(
    cluster: Cluster, serving_config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The context names it, nodes are not shown, and neither are the namespaces of others."""
    port = theirs(cluster)
    replica = objects.pod("theirs", "shop-0", {"app": "shop-v2", "tier": "web"}, "here")
    cluster.apply([*objects.rights("theirs"), replica])
    status = {**objects.running(), "hostIP": "198.18.201.7", "hostIPs": [{"ip": "198.18.201.7"}]}
    objects.set_status(cluster, "pod", "shop-0", "theirs", status)
    config = json.loads(serving_config.read_text())
    for each in config["contexts"]:
        each["context"]["namespace"] = "theirs"
    (tmp_path / "kubeconfig").write_text(json.dumps(config))
    with monkeypatch.context() as patch:
        patch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
        assert wait_until(lambda: Cluster("guest").may("list", "services", "theirs"), 30)
        platform, texts = found("http://shop.theirs:8080/x", Site(context="guest"))
        assert (platform.kind, platform.url) == ("kubernetes", f"http://198.18.201.7:{port}/x")
        assert (texts["function"], texts["namespace"]) == ("shop-v2", "theirs")
        with platform.watching():
            assert platform.metrics(0, 1e15)


def test_a_service_that_is_not_published_is_said(cluster: Cluster) -> None:
    theirs(cluster, "ClusterIP")
    with pytest.raises(FramestormError, match=r"service shop in namespace theirs .* is not published"):
        found("http://shop.theirs:8080/")
    with pytest.raises(UsageError, match=r"no function of this cluster has the address http://other\.theirs/"):
        found("http://other.theirs/")


@pytest.mark.parametrize("service", ["gateway", "gateway-external"])
def test_a_function_of_openfaas_is_found_behind_its_gateway(cluster: Cluster, service: str) -> None:
    port = theirs(cluster, name=service, deployment="gateway")
    cluster.apply(
        [objects.namespace("openfaas-fn"), objects.deployment("openfaas-fn", "ocr", {"faas_function": "ocr"})]
    )
    try:
        platform, texts = found(f"http://198.18.201.2:{port}/function/ocr")
        assert (platform.kind, texts["function"], texts["namespace"]) == ("kubernetes", "ocr", "openfaas-fn")
        with pytest.raises(UsageError, match="no function"):
            found(f"http://198.18.201.2:{port}/function/absent")
        # As a study's point has it, whose settings are not applied there.
        site = Site(gateway=f"http://198.18.201.2:{port}", context=CONTEXT)
        prepared = OpenFaas(site)
        prepared.prepare(OpenFaasSettings(function="ocr"))
        plan = plans.read(paths.JMX / "face-blur.jmx")
        assert find_platform(plan, {}, site, prepared=prepared).kind == "kubernetes"
    finally:
        remove_namespace(cluster, "openfaas-fn")


def test_pods_are_watched_by_the_labels_that_the_deployment_selects(cluster: Cluster) -> None:
    theirs(cluster)
    platform, _ = found("http://shop.theirs:8080/")
    other = objects.pod("theirs", "other", {"app": "other"})
    cluster.apply([other, objects.pod("theirs", "mine", {"app": "shop-v2", "tier": "web"})])
    with platform.watching():
        readings = platform.metrics(0, 1e15) or []
    assert {each.detail for each in readings if each.metric == "replica_ready"} == {"mine"}
    assert {each.value for each in readings if each.metric == "replicas_wanted"} == {3.0}
    assert NAME not in cluster.get("deployment", "shop-v2", "theirs")["metadata"]["labels"]


def test_a_run_goes_on_and_says_what_a_node_took_with_it(
    cluster: Cluster, stand_in: StartServer, run_sh: RunSh
) -> None:
    server = stand_in({})
    theirs(cluster)
    labels = {"app": "shop-v2", "tier": "web"}
    objects.set_node(cluster, "far", is_ready=True)
    for number, node in enumerate(("here", "here", "far")):
        cluster.apply([objects.pod("theirs", f"shop-{number}", labels, node)])
        objects.set_status(cluster, "pod", f"shop-{number}", "theirs", objects.running())
    objects.set_status(cluster, "deployment", "shop-v2", "theirs", {"replicas": 3, "readyReplicas": 3})
    run = run_sh.start(
        "./run.sh", "-t", "jmx/requests.jmx", "-Jusers=1", "-Jramp_s=0", "-Jhold_s=20",
        "-Jurl=http://shop.theirs:8080/", f"--context={CONTEXT}", f"--ingress={server.origin}",
    )  # fmt: skip
    run.until(lambda: server.received)
    # As Kubernetes does when a node's kubelet is silent: the node first, then what is on it.
    objects.set_node(cluster, "far", is_ready=False)
    silent = {"conditions": [objects.condition("PodScheduled"), objects.condition("Ready", status=False)]}
    objects.set_status(cluster, "pod", "shop-2", "theirs", silent)
    objects.set_status(cluster, "deployment", "shop-v2", "theirs", {"replicas": 3, "readyReplicas": 2})
    done = run.ended(0)
    (function,) = json.loads((done.folder / "summary.json").read_text())["functions"]
    assert (function["ready"], function["short_worst"]) == ({"min": 2, "max": 3}, {"ready": 2, "wanted": 3})
    rows = done.rows("metrics.csv")
    assert {row["detail"] for row in rows if row["metric"] == "replica_ready" and not float(row["value"])} == {"shop-2"}
    assert "shop-v2 had fewer replicas ready than wanted" in done.stdout and "at worst 2 of 3" in done.stdout
