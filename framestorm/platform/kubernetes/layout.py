"""Where what is built for Kubernetes lies, and the addresses and names of the cluster that the kit makes."""

import hashlib

from framestorm import paths

SOURCE = paths.ROOT / "function" / "kubernetes"
HOME = paths.LOCAL / "kubernetes"
BIN = HOME / "bin"
KUBE = BIN / "kube"
MANIFESTS = HOME / "manifests"
KUBECONFIG = HOME / "kubeconfig"

NAME = "framestorm"
CONTEXT = f"kind-{NAME}"

# All from the networks that are set aside for tests (RFC 2544); the lab has 198.18.0.0/24, containers of OpenFaaS
# 198.19.255.0/24.
SERVICES = "198.18.32.0/20"
PODS = "198.18.64.0/18"
ENGINE_BRIDGE = "198.18.200.1/24"
ENGINE_POOL = "198.18.202.0/24"
MACHINE_END, CLUSTER_END = "198.18.201.1", "198.18.201.2"
LINK_PREFIX = 30
NODES = "198.19.0.0/24"
ADDRESS = CLUSTER_END  # of the API server and of NodePorts, as this machine sees them
API_PORT = 6443
INGRESS_PORT = 31080
GATEWAY_PORT = 31112
GATEWAY_URL = f"http://{ADDRESS}:{GATEWAY_PORT}"

REGISTRY_PORT = 5001
# The same name for who pushes and for the nodes, which are led to the registry by hosts.toml.
REGISTRY = f"localhost:{REGISTRY_PORT}"
REGISTRY_FOR_NODES = f"{ENGINE_BRIDGE.partition('/')[0]}:{REGISTRY_PORT}"

# What is the machine's and not a folder's has a name of this checkout.
INSTANCE = f"framestorm-kind-{hashlib.sha256(str(HOME.resolve()).encode()).hexdigest()[:8]}"
LINK = "fs-kind"
