"""The cluster that the kit makes on this machine by kind, from images built here, and takes away without a trace."""

import contextlib
import fcntl
import json
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from framestorm import paths
from framestorm.errors import FramestormError, UsageError
from framestorm.machine import wait_until
from framestorm.model.units import plural
from framestorm.platform.base import Check
from framestorm.platform.kubernetes import engine, layout, manifests, needs, node, parts, store
from framestorm.platform.kubernetes.cluster import Cluster, ClusterError
from framestorm.platform.kubernetes.layout import CONTEXT, HOME, KUBECONFIG, NAME
from framestorm.platform.openfaas import parts as openfaas
from framestorm.platform.openfaas.layout import BIN as OPENFAAS_BIN
from framestorm.platform.openfaas.layout import FUNCTIONS
from framestorm.setup import golang, packages
from framestorm.setup import pieces as setup

KIND = OPENFAAS_BIN / "kind"
# Functions lie on the nodes from the start; by the other two, `target deploy` brings further ones.
FUNCTIONS_AND_TOOLS = openfaas.programs(*openfaas.GO_FUNCTIONS, "faas-cli", "stack-check")
PIECES = (*parts.CLUSTER_PIECES, *FUNCTIONS_AND_TOOLS, node.ROOT_PIECE, manifests.PIECE)
PUBLISHED = HOME / "published"  # that cluster was asked for
UNFINISHED = HOME / "unfinished"  # this one is being made, or was when that was killed
# A minute or two on an idle machine of two cores.
READY_WITHIN_S = 600.0
POLL_S = 1.0
CONTROL_PLANE = f"{NAME}-control-plane"
_LABEL = "io.x-k8s.kind.cluster"
_IMAGES = ("ctr", "--namespace=k8s.io", "images")
# Of an image of another engine on a node: what it was there.
_ID = "framestorm.id"
# Kinds first, whose objects follow; last what starts programs, and what has the API server ask these.
_DEFINES = ("CustomResourceDefinition", "Namespace")
_RUN = ("Deployment", "APIService", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")


def up(nodes: int = 1) -> Cluster:
    """Return the cluster of this checkout; made, with all parts ready, unless it is there.

    Args:
        nodes: how many; where there are several, functions run on all but the first, which controls the cluster.

    Raises:
        UsageError: it is there with another number of nodes.
        FramestormError: it cannot be made, and nothing is left; or it is there, and does not answer, or a part of it
            did not get ready: it can be looked at.
    """
    paths.check_plain("the cluster")
    packages.install(engine.PACKAGES)
    if setup.ensure(PIECES):
        golang.remove_caches()
    with _locked():
        cluster = Cluster(CONTEXT, KUBECONFIG)
        if not is_there():
            _end()
            try:
                UNFINISHED.touch()
                _make(nodes)
                _install(cluster)
                UNFINISHED.unlink()
            except BaseException:
                _end()
                raise
        elif (found := len(_nodes())) != nodes:
            raise UsageError(f"the cluster is there with {plural(found, 'node')}; end it by: ./run.sh target down")
        _wait(cluster)
        for item in cluster.get("nodes")["items"]:
            addresses = {each["type"]: each["address"] for each in item["status"]["addresses"]}
            engine.lead_to_pods(addresses["InternalIP"], item["spec"]["podCIDR"])
    return cluster


def up_published() -> None:
    """Make the cluster of the original study by published images, in the machine's own Docker.

    Raises:
        FramestormError: it could not be made; why is on stderr.
    """
    HOME.mkdir(parents=True, exist_ok=True)
    PUBLISHED.touch()
    _script("up")


def down() -> list[str]:
    """Remove the clusters that were made here, with all that runs in them; returns their names."""
    with _locked():
        names = ["kind's engine"] if engine.STATE.exists() else []
        if names:
            _end()
        if PUBLISHED.exists():
            _script("down")
            PUBLISHED.unlink()
            names.append("kind's cluster")
    return names


def _script(name: str) -> None:
    done = subprocess.run([FUNCTIONS / "kind" / f"{name}.sh"], check=False)
    if done.returncode:
        raise FramestormError(f"function/kind/{name}.sh failed with {done.returncode}")


def is_there() -> bool:
    """Return whether this checkout has a whole cluster that runs; while it is busy, it may not answer."""
    is_whole = KUBECONFIG.exists() and not UNFINISHED.exists()
    return is_whole and engine.is_running() and CONTROL_PLANE in _nodes()


def load(images: Mapping[str, str], save: Callable[[Path], None]) -> None:
    """Put images on the nodes, unless each has them; an image that a node has by another name gets this one too.

    Args:
        images: by name, the id of each.
        save: writes them into an archive, as `docker save` does.
    """
    with _locked():
        nodes = _nodes()
        if all(_name(node, *image) for node in nodes for image in images.items()):
            return
        with tempfile.TemporaryDirectory(dir=HOME) as folder:
            archive = Path(folder, "images.tar")
            save(archive)
            _kind("load", "image-archive", str(archive), "--name", NAME)
        for node in nodes:
            for name, image_id in images.items():
                _label(node, name, image_id)


def _name(node: str, name: str, image_id: str) -> bool:
    """Tag an image on a node; return whether the node has the image."""
    names = engine.ENGINE.run("exec", node, *_IMAGES, "ls", "--quiet", f'labels."{_ID}"=={image_id}').split()
    if names and _full(name) not in names:
        engine.ENGINE.run("exec", node, *_IMAGES, "tag", "--force", names[0], _full(name))
        _label(node, name, image_id)
    return bool(names)


def _label(node: str, name: str, image_id: str) -> None:
    engine.ENGINE.run("exec", node, *_IMAGES, "label", _full(name), f"{_ID}={image_id}")


def _full(name: str) -> str:
    """Return the name by which containerd has an image of Docker's."""
    return f"docker.io/{name}" if "/" in name else f"docker.io/library/{name}"


def _nodes() -> list[str]:
    return engine.ENGINE.run("ps", "--filter", f"label={_LABEL}={NAME}", "--format", "{{.Names}}").split()


def _make(nodes: int) -> None:
    engine.start()
    store.start()
    image = node.ensure_image()
    config = {
        "kind": "Cluster",
        "apiVersion": "kind.x-k8s.io/v1alpha4",
        "name": NAME,
        "networking": {
            "apiServerAddress": layout.ADDRESS,
            "apiServerPort": layout.API_PORT,
            "podSubnet": layout.PODS,
            "serviceSubnet": layout.SERVICES,
        },
        "nodes": [{"role": role, "image": image} for role in ("control-plane", *("worker",) * (nodes - 1))],
    }
    # What a machine left that went down with its cluster.
    _delete()
    _kind("create", "cluster", "--config", "-", "--kubeconfig", str(KUBECONFIG), stdin=json.dumps(config))
    KUBECONFIG.chmod(0o600)
    address = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}"
    engine.lead_to(engine.ENGINE.run("inspect", "--format", address, CONTROL_PLANE).strip())


