"""How the address of a function leads to its Deployment: by a Service, an Ingress, or the gateway of OpenFaaS."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from framestorm import paths
from framestorm.errors import FramestormError, UsageError
from framestorm.machine import wait_until
from framestorm.model import plan as plans
from framestorm.platform import registry
from framestorm.platform.base import Platform, Site
from framestorm.platform.kubernetes import address
from framestorm.platform.kubernetes.cluster import Cluster
from framestorm.platform.kubernetes.plain import NAME
from framestorm.platform.openfaas.platform import OpenFaas, OpenFaasSettings
from framestorm.run.target import find_platform
from tests.kubernetes import objects
from tests.kubernetes.conftest import CONTEXT, remove_namespace
from tests.runs import RunSh
from tests.stand_in import StartServer

SITE = Site(context=CONTEXT)


@pytest.fixture
def cluster(one_node: Cluster) -> Cluster:
    return one_node


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


@pytest.mark.parametrize(
    ("scheme", "ports", "meant"),
    [
        ("grpc", {"http": 8000, "grpc": 8001, "metrics": 8002}, 8001),  # as Triton's is
        ("grpc", {"web": 80, "grpc-inference": 9000}, 9000),
        ("http", {"metrics": 9090, "http-web": 8000}, 8000),
        ("http", {"http": 8000, "web": 80}, 80),
        ("http", {"web": 8000, "more": 8001}, 8000),
    ],
)
def test_without_a_port_an_address_in_the_cluster_leads_to_that_of_its_scheme(
    cluster: Cluster, scheme: str, ports: dict[str, int], meant: int
) -> None:
    service = {"name": "model", "namespace": "theirs"}
    spec = {"type": "NodePort", "ports": [{"name": name, "port": port} for name, port in ports.items()]}
    cluster.apply(
        [objects.namespace("theirs"), {"apiVersion": "v1", "kind": "Service", "metadata": service, "spec": spec}]
    )
    published = {each["port"]: each["nodePort"] for each in cluster.get("service", "model", "theirs")["spec"]["ports"]}
    assert address.of_service(cluster, "model", "theirs", scheme) == f"{scheme}://127.0.0.1:{published[meant]}"
    cluster.delete("service", "model", "theirs")


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


def test_a_deployment_is_found_behind_an_ingress(cluster: Cluster) -> None:
    def path(start: str, service: str, kind: str = "Prefix") -> dict[str, Any]:
        backend = {"service": {"name": service, "port": {"number": 8080}}}
        return {"path": start, "pathType": kind, "backend": backend}

    theirs(cluster, "ClusterIP")
    theirs(cluster, "ClusterIP", name="cart", deployment="cart-v1")
    rules = [
        {"host": "shop.example.test", "http": {"paths": [path("/", "shop"), path("/cart", "cart")]}},
        {"http": {"paths": [path("/cart", "cart")]}},
        {"host": "*.example.test", "http": {"paths": [path("/only", "cart", "Exact")]}},
    ]
    item = {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "web", "namespace": "theirs"}}
    cluster.apply([{**item, "spec": {"rules": rules}}])
    try:
        with pytest.raises(FramestormError, match=r"ingress web in namespace theirs has no address; .*--ingress URL"):
            found("http://shop.example.test/x")
        lb = {"loadBalancer": {"ingress": [{"ip": "198.18.201.9"}]}}
        objects.set_status(cluster, "ingress", "web", "theirs", lb)
        for url, function in {
            "http://shop.example.test/x?y=1": "shop-v2",
            "http://shop.example.test/cart/1": "cart-v1",
            "http://shop.example.test/cartoon": "shop-v2",
            "https://other.example.test/only": "cart-v1",
        }.items():
            platform, texts = found(url)
            host = url.split("/")[2]
            assert (platform.url, texts["function"]) == (url.replace(host, "198.18.201.9"), function)
            assert platform.headers() == {"Host": host}
        assert found("http://shop.example.test/", Site(context=CONTEXT, ingress="http://127.0.0.1:8"))[0].url == (
            "http://127.0.0.1:8/"
        )
        assert found("http://198.18.201.9/cart")[1]["function"] == "cart-v1"
        for url in ("http://other.example.test/only/more", "http://198.18.201.9/"):
            with pytest.raises(UsageError, match="no function of this cluster"):
                found(url)
    finally:
        cluster.delete("ingress", "web", "theirs")


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
