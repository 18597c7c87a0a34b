"""`uninstall.yml` takes it all back."""

import re
from collections.abc import Callable
from typing import Any

# What every use of apt, systemd and Ansible leaves: logs, caches, lists and the copies that dpkg and useradd keep.
LEFT_BY_TOOLS = (
    "/var/log/",
    "/var/cache/",
    "/var/lib/apt",
    "/var/lib/dpkg",
    "/var/lib/systemd",
    "/var/lib/ucf",
    "/tmp",
    "/var/tmp",
)
LEFT_BY_TOOLS += ("/etc/ld.so.cache", "/etc/.pwd.lock")
ANYWHERE = re.compile(r"/(\.ansible|__pycache__)")
BACKUPS = {f"/etc/{name}-" for name in ("passwd", "group", "shadow", "gshadow", "subuid", "subgid")}
LIST = "sudo find / -xdev '(' -path /proc -o -path /sys -o -path /run -o -path /dev ')' -prune -o -print"


def files(lab: Any, host: str) -> set[str]:
    listed = lab.ssh(host, LIST).splitlines()
    return {path for path in listed if not path.startswith(LEFT_BY_TOOLS) and not ANYWHERE.search(path)} - BACKUPS


def test_uninstall_leaves_nothing(deployed: Any, ansible: Callable[..., Any]) -> None:
    deployed.ssh("function1", "sudo nohup python3 -m http.server 9999 >/dev/null 2>&1 </dev/null &")
    assert deployed.scan("outsider", "function1", "9990-10000") == frozenset()
    done = ansible("ansible-playbook", "uninstall.yml")
    assert done.returncode == 0, done.stdout[-4000:]
    bare = files(deployed, "outsider")  # from the same base, and nothing was deployed there
    for host in ("master1", "slave1", "function1"):
        assert sorted(files(deployed, host) ^ bare) == [], host
        assert "framestorm" not in deployed.ssh(host, "getent passwd; systemctl list-units --all --no-legend")
    assert deployed.scan("outsider", "function1", "9990-10000") == {9999}
    again = ansible("ansible-playbook", "uninstall.yml")
    assert again.returncode == 0, again.stdout[-4000:]
    assert again.stdout.count("changed=0") == 4
