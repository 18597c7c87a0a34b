"""What is said of a cluster before anything is done with it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from framestorm import cli
from framestorm.errors import UsageError
from framestorm.machine import wait_until
from framestorm.platform.base import Check
from framestorm.platform.kubernetes import needs
from framestorm.platform.kubernetes.cluster import MANAGED, NAMESPACE, Cluster, ForbiddenError
from tests.kubernetes import objects, webhook


def checks(cluster: Cluster, platform: str) -> dict[str, Check]:
    return {check.what: check for check in needs.checks(cluster, platform)}


def crd(name: str, kind: str, version: str) -> dict[str, Any]:
    plural, _, group = name.partition(".")
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": name},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": [{"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }


def deployment(namespace: str, name: str) -> dict[str, Any]:
    labels = {"app": name}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": name, "image": "example.com/x:1"}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"selector": {"matchLabels": labels}, "template": pod},
    }


def set_available(cluster: Cluster, namespace: str, name: str, status: str, message: str = "") -> None:
    condition = {"type": "Available", "status": status, "message": message}
    patch = json.dumps({"status": {"conditions": [condition]}})
    options = ("--subresource=status", "--type=merge", "--patch", patch)
    cluster.call("patch", "deployment", name, "--namespace", namespace, *options)


def test_a_context_that_is_not_there_is_named_with_those_that_are(kubeconfig: Path) -> None:
    with pytest.raises(UsageError, match=r"no context 'gone'; it has alone and guest"):
        Cluster.of("gone", kubeconfig)
    assert Cluster.of(None, kubeconfig).context == "alone", "the current one"


def test_a_cluster_that_does_not_answer_is_all_that_is_said(kubeconfig: Path, tmp_path: Path) -> None:
    config = json.loads(kubeconfig.read_text())
    config["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:9"
    (tmp_path / "config").write_text(json.dumps(config))
    (check,) = needs.checks(Cluster("alone", tmp_path / "config"), "knative")
    assert not check.is_there
    assert "127.0.0.1:9" in check.words and "refused" in check.words


def test_each_need_is_a_line_and_what_is_missing_ends_with_1(
    kubeconfig: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["target", "knative", "--kubeconfig", str(kubeconfig), "--context", "alone"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("ok      cluster: Kubernetes v1.31.0")
    assert lines[-1].startswith("MISSING Knative Serving: the cluster has no services.serving.knative.dev")
    with pytest.raises(SystemExit):
        cli.main(["target", "knative", "--help"])


def test_what_counts_of_metrics_server_is_that_its_api_is_served(cluster: Cluster) -> None:
    """A provider's own may have any name."""

    def check() -> Check:
        return checks(cluster, "kubernetes")["metrics-server"]

    assert check().words.startswith("the cluster has no pods.metrics.k8s.io; to install it: `kubectl apply")
    name = {"name": "v1beta1.metrics.k8s.io"}
    spec = {"group": "metrics.k8s.io", "version": "v1beta1", "groupPriorityMinimum": 100, "versionPriority": 100}
    service = {"service": {"name": "anything", "namespace": "kube-system"}, "insecureSkipTLSVerify": True}
    api = {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": name}
    cluster.apply([{**api, "spec": {**spec, **service}}])
    try:
        assert wait_until(lambda: "ServiceUnavailable" in check().words, 30), check()
        assert not check().is_there and "to install it" not in check().words
    finally:
        cluster.delete("apiservice", name["name"])
    served = crd("pods.metrics.k8s.io", "PodMetrics", "v1beta1")
    served["metadata"]["annotations"] = {"api-approved.kubernetes.io": "unapproved, of a test"}
    cluster.apply([served])
    try:
        assert wait_until(lambda: check().is_there, 60), check()
    finally:
        cluster.delete("customresourcedefinition", "pods.metrics.k8s.io", waits=True)


def test_missing_rights_are_named(kubeconfig: Path, cluster: Cluster) -> None:
    words = checks(Cluster("guest", kubeconfig), "kubernetes")["rights"].words
    assert "create namespaces" in words and "kubectl create rolebinding" in words
    assert checks(cluster, "kubernetes")["rights"].is_there


@pytest.fixture
def kinds_of_knative(cluster: Cluster) -> Iterator[None]:
    """The kinds of Knative, as long as a test needs them."""
    kinds = ("Service", "PodAutoscaler")
    cluster.apply([crd(name, kind, "v1") for name, kind in zip(needs.KNATIVE_SERVING.kinds, kinds, strict=True)])
    assert wait_until(lambda: all(map(cluster.serves, needs.KNATIVE_SERVING.kinds)), 60)
    yield
    for name in needs.KNATIVE_SERVING.kinds:
        cluster.delete("customresourcedefinition", name, waits=True)


@pytest.mark.usefixtures("kinds_of_knative")
def test_rights_in_a_namespace_of_others_are_enough(kubeconfig: Path, cluster: Cluster) -> None:
    cluster.apply([objects.namespace(NAMESPACE), *objects.rights(NAMESPACE)])
    try:
        found = checks(Cluster("guest", kubeconfig), "knative")
        assert all(check.is_there for check in found.values()), found
        assert "whether it is ready is not shown" in found["Knative Serving"].words
        # One that the kit has made, it removes.
        cluster.call("label", "namespace", NAMESPACE, *(f"{key}={value}" for key, value in MANAGED.items()))
        words = checks(Cluster("guest", kubeconfig), "knative")["rights"].words
        assert "may not create namespaces in namespace" in words and "kubectl create namespace framestorm" in words
    finally:
        cluster.delete("role", "guest", NAMESPACE)
        # Nothing here ends a namespace that is being deleted.
        cluster.call("label", "namespace", NAMESPACE, *(f"{key}-" for key in MANAGED))


def test_objects_of_namespaces_that_a_user_may_see_are_visible(kubeconfig: Path, cluster: Cluster) -> None:
    guest = Cluster("guest", kubeconfig)
    assert guest.visible("deployments") == []
    cluster.apply([objects.namespace(NAMESPACE), *objects.rights(NAMESPACE), deployment(NAMESPACE, "mine")])
    cluster.apply([objects.namespace("other"), deployment("other", "hidden")])
    try:
        assert wait_until(lambda: guest.may("list", "deployments.apps", NAMESPACE), 30)
        assert [each["metadata"]["name"] for each in guest.visible("deployments")] == ["mine"]
        # Of some of them nothing follows for the whole cluster.
        with pytest.raises(ForbiddenError):
            guest.every("deployments")
    finally:
        cluster.delete("role", "guest", NAMESPACE)
        cluster.delete("deployment", "mine", NAMESPACE)


@pytest.mark.usefixtures("kinds_of_knative")
def test_an_ingress_that_nothing_serves_is_named_with_the_command_that_mends_it(cluster: Cluster) -> None:
    cluster.apply(
        [
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "knative-serving"}},
            *(deployment(*each) for each in needs.KNATIVE_SERVING.deployments),
        ]
    )
    for each in needs.KNATIVE_SERVING.deployments:
        set_available(cluster, *each, "True")

    def words() -> str:
        return checks(cluster, "knative")["Knative Serving"].words

    assert "has the ingress class istio.ingress.networking.knative.dev, and no deployment net-istio-con" in words()
    assert words().endswith(f"to mend it: `{needs.USE_KOURIER}`")
    network = {"name": "config-network", "namespace": "knative-serving"}
    data = {"ingress-class": "kourier.ingress.networking.knative.dev"}
    cluster.apply([{"apiVersion": "v1", "kind": "ConfigMap", "metadata": network, "data": data}])
    assert "no deployment net-kourier-controller" in words()
    cluster.apply([deployment("knative-serving", "net-kourier-controller")])
    assert words() == "installed, and ready"


