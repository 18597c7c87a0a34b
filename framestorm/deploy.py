"""Ansible over the inventory: what turns bare hosts into master, slaves and function host, and back."""

import argparse
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from framestorm import paths
from framestorm.errors import UsageError


def main(words: Sequence[str]) -> int:
    """Run the playbook; words that are not known here go to ansible-playbook. Its exit status, 1 for any failure."""
    parser = argparse.ArgumentParser(
        prog="./run.sh deploy",
        description="Turn the hosts of the inventory into what their groups say; a second run changes nothing.",
        epilog="Further options are ansible-playbook's own: --check, --limit slave2, -e framestorm_rmi_ssl=true.",
    )
    parser.add_argument(
        "-i", metavar="FILE", dest="inventory", type=Path, default=paths.INVENTORY, help="the inventory"
    )
    parser.add_argument("--uninstall", action="store_true", help="take back what deploy has done")
    asked, further = parser.parse_known_args(list(words))
    if not asked.inventory.exists():
        raise UsageError(f"no inventory at {asked.inventory}; name one by -i")
    playbook = paths.ANSIBLE / ("uninstall.yml" if asked.uninstall else "site.yml")
    bin_dir = paths.ANSIBLE_PYTHON.parent
    environment = {
        **os.environ,
        "ANSIBLE_CONFIG": str(paths.ANSIBLE / "ansible.cfg"),
        "PATH": f"{bin_dir}{os.pathsep}{os.environ['PATH']}",
    }
    command = [bin_dir / "ansible-playbook", "-i", asked.inventory.resolve(), playbook, *further]
    done = subprocess.run(command, cwd=paths.ANSIBLE, env=environment, check=False)
    return 0 if done.returncode == 0 else 1
