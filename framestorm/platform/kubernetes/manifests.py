"""What is put into a cluster so that functions run there: the objects of each part, from its own configuration.

Knative, KServe and metrics-server bring their configuration with their sources. What is changed in it is here: images
that were built on this machine, the kit's ingress, and requests that a cluster of two cores can meet.
"""

import base64
import json
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from framestorm.platform.kubernetes import layout, node, parts
from framestorm.platform.kubernetes.cluster import Object
from framestorm.platform.kubernetes.layout import MANIFESTS, SOURCE
from framestorm.platform.openfaas.layout import FUNCTIONS
from framestorm.setup import golang
from framestorm.setup.pieces import Piece

DOMAIN = "knative.test"
INGRESS_CLASS = "framestorm.ingress.networking.knative.dev"
KO = "ko://knative.dev/serving/cmd/"
LITTLE = {"requests": {"cpu": "10m"}}
KSERVE_WEBHOOK = "kserve-webhook-server-service.kserve.svc"
OWN = SOURCE / "manifests"
REGISTRY = FUNCTIONS / "kind" / "registry-configmap.yaml"
CERTIFICATE_DAYS = 3650


def knative() -> Iterator[Object]:
    """Return Knative Serving, with the kit's ingress."""
    serving = golang.folder(SOURCE, "knative.dev/serving") / "config"
    networking = golang.folder(SOURCE, "knative.dev/networking") / "config"
    caching = golang.folder(SOURCE, "knative.dev/caching") / "config"
    core = serving / "core"
    files = [core / "100-namespace.yaml", *_all(core / "200-roles"), core / "200-serviceaccount.yaml"]
    files += [*_all(core / "300-resources"), caching / "image.yaml"]
    files += [networking / f"{name}.yaml" for name in ("ingress", "serverlessservice", "certificate", "domain-claim")]
    files += [*_all(core / "configmaps"), networking / "config-network.yaml"]
    files += [core / "deployments" / f"{name}.yaml" for name in ("activator", "autoscaler", "controller", "webhook")]
    files += [*_all(serving / "hpa-autoscaling"), *_all(core / "webhooks"), OWN / "ingress.yaml"]
    settings = {
        "config-network": {"ingress-class": INGRESS_CLASS},
        "config-domain": {DOMAIN: ""},
        "config-deployment": {
            "queue-sidecar-image": node.local("knative-queue"),
            "queue-sidecar-cpu-request": "10m",
            # Which controllers would ask for digests where their own localhost is.
            "registries-skipping-tag-resolving": f"index.docker.io,kind.local,ko.local,{node.LOCAL},{layout.REGISTRY}",
        },
    }
    for item in _objects(files):
        if item["kind"] == "ConfigMap":
            item.setdefault("data", {}).update(settings.get(item["metadata"]["name"], {}))
        if item["kind"] == "Deployment":
            for container in item["spec"]["template"]["spec"]["containers"]:
                container["resources"] = LITTLE
                if container["image"].startswith(KO):
                    container["image"] = node.local(f"knative-{container['image'].removeprefix(KO)}")
        yield item


def kserve() -> Iterator[Object]:
    """Return KServe, which deploys without Knative unless an object says otherwise; with a certificate of its own."""
    source = golang.folder(SOURCE, "github.com/kserve/kserve") / "install/v0.14.0/kserve.yaml"
    certificate, key = _certificate(KSERVE_WEBHOOK)
    for item in _objects([source]):
        kind, name = item["kind"], item["metadata"]["name"]
        if kind in ("Certificate", "Issuer") or (kind == "Deployment" and "localmodel" in name):
            continue
        if kind.endswith("WebhookConfiguration"):
            item["metadata"].get("annotations", {}).pop("cert-manager.io/inject-ca-from", None)
            for webhook in item["webhooks"]:
                webhook["clientConfig"]["caBundle"] = certificate
        elif kind == "CustomResourceDefinition":
            conversion = item["spec"].get("conversion", {}).get("webhook", {}).get("clientConfig")
            if conversion is not None:
                conversion["caBundle"] = certificate
        elif kind == "Deployment":
            pod = item["spec"]["template"]["spec"]
            pod["containers"] = [each for each in pod["containers"] if each["name"] == "manager"]
            manager = pod["containers"][0]
            manager |= {"image": node.local("kserve-manager"), "imagePullPolicy": "IfNotPresent", "resources": LITTLE}
        elif name == "inferenceservice-config":
            data = item["data"]
            data["deploy"] = _changed(data["deploy"], defaultDeploymentMode="RawDeployment")
            without_istio = {"disableIstioVirtualHost": True, "disableIngressCreation": True}
            data["ingress"] = _changed(data["ingress"], **without_istio, ingressDomain=DOMAIN)
        yield item
    yield {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "kubernetes.io/tls",
        "metadata": {"name": "kserve-webhook-server-cert", "namespace": "kserve"},
        "data": {"tls.crt": certificate, "tls.key": key},
    }


