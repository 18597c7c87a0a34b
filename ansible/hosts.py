"""Prints, as JSON, the hosts that a pattern names and how ssh reaches each; run by the Python that has Ansible.

    python ansible/hosts.py --inventory inventory.ini 'slaves:!slave3'

The pattern is Ansible's own, and an address in it stands for the host that has it. Variables come templated, with
group_vars/ beside this file in force as they are for the playbooks, and ssh's as Ansible finds them: under each of
their names, in the environment, or vaulted.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from ansible.cli import CLI
from ansible.errors import AnsibleError
from ansible.inventory.manager import InventoryManager, split_host_pattern
from ansible.parsing.dataloader import DataLoader
from ansible.plugins.loader import connection_loader
from ansible.template import Templar
from ansible.vars.manager import VariableManager

from ansible import constants

# Ansible's options of ssh, and the names that they are printed under.
OF_SSH = {
    "host": "ansible_host",
    "port": "ansible_port",
    "remote_user": "ansible_user",
    "private_key_file": "ansible_ssh_private_key_file",
    "ssh_common_args": "ansible_ssh_common_args",
    "ssh_extra_args": "ansible_ssh_extra_args",
}
WANTED = ("ansible_connection", "framestorm_address", "framestorm_function_port", "ansible_become")


def main() -> int:
    parser = argparse.ArgumentParser(description="Print the hosts that a pattern names, as JSON.")
    parser.add_argument("--inventory", required=True, type=Path)
    parser.add_argument("pattern")
    asked = parser.parse_args()
    try:
        print(json.dumps(find(asked.inventory, asked.pattern)))
    except AnsibleError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def find(inventory_path: Path, pattern: str) -> list[dict[str, Any]]:
    """The hosts of a pattern in the inventory's order, each with its name, groups and wanted variables."""
    loader = DataLoader()
    loader.set_basedir(str(Path(__file__).parent))
    loader.set_vault_secrets(CLI.setup_vault_secrets(loader, constants.DEFAULT_VAULT_IDENTITY_LIST, auto_prompt=False))
    connection_loader.get("ssh", class_only=True)  # which makes its options known
    inventory = InventoryManager(loader=loader, sources=[str(inventory_path.resolve())])
    variables = VariableManager(loader=loader, inventory=inventory)
    values = {host.name: _values(host, loader, variables) for host in inventory.get_hosts("all")}
    by_address: dict[str, list[str]] = {}
    for name, found in values.items():
        by_address.setdefault(found["ansible_host"], []).append(name)
    chosen_by = []
    for word in split_host_pattern(pattern):
        name = word.lstrip("!&")
        names = [name] if name in values else by_address.get(name, [name])
        if len(names) > 1:
            raise AnsibleError(f"'{name}' is the address of {' and '.join(names)}; name one of them")
        own_name = names[0]
        # Ansible only warns: a slave that is misspelt would be missing, or one that is to be left out would take part.
        if own_name not in inventory.groups and values.keys().isdisjoint(map(str, inventory.get_hosts(own_name))):
            raise _no_host(name, inventory, inventory_path)
        chosen_by.append(word.removesuffix(name) + own_name)
    if not (chosen := inventory.get_hosts(chosen_by)):
        raise _no_host(pattern, inventory, inventory_path)
    return [values[host.name] for host in chosen]


def _no_host(pattern: str, inventory: InventoryManager, path: Path) -> AnsibleError:
    known = ", ".join([*sorted(inventory.groups), *(host.name for host in inventory.get_hosts())]) or "none"
    return AnsibleError(f"'{pattern}' names no host of {path}; it has the groups and hosts {known}")


def _values(host: Any, loader: DataLoader, variables: VariableManager) -> dict[str, Any]:
    raw = variables.get_vars(host=host)
    templar = Templar(loader=loader, variables=raw)
    options = constants.config.get_configuration_definitions("connection", "ssh")
    of_ssh = {name["name"] for option in OF_SSH for name in options[option]["vars"]}
    found = {name: templar.template(raw[name]) for name in (*WANTED, *of_ssh) if name in raw}
    ssh = {
        printed: constants.config.get_config_value(option, plugin_type="connection", plugin_name="ssh", variables=found)
        for option, printed in OF_SSH.items()
    }
    return {
        "name": host.name,
        "groups": [group.name for group in host.get_groups() if group.name not in {"all", "ungrouped"}],
        **{name: found[name] for name in WANTED if name in found},
        **ssh,
    }


if __name__ == "__main__":
    sys.exit(main())
