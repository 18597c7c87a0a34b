"""The lab's ssh keys, made when the lab is made and nowhere else."""

from __future__ import annotations

import shutil
from pathlib import Path

from framestorm.machine import execute
from lab.hosts import HOME, USER, LabHost

FOLDER = HOME / "ssh"
KEY = FOLDER / "key"
KNOWN_HOSTS = FOLDER / "known_hosts"


def ensure() -> None:
    """Make the key that logs in on all hosts."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    FOLDER.chmod(0o700)
    if not KEY.is_file():
        _generate(KEY, "framestorm lab")


def give(host: LabHost) -> None:
    """Give a host its own key and let the lab's key in; remember the host's so that ssh can check it."""
    folder = host.disk / "etc/ssh"
    folder.mkdir(parents=True, exist_ok=True)
    key = folder / "ssh_host_ed25519_key"
    _generate(key, host.name)
    home = host.disk / "home" / USER
    authorized = home / ".ssh/authorized_keys"
    authorized.parent.mkdir(parents=True)
    shutil.copyfile(KEY.with_suffix(".pub"), authorized)
    for path, mode in ((home, 0o700), (authorized.parent, 0o700), (authorized, 0o600)):
        shutil.chown(path, 1000, 1000)  # the only user that the base has
        path.chmod(mode)
    kind, public, *_ = key.with_suffix(".pub").read_text().split()
    others = KNOWN_HOSTS.read_text().splitlines() if KNOWN_HOSTS.is_file() else []
    lines = [line for line in others if line.split()[0] != host.address]
    KNOWN_HOSTS.write_text("\n".join([*lines, f"{host.address} {kind} {public}"]) + "\n")


def _generate(path: Path, comment: str) -> None:
    path.unlink(missing_ok=True)
    execute("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", str(path))


def ssh(host: LabHost, *command: str) -> list[str]:
    """Return the command line that runs `command` on a host."""
    options = {
        "BatchMode": "yes",
        "ConnectTimeout": "3",
        "UserKnownHostsFile": str(KNOWN_HOSTS),
        "IdentitiesOnly": "yes",
    }
    flags = [part for name, value in options.items() for part in ("-o", f"{name}={value}")]
    return ["ssh", "-F", "/dev/null", "-i", str(KEY), *flags, f"{USER}@{host.address}", *command]
