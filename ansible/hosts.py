"""Prints, as JSON, the hosts that a pattern names and how ssh reaches each; run by the Python that has Ansible.

    python ansible/hosts.py --inventory inventory.ini 'slaves:!slave3'

The pattern is Ansible's own, and an address in it stands for the host that has it. Variables come templated, with
group_vars/ beside this file in force as they are for the playbooks.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleError
from ansible.inventory.manager import InventoryManager
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar
from ansible.vars.manager import VariableManager

WANTED = (
    "ansible_host",
    "ansible_port",
    "ansible_user",
    "ansible_ssh_private_key_file",
    "ansible_ssh_common_args",
    "ansible_ssh_extra_args",
    "ansible_connection",
    "framestorm_address",
    "framestorm_function_port",
)


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
    inventory = InventoryManager(loader=loader, sources=[str(inventory_path.resolve())])
    variables = VariableManager(loader=loader, inventory=inventory)
    values = {host.name: _values(host, loader, variables) for host in inventory.get_hosts("all")}
    by_address = {found["ansible_host"]: name for name, found in values.items()}
    words = [word.strip() for word in pattern.split(",") if word.strip()]
    own_pattern = ",".join(by_address.get(word, word) for word in words)
    chosen = inventory.get_hosts(own_pattern)
    if not chosen:
        known = ", ".join([*sorted(inventory.groups), *values]) or "none"
        raise AnsibleError(f"'{pattern}' names no host of {inventory_path}; it has the groups and hosts {known}")
    return [values[host.name] for host in chosen]


def _values(host: Any, loader: DataLoader, variables: VariableManager) -> dict[str, Any]:
    raw = variables.get_vars(host=host)
    templar = Templar(loader=loader, variables=raw)
    found = {name: templar.template(raw[name]) for name in WANTED if name in raw}
    return {
        "name": host.name,
        "groups": [group.name for group in host.get_groups() if group.name not in {"all", "ungrouped"}],
        **found,
        "ansible_host": found.get("ansible_host", host.name),
    }


if __name__ == "__main__":
    sys.exit(main())
