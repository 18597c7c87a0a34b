"""A Docker Swarm of the lab: hosts in user-mode Linux, because the routing mesh needs a kernel with IP_VS.

User-mode Linux is a program of Debian's, with a kernel of its own. Its network has spikes of about 200 ms: medians of
what it serves are of use, and tails are not.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from framestorm.machine import execute, wait_until
from framestorm.model.files import remove_folder
from framestorm.platform import images
from framestorm.platform.openfaas import parts
from framestorm.platform.openfaas.platform import stack_image
from framestorm.setup import archives, pieces
from lab import groups, network
from lab.hosts import BRIDGE_ADDRESS, HOME, LabError

USUAL, MOST = 3, 5
MEMORY = "1200M"
DISK = "4G"
PORT = 2375
KERNEL = "user-mode-linux"
TOOLS = ("docker.io", "e2fsprogs", "mmdebstrap", "iproute2")
SYSTEM = ("docker.io", "iproute2", "iptables", "kmod", "ca-certificates", "mount", "procps")
INIT = Path(__file__).with_name("swarm.sh")
# Where a host's memory is, as a file.
MEMORY_FOLDER = Path("/dev/shm")  # noqa: S108
CPU = Path("/proc/cpuinfo")
BOOT_S = 180.0
FOLDER = HOME / "swarm"
ARCHIVE = FOLDER / "functions.tar"
FUNCTIONS = tuple(parts.GO_FUNCTIONS)


@dataclass(frozen=True)
class Node:
    """A host of the swarm, by its number from 1; the first is the manager."""

    number: int

    @property
    def name(self) -> str:
        return f"swarm{self.number}"

    @property
    def address(self) -> str:
        return f"198.18.0.{220 + self.number}"

    @property
    def engine(self) -> str:
        """Its engine's address, as DOCKER_HOST."""
        return f"tcp://{self.address}:{PORT}"

    def docker(self, *words: str) -> str:
        """Call docker for its engine."""
        return execute("docker", "--host", self.engine, *words)

    def membership(self) -> tuple[str, str]:
        """Return how its engine stands to a swarm (inactive, pending, active, …), and the id that it has there."""
        shown = self.docker("info", "--format", "{{.Swarm.LocalNodeState}} {{.Swarm.NodeID}}")
        state, _, identity = shown.strip().partition(" ")
        return state, identity

    def answers(self) -> bool:
        command = ["docker", "--host", self.engine, "info"]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0


def up(count: int) -> list[Node]:
    """Start a swarm of so many hosts, in the lab's network, each with the images of the functions in Go.

    Raises:
        LabError: a host does not start, or its engine does not answer.
    """
    nodes = [Node(number) for number in range(1, count + 1)]
    disk = _ensure_disk()
    for node in nodes:
        _start(node, disk)
    _make_images()
    for node in nodes:
        _wait_for(node)
        node.docker("load", "--quiet", "--input", str(ARCHIVE))
    _unite(*nodes)
    return nodes


def existing() -> list[Node]:
    """Return the hosts of the swarm that run."""
    return [node for node in map(Node, range(1, MOST + 1)) if groups.processes(node.name)]


def _unite(manager: Node, *others: Node) -> None:
    """Make one swarm of the hosts.

    A host that was started again has a new disk: it knows of no swarm, and the others still know the host that it was.
    """
    if manager.membership()[0] != "active":
        pool = ("--default-addr-pool", "198.18.216.0/21", "--default-addr-pool-mask-length", "24")
        manager.docker("swarm", "init", "--advertise-addr", manager.address, *pool)
    token = manager.docker("swarm", "join-token", "--quiet", "worker").strip()
    listed = manager.docker("node", "ls", "--format", "{{.ID}} {{.Hostname}}").splitlines()
    names = {identity: name for identity, _, name in (line.partition(" ") for line in listed)}
    for node in others:
        state, own_id = node.membership()
        if state == "active" and own_id in names:
            continue
        if state != "inactive":
            node.docker("swarm", "leave", "--force")
        for former_id in [identity for identity, name in names.items() if name == node.name]:
            manager.docker("node", "rm", "--force", former_id)
        node.docker("swarm", "join", "--token", token, manager.address)


