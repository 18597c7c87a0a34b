"""The lab's network: a namespace with a bridge, this machine's own end in it, and the way to Debian's packages.

Hosts have no route out of the bridge. The controlling machine has an address there, so ssh, Ansible and JMeter's RMI
(with its connections back from the slaves) work as with any other hosts. A proxy on that address passes on requests to
the package archives that this machine itself uses (if asked, to its registries of Python and Maven packages too),
and to nothing else.
"""

from __future__ import annotations

import json
import re
import socket
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import getproxies

from framestorm import paths
from framestorm.machine import execute, wait_until
from lab import groups
from lab.hosts import BRIDGE_ADDRESS, CONTROLLER_ADDRESS, HOME, NETWORK, LabError

LINK = "fs-lab"  # the controlling machine's end
PROXY_PORT = 3128
NAMESPACE_WITHIN_S = 5
DEVICE_WITHIN_S = 5
KEEPER, PROXY = "network", "proxy"
ALLOWED = HOME / "proxy-allowed"  # where it leads to
SETTINGS = HOME / "proxy.conf"  # which may have the password of a proxy above it


def owner() -> Path | None:
    """Return the checkout whose lab is up on this machine; it is stored in the kernel, as the link's alias."""
    for link in json.loads(execute("ip", "-json", "link", "show")):
        if link["ifname"] == LINK:
            return Path(link.get("ifalias", "?"))
    return None


def keeper() -> int | None:
    """Return the process that holds the network namespace open."""
    return next((pid for pid in groups.processes(KEEPER)), None)


def inside(command: list[str]) -> list[str]:
    """Return a command line that runs `command` in the lab's network."""
    pid = keeper()
    if pid is None:
        raise LabError("the lab is not up; run `./run.sh lab up`")
    return ["nsenter", f"--net=/proc/{pid}/ns/net", *command]


def ready() -> bool:
    return keeper() is not None and owner() == paths.ROOT


def up() -> None:
    """Make the namespace, the bridge and this machine's end."""
    _refuse_taken_addresses()
    groups.start(KEEPER, ["unshare", "--net", "sleep", "infinity"], HOME / "network.log")
    pid = _wait_for_namespace()
    execute(*inside(["ip", "link", "add", "br0", "type", "bridge", "stp_state", "0", "forward_delay", "0"]))
    execute(*inside(["ip", "address", "add", f"{BRIDGE_ADDRESS}/24", "dev", "br0"]))
    execute("ip", "link", "add", LINK, "type", "veth", "peer", "name", "controller", "netns", str(pid))
    execute("ip", "link", "set", LINK, "alias", str(paths.ROOT))
    execute(*inside(["ip", "link", "set", "controller", "master", "br0", "up"]))
    for device in ("br0", "lo"):
        execute(*inside(["ip", "link", "set", device, "up"]))
    execute("ip", "address", "add", f"{CONTROLLER_ADDRESS}/24", "dev", LINK)
    execute("ip", "link", "set", LINK, "up")


def down() -> None:
    """Remove what would outlive the namespace's processes; the rest ends with them."""
    groups.end(PROXY)
    for path in (ALLOWED, SETTINGS):
        path.unlink(missing_ok=True)
    if owner() is not None:
        execute("ip", "link", "delete", LINK)
    groups.end(KEEPER)


def _refuse_taken_addresses() -> None:
    for link in json.loads(execute("ip", "-json", "address", "show")):
        for address in link["addr_info"]:
            if str(address.get("local", "")).startswith(NETWORK.removesuffix("0/24")):
                raise LabError(f"{link['ifname']} has {address['local']} already: the lab needs {NETWORK} for itself")


def _wait_for_namespace() -> int:
    our_namespace = Path("/proc/self/ns/net").readlink()
    deadline = time.monotonic() + NAMESPACE_WITHIN_S
    while time.monotonic() < deadline:
        pid = keeper()
        if pid is not None and Path(f"/proc/{pid}/ns/net").readlink() != our_namespace and _command(pid) == "sleep":
            return pid
        time.sleep(0.01)
    raise LabError(f"no network namespace within {NAMESPACE_WITHIN_S} s; see {HOME / 'network.log'}")


def _command(pid: int) -> str:
    return Path(f"/proc/{pid}/comm").read_text().strip()