@pytest.mark.usefixtures("kinds_of_knative")
def test_a_part_is_missing_until_its_kinds_and_deployments_are_there_and_its_webhook_takes_an_object(
    cluster: Cluster,
) -> None:
    def words() -> str:
        return checks(cluster, "kserve")["KServe"].words

    assert words().startswith("the cluster has no inferenceservices.serving.kserve.io and servingruntimes.serving")
    assert "kubectl apply --server-side -f https://" in words()
    cluster.apply(
        [
            crd("inferenceservices.serving.kserve.io", "InferenceService", "v1beta1"),
            crd("servingruntimes.serving.kserve.io", "ServingRuntime", "v1alpha1"),
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kserve"}},
        ]
    )
    assert words().startswith("there is no deployment kserve-controller-manager; to install it: ")
    # As Kubeflow has it.
    cluster.apply([objects.namespace("kubeflow"), deployment("kubeflow", "kserve-controller-manager")])
    set_available(cluster, "kubeflow", "kserve-controller-manager", "True")
    assert words() == "installed, and ready"
    cluster.delete("deployment", "kserve-controller-manager", "kubeflow")
    cluster.apply([deployment("kserve", "kserve-controller-manager")])
    set_available(cluster, "kserve", "kserve-controller-manager", "False", "no image")
    told = "is not available: no image; see `kubectl describe deployment kserve-controller-manager --namespace kserve`"
    assert words().endswith(told), "what is there is not installed again"
    set_available(cluster, "kserve", "kserve-controller-manager", "True")
    assert words() == "installed, and ready"
    config = {"name": "inferenceservice-config", "namespace": "kserve"}
    settings = {"ingress": json.dumps({"disableIstioVirtualHost": False})}
    cluster.apply([{"apiVersion": "v1", "kind": "ConfigMap", "metadata": config, "data": settings}])
    assert "asks for VirtualServices of Istio" in words() and words().endswith(f"to mend it: `{needs.WITHOUT_ISTIO}`")
    cluster.delete("configmap", "inferenceservice-config", "kserve")
    nobody = webhook.configuration("serving.kserve.io", "inferenceservices", url="https://127.0.0.1:9/")
    with webhook.asked(cluster, nobody):
        assert "it takes no InferenceService" in words() and "connection refused" in words()
