"""The node of a cluster: an image for kind, of Debian's packages, kind's own files, and the programs built here."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

from framestorm.errors import FramestormError
from framestorm.machine import wait_until
from framestorm.platform import images
from framestorm.platform.images import Image
from framestorm.platform.kubernetes import layout, parts
from framestorm.platform.kubernetes.engine import ENGINE
from framestorm.platform.kubernetes.layout import BIN, HOME, KUBE, SOURCE
from framestorm.platform.openfaas import docker
from framestorm.platform.openfaas import parts as openfaas
from framestorm.platform.openfaas.layout import BIN as FUNCTIONS_BIN
from framestorm.platform.openfaas.layout import FUNCTIONS
from framestorm.platform.openfaas.platform import stack_functions
from framestorm.setup import archives, golang
from framestorm.setup.log import call
from framestorm.setup.pieces import Piece

FILES = SOURCE / "node"
NODE = HOME / "node"
ROOT = NODE / "root.tar"
PAUSE = NODE / "catatonit"
PROXY_LAYER = NODE / "proxy.tar"
ARCHIVE = NODE / "images.tar"
PACKAGES = (
    *("systemd", "systemd-sysv", "containerd", "runc", "containernetworking-plugins", "iptables", "conntrack"),
    *("iproute2", "ethtool", "util-linux", "mount", "kmod", "procps", "hostname", "bash", "jq", "ca-certificates"),
    *("curl", "catatonit"),
)
PLUGINS = ("host-local", "loopback", "ptp", "portmap", "bridge")
# What a container has no use for, or what a machine alone may do.
_WANTED_BY_NOBODY = (
    "lib/systemd/system/sysinit.target.wants/systemd-tmpfiles-setup.service",
    "lib/systemd/system/multi-user.target.wants/*",
    "etc/systemd/system/*.wants/*",
    "lib/systemd/system/local-fs.target.wants/*",
    "lib/systemd/system/sockets.target.wants/*udev*",
    "lib/systemd/system/sockets.target.wants/*initctl*",
    "lib/systemd/system/basic.target.wants/*",
)
_NEEDED_BY_NOBODY = ("var/lib/apt/lists/*", "var/cache/apt/*", "usr/share/doc", "usr/share/man", "usr/share/locale")
UNITS = ("kubelet", "containerd", "undo-mount-hacks", "pod-network")
REGISTRY = "registry.k8s.io"
REPOSITORY = "framestorm/node"
LOCAL = "dev.local"  # Knative asks no registry about images of this name
# The host of names without one.
DOCKER_HUB = "docker.io"
TAG = "1"
BEGIN = ("/kind/bin/private-sysctls.sh", "/usr/local/bin/entrypoint", "/sbin/init")
STARTS_WITHIN_S = 30
# For programs that hold every object and schema: a smaller heap for some more CPU time.
SPARING = ("GOGC=50",)
GO_FUNCTIONS = ("noop", "sleep", "cpu")


def _make_root(piece: Piece) -> None:
    """Unpack the system of a node and make it what kind expects; its programs for images are taken from it."""
    root = NODE / "root"
    shutil.rmtree(NODE, ignore_errors=True)
    NODE.mkdir(parents=True)
    archives.unpack(root, PACKAGES, archives.of_this_machine())
    _customise(root)
    shutil.copy2(root / "usr/bin/catatonit", PAUSE)
    _write_proxy_layer(root)
    call(["tar", "-C", root, "-cf", f"{piece.output}.new", "."])
    Path(f"{piece.output}.new").rename(piece.output)
    shutil.rmtree(root)


def _customise(root: Path) -> None:
    kind = golang.folder(FUNCTIONS / "kind", "sigs.k8s.io/kind") / "images/base/files"
    # The module cache may be read-only.
    call(["cp", "-r", "--no-preserve=mode,ownership", f"{kind}/.", root])
    for script in FILES.glob("*.sh"):
        shutil.copy(script, root / "kind/bin")
    for program in (*root.glob("kind/bin/*"), root / "usr/local/bin/entrypoint"):
        program.chmod(0o755)
    for unit in FILES.glob("*.service"):
        shutil.copy(unit, root / "etc/systemd/system")
    shutil.copy(FILES / "containerd.toml", root / "etc/containerd/config.toml")
    registry = root / "etc/containerd/certs.d" / layout.REGISTRY
    registry.mkdir(parents=True)
    (registry / "hosts.toml").write_text(f'[host."http://{layout.REGISTRY_FOR_NODES}"]\n')
    for folder in ("kind/manifests", "etc/kubernetes/manifests", "opt/cni/bin"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    for manifest in FILES.glob("default-*.yaml"):
        shutil.copy(manifest, root / "kind/manifests")
    links = {f"usr/local/bin/{name}": f"/usr/bin/{name}" for name in ("containerd", "ctr")}
    links |= {f"opt/cni/bin/{name}": f"/usr/lib/cni/{name}" for name in PLUGINS}
    links |= {f"usr/bin/{name}": "kube" for name in ("kubeadm", "kubelet", "kubectl")}
    for link, target in links.items():
        (root / link).symlink_to(target)
    (root / "kind/version").write_text(parts.VERSION)
    for pattern in _WANTED_BY_NOBODY:
        for path in root.glob(pattern):
            path.unlink()
    with (root / "etc/systemd/journald.conf").open("a") as journal:
        journal.write("ReadKMsg=no\n")
    call(["systemctl", f"--root={root}", "enable", *(f"{unit}.service" for unit in UNITS)])
    call(["systemctl", f"--root={root}", "mask", "systemd-binfmt.service"])
    _write_container_defaults(root)
    for pattern in _NEEDED_BY_NOBODY:
        for path in root.glob(pattern):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def _write_container_defaults(root: Path) -> None:
    """Write what each container begins with: containerd's own, with kind's hook, without limits of resources."""
    text = subprocess.run(["chroot", root, "ctr", "oci", "spec"], capture_output=True, check=True).stdout
    spec = json.loads(text)
    spec.setdefault("hooks", {}).setdefault("createContainer", []).append({"path": "/kind/bin/mount-product-files.sh"})
    spec["process"].pop("rlimits", None)
    (root / "etc/containerd/cri-base.json").write_text(json.dumps(spec))


def _write_proxy_layer(root: Path) -> None:
    """Write the layer with what kube-proxy calls: iptables and conntrack, with their libraries."""
    programs = ["usr/sbin/xtables-nft-multi", "usr/sbin/conntrack"]
    programs += [str(path.relative_to(root)) for path in root.glob("usr/lib/*/xtables/*.so")]
    lines = subprocess.run(
        ["chroot", root, "ldd", *(f"/{program}" for program in programs)], capture_output=True, text=True, check=False
    ).stdout
    libraries = {name.lstrip("/") for name in re.findall(r"(?:=> |^\s+)(/\S+) \(", lines, re.MULTILINE)}
    with tarfile.open(PROXY_LAYER, "w", dereference=True) as tar:
        for path in (*programs, *sorted(libraries)):
            tar.add((root / path).resolve(), path)
        for family in ("iptables", "ip6tables"):
            for suffix in ("", "-save", "-restore"):
                link = tarfile.TarInfo(f"usr/sbin/{family}{suffix}")
                link.type, link.linkname, link.mode = tarfile.SYMTYPE, "xtables-nft-multi", 0o777
                tar.addfile(link)
        folder = tarfile.TarInfo("run")
        folder.type, folder.mode = tarfile.DIRTYPE, 0o755
        tar.addfile(folder)


ROOT_PIECE = Piece(
    "kubernetes-node",
    "system of a cluster's node",
    (*sorted(FILES.iterdir()), Path(__file__)),
    ROOT,
    _make_root,
    (openfaas.KIND,),
)


def local(name: str) -> str:
    """Return the name of an image that was made here and lies on the node."""
    return f"{LOCAL}/{name}:{TAG}"


def catalogue() -> Iterator[Image]:
    """Return every image that the node has from the start: those of Kubernetes, of what runs functions, and these."""
    version = parts.VERSION
    names = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "etcd")
    links = {f"/usr/local/bin/{name}": "kube" for name in names}
    programs = {"/usr/local/bin/kube": KUBE}
    tags = (*(f"{REGISTRY}/{name}:{version}" for name in names[:3]), f"{REGISTRY}/etcd:3.5.15-0")
    yield Image(tags, programs, links=links, environment=SPARING, user="")
    proxy = (f"{REGISTRY}/kube-proxy:{version}",)
    yield Image(proxy, programs, links=links, below=(PROXY_LAYER,), user="")
    coredns = (f"{REGISTRY}/coredns/coredns:v1.11.1",)
    yield Image(coredns, {"/coredns": BIN / "coredns"}, ("/coredns",), user="")
    yield Image((f"{REGISTRY}/pause:3.10",), {"/catatonit": PAUSE}, ("/catatonit", "-P"))
    own = [*(f"knative-{name}" for name in parts.KNATIVE), "knative-ingress", "metrics-server"]
    for name in (*own, "openfaas-provider", "gateway"):
        yield Image((local(name),), {f"/{name}": BIN / name}, (f"/{name}",))
    # Where its own manifest calls it.
    yield Image((local("kserve-manager"),), {"/manager": BIN / "kserve-manager"}, ("/manager",))
    for name in GO_FUNCTIONS:
        # Also as function/stack.yml has it, so that a study needs no target.image.
        tag = stack_functions()[name]["image"].rpartition(":")[2]
        yield Image(
            (local(name), f"{DOCKER_HUB}/{docker.PREFIX}/{name}:{tag}"),
            {f"/{name}": FUNCTIONS_BIN / name},
            (f"/{name}", "serve"),
        )


def ensure_image() -> str:
    """Return the name of the node's image; made, by the engine that has to be up, if what is in it has changed."""
    contents = list(catalogue())
    sources = {path for image in contents for path in (*image.files.values(), *image.below)} | {ROOT, Path(__file__)}
    recipe = hashlib.sha256()
    for path in sorted(sources):
        with path.open("rb") as content:
            recipe.update(hashlib.file_digest(content, "sha256").digest())
    name = f"{REPOSITORY}:{recipe.hexdigest()[:12]}"
    if not ENGINE.succeeds("image", "inspect", name):
        _make_image(name, contents)
        of_node = ENGINE.run("image", "ls", "--format", "{{.Repository}}:{{.Tag}}", REPOSITORY).split()
        for former in {*of_node} - {name}:
            ENGINE.succeeds("image", "rm", former)
    return name


