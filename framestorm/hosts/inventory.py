"""The hosts of a run, as Ansible's inventory has them: how ssh reaches each, and how Ansible sets them up."""

import configparser
import os
import re
import shlex
import subprocess
import urllib.parse
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter

from framestorm import paths
from framestorm.errors import UsageError
from framestorm.hosts.remote import RemoteHost
from framestorm.machine import own_addresses
from framestorm.parser import Parser
from framestorm.setup import pieces as setup

CONNECT_TIMEOUT_S = 5
# The path of a socket has at most 107 bytes, of which a name of Ansible's and a suffix of ssh's take 28.
LONGEST_FOLDER_OF_SOCKETS = 79


@dataclass(frozen=True)
class InventoryHost:
    """One host of the inventory with the variables that a run needs, as ansible/hosts.py prints them."""

    name: str
    groups: tuple[str, ...]
    ansible_host: str
    framestorm_address: str | None = None
    framestorm_function_port: int = 8080
    ansible_port: int | None = None
    ansible_user: str | None = None
    ansible_ssh_private_key_file: str | None = None
    ansible_ssh_common_args: str | None = None
    ansible_ssh_extra_args: str | None = None
    ansible_connection: str | None = None
    ansible_become: bool = True

    @property
    def address(self) -> str:
        """Its address for the other hosts of a run."""
        return self.framestorm_address or self.ansible_host

    @property
    def place(self) -> str:
        """Return where ssh finds it."""
        return self.ansible_host

    @property
    def by(self) -> str:
        """Return the program that reaches it."""
        return "ssh"

    @property
    def set_up(self) -> str:
        """Return what sets it up again."""
        return "run ./run.sh deploy"

    def command(self, remote: str) -> list[str]:
        """Return the command that runs another on the host as root, or as who logs in where the inventory says so."""
        # root needs no sudo, and a host may not have it.
        sudo = "$([ $(id -u) = 0 ] || echo sudo -n) " if self.ansible_become else ""
        return self.ssh(f"exec {sudo}{remote}")

    def ssh(self, remote_command: str) -> list[str]:
        """Return the command that runs another on the host, with the connection variables of the inventory."""
        options = ["-T", "-o", "BatchMode=yes", "-o", f"ConnectTimeout={CONNECT_TIMEOUT_S}"]
        key = self.ansible_ssh_private_key_file
        for option, value in (("-p", self.ansible_port), ("-l", self.ansible_user), ("-i", key)):
            options += [option, str(value)] if value else []
        for words in (self.ansible_ssh_common_args, self.ansible_ssh_extra_args):
            options += shlex.split(words or "")
        return ["ssh", *options, "--", self.ansible_host, remote_command]

    def is_here(self) -> bool:
        """Return whether this is the controlling machine itself."""
        return self.ansible_connection == "local" or self.address in own_addresses()