def metrics_server() -> Iterator[Object]:
    """Return metrics-server, which takes the certificates that kubelets sign themselves."""
    base = golang.folder(parts.METRICS, "sigs.k8s.io/metrics-server") / "manifests/base"
    labels = {"k8s-app": "metrics-server"}
    for item in _objects(path for path in _all(base) if path.name != "kustomization.yaml"):
        item["metadata"].setdefault("labels", {}).update(labels)
        if item["kind"] == "Service":
            item["spec"]["selector"] = labels
        elif item["kind"] == "Deployment":
            item["spec"]["selector"] = {"matchLabels": labels}
            item["spec"]["template"]["metadata"] = {"labels": labels}
            (container,) = item["spec"]["template"]["spec"]["containers"]
            container |= {"image": node.local("metrics-server"), "resources": LITTLE}
            container["args"] += ["--kubelet-insecure-tls"]
            container["readinessProbe"] |= {"initialDelaySeconds": 1, "periodSeconds": 1, "failureThreshold": 60}
        yield item


def openfaas() -> Iterator[Object]:
    """Return OpenFaaS's gateway with the kit's provider."""
    yield from _objects([OWN / "openfaas.yaml"])


def registry() -> Iterator[Object]:
    """Yield the ConfigMap that gives tools the registry's address."""
    yield from _objects([REGISTRY])


PARTS = {
    "knative": knative,
    "kserve": kserve,
    "metrics-server": metrics_server,
    "openfaas": openfaas,
    "registry": registry,
}


def read(part: str) -> list[Object]:
    """Return the objects of a part, in the order in which a cluster can take them."""
    return list(json.loads((MANIFESTS / f"{part}.json").read_text()))


def _make(piece: Piece) -> None:
    MANIFESTS.mkdir(parents=True, exist_ok=True)
    for part, objects in PARTS.items():
        path = MANIFESTS / f"{part}.json"
        path.touch(mode=0o600)
        path.write_text(json.dumps(list(objects())))
    piece.output.touch()


PIECE = Piece(
    "kubernetes-manifests",
    "configuration of what runs functions in a cluster",
    (Path(__file__), *sorted(OWN.glob("*.yaml")), REGISTRY, SOURCE / "go.mod", parts.METRICS / "go.mod"),
    MANIFESTS / "complete",
    _make,
    (golang.PIECE,),
    (parts.CLUSTER_PIECES[-1],),
)


def _all(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.yaml"))


def _objects(files: Iterable[Path]) -> Iterator[dict[str, Any]]:
    yaml = YAML(typ="safe")
    for path in files:
        yield from (item for item in yaml.load_all(path) if item)


def _changed(text: str, **settings: object) -> str:
    return json.dumps({**json.loads(text), **settings})


def _certificate(name: str) -> tuple[str, str]:
    """Return a certificate for a name, signed by itself, and its key, each in base64."""
    with tempfile.TemporaryDirectory() as folder:
        certificate, key = Path(folder, "certificate"), Path(folder, "key")
        options = ("-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-noenc")
        names = ("-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}", "-days", str(CERTIFICATE_DAYS))
        command: list[str | Path] = ["openssl", "req", *options, *names, "-keyout", key, "-out", certificate]
        subprocess.run(command, check=True, capture_output=True)
        texts = [base64.b64encode(path.read_bytes()).decode() for path in (certificate, key)]
        return texts[0], texts[1]