def _make_image(name: str, contents: list[Image]) -> None:
    """Put the programs and their images into the system of a node, as `kind build node-image` does."""
    system, builder = f"{REPOSITORY}-system:{os.getpid()}", "framestorm-node"
    images.write(contents, ARCHIVE)
    ENGINE.succeeds("rm", "--force", "--volumes", builder)
    try:
        ENGINE.run("import", str(ROOT), system)
        ENGINE.run("run", "--detach", "--name", builder, "--privileged", "--tmpfs", "/run", system, "sleep", "infinity")
        ENGINE.run("cp", str(KUBE), f"{builder}:/usr/bin/kube")
        ENGINE.run("exec", "--detach", builder, "containerd")
        ready = ("exec", builder, "ctr", "version")
        if not wait_until(lambda: ENGINE.succeeds(*ready), STARTS_WITHIN_S):
            raise FramestormError(f"containerd in the node's image did not answer within {STARTS_WITHIN_S} s")
        store = ("ctr", "--namespace", "k8s.io", "images", "import", "--all-platforms", "--no-unpack", "-")
        with ARCHIVE.open("rb") as archive:
            ENGINE.run("exec", "--interactive", builder, *store, stdin=archive)
        ENGINE.run("exec", builder, "pkill", "containerd")
        ENGINE.succeeds("exec", builder, "timeout", "10", "pidwait", "containerd")
        changes = (f"ENTRYPOINT {json.dumps(BEGIN)}", "ENV container=docker")
        ENGINE.run("commit", *(f"--change={change}" for change in changes), builder, name)
    finally:
        ENGINE.succeeds("rm", "--force", "--volumes", builder)
        ENGINE.succeeds("image", "rm", system)
        ARCHIVE.unlink(missing_ok=True)
