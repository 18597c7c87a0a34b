"""Ansible over the inventory: what turns bare hosts into master, slaves and function host, and back."""

import argparse
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from framestorm import paths
from framestorm.errors import UsageError
from framestorm.setup import pieces as setup


def main(words: Sequence[str]) -> int:
    """Set up and run the playbook; unknown words go to ansible-playbook. Its exit status, 1 for any failure."""
    parser = argparse.ArgumentParser(
        prog="./run.sh deploy",
        description="Set up each host of the inventory for its group; a second run changes nothing.",
        epilog="Other options go to ansible-playbook: --check, --limit slave2, -e framestorm_rmi_ssl=true.",
    )
    parser.add_argument(
        "-i", metavar="FILE", dest="inventory", type=Path, default=paths.INVENTORY, help="the inventory"
    )
    parser.add_argument("--uninstall", action="store_true", help="undo what deploy has done")
    arguments, further = parser.parse_known_args(list(words))
    if not arguments.inventory.exists():
        raise UsageError(f"no inventory at {arguments.inventory}; name one by -i")
    setup.ensure([*setup.FOR_A_RUN, setup.ANSIBLE_VENV])
    playbook = paths.ANSIBLE / ("uninstall.yml" if arguments.uninstall else "site.yml")
    bin_dir = paths.ANSIBLE_PYTHON.parent
    environment = {
        **os.environ,
        "ANSIBLE_CONFIG": str(paths.ANSIBLE / "ansible.cfg"),
        "PATH": f"{bin_dir}{os.pathsep}{os.environ['PATH']}",
    }
    command = [bin_dir / "ansible-playbook", "-i", arguments.inventory.resolve(), playbook, *further]
    done = subprocess.run(command, cwd=paths.ANSIBLE, env=environment, check=False)
    return 0 if done.returncode == 0 else 1
