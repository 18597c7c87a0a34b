"""Kubernetes' API server with its store, and nothing else: it takes and refuses objects as a cluster does."""

import json
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from framestorm.machine import LOOPBACK, wait_until
from framestorm.platform.kubernetes import function, manifests
from framestorm.platform.kubernetes.cluster import NAMESPACE, Cluster, ClusterError
from framestorm.platform.kubernetes.layout import KUBE
from tests.kubernetes import objects

READY_WITHIN_S = 60
CONTEXT = "alone"
SCHEMA = "CustomResourceDefinition"
# Who may do everything, and who may do nothing yet.
TOKENS = {"admin": "system:masters", "guest": "guests"}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


class ApiServer:
    """An API server with its store, from `start` to `stop`; `config` is a kubeconfig with a context for each user."""

    def __init__(self, folder: Path) -> None:
        self.config = folder / "kubeconfig"
        self._log = folder / "log"
        self._processes: list[subprocess.Popen[bytes]] = []
        store, peers, port = free_port(), free_port(), free_port()
        subprocess.run(["openssl", "genrsa", "-out", folder / "sa.key", "2048"], check=True, capture_output=True)
        tokens = folder / "tokens.csv"
        tokens.write_text("".join(f"{name}-token,{name},{name},{group}\n" for name, group in TOKENS.items()))
        self._etcd: list[str | Path] = [
            KUBE, "etcd", "--data-dir", folder / "etcd", "--unsafe-no-fsync",
            *(f"--{name}-client-urls=http://{LOOPBACK}:{store}" for name in ("listen", "advertise")),
            *(f"--{name}-peer-urls=http://{LOOPBACK}:{peers}" for name in ("listen", "initial-advertise")),
            f"--initial-cluster=default=http://{LOOPBACK}:{peers}",
        ]  # fmt: skip
        self._server: list[str | Path] = [
            KUBE, "kube-apiserver", f"--etcd-servers=http://{LOOPBACK}:{store}", f"--secure-port={port}",
            f"--bind-address={LOOPBACK}", f"--advertise-address={LOOPBACK}", f"--cert-dir={folder}/certificates",
            f"--service-account-key-file={folder}/sa.key", f"--service-account-signing-key-file={folder}/sa.key",
            "--service-account-issuer=https://kubernetes.default", "--service-cluster-ip-range=198.18.32.0/20",
            f"--token-auth-file={tokens}", "--authorization-mode=RBAC", "--disable-admission-plugins=ServiceAccount",
        ]  # fmt: skip
        names = {"admin": CONTEXT, "guest": "guest"}
        reach = {"server": f"https://{LOOPBACK}:{port}", "insecure-skip-tls-verify": True}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": CONTEXT,
            "clusters": [{"name": CONTEXT, "cluster": reach}],
            "users": [{"name": name, "user": {"token": f"{name}-token"}} for name in TOKENS],
            "contexts": [
                {"name": context, "context": {"cluster": CONTEXT, "user": user}} for user, context in names.items()
            ],
        }
        self.config.write_text(json.dumps(config))

    def start(self) -> None:
        cluster = Cluster(CONTEXT, self.config)
        with self._log.open("ab") as log:
            commands = (self._etcd, self._server)
            self._processes = [subprocess.Popen(command, stdout=log, stderr=log) for command in commands]
        assert wait_until(lambda: _is_ready(cluster), READY_WITHIN_S), self._log.read_text()[-4000:]

    def stop(self, *, is_crash: bool = False) -> None:
        for process in reversed(self._processes):
            process.kill() if is_crash else process.terminate()
            process.wait()
        self._processes.clear()


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[ApiServer]:
    """An API server that a test may stop."""
    server = ApiServer(tmp_path)
    try:
        server.start()
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="session")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A kubeconfig of an API server that is up, with a context for each user."""
    server = ApiServer(tmp_path_factory.mktemp("api-server"))
    try:
        server.start()
        yield server.config
    finally:
        server.stop()


def _is_ready(cluster: Cluster) -> bool:
    try:
        return "ok" in cluster.call("get", "--raw", "/readyz")
    except ClusterError:
        return False


@pytest.fixture
def cluster(kubeconfig: Path) -> Cluster:
    """The cluster of the one who may do everything."""
    return Cluster(CONTEXT, kubeconfig)


@pytest.fixture(scope="session")
def serving_config(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A kubeconfig of an API server that has the schemas of Knative and KServe, as their own sources have them."""
    schemas = [item for part in ("knative", "kserve") for item in manifests.read(part) if item["kind"] == SCHEMA]
    for item in schemas:
        item["spec"].pop("conversion", None)  # by a webhook that does not run here
    server = ApiServer(tmp_path_factory.mktemp("serving"))
    try:
        server.start()
        cluster = Cluster(CONTEXT, server.config)
        cluster.apply(schemas)
        cluster.call("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
        yield server.config
    finally:
        server.stop()


@pytest.fixture
def serving(serving_config: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """The cluster with these schemas, which the kubeconfig of the environment names; the kit's namespace goes.

    What does not become ready fails a test soon. At the addresses of this cluster nothing answers.
    """
    monkeypatch.setenv("KUBECONFIG", str(serving_config))
    monkeypatch.setattr(function, "READY_WITHIN_S", 30.0)
    monkeypatch.setattr(function, "REACHED_WITHIN_S", 0.0)
    cluster = Cluster(CONTEXT)
    yield cluster
    remove_namespace(cluster, NAMESPACE)


@pytest.fixture
def one_node(serving: Cluster) -> Iterator[Cluster]:
    """The cluster with a node, which is this machine; what a test has made in namespace theirs goes."""
    serving.apply([{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "here"}}])
    addresses = [{"type": "InternalIP", "address": "127.0.0.1"}]
    ready = {"addresses": addresses, "allocatable": {"cpu": "4"}, "conditions": [objects.condition("Ready")]}
    objects.set_status(serving, "node", "here", "", ready)
    yield serving
    remove_namespace(serving, "theirs")
    serving.delete("node", "far")


def remove_namespace(cluster: Cluster, name: str) -> None:
    """Remove a namespace and what is in it, as its controller would do."""
    if cluster.find("namespace", name) is None:
        return
    kinds = "pods,deployments,services,horizontalpodautoscalers,configmaps,inferenceservices,revisions,podautoscalers"
    kinds += ",services.serving.knative.dev,serverlessservices,ingresses.networking.internal.knative.dev"
    kinds += ",roles,rolebindings,ingresses.networking.k8s.io"
    cluster.call("delete", kinds, "--all", "--namespace", name, "--force", "--grace-period=0")
    cluster.delete("namespace", name)
    finalized = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}, "spec": {"finalizers": []}}
    cluster.call("replace", "--raw", f"/api/v1/namespaces/{name}/finalize", "-f", "-", stdin=json.dumps(finalized))
