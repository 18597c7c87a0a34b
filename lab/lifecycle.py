"""Starts the lab, shows its state, ends it."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from framestorm import paths
from framestorm.model.files import remove_folder
from framestorm.setup import archives, packages
from lab import base, groups, keys, network, registries, swarm
from lab.hosts import HOME, LabError, LabHost, existing, planned

BOOT_S = 60  # how long a host may take to answer; 3 s are usual


@dataclass(frozen=True)
class HostStatus:
    """The state of a host: as systemd names it (running, degraded, starting), or stopped, or unreachable."""

    host: LabHost
    state: str
    ssh: bool


@contextmanager
def _exclusive() -> Iterator[None]:
    """One `up` or `down` at a time, as root, for this checkout's lab."""
    if os.geteuid() != 0:
        raise LabError("the lab makes network namespaces and mounts, which needs root; run it as root or by sudo")
    # The accounts of a host read most of what is made here, whatever the umask of root is.
    former = os.umask(0o022)
    try:
        HOME.mkdir(parents=True, exist_ok=True)
        with (HOME / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
    finally:
        os.umask(former)


def _refuse_another() -> None:
    owner = network.owner()
    if owner not in (None, paths.ROOT):
        advice = "run `lab down` there first"
        if not owner.exists():
            advice = "that checkout is gone: clone it to the same path again for `lab down`, or restart the machine"
        raise LabError(f"the lab of {owner} is up on this machine, and only one can be up at a time; {advice}")


def prepare() -> None:
    """Install the lab's tools and make the base of its hosts, so that `up` takes seconds."""
    with _exclusive():
        packages.install(base.TOOLS)
        base.ensure(archives.of_this_machine())


def up(slaves: int, outsider: bool = False, with_registries: bool = False) -> list[HostStatus]:
    """Start the hosts of a lab with `slaves` slaves that are not running, and wait until every host answers.

    Existing hosts keep running and keep their disks; hosts that a crash left incomplete are made again.
    `with_registries`: hosts that are made reach this machine's registries of Python and Maven packages too.
    """
    wanted = planned(slaves, outsider)
    paths.check_plain("the lab")
    with _exclusive():
        packages.install(base.TOOLS)
        _refuse_another()
        if not network.ready():
            _stop()
            network.up()
        sources = archives.of_this_machine()
        system = base.ensure(sources)
        network.proxy_up([*(archive.url for archive in sources), *(registries.urls() if with_registries else [])])
        keys.ensure()
        for host in wanted:
            _start(host, system, with_registries)
        base.prune({system, *((host.folder / "base").resolve() for host in existing())})
        states = [_wait(host, system) for host in wanted]
    return states


def swarm_up(count: int) -> list[swarm.Node]:
    """Start a swarm of so many hosts in the lab's network, with the images of the functions in Go on each."""
    paths.check_plain("the lab")
    with _exclusive():
        packages.install(swarm.TOOLS)
        _refuse_another()
        if not network.ready():
            _stop()
            network.up()
        return swarm.up(count)


def _start(host: LabHost, system: os.PathLike[str], with_registries: bool = False) -> None:
    if groups.processes(host.name):
        return
    if not (host.folder / "complete").exists():
        shutil.rmtree(host.folder, ignore_errors=True)
        _make_disk(host, system, with_registries)
    groups.end(host.name)
    launch = [
        "sh",
        str(paths.ROOT / "lab/launch.sh"),
        host.name,
        str(host.folder),
        ":".join(map(str, host.layers)),
    ]
    command = network.inside(["unshare", "--mount", "--propagation", "private", *launch])
    groups.start(host.name, command, host.console)


def _make_disk(host: LabHost, system: os.PathLike[str], with_registries: bool) -> None:
    """Make a host's disk, with its own name, address and keys."""
    host.make_folders(system)
    settings = host.disk / "etc/systemd/network/10-lab.network"
    settings.parent.mkdir(parents=True)
    settings.write_text(
        f"[Match]\nVirtualization=container\nName=host0\n\n[Network]\nAddress={host.address}/24\nLinkLocalAddressing=no\n"
    )
    (host.disk / "etc/hostname").write_text(f"{host.name}\n")
    # Debian's own second line; it is what makes RMI say "is a loopback address" unless it is told better
    (host.disk / "etc/hosts").write_text(f"127.0.0.1 localhost\n127.0.1.1 {host.name}\n")
    keys.give(host)
    if with_registries:
        registries.configure(host)
    (host.folder / "complete").touch()


def _wait(host: LabHost, system: os.PathLike[str]) -> HostStatus:
    """Wait until systemd on the host has started everything."""
    deadline = time.monotonic() + BOOT_S
    started_again = False
    while (status := status_of(host)).state not in ("running", "degraded"):
        if status.state == "stopped" and not started_again:
            # What still ran when it was looked for was about to end, as after a kill.
            _start(host, system)
            started_again = True
        elif status.state == "stopped":
            raise LabError(f"{host.name} ends as soon as it is started; see {host.console}")
        elif time.monotonic() > deadline:
            raise LabError(f"{host.name} is {status.state} {BOOT_S} s after its start; see {host.console}")
        time.sleep(0.1)
    return status


def status_of(host: LabHost) -> HostStatus:
    """Return the state of one host."""
    if not groups.processes(host.name):
        return HostStatus(host, "stopped", ssh=False)
    done = subprocess.run(keys.ssh(host, "systemctl", "is-system-running"), capture_output=True, text=True, check=False)
    state = done.stdout.strip()
    return HostStatus(host, state or "unreachable", ssh=bool(state))


def status() -> list[HostStatus]:
    """Return the state of every host that has a disk."""
    hosts = existing()
    if hosts and os.geteuid() != 0:
        raise LabError("the lab's key is root's; run it as root or by sudo")
    return [status_of(host) for host in hosts]


def down() -> int:
    """Stop the lab and delete its hosts' disks, but not the base system; returns the number of hosts."""
    with _exclusive():
        _refuse_another()
        count = len(existing()) + len(swarm.existing())
        _stop()
        for folder in (HOME / "hosts", swarm.FOLDER):
            remove_folder(folder)
    return count


def _stop() -> None:
    for name in groups.groups():
        if name not in (network.KEEPER, network.PROXY):
            groups.end(name)
    network.down()
    groups.end()
