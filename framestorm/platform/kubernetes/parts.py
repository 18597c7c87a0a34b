"""The programs of Kubernetes and its store, etcd: all of them in one file, built from their sources."""

from framestorm.platform.kubernetes.layout import KUBE, SOURCE
from framestorm.platform.openfaas.parts import GO_PIECES
from framestorm.setup import golang

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
    SOURCE / "kube",
    ".",
    after=GO_PIECES[-1],
    sources=(SOURCE / "kube",),
    link=" ".join(f"-X {name}={value}" for name, value in _NAMES.items()),
)
