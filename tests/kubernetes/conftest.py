"""Kubernetes' API server with its store, and nothing else: it takes and refuses objects as a cluster does."""

import json
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from framestorm.machine import LOOPBACK, wait_until
from framestorm.platform.kubernetes.cluster import Cluster, ClusterError
from framestorm.platform.kubernetes.layout import KUBE

READY_WITHIN_S = 60
CONTEXT = "alone"
# Who may do everything, and who may do nothing yet.
TOKENS = {"admin": "system:masters", "guest": "guests"}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="session")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A kubeconfig of an API server that is up, with a context for each user."""
    folder = tmp_path_factory.mktemp("api-server")
    store, peers, port = free_port(), free_port(), free_port()
    subprocess.run(["openssl", "genrsa", "-out", folder / "sa.key", "2048"], check=True, capture_output=True)
    tokens = folder / "tokens.csv"
    tokens.write_text("".join(f"{name}-token,{name},{name},{group}\n" for name, group in TOKENS.items()))
    etcd = [
        KUBE, "etcd", "--data-dir", folder / "etcd", "--unsafe-no-fsync",
        *(f"--{name}-client-urls=http://{LOOPBACK}:{store}" for name in ("listen", "advertise")),
        *(f"--{name}-peer-urls=http://{LOOPBACK}:{peers}" for name in ("listen", "initial-advertise")),
        f"--initial-cluster=default=http://{LOOPBACK}:{peers}",
    ]  # fmt: skip
    server = [
        KUBE, "kube-apiserver", f"--etcd-servers=http://{LOOPBACK}:{store}", f"--secure-port={port}",
        f"--bind-address={LOOPBACK}", f"--advertise-address={LOOPBACK}", f"--cert-dir={folder}/certificates",
        f"--service-account-key-file={folder}/sa.key", f"--service-account-signing-key-file={folder}/sa.key",
        "--service-account-issuer=https://kubernetes.default", "--service-cluster-ip-range=198.18.32.0/20",
        f"--token-auth-file={tokens}", "--authorization-mode=RBAC", "--disable-admission-plugins=ServiceAccount",
    ]  # fmt: skip
    config = folder / "kubeconfig"
    names = {"admin": CONTEXT, "guest": "guest"}
    config.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": CONTEXT,
                "clusters": [
                    {
                        "name": CONTEXT,
                        "cluster": {"server": f"https://{LOOPBACK}:{port}", "insecure-skip-tls-verify": True},
                    }
                ],
                "users": [{"name": name, "user": {"token": f"{name}-token"}} for name in TOKENS],
                "contexts": [
                    {"name": context, "context": {"cluster": CONTEXT, "user": user}} for user, context in names.items()
                ],
            }
        )
    )
    with (folder / "log").open("wb") as log:
        processes = [subprocess.Popen(command, stdout=log, stderr=log) for command in (etcd, server)]
        try:
            cluster = Cluster(CONTEXT, config)
            assert wait_until(lambda: _is_ready(cluster), READY_WITHIN_S), (folder / "log").read_text()[-4000:]
            yield config
        finally:
            for process in reversed(processes):
                process.terminate()
                process.wait()


def _is_ready(cluster: Cluster) -> bool:
    try:
        return "ok" in cluster.call("get", "--raw", "/readyz")
    except ClusterError:
        return False


@pytest.fixture
def cluster(kubeconfig: Path) -> Cluster:
    """The cluster of the one who may do everything."""
    return Cluster(CONTEXT, kubeconfig)
