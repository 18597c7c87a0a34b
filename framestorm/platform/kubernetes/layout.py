"""Where what is built for Kubernetes lies."""

from framestorm import paths

SOURCE = paths.ROOT / "function" / "kubernetes"
HOME = paths.LOCAL / "kubernetes"
BIN = HOME / "bin"
KUBE = BIN / "kube"