def _install(cluster: Cluster) -> None:
    _scale_dns(cluster, 0)
    objects = [item for part in manifests.PARTS for item in manifests.read(part)]

    def apply(wanted: Callable[[str], bool]) -> None:
        # The schemas by which kubectl validates are 30 MB, and made by the API server again after each change of them.
        cluster.apply([item for item in objects if wanted(item["kind"])], is_validated=False)

    apply(_DEFINES.__contains__)
    apply(lambda kind: kind not in (*_DEFINES, *_RUN))
    # A controller that starts before services have addresses ends, and starts again only after a pause; CoreDNS waits
    # for half a minute.
    if not _wait_until(lambda: _has_services(cluster)):
        raise FramestormError(f"kube-proxy is not ready after {READY_WITHIN_S:.0f} s")
    _scale_dns(cluster, 1)
    apply(_RUN.__contains__)


def _scale_dns(cluster: Cluster, replicas: int) -> None:
    """Set the number of CoreDNS's pods, of which kubeadm makes two."""
    cluster.call("scale", "deployment", "coredns", "--namespace=kube-system", f"--replicas={replicas}")


def _has_services(cluster: Cluster) -> bool:
    status = cluster.get("daemonset", "kube-proxy", "kube-system")["status"]
    wanted, ready = (int(status.get(name, 0)) for name in ("desiredNumberScheduled", "numberReady"))
    return 0 < wanted == ready


def _wait(cluster: Cluster) -> None:
    """Wait until every part that a platform needs is ready: first all Deployments, which one cheap call reads."""
    try:
        _wait_until(lambda: all(map(needs.is_available, cluster.every("deployments"))))
    except ClusterError as error:
        raise FramestormError(
            f"the cluster is there, and has not answered for {READY_WITHIN_S:.0f} s: {error}; try again when the "
            "machine is less busy, or end it by: ./run.sh target down"
        ) from None
    for platform in needs.NEEDS:
        _wait_for(cluster, platform)


def _wait_for(cluster: Cluster, platform: str) -> None:
    missing: list[Check] = []

    def is_complete() -> bool:
        missing[:] = [check for check in needs.checks(cluster, platform) if not check.is_there]
        return not missing

    if not _wait_until(is_complete):
        pods = f"kubectl --kubeconfig {paths.shown(KUBECONFIG)} get pods --all-namespaces"
        why = f"{missing[0].what}: {missing[0].words}"
        raise FramestormError(f"the cluster is not ready after {READY_WITHIN_S:.0f} s: {why}; see `{pods}`")


def _wait_until(condition: Callable[[], bool]) -> bool:
    """Wait for a condition of a cluster that is starting, whose API server may be too busy to answer.

    Raises:
        ClusterError: at the end of the time, the API server still does not answer.
    """

    def holds() -> bool:
        try:
            return condition()
        except ClusterError:
            return False

    return wait_until(holds, READY_WITHIN_S, POLL_S) or condition()


def _end() -> None:
    if engine.is_running():
        # What is left of it ends with the engine.
        with contextlib.suppress(FramestormError):
            _delete()
    store.stop()
    engine.stop()
    KUBECONFIG.unlink(missing_ok=True)
    UNFINISHED.unlink(missing_ok=True)


def _delete() -> None:
    _kind("delete", "cluster", "--name", NAME, "--kubeconfig", str(KUBECONFIG))


def _kind(*words: str, stdin: str = "") -> None:
    log = HOME / "kind.log"
    done = subprocess.run(
        [KIND, *words], input=stdin, capture_output=True, text=True, env=engine.ENGINE.environment, check=False
    )
    log.write_text(done.stdout + done.stderr)
    if done.returncode:
        why = next((line for line in done.stderr.splitlines() if line.startswith("ERROR")), "it did not say why")
        raise FramestormError(f"kind {' '.join(words[:2])} failed: {why}; its whole output is in {paths.shown(log)}")


@contextlib.contextmanager
def _locked() -> Iterator[None]:
    """Keep another process of this checkout from changing the cluster at the same time; it waits."""
    HOME.mkdir(parents=True, exist_ok=True)
    with Path(HOME / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