def _make_images() -> None:
    """Write the images of noop, sleep and cpu, by their names in function/stack.yml, into an archive."""
    pieces.ensure(parts.programs(*FUNCTIONS))
    contents = [
        images.Image((stack_image(name),), {f"/{name}": parts.binary(name)}, (f"/{name}", "serve"))
        for name in FUNCTIONS
    ]
    images.write(contents, ARCHIVE)


def _start(node: Node, disk: Path) -> None:
    if groups.processes(node.name):
        return
    folder = FOLDER / node.name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    tap = f"tap-{node.name}"
    if f"{tap}:" not in execute(*network.inside(["ip", "-oneline", "link", "show"])):
        execute(*network.inside(["ip", "tuntap", "add", tap, "mode", "tap"]))
    execute(*network.inside(["ip", "link", "set", tap, "master", "br0", "up"]))
    command = [
        *("env", f"TMPDIR={MEMORY_FOLDER}", str(disk.parent / "usr/bin/linux.uml"), f"mem={MEMORY}"),
        *(f"ubd0={folder}/disk.cow,{disk}", "root=/dev/ubda", "rw", f"init=/{INIT.name}", f"umid={node.name}"),
        *(f"uml_dir={folder}/", f"vec0:transport=tap,ifname={tap},depth=128,gro=0", "con=null", "con0=null,fd:1"),
        *(f"NAME={node.name}", f"ADDRESS={node.address}", f"GATEWAY={BRIDGE_ADDRESS}"),
    ]
    groups.start(node.name, network.inside(command), _console(node))


def _wait_for(node: Node) -> None:
    if wait_until(lambda: node.answers() or not groups.processes(node.name), BOOT_S, 0.5) and node.answers():
        return
    what = f"Docker on {node.name} did not answer within {BOOT_S:.0f} s"
    if not groups.processes(node.name):
        panic = re.search(r"Kernel panic.*", _console(node).read_text(errors="replace"))
        what = f"the kernel of {node.name} ended ({panic[0]})" if panic else f"{node.name} ended"
        if "amx_tile" in CPU.read_text():
            what += "; this processor has AMX, with which user-mode Linux starts no program: use a machine without it"
    raise LabError(f"{what}; see {_console(node)}")


def _console(node: Node) -> Path:
    return FOLDER / f"{node.name}.log"


def _ensure_disk() -> Path:
    """Return the disk that the hosts start from, made unless it is there: Debian, Docker, the kernel's modules."""
    sources = archives.of_this_machine()
    recipe = "".join((*SYSTEM, INIT.read_text(), DISK, *(each.line for each in sources)))
    home = HOME / f"uml-{hashlib.sha256(recipe.encode()).hexdigest()[:12]}"
    disk = home / "disk"
    if disk.exists():
        return disk
    for former in HOME.glob("uml-*"):
        remove_folder(former)
    home.mkdir(parents=True)
    with tempfile.TemporaryDirectory(dir=home) as scratch:
        execute("env", "-C", scratch, "apt-get", "download", "-o", "APT::Sandbox::User=root", KERNEL)
        (package,) = Path(scratch).glob("*.deb")
        execute("dpkg-deb", "--extract", str(package), str(home))
        root = Path(scratch) / "root"
        archives.unpack(root, SYSTEM, sources)
        execute("cp", "-a", f"{home}/usr/lib/uml/modules", f"{root}/lib/")
        for release in (root / "lib/modules").iterdir():
            execute("depmod", "--basedir", str(root), release.name)
        execute("chroot", str(root), "update-alternatives", "--set", "iptables", "/usr/sbin/iptables-legacy")
        shutil.copyfile(INIT, root / INIT.name)
        (root / INIT.name).chmod(0o755)
        unfinished = Path(scratch) / "disk"
        execute("truncate", "--size", DISK, str(unfinished))
        execute("mke2fs", "-q", "-t", "ext4", "-d", str(root), str(unfinished))
        unfinished.rename(disk)
    return disk
