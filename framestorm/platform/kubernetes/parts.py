"""The programs of a cluster that are built from their sources: Kubernetes with its store, and what runs functions."""

from pathlib import Path

from framestorm.platform.kubernetes.layout import BIN, KUBE, SOURCE
from framestorm.platform.openfaas import parts as openfaas
from framestorm.platform.openfaas.layout import SOURCE as OPENFAAS
from framestorm.setup import golang
from framestorm.setup.pieces import Piece

VERSION = "v1.31.0"
# Programs without these refuse each other.
_NAMES = {
    "k8s.io/component-base/version.gitVersion": VERSION,
    "k8s.io/component-base/version.gitMajor": "1",
    "k8s.io/component-base/version.gitMinor": "31",
    "k8s.io/component-base/version.gitTreeState": "clean",
    "k8s.io/client-go/pkg/version.gitVersion": VERSION,
}

PROGRAMS = golang.program(
    "kubernetes",
    f"Kubernetes {VERSION} (minutes)",
    KUBE,
    SOURCE,
    "./kube",
    # The first program of OpenFaaS, with which the standard library is compiled: what takes longest begins early.
    after=openfaas.programs("gateway")[0],
    sources=(SOURCE / "kube",),
    link=" ".join(f"-X {name}={value}" for name, value in _NAMES.items()),
)
# With libraries of a later Kubernetes than the rest.
METRICS = SOURCE / "metrics"
KNATIVE = ("activator", "autoscaler", "autoscaler-hpa", "controller", "queue", "webhook")


def _cluster_pieces() -> tuple[Piece, ...]:
    """Return what runs in a cluster or makes one, each made after the one before it."""
    pieces = [openfaas.KIND, PROGRAMS]

    def add(name: str, title: str, package: str, module: Path = SOURCE) -> None:
        folders = (module / package,) if package.startswith(".") else ()
        piece = f"{name}-of-pods"  # the local OpenFaaS has a provider too
        pieces.append(golang.program(piece, title, BIN / name, module, package, after=pieces[-1], sources=folders))

    add("coredns", "CoreDNS", "./coredns")
    for program in KNATIVE:
        add(f"knative-{program}", f"Knative Serving: {program}", f"knative.dev/serving/cmd/{program}")
    add("kserve-manager", "KServe", "github.com/kserve/kserve/cmd/manager")
    add("knative-ingress", "ingress of Knative", "./ingress")
    add("openfaas-provider", "OpenFaaS's provider for Kubernetes", "./provider")
    add("metrics-server", "metrics-server", "tool", METRICS)
    add("registry", "registry of images", ".", SOURCE / "registry")
    add("gateway", "OpenFaaS: gateway of a cluster", "tool", OPENFAAS / "parts" / "gateway")
    return tuple(pieces)


CLUSTER_PIECES = _cluster_pieces()