def find(inventory: Path, pattern: str) -> list[InventoryHost]:
    """Return the hosts that an Ansible pattern, or a list of addresses, names.

    Raises:
        UsageError: the inventory cannot be read, or the pattern names none of its hosts.
    """
    if not inventory.exists():
        raise UsageError(f"no inventory at {inventory}; name one by -i")
    command: list[str | Path] = [
        paths.ANSIBLE_PYTHON,
        paths.ANSIBLE / "hosts.py",
        f"--inventory={inventory}",
        "--",
        pattern,
    ]
    done = subprocess.run(command, env=ansible_environment(), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        words = [line for line in done.stderr.splitlines() if not line.startswith("[WARNING]")]
        raise UsageError(f"-R {pattern}: {' '.join(words).strip()}")
    return TypeAdapter(list[InventoryHost]).validate_json(done.stdout)


@dataclass(frozen=True)
class Hosts:
    """Who takes part in a run over slaves; no master means that JMeter's controller runs on this machine."""

    slaves: Sequence[RemoteHost]
    master: RemoteHost | None
    functions: Sequence[InventoryHost]

    def up(self) -> AbstractContextManager["Hosts"]:
        """Have the hosts there for the length of a run; those of an inventory are there."""
        return nullcontext(self)

    @property
    def function_url(self) -> str | None:
        """The function of the inventory; the first one where there are more."""
        if not self.functions:
            return None
        address = self.functions[0].address
        host = f"[{address}]" if ":" in address else address
        return f"http://{host}:{self.functions[0].framestorm_function_port}/function/face-blur"

    def function_at(self, url: str) -> InventoryHost | None:
        """The function's host that a URL leads to; None when the inventory has none, or it is in the run anyway."""
        name = urllib.parse.urlsplit(url).hostname
        candidates = (host for host in self.functions if name in {host.name, host.address, host.ansible_host})
        return next((host for host in candidates if host not in self.slaves and host != self.master), None)


def find_hosts(inventory: Path, pattern: str) -> Hosts:
    """Return the slaves that the pattern names, with the master and the function of the same inventory.

    Raises:
        UsageError: the inventory cannot be read, the pattern names none of its hosts or one that is no slave, or one
            has an IPv6 address, or two have the same.
    """
    everyone = find(inventory, "all")
    masters = [host for host in everyone if "master" in host.groups and not host.is_here()]
    functions = [host for host in everyone if "function" in host.groups]
    slaves, master = find(inventory, pattern), masters[0] if masters else None
    hosts = Hosts(slaves, master, functions)
    if others := [host.name for host in slaves if "slaves" not in host.groups]:
        raise UsageError(f"-R {pattern}: {', '.join(others)} must be in the group slaves of {inventory} to send load")
    if master and master.address in {host.address for host in slaves}:
        raise UsageError(
            f"-R {pattern}: {master.name} is the master, which conducts the run: leave it out, or empty the "
            f"group master of {inventory} to conduct from this machine"
        )
    names: dict[str, str] = {}
    for host in slaves:
        if (other := names.setdefault(host.address, host.name)) != host.name:
            raise UsageError(
                f"-R {pattern}: {other} and {host.name} have the same address {host.address}: remove one from "
                f"{inventory}, or set the ansible_host or framestorm_address of each"
            )
    for host in (*slaves, *masters[:1]):
        if ":" in host.address:  # JMeter splits what -R names at the colon before the port
            raise UsageError(
                f"{host.name} has the IPv6 address {host.address}: between hosts of a run JMeter needs IPv4; set its "
                "framestorm_address"
            )
    return hosts


def main(words: Sequence[str]) -> int:
    """`./run.sh deploy`: have Ansible set up the hosts, or undo that; further words go to it. 1 for any failure."""
    parser = Parser(
        prog="./run.sh deploy",
        description="Set up each host of the inventory for its group; a second run changes nothing.",
        epilog="Other options go to ansible-playbook: --check, --limit slave2, -e framestorm_rmi_ssl=true.",
    )
    parser.add_argument("-i", "--inventory", metavar="FILE", type=Path, action="append", help="the inventory")
    parser.add_argument("--uninstall", action="store_true", help="undo what deploy has done")
    arguments, further = parser.parse_known_args(list(words))
    inventory, *others = arguments.inventory or [paths.INVENTORY]
    if others:
        raise UsageError("-i is given twice, and a run takes one inventory; it may be a folder that has several files")
    if not inventory.exists():
        raise UsageError(f"no inventory at {inventory}; name one with -i")
    setup.ensure([setup.ANSIBLE_VENV])
    playbook = "uninstall.yml" if arguments.uninstall else "site.yml"
    program = paths.ANSIBLE_PYTHON.with_name("ansible-playbook")
    # In the user's folder: further words may name files there.
    command = [program, "-i", inventory.resolve(), paths.ANSIBLE / playbook, *further]
    # It reads its options, and contacts no host; without a terminal, it cannot ask for the password of a vault.
    asked, nobody = [*command, "--list-hosts"], subprocess.DEVNULL
    done = subprocess.run(
        asked, env=ansible_environment(), capture_output=True, text=True, check=False, stdin=nobody,
        start_new_session=True,
    )  # fmt: skip
    if wrong := re.search("^ansible-playbook: error: (.*)", done.stderr, re.MULTILINE):
        raise UsageError(f"ansible-playbook: {wrong[1]}; ./run.sh deploy --help says what goes to it")
    if "Completely failed to parse inventory source" in done.stderr:  # before minutes of set-up
        raise UsageError(f"Ansible cannot read the inventory {inventory}:\n{done.stderr.strip()}")
    # Ansible itself calls this a success.
    if {*re.findall(r"^ +hosts \((\d+)\):", done.stdout, re.MULTILINE)} == {"0"}:
        raise UsageError(
            f"none of the hosts of {inventory} that are asked for is in the group master, slaves or function; "
            "add it to one of them"
        )
    setup.ensure([*setup.FOR_A_RUN, *setup.FACE_BLUR])
    return int(subprocess.run(command, env=ansible_environment(), check=False).returncode != 0)


def ansible_environment() -> dict[str, str]:
    """Return the environment in which Ansible reads an inventory in the same way for all that use it."""
    search_path = [str(paths.ANSIBLE_PYTHON.parent), str(paths.JAVA_HOME / "bin"), os.environ["PATH"]]
    settings, sockets = paths.ANSIBLE / "ansible.cfg", paths.LOCAL / "ssh"
    return {
        **({} if len(os.fsencode(sockets)) <= LONGEST_FOLDER_OF_SOCKETS else _without_sockets(settings)),
        **os.environ,
        "ANSIBLE_CONFIG": str(settings),
        "ANSIBLE_SSH_CONTROL_PATH_DIR": str(sockets),
        "LC_ALL": "C.UTF-8",  # without which Ansible refuses to start
        "PATH": os.pathsep.join(search_path),
    }


def _without_sockets(settings: Path) -> dict[str, str]:
    """Return the options of ssh in Ansible's settings but for those that keep connections: each task makes its own."""
    parser = configparser.RawConfigParser()
    parser.read(settings)
    return {"ANSIBLE_SSH_ARGS": re.sub(r"-o Control\S+ *", "", parser["ssh_connection"]["ssh_args"])}
