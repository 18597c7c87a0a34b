"""The disk that all hosts of a lab start from: a minimal system of the machine's own release, made once.

It is as bare as a VM just rented: systemd, sshd, sudo and Python, and nothing of Framestorm.
"""

from __future__ import annotations

import hashlib
import inspect
import os
import shutil
import sys
from pathlib import Path

from framestorm.machine import execute
from framestorm.model.files import remove_folder
from framestorm.setup import archives
from framestorm.setup.archives import Archive
from lab.hosts import CONTROLLER_ADDRESS, HOME, USER
from lab.network import PROXY_PORT

# What the lab needs of this machine: tinyproxy-bin is the program without the service.
TOOLS = ("mmdebstrap", "systemd-container", "tinyproxy-bin", "iproute2", "openssh-client")
PACKAGES = (
    *("systemd-sysv", "systemd-timesyncd", "dbus", "openssh-server", "sudo", "python3", "iproute2", "ca-certificates"),
    "python3-apt",
)
_CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
_LOCAL_CERTIFICATES = Path("/usr/local/share/ca-certificates")


def _apt_settings() -> str:
    """Return how apt on a host gets at packages: as this machine, but by the lab's proxy.

    Pipelining and a lost connection are what the proxy is bad at.
    """
    proxy = f"http://{CONTROLLER_ADDRESS}:{PROXY_PORT}"
    kept = "".join(execute("apt-config", "dump", f"Acquire::{name}") for name in ("Check-Valid-Until", "Check-Date"))
    return (
        f'Acquire::http::Proxy "{proxy}";\nAcquire::https::Proxy "{proxy}";\n'
        'Acquire::http::Pipeline-Depth "0";\nAcquire::Retries "3";\nAcquire::Languages "none";\n'
        f'Acquire::https::CAInfo "/etc/ssl/lab.crt";\n{kept}'
    )


def _customise(root: Path, sources: list[Archive]) -> None:
    """Turn the freshly unpacked system into a host's disk."""
    (root / "etc/apt/sources.list").write_text("".join(f"{archive.line}\n" for archive in sources))
    (root / "etc/apt/apt.conf.d/90lab").write_text(_apt_settings())
    auth = root / "etc/apt/auth.conf"
    auth.touch(mode=0o600)
    auth.write_text(archives.logins(sources))
    if _CERTIFICATES.is_file():
        shutil.copyfile(_CERTIFICATES, root / "etc/ssl/lab.crt")
    # Java on a host makes its own store of the certificates that the system trusts.
    if _LOCAL_CERTIFICATES.is_dir():
        shutil.copytree(_LOCAL_CERTIFICATES, root / str(_LOCAL_CERTIFICATES)[1:], dirs_exist_ok=True)
    execute("chroot", str(root), "update-ca-certificates")
    for keyring in {archive.signed_by for archive in sources if archive.signed_by.startswith("/")}:
        (root / keyring[1:]).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(keyring, root / keyring[1:])
    for key in root.glob("etc/ssh/ssh_host_*"):
        key.unlink()  # each host gets its own
    (root / "etc/machine-id").write_text("")
    (root / "etc/ssh/sshd_config.d/lab.conf").write_text("PasswordAuthentication no\nUseDNS no\n")
    (root / f"etc/sudoers.d/{USER}").write_text(f"{USER} ALL=(ALL) NOPASSWD: ALL\n")
    (root / f"etc/sudoers.d/{USER}").chmod(0o440)
    # before systemd's own 80-container-host0.network, which would ask a DHCP server; the address comes with the host
    (root / "etc/systemd/network").mkdir(exist_ok=True)
    execute("chroot", str(root), "useradd", "--create-home", "--shell", "/bin/bash", USER)
    execute("systemctl", f"--root={root}", "enable", "systemd-networkd.service", "ssh.service")
    masked = ("systemd-networkd-wait-online.service", "apt-daily.timer", "apt-daily-upgrade.timer", "e2scrub_all.timer")
    execute("systemctl", f"--root={root}", "mask", *masked)
    # so that a role's "update the package lists if older than a day" does it once
    os.utime(root / "var/lib/apt/lists", (946_684_800, 946_684_800))


def current(sources: list[Archive]) -> Path:
    """Return where the base for these archives, and what this file makes of them, is or will be."""
    recipe = inspect.getsource(sys.modules[__name__]) + inspect.getsource(archives) + _apt_settings()
    recipe += "".join(archive.line for archive in sources)
    return HOME / f"base-{hashlib.sha256(recipe.encode()).hexdigest()[:12]}"


def ensure(sources: list[Archive]) -> Path:
    """Make the base unless it is there; half-made ones are begun again."""
    base = current(sources)
    if base.is_dir():
        return base
    print(f"making the base system of the lab's hosts from {sources[0].url} (once, about a minute)", file=sys.stderr)
    unfinished = HOME / "base-unfinished"
    shutil.rmtree(unfinished, ignore_errors=True)
    archives.unpack(unfinished, PACKAGES, sources)
    _customise(unfinished, sources)
    unfinished.rename(base)
    return base


def prune(used: set[Path]) -> None:
    """Remove the bases that no host stands on."""
    kept = {base.resolve() for base in used}
    for base in HOME.glob("base-*"):
        if base.is_dir() and base.resolve() not in kept:
            remove_folder(base)
