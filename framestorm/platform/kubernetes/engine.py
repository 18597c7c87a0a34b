"""The engine that a cluster's nodes run in: Debian's Docker in namespaces of its own, which nothing outlives.

Its network is joined to the machine's by a pair of interfaces; its mounts and processes are those of a namespace that
ends with it; its control groups are below one of its own.
"""

import contextlib
import os
import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path

from framestorm.errors import FramestormError
from framestorm.machine import execute, wait_until
from framestorm.platform.docker_engine import DockerEngine
from framestorm.platform.kubernetes import layout
from framestorm.platform.kubernetes.layout import HOME, INSTANCE, LINK
from framestorm.platform.openfaas import services
from framestorm.platform.openfaas.services import Program, StartedServices
from framestorm.probe import CGROUPS
from framestorm.setup import packages

PACKAGES = ("docker.io", "iptables", "iproute2", "mmdebstrap", "openssl")
DATA = HOME / "docker"
STATE = HOME / "engine.json"
RUNC_LESS = HOME / "runc-less"
# Sockets' paths may have at most 107 characters.
RUN = Path("/run") / INSTANCE
SOCKET = RUN / "docker.sock"
ENGINE = DockerEngine(SOCKET, HOME / "docker-config")
MODULES = Path("/lib/modules")
MADE_MODULES = HOME / "made-lib-modules"
NETWORK = "kind"
PEER = "machine"  # the cluster's end of the link
ENDS_WITHIN_S = 10.0
NODE_PORTS = "30000:32767"
# By number, as the kernel counts them from 0.
CAPABILITIES = (
    *("CHOWN", "DAC_OVERRIDE", "DAC_READ_SEARCH", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "SETPCAP"),
    *("LINUX_IMMUTABLE", "NET_BIND_SERVICE", "NET_BROADCAST", "NET_ADMIN", "NET_RAW", "IPC_LOCK", "IPC_OWNER"),
    *("SYS_MODULE", "SYS_RAWIO", "SYS_CHROOT", "SYS_PTRACE", "SYS_PACCT", "SYS_ADMIN", "SYS_BOOT", "SYS_NICE"),
    *("SYS_RESOURCE", "SYS_TIME", "SYS_TTY_CONFIG", "MKNOD", "LEASE", "AUDIT_WRITE", "AUDIT_CONTROL", "SETFCAP"),
    *("MAC_OVERRIDE", "MAC_ADMIN", "SYSLOG", "WAKE_ALARM", "BLOCK_SUSPEND", "AUDIT_READ", "PERFMON", "BPF"),
    "CHECKPOINT_RESTORE",
)


def is_running() -> bool:
    """Return whether the engine that this checkout started is there, and answers."""
    return SOCKET.exists() and ENGINE.succeeds("info")


