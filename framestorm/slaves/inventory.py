"""The hosts of a run, as Ansible's inventory has them, and how ssh reaches each."""

import json
import shlex
import subprocess
import urllib.parse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from framestorm import paths
from framestorm.errors import UsageError

CONNECT_TIMEOUT_S = 5


@dataclass(frozen=True)
class Host:
    """One host of the inventory with the variables that a run needs."""

    name: str
    groups: tuple[str, ...]
    ssh_host: str
    address: str
    variables: dict[str, Any]

    def ssh(self, remote_command: str) -> list[str]:
        """The command that runs another on the host, with the connection variables of the inventory."""
        options = ["-T", "-o", "BatchMode=yes", "-o", f"ConnectTimeout={CONNECT_TIMEOUT_S}"]
        for name, option in (("ansible_port", "-p"), ("ansible_user", "-l"), ("ansible_ssh_private_key_file", "-i")):
            if self.variables.get(name):
                options += [option, str(self.variables[name])]
        for name in ("ansible_ssh_common_args", "ansible_ssh_extra_args"):
            options += shlex.split(self.variables.get(name) or "")
        return ["ssh", *options, self.ssh_host, remote_command]

    def is_here(self) -> bool:
        """Whether this is the controlling machine itself."""
        return self.variables.get("ansible_connection") == "local" or self.address in own_addresses()


def own_addresses() -> set[str]:
    """All addresses of this machine, loopback too."""
    return {each.address for addresses in psutil.net_if_addrs().values() for each in addresses}


def find(inventory: Path, pattern: str) -> list[Host]:
    """The hosts that an Ansible pattern, or a list of addresses, names.

    Raises:
        UsageError: the inventory cannot be read, or the pattern names none of its hosts.
    """
    if not inventory.exists():
        raise UsageError(f"no inventory at {inventory}; name one by -i")
    command: list[str | Path] = [paths.ANSIBLE_PYTHON, paths.ANSIBLE / "hosts.py", "--inventory", inventory, pattern]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        words = [line for line in done.stderr.splitlines() if not line.startswith("[WARNING]")]
        raise UsageError(f"-R {pattern}: {' '.join(words).strip()}")
    return [_host(found) for found in json.loads(done.stdout)]


@dataclass(frozen=True)
class Hosts:
    """Who takes part in a run over slaves; no master means that JMeter's controller runs on this machine."""

    slaves: list[Host]
    master: Host | None
    functions: list[Host]

    @property
    def function_url(self) -> str | None:
        """The function of the inventory; the first one where there are more."""
        if not self.functions:
            return None
        port = self.functions[0].variables.get("framestorm_function_port", 8080)
        return f"http://{self.functions[0].address}:{port}/function/face-blur"

    def function_at(self, url: str) -> Host | None:
        """The function's host that a URL leads to; None when the inventory has none, or it is in the run anyway."""
        name = urllib.parse.urlsplit(url).hostname
        found = (host for host in self.functions if name in {host.name, host.address, host.ssh_host})
        return next((host for host in found if host not in self.slaves and host != self.master), None)


def find_hosts(inventory: Path, pattern: str) -> Hosts:
    """The slaves that the pattern names, with the master and the function of the same inventory.

    Raises:
        UsageError: the inventory cannot be read, or the pattern names none of its hosts.
    """
    everyone = find(inventory, "all")
    masters = [host for host in everyone if "master" in host.groups and not host.is_here()]
    functions = [host for host in everyone if "function" in host.groups]
    return Hosts(find(inventory, pattern), masters[0] if masters else None, functions)


def _host(found: dict[str, Any]) -> Host:
    ssh_host = str(found["ansible_host"])
    return Host(found["name"], tuple(found["groups"]), ssh_host, str(found.get("framestorm_address", ssh_host)), found)
