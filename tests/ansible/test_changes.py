"""The lab's hosts deployed with SSL, by an inventory that a host has left, and last of all taken back."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from framestorm import paths
from framestorm.hosts.orders import CONTROLLER_PROPERTIES
from framestorm.machine import wait_until
from tests.ansible.test_deploy import jmeter, on_slaves
from tests.conftest import Lab
from tests.runs import RunSh

# What every use of apt, systemd and Ansible leaves: logs, caches, lists and the copies that dpkg and useradd keep.
LEFT_BY_TOOLS = (
    *("/var/log/", "/var/cache/", "/var/lib/apt", "/var/lib/dpkg", "/var/lib/systemd", "/var/lib/ucf"),
    *("/tmp", "/var/tmp", "/etc/ld.so.cache", "/etc/.pwd.lock"),
)
ANYWHERE = re.compile(r"/(\.ansible|__pycache__)")
BACKUPS = {f"/etc/{name}-" for name in ("passwd", "group", "shadow", "gshadow", "subuid", "subgid")}
LIST = "sudo find / -xdev '(' -path /proc -o -path /sys -o -path /run -o -path /dev ')' -prune -o -print"

# A package of the user's that needs one of those that deploy installs.
INSTALL_NEEDER = """
set -e; cd "$(mktemp -d)"; mkdir -p needer/DEBIAN
printf '%s: %s\\n' Package needer Version 1 Architecture all Maintainer me Description needer \
    Depends python3-venv >needer/DEBIAN/control
dpkg-deb --build needer >/dev/null; sudo dpkg --install needer.deb
"""


@pytest.fixture(scope="module")
def before(deployed: Lab, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Master and slave1 deployed again with SSL, by an inventory that slave2 has left; the properties of before."""
    folder = tmp_path_factory.mktemp("changed")
    kept, fewer = folder / "before.properties", folder / "inventory.ini"
    kept.write_bytes(CONTROLLER_PROPERTIES.read_bytes())
    text = paths.INVENTORY.read_text().replace("{{ inventory_dir }}", str(paths.ROOT))
    fewer.write_text(text.replace("slave2 ansible_host=198.18.0.12\n", ""))
    words = ("--diff", "--limit", "master1,slave1", "-i", str(fewer))
    done = RunSh(folder)("./run.sh deploy -e framestorm_rmi_ssl=true", *words, out="")
    assert (paths.LOCAL / "deploy" / "rmi_password").read_text() not in done.stdout
    return kept


def test_ssl_is_one_variable(before: Path, tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    assert on_slaves("hostname", tmp_path, ["198.18.0.11"]) == ["slave1\n"]
    refused = jmeter(tmp_path / "plain", "hostname", ["198.18.0.11"], properties=before)
    assert "could not be configured" in refused.stdout + refused.stderr


def test_what_ssl_needs_here_is_its_owner_s(before: Path) -> None:
    for name in ("rmi_keystore.jks", "rmi_password", "jmeter.properties"):
        assert (paths.LOCAL / "deploy" / name).stat().st_mode & 0o077 == 0, name


def test_a_master_runs_with_ssl(before: Path, run_sh: RunSh) -> None:
    function = "-Jurl=http://198.18.0.3:8080/_/health"
    done = run_sh("-R", "slave1", "-t", "jmx/requests.jmx", function, "-Jmethod=GET", "-Jusers=1", "-Jhold_s=1")
    assert done.json("run.json")["rmi"]["ssl"]
    assert min(int(row["responseCode"]) for row in done.rows("samples.jtl")) == 200


def test_a_host_that_left_the_inventory_is_let_in_no_more(before: Path, deployed: Lab) -> None:
    assert "198.18.0.12" not in deployed.ssh("slave1", "sudo ufw status")
    # A run has its slaves' servers started anew when it ends, and a server opens its two ports one after the other.
    assert wait_until(lambda: deployed.scan("master1", "slave1", "8000-8010") == {8001, 8002}, 60)
    assert deployed.scan("slave2", "slave1", "8000-8010") == frozenset()


def files(lab: Lab, host: str) -> set[str]:
    listed = lab.ssh(host, LIST).splitlines()
    return {path for path in listed if not path.startswith(LEFT_BY_TOOLS) and not ANYWHERE.search(path)} - BACKUPS


def test_uninstall_leaves_nothing(before: Path, deployed: Lab, run_sh: RunSh, lab_cli: Callable[..., Any]) -> None:
    deployed.ssh("function1", "sudo nohup python3 -m http.server 9999 >/dev/null 2>&1 </dev/null &")
    assert deployed.scan("outsider", "function1", "9990-10000") == frozenset()
    deployed.ssh("slave1", INSTALL_NEEDER)
    run_sh("./run.sh deploy --uninstall", out="")
    # A package that was installed since stays, with the one that it needs; once it goes, nothing is left of either.
    assert deployed.ssh("slave1", "dpkg-query --show -f '${db:Status-Status} ' needer python3-venv") == "installed " * 2
    idle = "-o APT::AutoRemove::RecommendsImportant=false -o APT::AutoRemove::SuggestsImportant=false autoremove"
    deployed.ssh("slave1", f"sudo dpkg --purge needer && sudo apt-get --yes --purge {idle}")
    bare = files(deployed, "outsider")  # from the same base, and nothing was deployed there
    for host in ("master1", "slave1", "function1"):
        assert sorted(files(deployed, host) ^ bare) == [], host
        assert "framestorm" not in deployed.ssh(host, "getent passwd; systemctl list-units --all --no-legend")
    assert deployed.scan("outsider", "function1", "9990-10000") == {9999}
    deployed.ssh("slave1", "sudo useradd framestorm && sudo touch /opt/framestorm")
    assert run_sh("./run.sh deploy --uninstall", "--limit", "slave1", out="").stdout.count("changed=0") == 1
    refused = run_sh("./run.sh deploy", "--limit", "slave1", out="", status=1).stdout
    assert "/home/framestorm" in refused and "/opt/framestorm" in refused
    assert "framestorm" in deployed.ssh("slave1", "getent passwd framestorm && ls /opt/framestorm")
    assert "slave2" in run_sh("./run.sh lab status", out="").stdout
    run_sh("./run.sh lab down", out="")
    lab_cli("status", status=1)