def start() -> None:
    """Start the engine, unless it runs, and join its network to the machine's.

    Raises:
        FramestormError: this user may not, another checkout has a cluster, or the engine does not start.
    """
    if is_running():
        return
    if os.geteuid() != 0:
        raise FramestormError("a cluster on this machine needs root: run it by sudo")
    packages.install(PACKAGES)
    stop()
    _refuse_taken_addresses()
    RUN.mkdir(mode=0o700)
    if not MODULES.exists():
        MADE_MODULES.touch()  # kind has it mounted in its nodes, and Docker makes it for that
    options: list[str | Path] = [
        *("--data-root", DATA, "--exec-root", RUN / "exec", "--pidfile", RUN / "docker.pid"),
        *("--host", f"unix://{SOCKET}", "--log-level", "warn", "--exec-opt", "native.cgroupdriver=cgroupfs"),
        *("--cgroup-parent", f"/{INSTANCE}", "--bip", layout.ENGINE_BRIDGE),
        f"--default-address-pool=base={layout.ENGINE_POOL},size=26",
        *_runtime(),
    ]
    daemon = shlex.join(str(word) for word in ("dockerd", *options))
    namespaces = ("unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
    command = [*namespaces, "sh", "-c", f"ip link set lo up && exec {daemon}"]
    services.start(Program("kind-engine", command, is_running), StartedServices("kind"), STATE)
    try:
        _join_networks()
    except BaseException:
        stop()
        raise


def stop() -> None:
    """End the engine with everything that it runs, and remove what it left on the machine."""
    if (started := services.read(STATE)) is not None:
        # The namespace's first process ends with this one, and with that all others.
        services.end(started.services.values(), grace_s=0)
        STATE.unlink()
    if _owner() == str(HOME):
        try:
            execute("ip", "link", "delete", LINK)
        except FramestormError:
            if _owner() == str(HOME):  # it did not go with the engine's network namespace meanwhile
                raise
    shutil.rmtree(RUN, ignore_errors=True)
    if MADE_MODULES.exists():
        with contextlib.suppress(OSError):
            MODULES.rmdir()
        MADE_MODULES.unlink()
    if not wait_until(_remove_cgroups, ENDS_WITHIN_S):
        raise FramestormError(f"control groups {INSTANCE} below {CGROUPS} still have processes")


def _owner() -> str | None:
    """Return whose cluster this machine has; the kernel keeps it as the link's alias."""
    with contextlib.suppress(OSError):  # there is no link
        return Path("/sys/class/net", LINK, "ifalias").read_text().strip()
    return None


def _refuse_taken_addresses() -> None:
    if (owner := _owner()) is not None:
        raise FramestormError(f"{Path(owner).parent.parent} has a cluster on this machine; end it by target down there")


def _join_networks() -> None:
    """Join the engine's network to the machine's: the nodes' ports, the pods and the services are reached from here."""
    inside = _inside()
    execute("ip", "link", "add", LINK, "type", "veth", "peer", "name", PEER, "netns", str(_process()))
    execute("ip", "link", "set", LINK, "alias", str(HOME))
    execute("ip", "address", "add", f"{layout.MACHINE_END}/{layout.LINK_PREFIX}", "dev", LINK)
    execute(*inside, "ip", "address", "add", f"{layout.CLUSTER_END}/{layout.LINK_PREFIX}", "dev", PEER)
    execute(*inside, "ip", "link", "set", PEER, "up")
    execute("ip", "link", "set", LINK, "up")
    if not ENGINE.succeeds("network", "inspect", NETWORK):
        # Before kind does, which would add IPv6.
        ENGINE.run("network", "create", "--subnet", layout.NODES, NETWORK)
    for network in (layout.NODES, layout.PODS, layout.SERVICES):
        execute("ip", "route", "replace", network, "via", layout.CLUSTER_END)
    # Docker lets nothing through to its networks but what is published.
    execute(*inside, "iptables", "--insert", "DOCKER-USER", "--in-interface", PEER, "--jump", "ACCEPT")


def network() -> str:
    """Return the file of the engine's network namespace."""
    return f"/proc/{_process()}/ns/net"


def _process() -> int:
    """Return the process that has the engine's namespaces."""
    started = services.read(STATE)
    if started is None:
        raise FramestormError("the cluster's engine was not started; run ./run.sh target kind --from-source")
    (service,) = started.services.values()
    return service.pid


def _inside() -> tuple[str, str]:
    """Return the words that run a command in the engine's network."""
    return ("nsenter", f"--net={network()}")


def lead_to(node: str) -> None:
    """Lead the NodePorts of the cluster's address, the pods and the services to a node."""
    inside = _inside()
    for network in (layout.PODS, layout.SERVICES):
        execute(*inside, "ip", "route", "replace", network, "via", node)
    rule = ("PREROUTING", "--destination", layout.ADDRESS, "--protocol", "tcp", "--dport", NODE_PORTS)
    execute(*inside, "iptables", "--table", "nat", "--append", *rule, "--jump", "DNAT", "--to-destination", node)


def lead_to_pods(node: str, pods: str) -> None:
    """Route traffic for a node's pods through that node: another one would see half of each connection, and drop it."""
    execute(*_inside(), "ip", "route", "replace", pods, "via", node)


def _runtime() -> Sequence[str]:
    """Return options for a runtime without the capabilities that this machine itself has not; none if it has all.

    A privileged container asks for all, and would not start.
    """
    lacking = _lacking_capabilities()
    if not lacking:
        return ()
    names = "|".join(f"CAP_{name}" for name in lacking)
    script = f"""#!/bin/sh
# runc without capabilities that this machine has not, for which a privileged container would ask in vain.
last=
for word in "$@"; do
    case $last in
    --bundle | -b) file=$word/config.json ;;
    --process | -p) file=$word ;;
    esac
    last=$word
done
[ -z "$file" ] || [ ! -f "$file" ] || sed -E -i 's/"({names})",//g; s/,"({names})"//g' "$file"
exec {shutil.which("runc") or "/usr/sbin/runc"} "$@"
"""
    RUNC_LESS.write_text(script)
    RUNC_LESS.chmod(0o755)
    return (f"--add-runtime=less={RUNC_LESS}", "--default-runtime=less")


def _lacking_capabilities() -> list[str]:
    """Return the capabilities that no process of this machine can have."""
    status = Path("/proc/self/status").read_text()
    bounding = int(next(line.split()[1] for line in status.splitlines() if line.startswith("CapBnd:")), 16)
    return [name for number, name in enumerate(CAPABILITIES) if not bounding >> number & 1]


def _remove_cgroups() -> bool:
    """Remove the engine's control groups; returns whether none is left."""
    for group in {*CGROUPS.glob(INSTANCE), *CGROUPS.glob(f"*/{INSTANCE}")}:
        for below, _, _ in os.walk(group, topdown=False):
            with contextlib.suppress(OSError):
                Path(below).rmdir()
    return not [*CGROUPS.glob(INSTANCE), *CGROUPS.glob(f"*/{INSTANCE}")]