def set_link(name: str, connected: bool) -> None:
    """Plug a host's cable in or pull it out."""
    execute(*inside(["ip", "link", "set", f"vb-{name}", "up" if connected else "down"]))


def limit_rate(name: str, rate: str | None) -> None:
    """Let a host receive no faster than `rate`, such as `20mbit`; without it, as fast as ever."""
    shape = ["tc", "qdisc", "replace" if rate else "delete", "dev", f"vb-{name}", "root"]
    execute(*inside([*shape, *(["tbf", "rate", rate, "burst", "64k", "latency", "200ms"] if rate else [])]))


def move_away(name: str, delay_ms: float, loss: float) -> None:
    """Put a long way between a host and all others; `delay_ms` and the share `loss` of frames are each way's."""
    near, far, bridge = f"near-{name}", f"far-{name}", f"br-{name}"
    program = [sys.executable, "-P", str(paths.ROOT / "lab/distance.py"), near, far]
    groups.start(near, inside([*program, "--delay-ms", str(delay_ms), "--loss", str(loss)]), HOME / "distance.log")
    if not wait_until(lambda: far in execute(*inside(["ip", "-brief", "link"])), DEVICE_WITHIN_S):
        raise LabError(f"no network device {far} within {DEVICE_WITHIN_S} s; see {HOME / 'distance.log'}")
    execute(*inside(["ip", "link", "add", bridge, "type", "bridge", "stp_state", "0", "forward_delay", "0"]))
    for device, master in ((near, "br0"), (far, bridge), (f"vb-{name}", bridge)):
        execute(*inside(["ip", "link", "set", device, "master", master, "up"]))
    execute(*inside(["ip", "link", "set", bridge, "up"]))


def move_back(name: str) -> None:
    """Take that back."""
    execute(*inside(["ip", "link", "set", f"vb-{name}", "master", "br0"]))
    execute(*inside(["ip", "link", "delete", f"br-{name}"]))
    groups.end(f"near-{name}")


def proxy_up(urls: list[str]) -> None:
    """Start the proxy to the hosts of these URLs, and to those that it leads to already, and to no others."""
    wanted = {f"^{re.escape(urlsplit(url).hostname or '')}$" for url in urls}
    # 443 in any case: with no port named, tinyproxy would connect to all.
    numbers = {443, *(urlsplit(url).port or 443 for url in urls if url.startswith("https:"))}
    ports = {f"ConnectPort {number}" for number in numbers}
    before = {line for path in (ALLOWED, SETTINGS) if path.is_file() for line in path.read_text().splitlines()}
    if _answers() and wanted | ports <= before:
        return
    # Hosts of the lab that were made with more may be fetching from there.
    ports |= {line for line in before if line.startswith("ConnectPort ")}
    wanted |= {line for line in before if line.startswith("^")}
    groups.end(PROXY)
    ALLOWED.write_text("".join(f"{each}\n" for each in sorted(wanted)))
    upstream = urlsplit(_apt_setting("Acquire::http::Proxy") or getproxies().get("http", ""))
    SETTINGS.touch(mode=0o600)
    SETTINGS.write_text(
        f"""Listen {CONTROLLER_ADDRESS}
Port {PROXY_PORT}
Allow {NETWORK}
MaxClients 100
Timeout 120
Filter "{ALLOWED}"
FilterExtended On
FilterDefaultDeny Yes
DisableViaHeader Yes
LogLevel Warning
"""
        + "".join(f"{each}\n" for each in sorted(ports))
        + (f"Upstream http {upstream.netloc}\n" if upstream.netloc else "")
    )
    groups.start(PROXY, ["tinyproxy", "-d", "-c", str(SETTINGS)], HOME / "proxy.log")
    deadline = time.monotonic() + 5
    while not _answers():
        if time.monotonic() > deadline:
            raise LabError(
                f"the proxy for packages does not answer on {CONTROLLER_ADDRESS}:{PROXY_PORT}; see {HOME / 'proxy.log'}"
            )
        time.sleep(0.02)


def _answers() -> bool:
    try:
        with socket.create_connection((CONTROLLER_ADDRESS, PROXY_PORT), timeout=1):
            return True
    except OSError:
        return False


def _apt_setting(name: str) -> str:
    return execute("apt-config", "dump", "--format", "%v%n", name).strip()
